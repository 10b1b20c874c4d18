//! Summary of a sweep, in a sentence for each group: the point at which it is best off, and the cost of that.

use cutline_report::stats::{Comparison, Estimate, significant};
use cutline_results::Values;
use cutline_text::Printable;
use std::fmt::Write as _;

/// The most points that are compared. A larger sweep is for a picture.
const MOST: usize = 40;

/// Measures beside the quality: the column, its name, its unit, and the factor from the tables' unit.
const COSTS: [(&str, &str, &str, f64); 3] = [
    ("one_way_mean_ms", "one-way delay", "ms", 1.0),
    ("loss_ratio", "loss", "%", 100.0),
    ("goodput_bps", "goodput", "kbit/s", 1e-3),
];

/// The most environments that a group has a sentence for.
const MOST_ENVIRONMENTS: usize = 6;

/// The settings of a point: keys and values, in the order of the sweep.
pub type Settings<'s> = &'s [(String, String)];

/// Returns whether a key describes the environment of flows, and not an alternative: the rates, delays and
/// faults of links, the shape of a topology but for its queues, and the load. Points with different links or loads are not
/// alternatives.
fn is_environment(key: &str) -> bool {
    const OF_LINKS: [&str; 7] =
        ["rate", "delay", "access-rate", "access-delay", "rate-changes", "rate-trace", "rate-trace-as"];
    let (first, last) = (key.split('.').next().unwrap_or(key), key.rsplit('.').next().unwrap_or(key));
    match first {
        "dumbbell" | "link" => OF_LINKS.contains(&last) || key.contains("impairment"),
        "topology" => !matches!(key.split('.').nth(1), Some("queue" | "host-queue")),
        "flow" => last == "count" || key.contains(".app.") || key.contains(".arrivals."),
        _ => false,
    }
}

/// Returns a sentence for each group that has a quality and each environment, or nothing without several points and seeds. `settings` are
/// those of a point by its label.
pub fn sentences<'s>(found: &[Values], settings: &dyn Fn(&str) -> Settings<'s>) -> String {
    let qualities: Vec<&Values> = found.iter().filter(|values| values.measure == "q").collect();
    let mut groups: Vec<&str> = Vec::new();
    for values in &qualities {
        if !groups.contains(&&*values.subject.name) {
            groups.push(&values.subject.name);
        }
    }
    let mut text = String::new();
    for group in groups {
        let of_group = qualities.iter().filter(|values| *values.subject.name == *group).copied();
        let environments = environments(of_group, settings);
        let sentences: Vec<(String, String)> = environments
            .into_iter()
            .filter_map(|(environment, points)| Some((environment, sentence(found, &points, settings)?)))
            .collect();
        for (environment, sentence) in sentences.iter().take(MOST_ENVIRONMENTS) {
            let place = if environment.is_empty() { String::new() } else { format!(", {environment}") };
            let _ = writeln!(text, "{}{}: {}", Printable(group), Printable(place), Printable(sentence));
        }
        if sentences.len() > MOST_ENVIRONMENTS {
            let _ = writeln!(
                text,
                "{}: {} further environments",
                Printable(group),
                sentences.len() - MOST_ENVIRONMENTS
            );
        }
    }
    text
}

/// The points by their environment, in the order of the points.
fn environments<'v, 's>(
    points: impl Iterator<Item = &'v Values>,
    settings: &dyn Fn(&str) -> Settings<'s>,
) -> Vec<(String, Vec<&'v Values>)> {
    let mut found: Vec<(String, Vec<&Values>)> = Vec::new();
    for values in points {
        let of_point = settings(&values.subject.point);
        let environment = in_words(of_point.iter().filter(|(key, _)| is_environment(key)));
        match found.iter_mut().find(|(known, _)| *known == environment) {
            Some((_, points)) => points.push(values),
            None => found.push((environment, vec![values])),
        }
    }
    found
}

fn in_words<'s>(settings: impl Iterator<Item = &'s (String, String)>) -> String {
    settings.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

/// Returns the differences of a point from others of its environment; its label if there are none.
fn name<'s>(values: &Values, points: &[&Values], settings: &dyn Fn(&str) -> Settings<'s>) -> String {
    let varies = |(key, value): &&(String, String)| {
        !points.iter().all(|other| settings(&other.subject.point).iter().any(|(k, v)| k == key && v == value))
    };
    let words = in_words(settings(&values.subject.point).iter().filter(varies));
    if words.is_empty() { values.subject.point.to_string() } else { words }
}

