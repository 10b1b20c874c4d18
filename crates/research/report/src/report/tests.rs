//! Tests of the HTML page, the claims as JSON, and the files that are written.

use super::*;
use crate::chart::{Axis, Bars, Chart, ChartPoint, Figure, PointSeries};
use crate::stats::Estimate;

fn figure() -> Figure {
    let bars = Bars::new(
        "with TSQ",
        [ChartPoint::new(0.0, 1.18).with_interval(1.1, 1.26), ChartPoint::new(1.0, 1.08)],
    );
    let chart = Chart::new("Normalised quality")
        .x(Axis::categories("Audio : bulk", ["1:99", "25:75"]))
        .y(Axis::linear("Quality with TSQ / without"))
        .plot(bars)
        .hline(1.0, "as without TSQ");
    Figure::new(chart)
}

fn report() -> Report {
    let estimate = Estimate::from_values(&[1.15, 1.2, 1.19]).unwrap();
    let holding =
        Claim::new("mixed.audio-1", "14", "Audio gains at 1:99").paper(1.18).measured(&estimate).holds(true);
    let differing = Claim::new("mixed.file", "14", "Files lose <nothing> & more")
        .paper("never below 1")
        .measured_value(0.97)
        .holds(false)
        .note("Slow start differs.");
    let section = Section {
        id: "mixed".into(),
        heading: "Figure 14: mixed traffic".into(),
        paper_says: "Audio gains.\n\nFiles lose nothing.".into(),
        we_see: "Nearly.".into(),
        figures: vec![("fig14-mixed".into(), figure())],
        caption: "n = 3 seeds.".into(),
        pictures: vec![("As it was <seen>".into(), b"\x89PNG".to_vec())],
        claims: vec![holding, differing, Claim::new("mixed.none", "14", "Not measured").unit("ms")],
        notes: vec!["Files lose 3 %.".into()],
        files: vec![("scenario".into(), "scenarios/mixed.toml".into())],
    };
    let meta = vec![("Seeds".to_owned(), "1 to 10".to_owned())];
    Report {
        title: "TSQ".into(),
        intro: "Everything & more.".into(),
        papers: vec!["A. Author & B. Author: A Title. 2005.".into()],
        statement_heading: "The paper says".into(),
        meta,
        sections: vec![section],
    }
}

#[test]
fn claims_json_has_exactly_the_documented_keys() {
    let claims: Vec<Claim> = report().claims().cloned().collect();
    let json = serde_json::to_value(&claims).unwrap();
    let keys = "ci_high ci_low claim figure holds id kind measured note p_value paper rule unit";
    for claim in json.as_array().unwrap() {
        let mut found: Vec<&str> = claim.as_object().unwrap().keys().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found.join(" "), keys);
    }
    assert_eq!((&json[0]["paper"], &json[0]["holds"]), (&1.18.into(), &true.into()));
    assert_eq!((&json[1]["paper"], &json[1]["holds"]), (&"never below 1".into(), &false.into()));
    assert!(json[2]["holds"].is_null() && json[2]["measured"].is_null() && json[2]["ci_low"].is_null());
    assert_eq!(serde_json::from_value::<Vec<Claim>>(json).unwrap(), claims);
}

