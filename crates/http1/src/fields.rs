//! The field lines of a parsed head: where they are, what they mean, which of them travel on.

use std::mem::MaybeUninit;

use httparse::Header;

use crate::edits::FieldNames;
use crate::error::HeadError;
use crate::framing::Occurrence;
use crate::limits::{CONNECTION_OPTIONS_MAX, FIELDS_MAX};
use crate::name::{Name, classify, is, is_protected};
use crate::syntax::{is_token, list};

/// Storage for the fields of one head, on the stack and not initialised (4 KiB).
#[derive(Debug)]
pub struct FieldSlots<'b>([MaybeUninit<Header<'b>>; FIELDS_MAX]);

impl<'b> FieldSlots<'b> {
    /// Empty slots. Costs nothing.
    #[inline]
    pub const fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; FIELDS_MAX])
    }

    /// The first `count` slots. `count <= FIELDS_MAX`.
    pub(crate) fn first(&mut self, count: usize) -> &mut [MaybeUninit<Header<'b>>] {
        &mut self.0[..count]
    }
}

impl Default for FieldSlots<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// One field line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'b> {
    /// The name as it was sent: a token. Compare it without regard to case.
    pub name: &'b str,
    /// The value without surrounding whitespace: no control bytes but HTAB.
    pub value: &'b [u8],
}

/// A set of fields, one bit for each slot.
type FieldSet = u128;

/// The field lines of one head.
///
/// Each line ends with CRLF and the lines follow each other without a gap, so what is sent on is
/// copied in runs of whole lines. `verbatim` ⊆ `kept`; bits at or above `slots.len()` are 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldLines<'h, 'b> {
    /// The head from its start line to its final CRLF.
    head: &'b [u8],
    slots: &'h [Header<'b>],
    /// Fields to send on.
    kept: FieldSet,
    /// Fields to send on whose line is exactly `name: value CRLF`.
    verbatim: FieldSet,
    /// The Upgrade fields, which are not kept, and the Trailer fields, which are.
    upgrade: FieldSet,
    trailer: FieldSet,
    /// The Host fields, which are kept, and what a client says about itself, which is not.
    host: FieldSet,
    identity: FieldSet,
}

/// The fields that decide something, as found in one pass over the lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Findings {
    connection: FieldSet,
    pub(crate) host: Found,
    pub(crate) content_length: Found,
    pub(crate) transfer_encoding: Found,
    pub(crate) expect: Found,
    pub(crate) max_forwards: Found,
    pub(crate) accepts_trailers: bool,
    pub(crate) has_date: bool,
    pub(crate) has_look_alike: bool,
}

/// How often a field occurs, and one slot where it does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    count: u8,
    slot: u8,
}
const _: () = assert!(FIELDS_MAX <= u8::MAX as usize);

impl Found {
    fn at(&mut self, slot: usize) {
        self.count += 1;
        self.slot = slot as u8;
    }
}

/// What the Connection fields say (RFC 9110 §7.6.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConnectionOptions {
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    pub(crate) upgrade: bool,
}

/// Fields that are left out although they were kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Without {
    pub(crate) host: bool,
    pub(crate) trailer: bool,
}

/// Who sent a head: some names matter only in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Client,
    Upstream,
}

