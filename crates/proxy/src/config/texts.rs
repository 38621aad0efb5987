//! Strings with a grammar of their own: networks, patterns, templates, rates and the like.

mod fields;
mod routing;
mod words;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde_json::{Value as Json, json};

use super::problem::nearest;
use super::value::{Given, Refusal, Scalar, not_a_string};
use super::{AccessLogTarget, AdminAddress, UpstreamAddr, parse_listen, parse_upstream};

pub(crate) use fields::{
    FIELD, FIELD_VALUE, LOCATION, REQUEST_FIELD, RESPONSE_FIELD, TEMPLATE, TOKEN_PATTERN,
};
pub(crate) use routing::{HOST, HOST_FIELD, METHOD, NEW_PREFIX, PATH, PREFIX, TARGET};
pub(crate) use words::{BALANCE, PERCENT, RATE, RATE_KEY};

/// A kind of strings.
pub(crate) struct Text<T: 'static> {
    pub(crate) parse: fn(&str) -> Result<T, Refusal>,
    pub(crate) show: fn(&T) -> String,
    /// What is taken, as the file has it.
    pub(crate) expected: &'static str,
    pub(crate) placeholder: &'static str,
    /// What to write where an integer stands, with `N` for it; may be empty.
    pub(crate) for_integer: &'static str,
    /// A regular expression for editors; may be empty.
    pub(crate) pattern: &'static str,
}

impl<T> Scalar for Text<T> {
    type Value = T;

    fn parse(&self, given: Given<'_>) -> Result<T, Refusal> {
        if let Given::Integer(number) = given
            && !self.for_integer.is_empty()
        {
            let fix = format!("write {}", self.for_integer.replace('N', number));
            return Err(Refusal::new("an integer stands where a string belongs", fix));
        }
        let refusal = match (self.parse)(given.text().map_err(not_a_string)?) {
            Ok(value) => return Ok(value),
            Err(refusal) => refusal,
        };
        // The fixes are written for the file.
        let quoted = !matches!(given, Given::Flag(_));
        let fix = if quoted { refusal.fix } else { refusal.fix.replace('"', "") };
        Err(Refusal { problem: refusal.problem, fix })
    }

    fn show(&self, value: &T) -> String {
        (self.show)(value)
    }

    fn expected(&self, given: Given<'_>, _: &str) -> String {
        match given {
            Given::Flag(_) => self.expected.replace('"', ""),
            _ => self.expected.to_owned(),
        }
    }

    fn placeholder(&self) -> String {
        self.placeholder.to_owned()
    }

    fn schema(&self) -> Json {
        match self.pattern {
            "" => json!({ "type": "string" }),
            pattern => json!({ "type": "string", "pattern": pattern }),
        }
    }

    fn is_bare(&self, _: &str) -> bool {
        false
    }
}

/// All but parsing and text by default.
const fn text<T>(
    parse: fn(&str) -> Result<T, Refusal>,
    show: fn(&T) -> String,
    expected: &'static str,
) -> Text<T> {
    Text { parse, show, expected, placeholder: "TEXT", for_integer: "", pattern: "" }
}

fn refuse<T>(problem: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(problem, ""))
}

fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}

/// The address of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenAddr(pub(crate) SocketAddr);

/// In the short form of every IPv4 interface.
impl fmt::Display for ListenAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SocketAddr::V4(address) if address.ip().is_unspecified() => {
                write!(f, ":{}", address.port())
            }
            address => address.fmt(f),
        }
    }
}

pub(crate) const LISTEN: Text<ListenAddr> = Text {
    for_integer: "\":N\"",
    pattern: "^.*:[0-9]+$",
    ..text(
        |text| parse_listen(text).map(ListenAddr).or_else(|error| refuse(error.to_string())),
        ListenAddr::to_string,
        r#"":8080", "127.0.0.1:8080" or "[::1]:8080""#,
    )
};

pub(crate) const ENDPOINT: Text<UpstreamAddr> = Text {
    for_integer: "\"127.0.0.1:N\"",
    pattern: "^.+:[0-9]+$",
    ..text(
        |text| parse_upstream(text).or_else(|error| refuse(error.to_string())),
        UpstreamAddr::to_string,
        r#""127.0.0.1:9000", "[::1]:9000" or "name:9000""#,
    )
};

