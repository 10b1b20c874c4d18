//! Events as plain data.

use crate::{TEXT, nanos, words};
use cutline_signal::violation::ViolationOrigin;
use cutline_socket::{self as socket, Direction};
use serde::Serialize;

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum EventKind {
    /// Both ends agree.
    Agreed = 1,
    /// The ends do not agree. The previous agreement holds.
    Refused = 2,
    /// The peer does not negotiate, or does not answer. The previous agreement holds.
    OneSided = 3,
    /// A measure is outside its limit.
    Violated = 4,
    /// A measure is within its limit again.
    Restored = 5,
    /// Packets have this hint from now on.
    Hint = 6,
    /// The application should send at this rate from now on.
    Rate = 7,
    /// This end has requested another specification that the application accepts.
    Requested = 8,
    /// The connection is broken, or the peer is silent.
    Lost = 9,
    /// The connection works again.
    Recovered = 10,
    /// The connection was not restored within the recovery time of the specification.
    GaveUp = 11,
    /// The resource manager of the host has granted another rate to this end.
    Allocated = 12,
    /// The resource manager has refused or revoked the share of this end. Its rate is no longer limited.
    Unallocated = 13,
}

/// A direction of a connection, as its end sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum TrafficDirection {
    /// Traffic that this end sends.
    Send = 1,
    /// Traffic that this end receives.
    Receive = 2,
}

/// An event of a connection. Fields that do not belong to its kind are 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct SessionEvent {
    /// Size of this struct, set by the caller. Later versions have more fields at its end.
    #[serde(skip)]
    pub size: usize,
    /// Kind of the event: one of `CUTLINE_EVENT_*`.
    pub kind: i32,
    /// A violation's direction: one of `CUTLINE_TRAFFIC_DIRECTION_*`.
    pub direction: i32,
    /// A violation's measure: one of `CUTLINE_MEASURE_*`.
    pub measure: i32,
    /// The hint, 1 to 16.
    pub hint: i32,
    /// The worst acceptable value: messages/s, ms, or per cent.
    pub limit: f64,
    /// The measured value of the last interval, in the same unit.
    pub measured: f64,
    /// The largest error of the value due to the two clocks, in the same unit.
    pub error: f64,
    /// The rate at which the application should send, messages/s.
    pub rate: f64,
    /// Start of a violation, by the monotonic clock, ns.
    pub since_ns: i64,
    /// Duration of the violation or the loss, or of the attempts to restore the connection, ns.
    pub after_ns: i64,
    /// The event as text, with a zero at the end.
    #[serde(skip)]
    pub text: [u8; TEXT],
    /// Number of whole messages sent over the lost connection.
    pub sent: i64,
    /// Number of these messages that the peer has reported as received. It may have received more.
    pub reported: i64,
    /// 1 if a connection that works again is a new one; 0 if the peer sends again over the previous
    /// one.
    pub is_new: i64,
    /// The worst value of a violation, in the unit of its limit.
    pub worst: f64,
    /// Origin of a violation: one of `CUTLINE_EVENT_ORIGIN_*`.
    pub origin: i64,
    /// The rate that the resource manager of the host has granted to this end, of messages without headers, bit/s.
    pub allocated_bps: i64,
}

/// Origin of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum EventOrigin {
    /// The sending host: it held its application back.
    SendingHost = 1,
    /// The network, as far as both ends know.
    Network = 2,
    /// The receiving host: its application did not read, or its receive buffer was full.
    ReceivingHost = 3,
}

impl SessionEvent {
    fn new(kind: EventKind, text: &str) -> Self {
        Self {
            size: size_of::<Self>(),
            kind: kind as i32,
            direction: 0,
            measure: 0,
            hint: 0,
            limit: 0.0,
            measured: 0.0,
            error: 0.0,
            rate: 0.0,
            since_ns: 0,
            after_ns: 0,
            text: crate::text(text),
            sent: 0,
            reported: 0,
            is_new: 0,
            worst: 0.0,
            origin: 0,
            allocated_bps: 0,
        }
    }

