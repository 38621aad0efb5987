//! What a route changes of the fields of a request and of its answer, compiled.

use std::fmt;

use baton_http1::{Edits, FieldBlock, FieldName, FieldNameError, FieldNames};

use super::{Template, Trace, Values};
use crate::config::{FieldEdits, ForwardConfig, Route};

/// A route's changes of fields, in both directions.
#[derive(Debug)]
pub(crate) struct RouteEdits {
    request: Lines,
    /// Fields taken away where a trace is started.
    without_trace: FieldNames,
    request_id: Option<FieldName>,
    traceparent: Option<FieldName>,
    response: Lines,
}

/// A field that no route may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EditError {
    pub(crate) name: String,
    pub(crate) error: FieldNameError,
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.error)
    }
}

/// The changes of one direction.
#[derive(Debug)]
struct Lines {
    remove: FieldNames,
    /// The lines that are the same for every request, if all are.
    fixed: Option<FieldBlock>,
    lines: Vec<(FieldName, Template)>,
}

impl RouteEdits {
    /// Compiles the changes of `route`, with what `forward` adds to requests. What the route says of
    /// a field of `forward` goes before.
    pub(crate) fn new(route: &Route, forward: &ForwardConfig) -> Result<RouteEdits, EditError> {
        let edits = &route.request_fields;
        let own = |on: bool, field: &str| {
            let set = edits.set.iter().map(|(name, _)| name);
            let mut named = edits.remove.iter().chain(set);
            let named = named.any(|name| name.eq_ignore_ascii_case(field));
            if on && !named { Some(name(field)).transpose() } else { Ok(None) }
        };
        let request_id = own(forward.request_id, "X-Request-Id")?;
        let traceparent = own(forward.trace_context, "traceparent")?;
        let extra: Vec<FieldName> = request_id.iter().chain(&traceparent).cloned().collect();
        let mut request = Lines::new(edits, &extra)?;
        if !extra.is_empty() {
            request.fixed = None;
        }
        let mut trace = removed(edits)?;
        trace.extend(extra);
        trace.push(name("tracestate")?);
        Ok(RouteEdits {
            request,
            without_trace: FieldNames::new(trace),
            request_id,
            traceparent,
            response: Lines::new(&route.response_fields, &[])?,
        })
    }

    /// The changes of a request if they are the same for each: no values are needed then.
    pub(crate) fn fixed_request(&self) -> Option<Edits<'_>> {
        self.request.fixed()
    }

    /// The changes of an answer if they are the same for each.
    pub(crate) fn fixed_response(&self) -> Option<Edits<'_>> {
        self.response.fixed()
    }

    /// The changes of a request; lines are made in `block`. `trace`: where it is configured.
    pub(crate) fn request<'a>(
        &'a self,
        values: &Values<'_>,
        trace: Option<&Trace<'_>>,
        block: &'a mut FieldBlock,
    ) -> Edits<'a> {
        self.request.render(values, block);
        if let Some(name) = &self.request_id {
            block.push(name, values.request_id.as_bytes());
        }
        let mut remove = &self.request.remove;
        if let (Some(name), Some(trace)) = (&self.traceparent, trace) {
            block.push(name, trace.as_str().as_bytes());
            if matches!(trace, Trace::New(_)) {
                remove = &self.without_trace;
            }
        }
        Edits { remove, append: block }
    }

    /// The changes of an answer; lines are made in `block`.
    pub(crate) fn response<'a>(
        &'a self,
        values: &Values<'_>,
        block: &'a mut FieldBlock,
    ) -> Edits<'a> {
        self.response.render(values, block);
        Edits { remove: &self.response.remove, append: block }
    }
}

impl RouteEdits {
    /// The changes of a request whose lines were made before in `block`.
    pub(crate) fn rendered_request<'a>(
        &'a self,
        starts_trace: bool,
        block: &'a FieldBlock,
    ) -> Edits<'a> {
        let remove = if starts_trace { &self.without_trace } else { &self.request.remove };
        Edits { remove, append: block }
    }

    /// The changes of an answer whose lines were made before in `block`.
    pub(crate) fn rendered_response<'a>(&'a self, block: &'a FieldBlock) -> Edits<'a> {
        Edits { remove: &self.response.remove, append: block }
    }

    /// Whether the field is taken away from answers, whoever sets it.
    pub(crate) fn takes_from_answer(&self, name: &FieldName) -> bool {
        self.response.remove.contains(name.as_str().as_bytes())
    }

    /// The lines of an answer, if they are the same for each; else none yet.
    pub(crate) fn response_block(&self) -> FieldBlock {
        self.response.fixed.clone().unwrap_or_default()
    }
}

impl Lines {
    /// `also`: names that are taken away as well.
    fn new(edits: &FieldEdits, also: &[FieldName]) -> Result<Lines, EditError> {
        let mut lines = Vec::new();
        for (field, template) in edits.set.iter().chain(&edits.add) {
            lines.push((name(field)?, template.clone()));
        }
        let remove = FieldNames::new(removed(edits)?.into_iter().chain(also.iter().cloned()));
        let plain = lines.iter().all(|(_, template)| template.is_plain());
        let fixed = plain.then(|| {
            let mut block = FieldBlock::default();
            for (name, template) in &lines {
                block.push_with(name, |out| template.render(&Values::NONE, out));
            }
            block
        });
        Ok(Lines { remove, fixed, lines })
    }

