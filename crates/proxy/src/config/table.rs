//! Tables of the file as data: each key's name, meaning, example, and how its value is read.
//!
//! From one description come the reading of a table, the messages about its keys, the flags, what
//! `print` writes, the reference and the JSON schema, so that these cannot differ.

use std::ops::Range;

use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::{Reader, describe};
use super::value::{Given, Scalar, ValueError};

/// A table of the file. `A` is [`dyn Access`](Access) or [`dyn Setting`](Setting) of what the table
/// is read into.
pub(crate) struct Table<A: ?Sized + 'static> {
    /// How it is written: `[timeout]`, `[[route]]`, `[upstream.NAME]`.
    pub(crate) label: &'static str,
    /// The doc comment, a line each.
    pub(crate) doc: &'static [&'static str],
    /// In the order in which they are documented.
    pub(crate) fields: &'static [Field<A>],
    /// What its keys must be together.
    pub(crate) rules: &'static [Rule],
}

/// A key of a table.
pub(crate) struct Field<A: ?Sized + 'static> {
    /// As in the file.
    pub(crate) name: &'static str,
    /// The doc comment, a line each.
    pub(crate) doc: &'static [&'static str],
    /// A value as the file has it; empty where the default is the example. One that begins with
    /// `#` cannot stand beside the other keys.
    pub(crate) example: &'static str,
    pub(crate) access: &'static A,
}

/// What the keys of a table must be together.
pub(crate) enum Rule {
    /// These are there.
    Required(&'static [&'static str]),
    /// One of these is there, and no other.
    ExactlyOne(&'static [&'static str]),
    /// Not two of these are there.
    AtMostOne(&'static [&'static str]),
    /// The first is there only where the second is, for this reason.
    Needs(&'static str, &'static str, &'static str),
}

/// Where something stands in the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Index of the file.
    pub(crate) file: usize,
    /// Bytes of its text.
    pub(crate) span: Range<usize>,
}

/// A value and where it was found.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
}

impl<T> At<T> {
    /// A value that no file has, to be written.
    pub(crate) fn nowhere(value: T) -> Self {
        Self { value, place: Place { file: 0, span: 0..0 } }
    }
}

/// How the values of one kind are read and written.
pub(crate) trait Codec: Sync {
    /// What is read.
    type Value;

