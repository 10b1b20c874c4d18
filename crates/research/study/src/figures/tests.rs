use super::*;
use crate::claims::Expectation;
use cutline_config::{Document, Errors};
use cutline_report::report::PaperValue;

fn parse(text: &str) -> Result<Vec<FigureText>, Errors> {
    read_figures(&Document::parse(text, "figures.toml")?, &["audio".to_owned(), "video".to_owned()])
}

#[test]
fn a_claim_has_its_rule_and_its_quantity() {
    let text = r#"
        [points]
        "hint 1" = { "flow.audio.hint" = 1 }
        "hint 6" = { "flow.audio.hint" = 6 }
        [rows]
        pair = [{ id = "1-6", left = "hint 6", right = "hint 1" }]
        [[figure]]
        number = 8
        heading = "Delay"
        experiments = ["audio"]
        variants = true
        says = "It is lower."
        claims = [{ id = "delay-{pair.id}", each = ["pair"], text = "Delay", unit = "ms", measure = "queuing_p50_ms", of = "audio", at = "{pair.left}", minus = "{pair.right}", above = 0 }]
    "#;
    let figures = parse(text).unwrap();
    let claim = &figures[0].claims[0];
    assert_eq!((claim.id.as_str(), claim.expectation), ("delay-1-6", Some(Expectation::Above(0.0))));
    assert_eq!(claim.quantity.as_ref().unwrap().parts().len(), 2);
    let unjudged = claim.unjudged(figures[0].number, "audio");
    assert_eq!((unjudged.id.as_str(), unjudged.rule.as_str()), ("audio.delay-1-6", "above 0"));
    assert_eq!(unjudged.paper, Some(PaperValue::Text("above 0".to_owned())));
}

/// The message about a claim, which is in line 7, without the beginning that all have.
fn error(claim: &str) -> String {
    let figure = "[rows]\nn = [{ v = 1 }, { v = 2 }]\n[[figure]]\nnumber = 1\nheading = 'One'\nsays = 'So.'\nexperiments = ['audio']\n";
    let errors = parse(&format!("{figure}claims = [{{ id = 'a', text = 'A',\n{claim} }}]")).unwrap_err();
    errors.to_string().replace("figures.toml:9:", "").replace("figure[1].claims.a", "CLAIM")
}

#[test]
fn errors_of_claims_are_reported() {
    assert_eq!(
        error("measure = 'q', of = 'x', above = 0, below = 1"),
        "45: key \"CLAIM.below\": value 1 is not allowed: the claim has the rule \"above\" already"
    );
    assert_eq!(
        error("measure = 'q', above = 0"),
        "figures.toml:8:11: key \"CLAIM.of\" is missing: expected a flow, a group of flows, or a link such as \"r1->r2\""
    );
    assert_eq!(
        error("measure = 'q', of = 'x', at = 'hint 1', above = 0"),
        "31: key \"CLAIM.at\": value 'hint 1' is not allowed: expected a table of settings, or the name of a table in [points]; \
         there is none"
    );
    assert_eq!(
        error("measure = 'q', of = 'x'"),
        "figures.toml:8:11: key \"CLAIM.above\" is missing: expected a rule: \"above\", \"below\", \"at-least\", \"at-most\", \
         \"equals\", or \"from\" and \"to\""
    );
}

