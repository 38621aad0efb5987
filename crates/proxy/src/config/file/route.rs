//! The table `[[route]]`.

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use serde_json::{Value as Json, json};

use crate::config::RateKey;
use crate::config::settings::{LIMIT, Limits, TIMEOUT, Timeouts};
use crate::config::shapes::{Entries, Many, Map, Overrides, Short, Sub, Subset};
use crate::config::table::{At, Rule, table, table_of};
use crate::config::texts::{
    BASE64, BODY, CONTENT_TYPE, FIELD, FIELD_VALUE, FILE, HOST, LABEL, LOCATION, METHOD, NETWORK,
    NEW_PREFIX, PATH, PREFIX, RATE, RATE_KEY, REQUEST_FIELD, RESPONSE_FIELD, TEMPLATE, TO,
    TOKEN_PATTERN, To,
};
use crate::config::value::{CountIn, Given, Refusal, Scalar, YesNo, count};
use crate::route::{HostPattern, PathPattern, Template};

/// Settings of `[timeout]` that a route may change.
pub(crate) const TIMEOUTS_OF_ROUTE: &[&str] =
    &["body_idle", "connect", "first_byte", "upstream_idle", "tunnel_idle"];
/// Settings of `[limit]` that a route may change.
pub(crate) const LIMITS_OF_ROUTE: &[&str] = &[
    "body_bytes",
    "body_progress_bytes",
    "upstream_head_bytes",
    "drain_bytes",
    "interim_responses",
];
/// Requests of a route that may be under way, and that a burst may have.
const REQUESTS_MAX: usize = 1_000_000;

table! {
    /// The client is sent elsewhere.
    RedirectTable as REDIRECT: "[route.redirect]", [Rule::Required(&["to"])];

    /// The Location.
    to: Template = LOCATION, r#""https://{host}{uri}""#;

    /// 301, 302, 303, 307 or 308; by default 308.
    status: u16 = RedirectStatus, "301";
}

table! {
    /// The proxy answers by itself.
    RespondTable as RESPOND: "[route.respond]", [Rule::AtMostOne(&["body", "file", "base64"])];

    /// By default 200.
    status: u16 = CountIn(200..=599), "200";

    /// By default text/plain; charset=utf-8.
    content_type: String = CONTENT_TYPE, r#""text/plain; charset=utf-8""#;

    /// The body as a text.
    body: String = BODY, r#""ok""#;

    /// The body as a file, read once.
    file: PathBuf = FILE, r#"# "index.html""#;

    /// The body in base64.
    base64: Vec<u8> = BASE64, r#"# "b2s=""#;
}

table! {
    /// A prefix of the path gives way to another.
    ReplaceTable as REPLACE: "[route.replace_prefix]", [Rule::Required(&["from", "to"])];

    /// What is taken away.
    from: String = PREFIX, r#""/v1""#;

    /// What comes in its place; may be empty.
    to: String = NEW_PREFIX, r#""/v2""#;
}

table! {
    /// Changes of fields: first `remove`, then `set`, then `add`.
    EditsTable as REQUEST_EDITS: "[route.request_headers]", [];

    /// Fields that have this one value afterwards.
    set: Entries<String, Template> = Map {
        key: REQUEST_FIELD,
        value: TEMPLATE,
        key_pattern: TOKEN_PATTERN,
    }, r#"{ x-env = "prod", x-client = "{client_ip}" }"#;

    /// Fields added to what is there.
    add: Entries<String, Template> = Map {
        key: REQUEST_FIELD,
        value: TEMPLATE,
        key_pattern: TOKEN_PATTERN,
    }, r#"{ x-seen-by = "baton" }"#;

    /// Fields taken away.
    remove: Vec<At<String>> = Many(REQUEST_FIELD), r#"["x-debug"]"#;
}

table_of! {
    EditsTable as RESPONSE_EDITS: "[route.response_headers]",
        [], [" Changes of fields: first `remove`, then `set`, then `add`."];

    /// Fields that have this one value afterwards.
    set = Map {
        key: RESPONSE_FIELD,
        value: TEMPLATE,
        key_pattern: TOKEN_PATTERN,
    }, r#"{ cache-control = "no-store" }"#;

    /// Fields added to what is there.
    add = Map {
        key: RESPONSE_FIELD,
        value: TEMPLATE,
        key_pattern: TOKEN_PATTERN,
    }, r#"{ x-request-id = "{request_id}" }"#;

    /// Fields taken away.
    remove = Many(RESPONSE_FIELD), r#"["x-powered-by"]"#;
}

table! {
    /// How many requests are admitted in a time.
    RateTable as RATE_LIMIT: "[route.rate_limit]", [Rule::Required(&["key", "rate"])];

    /// Whose requests are counted together: client-ip, route, or header:NAME.
    key: RateKey = RATE_KEY, r#""client-ip""#;

    /// Requests admitted in a second, minute or hour.
    rate: (u32, Duration) = RATE, r#""100/s""#;

    /// Requests admitted at once after a pause; by default as many as the rate's number.
    burst: u32 = CountIn(1..=1_000_000), "200";
}

table! {
    /// The body of an answer of the proxy's own.
    PageTable as PAGE: "[route.error_pages]", [Rule::ExactlyOne(&["file", "body"])];

    /// A file, read once.
    file: PathBuf = FILE, r#""errors/502.html""#;

    /// The text itself.
    body: String = BODY, r#"# "<h1>Back soon</h1>""#;
}

