//! The QoS MIB of a connection: the state of the connection for its application, as one struct (QoSockets section II).
//!
//! It is plain data, a copy of the state at [`Mib::at`]. Values that are not known, or no longer known, are `None`.

use crate::clock::ClockEstimate;
use crate::monitor::{
    Arrivals, Delivery, Departures, PeerReports, Received, ReportStats, Sent, SentInterval,
};
use crate::negotiation::NegotiationStats;
use crate::rate_control::{TfrcFigures, segment};
use crate::violation::{Violation, Watch};
use cutline_quality::spec::{Agreement, Interval, Measure, Region, Specification};
use cutline_units::{Bytes, Duration, Hint, Histogram, Instant, Rate};

/// Management information of a QoS connection, at one of its ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Mib {
    /// Time of these values, by this end's clock.
    pub at: Instant,
    /// Traffic that this end sends, as the peer reports it.
    pub send: SendMib,
    /// Traffic that this end receives.
    pub receive: ReceiveMib,
    /// The delay hint of the packets that this end sends; `None` if they have none.
    pub hint: Option<Hint>,
    /// The peer's clock minus ours, its error, and the latest round-trip time.
    pub clock: Option<ClockEstimate>,
    /// Number of times that one of the two clocks was set, as exchanges show.
    pub clock_steps: u64,
    /// The messages of negotiations.
    pub negotiation: NegotiationStats,
    /// The reports of the peer.
    pub reports: ReportStats,
    /// Feedback of the lower layers.
    pub feedback: LocalFeedback,
    /// The figures of TCP; `None` for other transports.
    pub tcp: Option<TcpFigures>,
    /// The figures of TFRC; `None` without it.
    pub tfrc: Option<TfrcFigures>,
}

/// Management information of the direction in which this end sends.
#[derive(Clone, Debug, PartialEq)]
pub struct SendMib {
    /// The negotiated and the effective specification.
    pub contract: Contract,
    /// Traffic sent since the beginning.
    pub sent: Sent,
    /// Traffic sent in the last interval.
    pub last_sent: Option<SentInterval>,
    /// Traffic that the peer has received since the beginning, as it reports.
    pub received: Received,
    /// Traffic that the peer has received in its last interval, as it reports.
    pub last: Option<Delivery>,
    /// The measures beside their limits.
    pub conformance: Conformance,
    /// The rate at which the application should send, messages/s; `None` if nothing requests one.
    pub target_rate: Option<f64>,
    /// Residual rate of the application; `None` while no rate limit is in effect, and before the first
    /// interval is over.
    pub residual: Option<Residual>,
}

/// Rate that an application may use beyond that of the last interval (QUANTA section 5: residual bandwidth).
/// The most that it may send is the requested rate, or the highest that was agreed on; with TFRC,
/// its allowed rate if that leaves less. After a burst above that rate it is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual {
    /// Messages/s; of the longest ones, where their size was agreed on.
    pub rate: f64,
    /// Throughput; `None` where no size of messages was agreed on, unless there is TFRC.
    pub throughput: Option<Rate>,
}

/// Management information of the direction in which this end receives.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiveMib {
    /// The negotiated and the effective specification.
    pub contract: Contract,
    /// Traffic that the peer has sent since the beginning, as it reports.
    pub sent: Sent,
    /// Traffic received since the beginning.
    pub received: Received,
    /// Traffic received in the last interval.
    pub last: Option<Delivery>,
    /// The one-way delays since the beginning; `None` before the first interval with any.
    pub delay: Option<HistogramSummary>,
    /// The jitters since the beginning; `None` before the first interval with any.
    pub jitter: Option<HistogramSummary>,
    /// The measures beside their limits.
    pub conformance: Conformance,
}

/// The specification of a direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contract {
    /// The effective specification: the agreement, or this end's own specification.
    pub effective: Specification,
    /// The agreement of both ends, with each end's request; `None` without one, or if the peer takes no
    /// part.
    pub agreement: Option<Agreement>,
}

/// Conformance of a direction to its specification.
#[derive(Clone, Debug, PartialEq)]
pub struct Conformance {
    /// The region of operation and the measurements in it under the present specification: on each axis the best and the worst.
    pub operation: Interval,
    /// The violations under way, each with the worst value and since when.
    pub violations: Vec<Violation>,
    /// Number of violations of each measure, in the order of [`Measure::ALL`].
    pub counts: [u64; Measure::ALL.len()],
}