/// Where a route sends to.
#[derive(Clone, Debug)]
pub(crate) enum To {
    /// The upstream of this name.
    Name(String),
    /// An endpoint.
    Address(UpstreamAddr),
}

pub(crate) const TO: Text<To> = Text {
    for_integer: "\"127.0.0.1:N\"",
    ..text(
        |text| {
            let is_name = is_name(text) && text.contains(|c: char| c.is_ascii_alphabetic());
            if is_name {
                return Ok(To::Name(text.to_owned()));
            }
            parse_upstream(text).map(To::Address).or_else(|error| refuse(error.to_string()))
        },
        |to| match to {
            To::Name(name) => name.clone(),
            To::Address(address) => address.to_string(),
        },
        r#"the name of an upstream, or "127.0.0.1:9000", "[::1]:9000" or "name:9000""#,
    )
};

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(plain)
}

/// Bytes of the name of an upstream.
const NAME_BYTES_MAX: usize = 64;
/// Bytes of the name of a listener or a route.
pub(crate) const LABEL_BYTES_MAX: usize = 256;

/// The pattern of names for editors.
pub(crate) const NAME_PATTERN: &str = "^[A-Za-z0-9._-]{1,64}$";

/// The name of an upstream.
pub(crate) const NAME: Text<String> = Text {
    pattern: NAME_PATTERN,
    ..text(
        |text| {
            if is_name(text) { Ok(text.to_owned()) } else { refuse(format!("`{text}` is no name")) }
        },
        String::clone,
        "a name of at most 64 letters, digits, hyphens, underscores and dots",
    )
};

/// The name of a listener or a route.
pub(crate) const LABEL: Text<String> = text(
    |text| match text {
        "" => refuse("the name is empty"),
        _ if text.len() > LABEL_BYTES_MAX => refuse("the name is longer than 256 bytes"),
        _ if text.contains(char::is_control) => refuse("a control character cannot be in a name"),
        _ => Ok(text.to_owned()),
    },
    String::clone,
    "a name of at most 256 bytes",
);

pub(crate) const NETWORK: Text<IpNet> = Text {
    pattern: r"^[0-9A-Fa-f.:]+(/[0-9]{1,3})?$",
    ..text(
        |text| {
            if let Ok(address) = text.parse::<IpAddr>() {
                return Ok(IpNet::from(address));
            }
            let Ok(network) = text.parse::<IpNet>() else {
                let wide = text.split_once('/').and_then(|(address, length)| {
                    let address: IpAddr = address.parse().ok()?;
                    let most = if address.is_ipv4() { 32 } else { 128 };
                    length.parse::<u32>().ok().filter(|length| *length > most).map(|_| most)
                });
                return match wide {
                    Some(most) => refuse(format!("its length is over {most}")),
                    None => refuse("it is neither an IP address nor a network"),
                };
            };
            let whole = network.trunc();
            if whole == network {
                return Ok(network);
            }
            let problem =
                format!("{network} has bits of a host after its first {}", network.prefix_len());
            Err(Refusal::new(problem, format!("write \"{whole}\" or \"{}\"", network.addr())))
        },
        |network| {
            let is_host = network.prefix_len() == network.max_prefix_len();
            if is_host { network.addr().to_string() } else { network.to_string() }
        },
        r#"a network such as "10.0.0.0/8" or "fd00::/8", or an address such as "10.0.0.1""#,
    )
};

pub(crate) const CONTENT_TYPE: Text<String> = text(
    |text| {
        let media = text.split(';').next().unwrap_or("").trim();
        let is_media = media.split_once('/').is_some_and(|(a, b)| is_token(a) && is_token(b));
        if !is_media || text.contains(|c: char| c.is_control()) {
            return refuse("it is no media type");
        }
        Ok(text.to_owned())
    },
    String::clone,
    r#"a media type such as "text/html; charset=utf-8""#,
);

