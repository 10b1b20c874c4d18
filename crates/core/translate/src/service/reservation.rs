//! Reservation: controlled load, asked for by a token bucket (RFC 2211, RFC 2215 section 3.6).
//!
//! | | value | why |
//! | --- | --- | --- |
//! | r | useful rate with headers, and a tenth more, or the measured margin ([`crate::Baseline::margin`]) | QUANTA table 2: exactly the load lost 5 % and had a round trip of a second; a little more lost nothing |
//! | b | one message, and the excess of a second of the peak above the useful rate; at least M | rates are per second |
//! | p | the peak with headers, or the pace if that is faster | nothing leaves faster |
//! | m | the last packet of the longest message; a header alone where there are acknowledgements | a shorter message counts as the longest, for which r is enough |
//! | M | the longest packet | |
//!
//! Bytes count from the IP header on, without the link's header. A scheduler such as Linux's HTB counts 14 B of Ethernet as
//! well; the tenth covers them for packets of 140 B and more.
//!
//! TCP needs a reservation for acknowledgements, too: in QoSockets section IV, the unreserved reverse path cost a reserved
//! TCP its rate. So each direction has its data and an acknowledgement for every packet of the other one.
//!
//! Worked, for `NetVideo` over UDP (1280 B, 60, 80 and 100 messages/s): a packet has 1308 B. r = 80 x 1308 B x 8 = 837,120 bit/s and
//! a tenth: 920,832 bit/s. b = (1 + 100 - 80) x 1308 B = 27,468 B. p = 100 x 1308 B x 8 = 1,046,400 bit/s.

use super::{NetworkTranslator, Traffic};
use crate::baseline;
use crate::decision::{Chosen, Decisions};
use crate::settings::{self, NetworkSettings};
use crate::stream::Stream;
use cutline_flow::TrafficSpec;
use cutline_units::{Bytes, Dscp, Rate};
use std::fmt::Write as _;

/// Ratio of the reserved rate to the load where it has not been measured.
const MARGIN: f64 = 1.1;

/// Header of Ethernet, which schedulers count, B. A tenth covers it, a measured margin may not.
const LINK_HEADER: f64 = 14.0;

pub(super) struct Reservation;

impl NetworkTranslator for Reservation {
    fn name(&self) -> &'static str {
        "reservation"
    }

    fn title(&self) -> &'static str {
        "a reservation of controlled load"
    }

    fn settings(&self, traffic: &Traffic<'_>, log: &mut Decisions) -> NetworkSettings {
        let why = "the routers know a reserved flow by its addresses and ports";
        let dscp = log.network("dscp", Chosen::<Dscp>::leave("RFC 2205 section 1.2", why));
        NetworkSettings { hint: None, dscp, reservation: request(traffic, log) }
    }
}

/// The reservation of both directions; `None` where no rate is known.
pub(crate) fn request(traffic: &Traffic<'_>, log: &mut Decisions) -> Option<settings::PlannedReservation> {
    let [send, receive] = [traffic.ends.send, traffic.ends.receive];
    let complete = traffic.protocol.translator().is_complete();
    let margin = traffic.protocol.translator().pace_margin();
    let reservation = settings::PlannedReservation {
        send: direction(
            SEND,
            traffic,
            &Flow { data: send, acknowledges: complete.then_some(receive), margin },
            log,
        ),
        receive: direction(
            RECEIVE,
            traffic,
            &Flow { data: receive, acknowledges: complete.then_some(send), margin },
            log,
        ),
    };
    (reservation.send.or(reservation.receive).is_some()).then_some(reservation)
}

/// The names of the decisions for a direction: bandwidth, bucket, peak, smallest and largest packet.
type Names = [&'static str; 5];
const SEND: Names = ["send-bandwidth", "send-bucket", "send-peak", "send-min-policed", "send-max-packet"];
const RECEIVE: Names =
    ["receive-bandwidth", "receive-bucket", "receive-peak", "receive-min-policed", "receive-max-packet"];

/// The packets of one direction.
struct Flow<'a> {
    data: Stream<'a>,
    /// The other direction, if its packets are acknowledged in this one.
    acknowledges: Option<Stream<'a>>,
    /// The room that the protocol's pace leaves.
    margin: f64,
}

