//! Values made of values: arrays, tables, and a single value that stands for either.

mod overrides;

use std::collections::HashSet;

use serde_json::{Value as Json, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::reader::{Reader, describe};
use super::schema;
use super::table::{Access, At, Codec, Meaning, Table, meanings, read_table, written};
use super::value::{Given, Scalar};

pub(crate) use overrides::{Overrides, Subset};

/// One value or an array of at least one, none of them twice.
pub(crate) struct Many<K>(pub(crate) K);

/// As [`Many`], but a value may stand there twice.
pub(crate) struct Each<K>(pub(crate) K);

fn read_many<K: Codec>(
    codec: &K,
    is_set: bool,
    value: &Spanned<DeValue<'_>>,
    reader: &mut Reader<'_>,
) -> Option<Vec<At<K::Value>>> {
    let elements = match value.get_ref() {
        DeValue::Array(array) if array.is_empty() => {
            let problem = format!("`{}` is empty", reader.key());
            let example = reader.example_line();
            reader.refuse(value.span(), problem, &example);
            return None;
        }
        DeValue::Array(array) => array.iter().as_slice(),
        _ => std::slice::from_ref(value),
    };
    let mut seen = HashSet::new();
    let mut values = Vec::new();
    for element in elements {
        let Some(value) = reader.in_list(|reader| codec.read(element, reader)) else { continue };
        if is_set {
            let text = codec.write(&value);
            if seen.contains(&text) {
                let problem = format!("{text} stands twice in `{}`", reader.key());
                reader.refuse(element.span(), problem, "each once");
                continue;
            }
            seen.insert(text);
        }
        values.push(At { value, place: reader.place(element.span()) });
    }
    // What was refused has its finding; the others still serve to find more.
    Some(values)
}

fn write_many<K: Codec>(codec: &K, values: &[At<K::Value>]) -> String {
    let all: Vec<String> = values.iter().map(|at| codec.write(&at.value)).collect();
    match all.as_slice() {
        [one] if !one.starts_with('{') => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

fn schema_of_many<K: Codec>(codec: &K) -> Json {
    let one = codec.schema();
    json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
}

macro_rules! many {
    ($Many:ident, $is_set:literal) => {
        impl<K: Codec> Codec for $Many<K> {
            type Value = Vec<At<K::Value>>;

            fn read(
                &self,
                value: &Spanned<DeValue<'_>>,
                reader: &mut Reader<'_>,
            ) -> Option<Self::Value> {
                read_many(&self.0, $is_set, value, reader)
            }

            fn write(&self, values: &Self::Value) -> String {
                write_many(&self.0, values)
            }

            fn schema(&self) -> Json {
                schema_of_many(&self.0)
            }

            fn nested(&self) -> Vec<Meaning> {
                self.0.nested()
            }
        }
    };
}

many!(Many, true);
many!(Each, false);

/// A table whose keys are free, with values of one kind.
pub(crate) struct Map<S, K> {
    pub(crate) key: S,
    pub(crate) value: K,
    /// What the schema says of a key.
    pub(crate) key_pattern: &'static str,
}

/// What `Map` reads: keys and values in the order of the file.
pub(crate) type Entries<N, V> = Vec<(At<N>, At<V>)>;

impl<S: Scalar, K: Codec> Codec for Map<S, K> {
    type Value = Entries<S::Value, K::Value>;

    fn read(&self, value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self::Value> {
        let Some(keys) = value.get_ref().as_table() else {
            let problem = format!("`{}` is {}", reader.key(), describe(value.get_ref()));
            let example = reader.example_line();
            reader.refuse(value.span(), problem, &example);
            return None;
        };
        let example = reader.example();
        let mut seen = HashSet::new();
        let mut entries: Self::Value = Vec::new();
        for (key, value) in in_order(keys) {
            let text = key.get_ref().as_ref();
            let name = match self.key.parse(Given::Key(text)) {
                Ok(name) => name,
                Err(refusal) => {
                    let expected = self.key.expected(Given::Key(text), "");
                    reader.refuse_value(key.span(), refusal.expecting(expected));
                    continue;
                }
            };
            if !seen.insert(self.key.show(&name).to_ascii_lowercase()) {
                let problem = format!("`{text}` stands twice in `{}`", reader.key());
                reader.refuse(key.span(), problem, "each name once; its case does not matter");
                continue;
            }
            let read = reader.within(text, example, |reader| self.value.read(value, reader));
            let Some(read) = read else { continue };
            let name = At { value: name, place: reader.place(key.span()) };
            entries.push((name, At { value: read, place: reader.place(value.span()) }));
        }
        Some(entries)
    }

    fn write(&self, entries: &Self::Value) -> String {
        let pair = |(name, value): &(At<S::Value>, At<K::Value>)| {
            format!(
                "{} = {}",
                write_key(&self.key.show(&name.value)),
                self.value.write(&value.value)
            )
        };
        braced(entries.iter().map(pair))
    }

    fn schema(&self) -> Json {
        json!({
            "type": "object",
            "propertyNames": { "pattern": self.key_pattern },
            "additionalProperties": self.value.schema(),
        })
    }
}

/// A table within a table.
pub(crate) struct Sub<C: 'static>(pub(crate) &'static Table<dyn Access<C>>);

impl<C: Default> Codec for Sub<C> {
    type Value = C;

    fn read(&self, value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<C> {
        read_table(self.0, value, reader)
    }

    fn write(&self, value: &C) -> String {
        braced(written(self.0, value).into_iter().map(|(name, text)| format!("{name} = {text}")))
    }

    fn schema(&self) -> Json {
        schema::table(self.0)
    }

    fn nested(&self) -> Vec<Meaning> {
        meanings(self.0)
    }
}

/// A table, or a single value that stands for a table with this one key.
pub(crate) struct Short<C: 'static, S: Scalar> {
    pub(crate) one: S,
    pub(crate) get: fn(&C) -> Option<&S::Value>,
    pub(crate) put: fn(&mut C, At<S::Value>),
    pub(crate) table: &'static Table<dyn Access<C>>,
}

impl<C: Default, S: Scalar> Codec for Short<C, S> {
    type Value = C;

    fn read(&self, value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<C> {
        if value.get_ref().is_table() {
            return read_table(self.table, value, reader);
        }
        let place = reader.place(value.span());
        let one = Codec::read(&self.one, value, reader)?;
        let mut to = C::default();
        (self.put)(&mut to, At { value: one, place });
        Some(to)
    }

    fn write(&self, value: &C) -> String {
        let said = written(self.table, value);
        match (self.get)(value) {
            Some(one) if said.len() == 1 => Codec::write(&self.one, one),
            _ => braced(said.into_iter().map(|(name, text)| format!("{name} = {text}"))),
        }
    }

    fn schema(&self) -> Json {
        json!({ "anyOf": [Codec::schema(&self.one), schema::table(self.table)] })
    }

    fn nested(&self) -> Vec<Meaning> {
        meanings(self.table)
    }
}

/// Tables in an array: `[[name]]`.
pub(crate) struct Tables<C: 'static>(pub(crate) &'static Table<dyn Access<C>>);

impl<C: Default> Codec for Tables<C> {
    type Value = Vec<At<C>>;

    fn read(&self, value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Vec<At<C>>> {
        let expected = format!("a table that starts with {}", self.0.label);
        let name = reader.key().to_owned();
        let Some(array) = value.get_ref().as_array() else {
            let problem = format!("`{name}` is {}", describe(value.get_ref()));
            reader.refuse(value.span(), problem, &expected);
            return None;
        };
        if array.is_empty() {
            reader.refuse(value.span(), format!("`{name}` is empty"), &expected);
        }
        let mut tables = Vec::new();
        for element in array.iter() {
            if !element.get_ref().is_table() {
                let problem = format!("`{name}` has {} in it", describe(element.get_ref()));
                reader.refuse(element.span(), problem, &expected);
                continue;
            }
            let place = reader.place(element.span());
            let read = reader.table_at(&place, |reader| read_table(self.0, element, reader));
            tables.extend(read.map(|value| At { value, place }));
        }
        Some(tables)
    }

    fn write(&self, values: &Vec<At<C>>) -> String {
        let table = |at: &At<C>| Sub(self.0).write(&at.value);
        format!("[{}]", values.iter().map(table).collect::<Vec<_>>().join(", "))
    }

    fn schema(&self) -> Json {
        json!({ "type": "array", "minItems": 1, "items": schema::table(self.0) })
    }
}

/// Tables by name: `[upstream.NAME]`.
pub(crate) struct Named<C: 'static, S> {
    pub(crate) name: S,
    pub(crate) table: &'static Table<dyn Access<C>>,
    pub(crate) key_pattern: &'static str,
}

impl<C: Default, S: Scalar<Value = String>> Codec for Named<C, S> {
    type Value = Entries<String, C>;

    fn read(&self, value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self::Value> {
        let Some(keys) = value.get_ref().as_table() else {
            let problem = format!("`{}` is {}", reader.key(), describe(value.get_ref()));
            let expected = format!("a table that starts with {}", self.table.label);
            reader.refuse(value.span(), problem, &expected);
            return None;
        };
        let mut entries = Vec::new();
        for (key, value) in in_order(keys) {
            let text = key.get_ref().as_ref();
            let name = match self.name.parse(Given::Key(text)) {
                Ok(name) => name,
                Err(refusal) => {
                    let expected = self.name.expected(Given::Key(text), "");
                    reader.refuse_value(key.span(), refusal.expecting(expected));
                    continue;
                }
            };
            let place = reader.place(key.span());
            let read = reader.table_at(&place, |reader| {
                reader.within(text, "", |reader| read_table(self.table, value, reader))
            });
            let Some(read) = read else { continue };
            let name = At { value: name, place };
            entries.push((name, At { value: read, place: reader.place(value.span()) }));
        }
        Some(entries)
    }

    fn write(&self, entries: &Self::Value) -> String {
        let pair = |(name, table): &(At<String>, At<C>)| {
            format!("{} = {}", write_key(&name.value), Sub(self.table).write(&table.value))
        };
        braced(entries.iter().map(pair))
    }

    fn schema(&self) -> Json {
        json!({
            "type": "object",
            "propertyNames": { "pattern": self.key_pattern },
            "additionalProperties": schema::table(self.table),
        })
    }
}

/// The entries of a table in the order of the file; the table itself is in that of the names.
fn in_order<'t, 'i>(
    keys: &'t DeTable<'i>,
) -> Vec<(&'t Spanned<std::borrow::Cow<'i, str>>, &'t Spanned<DeValue<'i>>)> {
    let mut all: Vec<_> = keys.iter().collect();
    all.sort_by_key(|(key, _)| key.span().start);
    all
}

fn braced(pairs: impl Iterator<Item = String>) -> String {
    let pairs: Vec<String> = pairs.collect();
    if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) }
}

/// A key as TOML, in quotes where it needs them.
pub(crate) fn write_key(key: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !key.is_empty() && key.bytes().all(bare) { key.to_owned() } else { quote(key) }
}

/// A string as TOML.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
