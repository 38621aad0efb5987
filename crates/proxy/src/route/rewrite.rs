//! What a route makes of the path before the request is sent on.

use baton_http1::OriginForm;

use super::path::{Resolved, encode, normal_pattern};
use crate::config::Rewrite;

/// A compiled [`Rewrite`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rewriter {
    /// The prefix that is taken away, in normal form, and what comes in its place.
    change: Option<(Vec<u8>, Vec<u8>)>,
}

impl Rewriter {
    /// Compiles what the configuration says. Prefixes match whole segments.
    pub(crate) fn new(rewrite: &Rewrite) -> Rewriter {
        let (from, to) = match rewrite {
            Rewrite::None => return Rewriter::default(),
            Rewrite::Strip(prefix) => (prefix.as_str(), ""),
            Rewrite::Replace { from, to } => (from.as_str(), to.as_str()),
        };
        let mut from = normal_pattern(from);
        while from.last() == Some(&b'/') {
            from.pop();
        }
        let mut encoded = Vec::with_capacity(to.len());
        encode(to.trim_end_matches('/').as_bytes(), &mut encoded);
        Rewriter { change: Some((from, encoded)) }
    }

    /// The target to send on instead of the client's, made in `out`; `None`: the client's stays.
    ///
    /// The query is kept. What is made begins with exactly one `/`, as a target that begins with
    /// two could be read as another host.
    pub(crate) fn target<'o>(
        &self,
        path: &Resolved<'_>,
        query: Option<&str>,
        out: &'o mut Vec<u8>,
    ) -> Option<OriginForm<'o>> {
        let rewritten = self.change.as_ref().and_then(|(from, to)| {
            // The path as it came, where the prefix is there as it is written; else as routes saw it.
            let rest = rest_behind(path.onward(), from).or(rest_behind(path.normal(), from))?;
            Some((to.as_slice(), rest))
        });
        out.clear();
        match rewritten {
            Some((to, rest)) => {
                encode(to, out);
                let slashes = rest.iter().take_while(|b| **b == b'/').count();
                if slashes > 0 {
                    out.push(b'/');
                }
                encode(&rest[slashes..], out);
            }
            None if path.had_dots() => encode(path.onward(), out),
            None => return None,
        }
        if out.first() != Some(&b'/') {
            out.insert(0, b'/');
        }
        if let Some(query) = query {
            out.push(b'?');
            encode(query.as_bytes(), out);
        }
        let target = OriginForm::new(out);
        debug_assert!(target.is_some(), "what is encoded is a target");
        target
    }
}

