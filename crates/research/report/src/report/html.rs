//! The report as one HTML page with embedded style and figures, without scripts and external resources.

use super::claim::{Claim, ClaimRole, ClaimVerdict, PaperValue};
use super::document::{Report, Section};
use super::summary::{ClaimSummary, Counts};
use crate::chart::{Format, Theme};
use crate::xml::escape;
use std::fmt::Write as _;

/// Heading of the results' description.
const SEEN: &str = "We see";

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
    html += &papers(&report.papers);
    html += &paragraphs(&report.intro);
    html += &summary(report);
    html += &contents(&report.sections);
    for section in &report.sections {
        html += &section_html(section, &report.statement_heading);
    }
    html += &all_claims(report);
    html += &meta(&report.meta);
    html + "</main>\n</body>\n</html>\n"
}

/// The papers that the evaluation rests on.
fn papers(papers: &[String]) -> String {
    let heading = if papers.len() == 1 { "The paper" } else { "The papers" };
    let listed = joined(papers.iter().map(|paper| format!("<br>{}", escape(paper))));
    if papers.is_empty() {
        listed
    } else {
        format!("<p class=\"papers\"><strong>{heading}</strong>{listed}</p>\n")
    }
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

/// Returns the summary: the verdicts, their certainty, and the statements that differ.
fn summary(report: &Report) -> String {
    if report.claims().next().is_none() {
        return String::new();
    }
    let summary = ClaimSummary::of(report.claims());
    let mut html = format!("<h2 id=\"summary\">Summary</h2>\n{}", tally("statements", &summary.statements));
    for (name, counts) in
        [("statements on variants", &summary.variants), ("checks of the code", &summary.checks)]
    {
        if counts.all() > 0 {
            html += &tally(name, counts);
        }
    }
    let decided = summary.statements.holds + summary.statements.differs;
    if summary.expected_wrong > 0.0 {
        let Counts { holds, differs, .. } = summary.together;
        let _ = writeln!(
            html,
            "<p>Each verdict is a test at 2.5 %, so up to {} of the {decided} verdicts on statements may be wrong by chance. If all \
             tests are taken together (Holm's correction), {holds} statements hold and {differs} differ.</p>",
            fixed(summary.expected_wrong, 1)
        );
    }
    let differs = |claim: &&Claim| claim.kind == ClaimRole::Statement && claim.holds == ClaimVerdict::Differs;
    if report.claims().any(|claim| differs(&claim)) {
        html +=
            &table("The statements that differ", with_sections(report).filter(|(claim, _)| differs(claim)));
    }
    html
}

/// A line with the number of claims with each verdict.
fn tally(name: &str, counts: &Counts) -> String {
    let mut html = format!("<p class=\"tally\"><span>{} {name}:</span>", counts.all());
    let numbers = [counts.holds, counts.differs, counts.unclear];
    for (verdict, n) in
        [ClaimVerdict::Holds, ClaimVerdict::Differs, ClaimVerdict::Unclear].into_iter().zip(numbers)
    {
        if n > 0 {
            let (class, symbol, one) = verdict_style(verdict);
            let text = if n == 1 { one } else { one.trim_end_matches('s') };
            let _ = write!(html, "<span class=\"v {class}\">{symbol} {n} {text}</span>");
        }
    }
    html + "</p>\n"
}

/// The table of all claims, folded.
fn all_claims(report: &Report) -> String {
    let count = report.claims().count();
    if count == 0 {
        return String::new();
    }
    let table = table("All claims", with_sections(report));
    format!(
        "<section id=\"claims\">\n<h2>All claims</h2>\n<details><summary>{count} claims</summary>\n{table}</details>\n</section>\n"
    )
}

/// The claims with the anchors of their sections.
fn with_sections(report: &Report) -> impl Iterator<Item = (&Claim, Option<&str>)> {
    report.sections.iter().flat_map(|section| section.claims.iter().map(|claim| (claim, Some(&*section.id))))
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
    for (heading, text) in [(statement_heading, &section.paper_says), (SEEN, &section.we_see)] {
        if !text.trim().is_empty() {
            // Our findings are the figures' text alternative.
            let id = if heading == SEEN {
                format!(" id=\"{}\"", escape(&seen_id(section)))
            } else {
                String::new()
            };
            let _ = writeln!(html, "<div{id}><h3>{}</h3>{}</div>", escape(heading), paragraphs(text));
        }
    }
    html += "</div>\n";
    let described = if section.we_see.trim().is_empty() {
        String::new()
    } else {
        format!(" aria-describedby=\"{}\"", escape(&seen_id(section)))
    };
    for (_, figure) in section.figures.iter().filter(|(_, figure)| figure.is_empty()) {
        let _ = writeln!(html, "<p>Not drawn, since there are no values: {}.</p>", escape(figure.name()));
    }
    for (id, figure) in section.drawn() {
        let drawn = figure.svg(&format!("fig-{id}"), Theme::Page);
        let caption = match section.caption.as_str() {
            "" => String::new(),
            caption => format!("<figcaption>{}</figcaption>", escape(caption)),
        };
        let _ = writeln!(html, "<figure{described}>\n{drawn}{caption}</figure>");
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
        let _ = writeln!(html, "<div class=\"notes\">\n<h3>Remarks</h3>{notes}</div>");
    }
    if !section.claims.is_empty() {
        html += &table(
            &format!("The claims of {}", section.heading),
            section.claims.iter().map(|claim| (claim, None)),
        );
    }
    html + &files(section) + "</section>\n"
}

/// Anchor of the description of a section's results.
fn seen_id(section: &Section) -> String {
    format!("{}-seen", section.id)
}

fn files(section: &Section) -> String {
    let files_of_figure = |id: &String| {
        Format::ALL.map(|format| {
            let file = format!("{id}.{}", format.extension());
            (file.clone(), format!("figures/{file}"))
        })
    };
    let figures = section.drawn().flat_map(|(id, _)| files_of_figure(id));
    let pictures = section.picture_files().map(|file| (file.clone(), format!("figures/{file}")));
    let links =
        figures.chain(pictures).chain(section.files.iter().cloned()).map(|(label, path)| link(&path, &label));
    let links = joined(links);
    if links.is_empty() { links } else { format!("<p class=\"files\">Files: {links}</p>\n") }
}

/// A table of claims. A claim with an anchor links to its section.
fn table<'a>(caption: &str, claims: impl Iterator<Item = (&'a Claim, Option<&'a str>)>) -> String {
    let claims: Vec<_> = claims.collect();
    // A user's study has no paper.
    let has_paper = claims.iter().any(|(claim, _)| claim.paper.is_some());
    let paper = if has_paper { "<th scope=\"col\" class=\"n\">Paper</th>" } else { "" };
    let mut html = format!(
        "<div class=\"scroll\"><table>\n<caption>{}</caption>\n<thead><tr><th scope=\"col\">Figure</th><th scope=\"col\">Claim</th>\
         {paper}<th scope=\"col\" class=\"n\">Rule</th>\
         <th scope=\"col\" class=\"n\">Measured<br>95 % interval</th><th scope=\"col\">Holds?</th></tr></thead>\n<tbody>\n",
        escape(caption)
    );
    for (claim, section) in claims {
        html += &row(claim, section, has_paper);
    }
    html + "</tbody>\n</table></div>\n"
}

