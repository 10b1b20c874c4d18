//! Objects of a MIB module: their names, syntaxes and values, made from the fields of records.

use async_snmp::Value;
use async_snmp::handler::SetTestError;
use cutline_publish::ManagerRequest;
use cutline_records::{Description, Field, FieldKind, Record};
use serde_json::Value as Json;

/// Syntax of an object (SMIv2, RFC 2578 section 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// A number that only grows.
    Counter64,
    /// A number up to 2^32 - 1; a larger one is shown as that.
    Gauge32,
    /// A number up to 2^64 - 1 (RFC 2856).
    Gauge64,
    /// A number that does not change, or identifies.
    Unsigned32,
    /// Text in UTF-8, up to 255 bytes (RFC 3411).
    Text,
    /// `true(1)` or `false(2)` (RFC 2579).
    Truth,
    /// One of named numbers.
    Enumeration(&'static [(&'static str, i32)]),
    /// The syntax that the text of another module states.
    Elsewhere,
}

/// Form of a record's field in a MIB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The form that follows from the field's kind and unit.
    Usual,
    /// A whole number that identifies something, or does not change.
    Number,
    /// Text.
    Text,
    /// A truth value.
    Truth,
    /// Whole seconds.
    Seconds,
    /// One of named numbers; the field holds a name with hyphens in place of capitals.
    Named(&'static [(&'static str, i32)]),
}

/// Definition of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Last arc of its name.
    pub arc: u32,
    /// Its descriptor.
    pub name: String,
    /// Its syntax.
    pub syntax: Syntax,
    /// Its unit; empty without one.
    pub units: &'static str,
    /// Its meaning.
    pub description: String,
}

/// A column of a table of `R`, or a scalar object of `R`.
pub struct MibColumn<R> {
    /// Its definition.
    pub object: Object,
    read: Read<R>,
    write: Option<Write<R>>,
}

/// Reason why a value cannot be set, and the request that sets it otherwise.
pub type Request = Result<ManagerRequest, SetTestError>;
/// Reader of a value that a manager sets in a row.
type Write<R> = Box<dyn Fn(&R, &Value) -> Request + Send + Sync>;

/// Reader of a column's value in a row.
type Read<R> = Box<dyn Fn(&R) -> Option<Value> + Send + Sync>;

/// The longest text, bytes (SnmpAdminString).
const LONGEST_TEXT: usize = 255;

impl<R> MibColumn<R> {
    /// Returns the value in a row; `None` if it has none.
    pub fn value(&self, row: &R) -> Option<Value> {
        (self.read)(row)
    }

    /// Makes it a column that managers may set: `write` returns the request that a value becomes.
    #[must_use]
    pub fn writable(self, write: impl Fn(&R, &Value) -> Request + Send + Sync + 'static) -> Self {
        Self { write: Some(Box::new(write)), ..self }
    }

    /// Returns whether managers may set it.
    pub const fn is_writable(&self) -> bool {
        self.write.is_some()
    }

    /// Returns the request that a value becomes in a row.
    ///
    /// # Errors
    /// When it cannot be set, or the value is not allowed.
    pub fn request(&self, row: &R, value: &Value) -> Request {
        self.write.as_ref().map_or(Err(SetTestError::NotWritable), |write| write(row, value))
    }
}

/// Encoding of a field's number: the syntax, the unit, and the factor.
struct Encoding {
    syntax: Syntax,
    units: &'static str,
    factor: f64,
}

/// Returns the encoding of a number of this kind and unit. SNMP has whole numbers alone, so units are small.
fn usual(kind: FieldKind, unit: &str) -> Encoding {
    let (units, factor) = match unit {
        "s" => ("milliseconds", 1e3),
        "ms" => ("microseconds", 1e3),
        "us" => ("microseconds", 1.0),
        "bit/s" => ("bits per second", 1.0),
        "messages/s" => ("thousandths of a message per second", 1e3),
        "%" => ("parts per million", 1e4),
        "0..1" => ("parts per million", 1e6),
        "B" => ("bytes", 1.0),
        "packets" => ("packets", 1.0),
        "messages" => ("messages", 1.0),
        // The unit is that of a measure: messages/s, ms or per cent.
        "-" if kind == FieldKind::Gauge => ("thousandths", 1e3),
        _ => ("", 1.0),
    };
    let syntax = match kind {
        FieldKind::Counter => Syntax::Counter64,
        _ if matches!(unit, "bit/s" | "B") => Syntax::Gauge64,
        _ => Syntax::Gauge32,
    };
    Encoding { syntax, units, factor }
}

