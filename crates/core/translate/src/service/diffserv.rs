//! Differentiated services: code points that RFCs have given a meaning.
//!
//! | traffic | code point | from |
//! | --- | --- | --- |
//! | constant rate of up to 128 kbit/s, in a conversation | EF | RFC 4594 section 4.1, RFC 8837 section 5 |
//! | Scavenger | LE | RFC 8622 section 6, RFC 9622 section 8.1.6 |
//! | Low Latency/Interactive | AF41 | RFC 4594 section 4.3, RFC 9622 section 8.1.6 |
//! | Low Latency/Non-Interactive | AF21 | RFC 4594 section 4.7, RFC 9622 section 8.1.6 |
//! | Constant-Rate Streaming | AF31 | RFC 4594 section 4.5, RFC 9622 section 8.1.6 |
//! | Capacity-Seeking | AF11 | RFC 4594 section 4.8, RFC 9622 section 8.1.6 |
//! | Default | unmarked | RFC 2474 section 4.1 |
//!
//! A profile that the application states goes before the first row. The drop precedence is the lowest of the class, as RFC 4594
//! has it for traffic within its rate; a router that measures the rate marks the rest. Networks need not honour any of these,
//! and many re-mark them.

use super::{NetworkTranslator, Traffic};
use crate::decision::{Chosen, Decisions};
use crate::settings::NetworkSettings;
use cutline_quality::spec::{CapacityProfile, Specification};
use cutline_units::{Dscp, Duration, Rate};

/// The longest delay in a conversation (ITU-T G.114).
const CONVERSATION: Duration = Duration::from_millis(400);
/// The rate of a telephone call at most: the audio conference of TSQ section 2.1.
const CALL: Rate = Rate::from_kbps(128);

pub(super) struct Diffserv;

impl NetworkTranslator for Diffserv {
    fn name(&self) -> &'static str {
        "diffserv"
    }

    fn title(&self) -> &'static str {
        "standard code points"
    }

    fn settings(&self, traffic: &Traffic<'_>, log: &mut Decisions) -> NetworkSettings {
        let chosen = match traffic.unmarkable() {
            Some(why) => Chosen::leave("", why),
            None if traffic.profile.is_none() && is_call(traffic.marked()) => {
                let why = "a small constant rate in a conversation: telephony";
                Chosen::set(named("EF"), "RFC 4594 section 4.1", why)
            }
            None => of_profile(traffic),
        };
        NetworkSettings { dscp: log.network("dscp", chosen), ..NetworkSettings::default() }
    }
}

fn of_profile(traffic: &Traffic<'_>) -> Chosen<Dscp> {
    let profile = traffic.profile();
    let who = if traffic.profile.is_some() { "the application states" } else { "the demands fit" };
    let why = format!("{who} the capacity profile {profile}");
    match code_point(profile) {
        Some((dscp, source)) => Chosen::set(dscp, source, why),
        None => Chosen::leave("RFC 2474 section 4.1", why),
    }
}

/// The code point of a capacity profile, and the RFC whose class it is; `None` where packets stay unmarked. RFC 9622
/// section 8.1.6 recommends the AF classes 4, 2, 3 and 1.
pub fn code_point(profile: CapacityProfile) -> Option<(Dscp, &'static str)> {
    let (name, source) = match profile {
        CapacityProfile::Default => return None,
        CapacityProfile::Scavenger => ("LE", "RFC 8622 section 6"),
        CapacityProfile::LowLatencyInteractive => ("AF41", "RFC 4594 section 4.3"),
        CapacityProfile::LowLatencyNonInteractive => ("AF21", "RFC 4594 section 4.7"),
        CapacityProfile::ConstantRateStreaming => ("AF31", "RFC 4594 section 4.5"),
        CapacityProfile::CapacitySeeking => ("AF11", "RFC 4594 section 4.8"),
    };
    Some((named(name), source))
}

/// Returns whether traffic is a telephone call: small packets at a constant rate with an answering party (RFC
/// 4594 section 4.1).
fn is_call(spec: &Specification) -> bool {
    let constant = spec.min_rate.is_some() && spec.min_rate == spec.peak_rate;
    let small = spec.peak_throughput().is_some_and(|rate| rate <= CALL);
    constant && small && spec.max_delay.is_some_and(|delay| delay <= CONVERSATION)
}

fn named(name: &str) -> Dscp {
    name.parse().expect("it is the name of a code point")
}
