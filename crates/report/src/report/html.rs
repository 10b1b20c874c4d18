//! The report as one HTML page with embedded style and figures, without scripts and external resources.

use super::claim::{Claim, PaperValue, Verdict};
use super::document::{Report, Section};
use crate::chart::Theme;
use crate::xml::escape;
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// The report as an HTML page.
pub fn html_page(report: &Report) -> String {
    let style = STYLE.replace("LIGHT", &Theme::css(false)).replace("DARK", &Theme::css(true));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>\n{style}</style>\n\
         </head>\n<body>\n<main>\n<h1>{title}</h1>\n",
        title = escape(&report.title)
    );
    html += &paragraphs(&report.intro);
    html += &meta(&report.meta);
    html += &verdicts(report);
    html += &contents(&report.sections);
    for section in &report.sections {
        html += &section_html(section, &report.statement_heading);
    }
    html + "</main>\n</body>\n</html>\n"
}

fn meta(meta: &[(String, String)]) -> String {
    if meta.is_empty() {
        return String::new();
    }
    let row = |(name, value): &(String, String)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(value))
    };
    format!("<dl>\n{}</dl>\n", joined(meta.iter().map(row)))
}

/// The number of claims with each verdict, and the table of all claims.
fn verdicts(report: &Report) -> String {
    let count = |verdict| report.claims().filter(|claim| claim.holds == verdict).count();
    let all = report.claims().count();
    if all == 0 {
        return String::new();
    }
    let mut html =
        format!("<h2 id=\"verdict\">What holds</h2>\n<p class=\"tally\"><span>{all} claims:</span>");
    for verdict in [Verdict::Holds, Verdict::Differs, Verdict::Unclear] {
        let n = count(verdict);
        if n > 0 {
            let (class, symbol, one) = verdict_style(verdict);
            let text = if n == 1 { one } else { one.trim_end_matches('s') };
            let _ = write!(html, "<span class=\"v {class}\">{symbol} {n} {text}</span>");
        }
    }
    html += "</p>\n";
    let rows =
        report.sections.iter().flat_map(|section| section.claims.iter().map(|c| (c, Some(&*section.id))));
    html + &table(rows)
}

fn contents(sections: &[Section]) -> String {
    if sections.len() < 2 {
        return String::new();
    }
    let links = sections.iter().map(|section| link(&format!("#{}", section.id), &section.heading));
    format!("<nav aria-label=\"Sections\">\n{}</nav>\n", joined(links))
}

fn section_html(section: &Section, statement_heading: &str) -> String {
    let mut html =
        format!("<section id=\"{}\">\n<h2>{}</h2>\n", escape(&section.id), escape(&section.heading));
    html += "<div class=\"statements\">\n";
    for (heading, text) in [(statement_heading, &section.paper_says), ("We see", &section.we_see)] {
        if !text.trim().is_empty() {
            let _ = writeln!(html, "<div><h3>{}</h3>{}</div>", escape(heading), paragraphs(text));
        }
    }
    html += "</div>\n";
    for (id, figure) in &section.figures {
        let _ = writeln!(html, "<figure>\n{}</figure>", figure.svg(&format!("fig-{id}"), Theme::Page));
    }
    if !section.pictures.is_empty() {
        html += "<div class=\"pictures\">\n";
        for (what, png) in &section.pictures {
            let (what, data) = (escape(what), base64(png));
            let _ = writeln!(
                html,
                "<figure><img alt=\"{what}\" src=\"data:image/png;base64,{data}\"/><figcaption>{what}</figcaption></figure>"
            );
        }
        html += "</div>\n";
    }
    if !section.notes.is_empty() {
        let notes = joined(section.notes.iter().map(|note| paragraphs(note)));
        let _ = writeln!(html, "<div class=\"notes\">\n<h3>Where we differ</h3>{notes}</div>");
    }
    if !section.claims.is_empty() {
        html += &table(section.claims.iter().map(|claim| (claim, None)));
    }
    html + &files(section) + "</section>\n"
}

fn files(section: &Section) -> String {
    let files_of_figure = |id: &String| {
        [
            (format!("{id}.svg"), format!("figures/{id}.svg")),
            (format!("{id}.png"), format!("figures/{id}.png")),
        ]
    };
    let figures = section.figures.iter().flat_map(|(id, _)| files_of_figure(id));
    let links = figures.chain(section.files.iter().cloned()).map(|(label, path)| link(&path, &label));
    let links = joined(links);
    if links.is_empty() { links } else { format!("<p class=\"files\">Files: {links}</p>\n") }
}

