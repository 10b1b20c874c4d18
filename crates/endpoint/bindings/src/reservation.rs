//! Reservations of a connection and their events, as plain data.

use crate::event::TrafficDirection;
use crate::{NAME, TEXT, count, text, words};
use cutline_provision as provision;
use cutline_socket as socket;
use serde::{Serialize, Serializer};

/// State of a direction's reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum GrantState {
    /// Nothing was requested.
    NotRequested = 0,
    /// The network has not answered yet.
    Pending = 1,
    /// The reservation is in place.
    Reserved = 2,
    /// The reservation was refused, is lost, or was not answered in time. It is restored when the network can grant it.
    Failed = 3,
}

/// Reason for a missing reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum RefusalReason {
    /// Nothing was refused.
    None = 0,
    /// The bandwidth is not available.
    Bandwidth = 1,
    /// The buckets of all reservations together would be too deep.
    Burst = 2,
    /// The packets are larger than the link's MTU.
    PacketSize = 3,
    /// No path, or no sender.
    NoPath = 4,
    /// Another reservation for the same packets has another style, or other ports.
    Conflict = 5,
    /// The resources were given to another reservation.
    Preempted = 6,
    /// The network has ended the reservation.
    Ended = 7,
    /// The network did not answer in time.
    Unanswered = 8,
    /// This host's cutlined cannot be reached.
    NoAgent = 9,
    /// A value is not allowed.
    Invalid = 10,
    /// Another reason, which the text gives.
    Other = 11,
}

/// Kind of a reservation's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum ReservationEventKind {
    /// A direction is reserved.
    Granted = 1,
    /// The reservation of a direction has changed.
    Changed = 2,
    /// A direction is reserved along the whole path, as a node reports.
    Confirmed = 3,
    /// A direction is refused, or lost.
    Lost = 4,
}

/// Token bucket of a direction: its largest traffic. All fields are -1 if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct TokenBucket {
    /// The rate, bit/s.
    pub rate_bps: i64,
    /// The depth, bytes.
    pub bucket_bytes: i64,
    /// The peak rate, bit/s.
    pub peak_bps: i64,
    /// The minimum policed unit: shorter packets count as this length, bytes.
    pub min_policed_bytes: i64,
    /// The longest packet with its IP header, bytes.
    pub max_packet_bytes: i64,
}

/// Reason for a missing reservation, its place, and the available rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct Refusal {
    /// Reason: one of `CUTLINE_REASON_*`; 0 if nothing was refused.
    pub reason: i64,
    /// The rate that would be granted, bit/s; -1 if it is not known.
    pub available_bps: i64,
    /// The address of the node that refused; empty if it is not known.
    #[serde(serialize_with = "as_words")]
    pub node: [u8; NAME],
    /// The refusal as text; empty if nothing was refused.
    #[serde(serialize_with = "as_words")]
    pub text: [u8; TEXT],
}

/// State of a direction's reservation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct DirectionReservation {
    /// One of `CUTLINE_GRANT_STATE_*`.
    pub state: i64,
    /// The requested token bucket.
    pub requested: TokenBucket,
    /// The reserved token bucket.
    pub reserved: TokenBucket,
    /// Reason for a missing reservation.
    pub refusal: Refusal,
}

/// State of a connection's reservation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct ConnectionReservation {
    /// The requested service (option `service`); empty if no reservation was requested.
    #[serde(serialize_with = "as_words")]
    pub service: [u8; NAME],
    /// Direction in which this end sends.
    pub send: DirectionReservation,
    /// Direction in which this end receives.
    pub receive: DirectionReservation,
}

/// An event of a reservation. Fields that do not belong to its kind are 0, -1 or empty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[repr(C)]
pub struct ReservationEvent {
    /// Size of this struct, set by the caller. Later versions have more fields at its end.
    #[serde(skip)]
    pub size: usize,
    /// Kind of the event: one of `CUTLINE_RESERVATION_EVENT_*`.
    pub kind: i32,
    /// The direction: one of `CUTLINE_TRAFFIC_DIRECTION_*`.
    pub direction: i32,
    /// The token bucket that is now reserved.
    pub reserved: TokenBucket,
    /// Reason for the loss.
    pub refusal: Refusal,
    /// The address of the node that confirmed the reservation.
    #[serde(serialize_with = "as_words")]
    pub node: [u8; NAME],
    /// The event as text, with a zero at the end.
    #[serde(serialize_with = "as_words")]
    pub text: [u8; TEXT],
}

/// Writes a text without the zeros at its end.
fn as_words<S: Serializer>(room: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(words(room))
}

