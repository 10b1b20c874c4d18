//! The rule of a claim: the expected range of its value, and the tolerance. It is part of the claim's data, so it is fixed before
//! any run.
//!
//! | in `figures.toml` | holds when the whole 95 % interval is | differs when it is wholly |
//! | --- | --- | --- |
//! | `above = x` | above x | at or below x |
//! | `below = x` | below x | at or above x |
//! | `at-least = x, within = t` | at or above x - t | below x - t |
//! | `at-most = x, within = t` | at or below x + t | above x + t |
//! | `equals = x, within = t` | inside x - t to x + t | outside |
//! | `from = a, to = b, within = t` | inside a - t to b + t | outside |
//!
//! Otherwise the claim is unclear. So an estimate that is too coarse never confirms anything, in particular not that two values are the
//! same (Schuirmann 1987: two one-sided tests).

use cutline_config::{TableReader, kind, suggestion};
use cutline_report::report::{ClaimVerdict, PaperValue};
use cutline_report::stats::Estimate;

/// Expected values of a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Expectation {
    Above(f64),
    Below(f64),
    AtLeast { bound: f64, within: f64 },
    AtMost { bound: f64, within: f64 },
    Equals { value: f64, within: f64 },
    Range { from: f64, to: f64, within: f64 },
}

/// The decision on a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decision {
    pub(crate) verdict: ClaimVerdict,
    /// The p-value of the one-sided test that decides; `None` without one.
    pub(crate) p_value: Option<f64>,
}

/// The keys of rules. `from` and `to` are one rule.
const RULES: [&str; 6] = ["above", "below", "at-least", "at-most", "equals", "from"];

/// Reads the rule of a claim; `None` if there is none, or it is wrong and reported.
pub(super) fn read(reader: &TableReader<'_>) -> Option<Expectation> {
    let number = |key: &str| reader.optional(key, &kind::number());
    let tolerance = kind::number().only("at least 0", |within| *within >= 0.0);
    let within = reader.or("within", &tolerance, 0.0);
    let rules = [
        number("above").map(Expectation::Above),
        number("below").map(Expectation::Below),
        number("at-least").map(|bound| Expectation::AtLeast { bound, within }),
        number("at-most").map(|bound| Expectation::AtMost { bound, within }),
        number("equals").map(|value| Expectation::Equals { value, within }),
        range(reader, within),
    ];
    let given: Vec<&str> = RULES.into_iter().filter(|key| reader.has(key)).collect();
    if let [first, second, ..] = given[..] {
        reader.refuse(second, &format!("the claim has the rule {first:?} already"));
    }
    check_tolerance(reader, given.first().copied());
    rules.into_iter().flatten().next()
}

/// Returns whether a claim has a rule, right or wrong. A key that is nearly that of a rule was meant to be one.
pub(super) fn is_given(reader: &TableReader<'_>) -> bool {
    let is_like_a_rule = |key: &str| !suggestion(key, RULES).is_empty();
    reader.entries().any(|(key, _)| ["to", "within"].contains(&key) || is_like_a_rule(key))
}

fn range(reader: &TableReader<'_>, within: f64) -> Option<Expectation> {
    let ends = ["from", "to"].map(|key| reader.optional(key, &kind::number()));
    for (key, other) in [("from", "to"), ("to", "from")] {
        if reader.has(other) && !reader.has(key) {
            reader.lacks(key, &format!("a number, because there is {other:?}"));
        }
    }
    let [Some(from), Some(to)] = ends else { return None };
    if from > to {
        reader.refuse("to", &format!("it must be at least \"from\", {from}"));
    }
    Some(Expectation::Range { from, to, within })
}

/// Reports a tolerance that the rule does not have.
fn check_tolerance(reader: &TableReader<'_>, rule: Option<&str>) {
    if !reader.has("within") || reader.has("to") {
        return;
    }
    match rule {
        None => reader.refuse("within", "a tolerance needs a rule, such as \"equals\""),
        Some(rule @ ("above" | "below")) => {
            reader.refuse("within", &format!("the rule {rule:?} has no tolerance"));
        }
        Some(_) => {}
    }
}