/// The summary of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistogramSummary {
    /// Number of values.
    pub count: u64,
    /// The mean.
    pub mean: Duration,
    /// The median.
    pub p50: Duration,
    /// Nine in ten values are at most this one.
    pub p90: Duration,
    /// 99 in 100 values are at most this one.
    pub p99: Duration,
    /// The greatest value.
    pub max: Duration,
}

/// Feedback of the lower layers to the sending end (QUANTA section 5). It is filled in by the owner of the
/// socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalFeedback {
    /// Send queue of the socket: for a stream the data written and not acknowledged, for datagrams the data
    /// not sent by the host's interface, with the kernel's overhead. `None` without a socket.
    pub send_queue: Option<Bytes>,
    /// The memory that the socket's send queue may take, with the kernel's overhead (`SO_SNDBUF`). `None` without a socket.
    pub send_buffer: Option<Bytes>,
    /// Number of times that sending had to wait because the send queue was full.
    pub queue_full: u64,
    /// Number of times that sending had to wait for the agreed rate.
    pub pacing_waits: u64,
    /// Messages that were sent although they came sooner than was agreed on, as the application has chosen.
    pub unpaced: u64,
    /// Total time that sending has waited, for either reason.
    pub waited: Duration,
    /// Messages that were not sent because the interface's queue had no room (`ENOBUFS`). The kernel does not report it for a stream.
    pub no_buffers: u64,
    /// Number of ICMP messages about datagrams that did not reach the peer for the time being.
    pub unreachable: u64,
    /// Number of reconnections. The numbers of messages are of the one that holds.
    pub reconnections: u64,
    /// Time of the last reconnection; `None` if there was none.
    pub reconnected: Option<Instant>,
}

/// The kernel's figures of a TCP connection. It is filled in by the owner of the socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFigures {
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The variation of the round-trip time.
    pub rtt_deviation: Duration,
    /// The least round-trip time.
    pub min_rtt: Duration,
    /// The congestion window, segments.
    pub congestion_window: u32,
    /// Segments sent again since the beginning.
    pub retransmissions: u32,
    /// Bytes written and not yet sent.
    pub not_sent: Bytes,
    /// The rate at which the peer acknowledges data.
    pub delivery_rate: Rate,
    /// The rate at which data is paced.
    pub pacing_rate: Rate,
}

impl Mib {
    /// Returns the state of a connection of which nothing is known.
    pub fn unknown(at: Instant) -> Self {
        let conformance = || Conformance {
            operation: Interval::new(Region::new(&Specification::OPEN)),
            violations: Vec::new(),
            counts: [0; Measure::ALL.len()],
        };
        Self {
            at,
            send: SendMib {
                contract: Contract::default(),
                sent: Sent::default(),
                last_sent: None,
                received: Received::default(),
                last: None,
                conformance: conformance(),
                target_rate: None,
                residual: None,
            },
            receive: ReceiveMib {
                contract: Contract::default(),
                sent: Sent::default(),
                received: Received::default(),
                last: None,
                delay: None,
                jitter: None,
                conformance: conformance(),
            },
            hint: None,
            clock: None,
            clock_steps: 0,
            negotiation: NegotiationStats::default(),
            reports: ReportStats::default(),
            feedback: LocalFeedback::default(),
            tcp: None,
            tfrc: None,
        }
    }
}

impl HistogramSummary {
    /// The summary of a histogram; `None` if it is empty.
    pub fn new(of: &Histogram) -> Option<Self> {
        let (mean, max) = (of.mean()?, of.max()?);
        let [p50, p90, p99] = of.quantiles([0.5, 0.9, 0.99])?;
        Some(Self { count: of.count(), mean, p50, p90, p99, max })
    }
}

impl Conformance {
    /// Returns the conformance that a watch has seen.
    pub fn new(watch: &Watch) -> Self {
        Self {
            operation: watch.operation().clone(),
            violations: watch.violations().collect(),
            counts: watch.counts(),
        }
    }
}

impl Residual {
    /// The smaller of the limits of pacing and TFRC.
    fn new(
        holds: &Specification,
        target_rate: Option<f64>,
        sent: &SentInterval,
        tfrc: Option<&TfrcFigures>,
    ) -> Option<Self> {
        let paced = Self::of_pacing(holds, target_rate, sent);
        let controlled = tfrc.map(|tfrc| Self::of_tfrc(tfrc.rate, holds.size, sent));
        paced.into_iter().chain(controlled).reduce(|one, other| Self {
            rate: one.rate.min(other.rate),
            throughput: one.throughput.into_iter().chain(other.throughput).min(),
        })
    }