impl From<Option<cutline_translate::TrafficSpec>> for TokenBucket {
    fn from(it: Option<cutline_translate::TrafficSpec>) -> Self {
        Self {
            rate_bps: it.map_or(-1, |it| count(it.rate.as_bps())),
            bucket_bytes: it.map_or(-1, |it| count(it.bucket.get())),
            peak_bps: it.map_or(-1, |it| count(it.peak.as_bps())),
            min_policed_bytes: it.map_or(-1, |it| count(it.min_policed.get())),
            max_packet_bytes: it.map_or(-1, |it| count(it.max_packet.get())),
        }
    }
}

impl From<&provision::RefusalReason> for RefusalReason {
    fn from(reason: &provision::RefusalReason) -> Self {
        use cutline_provision::RefusalReason as R;
        match reason {
            R::Bandwidth => Self::Bandwidth,
            R::Burst => Self::Burst,
            R::PacketSize => Self::PacketSize,
            R::NoPath => Self::NoPath,
            R::Conflict => Self::Conflict,
            R::Preempted => Self::Preempted,
            R::Ended => Self::Ended,
            R::Unanswered => Self::Unanswered,
            R::NoAgent(_) => Self::NoAgent,
            R::Invalid(_) => Self::Invalid,
            R::Other(_) => Self::Other,
        }
    }
}

impl From<Option<&provision::Refusal>> for Refusal {
    fn from(it: Option<&provision::Refusal>) -> Self {
        let node = it.and_then(|it| it.node).map(|node| node.to_string());
        Self {
            reason: it.map_or(RefusalReason::None, |it| (&it.reason).into()) as i64,
            available_bps: it.and_then(|it| it.available_bps).map_or(-1, count),
            node: text(&node.unwrap_or_default()),
            text: text(&it.map(ToString::to_string).unwrap_or_default()),
        }
    }
}

impl DirectionReservation {
    fn new(requested: Option<cutline_translate::TrafficSpec>, it: &provision::GrantState) -> Self {
        use cutline_provision::GrantState as S;
        let (state, reserved, refusal) = match it {
            S::NotRequested => (GrantState::NotRequested, None, None),
            S::Pending => (GrantState::Pending, None, None),
            S::Reserved(bucket) => (GrantState::Reserved, Some(*bucket), None),
            S::Failed(refusal) => (GrantState::Failed, None, Some(refusal)),
        };
        Self {
            state: state as i64,
            // A service without requests has requested nothing.
            requested: requested.filter(|_| state != GrantState::NotRequested).into(),
            reserved: reserved.into(),
            refusal: refusal.into(),
        }
    }
}

impl From<Option<&socket::ConnectionReservation>> for ConnectionReservation {
    fn from(it: Option<&socket::ConnectionReservation>) -> Self {
        let none = provision::GrantState::NotRequested;
        let demand = it.and_then(|it| it.demand);
        Self {
            service: text(it.map_or("", |it| it.service)),
            send: DirectionReservation::new(
                demand.and_then(|demand| demand.send),
                it.map_or(&none, |it| &it.send),
            ),
            receive: DirectionReservation::new(
                demand.and_then(|demand| demand.receive),
                it.map_or(&none, |it| &it.receive),
            ),
        }
    }
}