/// What follows `prefix` in `path`, if it is there as whole segments: nothing, or `/` and more.
fn rest_behind<'p>(path: &'p [u8], prefix: &[u8]) -> Option<&'p [u8]> {
    let rest = path.strip_prefix(prefix)?;
    matches!(rest, [] | [b'/', ..]).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Random;
    use crate::route::path::resolve;

    fn target(rewrite: &Rewrite, target: &str) -> Option<String> {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let resolved = resolve(path.as_bytes()).expect("the row is valid");
        let mut out = b"before".to_vec();
        let made = Rewriter::new(rewrite).target(&resolved, query, &mut out)?;
        Some(String::from_utf8(made.as_bytes().to_vec()).expect("rows are ASCII"))
    }

    #[test]
    fn a_prefix_is_taken_away_as_whole_segments() {
        let strip = Rewrite::Strip("/api".into());
        let rows = [
            ("/apix", None),
            ("/ap", None),
            ("/", None),
            ("*", None),
            ("/x/api/y", None),
            ("/API/x", None),
            ("/api", Some("/")),
            ("/api/", Some("/")),
            ("/api?a=/api", Some("/?a=/api")),
            ("/api/v1/x?y", Some("/v1/x?y")),
            ("/api/?", Some("/?")),
            ("/%61pi/x", Some("/x")),
            ("//api/x", Some("/x")),
            ("/api/a%2fb//c", Some("/a%2fb//c")),
            ("/api//evil.example/x", Some("/evil.example/x")),
            ("/api/https://e/x", Some("/https://e/x")),
            ("/x/../api/y", Some("/y")),
            ("/api/../x?q", Some("/x?q")),
        ];
        for (from, to) in rows {
            assert_eq!(target(&strip, from).as_deref(), to, "{from}");
        }
    }

    #[test]
    fn a_prefix_gives_way_to_another() {
        let replace = |to: &str| Rewrite::Replace { from: "/a/b".into(), to: to.into() };
        assert_eq!(target(&replace("/c"), "/a/bc"), None);
        assert_eq!(target(&replace("/c"), "/a/b").as_deref(), Some("/c"));
        assert_eq!(target(&replace("/c"), "/a/b/").as_deref(), Some("/c/"));
        assert_eq!(target(&replace("/c"), "/a/b/d?e").as_deref(), Some("/c/d?e"));
        assert_eq!(target(&replace("/c"), "/a//b/d").as_deref(), Some("/c/d"));
        assert_eq!(target(&replace(""), "/a/b").as_deref(), Some("/"));
        assert_eq!(target(&replace(""), "/a/b/d").as_deref(), Some("/d"));
        assert_eq!(target(&replace("/\u{e9} #"), "/a/b/d").as_deref(), Some("/%C3%A9%20%23/d"));
        let every = Rewrite::Replace { from: String::new(), to: "/c".into() };
        assert_eq!(target(&every, "/a?b").as_deref(), Some("/c/a?b"));
        let accent = Rewrite::Strip("/caf\u{e9}".into());
        assert_eq!(target(&accent, "/caf%c3%a9/x").as_deref(), Some("/x"));
    }

    /// Goal: a prefix that is taken away never makes another path of the rest. Method: what is sent on
    /// is, as routes see it, what they saw without the prefix; random paths, with their seed.
    #[test]
    fn what_is_sent_on_is_what_routes_saw_but_for_the_prefix() {
        const PARTS: [&str; 16] = [
            "/api", "/api", "/", "/.", "/..", "/%2e%2e", "/%61pi", "/%2f", "/%", "/x", "\\", ";",
            "61", ".", "%2E", "/%5C",
        ];
        for seed in 0..2_000 {
            let mut random = Random::seeded(seed);
            let mut path = String::from("/");
            for _ in 0..random.below(9) {
                path.push_str(PARTS[random.below(PARTS.len() as u64) as usize]);
            }
            let Ok(seen) = resolve(path.as_bytes()) else { continue };
            let seen = String::from_utf8(seen.normal().to_vec()).expect("rows are ASCII");
            for rewrite in [Rewrite::None, Rewrite::Strip("/api".into())] {
                let sent = target(&rewrite, &path).unwrap_or_else(|| path.clone());
                let expected = match (&rewrite, seen.strip_prefix("/api")) {
                    (Rewrite::Strip(_), Some("")) => "/",
                    (Rewrite::Strip(_), Some(rest)) if rest.starts_with('/') => rest,
                    _ => &seen,
                };
                let read = resolve(sent.as_bytes()).expect("what is sent on means something");
                assert_eq!(read.normal(), expected.as_bytes(), "{path} as {sent}, seed {seed}");
                assert!(!read.had_dots(), "{path} as {sent}, seed {seed}");
            }
        }
    }

    #[test]
    fn a_path_with_dot_segments_is_sent_on_resolved() {
        assert_eq!(target(&Rewrite::None, "/a//b%61"), None);
        assert_eq!(target(&Rewrite::None, "/a/%2e%2e/b?c").as_deref(), Some("/b?c"));
        // A caller that checked nothing still gets a target.
        assert_eq!(target(&Rewrite::None, "/a/../b c\r\n?d e").as_deref(), {
            Some("/b%20c%0D%0A?d%20e")
        });
    }
}
