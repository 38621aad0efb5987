//! Heads that an operator's edits change on their way, checked as any other.

use super::naive;
use super::verdict::{CONTEXT, DATE};
use crate::{
    Authority, ClientFields, Edits, FieldBlock, FieldName, FieldNames, FieldSlots, Framing,
    HeadLimits, MethodKind, OriginForm, RequestContext, RequestHead, ResponseHead, encode_interim,
    encode_response, plan_response,
};

/// Edits made of the bytes they are applied to, so that a fuzzer steers both.
struct Made {
    names: Vec<FieldName>,
    remove: FieldNames,
    append: FieldBlock,
    appended: Vec<String>,
    client: ClientFields,
    target: Option<Vec<u8>>,
    host: Option<Vec<u8>>,
}

impl Made {
    fn of(bytes: &[u8]) -> Made {
        let seed = bytes.iter().fold(0x9e37_79b9u64, |seed, &byte| {
            (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let bit = |at: u32| seed >> (20 + at) & 1 == 1;
        // Words of the input are names as they come; most of those that matter are refused.
        let words = bytes
            .split(|b| !b.is_ascii_graphic() || *b == b':')
            .filter_map(|word| FieldName::new(std::str::from_utf8(word).ok()?).ok());
        let known = ["X-Forwarded-For", "X_Forwarded_For", "Via", "Forwarded", "Server", "A"];
        let known = known.iter().map(|name| FieldName::new(name).expect("not reserved"));
        let names: Vec<FieldName> = words.take(8).chain(known).collect();
        let some = |from: u32| {
            let chosen = move |(index, _): &(usize, &FieldName)| bit(from + *index as u32);
            names.iter().enumerate().filter(chosen).map(|(_, name)| name.clone())
        };
        let mut append = FieldBlock::default();
        let mut appended = Vec::new();
        for (at, name) in some(16).enumerate() {
            append.push(&name, &bytes[(at * 7).min(bytes.len())..]);
            appended.push(name.as_str().to_ascii_lowercase());
        }
        let client = ClientFields { x_forwarded: bit(0), forwarded: bit(1), peer_trusted: bit(2) };
        let cut = &bytes[bytes.len() / 3..bytes.len() / 2];
        let target = OriginForm::new(cut).or(OriginForm::new(b"/new?q")).filter(|_| bit(3));
        let host = Authority::new(cut).or(Authority::new(b"[::1]:8")).filter(|_| bit(4));
        Made {
            remove: FieldNames::new(some(5)),
            append,
            appended,
            client,
            target: target.map(|target| target.as_bytes().to_vec()),
            host: host.map(|host| host.as_bytes().to_vec()),
            names,
        }
    }

    fn edits(&self) -> Edits<'_> {
        Edits { remove: &self.remove, append: &self.append }
    }

    fn context(&self) -> RequestContext<'_> {
        RequestContext {
            client: self.client,
            target: self.target.as_deref().and_then(OriginForm::new),
            host: self.host.as_deref().and_then(Authority::new),
            edits: self.edits(),
            ..CONTEXT
        }
    }

    /// Removed is gone, unless it was added again.
    fn assert_removed(&self, ours: &naive::Head) {
        for name in &self.names {
            let name = name.as_str().to_ascii_lowercase();
            let added = self.appended.iter().filter(|added| **added == name).count();
            if self.remove.contains(name.as_bytes()) {
                let sent = ours.fields.iter().filter(|field| field.0 == name).count();
                assert_eq!(sent, added, "{name} is removed");
            }
        }
    }
}

/// An accepted request that is edited is sent on as one request with the same method, framing and
/// upgrade, and with the target and host it was given.
pub(super) fn request(input: &[u8]) {
    let mut slots = FieldSlots::new();
    let limits = HeadLimits::default();
    let Ok(Some(head)) = RequestHead::parse(input, &limits, &mut slots) else { return };
    if head.facts.max_forwards == Some(0) {
        return;
    }
    let made = Made::of(&input[..head.bytes]);
    let mut sent = Vec::new();
    crate::encode_request(&head, &made.context(), &mut sent);
    let theirs = naive::head(&input[..head.bytes]).expect("an accepted head is a strict one");
    let ours = naive::head(&sent).expect("what is sent on is strict");
    assert_eq!(ours.bytes, sent.len(), "what is sent on is one head");
    assert_eq!(naive::framing(&ours), head.facts.framing);
    let host = made.host.as_deref().or(head.host).unwrap_or(CONTEXT.fallback_host);
    naive::assert_host(&ours, host);
    made.assert_removed(&ours);
    naive::assert_edited(&theirs, &ours, &made.appended);
    // The fields of the proxy come on top of those of the client.
    let again = HeadLimits {
        head_bytes_max: usize::MAX,
        fields_max: crate::FIELDS_MAX,
        target_bytes_max: usize::MAX,
    };
    if ours.fields.len() > crate::FIELDS_MAX {
        return;
    }
    let mut slots = FieldSlots::new();
    let read = RequestHead::parse(&sent, &again, &mut slots)
        .expect("what is sent on is acceptable")
        .expect("what is sent on is complete");
    assert_eq!(read.bytes, sent.len());
    assert_eq!(read.method, head.method);
    assert_eq!(read.host, Some(host));
    assert_eq!(read.facts.framing, head.facts.framing);
    assert_eq!(read.facts.upgrade, head.facts.upgrade);
    assert_eq!(read.facts.expects_continue, head.facts.expects_continue);
    let asterisk = head.target.is_asterisk();
    match made.target.filter(|_| !asterisk) {
        Some(target) => {
            let query = read.target.query().map(|query| format!("?{query}")).unwrap_or_default();
            assert_eq!(format!("{}{query}", read.target.path()).into_bytes(), target);
        }
        None => {
            assert_eq!(read.target.path(), head.target.path());
            assert_eq!(read.target.query(), head.target.query());
        }
    }
}

/// Of an interim answer fields are taken away and none added.
fn interim(head: &ResponseHead<'_, '_>, received: &[u8]) {
    let made = Made { appended: Vec::new(), ..Made::of(received) };
    let mut sent = Vec::new();
    encode_interim(head, &made.remove, &mut sent);
    let theirs = naive::head(received).expect("an accepted head is a strict one");
    let ours = naive::head(&sent).expect("what is sent on is strict");
    assert_eq!(ours.bytes, sent.len(), "what is sent on is one head");
    made.assert_removed(&ours);
    naive::assert_edited(&theirs, &ours, &[]);
    assert_eq!(naive::framing(&ours), Framing::None);
}

/// An accepted answer that is edited is sent on as one answer with the same status and framing.
pub(super) fn response(input: &[u8]) {
    let facts = super::DEFAULT_FACTS;
    let mut slots = FieldSlots::new();
    let limits = HeadLimits::default();
    let parsed = ResponseHead::parse(input, &limits, &mut slots, MethodKind::Get);
    let Ok(Some(head)) = parsed else { return };
    if head.is_interim() {
        return interim(&head, &input[..head.bytes]);
    }
    let Ok(plan) = plan_response(&facts, &head, false) else { return };
    let made = Made::of(&input[..head.bytes]);
    let mut sent = Vec::new();
    encode_response(&head, &plan, DATE, &made.edits(), &mut sent);
    let theirs = naive::head(&input[..head.bytes]).expect("an accepted head is a strict one");
    let ours = naive::head(&sent).expect("what is sent on is strict");
    assert_eq!(ours.bytes, sent.len(), "what is sent on is one head");
    made.assert_removed(&ours);
    naive::assert_edited(&theirs, &ours, &made.appended);
    let framing = naive::framing(&ours);
    if head.status != 304 {
        let expected = match plan.downstream {
            Framing::UntilClose => Framing::None,
            other => other,
        };
        assert_eq!(framing, expected, "edits change no framing");
    }
}
