//! The recipes of docs/internals/recipes can be followed literally.
//!
//! A recipe says before each block of code where it goes: ``New file `PATH`:``, or ``In `PATH`, after `LINE`:`` (also `before` and
//! `in place of`), where the line occurs once in the file. Blocks of `sh` are commands, one in each line, which are run in the
//! repository.
//!
//! The quick test checks the places, so a change of the code that invalidates a recipe shows at once. The other one applies all recipes
//! to one copy of the repository and runs their commands: `make validate-recipes`.

use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FOLDER: &str = "docs/internals/recipes";

/// Recipes whose blocks are extracts to read. A paragraph before each says of which file: ``Extract of `PATH`:``.
const TO_READ: [&str; 1] = ["python-bindings.md"];

#[derive(Debug)]
struct Recipe {
    /// The name of its file.
    name: String,
    edits: Vec<Edit>,
    commands: Vec<String>,
}

#[derive(Debug)]
struct Edit {
    path: String,
    place: Place,
    text: String,
}

#[derive(Debug)]
enum Place {
    NewFile,
    After(String),
    Before(String),
    InPlaceOf(String),
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().expect("the repository is there")
}

fn recipes() -> Vec<Recipe> {
    let entries = fs::read_dir(root().join(FOLDER)).expect("there are recipes");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().expect("a file has a name").to_string_lossy().into_owned();
    let followed = paths.iter().filter(|path| !TO_READ.contains(&&*name(path)));
    followed
        .map(|path| {
            let text = fs::read_to_string(path).expect("a recipe is text");
            parse(name(path), &text).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
        })
        .collect()
}

/// Reads the blocks of a recipe.
fn parse(name: String, text: &str) -> Result<Recipe, String> {
    let mut recipe = Recipe { name, edits: Vec::new(), commands: Vec::new() };
    // The last paragraph before a block, on one line.
    let (mut before, mut is_over) = (String::new(), true);
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            if is_over && !line.is_empty() {
                before.clear();
            } else if !line.is_empty() {
                before.push(' ');
            }
            before += line;
            is_over = line.is_empty();
            continue;
        };
        let mut block = String::new();
        loop {
            let (_, line) = lines.next().ok_or(format!("line {}: the block has no end", at + 1))?;
            if line == "```" {
                break;
            }
            block += line;
            block.push('\n');
        }
        if language == "sh" {
            let is_command = |line: &&str| !line.is_empty() && !line.starts_with('#');
            recipe.commands.extend(block.lines().filter(is_command).map(str::to_owned));
        } else {
            let (path, place) = place(&before)
                .ok_or(format!("line {}: {before:?} does not say where the block goes", at + 1))?;
            recipe.edits.push(Edit { path, place, text: block });
        }
        (before, is_over) = (String::new(), true);
    }
    Ok(recipe)
}

/// Reads the paragraph that names the place of a block.
fn place(line: &str) -> Option<(String, Place)> {
    let new_file = Regex::new(r"^New file `([^`]+)`:$").expect("a regular expression");
    if let Some(found) = new_file.captures(line) {
        return Some((found[1].to_owned(), Place::NewFile));
    }
    let edit = Regex::new(r"^In `([^`]+)`, (after|before|in place of) (?:`` (.+) ``|``(.+)``|`([^`]+)`):$");
    let found = edit.expect("a regular expression").captures(line)?;
    let anchor = (3..=5).find_map(|group| found.get(group))?.as_str().to_owned();
    let place = match &found[2] {
        "after" => Place::After(anchor),
        "before" => Place::Before(anchor),
        _ => Place::InPlaceOf(anchor),
    };
    Some((found[1].to_owned(), place))
}

impl Edit {
    /// Returns the file as this edit leaves it. `read` returns the text of a file, if there is one.
    fn edited(&self, read: impl Fn(&str) -> Option<String>) -> Result<String, String> {
        let text = read(&self.path);
        let anchor = match &self.place {
            Place::NewFile if text.is_some() => return Err(format!("{} is there already", self.path)),
            Place::NewFile => return Ok(self.text.clone()),
            Place::After(anchor) | Place::Before(anchor) | Place::InPlaceOf(anchor) => anchor,
        };
        let text = text.ok_or_else(|| format!("there is no file {}", self.path))?;
        let lines: Vec<&str> = text.lines().collect();
        let places: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].trim() == anchor.trim()).collect();
        let [at] = places[..] else {
            return Err(format!("{}: the line {anchor:?} should be there once: {}", self.path, places.len()));
        };
        let (end, begin) = match self.place {
            Place::After(_) => (at + 1, at + 1),
            Place::Before(_) => (at, at),
            Place::NewFile | Place::InPlaceOf(_) => (at, at + 1),
        };
        let mut edited = String::new();
        lines[..end].iter().for_each(|line| _ = writeln!(edited, "{line}"));
        edited += &self.text;
        lines[begin..].iter().for_each(|line| _ = writeln!(edited, "{line}"));
        Ok(edited)
    }
}

