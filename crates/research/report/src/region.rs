//! The region of operation of a QoS specification as a radar chart (QUANTA section 4).

use crate::chart::{Radar, Spoke, shortest};
use cutline_quality::spec::{Axis, Interval, Region};

/// A chart with a spoke for each axis of the region, and a band for each interval of operation. The intervals are those of
/// the same region.
///
/// # Panics
/// When an interval has another region.
pub fn radar(title: &str, region: &Region, intervals: &[(&str, &Interval)]) -> Radar {
    let value = |axis: &Axis, value: f64| format!("{} {}", shortest(value), axis.measure.unit());
    let spoke = |axis: &Axis| Spoke {
        name: axis.measure.name().to_owned(),
        best: value(axis, axis.best),
        worst: shortest(axis.worst),
    };
    let chart = Radar::new(title, region.axes().iter().map(spoke));
    intervals.iter().fold(chart, |chart, (name, interval)| {
        assert_eq!(interval.region(), region, "an interval is drawn in its own region");
        let ends = region.axes().iter().map(|axis| {
            let (_, best, worst) = interval.seen().find(|(seen, ..)| *seen == axis)?;
            Some((axis.position(worst), axis.position(best)))
        });
        chart.band(*name, ends)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Theme;
    use cutline_quality::spec::{Measure, Preset};

    #[test]
    fn a_region_has_a_spoke_for_each_axis_with_its_ends() {
        let region = Region::new(&Preset::Video.specification());
        let mut interval = Interval::new(region.clone());
        for (measure, value) in [(Measure::Rate, 90.0), (Measure::Delay, 180.0), (Measure::Delay, 210.0)] {
            interval.observe(measure, value);
        }
        let svg = radar("Video", &region, &[("measured", &interval)]).svg(Theme::Paper);
        for text in ["rate", "156.25 messages/s", "40", "delay", "150 ms", "400", "loss", "0 %", "measured"] {
            assert!(svg.contains(&format!(">{text}<")), "{text}");
        }
        assert!(!svg.contains(">gap<"), "any value is acceptable");
    }
}
