//! The cases as they are written down: `data/README.md` describes the format.

use std::time::Duration;

use serde::Deserialize;

use crate::conditions::Conditions;
use crate::strict::Finding;

/// One case. An unknown key is an error, so that a misspelt condition cannot hold by accident.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) level: Level,
    /// The text or the defect the case comes from.
    #[serde(rename = "ref")]
    pub(crate) reference: String,
    #[serde(default)]
    pub(crate) note: String,
    /// What the client does.
    pub(crate) steps: Vec<Step>,
    /// The n-th request that arrives is answered by the n-th script; further ones by
    /// `[wait_complete, reply]`.
    #[serde(default)]
    pub(crate) upstream: Vec<Vec<Action>>,
    /// Final responses to wait for.
    #[serde(default = "one")]
    pub(crate) responses: usize,
    /// Methods of the requests, in order, where they are not GET.
    #[serde(default)]
    pub(crate) methods: Vec<String>,
    /// Versions of the requests, in order, where they are not 1.1; the last holds for the rest.
    #[serde(default)]
    pub(crate) versions: Vec<String>,
    /// How long conditions may take to hold after the last step.
    #[serde(default = "two_seconds")]
    pub(crate) deadline: Seconds,
    /// Whether it is small enough to go byte by byte.
    #[serde(default = "yes")]
    pub(crate) bytewise: bool,
    /// Whether it means the same after another request on the connection.
    #[serde(default = "yes")]
    pub(crate) after_keep_alive: bool,
    /// Rough duration in seconds, of those that are slow. They start first.
    #[serde(default)]
    pub(crate) cost: u32,
    /// Features of the proxy without which it means nothing.
    #[serde(default)]
    pub(crate) needs: Vec<Feature>,
    /// Findings of the strict parsers that are no fault here.
    #[serde(default)]
    pub(crate) allow: Vec<Finding>,
    /// What must hold whatever the level of the case.
    #[serde(default)]
    pub(crate) must: Conditions,
    pub(crate) expect: Conditions,
    /// `expect` as it is written, for a failure.
    #[serde(skip)]
    pub(crate) expected: String,
}

/// How binding the source is. All must hold here; the level is shown with a failure.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Level {
    /// The RFC says so.
    Must,
    /// An RFC SHOULD, or robustness.
    Should,
    /// The RFC leaves the choice.
    Policy,
}

/// What a case may need and this proxy does not have.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Feature {
    /// A listener that demands the PROXY protocol.
    ProxyProtocol,
}

/// One act of the client.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    Send(Bytes),
    SendBytewise(Bytes),
    Repeat(Bytes, usize),
    /// A byte each `gap` until `for` has passed or the text is over, then silence until `for`.
    Trickle {
        text: Bytes,
        gap: Seconds,
        r#for: Seconds,
    },
    Wait(Seconds),
    WaitResponses(usize),
    WaitText(Bytes),
    /// Until so many requests have reached the upstream.
    WaitUpstream(usize),
    /// Until no script of the upstream is under way: what it wrote, and its close, have happened.
    WaitScripts,
    Client(Act),
}

/// What the client does to its connection.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Act {
    /// Ends its direction (FIN) and reads on.
    Shutdown,
    Close,
    /// Closes with a reset.
    Rst,
    /// Stops reading.
    Noread,
}

/// One act of the upstream once the head of a request is there.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// Until the request is complete; the script ends if it cannot become so.
    WaitComplete,
    /// Until so many bytes of the tunnel are there.
    WaitTunnel(usize),
    Sleep(Seconds),
    /// Notes the bytes beyond the request and the number of requests.
    Mark,
    /// 200 with the body `up:` and the target.
    Reply,
    Send(Bytes),
    /// Sent if the request has an Expect field.
    SendIfExpect(Bytes),
    Repeat(Bytes, usize),
    /// What follows the request is not HTTP.
    Tunnel,
    Fin,
    Close,
    Rst,
}

/// Bytes, written as a string in which one character is one byte (Latin-1).
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl TryFrom<String> for Bytes {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let byte = |c| u8::try_from(c).map_err(|_| format!("{c:?} is not one byte"));
        text.chars().map(byte).collect::<Result<_, _>>().map(Bytes)
    }
}

/// A duration, written as a number of seconds.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct Seconds(pub(crate) Duration);

impl TryFrom<f64> for Seconds {
    type Error = String;

    fn try_from(seconds: f64) -> Result<Self, String> {
        Duration::try_from_secs_f64(seconds).map(Seconds).map_err(|error| error.to_string())
    }
}

/// The cases of every area, with the area before the name of each: `framing/cl-plus`.
pub(crate) fn load() -> Vec<Case> {
    let areas = [
        ("chunked", include_str!("data/chunked.jsonl")),
        ("connection", include_str!("data/connection.jsonl")),
        ("framing", include_str!("data/framing.jsonl")),
        ("header-syntax", include_str!("data/header-syntax.jsonl")),
        ("hop-by-hop", include_str!("data/hop-by-hop.jsonl")),
        ("proxy-protocol", include_str!("data/proxy-protocol.jsonl")),
        ("request-line", include_str!("data/request-line.jsonl")),
        ("response", include_str!("data/response.jsonl")),
        ("upgrade", include_str!("data/upgrade.jsonl")),
    ];
    let mut cases = Vec::new();
    for (area, lines) in areas {
        for (index, line) in lines.lines().enumerate() {
            let fail = |error| panic!("data/{area}.jsonl:{}: {error}", index + 1);
            let mut case: Case = serde_json::from_str(line).unwrap_or_else(fail);
            // It is the last key of each line.
            let expected =
                line.split_once(r#""expect": "#).and_then(|(_, rest)| rest.strip_suffix('}'));
            case.expected = expected.unwrap_or(line).to_owned();
            case.id = format!("{area}/{}", case.id);
            cases.push(case);
        }
    }
    cases
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

fn two_seconds() -> Seconds {
    Seconds(Duration::from_secs(2))
}
