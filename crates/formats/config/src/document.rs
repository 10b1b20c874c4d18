//! A TOML file with its overrides: parsed, changed before it is read, and quoted in messages.
//!
//! A value that an override or a sweep put in keeps the span it came from, so a message about it points at the command
//! line or the sweep's list, not at the line it replaced.

use crate::json;
use crate::located::Located;
use crate::path::{self, ChangeRule, Setting};
use crate::problem::{Errors, Location, Problem, shorten};
use crate::span::{Source, Span};
use crate::value::{Node, Table, Value};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

/// Returns advice on a table whose header is there a second time, if that is at `span`.
fn twice(text: &str, span: &Span) -> Option<String> {
    let line = text.get(..span.bytes.start).unwrap_or_default().rfind('\n').map_or(0, |newline| newline + 1);
    let header = text[line..].trim_start().strip_prefix('[')?;
    let name = header.split(']').next()?.trim();
    if name.is_empty() || header.starts_with('[') {
        return None;
    }
    let several = match name {
        "sweep" => "; keys that vary together have their own [[sweep.together]]".to_owned(),
        _ if name.contains('.') => String::new(),
        _ => format!("; where several are allowed, each is a [[{name}]]"),
    };
    Some(format!("the table [{name}] is there already: put all its keys under one [{name}]{several}"))
}

/// A whole file with its sources: the file itself first, then one per override.
#[derive(Clone, Debug)]
pub struct Document {
    sources: Arc<Vec<Source>>,
    root: Table,
    named_lists: &'static [&'static str],
    rule: ChangeRule,
}

/// The rule by which a change of a key changes nothing else.
const NO_RULE: ChangeRule = |_, _, _| ();

impl Document {
    /// The document in the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be read or is not TOML.
    pub fn load(path: &Path) -> Result<Self, Errors> {
        let (name, text) = load(path)?;
        Self::parse(&text, &name)
    }

    /// The document in the file at `path`, which is JSON if the name ends with `.json`, else TOML.
    ///
    /// # Errors
    /// When the file cannot be read, or does not have the format of its name.
    pub fn load_toml_or_json(path: &Path) -> Result<Self, Errors> {
        let (name, text) = load(path)?;
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        if is_json { Self::parse_json(&text, &name) } else { Self::parse(&text, &name) }
    }

    /// The document in the TOML file at `path`, read by a function of the caller, such as one that refuses pipes and devices. The function's
    /// error is the reason in the message.
    ///
    /// # Errors
    /// When the file cannot be read or is not TOML.
    pub fn load_with(
        path: &Path,
        read: impl FnOnce(&Path) -> Result<String, String>,
    ) -> Result<Self, Errors> {
        let name = path.display().to_string();
        let text = read(path).map_err(|why| Problem::in_file(&name, format!("cannot be read: {why}")))?;
        Self::parse(&text, &name)
    }

    /// The document in a JSON text, which has the same tree as a TOML file. `name` is the file's name in messages.
    ///
    /// # Errors
    /// When the text is no JSON object, has a name twice in an object, or has null as a value.
    pub fn parse_json(text: &str, name: &str) -> Result<Self, Errors> {
        let sources = Arc::new(vec![Source::file(name, text)]);
        let root = json::parse(&sources)?;
        Ok(Self { sources, root, named_lists: &[], rule: NO_RULE })
    }

