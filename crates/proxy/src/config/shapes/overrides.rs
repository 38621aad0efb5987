//! Some of the settings of a group, said elsewhere than in the group.

use serde_json::Value as Json;
use toml::Spanned;
use toml::de::DeValue;

use super::braced;
use crate::config::reader::{Reader, describe};
use crate::config::schema;
use crate::config::table::{At, Codec, Field, Place, Setting, Table, check_rules, read_keys};

/// Some of the settings of a group, to go before what the group says.
#[derive(Clone, Debug)]
pub(crate) struct Overrides<C: 'static> {
    /// Holds those of `given`.
    values: C,
    /// Keys and where their values stand.
    given: Vec<(&'static str, Place)>,
}

impl<C: Clone> Overrides<C> {
    /// `base` with what is said here.
    pub(crate) fn over(&self, table: &Table<dyn Setting<C>>, base: &C) -> C {
        let mut all = base.clone();
        for field in table.fields {
            if self.place(field.name).is_some() {
                field.access.copy(&self.values, &mut all);
            }
        }
        all
    }

    /// Where the value of `key` stands.
    pub(crate) fn place(&self, key: &str) -> Option<&Place> {
        self.given.iter().find(|(name, _)| *name == key).map(|(_, place)| place)
    }

    /// What `values` says other than `base`; `None`: nothing.
    pub(crate) fn between(table: &Table<dyn Setting<C>>, base: &C, values: &C) -> Option<At<Self>> {
        let differs = |field: &&Field<dyn Setting<C>>| !field.access.is_same(base, values);
        let fields = table.fields.iter().filter(differs);
        let given: Vec<_> = fields.map(|field| (field.name, At::nowhere(()).place)).collect();
        (!given.is_empty()).then(|| At::nowhere(Self { values: values.clone(), given }))
    }
}

/// Reads [`Overrides`].
pub(crate) struct Subset<C: 'static> {
    pub(crate) table: &'static Table<dyn Setting<C>>,
    /// Those that may be said here; `None`: all.
    pub(crate) only: Option<&'static [&'static str]>,
    /// How it is written here.
    pub(crate) label: &'static str,
}

impl<C: Default + Clone> Codec for Subset<C> {
    type Value = Overrides<C>;

    fn read(&self, value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Overrides<C>> {
        let label = reader.label(self.label);
        let Some(keys) = value.get_ref().as_table() else {
            let problem = format!("`{}` is {}", reader.key(), describe(value.get_ref()));
            let expected = reader.example_of_table(&label);
            reader.refuse(value.span(), problem, &expected);
            return None;
        };
        let (mut values, mut given) = (C::default(), Vec::new());
        let on_key = |field: &'static Field<dyn Setting<C>>, place| given.push((field.name, place));
        read_keys(self.table, &label, self.only, keys, &mut values, reader, on_key);
        check_rules(self.table, &label, keys, value.span(), reader);
        Some(Overrides { values, given })
    }

    fn write(&self, value: &Overrides<C>) -> String {
        let said = self.table.fields.iter().filter(|field| value.place(field.name).is_some());
        let text = |field: &Field<dyn Setting<C>>| field.access.write(&value.values);
        braced(said.map(|field| format!("{} = {}", field.name, text(field).unwrap_or_default())))
    }

    fn schema(&self) -> Json {
        schema::settings(self.table, self.only)
    }
}