#[test]
fn unknown_keys_and_names_have_suggestions() {
    assert_eq!(
        error("measrue = 'q', of = 'x', above = 0"),
        "1: key \"CLAIM.measrue\" is not known here: did you mean \"measure\"?"
    );
    assert_eq!(
        error("measure = 'q', of = 'x', at-leats = 0"),
        "26: key \"CLAIM.at-leats\" is not known here: did you mean \"at-least\"?"
    );
    assert_eq!(
        error("measure = 'queueing_p50_ms', of = 'x', above = 0"),
        "11: key \"CLAIM.measure\": value 'queueing_p50_ms' is not allowed: there is no measure \"queueing_p50_ms\" of \"x\", \
         did you mean \"queuing_p50_ms\"?"
    );
    assert_eq!(
        error("measure = 'goodput_kbs', of = 'x', during = [1, 2], above = 0"),
        "11: key \"CLAIM.measure\": value 'goodput_kbs' is not allowed: there is no measure \"goodput_kbs\" of intervals of \
         \"x\", did you mean \"goodput_kbps\"?"
    );
    assert_eq!(
        error("measure = 'zzz', of = 'r1->r2', above = 0"),
        "11: key \"CLAIM.measure\": value 'zzz' is not allowed: there is no measure \"zzz\" of \"r1->r2\"; there are the \
         columns of queues.parquet and the measures in docs/guide/study.md"
    );
    assert_eq!(
        error("measure = 'q', of = 'x', experiment = 'audoi', above = 0"),
        "39: key \"CLAIM.experiment\": value 'audoi' is not allowed: expected an experiment of the figure: \"audio\"; did you \
         mean \"audio\"?"
    );
    assert_eq!(
        error("measure = 'audio_q', of = 'x', during = [1, 2], over-time = 'mena', above = 0"),
        "61: key \"CLAIM.over-time\": value 'mena' is not allowed: expected a statistic: \"mean\", \"deviation\"; did you mean \
         \"mean\"?"
    );
}

#[test]
fn wrong_types_and_ranges_are_named() {
    assert_eq!(
        error("measure = 'q', of = 'x', above = '0'"),
        "34: key \"CLAIM.above\": value '0' is not allowed: expected a number such as 1.5"
    );
    assert_eq!(
        error("measure = 'q', of = 'x', above = 0, check = 1"),
        "45: key \"CLAIM.check\": value 1 is not allowed: expected true or false"
    );
    assert_eq!(
        error("measure = 'q', of = 'x', equals = 0, within = -1"),
        "47: key \"CLAIM.within\": value -1 is not allowed: expected a number such as 1.5, at least 0"
    );
    assert_eq!(
        error("measure = 'audio_q', of = 'x', above = 0, during = [20, 10]"),
        "52: key \"CLAIM.during\": value [...] is not allowed: expected a list of 2 numbers, a beginning and a later end, s"
    );
    assert_eq!(
        error("measure = 'audio_q', of = 'x', above = 0, first = { at-most = 1, at-least = 2 }"),
        "77: key \"CLAIM.first.at-least\": value 2 is not allowed: \"at-most\" and \"at-least\" exclude each other"
    );
}

#[test]
fn keys_of_a_quantity_that_exclude_each_other_are_named() {
    assert_eq!(
        error("measure = 'q', of = 'x', above = 0, over-time = 'mean'"),
        "49: key \"CLAIM.over-time\": value 'mean' is not allowed: it needs \"during\""
    );
    assert_eq!(
        error("measure = 'q', of = 'x', above = 0, among = [1]"),
        "45: key \"CLAIM.among\": it is for \"best-by\", \"worst-by\" and \"mean-by\""
    );
    assert_eq!(
        error("measure = 'q', of = 'x', above = 0, best-by = 'a', mean-by = 'b'"),
        "62: key \"CLAIM.mean-by\": value 'b' is not allowed: \"best-by\", \"worst-by\" and \"mean-by\" exclude each other"
    );
}

/// A claim that is repeated for rows has each error once.
#[test]
fn all_errors_are_reported_once_and_in_order() {
    let figure = "[rows]\nn = [{ v = 1 }, { v = 2 }]\n[[figure]]\nnumber = -1\nheadign = 'One'\nsays = 'So.'\nexperiments = ['adio']\n";
    let claims = "claims = [\n{ id = 'a-{n.v}', each = ['n'], text = 'A', measure = 'zz', of = 'x', abve = '{n.v}' },\n]\n";
    let errors = parse(&format!("{figure}{claims}")).unwrap_err();
    assert_eq!(
        errors.render(),
        "\
figures.toml:4:10: key \"figure[1].number\": value -1 is not allowed: expected a whole number from 0 to 4294967295
   |
 4 | number = -1
   |          ^^

figures.toml:5:1: key \"figure[1].headign\" is not known here: did you mean \"heading\"?
   |
 5 | headign = 'One'
   | ^^^^^^^

figures.toml:7:16: key \"figure[1].experiments\": value 'adio' is not allowed: expected an experiment of study.toml: \"audio\", \"video\"; did you mean \"audio\"?
   |
 7 | experiments = ['adio']
   |                ^^^^^^

figures.toml:9:55: key \"figure[1].claims.a-{n.v}.measure\": value 'zz' is not allowed: there is no measure \"zz\" of \"x\"; there are the columns of flows.parquet and the measures in docs/guide/study.md
   |
 9 | { id = 'a-{n.v}', each = ['n'], text = 'A', measure = 'zz', of = 'x', abve = '{n.v}' },
   |                                                       ^^^^

figures.toml:9:71: key \"figure[1].claims.a-{n.v}.abve\" is not known here: did you mean \"above\"?
   |
 9 | { id = 'a-{n.v}', each = ['n'], text = 'A', measure = 'zz', of = 'x', abve = '{n.v}' },
   |                                                                       ^^^^"
    );
}