#[test]
fn the_page_is_complete_and_has_no_external_resources() {
    let html = html_page(&report());
    for text in [
        "3 statements:",
        "The statements that differ",
        "<details><summary>3 claims</summary>",
        "src=\"data:image/png;base64,iVBORw==\"/><figcaption>As it was &lt;seen&gt;</figcaption>",
        "\u{2713} 1 holds<",
        "\u{2717} 1 differs<",
        "? 1 unclear",
        "Files lose &lt;nothing&gt; &amp; more",
        " <span class=\"why\">Slow start differs.",
        "<strong>The paper</strong><br>A. Author &amp; B. Author: A Title. 2005.",
        "<th scope=\"col\" class=\"n\">Paper</th>",
        "<figure aria-describedby=\"mixed-seen\">",
        "<div id=\"mixed-seen\"><h3>We see</h3>",
        "<figcaption>n = 3 seeds.</figcaption>",
        "<td class=\"n\">1.18</td>",
        "1.180 <span class=\"ci\">1.114 to 1.246</span>",
        "href=\"figures/fig14-mixed.png\"",
        "href=\"scenarios/mixed.toml\"",
        "<p>Files lose nothing.</p>",
        "data-series=\"with TSQ\"",
    ] {
        assert!(html.contains(text), "the page lacks {text}");
    }
    for outside in ["<script", "<link", "@import", "url(http"] {
        assert!(!html.contains(outside), "the page has {outside}");
    }
    assert_eq!(html.matches("src=").count(), html.matches("src=\"data:").count());
    // Everything after the doctype is well-formed, with tags that HTML leaves open closed for the check.
    let xml = html.replace("<!doctype html>\n", "").replace("<br>", "<br/>");
    let xml =
        xml.replace("<meta charset=\"utf-8\">", "").replace("initial-scale=1\">", "initial-scale=1\"/>");
    let document = roxmltree::Document::parse(&xml).unwrap();
    let ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    let unique: std::collections::BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(ids.len(), unique.len(), "{ids:?}");
    let anchors = document.descendants().filter_map(|node| node.attribute("href")?.strip_prefix('#'));
    for anchor in anchors {
        assert!(ids.contains(&anchor), "#{anchor} leads nowhere");
    }
}

/// A study of one's own has no paper, so no column of it.
#[test]
fn a_report_without_a_paper_has_no_column_for_it() {
    let mut own = report();
    own.papers.clear();
    for claim in own.sections.iter_mut().flat_map(|section| &mut section.claims) {
        claim.paper = None;
    }
    let html = html_page(&own);
    assert!(!html.contains(">Paper<") && !html.contains("The paper</strong>"), "{html}");
    let cells = |row: &str| row.matches("<td").count() + row.matches("<th").count();
    let table = html.split("<tbody>").nth(1).unwrap();
    let head = html.split("<thead>").nth(1).unwrap().split("</thead>").next().unwrap();
    let columns = cells(&head.replace("<thead", ""));
    for row in table.split("<tr>").skip(1).map(|row| row.split("</tr>").next().unwrap()) {
        assert_eq!(cells(row), columns, "{row}");
    }
}

#[test]
fn only_the_files_of_the_report_are_left() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("results");
    let written = write(&target, &report()).unwrap();
    write(&target, &report()).expect("an earlier report is replaced");
    let mut names: Vec<String> = Vec::new();
    for folder in [target.clone(), target.join("figures")] {
        let entries = std::fs::read_dir(folder).unwrap();
        names.extend(entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()));
    }
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "claims.json",
            "fig14-mixed.pdf",
            "fig14-mixed.png",
            "fig14-mixed.svg",
            "figures",
            "mixed-picture-1.png",
            "report.html"
        ]
    );
    assert_eq!(written.figures.len(), 4);
    let claims: Vec<Claim> = serde_json::from_slice(&std::fs::read(written.claims).unwrap()).unwrap();
    assert_eq!(claims.len(), 3);
    assert!(std::fs::read(&written.figures[1]).unwrap().starts_with(b"\x89PNG"));
}

/// A script without a font is not only boxes in PNG and PDF: the caller learns of it.
#[test]
fn scripts_that_no_font_has_are_returned() {
    let directory = tempfile::tempdir().unwrap();
    let mut report = report();
    assert!(write(directory.path(), &report).unwrap().missing_scripts.is_empty());
    // Not a character by definition, so no font has it.
    let chart = Chart::new("Delay \u{fdd0}").x(Axis::linear("Time")).y(Axis::linear("Delay"));
    let chart = chart.plot(PointSeries::new("delay", [(0.0, 1.0)]));
    report.sections[0].figures.push(("foreign".into(), Figure::new(chart)));
    assert_eq!(write(directory.path(), &report).unwrap().missing_scripts.len(), 1);
}

