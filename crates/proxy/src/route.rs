//! Which route a request takes, and what the route makes of it. Pure: no socket, clock or lock.

mod client;
mod edits;
mod ids;
mod path;
mod pattern;
mod proxy_protocol;
mod rewrite;
mod show;
mod table;
mod template;

use baton_http1::RequestHead;

pub(crate) use client::{ClientAddress, admits, contains};
pub(crate) use edits::RouteEdits;
pub(crate) use ids::{Random, RequestId, Trace};
pub(crate) use path::Resolved;
pub use pattern::{HostPattern, PathPattern, PatternError};
pub(crate) use proxy_protocol::{ProxyHeader, ProxyHeaderError};
pub(crate) use rewrite::Rewriter;
pub(crate) use show::{NO_HOST, Question};
pub(crate) use table::{Found, Query, RouteTable};
pub(crate) use template::Values;
pub use template::{Template, TemplateError};

/// The fields of a request, as routes look at them.
pub(crate) trait Fields<'b> {
    /// The values of the fields called `name` in any case, in order.
    fn values(&self, name: &str) -> impl DoubleEndedIterator<Item = &'b [u8]>;
}

impl<'b> Fields<'b> for RequestHead<'_, 'b> {
    fn values(&self, name: &str) -> impl DoubleEndedIterator<Item = &'b [u8]> {
        let named = self.fields().filter(move |field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value)
    }
}

/// The host of `host[:port]`, without a dot at its end.
pub(crate) fn host_name(authority: &[u8]) -> &[u8] {
    let end = match authority.first() {
        Some(b'[') => authority.iter().position(|b| *b == b']').map(|at| at + 1),
        _ => authority.iter().position(|b| *b == b':'),
    };
    let name = &authority[..end.unwrap_or(authority.len())];
    name.strip_suffix(b".").unwrap_or(name)
}

/// Fields that no head holds: of a question asked on the command line, or of a test.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldList<'a>(Vec<(&'a str, &'a str)>);

impl<'a> FieldList<'a> {
    pub(crate) fn new(fields: &[(&'a str, &'a str)]) -> FieldList<'a> {
        FieldList(fields.to_vec())
    }
}

impl<'a> Fields<'a> for FieldList<'a> {
    fn values(&self, name: &str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let named = self.0.iter().filter(move |field| field.0.eq_ignore_ascii_case(name));
        named.map(|field| field.1.as_bytes())
    }
}
