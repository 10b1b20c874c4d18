//! Measures over the intervals of a run, as data: a mean over some of them, or the time of the first one with
//! a property.

use cutline_config::{TableReader, Value, ValueKind, kind};

/// Reduction of the intervals of a flow or queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OverTime {
    /// The mean over the intervals within a time, s.
    Mean { from: f64, until: f64 },
    /// The standard deviation over the intervals within a time, s.
    Deviation { from: f64, until: f64 },
    /// The time from `after` to the end of the first interval of which the condition is true, s; infinite if there is none.
    First { after: f64, condition: Condition },
}

/// A condition on the value of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Condition {
    AtMost(f64),
    AtLeast(f64),
}

/// `over-time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Statistic {
    Mean,
    Deviation,
}

/// The times between which intervals count, s. The end may be `inf`.
pub(crate) fn during() -> ValueKind<(f64, f64)> {
    let infinity = ValueKind::new("inf", |node| match &node.value {
        Value::Float(text) if text.trim_start_matches('+') == "inf" => Ok(f64::INFINITY),
        _ => Err(String::new()),
    });
    let times = kind::list(2, "numbers", kind::number().or(infinity)).map(|times| (times[0], times[1]));
    times.only("a beginning and a later end, s", |(from, until)| from < until)
}

/// An interval of a run, and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    /// Its start, s.
    pub(crate) start: f64,
    /// Its end, s.
    pub(crate) end: f64,
    /// `None` if nothing was measured.
    pub(crate) value: Option<f64>,
}

/// Intervals begin and end at multiples of their width, up to the rounding of their bounds.
const ROUNDING_S: f64 = 1e-9;

impl OverTime {
    /// Joins the keys of a quantity.
    ///
    /// # Errors
    /// When they exclude each other: the key that is wrong, and why.
    pub(crate) fn join(
        during: Option<(f64, f64)>,
        statistic: Option<Statistic>,
        first: Option<Self>,
    ) -> Result<Option<Self>, (&'static str, &'static str)> {
        match (during, statistic, first) {
            (Some(_), _, Some(_)) => Err(("first", "\"first\" and \"during\" exclude each other")),
            (None, Some(_), _) => Err(("over-time", "it needs \"during\"")),
            (None, None, first) => Ok(first),
            (Some((from, until)), Some(Statistic::Deviation), None) => {
                Ok(Some(Self::Deviation { from, until }))
            }
            (Some((from, until)), _, None) => Ok(Some(Self::Mean { from, until })),
        }
    }

    /// Reads `first = { at-most = 800, after = 20 }`.
    pub(crate) fn first(reader: &TableReader<'_>) -> Option<Self> {
        let table = reader.table("first", "a table such as { at-most = 800, after = 20 }")?;
        let at_most = table.optional("at-most", &kind::number());
        let at_least = table.optional("at-least", &kind::number());
        let after = table.or("after", &kind::number(), 0.0);
        let condition = match (table.has("at-most"), table.has("at-least")) {
            (true, true) => {
                table.refuse("at-least", "\"at-most\" and \"at-least\" exclude each other");
                None
            }
            (false, false) => {
                table.lacks("at-most", "a number, here or as \"at-least\"");
                None
            }
            _ => at_most.map(Condition::AtMost).or(at_least.map(Condition::AtLeast)),
        };
        table.finish();
        Some(Self::First { after, condition: condition? })
    }

    /// The value of the intervals of one flow or queue; NaN if none has one.
    pub(crate) fn of(self, intervals: &[Interval]) -> f64 {
        match self {
            Self::Mean { from, until } => mean(&within(intervals, from, until)),
            Self::Deviation { from, until } => {
                let values = within(intervals, from, until);
                let centre = mean(&values);
                mean(&values.iter().map(|value| (value - centre).powi(2)).collect::<Vec<_>>()).sqrt()
            }
            Self::First { after, condition } => {
                let is_so = |interval: &&Interval| {
                    interval.start >= after - ROUNDING_S
                        && interval.value.is_some_and(|value| condition.holds(value))
                };
                intervals.iter().find(is_so).map_or(f64::INFINITY, |interval| interval.end - after)
            }
        }
    }
}

impl Condition {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
        }
    }
}

/// The values of the intervals that lie within a time.
fn within(intervals: &[Interval], from: f64, until: f64) -> Vec<f64> {
    let lies =
        |interval: &&Interval| from - ROUNDING_S <= interval.start && interval.end <= until + ROUNDING_S;
    intervals.iter().filter(lies).filter_map(|interval| interval.value).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_config::Document;

    fn intervals(values: &[f64]) -> Vec<Interval> {
        let at = |(index, value): (usize, &f64)| Interval {
            start: index as f64 * 0.5,
            end: (index + 1) as f64 * 0.5,
            value: Some(*value),
        };
        values.iter().enumerate().map(at).collect()
    }

    #[test]
    fn only_intervals_that_lie_within_the_time_count() {
        let run = intervals(&[1.0, 2.0, 4.0, 8.0]);
        assert_eq!(OverTime::Mean { from: 0.5, until: 1.5 }.of(&run), 3.0);
        assert_eq!(OverTime::Mean { from: 0.4, until: 1.6 }.of(&run), 3.0);
        assert_eq!(OverTime::Deviation { from: 0.5, until: 1.5 }.of(&run), 1.0);
        assert!(OverTime::Mean { from: 5.0, until: 6.0 }.of(&run).is_nan());
    }

    #[test]
    fn a_time_is_a_beginning_and_a_later_end_or_none() {
        let read = |text: &str| {
            let document = Document::parse(text, "figures.toml").unwrap();
            cutline_config::read(&document, |root| root.optional("during", &during()))
        };
        assert_eq!(read("during = [20, 80]"), Ok((20.0, 80.0)));
        assert_eq!(read("during = [20, inf]"), Ok((20.0, f64::INFINITY)));
        assert_eq!(
            read("during = [80, 20]").unwrap_err().to_string(),
            "figures.toml:1:10: key \"during\": value [...] is not allowed: expected a list of 2 numbers, a beginning and a later \
             end, s"
        );
    }

    #[test]
    fn the_first_interval_is_searched_after_the_time() {
        let run = intervals(&[1.0, 9.0, 4.0, 8.0]);
        let first = |after, condition| OverTime::First { after, condition }.of(&run);
        assert_eq!(first(0.5, Condition::AtMost(4.0)), 1.0);
        assert_eq!(first(0.0, Condition::AtLeast(8.0)), 1.0);
        assert_eq!(first(1.0, Condition::AtLeast(9.0)), f64::INFINITY);
    }
}
