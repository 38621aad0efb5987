use super::*;

fn chunked() -> BodyDecoder {
    BodyDecoder::new(Framing::Chunked)
}

const FORWARD: Trailers<'static> = Trailers::Forward(baton_http1::Edits::NONE.remove);

/// What [`append_body`] makes of `input`, as text.
fn appended(
    input: &str,
    framing: Framing,
    coding: Framing,
    trailers: Trailers<'_>,
) -> (String, Taken) {
    let mut out = b"head|".to_vec();
    let mut decoder = BodyDecoder::new(framing);
    let taken = append_body(input.as_bytes(), &mut decoder, coding, trailers, &mut out);
    (String::from_utf8(out).expect("text in, text out"), taken.expect("the body is valid"))
}

#[test]
fn a_body_that_breaks_its_coding_is_refused() {
    let input = b"3\r\nabc\r\nx";
    let mut out = Vec::new();
    let taken = append_body(input, &mut chunked(), Framing::Chunked, FORWARD, &mut out);
    assert_eq!(taken, Err(BodyError::ChunkSize));
    assert!(Walk::new().gather(&mut input.to_vec(), &mut chunked()).is_err());
}

#[test]
fn what_follows_a_body_is_not_taken() {
    let (out, taken) = appended("abGET /", Framing::Length(2), Framing::Length(2), FORWARD);
    assert_eq!(out, "head|ab");
    assert_eq!(taken, Taken { input_bytes: 2, body_bytes: 2 });
    let (out, taken) = appended("GET /", Framing::None, Framing::None, FORWARD);
    assert_eq!(out, "head|");
    assert_eq!(taken, Taken { input_bytes: 0, body_bytes: 0 });
}

#[test]
fn chunks_become_one_chunk_and_its_end() {
    let input = "2;ext=1\r\nab\r\n1\r\nc\r\n0\r\nSum: 1\r\n\r\nGET /";
    let (out, taken) = appended(input, Framing::Chunked, Framing::Chunked, FORWARD);
    assert_eq!(out, "head|3\r\nabc\r\n0\r\nSum: 1\r\n\r\n");
    assert_eq!(taken, Taken { input_bytes: input.len() - "GET /".len(), body_bytes: 3 });
    let (out, _) = appended(input, Framing::Chunked, Framing::Chunked, Trailers::Drop);
    assert_eq!(out, "head|3\r\nabc\r\n0\r\n\r\n");
    let (out, _) = appended(input, Framing::Chunked, Framing::UntilClose, Trailers::Drop);
    assert_eq!(out, "head|abc");
}

#[test]
fn a_part_of_a_body_cut_anywhere_goes_out_as_far_as_it_is_there() {
    let input = "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n";
    for cut in 0..=input.len() {
        let (out, taken) =
            appended(&input[..cut], Framing::Chunked, Framing::UntilClose, Trailers::Drop);
        let data = &"head|abcde"[.."head|".len() + taken.body_bytes];
        assert_eq!(out, data, "cut at {cut}");
        assert!(taken.input_bytes <= cut);
    }
}

#[test]
fn data_between_framing_is_moved_together() {
    let mut input = b"1\r\na\r\n2\r\nbc\r\n3\r\nde".to_vec();
    let mut walk = Walk::new();
    let mut decoder = chunked();
    let data = walk.gather(&mut input, &mut decoder).expect("the body is valid");
    assert_eq!(&input[data], b"abcde");
    assert_eq!(walk.taken, Taken { input_bytes: 18, body_bytes: 5 });
    assert!(!decoder.is_complete());
}

#[test]
fn a_source_that_sends_too_little_uses_its_bound_up() {
    let mut patience = Patience::new(10 * TICK, 100);
    patience.waited(4);
    patience.progress(60);
    assert_eq!(patience.left(), 6 * TICK);
    patience.waited(7);
    assert_eq!(patience.left(), Duration::ZERO);
}

#[test]
fn a_source_that_makes_progress_begins_anew() {
    let mut patience = Patience::new(10 * TICK, 100);
    patience.waited(4);
    patience.progress(60);
    patience.waited(4);
    patience.progress(40);
    assert_eq!(patience.left(), 10 * TICK);
}
