//! The live page, and what it may do in a browser.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The whole page: style and script are in it, and it asks for `/status` alone.
pub(super) const HTML: &str = include_str!("page.html");

/// The Content-Security-Policy: its own style and script, by their hashes, requests to where it came
/// from, and nothing else.
pub(super) fn policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        format!(
            "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            hash("script"),
            hash("style")
        )
    });
    &POLICY
}

/// The source expression of the one element called `name` (CSP level 3 §2.3.1).
fn hash(name: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(content(name))))
}

fn content(name: &str) -> &'static str {
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let (_, rest) = HTML.split_once(&start).expect("the page has the element");
    rest.split_once(&end).expect("the element ends").0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_asks_for_nothing_from_elsewhere() {
        for word in ["http://", "https://", "src=", "@import", "url(", "innerHTML", "eval("] {
            let found = HTML.match_indices(word).find(|(at, _)| {
                // The name of a namespace is no address.
                !HTML[*at..].starts_with("http://www.w3.org/2000/svg")
            });
            assert_eq!(found, None, "{word}");
        }
    }

    #[test]
    fn the_policy_names_the_one_script_and_the_one_style() {
        assert_eq!(HTML.matches("<script").count(), 1);
        assert_eq!(HTML.matches("<style").count(), 1);
        assert_eq!(HTML.matches(" style=").count(), 0, "the policy forbids them");
        assert!(policy().starts_with("default-src 'none'; script-src 'sha256-"));
    }
}