impl Flow<'_> {
    /// Data with headers per second at the useful rate, B; 0 if it is not known.
    fn data_rate(&self) -> f64 {
        let Stream { spec, .. } = self.data;
        let rate = self.data.sustained_rate().zip(spec.size);
        rate.map_or(0.0, |(rate, size)| rate * self.data.with_headers(size) as f64)
    }

    /// Acknowledgements per second, B, at this rate of messages of the other direction; 0 if it is not known.
    fn acknowledgements(&self, rate: Option<f64>) -> f64 {
        let packets = |other: &Stream<'_>| Some(rate? * other.packets_of(other.spec.size?) as f64);
        let each = |other: Stream<'_>| packets(&other).unwrap_or_default() * other.packets.headers as f64;
        self.acknowledges.map_or(0.0, each)
    }

    /// Packets per second at the useful rate, acknowledgements included; 0 if it is not known.
    fn packets_per_second(&self) -> f64 {
        let of = |stream: &Stream<'_>| {
            Some(stream.sustained_rate()? * stream.packets_of(stream.spec.size?) as f64)
        };
        of(&self.data).unwrap_or_default() + self.acknowledges.as_ref().and_then(of).unwrap_or_default()
    }

    /// Data with headers per second in a burst, B: the peak, or the pace.
    fn peak_rate(&self) -> f64 {
        let Some(size) = self.data.spec.size else { return 0.0 };
        let with_headers = self.data.with_headers(size) as f64;
        let peak = self.data.peak_rate().or(self.data.sustained_rate()).unwrap_or_default() * with_headers;
        let pace = self.data.pace(self.margin).unwrap_or_default().as_bps() as f64 / 8.0;
        peak.max(pace * with_headers / size.get() as f64)
    }

    /// The longest message with its headers, and the excess of a second of the peak above the useful rate, B.
    fn burst(&self) -> f64 {
        let message = self.data.spec.size.map_or(0, |size| self.data.with_headers(size)) as f64;
        let above = |stream: &Stream<'_>| Some((stream.peak_rate()? - stream.sustained_rate()?).max(0.0));
        let data = message * (1.0 + above(&self.data).unwrap_or_default().ceil());
        let headers = self.acknowledges.map_or(0, |other| other.packets.headers) as f64;
        data + self.acknowledgements(self.acknowledges.as_ref().and_then(above)) + headers
    }

    /// The smallest packet that has to count as itself, B.
    fn min_policed(&self) -> u64 {
        let Stream { packets, spec, .. } = self.data;
        match spec.size {
            Some(size) if self.acknowledges.is_none() => {
                packets.headers + size.get() - (self.data.packets_of(size) - 1) * packets.payload
            }
            _ => packets.headers,
        }
    }

    /// The longest packet, B: a stream of bytes fills its segments whatever the messages are.
    fn max_packet(&self) -> u64 {
        let payload =
            if self.acknowledges.is_some() { self.data.packets.payload } else { self.data.longest_payload() };
        self.data.packets.headers + payload
    }
}

/// The token bucket of a direction, each value noted.
fn direction(
    names: Names,
    traffic: &Traffic<'_>,
    flow: &Flow<'_>,
    log: &mut Decisions,
) -> Option<TrafficSpec> {
    let [bandwidth, bucket, peak, min_policed, max_packet] = names;
    let acknowledgements = flow.acknowledgements(flow.acknowledges.as_ref().and_then(Stream::sustained_rate));
    let load = flow.data_rate() + acknowledgements;
    if load <= 0.0 {
        let why = "no rate and size are known, so there is nothing to reserve";
        log.network(bandwidth, Chosen::<Rate>::leave("RFC 2211 section 5", why));
        return None;
    }
    let tspec = "RFC 2215 section 3.6";
    let (rate, room) = match baseline::margin(&traffic.ends, traffic.protocol, load) {
        Some((margin, why)) => {
            let framed = load + flow.packets_per_second() * LINK_HEADER;
            (bits(framed * margin), format!("{LINK_HEADER} B more for each packet; {why}"))
        }
        None => (bits(load * MARGIN), "and a tenth more".to_owned()),
    };
    let mut why = format!("{} with headers", bits(flow.data_rate()));
    if acknowledgements > 0.0 {
        let _ = write!(why, " and {} of acknowledgements, one for each packet", bits(acknowledgements));
    }
    let _ = write!(why, ", {room}");
    let beyond = flow.data.path.rate.filter(|path| rate > *path);
    if let Some(path) = beyond {
        let _ = write!(why, "; the path has only {path}, so it will be refused");
    }
    let rate = log.network(bandwidth, Chosen::set(rate, "QUANTA table 2", why))?;
    let why = "the longest message, and the excess of a second at peak-rate above the useful rate; at least a packet";
    let size =
        Bytes::new((flow.burst().ceil() as u64).clamp(flow.max_packet(), TrafficSpec::MAX_BUCKET.get()));
    let size = log.network(bucket, Chosen::set(size, tspec, why))?;
    let acknowledged = flow.acknowledges.and_then(|other| other.peak_rate().or(other.sustained_rate()));
    let fastest = flow.peak_rate() + flow.acknowledgements(acknowledged);
    let why = "the peak rate with headers, or the pace at which it leaves; at least the bandwidth";
    let peak = log.network(peak, Chosen::set(bits(fastest).max(rate), tspec, why))?;
    let why = if flow.acknowledges.is_some() {
        "a header alone: acknowledgements have no payload"
    } else {
        "the last packet of the longest message: the bandwidth is enough for shorter ones to count as much"
    };
    let min_policed = log.network(min_policed, Chosen::set(Bytes::new(flow.min_policed()), tspec, why))?;
    let why = "the longest packet with its headers, which fits the path";
    let max_packet = log.network(max_packet, Chosen::set(Bytes::new(flow.max_packet()), tspec, why))?;
    Some(TrafficSpec { rate, bucket: size, peak, min_policed, max_packet })
}

/// Bytes per second as a rate within the range of a token bucket (RFC 2211 section 5).
fn bits(bytes_per_second: f64) -> Rate {
    Rate::from_bps(
        ((bytes_per_second * 8.0).round() as u64)
            .clamp(TrafficSpec::MIN_RATE.as_bps(), TrafficSpec::MAX_RATE.as_bps()),
    )
}