    fn violation(
        kind: EventKind,
        direction: Direction,
        it: &cutline_signal::violation::Violation,
        now: f64,
    ) -> Self {
        let (direction, way) = match direction {
            Direction::Send => (TrafficDirection::Send, "send"),
            Direction::Receive => (TrafficDirection::Receive, "receive"),
        };
        let (name, unit) = (it.measure.name(), it.measure.unit());
        let (what, worst) = match kind {
            EventKind::Violated => ("violated", String::new()),
            _ => ("restored", format!(", the worst was {:.3} {unit}", it.measured)),
        };
        let (origin, whence) = match it.origin {
            ViolationOrigin::SendingHost => {
                (EventOrigin::SendingHost, "; the sending host held the application back")
            }
            ViolationOrigin::Network => (EventOrigin::Network, ""),
            ViolationOrigin::ReceivingHost => {
                (EventOrigin::ReceivingHost, "; at the receiving host, which did not read or had no room")
            }
        };
        let limit = it.limit;
        let text = format!(
            "{what}: {way}: {name} is {now:.3} {unit}, the limit is {limit:.3} {unit}{worst}{whence}"
        );
        Self {
            direction: direction as i32,
            measure: it.measure as i32,
            limit,
            measured: now,
            error: it.error,
            since_ns: crate::count(it.since.as_nanos()),
            worst: it.measured,
            origin: origin as i64,
            ..Self::new(kind, &text)
        }
    }

    /// The text.
    pub fn words(&self) -> &str {
        words(&self.text)
    }
}