    /// Reads `value`. `None`: it was refused, and `reader` has the finding.
    fn read(&self, value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self::Value>;

    /// The value as TOML, inline.
    fn write(&self, value: &Self::Value) -> String;

    /// What may stand there, as JSON schema.
    fn schema(&self) -> Json;

    /// The keys of the table that may stand there, with their meaning; none where it is no table.
    fn nested(&self) -> Vec<Meaning> {
        Vec::new()
    }
}

/// A key and its doc comment, a line each.
pub(crate) type Meaning = (&'static str, &'static [&'static str]);

/// The keys of a table with their meaning.
pub(crate) fn meanings<A: ?Sized>(table: &Table<A>) -> Vec<Meaning> {
    table.fields.iter().map(|field| (field.name, field.doc)).collect()
}

/// One key, in what its table is read into.
pub(crate) trait Access<C>: Sync {
    /// Reads the value into `to`, or leaves a finding with `reader`.
    fn read(&self, to: &mut C, value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>);

    /// The value as TOML; `None`: it is not said.
    fn write(&self, from: &C) -> Option<String>;

    /// What may stand there, as JSON schema.
    fn schema(&self) -> Json;

    /// As [`Codec::nested`].
    fn nested(&self) -> Vec<Meaning> {
        Vec::new()
    }
}

/// One key that has a default and a flag.
pub(crate) trait Setting<C>: Access<C> {
    /// Parses what was given into `to`. On error `to` is as it was.
    fn parse(&self, to: &mut C, given: Given<'_>) -> Result<(), ValueError>;

    /// The value as a flag takes it.
    fn show(&self, from: &C) -> String;

    /// What stands for the value in the help.
    fn placeholder(&self) -> String;

    /// Makes the value of `to` that of `from`.
    fn copy(&self, from: &C, to: &mut C);

    /// Whether both have the same value.
    fn is_same(&self, one: &C, other: &C) -> bool;
}

/// A key whose value is stored as it is.
pub(crate) struct Direct<C: 'static, K: Codec + 'static> {
    pub(crate) get: fn(&C) -> &K::Value,
    pub(crate) get_mut: fn(&mut C) -> &mut K::Value,
    pub(crate) codec: K,
}

impl<C: Default, K: Scalar> Access<C> for Direct<C, K>
where
    K::Value: Clone + PartialEq,
{
    fn read(&self, to: &mut C, value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) {
        if let Err(error) = self.parse(to, reader.given(value)) {
            reader.refuse_value(value.span(), error);
        }
    }

    fn write(&self, from: &C) -> Option<String> {
        Some(self.codec.write((self.get)(from)))
    }

    fn schema(&self) -> Json {
        self.codec.schema()
    }
}

impl<C: Default, K: Scalar> Setting<C> for Direct<C, K>
where
    K::Value: Clone + PartialEq,
{
    fn parse(&self, to: &mut C, given: Given<'_>) -> Result<(), ValueError> {
        let value = self.codec.parse(given).map_err(|refusal| {
            let expected = self.codec.expected(given, &self.show(&C::default()));
            refusal.expecting(expected)
        })?;
        *(self.get_mut)(to) = value;
        Ok(())
    }

    fn show(&self, from: &C) -> String {
        self.codec.show((self.get)(from))
    }

    fn placeholder(&self) -> String {
        self.codec.placeholder()
    }

    fn copy(&self, from: &C, to: &mut C) {
        (self.get_mut)(to).clone_from((self.get)(from));
    }

    fn is_same(&self, one: &C, other: &C) -> bool {
        (self.get)(one) == (self.get)(other)
    }
}

/// A key that is there or not, with its place.
pub(crate) struct Said<C: 'static, K: Codec + 'static> {
    pub(crate) get: fn(&C) -> &Option<At<K::Value>>,
    pub(crate) get_mut: fn(&mut C) -> &mut Option<At<K::Value>>,
    pub(crate) codec: K,
}

impl<C, K: Codec> Access<C> for Said<C, K> {
    fn read(&self, to: &mut C, value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) {
        let place = reader.place(value.span());
        if let Some(value) = self.codec.read(value, reader) {
            *(self.get_mut)(to) = Some(At { value, place });
        }
    }

    fn write(&self, from: &C) -> Option<String> {
        (self.get)(from).as_ref().map(|said| self.codec.write(&said.value))
    }

    fn schema(&self) -> Json {
        self.codec.schema()
    }

    fn nested(&self) -> Vec<Meaning> {
        self.codec.nested()
    }
}

/// Reads the keys of `keys`, which stands at `span`, into `to`. `only`: the keys of `table` that are
/// taken; `None`: all. `on_key` is told of each key that is known, before it is read.
pub(crate) fn read_keys<C, A: Access<C> + ?Sized>(
    table: &'static Table<A>,
    label: &str,
    only: Option<&[&'static str]>,
    keys: &DeTable<'_>,
    to: &mut C,
    reader: &mut Reader<'_>,
    mut on_key: impl FnMut(&'static Field<A>, Place),
) {
    let taken = |name: &str| only.is_none_or(|only| only.contains(&name));
    for (key, value) in keys {
        let name = key.get_ref().as_ref();
        let field = table.fields.iter().find(|field| field.name == name && taken(name));
        let Some(field) = field else {
            let names = table.fields.iter().map(|field| field.name);
            let known: Vec<&str> = names.filter(|name| taken(name)).collect();
            reader.unknown_key(key, label, &known);
            continue;
        };
        on_key(field, reader.place(value.span()));
        reader.within(field.name, field.example, |reader| field.access.read(to, value, reader));
    }
}

/// Finds the keys that are not together as `table` says. `span`: of the table.
pub(crate) fn check_rules<A: ?Sized>(
    table: &Table<A>,
    label: &str,
    keys: &DeTable<'_>,
    span: Range<usize>,
    reader: &mut Reader<'_>,
) {
    let place = |name: &str| keys.get(name).map(Spanned::span);
    let example = |name: &str| {
        let field = table.fields.iter().find(|field| field.name == name);
        let text = field.map_or("", |field| field.example).trim_start_matches("# ");
        format!("{name} = {text}")
    };
    for rule in table.rules {
        match rule {
            Rule::Required(names) => {
                for name in names.iter().filter(|name| place(name).is_none()) {
                    let problem = format!("{label} without `{name}`");
                    reader.refuse(span.clone(), problem, &example(name));
                }
            }
            Rule::ExactlyOne(names) | Rule::AtMostOne(names) => {
                let mut there: Vec<(&str, Range<usize>)> =
                    names.iter().filter_map(|name| Some((*name, place(name)?))).collect();
                there.sort_by_key(|(_, span)| span.start);
                if let [(first, _), (second, span), ..] = there.as_slice() {
                    let problem = format!("{label} has both `{first}` and `{second}`");
                    reader.refuse(span.clone(), problem, &format!("one of {}", ticked(names)));
                } else if there.is_empty() && matches!(rule, Rule::ExactlyOne(_)) {
                    let all: Vec<String> = names.iter().map(|name| example(name)).collect();
                    let problem = format!("{label} without {}", ticked(names));
                    reader.refuse(span.clone(), problem, &all.join(", or "));
                }
            }
            Rule::Needs(name, other, why) => {
                if let (Some(span), None) = (place(name), place(other)) {
                    let problem = format!("`{name}` without `{other}`: {why}");
                    reader.refuse(span, problem, &format!("{} beside it", example(other)));
                }
            }
        }
    }
}

fn ticked(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// Reads a table with all its keys. `None`: `value` is no table.
pub(crate) fn read_table<C: Default, A: Access<C> + ?Sized>(
    table: &'static Table<A>,
    value: &Spanned<DeValue<'_>>,
    reader: &mut Reader<'_>,
) -> Option<C> {
    let label = reader.label(table.label);
    let Some(keys) = value.get_ref().as_table() else {
        let problem = format!("`{}` is {}", reader.key(), describe(value.get_ref()));
        let expected = reader.example_of_table(&label);
        reader.refuse(value.span(), problem, &expected);
        return None;
    };
    let mut to = C::default();
    read_keys(table, &label, None, keys, &mut to, reader, |_, _| {});
    check_rules(table, &label, keys, value.span(), reader);
    Some(to)
}

/// What is said of a table's keys, each with its value as TOML.
pub(crate) fn written<C, A: Access<C> + ?Sized>(
    table: &Table<A>,
    from: &C,
) -> Vec<(&'static str, String)> {
    let said = |field: &Field<A>| Some((field.name, field.access.write(from)?));
    table.fields.iter().filter_map(said).collect()
}

/// Defines what a table is read into, key by key as it was said, and its `Table`.
///
/// Each key reads `name: type = codec, example;` where `type` is what the codec reads.
macro_rules! table {
    (
        $(#[doc = $about:literal])*
        $Type:ident as $TABLE:ident: $label:literal, [$($rule:expr),*];
        $(
            $(#[doc = $doc:literal])*
            $field:ident: $type:ty = $codec:expr, $example:literal;
        )*
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $Type {
            $(
                $(#[doc = $doc])*
                pub(crate) $field: Option<$crate::config::table::At<$type>>,
            )*
        }

        $crate::config::table::table_of! {
            $Type as $TABLE: $label, [$($rule),*], [$($about),*];
            $($(#[doc = $doc])* $field = $codec, $example;)*
        }
    };
}

/// As `table!` for a type that is there.
macro_rules! table_of {
    (
        $Type:ident as $TABLE:ident: $label:literal, [$($rule:expr),*], [$($about:literal),*];
        $(
            $(#[doc = $doc:literal])*
            $field:ident = $codec:expr, $example:literal;
        )*
    ) => {
        pub(crate) static $TABLE: $crate::config::table::Table<
            dyn $crate::config::table::Access<$Type>,
        > = $crate::config::table::Table {
            label: $label,
            doc: &[$($about),*],
            rules: &[$($rule),*],
            fields: &[$(
                $crate::config::table::Field {
                    name: stringify!($field),
                    doc: &[$($doc),*],
                    example: $example,
                    access: &$crate::config::table::Said {
                        get: |from: &$Type| &from.$field,
                        get_mut: |to: &mut $Type| &mut to.$field,
                        codec: $codec,
                    },
                },
            )*],
        };
    };
}

pub(crate) use {table, table_of};