    /// The document in a file's text; `name` is the file's name in messages.
    ///
    /// # Errors
    /// Every place at which the text is not TOML.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        let sources = Arc::new(vec![Source::file(name, text)]);
        let (table, errors) = DeTable::parse_recoverable(text);
        if errors.is_empty() {
            let root = Table::from_toml(table.into_inner(), 0);
            return Ok(Self { sources, root, named_lists: &[], rule: NO_RULE });
        }
        let not_toml = |error: &toml::de::Error| {
            let span = Span { source: 0, bytes: error.span().unwrap_or(0..0) };
            let what = twice(text, &span).unwrap_or_else(|| error.message().to_owned());
            Problem::new(&sources, Some(&span), None, format!("this is not TOML: {what}"))
        };
        Err(Errors::new(errors.iter().map(not_toml).collect()))
    }

    /// The same document with the lists of tables in which a path chooses a member by its name: with `flow`, the path
    /// `flow.audio.hint` names a key of the `[[flow]]` whose name is `audio`.
    pub fn with_named_lists(self, named_lists: &'static [&'static str]) -> Self {
        Self { named_lists, ..self }
    }

    /// The same document with a rule for the effect of a new value on the other keys of its table.
    pub fn with_change_rule(self, rule: ChangeRule) -> Self {
        Self { rule, ..self }
    }

    /// Returns the document without a key of the whole file. Places stay those of the file.
    pub fn without(&self, key: &str) -> Self {
        let Self { sources, root, named_lists, rule } = self;
        let others = root.0.iter().filter(|(name, _)| *name != key);
        let root = Table(others.map(|(name, entry)| (name.clone(), entry.clone())).collect());
        Self { sources: Arc::clone(sources), root, named_lists, rule: *rule }
    }

    /// The file's text as it was read, without the overrides.
    pub fn text(&self) -> &str {
        &self.sources[0].text
    }

    /// The file's name in messages.
    pub fn name(&self) -> &str {
        &self.sources[0].name
    }

    /// The table of the whole file.
    pub const fn root(&self) -> &Table {
        &self.root
    }

    /// Sets the key at `path` to a TOML value as the command line gives it. A text that is not a TOML value is a string
    /// without quotes (`15 Mbit/s`).
    ///
    /// # Errors
    /// When the path names no place for a key.
    pub fn set_text(&mut self, path: &str, text: &str) -> Result<(), Errors> {
        self.set_source(path, Source::setting(None, path, text))
    }

    /// As [`Document::set_text`], for a value that another file has at `place`, such as `study.toml:7:3`. Messages name it.
    ///
    /// # Errors
    /// When the path names no place for a key.
    pub fn set_text_from(&mut self, place: &str, path: &str, text: &str) -> Result<(), Errors> {
        self.set_source(path, Source::setting(Some(place), path, text))
    }

    fn set_source(&mut self, path: &str, source: Source) -> Result<(), Errors> {
        let node = self.parse_value(source);
        let span = node.span.clone();
        self.set(path, &span, node)
            .map_err(|why| self.problem(Some(&span), Some(path), format!(": {why}")).into())
    }

    /// Adds a source and parses it as a single value.
    fn parse_value(&mut self, source: Source) -> Node {
        let index = self.sources.len();
        let text = source.text.clone();
        Arc::make_mut(&mut self.sources).push(source);
        if let Ok(value) = DeValue::parse(&text) {
            return Node::from_toml(value, index);
        }
        let span = Span { source: index, bytes: 0..text.len() };
        Node { value: Value::Text(text.trim().to_owned()), span }
    }

    /// Sets the key at a path such as `flow.audio.hint` or `dumbbell.queue.limit`, making the tables on the way. `true`
    /// leaves a table that is there as it is, so that a sweep can switch it off (`false`) and on (`true`). Another `aqm` takes away
    /// those keys of the queue in the file that the new AQM does not have. `key` is where the path was written.
    ///
    /// # Errors
    /// When the path names no place for a key: the reason.
    pub fn set(&mut self, path: &str, key: &Span, node: Node) -> Result<(), String> {
        path::set(&mut self.root, self.named_lists, path, Setting { key, node, rule: self.rule })
    }

    /// The span of the longest part of `path` that exists.
    pub fn locate(&self, path: &str) -> Option<Span> {
        path::locate(&self.root, path)
    }

    /// The text of a span, as it was written.
    pub fn written(&self, span: &Span) -> &str {
        self.sources[span.source].text.get(span.bytes.clone()).unwrap_or_default()
    }

    /// Returns the place of a span's start, as in messages: the file's name, line and column.
    pub fn position(&self, span: &Span) -> String {
        Location::new(&self.sources, span).to_string()
    }

    /// A problem at `span` with the key at the path `key`. The message is the key's name followed by `text`.
    pub fn problem(&self, span: Option<&Span>, key: Option<&str>, text: String) -> Problem {
        Problem::new(&self.sources, span, key.map(str::to_owned), text)
    }

    /// The problem that a value of this document is not allowed although it is of the right kind.
    pub fn refused<T>(&self, value: &Located<T>, why: &str) -> Problem {
        let text = match self.written(&value.span) {
            written if written.is_empty() || written.starts_with('[') => format!(": {why}"),
            written => format!(": value {} is not allowed: {why}", shorten(written)),
        };
        self.problem(Some(&value.span), Some(&value.key), text)
    }

    /// The file's content in one fixed form: keys sorted, comments and the keys in `without` left out. Two files with
    /// the same canonical text have the same content.
    pub fn canonical(&self, without: &[&str]) -> String {
        let mut text = String::new();
        for (key, entry) in self.root.0.iter().filter(|(key, _)| !without.contains(&key.as_str())) {
            let _ = writeln!(text, "{key} = {}", entry.node.value.canonical());
        }
        text
    }
}

