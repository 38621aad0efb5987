//! Words with a part of their own: rates, keys of counting and hashing, percentages.

use std::time::Duration;

use super::fields::no_field;
use super::{Refusal, Text, is_token, keyed, refuse, text};
use crate::config::value::{Given, count, within};
use crate::config::{Balance, HashKey, RateKey};

/// A number of requests and the time they are admitted in.
pub(crate) const RATE: Text<(u32, Duration)> = Text {
    for_integer: "\"N/s\"",
    pattern: "^[0-9]+/[smh]$",
    ..text(
        |text| {
            let Some((number, unit)) = text.split_once('/') else {
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let fix = if digits { format!("write \"{text}/s\"") } else { String::new() };
                return Err(Refusal::new("the time is missing", fix));
            };
            let number = count(Given::Flag(number))?;
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            let number = within(number, &(1..=1_000_000), u32::to_string)?;
            let seconds = match unit {
                "s" => 1,
                "m" => 60,
                "h" => 3_600,
                _ => {
                    let known = [("sec", "s"), ("second", "s"), ("min", "m"), ("minute", "m")];
                    let more = [("hour", "h"), ("S", "s"), ("M", "m"), ("H", "h")];
                    let meant = known.iter().chain(&more).find(|(word, _)| *word == unit);
                    let fix = meant
                        .map_or_else(String::new, |(_, unit)| format!("write \"{number}/{unit}\""));
                    return Err(Refusal::new(format!("unknown time `{unit}`"), fix));
                }
            };
            Ok((number, Duration::from_secs(seconds)))
        },
        |(number, time)| {
            let unit = match time.as_secs() {
                3_600 => "h",
                60 => "m",
                _ => "s",
            };
            format!("{number}/{unit}")
        },
        r#"a number of requests up to 1000000 and a time, such as "100/s", "100/m" or "100/h""#,
    )
};

pub(crate) const RATE_KEY: Text<RateKey> = Text {
    pattern: r"^(client-ip|route|header:.+)$",
    ..text(
        |text| match text.split_once(':') {
            _ if text == "client-ip" => Ok(RateKey::ClientIp),
            _ if text == "route" => Ok(RateKey::Route),
            Some(("header", name)) if is_token(name) => {
                Ok(RateKey::Field(name.to_ascii_lowercase()))
            }
            Some(("header", name)) => no_field(name),
            _ if ["ip", "remote_addr", "$binary_remote_addr", "src", "client"].contains(&text) => {
                let problem = format!("unknown word \"{text}\"");
                Err(Refusal::new(problem, "here it is \"client-ip\""))
            }
            _ => keyed(text, &["client-ip", "route", "header:x-key"]),
        },
        |key| match key {
            RateKey::ClientIp => "client-ip".to_owned(),
            RateKey::Route => "route".to_owned(),
            RateKey::Field(name) => format!("header:{name}"),
        },
        r#""client-ip", "route", or "header:" and a field name"#,
    )
};

pub(crate) const BALANCE: Text<Balance> = Text {
    pattern: r"^(p2c|round-robin|hash:(client-ip|path|header:.+|cookie:.+))$",
    ..text(
        |text| {
            let key = match text {
                "p2c" => return Ok(Balance::P2c),
                "round-robin" => return Ok(Balance::RoundRobin),
                "hash:client-ip" => HashKey::ClientIp,
                "hash:path" => HashKey::Path,
                "least_conn" | "least-conn" | "leastconn" | "least_request" => {
                    let problem = format!("unknown word \"{text}\"");
                    return Err(Refusal::new(problem, "\"p2c\" comes nearest to it"));
                }
                "ip_hash" | "ip-hash" | "source" => {
                    let problem = format!("unknown word \"{text}\"");
                    return Err(Refusal::new(problem, "here it is \"hash:client-ip\""));
                }
                _ => match text.strip_prefix("hash:").and_then(|key| key.split_once(':')) {
                    Some(("header", name)) if is_token(name) => {
                        HashKey::Field(name.to_ascii_lowercase())
                    }
                    Some(("header", name)) => return no_field(name),
                    Some(("cookie", name)) if is_token(name) => HashKey::Cookie(name.to_owned()),
                    Some(("cookie", _)) => {
                        return refuse("there is no name of a cookie after `cookie:`");
                    }
                    _ => {
                        let known = ["p2c", "round-robin", "hash:client-ip", "hash:path"];
                        return keyed(text, &known);
                    }
                },
            };
            Ok(Balance::Hash(key))
        },
        |balance| match balance {
            Balance::P2c => "p2c".to_owned(),
            Balance::RoundRobin => "round-robin".to_owned(),
            Balance::Hash(HashKey::ClientIp) => "hash:client-ip".to_owned(),
            Balance::Hash(HashKey::Path) => "hash:path".to_owned(),
            Balance::Hash(HashKey::Field(name)) => format!("hash:header:{name}"),
            Balance::Hash(HashKey::Cookie(name)) => format!("hash:cookie:{name}"),
        },
        r#""p2c", "round-robin", "hash:client-ip", "hash:path", "hash:header:NAME" or "hash:cookie:NAME""#,
    )
};

pub(crate) const PERCENT: Text<u32> = Text {
    for_integer: "\"N%\"",
    pattern: "^[0-9]+%$",
    ..text(
        |text| {
            let Some(number) = text.strip_suffix('%') else {
                let fix = match count(Given::Flag(text)) {
                    Ok(number) => format!("write \"{number}%\""),
                    Err(_) => String::new(),
                };
                return Err(Refusal::new("the percent sign is missing", fix));
            };
            let number = u32::try_from(count(Given::Flag(number))?).unwrap_or(u32::MAX);
            within(number, &(0..=100), |number| format!("{number}%"))
        },
        |percent| format!("{percent}%"),
        r#""0%" to "100%""#,
    )
};