    /// The allowed rate minus the rate sent in an interval, where a message counts as a segment at least
    /// ([`crate::rate_control`]).
    fn of_tfrc(allowed: Rate, size: Option<Bytes>, sent: &SentInterval) -> Self {
        let segment = u64::from(segment(size));
        let bytes = sent.sent.bytes.max(sent.sent.messages.saturating_mul(segment));
        let counted = SentInterval { sent: Sent { bytes, ..sent.sent }, ..*sent };
        let left = allowed.as_bps().saturating_sub(counted.throughput().as_bps());
        Self { rate: left as f64 / (segment as f64 * 8.0), throughput: Some(Rate::from_bps(left)) }
    }

    /// Returns the effective rate minus the rate sent in an interval. Where messages have a size, bytes
    /// count, as they do for pacing ([`crate::pacing`]).
    fn of_pacing(holds: &Specification, target_rate: Option<f64>, sent: &SentInterval) -> Option<Self> {
        let rate = target_rate.or(holds.max_rate).or(holds.peak_rate)?;
        let most = Specification { max_rate: Some(rate), ..holds.clone() }.max_throughput();
        let Some((most, size)) = most.zip(holds.size) else {
            let seconds = sent.until.saturating_since(sent.since).as_secs_f64();
            let used = if seconds > 0.0 { sent.sent.messages as f64 / seconds } else { 0.0 };
            return Some(Self { rate: (rate - used).max(0.0), throughput: None });
        };
        let left = most.as_bps().saturating_sub(sent.throughput().as_bps());
        Some(Self { rate: left as f64 / (size.get() as f64 * 8.0), throughput: Some(Rate::from_bps(left)) })
    }
}

impl SendMib {
    /// Returns the management information of the direction in which this end sends.
    pub fn new(
        contract: Contract,
        departures: &Departures,
        reports: &PeerReports,
        watch: &Watch,
        target_rate: Option<f64>,
        tfrc: Option<&TfrcFigures>,
    ) -> Self {
        let last_sent = departures.last().copied();
        let residual = |sent: &SentInterval| Residual::new(&contract.effective, target_rate, sent, tfrc);
        Self {
            residual: last_sent.as_ref().and_then(residual),
            contract,
            sent: departures.total(),
            last_sent,
            received: reports.last().map(|report| report.received).unwrap_or_default(),
            last: reports.delivery().copied(),
            conformance: Conformance::new(watch),
            target_rate,
        }
    }
}

