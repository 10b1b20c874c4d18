//! Names of the numbers in the structs, for languages that show words.

use crate::event::{EventKind, EventOrigin, TrafficDirection};
use crate::protection::ThreadPriority;
use crate::reservation::{GrantState, RefusalReason, ReservationEventKind};
use cutline_quality::spec::{Measure, SpecParameter};

/// Names of numbers: the place of a name is its number. A number without a name means that there is no value.
pub type NameTable = Vec<Option<&'static str>>;

/// Declares the names of an enum's values. The match over them fails to compile if one is missing.
macro_rules! named {
    ($type:ident { $($variant:ident: $name:literal),+ $(,)? }) => {
        impl $type {
            /// All values, in their order.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the name in languages with words.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the names of all values at the places of their numbers.
            pub fn names() -> NameTable {
                let most = Self::ALL.iter().map(|value| *value as usize).max().unwrap_or_default();
                let mut names = vec![None; most + 1];
                for value in Self::ALL {
                    names[*value as usize] = Some(value.name());
                }
                names
            }
        }
    };
}

named!(EventKind {
    Agreed: "agreed",
    Refused: "refused",
    OneSided: "one-sided",
    Violated: "violated",
    Restored: "restored",
    Hint: "hint",
    Rate: "rate",
    Requested: "requested",
    Lost: "lost",
    Recovered: "recovered",
    GaveUp: "gave-up",
    Allocated: "allocated",
    Unallocated: "unallocated",
});

named!(TrafficDirection { Send: "send", Receive: "receive" });

named!(EventOrigin { SendingHost: "sending-host", Network: "network", ReceivingHost: "receiving-host" });

named!(GrantState {
    NotRequested: "not-requested",
    Pending: "pending",
    Reserved: "reserved",
    Failed: "failed"
});

named!(RefusalReason {
    None: "none",
    Bandwidth: "bandwidth",
    Burst: "burst",
    PacketSize: "packet-size",
    NoPath: "no-path",
    Conflict: "conflict",
    Preempted: "preempted",
    Ended: "ended",
    Unanswered: "unanswered",
    NoAgent: "no-agent",
    Invalid: "invalid",
    Other: "other",
});

named!(ReservationEventKind { Granted: "granted", Changed: "changed", Confirmed: "confirmed", Lost: "lost" });

named!(ThreadPriority { Highest: "highest", RealTime: "real-time", Nice: "nice" });

/// Returns the names of measures, by their place in a struct.
pub fn measure_names() -> NameTable {
    Measure::ALL.map(|measure| Some(measure.name())).to_vec()
}

/// Returns the names of a specification's parameters, by their bit in [`Details::coerced`](crate::Details::coerced).
pub fn parameter_names() -> NameTable {
    SpecParameter::ALL.map(|parameter| Some(parameter.name())).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No number between the first and the last is left out, and each name is there once.
    #[test]
    fn every_number_has_one_name() {
        for (first, names) in [
            (1, EventKind::names()),
            (1, TrafficDirection::names()),
            (1, EventOrigin::names()),
            (0, GrantState::names()),
            (0, RefusalReason::names()),
            (1, ReservationEventKind::names()),
            (0, ThreadPriority::names()),
            (0, measure_names()),
            (0, parameter_names()),
        ] {
            assert!(names[..first].iter().all(Option::is_none), "{names:?}");
            let mut named: Vec<_> = names[first..].iter().map(|name| name.expect("it has a name")).collect();
            let count = named.len();
            named.sort_unstable();
            named.dedup();
            assert_eq!(named.len(), count, "{names:?}");
        }
    }
}