/// Returns the files that the edits of all recipes change, as they leave them, and the errors in edits.
fn follow(recipes: &[Recipe]) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut edited, mut problems) = (BTreeMap::new(), Vec::new());
    for Recipe { name, edits, .. } in recipes {
        for edit in edits {
            let in_repository = || fs::read_to_string(root().join(&edit.path)).ok();
            match edit.edited(|path| edited.get(path).cloned().or_else(in_repository)) {
                Ok(text) => _ = edited.insert(edit.path.clone(), text),
                Err(why) => problems.push(format!("{name}: {why}")),
            }
        }
    }
    (edited, problems)
}

#[test]
fn every_block_has_its_place() {
    let recipes = recipes();
    assert!(recipes.len() >= 5, "an AQM, a transport, a source, a control and a column: {recipes:?}");
    for Recipe { name, edits, commands } in &recipes {
        assert!(!edits.is_empty() && !commands.is_empty(), "{name}: code and commands");
    }
    let (edited, problems) = follow(&recipes);
    assert!(problems.is_empty(), "recipes of {FOLDER} cannot be followed:\n{}", problems.join("\n"));
    let is_rust = |path: &str| Path::new(path).extension().is_some_and(|extension| extension == "rs");
    for (path, text) in edited.iter().filter(|(path, _)| is_rust(path)) {
        assert_eq!(*text, formatted(text), "{path}, as the recipes leave it, is not formatted");
    }
}

/// Returns the text of a file of Rust as `cargo fmt` formats it.
fn formatted(text: &str) -> String {
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", "2024", "--quiet", "--config-path"]).arg(root());
    let mut process =
        rustfmt.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("rustfmt comes with Rust");
    process.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("rustfmt reads");
    String::from_utf8(process.wait_with_output().expect("rustfmt ends").stdout).expect("it writes text")
}

#[test]
fn every_recipe_is_linked_from_both_pages() {
    for page in ["ARCHITECTURE.md", "docs/internals/extending.md"] {
        let text = fs::read_to_string(root().join(page)).expect("the page is there");
        for name in recipes().iter().map(|recipe| &*recipe.name).chain(TO_READ) {
            assert!(text.contains(&format!("recipes/{name})")), "{page} should have a link to {name}");
        }
    }
}

/// Returns the problems of a recipe to read: blocks that name no file, or that do not occur in it. `read` returns the text of a file.
fn wrong_extracts(text: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let block =
        Regex::new(r"(?:Extract of `([^`]+)`:\n\n)?```\w+\n((?s:.*?))```\n").expect("a regular expression");
    let problem = |found: regex_lite::Captures<'_>| {
        let extract = &found[2];
        let Some(path) = found.get(1) else { return Some(format!("no file is named: {extract}")) };
        let occurs = read(path.as_str()).is_some_and(|file| file.contains(extract));
        (!occurs).then(|| format!("{} does not contain: {extract}", path.as_str()))
    };
    block.captures_iter(text).filter_map(problem).collect()
}

/// Code that a recipe shows is the code of today.
#[test]
fn extracts_occur_in_the_files_that_they_name() {
    let file = |path: &str| fs::read_to_string(root().join(path)).ok();
    for name in TO_READ {
        let text = file(&format!("{FOLDER}/{name}")).expect("the recipe is there");
        assert!(text.contains("\nExtract of `"), "{name} has extracts");
        assert_eq!(wrong_extracts(&text, file), [""; 0], "{name}");
    }
    let list = |path: &str| (path == "list").then(|| "one\n  two\n".to_owned());
    assert!(wrong_extracts("Extract of `list`:\n\n```rust\n  two\n```\n", list).is_empty());
    for wrong in [
        "Extract of `list`:\n\n```rust\ntwo\nthree\n```\n",
        "Extract of `nothing`:\n\n```rust\n  two\n```\n",
        "As follows:\n\n```rust\n  two\n```\n",
    ] {
        assert_eq!(wrong_extracts(wrong, list).len(), 1, "{wrong}");
    }
}

#[test]
fn a_block_without_a_place_is_refused() {
    let text = "Some words\n\n```rust\nfn a() {}\n```\n";
    let why = parse("a.md".to_owned(), text).unwrap_err();
    assert!(why.starts_with("line 3: \"Some words\" does not say where"), "{why}");
    assert!(parse("a.md".to_owned(), "```sh\nls\n").unwrap_err().contains("has no end"));
}

