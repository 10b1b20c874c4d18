//! Documents held against the schemas that `cutline schema` prints.

use jsonschema::Validator;
use serde_json::Value;
use std::process::Command;

/// The schema of a document, as the command prints it.
pub fn schema(name: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_cutline")).args(["schema", name]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Fails if a document of a command is not as its schema says, or if the schema would accept others: for every object in the
/// document, one without each of its properties, and one with another property.
pub fn check(name: &str, document: &Value) {
    let schema = schema(name);
    let validator = jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    let errors: Vec<_> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}");
    for path in objects(document) {
        refuses_others(&validator, document, &path, name);
    }
}

/// Properties that are not in every document.
const OPTIONAL: [&str; 6] = ["flows", "hosts", "ports", "reload", "sieve", "timing"];
/// Objects whose properties are names that others have chosen.
const MAPS: [&str; 7] = ["files", "settings", "parameters", "tsq", "hints", "remark", "other_defaults"];

fn refuses_others(validator: &Validator, document: &Value, path: &str, name: &str) {
    let mut changed = document.clone();
    let object = |changed: &mut Value| changed.pointer_mut(path).unwrap().as_object_mut().unwrap().clone();
    let whole = object(&mut changed);
    for key in whole.keys().filter(|key| !OPTIONAL.contains(&key.as_str())) {
        let mut less = whole.clone();
        less.remove(key);
        *changed.pointer_mut(path).unwrap() = Value::Object(less);
        assert!(!validator.is_valid(&changed), "{name}: accepted without `{key}` in `{path}`");
    }
    let mut more = whole;
    more.insert("another".to_owned(), 1.into());
    *changed.pointer_mut(path).unwrap() = Value::Object(more);
    assert!(!validator.is_valid(&changed), "{name}: accepted with another property in `{path}`");
}

/// The pointers to objects that have fixed properties; of a list only its first member is looked into.
fn objects(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(document, "", &mut found);
    found
}

fn collect(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(properties) => {
            found.push(path.to_owned());
            for (key, value) in properties {
                let is_map = MAPS.contains(&key.as_str()) && value.is_object();
                if !is_map {
                    collect(value, &format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), found);
                }
            }
        }
        Value::Array(values) => {
            if let Some(first) = values.first() {
                collect(first, &format!("{path}/0"), found);
            }
        }
        _ => {}
    }
}