pub(crate) const BODY: Text<String> = text(|text| Ok(text.to_owned()), String::clone, "a text");

pub(crate) const FILE: Text<PathBuf> = text(
    |text| match text {
        "" => refuse("the path is empty"),
        _ if text.contains('\0') => refuse("no path has a NUL in it"),
        _ => Ok(PathBuf::from(text)),
    },
    |path| path.display().to_string(),
    "the path of a file; a relative one begins where this file is",
);

pub(crate) const BASE64: Text<Vec<u8>> = text(
    |text| {
        use base64::Engine as _;
        let standard = base64::engine::general_purpose::STANDARD;
        standard.decode(text).or_else(|_| refuse("it is not base64"))
    },
    |bytes| {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(bytes)
    },
    "base64 with its padding (RFC 4648 §4)",
);

pub(crate) const INCLUDE: Text<String> = text(
    |text| match Path::new(text).file_name() {
        None => refuse("it names no file"),
        Some(_) if text.contains('\0') => refuse("no path has a NUL in it"),
        Some(name) => {
            let folder = &text[..text.len() - name.len().min(text.len())];
            if folder.contains('*') {
                return refuse("`*` stands only in the last part, as in \"conf.d/*.toml\"");
            }
            Ok(text.to_owned())
        }
    },
    String::clone,
    r#"files such as "conf.d/*.toml"; a relative path begins where this file is"#,
);

pub(crate) const ACCESS: Text<Option<AccessLogTarget>> = Text {
    pattern: r"^(none|stdout|/.*)$",
    placeholder: "none|stdout|FILE",
    ..text(
        |text| match text {
            "none" => Ok(None),
            "stdout" => Ok(Some(AccessLogTarget::Stdout)),
            _ if text.starts_with('/') && !text.ends_with('/') && !text.contains('\0') => {
                Ok(Some(AccessLogTarget::File(PathBuf::from(text))))
            }
            _ => match nearest(text, ["none", "stdout"].into_iter()) {
                Some(word) => keyed(text, &[word]),
                None if text.contains(['/', '.']) => {
                    refuse("a file is named by its whole path, which begins with `/`")
                }
                None => keyed(text, &[]),
            },
        },
        |target| match target {
            None => "none".to_owned(),
            Some(AccessLogTarget::Stdout) => "stdout".to_owned(),
            Some(AccessLogTarget::File(path)) => path.display().to_string(),
        },
        r#""none", "stdout" or the whole path of a file, such as "/var/log/baton/access.log""#,
    )
};

pub(crate) const ADMIN: Text<Option<AdminAddress>> = Text {
    pattern: r"^(none|unix:/.+|.*:[0-9]+)$",
    placeholder: "ADDR|unix:PATH|none",
    for_integer: "\"127.0.0.1:N\"",
    ..text(
        |text| match text.strip_prefix("unix:") {
            _ if text == "none" => Ok(None),
            Some(path) if path.starts_with('/') && !path.contains('\0') => {
                Ok(Some(AdminAddress::Unix(PathBuf::from(path))))
            }
            Some(_) => {
                refuse("a socket is named by its whole path, as in \"unix:/run/baton.sock\"")
            }
            None => match parse_listen(text) {
                Ok(address) => Ok(Some(AdminAddress::Tcp(address))),
                Err(_) if text.starts_with('/') => Err(Refusal::new(
                    "a path alone is no address",
                    format!("write \"unix:{text}\""),
                )),
                Err(error) => refuse(error.to_string()),
            },
        },
        |admin| match admin {
            None => "none".to_owned(),
            Some(AdminAddress::Tcp(address)) => address.to_string(),
            Some(AdminAddress::Unix(path)) => format!("unix:{}", path.display()),
        },
        r#""127.0.0.1:9901", "unix:/run/baton.sock" or "none""#,
    )
};

fn keyed<T>(text: &str, known: &[&str]) -> Result<T, Refusal> {
    let fix = nearest(text, known.iter().copied());
    let fix = fix.map_or_else(String::new, |word| format!("did you mean \"{word}\"?"));
    Err(Refusal::new(format!("unknown word \"{text}\""), fix))
}