impl ReceiveMib {
    /// Returns the management information of the direction in which this end receives.
    pub fn new(contract: Contract, arrivals: &Arrivals, reports: &PeerReports, watch: &Watch) -> Self {
        Self {
            contract,
            sent: reports.last().map(|report| report.sent).unwrap_or_default(),
            received: arrivals.total(),
            last: arrivals.last().copied(),
            delay: HistogramSummary::new(arrivals.delays()),
            jitter: HistogramSummary::new(arrivals.jitters()),
            conformance: Conformance::new(watch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ClockOffset, Stamps};
    use crate::monitor::{MonitorParams, Report};
    use crate::violation::WatchParams;

    #[test]
    fn both_ends_know_the_same_of_a_direction() {
        let ms = Duration::from_millis;
        let params = MonitorParams::default();
        let spec = Specification::builder().max_delay(ms(100)).loss(0.0).build().unwrap();
        let watch = || Watch::new(&spec, WatchParams::default()).unwrap();
        let (mut here, mut there, mut reports) = (watch(), watch(), PeerReports::default());
        let mut departures = Departures::new(Instant::ZERO, &params).unwrap();
        let mut arrivals = Arrivals::new(Instant::ZERO, &params).unwrap();
        // 100 messages with delays of 1 to 100 ms; the last one is the 13th, which is late.
        for number in (0..100).filter(|number| *number != 12).chain([12]) {
            let arrived = Instant::ZERO + ms(200 + number);
            departures.on_send(Instant::ZERO + ms(199), 500);
            let sent = Instant::ZERO + ms(199);
            arrivals.on_message(arrived, number, sent, 500, Some(ClockOffset::NONE));
        }
        let end = Instant::ZERO + ms(500);
        departures.on_deadline(end);
        arrivals.on_deadline(end);
        let nothing = Departures::new(Instant::ZERO, &params).unwrap();
        let report = Report::new(1, &arrivals, &nothing, None, Stamps { sent: end, echo: None });
        let delivery = reports.accept(end, report, departures.total(), None).unwrap();
        assert_eq!(delivery, arrivals.take().unwrap());
        here.on_interval(&delivery, Duration::ZERO, None);
        there.on_interval(&delivery, Duration::ZERO, None);

        let contract = Contract { effective: spec.clone(), agreement: None };
        let send = SendMib::new(contract.clone(), &departures, &reports, &here, Some(9.0), None);
        let receive = ReceiveMib::new(contract, &arrivals, &PeerReports::default(), &there);
        assert_eq!((send.received, send.last), (receive.received, receive.last));
        assert_eq!(send.conformance, receive.conformance);
        assert_eq!((send.sent.messages, receive.received.messages, receive.received.late), (100, 100, 1));
        let delay = receive.delay.unwrap();
        assert_eq!((delay.count, delay.mean, delay.max), (100, Duration::from_micros(50_500), ms(100)));
        let within = |time: Duration, of: Duration| time.abs_diff(of) < ms(3);
        assert!(
            within(delay.p50, ms(50)) && within(delay.p90, ms(90)) && within(delay.p99, ms(99)),
            "{delay:?}"
        );
        assert_eq!(HistogramSummary::new(&Histogram::default()), None);
    }

    #[test]
    fn the_residual_is_the_agreement_minus_the_sent_traffic() {
        let second = Instant::ZERO + Duration::from_secs(1);
        let sent = |messages, bytes| SentInterval {
            since: Instant::ZERO,
            until: second,
            sent: Sent { messages, bytes, held: Duration::ZERO },
        };
        let left = |spec: &Specification, target, sent: &SentInterval| {
            let left = Residual::new(spec, target, sent, None);
            left.map(|left| (left.rate, left.throughput.map(Rate::as_bps)))
        };
        // 80 messages/s of 1000 B are 640 kbit/s; 50 full ones and 10 of half the length leave 200 kbit/s.
        let spec = Specification::builder().rates(60.0, 80.0, 100.0).size(Bytes::new(1000)).build().unwrap();
        assert_eq!(left(&spec, None, &sent(60, 55_000)), Some((25.0, Some(200_000))));
        // A rate that has fallen to 60/s leaves 40 kbit/s; more than that leaves nothing.
        assert_eq!(left(&spec, Some(60.0), &sent(60, 55_000)), Some((5.0, Some(40_000))));
        assert_eq!(left(&spec, None, &sent(100, 100_000)), Some((0.0, Some(0))));
        // Without a size messages count; a peak alone is the most; without a rate nothing is known.
        let messages = Specification { size: None, ..spec.clone() };
        assert_eq!(left(&messages, None, &sent(60, 55_000)), Some((20.0, None)));
        let peak = Specification { max_rate: None, ..messages.clone() };
        assert_eq!(left(&peak, None, &sent(60, 55_000)), Some((40.0, None)));
        let open = Specification { peak_rate: None, min_rate: Some(60.0), ..peak };
        assert_eq!(left(&open, None, &sent(60, 55_000)), None);
    }

    #[test]
    fn tfrc_leaves_less_where_it_allows_less() {
        let until = Instant::ZERO + Duration::from_secs(1);
        let sent = Sent { messages: 60, bytes: 55_000, held: Duration::ZERO };
        let sent = SentInterval { since: Instant::ZERO, until, sent };
        let left = |spec: &Specification, kbps| {
            let tfrc = TfrcFigures { rate: Rate::from_kbps(kbps), ..TfrcFigures::default() };
            let left = Residual::new(spec, None, &sent, Some(&tfrc)).unwrap();
            (left.rate, left.throughput.map(Rate::as_bps))
        };
        // The agreement leaves 200 kbit/s of 640. TFRC counts 60 messages of 1000 B, 480 kbit/s.
        let spec = Specification::builder().rates(60.0, 80.0, 100.0).size(Bytes::new(1000)).build().unwrap();
        assert_eq!(left(&spec, 560), (10.0, Some(80_000)));
        assert_eq!(left(&spec, 5000), (25.0, Some(200_000)));
        assert_eq!(left(&spec, 400), (0.0, Some(0)));
        // Without a size there are 20 messages/s of any length, and TFRC counts 1000 B at least; without a rate there is TFRC's.
        let messages = Specification { size: None, ..spec };
        assert_eq!(left(&messages, 560), (10.0, Some(80_000)));
        assert_eq!(left(&messages, 5000), (20.0, Some(4_520_000)));
        assert_eq!(left(&Specification::OPEN, 5000), (565.0, Some(4_520_000)));
    }
}