impl Expectation {
    /// Decides on an estimate. A value without an interval decides nothing, unless it has no randomness (`is_exact`).
    pub(crate) fn decide(&self, estimate: &Estimate, is_exact: bool) -> Decision {
        let exact = is_exact.then_some((estimate.mean, estimate.mean));
        let Some((low, high)) = estimate.interval.or(exact) else {
            return Decision { verdict: ClaimVerdict::Unclear, p_value: None };
        };
        let (least, most) = self.bounds();
        let is_strict = matches!(self, Self::Above(_) | Self::Below(_));
        let (inside, outside) = if is_strict {
            (low > least && high < most, high <= least || low >= most)
        } else {
            (low >= least && high <= most, high < least || low > most)
        };
        let sides = [(least, Side::Above), (most, Side::Below)];
        let tests = sides.into_iter().filter(|(bound, _)| bound.is_finite());
        let p_inside =
            tests.clone().map(|(bound, side)| side.p_value(estimate, bound)).fold(Some(0.0), largest);
        let p_outside =
            tests.map(|(bound, side)| side.other().p_value(estimate, bound)).fold(Some(1.0), smallest);
        let (verdict, p_value) = match (inside, outside) {
            (true, _) => (ClaimVerdict::Holds, p_inside),
            (_, true) => (ClaimVerdict::Differs, p_outside),
            _ => (ClaimVerdict::Unclear, smallest(p_inside, p_outside)),
        };
        Decision { verdict, p_value }
    }

    /// Returns the bounds of allowed values, including the tolerance.
    fn bounds(&self) -> (f64, f64) {
        match *self {
            Self::Above(value) => (value, f64::INFINITY),
            Self::Below(value) => (f64::NEG_INFINITY, value),
            Self::AtLeast { bound, within } => (bound - within, f64::INFINITY),
            Self::AtMost { bound, within } => (f64::NEG_INFINITY, bound + within),
            Self::Equals { value, within } => (value - within, value + within),
            Self::Range { from, to, within } => (from - within, to + within),
        }
    }

    /// The rule in words.
    pub(crate) fn rule(&self) -> String {
        let tolerance =
            |within: f64| if within == 0.0 { String::new() } else { format!(", tolerance {within}") };
        match *self {
            Self::Above(value) => format!("above {value}"),
            Self::Below(value) => format!("below {value}"),
            Self::AtLeast { bound, within } => format!("at least {bound}{}", tolerance(within)),
            Self::AtMost { bound, within } => format!("at most {bound}{}", tolerance(within)),
            Self::Equals { value, within } => format!("{value} \u{b1} {within}"),
            Self::Range { from, to, within } => format!("{from} to {to}{}", tolerance(within)),
        }
    }

    /// Returns the paper's value, if the claim gives it only by its rule.
    pub(crate) fn stated(&self) -> PaperValue {
        match *self {
            Self::Equals { value, .. } => PaperValue::Number(value),
            Self::AtLeast { bound, .. } => PaperValue::Text(format!("at least {bound}")),
            Self::AtMost { bound, .. } => PaperValue::Text(format!("at most {bound}")),
            Self::Range { from, to, .. } => PaperValue::Text(format!("{from} to {to}")),
            Self::Above(_) | Self::Below(_) => PaperValue::Text(self.rule()),
        }
    }
}

/// The side of a bound on which a value is claimed to be.
#[derive(Clone, Copy)]
enum Side {
    Above,
    Below,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Above => Self::Below,
            Self::Below => Self::Above,
        }
    }

    fn p_value(self, estimate: &Estimate, bound: f64) -> Option<f64> {
        match self {
            Self::Above => estimate.p_above(bound),
            Self::Below => estimate.p_below(bound),
        }
    }
}

fn largest(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.zip(other).map(|(one, other)| one.max(other))
}