/// Returns the encoding of a field in this form.
fn encoding(about: &Description, kind: FieldKind, form: Form, unit: &str) -> Encoding {
    let plain = |syntax| Encoding { syntax, units: "", factor: 1.0 };
    match form {
        Form::Number => plain(Syntax::Unsigned32),
        Form::Text => plain(Syntax::Text),
        Form::Truth => plain(Syntax::Truth),
        Form::Seconds => Encoding { units: "seconds", ..plain(Syntax::Unsigned32) },
        Form::Named(names) => plain(Syntax::Enumeration(names)),
        Form::Usual if kind == FieldKind::Label => plain(Syntax::Text),
        Form::Usual => {
            debug_assert!(
                matches!(kind, FieldKind::Counter | FieldKind::Gauge),
                "`{}` has no usual form",
                about.name
            );
            usual(kind, unit)
        }
    }
}

/// Returns the columns of a record inside the rows: each with its arc, the path of its field, and its form. A path below a field of
/// packets and bytes has two words, as in `sent.bytes`. The names of the objects begin with `prefix`.
///
/// # Panics
/// When the record has no such field: tables are built at the start, and tests build all of them.
pub fn columns<R: 'static, P: Record>(
    prefix: &str,
    part: fn(&R) -> Option<&P>,
    fields: &[(u32, &'static str, Form)],
) -> Vec<MibColumn<R>> {
    fields.iter().map(|&(arc, path, form)| column(prefix, part, (arc, path, form))).collect()
}

fn column<R: 'static, P: Record>(
    prefix: &str,
    part: fn(&R) -> Option<&P>,
    (arc, path, form): (u32, &'static str, Form),
) -> MibColumn<R> {
    let (name, below) = path.split_once('.').map_or((path, None), |(name, below)| (name, Some(below)));
    let field = P::fields().into_iter().find(|field| field.about.name == name);
    let field = field.unwrap_or_else(|| panic!("there is no field `{name}`"));
    let unit = match below {
        Some("packets") => "packets",
        Some("bytes") => "B",
        _ => field.about.unit,
    };
    let Encoding { syntax, units, factor } = encoding(&field.about, field.kind, form, unit);
    let object = Object {
        arc,
        name: format!("{prefix}{}", descriptor(path, &field)),
        syntax,
        units,
        description: described(field.about.meaning, below),
    };
    let read = move |row: &R| {
        let json = field.value(part(row)?);
        let json = below.map_or(&json, |below| &json[below]);
        value(json, syntax, factor)
    };
    MibColumn { object, read: Box::new(read), write: None }
}

/// Returns a column whose value is not a field of a record.
pub fn computed<R>(
    object: Object,
    read: impl Fn(&R) -> Option<Value> + Send + Sync + 'static,
) -> MibColumn<R> {
    MibColumn { object, read: Box::new(read), write: None }
}

/// Returns the meaning of a field, in a MIB, in which null values have no instance.
fn described(meaning: &str, below: Option<&str>) -> String {
    let meaning = meaning.replace("; null ", "; absent ").replace(" Null ", " Absent ").replace('`', "'");
    match below {
        Some("packets") => format!("{} In packets.", ended(&meaning)),
        Some("bytes") => format!("{} In bytes.", ended(&meaning)),
        _ => meaning,
    }
}

fn ended(meaning: &str) -> String {
    format!("{}.", meaning.trim_end_matches('.'))
}

/// Returns the descriptor of a field without the table's prefix: its words with capitals, without the unit, which another clause states.
fn descriptor<R>(path: &str, field: &Field<R>) -> String {
    let units = ["ms", "us", "s", "bps", "percent"];
    let words: Vec<&str> = path.split(['_', '.']).collect();
    let last_is_unit = words.len() > 1 && field.about.unit != "-" && units.contains(&words[words.len() - 1]);
    let kept = if last_is_unit { &words[..words.len() - 1] } else { &words };
    kept.iter().map(|word| capitalised(word)).collect()
}

/// Returns the word with a capital.
pub fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
}

/// Returns a name with hyphens as a label of an enumeration, such as `sendingHost`.
pub fn label(name: &str) -> String {
    let mut words = name.split(['-', '_']);
    let first = words.next().unwrap_or_default().to_owned();
    first + &words.map(capitalised).collect::<String>()
}