/// A wrong value is reported once, and not also as a missing one.
#[test]
fn an_error_causes_no_further_errors() {
    assert_eq!(
        error("measure = 'q', of = 1, above = 0"),
        "21: key \"CLAIM.of\": value 1 is not allowed: expected a text in quotes"
    );
    assert_eq!(
        error("measure = 'audio_q', of = 'x', above = 0, during = 1, over-time = 'mean'"),
        "52: key \"CLAIM.during\": value 1 is not allowed: expected a list of 2 numbers, a beginning and a later end, s"
    );
    let figure = "[[figure]]\nnumber = 1\nheading = 'One'\nsays = 'So.'\nexperiments = ['adio']\n";
    let claim = "claims = [{ id = 'audio.a', text = 'A', measure = 'q', of = 'x', above = 0 }]";
    assert_eq!(
        parse(&format!("{figure}{claim}")).unwrap_err().to_string(),
        "figures.toml:5:16: key \"figure[1].experiments\": value 'adio' is not allowed: expected an experiment of study.toml: \
         \"audio\", \"video\"; did you mean \"audio\"?"
    );
}

#[test]
fn a_claim_uses_an_experiment_of_its_figure() {
    assert_eq!(
        error("measure = 'q', of = 'x', experiment = 'video', above = 0"),
        "39: key \"CLAIM.experiment\": value 'video' is not allowed: expected an experiment of the figure: \"audio\""
    );
}

#[test]
fn names_of_points_rows_and_panels_have_suggestions() {
    let text = r#"[points]
"hint 16" = { "flow.audio.hint" = 16 }
[rows]
mix = [{ n = 1, least = "much" }]
[[panels.quality]]
title = "Quality"
[[figure]]
number = 1
heading = "One"
says = "So."
panels = ["qualty"]
claims = [
    { id = "a", text = "A", measure = "q", of = "x", at = "hint 61", above = 0 },
    { id = "b", each = ["mixes"], text = "B", measure = "q", of = "x", above = 0 },
    { id = "c", each = ["mix"], text = "At least {mix.leats}", measure = "q", of = "x", above = 0 },
    { id = "d", each = ["mix"], text = "D", measure = "q", of = "x", above = "{mix.least}" },
]
"#;
    let errors = parse(text).unwrap_err().to_string();
    assert_eq!(
        errors.lines().collect::<Vec<_>>(),
        [
            "figures.toml:4:25: key \"figure[1].claims.d.above\": value \"much\" is not allowed: expected a number such as 1.5",
            "figures.toml:11:11: key \"figure[1].panels\": value \"qualty\" is not allowed: expected a list of [panels]: \
             \"quality\"; did you mean \"quality\"?",
            "figures.toml:13:59: key \"figure[1].claims.a.at\": value \"hint 61\" is not allowed: expected a table of settings, \
             or the name of a table in [points]: \"hint 16\"; did you mean \"hint 16\"?",
            "figures.toml:14:25: key \"figure[1].claims.b.each\": value \"mixes\" is not allowed: expected the name of rows in \
             [rows]: \"mix\"; did you mean \"mix\"?",
            "figures.toml:15:40: key \"figure[1].claims.c.text\": a row of \"mix\" has no \"leats\", did you mean \"least\"?",
        ]
    );
}
