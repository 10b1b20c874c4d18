use std::collections::BTreeSet;

use super::*;

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
    let figures = FigureText::parse(text).unwrap();
    let claim = &figures[0].claims[0];
    assert_eq!((claim.id.as_str(), claim.expectation), ("delay-1-6", Some(Expectation::Above(0.0))));
    assert_eq!(claim.quantity.as_ref().unwrap().parts().len(), 2);
    let unjudged = claim.unjudged(&figures[0], "audio");
    assert_eq!((unjudged.id.as_str(), unjudged.rule.as_str()), ("audio.delay-1-6", "above 0"));
    assert_eq!(unjudged.paper, Some(PaperValue::Text("above 0".to_owned())));
}

#[test]
fn what_is_wrong_with_a_claim_is_named() {
    let error = |claim: &str| {
        let figure = "[[figure]]\nnumber = 1\nheading = 'One'\nsays = 'So.'\n";
        FigureText::parse(&format!("{figure}claims = [{{ {claim} }}]")).unwrap_err()
    };
    assert!(error("id = 'a', text = 'A', above = 0, below = 1").contains("claim `a`: one of above"));
    assert!(error("id = 'a', text = 'A', measure = 'q', above = 0").contains("`of` is missing"));
    assert!(
        error("id = 'a', text = 'A', measure = 'q', of = 'x', at = 'hint 1'")
            .contains("[points] has no `hint 1`")
    );
    assert!(error("id = 'a', text = 'A', metric = 'q'").contains("metric"));
}

fn studies() -> impl Iterator<Item = &'static crate::Study> {
    crate::STUDIES.into_iter().chain([&crate::LAB, &crate::LAB_QOS, &crate::QSOCK])
}

/// Every claim has a rule, and is measured: what it names is in the experiment, or there is code for it.
#[test]
fn every_claim_of_every_study_can_be_judged() {
    for study in studies() {
        for figure in study.figures().iter().filter(|figure| !figure.experiments.is_empty()) {
            for claim in &figure.claims {
                let name = format!("{} figure {}: {}", study.id, figure.number, claim.id);
                assert!(claim.expectation.is_some(), "{name} has no rule");
                match &claim.quantity {
                    Some(quantity) => check(quantity, &judged(claim, figure), figure, study, &name),
                    None => assert!((study.own)(figure, claim.name()).is_some(), "{name} is not measured"),
                }
            }
        }
    }
}

/// The values of every chart that is data are there, too.
#[test]
fn every_panel_of_every_study_can_be_drawn() {
    for study in studies() {
        for figure in study.figures() {
            for panel in &figure.panels {
                let own: Vec<&str> = figure.experiments.iter().map(String::as_str).collect();
                let own = if panel.is_across() { &own[..] } else { &own[..1] };
                for quantity in panel.quantities() {
                    check(quantity, own, &figure, study, &format!("{} figure {}", study.id, figure.number));
                }
            }
        }
    }
}

/// The experiments for which a claim is judged.
fn judged<'f>(claim: &'f ClaimData, figure: &'f FigureText) -> Vec<&'f str> {
    match claim.experiment() {
        Some(id) => vec![id],
        None if figure.has_variants => figure.experiments.iter().map(String::as_str).collect(),
        None => figure.experiments.first().map(String::as_str).into_iter().collect(),
    }
}

/// Checks a quantity against experiments.
fn check(quantity: &Quantity, own: &[&str], figure: &FigureText, study: &crate::Study, name: &str) {
    for &experiment in own {
        for part in quantity.parts() {
            let id = part.experiment().unwrap_or(experiment);
            assert!(figure.needs().any(|needed| needed == id), "{name}: the figure does not list `{id}`");
            let (points, groups) = contents(study.experiments.iter().find(|one| one.id == id).unwrap());
            part.check(&points, &groups).unwrap_or_else(|error| panic!("{name} in `{id}`: {error}"));
        }
    }
}

/// The points of an experiment's sweep, and the names of its groups of flows.
fn contents(experiment: &Experiment) -> (Vec<Settings>, BTreeSet<String>) {
    let points = experiment.scenario_file(false).unwrap().expand().unwrap();
    let groups = points[0].scenario.flows.iter().map(|flow| flow.name.clone()).collect();
    let settings = points.into_iter().map(|point| {
        point.settings.into_iter().map(|(key, value)| (key, value.trim_matches('"').to_owned())).collect()
    });
    (settings.collect(), groups)
}