fn smallest(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.zip(other).map(|(one, other)| one.min(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_config::Document;

    fn estimate(mean: f64, half: f64) -> Estimate {
        let std_error = half / cutline_report::stats::t_quantile_975(9);
        Estimate { mean, std_error: Some(std_error), interval: Some((mean - half, mean + half)), n: 10 }
    }

    fn verdict(rule: Expectation, mean: f64, half: f64) -> ClaimVerdict {
        let decision = rule.decide(&estimate(mean, half), false);
        let p_value = decision.p_value.unwrap();
        assert_eq!(
            p_value <= 0.025 + 1e-9,
            decision.verdict != ClaimVerdict::Unclear,
            "{rule:?} {mean} {half} {p_value}"
        );
        decision.verdict
    }

    #[test]
    fn a_claim_holds_only_if_the_whole_interval_is_within_the_tolerance() {
        let above = Expectation::Above(1.0);
        assert_eq!(verdict(above, 1.2, 0.1), ClaimVerdict::Holds);
        assert_eq!(verdict(above, 1.2, 0.3), ClaimVerdict::Unclear);
        assert_eq!(verdict(above, 0.8, 0.1), ClaimVerdict::Differs);
        assert_eq!(verdict(Expectation::Below(1.0), 0.8, 0.1), ClaimVerdict::Holds);
        let about_one = Expectation::Equals { value: 1.0, within: 0.05 };
        assert_eq!(verdict(about_one, 1.01, 0.02), ClaimVerdict::Holds);
        assert_eq!(verdict(about_one, 1.01, 0.2), ClaimVerdict::Unclear, "noise does not make values equal");
        assert_eq!(verdict(about_one, 1.10, 0.02), ClaimVerdict::Differs);
        let at_least = Expectation::AtLeast { bound: 1.0, within: 0.01 };
        assert_eq!(verdict(at_least, 1.00, 0.005), ClaimVerdict::Holds);
        assert_eq!(verdict(at_least, 1.00, 0.05), ClaimVerdict::Unclear);
        assert_eq!(verdict(at_least, 0.95, 0.02), ClaimVerdict::Differs);
        assert_eq!(verdict(Expectation::AtMost { bound: 1.0, within: 0.0 }, 1.2, 0.1), ClaimVerdict::Differs);
        let range = Expectation::Range { from: 1.08, to: 1.18, within: 0.02 };
        assert_eq!(verdict(range, 1.075, 0.01), ClaimVerdict::Holds);
        assert_eq!(verdict(range, 1.0, 0.01), ClaimVerdict::Differs);
    }

    #[test]
    fn a_value_without_an_interval_decides_a_check_alone() {
        let single = Estimate { mean: 0.7, std_error: None, interval: None, n: 1 };
        let rule = Expectation::Equals { value: 0.7, within: 0.01 };
        assert_eq!(rule.decide(&single, false).verdict, ClaimVerdict::Unclear);
        assert_eq!(rule.decide(&single, true), Decision { verdict: ClaimVerdict::Holds, p_value: None });
    }

    #[test]
    fn equal_values_of_all_seeds_are_not_above_their_value() {
        let constant = Estimate { mean: 0.0, std_error: Some(0.0), interval: Some((0.0, 0.0)), n: 10 };
        assert_eq!(Expectation::Above(0.0).decide(&constant, false).verdict, ClaimVerdict::Differs);
        let equals = Expectation::Equals { value: 0.0, within: 0.0 };
        assert_eq!(equals.decide(&constant, false).verdict, ClaimVerdict::Holds);
    }

    fn read(text: &str) -> Result<Option<Expectation>, String> {
        let document = Document::parse(text, "figures.toml").unwrap();
        let rule = cutline_config::read(&document, |root| {
            let rule = super::read(root);
            root.finish();
            Some(rule)
        });
        rule.map_err(|errors| errors.to_string())
    }

    #[test]
    fn keys_that_contradict_each_other_are_refused() {
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("above = 0"), Ok(Some(Expectation::Above(0.0))));
        assert_eq!(
            read("from = 1\nto = 2"),
            Ok(Some(Expectation::Range { from: 1.0, to: 2.0, within: 0.0 }))
        );
        for (text, why) in [
            (
                "above = 0\nbelow = 1",
                ":2:9: key \"below\": value 1 is not allowed: the claim has the rule \"above\" already",
            ),
            ("from = 1", ": key \"to\" is missing: expected a number, because there is \"from\""),
            ("from = 2\nto = 1", ":2:6: key \"to\": value 1 is not allowed: it must be at least \"from\", 2"),
            (
                "within = 1",
                ":1:10: key \"within\": value 1 is not allowed: a tolerance needs a rule, such as \"equals\"",
            ),
            (
                "above = 0\nwithin = 1",
                ":2:10: key \"within\": value 1 is not allowed: the rule \"above\" has no tolerance",
            ),
            (
                "equals = 1\nwithin = -1",
                ":2:10: key \"within\": value -1 is not allowed: expected a number such as 1.5, at least 0",
            ),
        ] {
            assert_eq!(read(text), Err(format!("figures.toml{why}")), "{text}");
        }
    }

    #[test]
    fn rules_are_described_in_words() {
        let rule = |text: &str| read(text).unwrap().unwrap().rule();
        assert_eq!(rule("equals = 1.18\nwithin = 0.02"), "1.18 \u{b1} 0.02");
        assert_eq!(rule("from = 1.08\nto = 1.18\nwithin = 0.02"), "1.08 to 1.18, tolerance 0.02");
        assert_eq!(rule("at-least = 1\nwithin = 0.01"), "at least 1, tolerance 0.01");
    }
}