#[test]
fn blocks_go_where_they_say() {
    let list = "one\n  two\ntwo and a half\nthree\nthree\n";
    let edited = |line: &str| {
        let (path, place) = place(line).expect("the line is a place");
        let edit = Edit { path, place, text: "new\n".to_owned() };
        edit.edited(|path| (path == "list").then(|| list.to_owned()))
    };
    let rest = "two and a half\nthree\nthree\n";
    assert_eq!(edited("In `list`, after `two`:").unwrap(), format!("one\n  two\nnew\n{rest}"));
    assert_eq!(edited("In `list`, before `` two ``:").unwrap(), format!("one\nnew\n  two\n{rest}"));
    assert_eq!(edited("In `list`, in place of `two`:").unwrap(), format!("one\nnew\n{rest}"));
    assert_eq!(edited("New file `other`:").unwrap(), "new\n");
    let wrong = |line| edited(line).unwrap_err();
    assert_eq!(wrong("New file `list`:"), "list is there already");
    assert_eq!(wrong("In `other`, after `two`:"), "there is no file other");
    assert_eq!(wrong("In `list`, after `three`:"), "list: the line \"three\" should be there once: 2");
    assert_eq!(wrong("In `list`, after `four`:"), "list: the line \"four\" should be there once: 0");
}

/// Returns the names of the repository's files, tracked ones and new ones, but nothing that is ignored.
fn names() -> BTreeSet<String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git can be run");
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).expect("our names are text");
    // A file that is tracked may have been removed.
    let is_there = |name: &&str| root().join(name).symlink_metadata().is_ok();
    names.split_terminator('\0').filter(is_there).map(str::to_owned).collect()
}

/// Makes a folder a copy of the repository with some files changed. Files of an earlier copy that have not changed are
/// left alone, so that Cargo builds only what differs.
fn copy(to: &Path, edited: &BTreeMap<String, String>) {
    let names = names();
    remove_others(to, to, &|name| names.contains(name) || edited.contains_key(name));
    for name in names.iter().chain(edited.keys()) {
        let (from, to) = (root().join(name), to.join(name));
        fs::create_dir_all(to.parent().expect("a file lies in a folder")).expect("the folder can be made");
        if from.is_symlink() {
            let target = fs::read_link(&from).expect("a link has a target");
            if fs::read_link(&to).ok().as_ref() != Some(&target) {
                std::os::unix::fs::symlink(target, &to).expect("the link can be made");
            }
            continue;
        }
        let text = match edited.get(name) {
            Some(text) => text.clone().into_bytes(),
            None => fs::read(&from).unwrap_or_else(|error| panic!("{name}: {error}")),
        };
        if fs::read(&to).ok().as_ref() != Some(&text) {
            fs::write(&to, text).unwrap_or_else(|error| panic!("{name}: {error}"));
            if let Ok(about) = fs::metadata(&from) {
                fs::set_permissions(&to, about.permissions()).expect("the file is ours");
            }
        }
    }
}

/// Removes the files of a copy that do not belong to it.
fn remove_others(folder: &Path, copy: &Path, belongs: &dyn Fn(&str) -> bool) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.expect("it can be listed").path()) {
        let name = path.strip_prefix(copy).expect("it lies in the copy").to_string_lossy().into_owned();
        if path.is_dir() && !path.is_symlink() {
            remove_others(&path, copy, belongs);
        } else if !belongs(&name) {
            fs::remove_file(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

/// Runs a command in a folder, with build results in another. Returns its output if it fails.
fn run(command: &str, folder: &Path, target: &Path) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{command} 2>&1")]).current_dir(folder).stdin(Stdio::null());
    // Cargo describes the package of this test in the environment; those commands have packages of their own.
    let described = std::env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_")
            || name.starts_with("CARGO_MANIFEST_")
            || name.starts_with("CARGO_BIN_")
    });
    described.for_each(|name| _ = shell.env_remove(name));
    let output = shell.env("CARGO_TARGET_DIR", target).output().expect("sh can be run");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(()) } else { Err(printed) }
}

#[test]
#[ignore = "compiles most of the workspace, for ten minutes or more: make validate-recipes"]
fn the_recipes_can_be_followed() {
    let work = root().join("target/recipes");
    let (folder, target) = (work.join("cutline"), work.join("target"));
    let recipes = recipes();
    let (edited, problems) = follow(&recipes);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    copy(&folder, &edited);
    let mut order: Vec<&str> = Vec::new();
    let mut of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Recipe { name, commands, .. } in &recipes {
        for command in commands {
            if !of.contains_key(&**command) {
                order.push(command);
            }
            of.entry(command).or_default().push(name);
        }
    }
    for command in order {
        println!("{command}");
        if let Err(printed) = run(command, &folder, &target) {
            let last: Vec<&str> = printed.lines().rev().take(150).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            panic!(
                "{}: `{command}` fails in {}:\n{}",
                of[command].join(", "),
                folder.display(),
                last.join("\n")
            );
        }
    }
}
