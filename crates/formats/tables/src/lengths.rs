//! Lengths of a queue that a file sets as times: `q-ref = "20 ms"` beside `q-ref = "40 packets"`.
//!
//! A time is the delay that a queue of that length causes: `packets = time x rate / (8 x mean packet)`, as the papers
//! convert (Adaptive RED 2001 section 6 has min-th = target delay x C / 2, with C in mean packets per second). The rate is
//! that of the link at the start. The mean packet is the AQM's `mean-packet`, and 1000 B, the papers' packet, where that is
//! off or the AQM has none. The result is not rounded: these parameters are numbers, not counts.
//!
//! Worked number: 20 ms at 15 Mbit/s are 37.5 packets of 1000 B (`a_time_is_a_length_at_the_links_rate`).

use cutline_aqm::{AqmDescription, AqmSpec};
use cutline_config::TableReader;
use cutline_config::kind;
use cutline_config::parameter;
use cutline_params::{Parameter, ParameterError, ParameterKind as Allowed, ParameterValue};
use cutline_units::{Duration, Rate};

/// The longest time that a length may be set to.
const LONGEST: Duration = Duration::from_secs(100);

/// The parameter with the mean size of a packet.
const MEAN_PACKET: &str = "mean-packet";

/// The mean size of a packet without that parameter, bytes.
const USUAL_PACKET: u64 = 1000;