impl<'h, 'b> FieldLines<'h, 'b> {
    /// Reads the field lines of `head`, which the parser has split into `slots`.
    ///
    /// `first` is the offset of the first field line; `head` ends with the empty line.
    /// Returns `None` if a line does not end with CRLF, which the parser does not mind.
    pub(crate) fn read(
        head: &'b [u8],
        first: usize,
        slots: &'h [Header<'b>],
        sender: Sender,
    ) -> Option<(Self, Findings)> {
        let mut lines = Self {
            head,
            slots,
            kept: 0,
            verbatim: 0,
            upgrade: 0,
            trailer: 0,
            host: 0,
            identity: 0,
        };
        let mut found = Findings::default();
        // From the last line to the first: where a line ends is then known from the one before.
        let mut end = head.strip_suffix(b"\r\n")?.len();
        for (slot, field) in slots.iter().enumerate().rev() {
            if head[end - 2] != b'\r' {
                return None;
            }
            let name = field.name.as_bytes();
            let start = offset(head, name);
            if lines.note(slot, classify(name), sender, &mut found) {
                let bit = 1 << slot;
                lines.kept |= bit;
                let exact = end - start == name.len() + field.value.len() + b": \r\n".len()
                    && head[start + name.len() + 1] == b' ';
                lines.verbatim |= if exact { bit } else { 0 };
            }
            end = start;
        }
        (end == first).then_some((lines, found))
    }

    /// Notes the field in `slot`; returns whether it travels on.
    #[inline(always)]
    fn note(&mut self, slot: usize, name: Name, sender: Sender, found: &mut Findings) -> bool {
        match name {
            Name::Other => return true,
            Name::Date => {
                found.has_date = true;
                return true;
            }
            Name::Host => {
                found.host.at(slot);
                self.host |= 1 << slot;
                return true;
            }
            Name::Expect => {
                found.expect.at(slot);
                return true;
            }
            Name::MaxForwards => {
                found.max_forwards.at(slot);
                return true;
            }
            Name::Trailer => {
                self.trailer |= 1 << slot;
                return true;
            }
            Name::ClientIdentity if sender == Sender::Upstream => return true,
            Name::ClientIdentity => self.identity |= 1 << slot,
            Name::Connection => found.connection |= 1 << slot,
            Name::ContentLength => found.content_length.at(slot),
            Name::TransferEncoding => found.transfer_encoding.at(slot),
            Name::Te => {
                let trailers = |coding: &[u8]| coding.eq_ignore_ascii_case(b"trailers");
                found.accepts_trailers |= list(self.slots[slot].value).any(trailers);
            }
            Name::Upgrade => self.upgrade |= 1 << slot,
            Name::HopByHop => {}
            Name::FramingLookAlike => found.has_look_alike = true,
        }
        false
    }

    /// Offset of a line in `head`; of the empty line for the slot behind the last.
    fn start(&self, slot: usize) -> usize {
        match self.slots.get(slot) {
            Some(field) => offset(self.head, field.name.as_bytes()),
            None => self.head.len() - 2,
        }
    }

    pub(crate) fn occurrence(&self, found: Found) -> Occurrence<'b> {
        match found.count {
            0 => Occurrence::Absent,
            1 => Occurrence::Once(self.slots[usize::from(found.slot)].value),
            count => Occurrence::Repeated(usize::from(count)),
        }
    }

    /// Reads the Connection fields and removes what they name (RFC 9110 §7.6.1).
    ///
    /// Errors: `ConnectionOption` for an option that is no token, `ConnectionOptionCount`.
    pub(crate) fn apply_connection(
        &mut self,
        found: &Findings,
    ) -> Result<ConnectionOptions, HeadError> {
        let mut options = ConnectionOptions::default();
        let mut count = 0;
        let mut set = found.connection;
        while set != 0 {
            let value = self.slots[set.trailing_zeros() as usize].value;
            set &= set - 1;
            for option in list(value) {
                count += 1;
                if count > CONNECTION_OPTIONS_MAX {
                    let max = CONNECTION_OPTIONS_MAX;
                    return Err(HeadError::ConnectionOptionCount { max });
                }
                if is(option, b"keep-alive") {
                    options.keep_alive = true;
                } else if is(option, b"close") {
                    options.close = true;
                } else if is(option, b"upgrade") {
                    options.upgrade = true;
                } else if is_token(option) {
                    self.remove_named(option);
                } else {
                    return Err(HeadError::ConnectionOption);
                }
            }
        }
        Ok(options)
    }

    fn remove_named(&mut self, option: &[u8]) {
        for (slot, field) in self.slots.iter().enumerate() {
            let name = field.name.as_bytes();
            if name.eq_ignore_ascii_case(option) && !is_protected(name) {
                self.remove(slot);
            }
        }
    }

    /// Keeps the field, of which there must be one, from being sent on.
    pub(crate) fn remove_found(&mut self, found: Found) {
        debug_assert_eq!(found.count, 1, "only a single field has one slot");
        self.remove(usize::from(found.slot));
    }

    fn remove(&mut self, slot: usize) {
        self.kept &= !(1 << slot);
        self.verbatim &= !(1 << slot);
    }

    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = Field<'b>> + use<'h, 'b> {
        self.slots.iter().map(|header| Field { name: header.name, value: header.value })
    }

    pub(crate) fn first(&self, name: &str) -> Option<&'b [u8]> {
        self.all().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }

    /// The values of the Upgrade fields in order.
    pub(crate) fn upgrade_values(&self) -> impl Iterator<Item = &'b [u8]> {
        self.slots_of(self.upgrade).map(|field| field.value)
    }

    /// Bytes of the head.
    pub(crate) fn head_bytes(&self) -> usize {
        self.head.len()
    }

    /// The start line with its CRLF.
    pub(crate) fn start_line(&self) -> &'b [u8] {
        &self.head[..self.start(0)]
    }

    /// The values of what a client says about itself under exactly `name`, in any case.
    pub(crate) fn identity_values(&self, name: &[u8]) -> impl Iterator<Item = &'b [u8]> {
        self.slots_of(self.identity)
            .filter(move |field| field.name.as_bytes().eq_ignore_ascii_case(name))
            .map(|field| field.value)
    }

    fn slots_of(&self, mut set: FieldSet) -> impl Iterator<Item = &'h Header<'b>> + use<'h, 'b> {
        let slots = self.slots;
        std::iter::from_fn(move || {
            let slot = (set != 0).then(|| set.trailing_zeros() as usize)?;
            set &= set - 1;
            Some(&slots[slot])
        })
    }

    /// Appends the lines of the kept fields in their order, each as `name: value CRLF`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.encode_set(self.kept, out);
    }

    /// As [`FieldLines::encode`], without those in `without` and those that `names` names.
    pub(crate) fn encode_without(&self, without: Without, names: &FieldNames, out: &mut Vec<u8>) {
        let mut set = self.kept;
        set &= if without.host { !self.host } else { FieldSet::MAX };
        set &= if without.trailer { !self.trailer } else { FieldSet::MAX };
        if !names.is_empty() {
            let mut left = set;
            while left != 0 {
                let slot = left.trailing_zeros() as usize;
                left &= left - 1;
                if names.contains(self.slots[slot].name.as_bytes()) {
                    set &= !(1 << slot);
                }
            }
        }
        self.encode_set(set, out);
    }

    fn encode_set(&self, set: FieldSet, out: &mut Vec<u8>) {
        let verbatim = self.verbatim & set;
        let mut left = set;
        while left != 0 {
            let slot = left.trailing_zeros() as usize;
            let run = (verbatim >> slot).trailing_ones() as usize;
            if run > 0 {
                out.extend_from_slice(&self.head[self.start(slot)..self.start(slot + run)]);
                // `slot + run` may be 128, which a shift cannot express.
                left &= FieldSet::MAX.checked_shl((slot + run) as u32).unwrap_or(0);
            } else {
                let field = &self.slots[slot];
                encode_field(field.name.as_bytes(), field.value, out);
                left &= left - 1;
            }
        }
    }

    /// Most bytes that [`FieldLines::encode`] appends: a line without a space gains one.
    pub(crate) fn encoded_bytes_max(&self) -> usize {
        self.head.len() + self.slots.len()
    }
}

/// Offset in `head` of `name`, which is a part of it.
fn offset(head: &[u8], name: &[u8]) -> usize {
    name.as_ptr().addr() - head.as_ptr().addr()
}

/// Bytes in front of the first field line of `head`, which the parser has split into `slots`.
pub(crate) fn first_line_bytes(head: &[u8], slots: &[Header<'_>]) -> usize {
    slots.first().map_or(head.len() - 2, |field| offset(head, field.name.as_bytes()))
}

/// Appends one field line.
pub(crate) fn encode_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
