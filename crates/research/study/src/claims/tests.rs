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
    let figures = Figures::parse(text).unwrap().0;
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
        Figures::parse(&format!("{figure}claims = [{{ {claim} }}]")).err().expect("it is refused")
    };
    assert!(error("id = 'a', text = 'A', above = 0, below = 1").contains("claim `a`: one of above"));
    assert!(error("id = 'a', text = 'A', measure = 'q', above = 0").contains("`of` is missing"));
    assert!(
        error("id = 'a', text = 'A', measure = 'q', of = 'x', at = 'hint 1'")
            .contains("[points] has no `hint 1`")
    );
    assert!(error("id = 'a', text = 'A', metric = 'q'").contains("metric"));
}