/// The points with the highest and the lowest quality, or that they do not differ.
fn sentence<'s>(
    found: &[Values],
    points: &[&Values],
    settings: &dyn Fn(&str) -> Settings<'s>,
) -> Option<String> {
    let mean = |values: &Values| Estimate::from_values(&values.values()).map(|estimate| estimate.mean);
    let measured: Vec<(&Values, f64)> =
        points.iter().filter_map(|values| Some((*values, mean(values)?))).collect();
    if measured.len() < 2 || measured.len() > MOST {
        return None;
    }
    let by_mean = |a: &&(&Values, f64), b: &&(&Values, f64)| a.1.total_cmp(&b.1);
    let (best, worst) = (measured.iter().max_by(by_mean)?, measured.iter().min_by(by_mean)?);
    let difference = Comparison::new(&best.0.by_seed, &worst.0.by_seed)?;
    // A single seed has no interval, so no statement is possible.
    difference.interval?;
    if !difference.is_significant() {
        return Some(format!(
            "no point's quality differs from another's beyond the 95 % interval (Q = {:.3})",
            best.1
        ));
    }
    let values = |of: &Values, measure: &str| {
        found.iter().find(|values| values.measure == measure && values.subject == of.subject)
    };
    let costs = COSTS.iter().filter_map(|(measure, name, unit, scale)| {
        let (here, there) = (values(best.0, measure)?, values(worst.0, measure)?);
        // A difference within the interval is chance.
        let differ = Comparison::new(&here.by_seed, &there.by_seed)?.is_significant();
        let (here, there) = (significant(mean(here)? * scale, 3), significant(mean(there)? * scale, 3));
        (differ && here != there).then(|| format!("{name} {here} instead of {there} {unit}"))
    });
    let costs: Vec<String> = costs.collect();
    let rest = if costs.is_empty() { String::new() } else { format!("; there, {}", costs.join(", ")) };
    Some(format!(
        "best with {} (Q = {:.3}), worst with {} (Q = {:.3}){rest}",
        name(best.0, points, settings),
        best.1,
        name(worst.0, points, settings),
        worst.1
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

    fn none(_: &str) -> Settings<'static> {
        &[]
    }

    /// A queue is not better because its link is faster.
    #[test]
    fn points_are_compared_within_one_environment() {
        let setting = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let at = |rate: &str, queue: &str| {
            vec![
                setting("dumbbell.rate", rate),
                setting("dumbbell.queue.limit", rate),
                setting("dumbbell.queue.aqm", queue),
            ]
        };
        let all = [("a", at("4 Mbit/s", "pi")), ("b", at("4 Mbit/s", "sieve")), ("c", at("90 Mbit/s", "pi"))];
        let found = [
            values("a", "q", &[0.40, 0.41, 0.42]),
            values("b", "q", &[0.60, 0.61, 0.62]),
            values("c", "q", &[0.90, 0.91, 0.92]),
        ];
        let settings = |label: &str| &*all.iter().find(|(name, _)| *name == label).unwrap().1;
        assert_eq!(
            sentences(&found, &settings),
            "audio, dumbbell.rate=4 Mbit/s: best with dumbbell.queue.aqm=sieve (Q = 0.610), worst with dumbbell.queue.aqm=pi (Q = 0.410)\n"
        );
        for key in [
            "link.backbone.delay",
            "flow.bulk.count",
            "flow.web.app.rate",
            "flow.web.arrivals.load",
            "dumbbell.impairment.loss",
            "topology.rate",
            "topology.host-rate",
            "topology.spines",
        ] {
            assert!(is_environment(key), "{key}");
        }
        for key in [
            "flow.audio.hint",
            "dumbbell.queue.aqm",
            "dumbbell.queue.target",
            "queue.router.limit",
            "topology.queue.aqm",
            "topology.host-queue.limit",
        ] {
            assert!(!is_environment(key), "{key}");
        }
    }

    #[test]
    fn the_best_point_is_named_with_its_costs() {
        let found = [
            values("hint=1", "q", &[0.990, 0.991, 0.992]),
            values("hint=1", "loss_ratio", &[0.010, 0.012, 0.011]),
            values("hint=1", "one_way_mean_ms", &[70.0, 71.0, 72.0]),
            values("hint=16", "q", &[0.80, 0.82, 0.81]),
            values("hint=16", "loss_ratio", &[0.001, 0.001, 0.001]),
            values("hint=16", "one_way_mean_ms", &[210.0, 213.0, 216.0]),
        ];
        assert_eq!(
            sentences(&found, &none),
            "audio: best with hint=1 (Q = 0.991), worst with hint=16 (Q = 0.810); there, one-way delay 71.0 instead of 213 ms, \
             loss 1.10 instead of 0.100 %\n"
        );
    }

    #[test]
    fn insignificant_differences_are_left_out() {
        let found = [
            values("hint=1", "q", &[0.990, 0.991, 0.992]),
            values("hint=1", "goodput_bps", &[64_100.0, 63_200.0, 64_000.0]),
            values("hint=16", "q", &[0.80, 0.82, 0.81]),
            values("hint=16", "goodput_bps", &[63_000.0, 64_000.0, 63_100.0]),
        ];
        assert_eq!(
            sentences(&found, &none),
            "audio: best with hint=1 (Q = 0.991), worst with hint=16 (Q = 0.810)\n"
        );
    }

    #[test]
    fn differences_within_the_interval_are_none() {
        let found = [values("hint=1", "q", &[0.7, 0.9, 0.8]), values("hint=16", "q", &[0.9, 0.7, 0.79])];
        assert!(
            sentences(&found, &none).contains("no point's quality differs"),
            "{}",
            sentences(&found, &none)
        );
    }

    #[test]
    fn one_point_or_one_seed_is_no_evidence() {
        assert_eq!(sentences(&[values("", "q", &[0.7, 0.9])], &none), "");
        assert_eq!(sentences(&[values("hint=1", "q", &[0.7]), values("hint=16", "q", &[0.9])], &none), "");
    }
}