/// The longest document, bytes. The longest documents written by hand have some ten thousand. An endless file, such as
/// `/dev/zero`, is refused there.
const LONGEST: u64 = 16 << 20;

/// The name and the text of a file or a pipe.
fn load(path: &Path) -> Result<(String, String), Errors> {
    let name = path.display().to_string();
    let wrong = |why: String| Problem::in_file(&name, why);
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text))
        .map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if text.len() as u64 > LONGEST {
        return Err(wrong(format!("is longer than {} MiB", LONGEST >> 20)).into());
    }
    let text = String::from_utf8(text).map_err(|_| wrong("is not UTF-8 text".to_owned()))?;
    Ok((name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        let document = Document::parse(text, "x.toml").expect("the test's own text is TOML");
        document.with_named_lists(&["flow", "link"])
    }

    fn set(document: &mut Document, path: &str, value: &str) -> Result<(), String> {
        let node = document.parse_value(Source::file("set", value));
        let span = node.span.clone();
        document.set(path, &span, node)
    }

    #[test]
    fn a_path_reaches_named_members_and_makes_tables() {
        let mut doc = document("[[flow]]\nname = 'a'\n[[flow]]\nname = 'b'\n[[link]]\nfrom='x'\nto='y'\n");
        set(&mut doc, "flow.b.hint", "6").unwrap();
        set(&mut doc, "link.x-y.queue.tsq.l", "40 ms").unwrap();
        let text = doc.canonical(&[]);
        assert_eq!(
            text,
            "flow = [{ name = \"a\" }, { hint = 6, name = \"b\" }]\n\
             link = [{ from = \"x\", queue = { tsq = { l = \"40 ms\" } }, to = \"y\" }]\n"
        );
    }

    #[test]
    fn an_endless_or_unreadable_file_is_refused() {
        let refused = |path: &str| Document::load(Path::new(path)).unwrap_err().to_string();
        assert_eq!(refused("/dev/zero"), "/dev/zero: is longer than 16 MiB");
        assert!(refused("/nosuch").starts_with("/nosuch: cannot be read: No such file"));
    }

    #[test]
    fn a_table_can_be_switched_off_and_on() {
        let mut doc = document("[queue]\ntsq = { bits = 4 }\n");
        set(&mut doc, "queue.tsq", "true").unwrap();
        assert_eq!(doc.canonical(&[]), "queue = { tsq = { bits = 4 } }\n");
        set(&mut doc, "queue.tsq", "false").unwrap();
        assert_eq!(doc.canonical(&[]), "queue = { tsq = false }\n");
    }

    #[test]
    fn an_error_of_a_path_names_the_missing_part() {
        let mut doc = document("name = 'n'\n[[flow]]\nname = 'audio'\n");
        let mut why = |path| set(&mut doc, path, "1").unwrap_err();
        assert_eq!(why("flow.audoi.hint"), "there is no flow \"audoi\", did you mean \"audio\"?");
        assert_eq!(why("flow.audio"), "it names a whole flow: name one of its keys, such as flow.audio.KEY");
        assert_eq!(why("name.x"), "name is \"n\", which has no keys");
        assert_eq!(why("link.a.rate"), "the file has no [[link]]");
        assert_eq!(why("a..b"), "a path is names joined by dots, such as flow.audio.hint");
    }

    #[test]
    fn canonical_text_forgets_order_and_comments() {
        let one = document("b = 2 # two\na = [1, 0x10]\n");
        let two = document("a = [1, 16]\n\nb = 2\n");
        assert_eq!(one.canonical(&[]), two.canonical(&[]));
        assert_eq!(one.canonical(&["a"]), "b = 2\n");
    }

    #[test]
    fn a_span_is_found_by_path_or_index() {
        let doc = document("[[flow]]\nname = 'a'\n[[flow]]\nname = 'b'\nhint = 7\n");
        let text = |path: &str| doc.written(&doc.locate(path).unwrap()).to_owned();
        assert_eq!(text("flow.b.hint"), "7");
        assert_eq!(text("flow[2].hint"), "7");
        assert_eq!(text("flow.b.app.rate"), "[[flow]]");
        assert!(doc.locate("dumbbell").is_none());
    }
}
