//! A specification in the words of Transport Services, TAPS (RFC 9622).

use super::Specification;
use cutline_params::ParameterError;
use cutline_units::{Bytes, Duration, Rate};
use std::fmt;

/// Treatment of the traffic by the network (RFC 9622 section 8.1.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CapacityProfile {
    /// Not specified.
    #[default]
    Default,
    /// Any delay is acceptable, and other traffic has precedence.
    Scavenger,
    /// A user waits for each answer.
    LowLatencyInteractive,
    /// Delay matters, but no user waits for an answer.
    LowLatencyNonInteractive,
    /// The same rate from the beginning to the end.
    ConstantRateStreaming,
    /// As much as congestion control allows, for long.
    CapacitySeeking,
}

impl CapacityProfile {
    /// Every profile.
    pub const ALL: [Self; 6] = [
        Self::Default,
        Self::Scavenger,
        Self::LowLatencyInteractive,
        Self::LowLatencyNonInteractive,
        Self::ConstantRateStreaming,
        Self::CapacitySeeking,
    ];

    /// The name in RFC 9622.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "Default",
            Self::Scavenger => "Scavenger",
            Self::LowLatencyInteractive => "Low Latency/Interactive",
            Self::LowLatencyNonInteractive => "Low Latency/Non-Interactive",
            Self::ConstantRateStreaming => "Constant-Rate Streaming",
            Self::CapacitySeeking => "Capacity-Seeking",
        }
    }

    /// The profile of that name. Case and whatever is no letter do not matter: `low-latency-interactive`,
    /// `lowLatencyInteractive`.
    ///
    /// # Errors
    /// When there is none.
    pub fn parse(name: &str) -> Result<Self, ParameterError> {
        let letters = |text: &str| -> String {
            text.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect()
        };
        let found = Self::ALL.into_iter().find(|profile| letters(profile.name()) == letters(name));
        found.ok_or_else(|| {
            ParameterError::unknown_choice("connCapacityProfile", name, &Self::ALL.map(Self::name))
        })
    }

    /// The profile that fits the needs of a stream.
    ///
    /// A stream whose rate is the same throughout is a constant-rate stream. One with a limit of delay is interactive up to
    /// 400 ms, which is the most that people accept in a conversation (ITU-T G.114), and non-interactive beyond. One that
    /// demands completeness and no delay seeks capacity.
    pub fn from_specification(spec: &Specification) -> Self {
        const CONVERSATION: Duration = Duration::from_millis(400);
        let constant = spec.min_rate.is_some() && spec.min_rate == spec.peak_rate;
        match spec.max_delay {
            _ if constant => Self::ConstantRateStreaming,
            Some(delay) if delay <= CONVERSATION => Self::LowLatencyInteractive,
            Some(_) => Self::LowLatencyNonInteractive,
            None if spec.loss == Some(0.0) => Self::CapacitySeeking,
            None => Self::Default,
        }
    }
}

impl fmt::Display for CapacityProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The properties of a TAPS connection that are equivalent to parameters of a specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapsProperties {
    /// `minSendRate`
    pub min_send_rate: Option<Rate>,
    /// `maxSendRate`
    pub max_send_rate: Option<Rate>,
    /// `reliability`: whether every message must arrive.
    pub reliability: Option<bool>,
    /// `preserveOrder`
    pub preserve_order: Option<bool>,
    /// `connTimeout`
    pub conn_timeout: Option<Duration>,
    /// `connCapacityProfile`
    pub conn_capacity_profile: CapacityProfile,
}

impl TapsProperties {
    /// Derives the properties that TAPS can express from a specification. Delay, jitter, gaps and losses
    /// between none and all have none: their sender can only choose the
    /// [profile](CapacityProfile::from_specification).
    pub fn from_specification(spec: &Specification) -> Self {
        Self {
            min_send_rate: spec.min_throughput(),
            max_send_rate: spec.peak_throughput().or(spec.max_throughput()),
            reliability: spec.loss.map(|loss| loss == 0.0),
            preserve_order: spec.reordering.map(|reordering| !reordering),
            conn_timeout: spec.recovery,
            conn_capacity_profile: CapacityProfile::from_specification(spec),
        }
    }

    /// Adds the requirements of these properties to a specification. `size` is the length of the messages by which bit rates
    /// become rates of messages. A profile adds nothing: it defines the manner, not the amount.
    #[must_use]
    pub fn apply_to(&self, spec: &Specification, size: Bytes) -> Specification {
        let messages = |rate: Rate| rate.as_bps() as f64 / (size.get() as f64 * 8.0);
        let rates = self.min_send_rate.or(self.max_send_rate);
        Specification {
            min_rate: self.min_send_rate.map(messages).or(spec.min_rate),
            peak_rate: self.max_send_rate.map(messages).or(spec.peak_rate),
            size: rates.map(|_| size).or(spec.size),
            loss: self.reliability.and_then(|complete| complete.then_some(0.0)).or(spec.loss),
            reordering: self.preserve_order.map(|order| !order).or(spec.reordering),
            recovery: self.conn_timeout.or(spec.recovery),
            ..spec.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Preset;

    #[test]
    fn profiles_are_found_however_they_are_spelt() {
        // RFC 9622 section 8.1.6.
        for profile in CapacityProfile::ALL {
            assert_eq!(CapacityProfile::parse(profile.name()), Ok(profile));
        }
        let interactive = Ok(CapacityProfile::LowLatencyInteractive);
        assert_eq!(CapacityProfile::parse("lowLatencyInteractive"), interactive);
        assert_eq!(CapacityProfile::parse("low-latency-interactive"), interactive);
        let error = CapacityProfile::parse("Scavanger").unwrap_err();
        assert_eq!(error.nearest, Some("Scavenger"));
    }

    #[test]
    fn classes_have_the_profile_that_fits() {
        let profiles =
            Preset::ALL.map(|preset| CapacityProfile::from_specification(&preset.specification()).name());
        let expected = [
            "Constant-Rate Streaming",
            "Low Latency/Interactive",
            "Capacity-Seeking",
            "Low Latency/Non-Interactive",
            "Low Latency/Interactive",
            "Low Latency/Interactive",
        ];
        assert_eq!(profiles, expected);
        assert_eq!(CapacityProfile::from_specification(&Specification::OPEN), CapacityProfile::Default);
    }

    #[test]
    fn properties_of_taps_survive_the_round_trip() {
        for preset in Preset::ALL {
            let spec = preset.specification();
            let taps = TapsProperties::from_specification(&spec);
            let back = taps.apply_to(&Specification::OPEN, spec.size.unwrap_or(Bytes::new(1000)));
            let again = TapsProperties::from_specification(&back);
            let profile = CapacityProfile::Default;
            let without = |taps| TapsProperties { conn_capacity_profile: profile, ..taps };
            assert_eq!(without(again), TapsProperties { reliability: again.reliability, ..without(taps) });
            assert_eq!(taps.reliability == Some(true), again.reliability == Some(true), "{preset:?}");
        }
    }
}
