//! Settings of every socket of a program, and their form in the environment.

use cutline_units::{Bytes, Dscp, Duration, Hint, HintTable, Rate};
use std::fmt;
use std::str::FromStr;

/// The environment variable that has the settings.
pub const VARIABLE: &str = "CUTLINE_EXEC";

/// The environment variable that has the path of the table of counters.
pub const TABLE_VARIABLE: &str = "CUTLINE_EXEC_TABLE";

/// Settings of every socket. Settings that are `None` are left to the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkSettings {
    /// The code point of every packet.
    pub dscp: Option<Dscp>,
    /// The priority of packets in the host's own queues, 0..=6 (`SO_PRIORITY`).
    pub priority: Option<u8>,
    /// The highest rate of each socket, of payload.
    pub rate: Option<Rate>,
    /// Amount of unsent data that a TCP socket accepts (`TCP_NOTSENT_LOWAT`).
    pub unsent: Option<Bytes>,
}

/// A text that is not the form of any settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingsError;

/// Hints up to this one are of applications that are sensitive to delay: their packets are served first in the host's own queues.
const MINDS_DELAY: u16 = 8;
/// `TC_PRIO_INTERACTIVE` of `linux/pkt_sched.h`. It is the highest priority that needs no privilege.
const INTERACTIVE: u8 = 6;
/// Waiting time of unsent data in the socket of an application that is sensitive to delay.
const UNSENT: Duration = Duration::from_millis(100);
/// The smallest and the largest amount of unsent data that is set, bytes. A smaller one costs throughput.
const UNSENT_RANGE: [u64; 2] = [16 * 1024, 128 * 1024];

impl MarkSettings {
    /// The settings for a code point and a rate. Priority and unsent data follow from the hint that the code point stands
    /// for: both are set for hints up to 8.
    pub fn new(dscp: Option<Dscp>, rate: Option<Rate>) -> Self {
        let minds_delay = |hint: Hint| hint.level() <= MINDS_DELAY;
        let minds_delay = dscp.is_some_and(|dscp| minds_delay(HintTable::standard().hint(dscp)));
        let unsent = rate.map_or(UNSENT_RANGE[1], |rate| rate.bytes_in(UNSENT).get());
        let unsent = Bytes::new(unsent.clamp(UNSENT_RANGE[0], UNSENT_RANGE[1]));
        Self {
            dscp,
            rate,
            priority: minds_delay.then_some(INTERACTIVE),
            unsent: minds_delay.then_some(unsent),
        }
    }

    /// The traffic class octet that is set where the program has requested `asked`: the code point, with the program's ECN
    /// bits. A program requests the default with -1.
    pub fn traffic_class(&self, asked: i32) -> i32 {
        let octet = if asked < 0 { 0 } else { asked as u8 };
        self.dscp.map_or(asked, |dscp| dscp.in_traffic_class(octet).into())
    }

    /// The pacing rate that is set where the program has requested `asked`, bytes/s: the lower one.
    pub fn pacing_rate(&self, asked: u64) -> u64 {
        self.rate.map_or(asked, |rate| asked.min(rate.as_bps() / 8))
    }
}

/// The form in the environment: keys with plain numbers.
impl fmt::Display for MarkSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("v=1")?;
        let pairs = [
            ("dscp", self.dscp.map(|dscp| dscp.get().into())),
            ("priority", self.priority.map(u64::from)),
            ("rate", self.rate.map(Rate::as_bps)),
            ("unsent", self.unsent.map(Bytes::get)),
        ];
        pairs
            .into_iter()
            .try_for_each(|(key, value)| value.map_or(Ok(()), |value| write!(f, ",{key}={value}")))
    }
}

impl FromStr for MarkSettings {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let rest = text.strip_prefix("v=1").ok_or(SettingsError)?;
        let mut settings = Self::default();
        for pair in rest.split(',').skip(1) {
            let (key, value) = pair.split_once('=').ok_or(SettingsError)?;
            let value: u64 = value.parse().map_err(|_| SettingsError)?;
            let small = || u8::try_from(value).map_err(|_| SettingsError);
            match key {
                "dscp" => settings.dscp = Some(Dscp::new(small()?).ok_or(SettingsError)?),
                "priority" => settings.priority = Some(small()?),
                "rate" => settings.rate = (value > 0).then_some(Rate::from_bps(value)),
                "unsent" => settings.unsent = Some(Bytes::new(value)),
                _ => return Err(SettingsError),
            }
        }
        if rest.is_empty() || rest.starts_with(',') { Ok(settings) } else { Err(SettingsError) }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected settings such as \"v=1,dscp=23,rate=500000\"")
    }
}

impl std::error::Error for SettingsError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn applications_that_mind_delay_get_priority_and_short_buffers() {
        let video = MarkSettings::new(Dscp::new(23), Some(Rate::from_kbps(500)));
        assert_eq!((video.priority, video.unsent), (Some(6), Some(Bytes::new(16 * 1024))));
        let fast = MarkSettings::new(Dscp::new(23), Some(Rate::from_mbps(8)));
        assert_eq!(fast.unsent, Some(Bytes::new(100_000)));
        let bulk = MarkSettings::new(Dscp::new(63), None);
        assert_eq!(bulk, MarkSettings { dscp: Dscp::new(63), ..MarkSettings::default() });
    }

    #[test]
    fn the_program_keeps_its_ecn_bits_and_nothing_else() {
        let settings = MarkSettings::new(Dscp::new(23), None);
        assert_eq!(settings.traffic_class(0b1011_1010), 23 << 2 | 0b10);
        assert_eq!(settings.traffic_class(-1), 23 << 2);
        assert_eq!(MarkSettings::default().traffic_class(0xb8), 0xb8);
    }

    #[test]
    fn the_lower_rate_holds() {
        let settings = MarkSettings::new(None, Some(Rate::from_kbps(800)));
        assert_eq!(
            [50_000, 200_000, u64::MAX].map(|asked| settings.pacing_rate(asked)),
            [50_000, 100_000, 100_000]
        );
        assert_eq!(MarkSettings::default().pacing_rate(7), 7);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in
            ["", "v=2", "v=12", "v=1dscp=3", "v=1,dscp=64", "v=1,dscp", "v=1,colour=3", "v=1,rate=-1", "v=1,"]
        {
            assert_eq!(text.parse::<MarkSettings>(), Err(SettingsError), "{text:?}");
        }
        assert_eq!("v=1".parse(), Ok(MarkSettings::default()));
    }

    proptest! {
        #[test]
        fn settings_survive_the_environment(
            dscp in proptest::option::of(0_u8..64),
            rate in proptest::option::of(1_u64..1 << 50),
        ) {
            let settings = MarkSettings::new(dscp.and_then(Dscp::new), rate.map(Rate::from_bps));
            prop_assert_eq!(settings.to_string().parse(), Ok(settings));
        }

        #[test]
        fn no_text_panics(text in "(v=1)?[a-z0-9=,]{0,40}") {
            let _is_refused = text.parse::<MarkSettings>().is_err();
        }
    }
}