table! {
    /// Which requests, and what becomes of them. A request meets all conditions that are there.
    RouteTable as ROUTE: "[[route]]", [
        Rule::ExactlyOne(&["to", "redirect", "respond"]),
        Rule::AtMostOne(&["strip_prefix", "replace_prefix"]),
        Rule::Needs("strip_prefix", "to", "no request is sent on"),
        Rule::Needs("replace_prefix", "to", "no request is sent on"),
        Rule::Needs("request_headers", "to", "no request is sent on")
    ];

    /// What logs and metrics call it. By default made of host and path.
    name: String = LABEL, r#""api""#;

    /// Names of the listeners it is for. By default all.
    listen: Vec<At<String>> = Many(LABEL), r#""web""#;

    /// Hosts it is for: exact, or every host below one. By default any.
    host: Vec<At<HostPattern>> = Many(HOST), r#"["api.example.com", "*.example.com"]"#;

    /// Paths it is for: /exact, /prefix/*, or ~ and a regular expression. By default any.
    path: PathPattern = PATH, r#""/v1/*""#;

    /// Methods it is for. By default any.
    method: Vec<At<String>> = Many(METHOD), r#"["GET", "POST"]"#;

    /// Fields that must be there; "*": with any value.
    header: Entries<String, String> = Map {
        key: FIELD,
        value: FIELD_VALUE,
        key_pattern: TOKEN_PATTERN,
    }, r#"{ x-canary = "1", x-other = "*" }"#;

    /// Where requests are sent: an upstream's name, or addresses of endpoints.
    to: Vec<At<To>> = Many(TO), r#""api""#;

    /// Where clients are sent: a Location, or a table with `to` and `status`.
    redirect: RedirectTable = Short {
        one: LOCATION,
        get: |redirect: &RedirectTable| redirect.to.as_ref().map(|to| &to.value),
        put: |redirect: &mut RedirectTable, to| redirect.to = Some(to),
        table: &REDIRECT,
    }, r#"# "https://{host}{uri}""#;

    /// An answer of the proxy's own.
    respond: RespondTable = Sub(&RESPOND), r#"# { status = 200, content_type = "text/plain; charset=utf-8", body = "ok" }"#;

    /// A prefix of the path that is taken away before the request is sent on.
    strip_prefix: String = PREFIX, r#""/v1""#;

    /// A prefix of the path that gives way to another.
    replace_prefix: ReplaceTable = Sub(&REPLACE), r#"# { from = "/v1", to = "/v2" }"#;

    /// Fields of the request that are changed before it is sent on.
    request_headers: EditsTable = Sub(&REQUEST_EDITS), r#"{ set = { x-env = "prod" }, add = { x-seen-by = "baton" }, remove = ["x-debug"] }"#;

    /// Fields of the answer that are changed before it goes to the client.
    response_headers: EditsTable = Sub(&RESPONSE_EDITS), r#"{ set = { cache-control = "no-store" }, remove = ["x-powered-by"] }"#;

    /// Clients admitted, by address. By default all.
    allow: Vec<At<IpNet>> = Many(NETWORK), r#"["10.0.0.0/8", "2001:db8::/32"]"#;

    /// Clients refused with 403, by address; looked at before `allow`.
    deny: Vec<At<IpNet>> = Many(NETWORK), r#"["10.9.0.0/16"]"#;

    /// How many requests are admitted in a time, counted for the process. Over it: 429.
    rate_limit: RateTable = Sub(&RATE_LIMIT), r#"{ key = "client-ip", rate = "100/s", burst = 200 }"#;

    /// Requests under way at once in the process. Over it: 503. By default no bound.
    concurrency: usize = CountIn(1..=REQUESTS_MAX), "100";

    /// Bodies for the proxy's own answers, as HTML, by status: files, or tables with `body`.
    error_pages: Entries<u16, PageTable> = Map {
        key: CountIn(400..=599),
        value: Short {
            one: FILE,
            get: |page: &PageTable| page.file.as_ref().map(|file| &file.value),
            put: |page: &mut PageTable, file| page.file = Some(file),
            table: &PAGE,
        },
        key_pattern: "^[45][0-9][0-9]$",
    }, r#"{ 502 = { body = "<h1>Back soon</h1>" } }"#;

    /// Whether its requests are in the access log. By default they are.
    access_log: bool = YesNo, "false";

    /// What is other than in [timeout] here: body_idle, connect, first_byte, upstream_idle,
    /// tunnel_idle.
    timeout: Overrides<Timeouts> = Subset {
        table: &TIMEOUT,
        only: Some(TIMEOUTS_OF_ROUTE),
        label: "[route.timeout]",
    }, r#"{ first_byte = "5m" }"#;

    /// What is other than in [limit] here: body_bytes, body_progress_bytes, upstream_head_bytes,
    /// drain_bytes, interim_responses.
    limit: Overrides<Limits> = Subset {
        table: &LIMIT,
        only: Some(LIMITS_OF_ROUTE),
        label: "[route.limit]",
    }, r#"{ body_bytes = "10MiB" }"#;
}

/// The status of a redirect.
struct RedirectStatus;

const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

impl Scalar for RedirectStatus {
    type Value = u16;

    fn parse(&self, given: Given<'_>) -> Result<u16, Refusal> {
        let number = count(given)?;
        let known = REDIRECTS.into_iter().find(|status| u64::from(*status) == number);
        known.ok_or_else(|| Refusal::new(format!("{number} does not redirect"), ""))
    }

    fn show(&self, value: &u16) -> String {
        value.to_string()
    }

    fn expected(&self, _: Given<'_>, _: &str) -> String {
        "301, 302, 303, 307 or 308".to_owned()
    }

    fn placeholder(&self) -> String {
        "STATUS".to_owned()
    }

    fn schema(&self) -> Json {
        json!({ "enum": REDIRECTS })
    }
}
