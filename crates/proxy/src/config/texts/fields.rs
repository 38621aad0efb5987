//! Names and values of fields, and texts with placeholders.

use baton_http1::{FieldName, FieldNameError};

use super::{Refusal, Text, is_token, refuse, text};
use crate::config::problem::nearest;
use crate::route::{Template, TemplateError};

/// The pattern of field names for editors.
pub(crate) const TOKEN_PATTERN: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";

/// The name of a field that a request is looked through for; in lower case.
pub(crate) const FIELD: Text<String> = text(
    |text| if is_token(text) { Ok(text.to_ascii_lowercase()) } else { no_field(text) },
    String::clone,
    "a field name such as x-env",
);

pub(super) fn no_field<T>(text: &str) -> Result<T, Refusal> {
    if text.is_empty() {
        return refuse("the field's name is missing");
    }
    let fix = match text.trim().trim_end_matches(':') {
        name if is_token(name) => format!("did you mean {name}?"),
        _ => String::new(),
    };
    Err(Refusal::new(format!("`{text}` is no field name"), fix))
}

/// The name of a field of the request that may be changed; as written.
pub(crate) const REQUEST_FIELD: Text<String> = text(
    |text| match text.to_ascii_lowercase().as_str() {
        "host" => refuse("`Host` is written by the proxy: `host` of the upstream sets it"),
        "x-forwarded-for" | "x-forwarded-proto" | "x-forwarded-host" | "x-real-ip"
        | "forwarded" => {
            refuse(format!("`{text}` says who the client is; [forward] decides about it"))
        }
        "via" => refuse("`Via` is written by the proxy, and tells it a loop"),
        "expect" => refuse("`Expect` is answered by the proxy"),
        _ => edited(text),
    },
    String::clone,
    "a field name such as x-env",
);

/// The name of a field of the answer that may be changed; as written.
pub(crate) const RESPONSE_FIELD: Text<String> = text(
    |text| match text.to_ascii_lowercase().as_str() {
        "via" => refuse("`Via` is written by the proxy"),
        _ => edited(text),
    },
    String::clone,
    "a field name such as cache-control",
);

fn edited(text: &str) -> Result<String, Refusal> {
    match text.to_ascii_lowercase().as_str() {
        "content-length" | "transfer-encoding" | "trailer" => {
            refuse(format!("`{text}` is the framing, which the proxy writes"))
        }
        "connection" | "keep-alive" | "proxy-connection" | "te" | "upgrade" | "http2-settings" => {
            refuse(format!("`{text}` is for one connection; the proxy writes it on each side"))
        }
        _ if !is_token(text) => no_field(text),
        _ => match FieldName::new(text) {
            Ok(_) => Ok(text.to_owned()),
            Err(FieldNameError::Reserved) => refuse(format!("`{text}` is written by the proxy")),
            Err(FieldNameError::NotAName) => {
                refuse(format!("a field's name has at most {} bytes", FieldName::BYTES_MAX))
            }
        },
    }
}

pub(crate) const FIELD_VALUE: Text<String> = text(
    |text| {
        if text.contains(|c: char| c.is_control() && c != '\t') {
            return refuse("a control character cannot be in a field");
        }
        if text.trim() != text {
            return Err(Refusal::new(
                "a field's value has no white space around it",
                format!("write \"{}\"", text.trim()),
            ));
        }
        Ok(text.to_owned())
    },
    String::clone,
    r#"the value the field must have, or "*" for any"#,
);

/// Variables of nginx and the placeholders they are here. The longer of two with one beginning
/// comes first.
const ELSEWHERE: [(&str, &str); 12] = [
    ("$request_uri", "uri"),
    ("$request_id", "request_id"),
    ("$request_method", "method"),
    ("$remote_addr", "client_ip"),
    ("$http_host", "host"),
    ("$server_name", "host"),
    ("$host", "host"),
    ("$scheme", "scheme"),
    ("$query_string", "query"),
    ("$args", "query"),
    ("$uri", "path"),
    ("$proxy_add_x_forwarded_for", "client_ip"),
];

pub(crate) const TEMPLATE: Text<Template> = text(
    |text| {
        if let Some((theirs, ours)) = ELSEWHERE.iter().find(|(theirs, _)| text.contains(theirs)) {
            let problem = format!("`{theirs}` stands for nothing here");
            return Err(Refusal::new(problem, format!("write {{{ours}}}")));
        }
        Template::parse(text).map_err(|error| {
            let fix = match &error {
                TemplateError::Unknown { name } => {
                    let dollar = format!("${name}");
                    let theirs = ELSEWHERE.iter().find(|(theirs, _)| *theirs == dollar);
                    let ours = theirs.map(|(_, ours)| *ours);
                    ours.or_else(|| nearest(name, TemplateError::known()))
                        .map_or_else(String::new, |word| format!("did you mean {{{word}}}?"))
                }
                _ => String::new(),
            };
            Refusal::new(error.to_string(), fix)
        })
    },
    Template::to_string,
    "a text, in which {client_ip}, {host}, {uri}, {path}, {query}, {scheme}, {method}, \
     {request_id} and {route} stand for those of the request",
);

pub(crate) const LOCATION: Text<Template> = Text {
    pattern: r"^(https?://|/|\{)",
    ..text(
        |text| {
            let template = (TEMPLATE.parse)(text)?;
            let known = ["http://", "https://", "/", "{"];
            if known.iter().any(|start| text.starts_with(start)) {
                return Ok(template);
            }
            let fix =
                if text.is_empty() { String::new() } else { format!("write \"https://{text}\"") };
            Err(Refusal::new("it is neither a URL nor a path", fix))
        },
        Template::to_string,
        r#"a URL or a path such as "https://{host}{uri}" or "/new""#,
    )
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{FieldEdits, ForwardConfig, Route};
    use crate::route::RouteEdits;

    #[test]
    fn what_a_file_may_change_can_be_changed() {
        let long = "a".repeat(256);
        let names = [
            "date",
            "Host",
            "expect",
            "max-forwards",
            "proxy",
            "content_length",
            "Transfer_Encoding",
            "te",
            "trailer",
            "x-env",
            "x-forwarded-port",
            &long,
        ];
        for name in names {
            let remove = FieldEdits { remove: vec![name.to_owned()], ..FieldEdits::default() };
            let mut route = Route::to("r".into(), Default::default(), Default::default());
            route.request_fields = remove;
            let compiled = RouteEdits::new(&route, &ForwardConfig::default()).is_ok();
            for kind in [&REQUEST_FIELD, &RESPONSE_FIELD] {
                let accepted = (kind.parse)(name).is_ok();
                assert!(compiled || !accepted, "{name} would end the process");
            }
        }
    }
}