/// A picture of axes alone, or of nothing, is not written, and the page names it.
#[test]
fn a_figure_without_values_is_not_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let mut report = report();
    let chart = Chart::new("Delay of nothing").x(Axis::linear("Time")).y(Axis::linear("Delay"));
    let chart = chart.plot(PointSeries::new("delay", [(0.0, f64::NAN)])).hline(5.0, "5 ms");
    let section = &mut report.sections[0];
    section.figures = vec![
        ("none".to_owned(), Figure::grid("Without charts", 1, [])),
        ("bare".to_owned(), Figure::new(chart)),
    ];
    section.pictures.clear();
    let written = write(directory.path(), &report).unwrap();
    assert_eq!(written.figures, [] as [std::path::PathBuf; 0]);
    assert_eq!(std::fs::read_dir(directory.path().join("figures")).unwrap().count(), 0);
    let html = std::fs::read_to_string(written.report).unwrap();
    assert!(!html.contains("<svg") && !html.contains("href=\"figures/"), "{html}");
    for name in ["Without charts", "Delay of nothing"] {
        assert!(html.contains(&format!("no values: {name}.")), "{html}");
    }
}

#[test]
fn invalid_and_duplicate_ids_are_refused() {
    let with_figure = |id: &str| {
        let mut report = report();
        report.sections[0].figures[0].0 = id.to_owned();
        report
    };
    let directory = tempfile::tempdir().unwrap();
    for id in ["", "../up", "a b", "ä"] {
        assert!(
            matches!(write(directory.path(), &with_figure(id)), Err(WriteError::InvalidId(bad)) if bad == id)
        );
    }
    let mut twice = report();
    twice.sections[0].claims[2].id = "mixed.file".into();
    assert!(
        matches!(write(directory.path(), &twice), Err(WriteError::DuplicateId(id)) if id == "mixed.file")
    );
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        0,
        "nothing is written before the check"
    );
}

#[test]
fn the_error_names_a_directory_that_cannot_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let taken = directory.path().join("taken");
    std::fs::write(&taken, "a file").unwrap();
    let error = write(&taken, &report()).unwrap_err().to_string();
    assert!(error.contains("taken/figures"), "{error}");
}

/// WCAG 2.1, "relative luminance" of a colour that is written as `#rrggbb`.
fn luminance(colour: &str) -> f64 {
    let channel = |at: usize| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

/// WCAG 2.1, success criterion 1.4.3, level AA: text has a contrast of at least 4.5 to 1.
#[test]
fn every_colour_of_text_can_be_read_on_every_background_of_it() {
    let html = html_page(&report());
    for (theme, block) in html.match_indices(":root {").map(|(at, _)| &html[at..]).enumerate() {
        let block = &block[..block.find('}').unwrap()];
        let colour = |name: &str| {
            let at = block.find(&format!("--{name}:")).unwrap_or_else(|| panic!("theme {theme}: no {name}"));
            let value = &block[at + name.len() + 3..];
            value[value.find('#').unwrap()..][..7].to_owned()
        };
        let series = (0..7).map(|slot| format!("c-t{slot}"));
        let texts = ["c-text", "c-muted", "good", "bad", "unsure", "link"].map(str::to_owned);
        for text in texts.into_iter().chain(series) {
            for background in ["c-paper", "tint"] {
                let (one, other) = (luminance(&colour(&text)), luminance(&colour(background)));
                let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
                assert!(contrast >= 4.5, "theme {theme}: {text} on {background} has {contrast:.2}");
            }
        }
    }
    assert_eq!(html.matches(":root {").count(), 2, "a light and a dark theme");
}
