//! The state of a flow in three parts: the fields for acknowledgements, the fields for data packets, and the rest.
//!
//! With many flows, cache misses dominate the cost. Therefore the parts are stored in separate arrays, and each holds only
//! the fields that its packets need.

use crate::agent::FlowCounts;
use crate::measure::{DelayRecord, FlowRecord, FlowSeries, OwnDelays, Received, ReceivedRecord, SentRecord};
use crate::network::FlowSpec;
use crate::outcome::FlowOutcome;
use cutline_transport::LazyTimer;
use cutline_transport::app::{App, TrafficSource as _};
use cutline_transport::endpoint::{Receiver, Sender, TransportParams};
use cutline_transport::udp;
use cutline_units::{Hint, Histogram, Instant, RandomStream};

/// The sending end.
pub(crate) struct Sending {
    pub(crate) source: Sender,
    /// The event of the source's deadline.
    pub(crate) timer: LazyTimer,
    pub(crate) record: SentRecord,
    /// The position at which the route of its data begins.
    pub(crate) route: u32,
    pub(crate) hint: Hint,
    /// True if the flow has a series.
    pub(crate) has_series: bool,
}

/// The receiving end.
pub(crate) struct Receiving {
    pub(crate) sink: Receiver,
    pub(crate) record: ReceivedRecord,
    /// The event of the sink's deadline.
    pub(crate) timer: LazyTimer,
    /// The number of the record of its delays: that of its group, or one of its own.
    pub(crate) delays: u32,
    /// The position at which the return route begins.
    pub(crate) route: u32,
    /// The hint of acknowledgements, the same as the sender's.
    pub(crate) hint: Hint,
    /// True if the flow has a series, or [`Rare::observed`].
    pub(crate) is_noted: bool,
    /// True if the application waits for delivery, so that it must be notified.
    pub(crate) app_waits: bool,
}

/// The state that few packets need. A flow has none when it [is idle](Background::is_idle).
pub(crate) struct Background {
    /// The application; `None` after its last write, if it does not wait for delivery. Bulk data writes once, at its start.
    pub(crate) running: Option<Box<Running>>,
    /// The event of the application's deadline.
    pub(crate) timer: LazyTimer,
    pub(crate) stop: Instant,
    /// The rest, which few flows have.
    pub(crate) rare: Option<Box<Rare>>,
}

/// State that few flows have.
#[derive(Default)]
pub(crate) struct Rare {
    /// Response times of an application that waits for delivery.
    pub(crate) responses: Option<Histogram>,
    /// Counts of the arrivals of a flow that agents observe.
    pub(crate) observed: Option<FlowCounts>,
    /// The centre of the trials of an adaptive hint.
    pub(crate) centre: Option<Hint>,
}

// The memory of a flow, besides its links and packets in transit. Flows of bulk data need nothing more after their start.
const _: () = assert!(size_of::<Sending>() <= 256, "the sending end of a flow has up to 256 bytes");
const _: () = assert!(size_of::<Receiving>() <= 152, "the receiving end of a flow has up to 152 bytes");
const _: () = assert!(size_of::<Background>() <= 32, "the background of a flow has 32 bytes");
const _: () = assert!(size_of::<OwnDelays>() <= 152, "the delays of a flow have 152 bytes");

/// A running application and its random numbers.
pub(crate) struct Running {
    pub(crate) app: App,
    pub(crate) random: RandomStream,
}

impl Sending {
    pub(crate) fn new(spec: &FlowSpec, start: Instant, route: u32) -> Self {
        Self {
            source: Sender::new(&spec.transport, start),
            timer: LazyTimer::default(),
            record: SentRecord::default(),
            route,
            hint: spec.hint,
            has_series: spec.series,
        }
    }
}

impl Receiving {
    pub(crate) fn new(spec: &FlowSpec, route: u32, delays: u32) -> Self {
        Self {
            sink: Receiver::new(&spec.transport),
            record: ReceivedRecord::NOTHING,
            timer: LazyTimer::default(),
            delays,
            route,
            hint: spec.hint,
            is_noted: spec.series,
            app_waits: spec.app.needs_reliability(),
        }
    }

    /// Creates the receiving end of a flow with external endpoints. It reads data and sends no replies.
    pub(crate) fn external(spec: &FlowSpec, delays: u32) -> Self {
        Self {
            sink: external_receiver(&spec.transport),
            record: ReceivedRecord::NOTHING,
            timer: LazyTimer::default(),
            delays,
            route: 0,
            hint: spec.hint,
            is_noted: spec.series,
            app_waits: false,
        }
    }
}

/// Returns the receiver of a flow with external endpoints, where every transport but TCP counts as UDP.
fn external_receiver(params: &TransportParams) -> Receiver {
    match params {
        TransportParams::Tcp(_) => Receiver::new(params),
        _ => Receiver::Udp(udp::Receiver::default()),
    }
}

impl Background {
    /// Returns the state of an idle flow.
    fn idle() -> Self {
        Self { running: None, timer: LazyTimer::default(), stop: Instant::FAR_FUTURE, rare: None }
    }

    /// Returns whether nothing is due, and nothing is kept.
    pub(crate) fn is_idle(&self) -> bool {
        let Self { running, timer, stop, rare } = self;
        let is_due = running.is_some() || *timer != LazyTimer::default() || *stop != Instant::FAR_FUTURE;
        !is_due && rare.is_none()
    }

    /// Returns the state of a flow that few flows have, for a change of it.
    pub(crate) fn rare_of(background: &mut Option<Box<Self>>) -> &mut Rare {
        let background = background.get_or_insert_with(|| Box::new(Self::idle()));
        background.rare.get_or_insert_default()
    }

    /// Records a packet that has reached the sink, for the agents that observe the flow.
    pub(crate) fn record_arrival(&mut self, arrival: &Received) {
        if let Some(counts) = self.rare.as_mut().and_then(|rare| rare.observed.as_mut()) {
            counts.received += 1;
            counts.delivered_bytes += arrival.delivered;
            counts.one_way += arrival.one_way;
        }
    }

    /// Returns the time of the application's next write, or of its end; [`Instant::FAR_FUTURE`] without either.
    pub(crate) fn deadline(&self) -> Instant {
        let write = self.running.as_ref().map_or(Instant::FAR_FUTURE, |running| running.app.deadline());
        write.min(self.stop)
    }

    pub(crate) fn new(spec: &FlowSpec, start: Instant, mut random: RandomStream) -> Self {
        let app = spec.app.start(start, &mut random);
        Self {
            running: Some(Box::new(Running { app, random })),
            timer: LazyTimer::default(),
            stop: spec.stop,
            rare: spec
                .app
                .needs_reliability()
                .then(|| Box::new(Rare { responses: Some(Histogram::default()), ..Rare::default() })),
        }
    }
}

/// Combines a flow's parts into its outcome at the end of a run.
pub(crate) fn finish(
    sending: &Sending,
    receiving: &Receiving,
    background: Option<Box<Background>>,
    series: Option<Box<FlowSeries>>,
    delays: Option<Box<DelayRecord>>,
    end: Instant,
) -> FlowOutcome {
    let rare = background.and_then(|background| background.rare).map(|rare| *rare).unwrap_or_default();
    FlowOutcome {
        hint: rare.centre.unwrap_or(sending.hint),
        record: FlowRecord::new(sending.record, receiving.record),
        delays,
        series: series.map(|series| series.finish(end)),
        transport: sending.source.counts(),
        responses: rare.responses.map(Box::new),
    }
}