impl From<&socket::SessionEvent> for SessionEvent {
    fn from(event: &socket::SessionEvent) -> Self {
        use cutline_socket::SessionEvent as E;
        match event {
            E::Agreed(_) => Self::new(EventKind::Agreed, "both ends agree"),
            E::Refused { send, receive } => {
                let part = |way, conflicts: &Option<cutline_quality::spec::Conflicts>| {
                    conflicts.as_ref().map(|conflicts| format!("{way}: {conflicts}"))
                };
                let parts: Vec<_> =
                    [part("send", send), part("receive", receive)].into_iter().flatten().collect();
                Self::new(EventKind::Refused, &format!("the ends do not agree: {}", parts.join("; ")))
            }
            E::OneSided(_) => Self::new(EventKind::OneSided, "the peer takes no part"),
            E::Requested(0) => {
                Self::new(EventKind::Requested, "requests the application's own specification again")
            }
            E::Requested(place) => Self::new(EventKind::Requested, &format!("requests alternative {place}")),
            E::Violated(direction, violation) => {
                Self::violation(EventKind::Violated, *direction, violation, violation.measured)
            }
            E::Restored { direction, violation, measured, after } => Self {
                after_ns: nanos(*after),
                ..Self::violation(EventKind::Restored, *direction, violation, *measured)
            },
            E::Hint(hint) => Self {
                hint: i32::from(hint.level()),
                ..Self::new(EventKind::Hint, &format!("packets have the hint {}", hint.level()))
            },
            E::Rate(rate) => {
                Self { rate: *rate, ..Self::new(EventKind::Rate, &format!("send at {rate:.3} messages/s")) }
            }
            E::Lost { cause, sent, reported } => {
                let text = format!("lost: {cause}; of {sent} messages sent {reported} are reported");
                let (sent, reported) = (crate::count(*sent), crate::count(*reported));
                Self { sent, reported, ..Self::new(EventKind::Lost, &text) }
            }
            E::Recovered { after, is_new } => {
                let how = if *is_new { "there is a new connection" } else { "the peer sends again" };
                Self {
                    after_ns: nanos(*after),
                    is_new: i64::from(*is_new),
                    ..Self::new(EventKind::Recovered, &format!("{how} after {after}"))
                }
            }
            E::GaveUp { after, cause } => {
                let text = format!("the connection could not be replaced within {after}: {cause}");
                Self { after_ns: nanos(*after), ..Self::new(EventKind::GaveUp, &text) }
            }
            E::Allocated { before, rate } => {
                let way = match before {
                    Some(before) if before > rate => "lowered",
                    Some(_) => "raised",
                    None => "allocated",
                };
                let text = format!("{way}: the host lets this end send at {rate}");
                let allocated_bps = crate::count(rate.as_bps());
                Self { allocated_bps, ..Self::new(EventKind::Allocated, &text) }
            }
            E::Unallocated(reason) => {
                let text = format!("the host's resource manager has no share: {reason}");
                Self::new(EventKind::Unallocated, &text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_quality::spec::{Measure, Specification, agree};
    use cutline_signal::violation::Violation;
    use cutline_units::{Duration, Hint, Instant, Rate};

    #[test]
    fn events_are_numbers_and_words() {
        let violation = Violation {
            measure: Measure::Delay,
            limit: 150.0,
            measured: 200.5,
            error: 1.0,
            origin: ViolationOrigin::SendingHost,
            since: Instant::from_nanos(7),
        };
        let of = |event: &socket::SessionEvent| SessionEvent::from(event);
        let violated = of(&socket::SessionEvent::Violated(Direction::Receive, violation));
        let whence = "; the sending host held the application back";
        assert_eq!(
            violated.words(),
            format!("violated: receive: delay is 200.500 ms, the limit is 150.000 ms{whence}")
        );
        assert_eq!((violated.kind, violated.direction, violated.measure, violated.since_ns), (4, 2, 1, 7));
        let after = Duration::from_nanos(9);
        let violation = Violation { origin: ViolationOrigin::Network, ..violation };
        let restored = of(&socket::SessionEvent::Restored {
            direction: Direction::Send,
            violation,
            measured: 120.0,
            after,
        });
        assert_eq!((restored.measured, restored.worst, restored.origin), (120.0, 200.5, 2));
        let text = "restored: send: delay is 120.000 ms, the limit is 150.000 ms, the worst was 200.500 ms";
        assert_eq!(restored.words(), text);
        assert_eq!((restored.kind, restored.direction, restored.after_ns), (5, 1, 9));
        assert_eq!(of(&socket::SessionEvent::Hint(Hint::from_level(3))).hint, 3);
        assert_eq!(of(&socket::SessionEvent::Rate(9.5)).rate, 9.5);
        let cause = socket::Cause::Silence(Duration::from_secs(3));
        let lost = of(&socket::SessionEvent::Lost { cause: cause.clone(), sent: 9, reported: 7 });
        assert_eq!((lost.kind, lost.sent, lost.reported), (9, 9, 7));
        let silence = format!("the peer has been silent for {}", Duration::from_secs(3));
        assert_eq!(lost.words(), format!("lost: {silence}; of 9 messages sent 7 are reported"));
        for (is_new, words) in [(true, "there is a new connection"), (false, "the peer sends again")] {
            let back = of(&socket::SessionEvent::Recovered { after, is_new });
            assert_eq!((back.kind, back.after_ns, back.is_new), (10, 9, i64::from(is_new)));
            assert_eq!(back.words(), format!("{words} after {after}"));
        }
        let (before, rate) = (Some(Rate::from_mbps(5)), Rate::from_mbps(3));
        let lowered = of(&socket::SessionEvent::Allocated { before, rate });
        assert_eq!((lowered.kind, lowered.allocated_bps), (12, 3_000_000));
        assert_eq!(lowered.words(), "lowered: the host lets this end send at 3 Mbit/s");
        let first = of(&socket::SessionEvent::Allocated { before: None, rate });
        assert!(first.words().starts_with("allocated: "), "{}", first.words());
        let none = of(&socket::SessionEvent::Unallocated("the CPU is exhausted".to_owned()));
        assert!(none.kind == 13 && none.words().ends_with("the CPU is exhausted"), "{}", none.words());
        let over = of(&socket::SessionEvent::GaveUp { after, cause });
        assert_eq!((over.kind, over.after_ns), (11, 9));
        assert!(over.words().ends_with(&silence), "{}", over.words());
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let text = "ü".repeat(TEXT);
        let event = SessionEvent::new(EventKind::Agreed, &text);
        assert_eq!(event.words(), "ü".repeat((TEXT - 1) / 2));
        let spec = |rate| Specification::builder().min_rate(rate).build().unwrap();
        let send = agree(&spec(5.0), &spec(4.0)).unwrap_err();
        let refused = SessionEvent::from(&socket::SessionEvent::Refused { send: Some(send), receive: None });
        assert!(refused.words().contains("send: min-rate = 5"), "{}", refused.words());
    }
}