/// An AQM as a file sets it.
#[derive(Clone, Debug, PartialEq)]
pub struct AqmConfig {
    name: &'static str,
    values: Vec<(&'static str, ParameterValue)>,
    /// The lengths that are set as times.
    times: Vec<(&'static str, Duration)>,
    below: Option<Box<Self>>,
}

/// The AQM that a table sets, and its specification with the lengths that are times left out; `None` if a value is not
/// allowed, which is reported.
pub fn read(reader: &TableReader<'_>, aqm: &AqmDescription) -> Option<(AqmConfig, AqmSpec)> {
    let (lengths, others): (Vec<_>, Vec<_>) =
        aqm.parameters.iter().copied().partition(|parameter| may_be_a_time(parameter));
    let mut values = parameter::values(reader, &others);
    let mut times = Vec::new();
    for length in lengths {
        match reader.optional(length.name, &parameter::kind_of(length).or(time())) {
            Some(ParameterValue::Duration(time)) => times.push((length.name, time)),
            value => values.extend(value.map(|value| (length.name, value))),
        }
    }
    let config = AqmConfig { name: aqm.name, values, times, below: None };
    // Thresholds may contradict each other at one rate and not at another, so they are checked together at the link's.
    let (timeless, values) = (config.times.is_empty(), config.values.iter().cloned());
    let is_required = |name| others.iter().any(|parameter| parameter.name == name && parameter.required);
    let spec = AqmSpec::from_values(aqm.name, values.filter(|(name, _)| timeless || is_required(*name)));
    Some((config, parameter::checked(reader, spec)?))
}

/// Returns whether a parameter is a length in packets that need not be whole.
fn may_be_a_time(parameter: &Parameter) -> bool {
    matches!(parameter.kind, Allowed::Number { .. }) && parameter.unit == "packets" && !parameter.required
}

fn time() -> kind::ValueKind<ParameterValue> {
    let range = format!("from {} to {LONGEST}", Duration::ZERO);
    kind::duration().only(&range, |time| *time <= LONGEST).map(ParameterValue::Duration)
}

impl AqmConfig {
    /// Sets the AQM of the inner queues.
    pub fn with_below(self, below: Self) -> Self {
        Self { below: Some(Box::new(below)), ..self }
    }

    /// Returns whether a length is set as a time.
    pub fn has_times(&self) -> bool {
        !self.times.is_empty() || self.below.as_ref().is_some_and(|below| below.has_times())
    }

    /// The AQM in front of a link of this rate.
    ///
    /// # Errors
    /// When a length is not allowed at this rate.
    pub fn at_rate(&self, rate: Rate) -> Result<AqmSpec, ParameterError> {
        let size = self.mean_packet()?;
        let lengths =
            self.times.iter().map(|(name, time)| (*name, ParameterValue::Number(packets(*time, rate, size))));
        let aqm = AqmSpec::from_values(self.name, self.values.iter().cloned().chain(lengths))?;
        self.below
            .as_ref()
            .map_or_else(|| Ok(aqm.clone()), |below| aqm.clone().with_below(below.at_rate(rate)?))
    }

    /// The mean size of a packet, bytes: the value that is set, or else the AQM's default.
    fn mean_packet(&self) -> Result<u64, ParameterError> {
        let given = self.values.iter().filter(|(name, _)| *name == MEAN_PACKET).cloned();
        let spec = AqmSpec::from_values(self.name, given)?.values();
        let size = spec.into_iter().find_map(|(name, value)| match value {
            ParameterValue::Count(size) if name == MEAN_PACKET => Some(size),
            _ => None,
        });
        Ok(size.unwrap_or(USUAL_PACKET))
    }
}

/// Returns the number of packets of `size` bytes that a link of this rate sends in `time`.
fn packets(time: Duration, rate: Rate, size: u64) -> f64 {
    time.as_nanos() as f64 * rate.as_bps() as f64 / (8e9 * size as f64)
}

#[cfg(test)]
mod tests {
    use crate::queue::{self, QueueConfig};
    use cutline_config::{Document, Errors};
    use cutline_params::ParameterValue;
    use cutline_units::Rate;
    use std::sync::Arc;

    fn queue(text: &str) -> Result<Arc<QueueConfig>, Errors> {
        let document =
            Document::parse(&format!("queue.q = {{ limit = '400 packets', {text} }}\n"), "q.toml")?;
        cutline_config::read(&document, |root| {
            let named = queue::named(root);
            root.finish();
            named["q"].clone()
        })
    }

    fn values(text: &str, rate: Rate) -> Vec<(&'static str, ParameterValue)> {
        queue(text).unwrap().at_rate(rate).unwrap().aqm.values()
    }

    #[test]
    fn a_time_is_a_length_at_the_links_rate() {
        let pi = |text: &str, mbps, packets: f64| {
            let all = values(&format!("aqm = 'pi', {text}"), Rate::from_mbps(mbps));
            assert!(all.contains(&("q-ref", ParameterValue::Number(packets))), "{text}: {all:?}");
        };
        pi("q-ref = '20 ms'", 15, 37.5);
        pi("q-ref = '20 ms'", 30, 75.0);
        pi("q-ref = '20 ms', mean-packet = '500 B'", 15, 75.0);
        pi("q-ref = '40 packets'", 15, 40.0);
        pi("frequency = '160 Hz'", 15, 200.0);
        for aqm in ["red", "ared"] {
            let text = format!("aqm = '{aqm}', min-th = '10 ms', max-th = '30 ms', mean-packet = '500 B'");
            let all = values(&text, Rate::from_mbps(8));
            assert!(all.contains(&("min-th", ParameterValue::Number(20.0))), "{all:?}");
            assert!(all.contains(&("max-th", ParameterValue::Number(60.0))), "{all:?}");
        }
    }

    #[test]
    fn a_time_may_be_set_below_strict_priority() {
        let queue = queue("aqm = 'strict-priority', below = { aqm = 'pi', q-ref = '20 ms' }").unwrap();
        let aqm = queue.at_rate(Rate::from_mbps(15)).unwrap().aqm;
        assert!(aqm.below().unwrap().values().contains(&("q-ref", ParameterValue::Number(37.5))));
    }

    #[test]
    fn thresholds_are_checked_at_the_links_rate() {
        // 5 packets of the default, and 4 or 8 at the rate of the link.
        let red = queue("aqm = 'red', max-th = '4 ms'").unwrap();
        let refused = red.at_rate(Rate::from_mbps(8)).unwrap_err().to_string();
        assert_eq!(refused, "max-th = 4: allowed is more than min-th = 5");
        assert!(red.at_rate(Rate::from_mbps(16)).is_ok());
        let pi = queue("aqm = 'pi', q-ref = '100 s'").unwrap();
        let refused = pi.at_rate(Rate::from_bps(100_000_000_000)).unwrap_err().to_string();
        assert_eq!(refused, "q-ref = 1250000000: allowed is a number from 0 to 10000000 packets");
    }

    #[test]
    fn other_values_are_refused_with_both_ranges() {
        let why = |text: &str| queue(&format!("aqm = 'pi', {text}")).unwrap_err().to_string();
        let both = "from 0 to 10000000 packets or a duration";
        for text in ["q-ref = '200 s'", "q-ref = '20 KB'", "q-ref = true"] {
            let said = why(text);
            assert!(said.contains(both) && said.contains("100 s"), "{said}");
        }
        assert!(why("mean-packet = '20 ms'").contains("mean-packet"));
    }
}
