//! Pages of the documentation that are written from the code.

use std::env;
use std::fs;
use std::path::Path;

/// Most characters of a line, except in code and tables.
pub const WIDTH: usize = 100;

/// Checks that a Markdown page of the repository has this text, wrapped. With `CUTLINE_BLESS` set, as by `make bless`, the
/// page is written instead.
///
/// # Panics
/// When the page differs, or cannot be written.
pub fn check_page(path: &Path, text: &str) {
    let page = wrap(text);
    if env::var_os("CUTLINE_BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("a page is in a folder")).expect("the folder is writable");
        fs::write(path, &page).expect("the page is writable");
    }
    let stored = fs::read_to_string(path).unwrap_or_default();
    let differs = stored.lines().zip(page.lines()).find(|(stored, generated)| stored != generated);
    assert!(
        stored == page,
        "{} does not match the code: run `make bless`. The first lines that differ: {differs:?}",
        path.display()
    );
}

/// Wraps the paragraphs and list items of a Markdown text at [`WIDTH`] characters. Code, tables, headings and comments stay.
pub fn wrap(text: &str) -> String {
    let (mut wrapped, mut paragraph, mut is_code) = (String::new(), Vec::new(), false);
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        let is_indented = line.starts_with("    ") && paragraph.is_empty() && item(line).is_none();
        let stays = is_fence || is_code || is_indented || stays_whole(line);
        if stays || item(line).is_some() {
            fill(&mut wrapped, &paragraph);
            paragraph.clear();
        }
        if stays {
            wrapped += line;
            wrapped.push('\n');
        } else {
            paragraph.push(line);
        }
    }
    fill(&mut wrapped, &paragraph);
    wrapped
}

/// Returns the numbers of the lines that are too long although [`wrap`] could break them.
pub fn long_lines(text: &str) -> impl Iterator<Item = usize> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        is_code ^= line.trim_start().starts_with("```");
        let is_long = !is_code && !stays_whole(line) && line.chars().count() > WIDTH;
        (is_long && pieces(&line[item(line).unwrap_or(0)..]).len() > 1).then_some(number + 1)
    })
}

/// Returns whether a line outside of code belongs to no paragraph.
fn stays_whole(line: &str) -> bool {
    let start = line.trim_start();
    start.is_empty() || start.starts_with(['|', '#', '<'])
}

/// Returns the length of the marker of a list item, with the spaces around it.
fn item(line: &str) -> Option<usize> {
    let start = line.trim_start();
    let (marker, _) = start.split_once(' ')?;
    let number =
        marker.strip_suffix('.').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    let is_item = ["-", "*", "+"].contains(&marker) || number && marker.len() > 1;
    is_item.then(|| line.len() - start.len() + marker.len() + 1)
}

/// Appends a paragraph, wrapped.
fn fill(to: &mut String, paragraph: &[&str]) {
    let Some(first) = paragraph.first() else { return };
    let marker = item(first);
    let indent = marker.unwrap_or(first.len() - first.trim_start().len());
    let joined: Vec<_> = paragraph.iter().map(|line| line.trim()).collect();
    let text = joined.join(" ");
    let text = if marker.is_some() { text.split_once(' ').map_or("", |(_, text)| text) } else { &text };
    to.push_str(&first[..indent]);
    let mut column = indent;
    for (number, piece) in pieces(text).iter().enumerate() {
        let length = piece.chars().count();
        if number > 0 && column + 1 + length > WIDTH {
            to.push('\n');
            to.push_str(&" ".repeat(indent));
            column = indent;
        } else if number > 0 {
            to.push(' ');
            column += 1;
        }
        to.push_str(piece);
        column += length;
    }
    to.push('\n');
}

/// Splits a text at the spaces where a line may be broken: not in a link or in code, and not before a word that would begin
/// something else at the beginning of a line.
fn pieces(text: &str) -> Vec<String> {
    let (mut pieces, mut piece) = (Vec::<String>::new(), String::new());
    let (mut is_code, mut link_ends) = (false, 0);
    for (at, letter) in text.char_indices() {
        is_code ^= letter == '`';
        if letter == '[' && !is_code {
            link_ends = link_ends.max(end_of_link(text, at));
        }
        if letter != ' ' || is_code || at < link_ends || begins_a_block(&text[at + 1..]) {
            piece.push(letter);
        } else if !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    pieces.extend((!piece.is_empty()).then_some(piece));
    pieces
}

/// Returns the end of the link that begins at a bracket; the bracket's place if no link does.
fn end_of_link(text: &str, bracket: usize) -> usize {
    let inner = text[bracket + 1..].find("](").map(|at| bracket + 1 + at);
    let inner = inner.filter(|end| !text[bracket + 1..*end].contains('['));
    inner.and_then(|end| text[end..].find(')').map(|at| end + at)).unwrap_or(bracket)
}

/// Returns whether a line that begins with this text would be a list item, a heading, a quotation or a table.
fn begins_a_block(text: &str) -> bool {
    item(text).is_some() || text.starts_with(['#', '>', '|'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_items_are_wrapped() {
        let word = "nine char ".repeat(12);
        let text = format!("# {word}\n{word}\n{word}\n\n- {word}\n  {word}\n| {word} |\n```\n{word}\n```\n");
        let wrapped = wrap(&text);
        let lines: Vec<&str> = wrapped.lines().collect();
        assert_eq!(lines[0], format!("# {word}"));
        assert_eq!((lines[1].len(), lines[2].len()), (99, 99));
        assert!(lines[4].is_empty() && lines[5].starts_with("- nine") && lines[6].starts_with("  char"));
        assert!(
            wrapped.contains(&format!("```\n{word}\n```\n")) && wrapped.contains(&format!("| {word} |\n"))
        );
        assert_eq!(wrap(&wrapped), wrapped, "a wrapped text stays");
    }

    #[test]
    fn tables_code_and_links_may_be_long() {
        let long = "word ".repeat(30);
        let link = format!("- [{long}](target)\n`{long}`");
        let text = format!("{long}\n| {long} |\n```\n{long}\n```\n{link}\nshort\n    {long}\n- ({long})\n");
        assert_eq!(long_lines(&text).collect::<Vec<_>>(), [1, 9, 10]);
    }

    #[test]
    fn links_and_code_are_kept_whole_and_no_line_becomes_a_list() {
        let text = format!("{} [two words](target) `a b` - 3. x", "word ".repeat(18));
        assert_eq!(pieces(&text)[18..], ["[two words](target)", "`a b` - 3.", "x"],);
        assert_eq!(pieces("a [0, 1) b"), ["a", "[0,", "1)", "b"]);
    }
}