fn row(claim: &Claim, section: Option<&str>, has_paper: bool) -> String {
    let figure = match section {
        Some(anchor) => format!("<a href=\"#{}\">{}</a>", escape(anchor), escape(&claim.figure)),
        None => escape(&claim.figure),
    };
    let why = if claim.note.is_empty() {
        String::new()
    } else {
        format!(" <span class=\"why\">{}</span>", escape(&claim.note))
    };
    let kind = match claim.kind {
        ClaimRole::Statement => "",
        ClaimRole::Variant => " <span class=\"why\">a variant, counted apart</span>",
        ClaimRole::Check => " <span class=\"why\">a check of the code, counted apart</span>",
    };
    let (class, symbol, text) = verdict_style(claim.holds);
    format!(
        "<tr><td>{figure}</td><th scope=\"row\">{}{kind}{why}</th>{}<td class=\"w\">{}</td><td class=\"n\">{}</td>\
         <td><span class=\"v {class}\">{symbol} {text}</span></td></tr>\n",
        escape(&claim.claim),
        if has_paper { paper_value(claim) } else { String::new() },
        if claim.rule.is_empty() { "\u{2013}".to_owned() } else { escape(&claim.rule) },
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
        let _ = write!(cell, " <span class=\"ci\">{low} to {high}</span>");
    }
    cell
}

/// The CSS class, the symbol and the text of a verdict. Verdicts do not differ by colour alone.
fn verdict_style(verdict: ClaimVerdict) -> (&'static str, &'static str, &'static str) {
    match verdict {
        ClaimVerdict::Holds => ("good", "\u{2713}", "holds"),
        ClaimVerdict::Differs => ("bad", "\u{2717}", "differs"),
        ClaimVerdict::Unclear => ("unsure", "?", "unclear"),
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