/// Returns the value of a field; `None` if it is null, or a name that the syntax does not have.
fn value(json: &Json, syntax: Syntax, factor: f64) -> Option<Value> {
    match syntax {
        Syntax::Counter64 | Syntax::Gauge64 => Some(Value::Counter64(whole(json, factor)?)),
        Syntax::Gauge32 | Syntax::Unsigned32 => Some(gauge(whole(json, factor)?)),
        Syntax::Text => Some(match json {
            Json::String(text) => self::text(text),
            Json::Number(number) => self::text(&number.to_string()),
            _ => return None,
        }),
        Syntax::Truth => Some(truth(json.as_bool()?)),
        Syntax::Enumeration(names) => {
            let name = label(json.as_str()?);
            names.iter().find(|(known, _)| *known == name).map(|(_, number)| Value::Integer(*number))
        }
        Syntax::Elsewhere => None,
    }
}

/// Returns a number as a gauge; a larger one than it can hold as the largest.
pub fn gauge(number: u64) -> Value {
    Value::Gauge32(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Returns a truth value.
pub const fn truth(is_true: bool) -> Value {
    Value::Integer(if is_true { 1 } else { 2 })
}

/// Returns a text, shortened to the size of an object.
pub fn text(text: &str) -> Value {
    let longest = LONGEST_TEXT.min(text.len());
    let end = (0..=longest).rfind(|end| text.is_char_boundary(*end)).unwrap_or(0);
    Value::OctetString(text.as_bytes()[..end].to_vec().into())
}

/// Returns a number times `factor` as a whole number from 0 on; one that is no number as none.
fn whole(json: &Json, factor: f64) -> Option<u64> {
    match json.as_u64() {
        Some(number) if factor == 1.0 => Some(number),
        _ => json.as_f64().filter(|number| !number.is_nan()).map(|number| (number * factor).round() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_publish::{DirectionRow, ViolationRow};
    use serde_json::json;

    #[test]
    fn an_object_follows_from_its_field() {
        let columns = columns::<DirectionRow, DirectionRow>(
            "cqosDir",
            |row| Some(row),
            &[(1, "throughput_bps", Form::Usual), (2, "gap_ms", Form::Usual), (3, "offered", Form::Usual)],
        );
        let objects: Vec<_> = columns.iter().map(|column| &column.object).collect();
        assert_eq!(objects[0].name, "cqosDirThroughput");
        assert_eq!((objects[0].syntax, objects[0].units), (Syntax::Gauge64, "bits per second"));
        assert!(objects[0].description.ends_with("; absent before the first."), "{:?}", objects[0]);
        let row =
            DirectionRow { throughput_bps: Some(5_000_000_000), gap_ms: Some(1.5), ..Default::default() };
        let values: Vec<_> = columns.iter().map(|column| column.value(&row)).collect();
        let expected = [Some(Value::Counter64(5_000_000_000)), Some(Value::Gauge32(1500)), Some(text(""))];
        assert_eq!(values, expected);
        assert_eq!(columns[0].value(&DirectionRow::default()), None);
    }

    #[test]
    fn numbers_that_do_not_fit_are_the_largest() {
        assert_eq!(value(&json!(1e30), Syntax::Gauge32, 1.0), Some(Value::Gauge32(u32::MAX)));
        assert_eq!(value(&json!(-3.0), Syntax::Counter64, 1.0), Some(Value::Counter64(0)));
        assert_eq!(value(&json!(u64::MAX), Syntax::Counter64, 1.0), Some(Value::Counter64(u64::MAX)));
        assert_eq!(value(&Json::Null, Syntax::Counter64, 1.0), None);
    }

    #[test]
    fn a_long_text_ends_between_two_characters() {
        let long = "ü".repeat(200);
        let Value::OctetString(bytes) = text(&long) else { panic!("no text") };
        assert_eq!(std::str::from_utf8(&bytes).unwrap().chars().count(), 127);
    }

    #[test]
    fn names_are_numbers() {
        const ORIGINS: &[(&str, i32)] = &[("sendingHost", 1), ("network", 2)];
        let column = columns::<ViolationRow, ViolationRow>(
            "x",
            |row| Some(row),
            &[(1, "origin", Form::Named(ORIGINS))],
        );
        let row = ViolationRow { origin: "sending-host".to_owned(), ..ViolationRow::default() };
        assert_eq!(column[0].value(&row), Some(Value::Integer(1)));
        assert_eq!(column[0].value(&ViolationRow::default()), None);
    }
}
