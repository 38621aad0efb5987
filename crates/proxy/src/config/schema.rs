//! The JSON schema of the file (draft 2020-12), for editors.

use serde_json::{Map, Value as Json, json};

use super::file::ROOT;
use super::table::{Access, Rule, Setting, Table};

/// The schema of the configuration file, made from the tables that read it.
pub fn schema() -> Json {
    let mut schema = table(&ROOT);
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of baton",
        "$defs": { "environment": {
            "type": "string",
            "pattern": "\\$\\{",
            "description": "A text with ${NAME} or ${NAME:-default}, put in from the environment.",
        } },
    });
    if let (Json::Object(to), Json::Object(from)) = (&mut schema, head) {
        to.extend(from);
    }
    schema
}

/// `schema`, or a string that the environment completes.
pub(crate) fn or_environment(schema: Json) -> Json {
    if schema == json!({ "type": "string" }) {
        return schema;
    }
    json!({ "anyOf": [schema, { "$ref": "#/$defs/environment" }] })
}

/// The schema of a table with the keys that `table` has.
pub(crate) fn table<C>(table: &Table<dyn Access<C>>) -> Json {
    let mut properties = Map::new();
    for field in table.fields {
        let mut key = described(field.access.schema(), field.doc);
        let is_toml = field.example.trim_start_matches("# ");
        if let (Json::Object(key), Some(example)) = (&mut key, example(is_toml)) {
            key.insert("examples".to_owned(), json!([example]));
        }
        properties.insert(field.name.to_owned(), key);
    }
    let mut schema = object(table.doc, properties);
    let required = |names: &[&str]| json!({ "required": names });
    let mut all = Vec::new();
    for rule in table.rules {
        match rule {
            Rule::Required(names) => {
                schema.insert("required".to_owned(), json!(names));
            }
            Rule::ExactlyOne(names) => {
                let each: Vec<Json> = names.iter().map(|name| required(&[name])).collect();
                all.push(json!({ "oneOf": each }));
            }
            Rule::AtMostOne(names) => {
                for (index, one) in names.iter().enumerate() {
                    for other in &names[index + 1..] {
                        all.push(json!({ "not": required(&[one, other]) }));
                    }
                }
            }
            Rule::Needs(name, other, _) => all.push(json!({
                "if": required(&[name]),
                "then": required(&[other]),
            })),
        }
    }
    if !all.is_empty() {
        schema.insert("allOf".to_owned(), Json::Array(all));
    }
    Json::Object(schema)
}

/// The schema of some settings; `only`: as in `Subset`.
pub(crate) fn settings<C: Default>(
    table: &Table<dyn Setting<C>>,
    only: Option<&[&'static str]>,
) -> Json {
    let mut properties = Map::new();
    for field in table.fields.iter().filter(|field| only.is_none_or(|o| o.contains(&field.name))) {
        let mut key = described(field.access.schema(), field.doc);
        let default = field.access.write(&C::default());
        // What a listener or a route leaves out is that of the whole file.
        if let (Json::Object(key), None, Some(default)) =
            (&mut key, only, default.as_deref().and_then(example))
        {
            key.insert("default".to_owned(), default);
        }
        properties.insert(field.name.to_owned(), key);
    }
    Json::Object(object(table.doc, properties))
}

fn object(doc: &[&str], properties: Map<String, Json>) -> Map<String, Json> {
    let mut schema = Map::new();
    schema.insert("description".to_owned(), json!(joined(doc)));
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Json::Object(properties));
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

/// `schema` with the doc comment of a key, which goes before what a table says of itself.
fn described(mut schema: Json, doc: &[&str]) -> Json {
    if let Json::Object(schema) = &mut schema {
        schema.insert("description".to_owned(), json!(joined(doc)));
    }
    schema
}

fn joined(doc: &[&str]) -> String {
    doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// A value in TOML as JSON.
fn example(toml: &str) -> Option<Json> {
    let document: toml::Table = toml::from_str(&format!("value = {toml}")).ok()?;
    serde_json::to_value(document.get("value")?).ok()
}
