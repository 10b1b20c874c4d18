//! What a sweep shows, in a sentence for each group: at which point it is best off, and what that costs.

use crate::table::significant;
use cutline_report::stats::{Comparison, Estimate};
use cutline_results::Values;
use cutline_text::Printable;
use std::fmt::Write as _;

/// The most points that are compared. A larger sweep is for a picture.
const MOST: usize = 40;

/// What is told beside the quality: the column, its name, its unit, and the factor from the tables' unit.
const TOLD: [(&str, &str, &str, f64); 3] = [
    ("one_way_mean_ms", "one-way delay", "ms", 1.0),
    ("loss_ratio", "loss", "%", 100.0),
    ("goodput_bps", "goodput", "kbit/s", 1e-3),
];

/// Returns a sentence for each group that has a quality, or nothing without several points and seeds.
pub fn sentences(found: &[Values]) -> String {
    let qualities: Vec<&Values> = found.iter().filter(|values| values.measure == "q").collect();
    let mut groups: Vec<&str> = Vec::new();
    for values in &qualities {
        if !groups.contains(&&*values.subject.name) {
            groups.push(&values.subject.name);
        }
    }
    let mut text = String::new();
    for group in groups {
        let of_group: Vec<&Values> =
            qualities.iter().filter(|values| *values.subject.name == *group).copied().collect();
        if let Some(sentence) = sentence(found, &of_group) {
            let _ = writeln!(text, "{}: {}", Printable(group), Printable(sentence));
        }
    }
    text
}

/// The points with the highest and the lowest quality, or that they do not differ.
fn sentence(found: &[Values], points: &[&Values]) -> Option<String> {
    let mean = |values: &Values| Estimate::from_values(&values.values()).map(|estimate| estimate.mean);
    let measured: Vec<(&Values, f64)> =
        points.iter().filter_map(|values| Some((*values, mean(values)?))).collect();
    if measured.len() < 2 || measured.len() > MOST {
        return None;
    }
    let by_mean = |a: &&(&Values, f64), b: &&(&Values, f64)| a.1.total_cmp(&b.1);
    let (best, worst) = (measured.iter().max_by(by_mean)?, measured.iter().min_by(by_mean)?);
    let difference = Comparison::new(&best.0.by_seed, &worst.0.by_seed)?;
    // A single seed has no interval, and nothing can be said.
    difference.interval?;
    if !difference.is_significant() {
        return Some(format!(
            "no point's quality differs from another's beyond the 95 % interval (Q = {:.3})",
            best.1
        ));
    }
    let value = |of: &Values, measure: &str| {
        let is_it = |values: &&Values| values.measure == measure && values.subject == of.subject;
        mean(found.iter().find(is_it)?)
    };
    let told = TOLD.iter().filter_map(|(measure, name, unit, scale)| {
        let (here, there) = (value(best.0, measure)? * scale, value(worst.0, measure)? * scale);
        let (here, there) = (significant(here, 3), significant(there, 3));
        (here != there).then(|| format!("{name} {here} instead of {there} {unit}"))
    });
    let told: Vec<String> = told.collect();
    let rest = if told.is_empty() { String::new() } else { format!("; there, {}", told.join(", ")) };
    Some(format!(
        "best with {} (Q = {:.3}), worst with {} (Q = {:.3}){rest}",
        best.0.subject.point, best.1, worst.0.subject.point, worst.1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_results::{Subject, SubjectKind};

    fn values(point: &str, measure: &'static str, of_seeds: &[f64]) -> Values {
        let subject = Subject { point: point.into(), kind: SubjectKind::Group, name: "audio".into() };
        Values { subject, measure, by_seed: (1..).zip(of_seeds.iter().copied()).collect() }
    }

    #[test]
    fn the_best_point_is_told_with_what_it_costs() {
        let found = [
            values("hint=1", "q", &[0.990, 0.991, 0.992]),
            values("hint=1", "loss_ratio", &[0.010, 0.012, 0.011]),
            values("hint=1", "one_way_mean_ms", &[70.0, 71.0, 72.0]),
            values("hint=16", "q", &[0.80, 0.82, 0.81]),
            values("hint=16", "loss_ratio", &[0.001, 0.001, 0.001]),
            values("hint=16", "one_way_mean_ms", &[210.0, 213.0, 216.0]),
        ];
        assert_eq!(
            sentences(&found),
            "audio: best with hint=1 (Q = 0.991), worst with hint=16 (Q = 0.810); there, one-way delay 71.0 instead of 213 ms, \
             loss 1.10 instead of 0.100 %\n"
        );
    }

    #[test]
    fn differences_within_the_interval_are_none() {
        let found = [values("hint=1", "q", &[0.7, 0.9, 0.8]), values("hint=16", "q", &[0.9, 0.7, 0.79])];
        assert!(sentences(&found).contains("no point's quality differs"), "{}", sentences(&found));
    }

    #[test]
    fn one_point_or_one_seed_says_nothing() {
        assert_eq!(sentences(&[values("", "q", &[0.7, 0.9])]), "");
        assert_eq!(sentences(&[values("hint=1", "q", &[0.7]), values("hint=16", "q", &[0.9])]), "");
    }
}
