//! Records: structs whose fields are data, too.

use crate::description::Description;
use serde::Serialize;
use serde_json::{Number, Value};

/// Kind of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A number that only grows from the start of counting: a difference of two readings is that of an interval.
    Counter,
    /// A number as it is at the time of reading.
    Gauge,
    /// Counts by buckets, as [`BucketCounts`](crate::BucketCounts): each grows like a counter.
    Histogram,
    /// The name or address that identifies the record.
    Label,
    /// Anything else, such as records inside it.
    Part,
}

/// A field of a record of type `R`.
pub struct Field<R> {
    /// Its description.
    pub about: Description,
    /// Kind of the value.
    pub kind: FieldKind,
    read: fn(&R) -> Value,
}

/// A struct that [`record!`](crate::record!) has declared.
pub trait Record: Sized + 'static {
    /// Returns the fields in order.
    fn fields() -> Vec<Field<Self>>;
}

impl<R> Field<R> {
    /// A counter.
    pub fn counter(description: [&'static str; 3], read: fn(&R) -> Value) -> Self {
        Self::new(FieldKind::Counter, description, read)
    }

    /// A gauge.
    pub fn gauge(description: [&'static str; 3], read: fn(&R) -> Value) -> Self {
        Self::new(FieldKind::Gauge, description, read)
    }

    /// A histogram.
    pub fn histogram(description: [&'static str; 3], read: fn(&R) -> Value) -> Self {
        Self::new(FieldKind::Histogram, description, read)
    }

    /// A label.
    pub fn label(description: [&'static str; 3], read: fn(&R) -> Value) -> Self {
        Self::new(FieldKind::Label, description, read)
    }

    /// A part.
    pub fn part(description: [&'static str; 3], read: fn(&R) -> Value) -> Self {
        Self::new(FieldKind::Part, description, read)
    }

    const fn new(kind: FieldKind, description: [&'static str; 3], read: fn(&R) -> Value) -> Self {
        Self { about: Description::new(description), kind, read }
    }

    /// Makes it a field that printed tables show.
    pub fn shown(self, title: &'static str, scale: f64) -> Self {
        Self { about: self.about.shown(title, scale), ..self }
    }

    /// The value in the document of a record.
    pub fn value(&self, record: &R) -> Value {
        (self.read)(record)
    }

    /// The numbers in the value, each with its path below the field: none for a number itself, `packets` and `bytes` for a field that
    /// is counted in both. A value that was not measured has none.
    pub fn numbers(&self, record: &R) -> Vec<(Vec<String>, Number)> {
        let mut found = Vec::new();
        collect(&self.value(record), &mut Vec::new(), &mut found);
        found
    }
}

/// Adds the numbers of a value, which is found under `path`.
fn collect(value: &Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, Number)>) {
    let mut below = |name: String, value: &Value| {
        path.push(name);
        collect(value, path, found);
        path.pop();
    };
    match value {
        Value::Number(number) => found.push((path.clone(), number.clone())),
        Value::Object(values) => values.iter().for_each(|(name, value)| below(name.clone(), value)),
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(at, value)| below(at.to_string(), value));
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The JSON of a field.
pub fn value(field: &impl Serialize) -> Value {
    serde_json::to_value(field).expect("fields have text keys only")
}

/// Declares records with their fields: `name: type, kind(unit), meaning;`. The kind is `counter`, `gauge`, `histogram`, `label` or
/// `part`; the unit may be left out. `as "name"` behind the field's name gives it another name in documents. The meaning may be followed
/// by `shown(title)` or `shown(title, scale)` for a field that printed tables show.
///
/// The crate that declares a record depends on `serde` and `schemars`. Where schemas are a feature of that crate, named `schema`, the list
/// begins with `schema is a feature;`.
#[macro_export]
macro_rules! record {
    (schema is a feature; $($records:tt)+) => {
        $crate::record_when! { (feature = "schema") $($records)+ }
    };
    ($($records:tt)+) => {
        $crate::record_when! { (all()) $($records)+ }
    };
}

/// The records of [`record!`](crate::record!), whose schemas depend on a condition.
#[doc(hidden)]
#[macro_export]
macro_rules! record_when {
    (($has_schema:meta) $(
        $(#[$of_record:meta])*
        pub struct $name:ident {
            $(
                $(#[$of_field:meta])*
                $field:ident $(as $renamed:literal)?: $type:ty, $kind:ident $(($unit:literal))?, $meaning:literal
                    $(, shown($title:literal $(, $scale:literal)?))?;
            )+
        }
    )+) => {$(
        #[derive(Clone, Debug, Default, PartialEq, ::serde::Serialize)]
        #[cfg_attr($has_schema, derive(::schemars::JsonSchema))]
        $(#[$of_record])*
        pub struct $name {
            $(
                #[doc = $meaning]
                $(#[cfg_attr($has_schema, schemars(extend("x-unit" = $unit, "x-kind" = stringify!($kind))))])?
                $(#[serde(rename = $renamed)])?
                $(#[$of_field])*
                pub $field: $type,
            )+
        }

        impl $crate::Record for $name {
            fn fields() -> Vec<$crate::Field<Self>> {
                vec![$(
                    $crate::Field::$kind(
                        [[$($renamed,)? stringify!($field)][0], [$($unit,)? "-"][0], $meaning],
                        |record: &Self| $crate::private::value(&record.$field),
                    )$(.shown($title, [$($scale,)? 1.0][0]))?,
                )+]
            }
        }
    )+};
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Heading;
    #[cfg(feature = "schema")]
    use crate::schema_of;
    use serde_json::json;

    record! {
        schema is a feature;

        /// Frames and bytes.
        pub struct Both {
            packets: u64, counter("packets"), "Packets.";
            bytes: u64, counter("B"), "Bytes.";
        }

        /// A port.
        pub struct Port {
            name as "port": String, label, "Its name.";
            sent: Both, counter("packets, B"), "Packets sent.", shown("sent");
            rate_bps: Option<f64>, gauge("bit/s"), "Its rate; null where it has none.", shown("Mbit/s", 1e-6);
            lanes: Vec<u64>, gauge("packets"), "Packets in each lane.";
        }
    }

    #[test]
    fn one_list_gives_fields_document_and_schema() {
        let port = Port { name: "a".into(), rate_bps: Some(2e6), lanes: vec![4, 5], ..Port::default() };
        let fields = Port::fields();
        let names: Vec<_> =
            fields.iter().map(|field| (field.about.name, field.about.unit, field.kind)).collect();
        let expected = [
            ("port", "-", FieldKind::Label),
            ("sent", "packets, B", FieldKind::Counter),
            ("rate_bps", "bit/s", FieldKind::Gauge),
            ("lanes", "packets", FieldKind::Gauge),
        ];
        assert_eq!(names, expected);
        assert_eq!(fields[2].about.heading, Some(Heading { title: "Mbit/s", scale: 1e-6 }));
        let document = json!(port);
        assert!(fields.iter().all(|field| field.value(&port) == document[field.about.name]));
    }

    #[cfg(feature = "schema")]
    #[test]
    fn a_schema_has_units_kinds_and_meanings() {
        let schema = schema_of::<Port>().to_value();
        let of_rate = &schema["properties"]["rate_bps"];
        assert_eq!((&of_rate["x-unit"], &of_rate["x-kind"]), (&json!("bit/s"), &json!("gauge")));
        assert_eq!(of_rate["description"], json!("Its rate; null where it has none."));
        assert_eq!(schema["required"], json!(["port", "sent", "rate_bps", "lanes"]));
    }

    #[test]
    fn every_number_has_its_path() {
        let port = Port { lanes: vec![4, 5], ..Port::default() };
        let numbers: Vec<_> = Port::fields().iter().flat_map(|field| field.numbers(&port)).collect();
        let paths: Vec<_> = numbers.iter().map(|(path, number)| (path.join("."), number.as_u64())).collect();
        let expected = [("bytes", 0), ("packets", 0), ("0", 4), ("1", 5)];
        assert_eq!(paths, expected.map(|(path, number)| (path.to_owned(), Some(number))));
    }
}