/// The table of claims. A claim with an anchor links to its section.
fn table<'a>(claims: impl Iterator<Item = (&'a Claim, Option<&'a str>)>) -> String {
    let mut html = String::from(
        "<div class=\"scroll\"><table>\n<thead><tr><th>Figure</th><th>Claim</th><th class=\"n\">Paper</th>\
         <th class=\"n\">Measured<br>95 % interval</th><th>Holds?</th></tr></thead>\n<tbody>\n",
    );
    for (claim, section) in claims {
        html += &row(claim, section);
    }
    html + "</tbody>\n</table></div>\n"
}

fn row(claim: &Claim, section: Option<&str>) -> String {
    let figure = match section {
        Some(anchor) => format!("<a href=\"#{}\">{}</a>", escape(anchor), escape(&claim.figure)),
        None => escape(&claim.figure),
    };
    let why = if claim.note.is_empty() {
        String::new()
    } else {
        format!("<span class=\"why\">{}</span>", escape(&claim.note))
    };
    let (class, symbol, text) = verdict_style(claim.holds);
    format!(
        "<tr><td>{figure}</td><td>{}{why}</td>{}<td class=\"n\">{}</td>\
         <td><span class=\"v {class}\">{symbol} {text}</span></td></tr>\n",
        escape(&claim.claim),
        paper_value(claim),
        measured(claim)
    )
}

fn paper_value(claim: &Claim) -> String {
    match &claim.paper {
        Some(PaperValue::Number(number)) => {
            let number = suffixed(crate::chart::shortest(*number), &claim.unit);
            format!("<td class=\"n\">{number}</td>")
        }
        Some(PaperValue::Text(text)) => format!("<td class=\"w\">{}</td>", escape(text)),
        None => "<td class=\"n\">\u{2013}</td>".to_owned(),
    }
}

fn measured(claim: &Claim) -> String {
    let Some(value) = claim.measured else { return "\u{2013}".to_owned() };
    let mut cell = with_unit(value, &claim.unit);
    if let (Some(low), Some(high)) = (claim.ci_low, claim.ci_high) {
        let decimals = decimals(value);
        let (low, high) = (fixed(low, decimals), fixed(high, decimals));
        let _ = write!(cell, "<span class=\"ci\">{low} to {high}</span>");
    }
    cell
}

/// The CSS class, the symbol and the text of a verdict. Verdicts do not differ by colour alone.
fn verdict_style(verdict: Verdict) -> (&'static str, &'static str, &'static str) {
    match verdict {
        Verdict::Holds => ("good", "\u{2713}", "holds"),
        Verdict::Differs => ("bad", "\u{2717}", "differs"),
        Verdict::Unclear => ("unsure", "?", "unclear"),
    }
}

fn with_unit(value: f64, unit: &str) -> String {
    suffixed(fixed(value, decimals(value)), unit)
}

fn suffixed(number: String, unit: &str) -> String {
    if unit.is_empty() { number } else { format!("{number}\u{a0}{}", escape(unit)) }
}

/// The number of decimals with which a value has three or four digits. Integers have none.
fn decimals(value: f64) -> usize {
    match value.abs() {
        v if v.fract() == 0.0 && v < 1e9 => 0,
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        v if v >= 0.1 => 3,
        _ => 5,
    }
}

fn fixed(value: f64, decimals: usize) -> String {
    // The ends of an interval around an integer need not be integers.
    let decimals = if decimals == 0 && value.abs() < 1000.0 && value.fract() != 0.0 { 2 } else { decimals };
    crate::chart::number(value, decimals)
}

/// Bytes in the 64 characters of RFC 4648 section 4, as URLs of data have them.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let [one, two, three] = [0, 1, 2].map(|at| u32::from(group.get(at).copied().unwrap_or(0)));
        let bits = one << 16 | two << 8 | three;
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// A text as HTML paragraphs. Blank lines separate paragraphs.
fn paragraphs(text: &str) -> String {
    let filled = text.split("\n\n").map(str::trim).filter(|part| !part.is_empty());
    joined(filled.map(|part| format!("<p>{}</p>\n", escape(part))))
}

fn link(to: &str, text: &str) -> String {
    format!("<a href=\"{}\">{}</a>\n", escape(to), escape(text))
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_is_that_of_the_rfc() {
        // RFC 4648 section 10.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xef, 0xbe]), "/+++");
    }
}
