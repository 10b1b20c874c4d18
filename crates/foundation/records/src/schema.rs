//! The JSON Schema of a document.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The JSON Schema (2020-12) of a document as it is written. Objects have the properties that are listed, and no others.
pub fn schema_of<T: JsonSchema>() -> Schema {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    RecursiveTransform(close).transform(&mut schema);
    schema
}

/// Forbids other properties in an object that lists its own.
fn close(schema: &mut Schema) {
    if schema.get("properties").is_some() {
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;
    use serde_json::json;

    #[derive(Serialize, JsonSchema)]
    struct Inner {
        count: u64,
    }

    #[derive(Serialize, JsonSchema)]
    struct Outer {
        /// One of them.
        inner: Inner,
        #[serde(flatten)]
        flat: Inner,
        #[serde(skip_serializing_if = "Option::is_none")]
        maybe: Option<u64>,
        null: Option<u64>,
    }

    #[test]
    fn every_object_is_complete_and_closed() {
        let schema = schema_of::<Outer>().to_value();
        assert_eq!(schema["required"], json!(["inner", "count", "null"]));
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["$defs"]["Inner"]["additionalProperties"], json!(false));
        assert_eq!(schema["properties"]["inner"]["description"], json!("One of them."));
    }
}