impl From<&provision::GrantEvent> for ReservationEvent {
    fn from(event: &provision::GrantEvent) -> Self {
        use cutline_provision::GrantEvent as E;
        let (kind, direction) = match event {
            E::Granted(direction, _) => (ReservationEventKind::Granted, direction),
            E::Changed(direction, _) => (ReservationEventKind::Changed, direction),
            E::Confirmed(direction, _) => (ReservationEventKind::Confirmed, direction),
            E::Lost(direction, _) => (ReservationEventKind::Lost, direction),
        };
        let (direction, way) = match direction {
            provision::Direction::Send => (TrafficDirection::Send, "send"),
            provision::Direction::Receive => (TrafficDirection::Receive, "receive"),
        };
        let (mut reserved, mut refusal, mut node) = (None, None, String::new());
        let description = match event {
            E::Granted(_, bucket) => {
                reserved = Some(*bucket);
                format!("{} is reserved", bucket.rate)
            }
            E::Changed(_, bucket) => {
                reserved = Some(*bucket);
                format!("{} is reserved from now on", bucket.rate)
            }
            E::Confirmed(_, at) => {
                node = at.to_string();
                format!("the whole path has reserved, as {at} reports")
            }
            E::Lost(_, why) => {
                refusal = Some(why);
                format!("not reserved: {why}")
            }
        };
        Self {
            size: size_of::<Self>(),
            kind: kind as i32,
            direction: direction as i32,
            reserved: reserved.into(),
            refusal: refusal.into(),
            node: text(&node),
            text: text(&format!("{way}: {description}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::{Bytes, Rate};
    use std::net::IpAddr;

    const NODE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn bucket(kbps: u64) -> cutline_translate::TrafficSpec {
        cutline_translate::TrafficSpec {
            rate: Rate::from_kbps(kbps),
            bucket: Bytes::new(2000),
            peak: Rate::from_mbps(1),
            min_policed: Bytes::new(64),
            max_packet: Bytes::new(1500),
        }
    }

    fn refused() -> provision::Refusal {
        let reason = provision::RefusalReason::Bandwidth;
        provision::Refusal { reason, node: Some(NODE), available_bps: Some(400_000) }
    }

    fn status() -> socket::ConnectionReservation {
        let flow = provision::Flow {
            transport: provision::TransportProtocol::Udp,
            source: "10.0.0.9:1".parse().unwrap(),
            destination: "10.0.0.8:2".parse().unwrap(),
        };
        let demand = provision::Demand { flow, send: Some(bucket(100)), receive: Some(bucket(8)) };
        socket::ConnectionReservation {
            service: "rsvp",
            demand: Some(demand),
            send: provision::GrantState::Reserved(bucket(90)),
            receive: provision::GrantState::Failed(refused()),
            is_lost: false,
        }
    }

    #[test]
    fn a_reservation_has_each_direction_with_its_rate_or_refusal() {
        let ConnectionReservation { service, send, receive } = Some(&status()).into();
        assert_eq!(words(&service), "rsvp");
        assert_eq!((send.state, send.requested.rate_bps, send.reserved.rate_bps), (2, 100_000, 90_000));
        let TokenBucket { bucket_bytes, peak_bps, min_policed_bytes, max_packet_bytes, .. } = send.reserved;
        assert_eq!(
            (bucket_bytes, peak_bps, min_policed_bytes, max_packet_bytes),
            (2000, 1_000_000, 64, 1500)
        );
        assert_eq!((send.refusal.reason, words(&send.refusal.text)), (0, ""));
        assert_eq!((receive.state, receive.requested.rate_bps, receive.reserved.rate_bps), (3, 8000, -1));
        assert_eq!((receive.refusal.reason, receive.refusal.available_bps), (1, 400_000));
        assert_eq!(words(&receive.refusal.node), "10.0.0.1");
        let why = "the bandwidth is not available at 10.0.0.1; 400 kbit/s would be granted";
        assert_eq!(words(&receive.refusal.text), why);
    }

    #[test]
    fn without_a_service_no_rate_is_requested() {
        let none = ConnectionReservation::from(None);
        assert_eq!((words(&none.service), none.send.state, none.receive.state), ("", 0, 0));
        assert_eq!((none.send.requested.rate_bps, none.send.refusal.available_bps), (-1, -1));
        let mut status = status();
        status.send = provision::GrantState::NotRequested;
        let ConnectionReservation { send, .. } = Some(&status).into();
        assert_eq!((send.state, send.requested.rate_bps), (0, -1), "a service may request nothing");
    }

    #[test]
    fn events_are_numbers_and_words() {
        use provision::{Direction, GrantEvent};
        let of = |event: GrantEvent| ReservationEvent::from(&event);
        let granted = of(GrantEvent::Granted(Direction::Send, bucket(100)));
        assert_eq!((granted.kind, granted.direction, granted.reserved.rate_bps), (1, 1, 100_000));
        assert_eq!(words(&granted.text), "send: 100 kbit/s is reserved");
        let changed = of(GrantEvent::Changed(Direction::Receive, bucket(50)));
        assert_eq!((changed.kind, changed.direction, changed.reserved.rate_bps), (2, 2, 50_000));
        let confirmed = of(GrantEvent::Confirmed(Direction::Receive, NODE));
        assert_eq!((confirmed.kind, confirmed.direction, words(&confirmed.node)), (3, 2, "10.0.0.1"));
        let lost = of(GrantEvent::Lost(Direction::Send, refused()));
        assert_eq!((lost.kind, lost.reserved.rate_bps), (4, -1));
        assert_eq!((lost.refusal.reason, lost.refusal.available_bps), (1, 400_000));
        assert!(words(&lost.text).starts_with("send: not reserved: the bandwidth"), "{}", words(&lost.text));
    }
}
