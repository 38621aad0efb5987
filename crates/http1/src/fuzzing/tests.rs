use super::*;

const REQUESTS: [&[u8]; 6] = [
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\r\nPOST http://b:80/x?y HTTP/1.1\r\nhost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\
      \r\nhelloGET / HTTP/1.0\r\n\r\n",
    b"PUT /u HTTP/1.1\r\nHost: [::1]:8\r\nTransfer-Encoding: chunked\r\nTrailer: D\r\n\r\n\
      5;a=\"b\"\r\nhello\r\n0\r\nD: e\r\nHost: x\r\n\r\n",
    b"GET /c HTTP/1.1\r\nHost: a\r\nConnection: upgrade, TE, X\r\nX: y\r\nUpgrade: h2c, w\r\n\
      TE: trailers\r\nX-Forwarded-For: 6\r\nA:b\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 3\r\nX_Forwarded-For: 6\r\n\r\n",
    b"GET / HTTP/1.0\r\nConnection: keep-alive\r\nKeep-Alive: 5\r\n\r\n",
];

const RESPONSES: [&[u8]; 5] = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: X\r\nX: y\r\n\r\nok",
    b"HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\
      Trailer: T\r\n\r\n3\r\nabc\r\n0\r\nT: u\r\n\r\n",
    b"HTTP/1.0 200\r\nDate: x\r\n\r\nuntil the end",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\nETag: \"e\"\r\n\r\n",
    b"HTTP/1.1 101 Switching\r\nUpgrade: w\r\nConnection: upgrade\r\n\r\n\x00",
];

const BODIES: [&[u8]; 3] = [
    b"5\r\nhello\r\n10;a;b=c;d=\"e\\\"\"\r\n0123456789abcdef\r\n0\r\n\r\nGET",
    b"1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n",
    b"000f\r\n123456789012345\r\n0\r\n\r\n",
];

/// Fragments that matter to a parser; a mutation puts one somewhere.
const FRAGMENTS: [&[u8]; 16] = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\x00",
    b" ",
    b"\t",
    b":",
    b",",
    b"\r\n ",
    b"0\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 1\r\n",
    b"Host: b\r\n",
    b"Connection: close\r\n",
    b"\xff",
    b"HTTP/1.1",
];

/// xorshift64: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    /// A number below `bound > 0`.
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    /// `seed` with one to three small changes.
    fn mutate(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len() + 1);
            match self.below(4) {
                0 => {
                    let fragment = FRAGMENTS[self.below(FRAGMENTS.len())];
                    bytes.splice(at..at, fragment.iter().copied());
                }
                1 => bytes.truncate(at),
                2 if at < bytes.len() => bytes[at] = self.below(256) as u8,
                _ => {
                    let end = (at + 1 + self.below(4)).min(bytes.len());
                    bytes.drain(at.min(end)..end);
                }
            }
        }
        bytes
    }
}

fn check(check: fn(&[u8]), seeds: &[Vec<u8>]) {
    const MUTATIONS: usize = 300;
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for seed in seeds {
        check(seed);
        for _ in 0..MUTATIONS {
            check(&numbers.mutate(seed));
        }
    }
}

#[test]
fn request_heads_hold_their_postconditions() {
    check(request_head, &REQUESTS.map(<[u8]>::to_vec));
}

#[test]
fn response_heads_hold_their_postconditions() {
    check(response_head, &RESPONSES.map(<[u8]>::to_vec));
}

#[test]
fn chunked_bodies_hold_their_postconditions() {
    check(chunked, &BODIES.map(<[u8]>::to_vec));
}

#[test]
fn exchanges_hold_their_postconditions() {
    let pairs = REQUESTS.iter().flat_map(|request| {
        RESPONSES.iter().map(move |response| [request, MARK, response].concat())
    });
    check(exchange, &pairs.collect::<Vec<_>>());
}

#[test]
fn the_naive_reader_refuses_what_is_not_strict() {
    let heads: [&[u8]; 8] = [
        b"GET / HTTP/1.1\r\nHost: a\r\n",
        b"GET / HTTP/1.1\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET / HTTP/1.1\r\n: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: \x00\r\n\r\n",
    ];
    for input in heads {
        assert!(naive::head(input).is_none(), "{:?}", String::from_utf8_lossy(input));
    }
    let bodies: [&[u8]; 5] =
        [b"5\r\nhello", b"5\r\nhelloX\r\n0\r\n\r\n", b"x\r\n", b"0\r\nA\r\n\r\n", b"0\r\n"];
    for input in bodies {
        assert!(naive::chunked(input).is_none(), "{:?}", String::from_utf8_lossy(input));
    }
}

#[test]
#[should_panic(expected = "ambiguous framing")]
fn the_naive_reader_notices_two_framings() {
    let head = b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer_Encoding: chunked\r\n\r\n";
    naive::framing(&naive::head(head).expect("the grammar is followed"));
}