    fn fixed(&self) -> Option<Edits<'_>> {
        self.fixed.as_ref().map(|append| Edits { remove: &self.remove, append })
    }

    fn render(&self, values: &Values<'_>, block: &mut FieldBlock) {
        block.clear();
        for (name, template) in &self.lines {
            block.push_with(name, |out| template.render(values, out));
        }
    }
}

/// What is taken away: also what is set, as it then has one value only.
fn removed(edits: &FieldEdits) -> Result<Vec<FieldName>, EditError> {
    let set = edits.set.iter().map(|(name, _)| name);
    edits.remove.iter().chain(set).map(|field| name(field)).collect()
}

fn name(text: &str) -> Result<FieldName, EditError> {
    FieldName::new(text).map_err(|error| EditError { name: text.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::{FieldList, Random};

    fn template(text: &str) -> Template {
        Template::parse(text).expect("the row is valid")
    }

    fn route(edits: FieldEdits) -> Route {
        let mut route = Route::to("r".into(), Default::default(), Default::default());
        route.request_fields = edits.clone();
        route.response_fields = edits;
        route
    }

    fn values() -> Values<'static> {
        Values { host: b"a:1", request_id: "id-1", ..Values::NONE }
    }

    #[test]
    fn a_field_of_the_connection_is_refused() {
        for field in ["Connection", "content-length", "Transfer-Encoding", "Host", "a b", ""] {
            let error = |edits| RouteEdits::new(&route(edits), &ForwardConfig::default()).err();
            let one = || (field.to_owned(), template("x"));
            let remove = FieldEdits { remove: vec![field.into()], ..FieldEdits::default() };
            let set = FieldEdits { set: vec![one()], ..FieldEdits::default() };
            let add = FieldEdits { add: vec![one()], ..FieldEdits::default() };
            for edits in [remove, set, add] {
                assert_eq!(error(edits).map(|error| error.name).as_deref(), Some(field));
            }
        }
    }

    #[test]
    fn edits_that_are_the_same_for_every_request_are_made_once() {
        let edits = FieldEdits {
            remove: vec!["X-A".into()],
            set: vec![("X-B".into(), template("b"))],
            add: vec![("X-C".into(), template("c")), ("X-B".into(), template("d"))],
        };
        let compiled = RouteEdits::new(&route(edits), &ForwardConfig::default()).expect("valid");
        for edits in [compiled.fixed_request(), compiled.fixed_response()] {
            let edits = edits.expect("nothing of a request is in them");
            assert_eq!(edits.append.as_bytes(), b"X-B: b\r\nX-C: c\r\nX-B: d\r\n");
            assert!(edits.remove.contains(b"x-a") && edits.remove.contains(b"x-b"));
            assert!(!edits.remove.contains(b"x-c"));
        }
        let none = RouteEdits::new(&route(FieldEdits::default()), &ForwardConfig::default());
        let none = none.expect("valid");
        let edits = none.fixed_request().expect("nothing is changed");
        assert!(edits.remove.is_empty() && edits.append.is_empty());
    }

    #[test]
    fn ids_come_in_the_place_of_what_a_client_sent() {
        let forward =
            ForwardConfig { request_id: true, trace_context: true, ..ForwardConfig::default() };
        let edits = FieldEdits {
            set: vec![("X-Host".into(), template("{host}"))],
            ..FieldEdits::default()
        };
        let compiled = RouteEdits::new(&route(edits), &forward).expect("valid");
        assert!(compiled.fixed_request().is_none() && compiled.fixed_response().is_none());
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let mut random = Random::seeded(1);
        let mut block = FieldBlock::default();
        let given = Trace::of(&FieldList::new(&[("traceparent", parent)]), &mut random);
        let made = compiled.request(&values(), Some(&given), &mut block);
        assert!(made.remove.contains(b"X-REQUEST-ID") && made.remove.contains(b"traceparent"));
        assert!(!made.remove.contains(b"tracestate"), "it belongs to what is passed on");
        let expected = format!("X-Host: a\r\nX-Request-Id: id-1\r\ntraceparent: {parent}\r\n");
        assert_eq!(made.append.as_bytes(), expected.as_bytes());
        let new = Trace::of(&FieldList::new(&[("traceparent", "00-bad")]), &mut random);
        let made = compiled.request(&values(), Some(&new), &mut block);
        for name in ["x-request-id", "traceparent", "tracestate", "x-host"] {
            assert!(made.remove.contains(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_a_route_says_of_an_id_goes_before() {
        let forward = ForwardConfig { request_id: true, ..ForwardConfig::default() };
        let edits = FieldEdits { remove: vec!["x-request-id".into()], ..FieldEdits::default() };
        let compiled = RouteEdits::new(&route(edits), &forward).expect("valid");
        let mut block = FieldBlock::default();
        let made = compiled.request(&values(), None, &mut block);
        assert!(made.append.is_empty() && made.remove.contains(b"X-Request-Id"));
    }
}
