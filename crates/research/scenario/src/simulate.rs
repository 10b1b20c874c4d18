//! Simulates a scenario and converts the outcome to rows of the result tables.

use crate::lower::LowerError;
use crate::spec::{FlowGroupSpec, QualityDelay, Scenario, Topology};
use cutline_aqm::Readings;
use cutline_quality::Combination;
use cutline_results::{DistributionRow, FlowRow, QueueRow, QueueSeriesRow, RunResult, SeriesRow};
use cutline_sim::measure::{DelayRecord, FlowInterval, QueueInterval};
use cutline_sim::{FlowOutcome, LinkId, LinkOutcome, LinkSpec, Network, Simulation, SimulationOutcome};
use cutline_transport::app::{self, TransferParams};
use cutline_units::{Distribution, Duration, Histogram, Instant, Rate};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Reason why a run returns no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimulateError {
    /// The scenario cannot be simulated.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// The caller cancelled the run.
    #[error("interrupted")]
    Interrupted,
}

/// Simulated time between two checks of the cancel flag, and between two calls of `after_step`.
const STEP: Duration = Duration::from_millis(100);

impl Scenario {
    /// Simulates this scenario with a seed. The caller can set `cancel` to end the run early.
    ///
    /// # Errors
    /// If the scenario cannot be simulated or the run was cancelled.
    pub fn simulate(&self, seed: u64, cancel: &AtomicBool) -> Result<RunResult, SimulateError> {
        self.simulate_network(&self.network_of(seed)?, seed, cancel, |_| Ok(()))
    }

    /// Simulates `network`, which must come from [`Scenario::network_of`] with this seed. The caller may have set links to be watched.
    ///
    /// `after_step` is called every 100 ms of simulated time. It may take the observations, and may stop the run with an
    /// error.
    ///
    /// # Errors
    /// If the scenario cannot be simulated, the run was cancelled, or `after_step` returns an error.
    pub fn simulate_network<E: From<SimulateError>>(
        &self,
        network: &Network,
        seed: u64,
        cancel: &AtomicBool,
        mut after_step: impl FnMut(&mut Simulation) -> Result<(), E>,
    ) -> Result<RunResult, E> {
        let mut simulation = self.simulation(network, seed).map_err(SimulateError::from)?;
        let end = Instant::ZERO + self.duration;
        let mut now = Instant::ZERO;
        while now < end {
            if cancel.load(Ordering::Relaxed) {
                return Err(SimulateError::Interrupted.into());
            }
            now = (now + STEP).min(end);
            simulation.advance(now);
            after_step(&mut simulation)?;
        }
        Ok(self.rows(network, &simulation.finish()))
    }

    /// Checks that this scenario can be simulated, without simulating it.
    ///
    /// # Errors
    /// If a flow uses a reservation or a program, or the simulator refuses a link, a flow or a queue.
    pub fn check_simulated(&self) -> Result<(), LowerError> {
        self.check_without_routers()?;
        self.simulation(&self.network()?, self.seed).map(drop)
    }

    /// Returns the simulation of `network`, which must come from [`Scenario::network_of`] with this seed, before its first event.
    fn simulation(&self, network: &Network, seed: u64) -> Result<Simulation, LowerError> {
        self.check_without_routers()?;
        Ok(Simulation::new(network, &self.settings(seed))?)
    }

    /// Checks that no flow needs routers with reservations, or a program.
    ///
    /// # Errors
    /// The first flow that does.
    pub fn check_without_routers(&self) -> Result<(), LowerError> {
        let refusal =
            |flow: &FlowGroupSpec, key| LowerError::OnlyWithRouters { flow: flow.name.clone(), key };
        let keys = |flow: &FlowGroupSpec| {
            [("qos", flow.qos.is_some()), ("program", flow.program.is_some())]
                .into_iter()
                .find(|(_, has)| *has)
        };
        let found = self.nonempty_groups().find_map(|flow| Some((flow, keys(flow)?.0)));
        found.map_or(Ok(()), |(flow, key)| Err(refusal(flow, key)))
    }

    /// Converts the outcome of a run of this scenario's network to rows. The store adds the columns that identify the run.
    pub fn rows(&self, network: &Network, outcome: &SimulationOutcome) -> RunResult {
        let mut rows = RunResult::default();
        for (group, (spec, shared)) in self.flows.iter().zip(&outcome.groups).enumerate() {
            let name: Arc<str> = spec.name.as_str().into();
            rows.distributions.extend(delay_distributions("group", &name, shared));
            let shared = DelayMeasures::of(shared);
            let members = network.flows().iter().zip(&outcome.flows);
            let mut transfers = TransferTimes::default();
            for (flow, found) in members.filter(|(flow, _)| flow.group.0 as usize == group) {
                let transfer_bytes = transfer_bytes(&flow.app);
                if spec.arrivals.is_some() {
                    transfers.add(transfer_bytes, found);
                }
                let member = Member {
                    scenario: self,
                    spec,
                    group: &name,
                    flow: flow.name.as_str().into(),
                    transfer_bytes,
                    propagation: flow
                        .route
                        .iter()
                        .fold(Duration::ZERO, |sum, id| sum + network.link(*id).delay),
                    found,
                    shared: &shared,
                };
                member.add_rows(&mut rows);
            }
            rows.distributions.extend(transfers.rows(&name));
        }
        for (id, (link, found)) in (0..).map(LinkId).zip(network.links().iter().zip(&outcome.links)) {
            if self.shows_link(id, found) {
                let name: Arc<str> = network.link_name(id).into();
                let waits = found.waits();
                rows.queues.push(self.queue_row(&name, link, found, &waits));
                rows.queue_series.extend(self.queue_series(&name, link, found));
                rows.distributions.extend(buckets("queue", &name, "delay_ms", &waits));
            }
        }
        rows
    }

    /// Returns whether the results have rows for a link. A dumbbell has four access links per flow, so its access links,
    /// which follow the first two links, have rows only if they dropped, lost or reordered a packet.
    fn shows_link(&self, id: LinkId, found: &LinkOutcome) -> bool {
        let dumbbell = matches!(self.topology, Topology::Dumbbell(_));
        let impaired = found.impairment.is_some_and(|counts| counts.lost + counts.reordered > 0);
        !dumbbell || id.0 < 2 || found.counts.dropped > 0 || impaired
    }

    fn measured(&self) -> Duration {
        self.measure_until.saturating_sub(self.warm_up)
    }

    fn queue_row(
        &self,
        name: &Arc<str>,
        link: &LinkSpec,
        found: &LinkOutcome,
        delay: &Histogram,
    ) -> QueueRow {
        let (counts, backlog) = (&found.counts, &found.backlog);
        QueueRow {
            link: Arc::clone(name),
            aqm: link.queue.aqm.name().into(),
            tsq: link.queue.tsq.is_some(),
            rate_bps: mean_rate(link, self.warm_up, self.measure_until),
            utilisation: found.utilisation,
            backlog_mean_packets: backlog.mean_packets,
            backlog_sd_packets: backlog.deviation_packets,
            backlog_max_packets: u64::from(backlog.max_packets),
            backlog_mean_bytes: backlog.mean_bytes,
            backlog_max_bytes: backlog.max_bytes,
            delay_mean_ms: ms(delay.mean()),
            delay_p50_ms: ms(delay.quantile(0.5)),
            delay_p95_ms: ms(delay.quantile(0.95)),
            delay_p99_ms: ms(delay.quantile(0.99)),
            delay_max_ms: ms(delay.max()),
            drop_ratio: ratio(counts.dropped, counts.arrived),
            mark_ratio: ratio(counts.marked, counts.arrived),
            probability_mean: found.probability.map(|(mean, _)| mean),
            probability_sd: found.probability.map(|(_, deviation)| deviation),
            average_mean_packets: self.mean_reading(found, |readings| readings.average),
            max_p_mean: self.mean_reading(found, |readings| readings.max_p),
            arrived: counts.arrived,
            departed: counts.sent,
            dropped: counts.dropped,
            dropped_early: counts.dropped - counts.overflowed,
            dropped_full: counts.overflowed,
            marked: counts.marked,
            lost: found.impairment.map(|wire| wire.lost),
            lost_ratio: found.impairment.and_then(|wire| ratio(wire.lost, counts.sent)),
            reordered: found.impairment.map(|wire| wire.reordered),
            reordered_ratio: found
                .impairment
                .and_then(|wire| ratio(wire.reordered, counts.sent.saturating_sub(wire.lost))),
            ..QueueRow::default()
        }
    }

    /// Returns the mean of an AQM's internal variable over the ends of the measured intervals.
    fn mean_reading(&self, found: &LinkOutcome, read: fn(&Readings) -> Option<f64>) -> Option<f64> {
        let ends = (1..).map(|index| self.interval * index);
        let measured = ends.zip(found.series.iter().flatten()).filter_map(|(end, interval)| {
            (self.warm_up < end && end <= self.measure_until).then_some(read(&interval.readings)?)
        });
        let (sum, n) = measured.fold((0.0, 0_u32), |(sum, n), value| (sum + value, n + 1));
        (n > 0).then(|| sum / f64::from(n))
    }

    fn queue_series(&self, name: &Arc<str>, link: &LinkSpec, found: &LinkOutcome) -> Vec<QueueSeriesRow> {
        let intervals = found.series.iter().flatten();
        (0..)
            .zip(intervals)
            .map(|(index, interval)| self.queue_interval(name, link, index, interval))
            .collect()
    }

    fn queue_interval(
        &self,
        name: &Arc<str>,
        link: &LinkSpec,
        index: u64,
        found: &QueueInterval,
    ) -> QueueSeriesRow {
        let (start, end) = (self.interval * index, self.interval * (index + 1));
        let capacity = mean_rate(link, start, end) * self.interval.as_secs_f64();
        QueueSeriesRow {
            link: Arc::clone(name),
            start_s: start.as_secs_f64(),
            end_s: end.as_secs_f64(),
            utilisation: found.sent_bytes as f64 * 8.0 / capacity,
            backlog_packets: u64::from(found.backlog_packets),
            backlog_bytes: found.backlog_bytes,
            delay_mean_ms: mean_ms(found.waited.as_nanos(), found.sent),
            probability: found.probability,
            average_packets: found.readings.average,
            max_p: found.readings.max_p,
            target_packets: found.readings.target,
            arrived: found.arrived,
            departed: found.sent,
            dropped: found.dropped,
            marked: found.marked,
            ..QueueSeriesRow::default()
        }
    }
}

/// One flow of a group, and its outcome.
struct Member<'a> {
    scenario: &'a Scenario,
    spec: &'a FlowGroupSpec,
    group: &'a Arc<str>,
    flow: Arc<str>,
    /// Size of its only transfer; `None` for another application, or a random size.
    transfer_bytes: Option<u64>,
    /// Propagation delay of the flow's route.
    propagation: Duration,
    found: &'a FlowOutcome,
    /// Delays of the whole group.
    shared: &'a DelayMeasures,
}

/// The measures of distributions of delays that a flow's row has. They are computed once for all flows of a group, because each of them
/// goes through the counts of a distribution.
#[derive(Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "they end with their unit, as the columns do")]
struct DelayMeasures {
    queuing_p50_ms: Option<f64>,
    queuing_p90_ms: Option<f64>,
    queuing_p95_ms: Option<f64>,
    queuing_p99_ms: Option<f64>,
    queuing_max_ms: Option<f64>,
    one_way_p50_ms: Option<f64>,
    one_way_p95_ms: Option<f64>,
    one_way_p99_ms: Option<f64>,
    one_way_max_ms: Option<f64>,
    ipdv_mean_ms: Option<f64>,
    ipdv_p95_ms: Option<f64>,
}

impl DelayMeasures {
    fn of(DelayRecord { queuing, one_way, ipdv }: &DelayRecord) -> Self {
        Self {
            queuing_p50_ms: ms(queuing.quantile(0.5)),
            queuing_p90_ms: ms(queuing.quantile(0.9)),
            queuing_p95_ms: ms(queuing.quantile(0.95)),
            queuing_p99_ms: ms(queuing.quantile(0.99)),
            queuing_max_ms: ms(queuing.max()),
            one_way_p50_ms: ms(one_way.quantile(0.5)),
            one_way_p95_ms: ms(one_way.quantile(0.95)),
            one_way_p99_ms: ms(one_way.quantile(0.99)),
            one_way_max_ms: ms(one_way.max()),
            ipdv_mean_ms: ms(ipdv.mean()),
            ipdv_p95_ms: ms(ipdv.quantile(0.95)),
        }
    }
}

impl Member<'_> {
    fn add_rows(&self, rows: &mut RunResult) {
        rows.flows.push(self.flow_row());
        rows.series.extend(
            (0..).zip(self.found.series.iter().flatten()).map(|(index, found)| self.interval(index, found)),
        );
        if let Some(own) = &self.found.delays {
            rows.distributions.extend(delay_distributions("flow", &self.flow, own));
        }
        if let Some(responses) = self.found.responses.as_ref().filter(|_| self.spec.arrivals.is_none()) {
            rows.distributions.extend(buckets("flow", &self.flow, "transfer_ms", responses));
        }
    }

    /// Returns the flow's row. The percentiles come from the flow's distributions if they are stored, else from the group's.
    fn flow_row(&self) -> FlowRow {
        let (record, counts) = (&self.found.record, &self.found.transport);
        let delays = self.found.delays.as_deref().map_or(*self.shared, DelayMeasures::of);
        let seconds = self.scenario.measured().as_secs_f64();
        let received = record.received_packets;
        let one_way_mean = mean_ms(record.one_way_sum.as_nanos(), received);
        let goodput_bps = record.delivered_bytes as f64 * 8.0 / seconds;
        let tcp = self.spec.transport.params.is_reliable();
        let reacts = self.spec.transport.params.adapts();
        let queuing_mean = mean_ms(record.queuing_sum.as_nanos(), received);
        let quality_delay = match self.scenario.quality_delay {
            QualityDelay::OneWay => one_way_mean,
            QualityDelay::PropagationAndQueuing => {
                queuing_mean.map(|ms| self.propagation.as_secs_f64() * 1e3 + ms)
            }
        };
        let quality = self.quality(quality_delay, goodput_bps);
        FlowRow {
            flow: Arc::clone(&self.flow),
            group: Arc::clone(self.group),
            class: self.spec.class.name().into(),
            hint: u64::from(self.found.hint.level()),
            goodput_bps,
            sent_bps: record.sent_bytes as f64 * 8.0 / seconds,
            refused_bps: reacts
                .then(|| counts.refused_bytes as f64 * 8.0 / self.scenario.duration.as_secs_f64()),
            loss_ratio: ratio(record.dropped_packets, record.dropped_packets + received),
            mark_ratio: ratio(record.marked_packets, received),
            packets_sent: record.sent_packets,
            packets_received: received,
            packets_dropped: record.dropped_packets,
            packets_marked: record.marked_packets,
            retransmissions: tcp.then_some(counts.retransmissions),
            timeouts: reacts.then_some(counts.timeouts),
            queuing_mean_ms: queuing_mean,
            queuing_p50_ms: delays.queuing_p50_ms,
            queuing_p90_ms: delays.queuing_p90_ms,
            queuing_p95_ms: delays.queuing_p95_ms,
            queuing_p99_ms: delays.queuing_p99_ms,
            queuing_max_ms: delays.queuing_max_ms,
            one_way_mean_ms: one_way_mean,
            one_way_p50_ms: delays.one_way_p50_ms,
            one_way_p95_ms: delays.one_way_p95_ms,
            one_way_p99_ms: delays.one_way_p99_ms,
            one_way_max_ms: delays.one_way_max_ms,
            ipdv_mean_ms: delays.ipdv_mean_ms,
            ipdv_p95_ms: delays.ipdv_p95_ms,
            transfers: self.found.responses.as_ref().map(|times| times.count()),
            transfer_mean_ms: self.found.responses.as_ref().and_then(|times| ms(times.mean())),
            transfer_bytes: self.transfer_bytes,
            transfer_p95_ms: self.found.responses.as_ref().and_then(|times| ms(times.quantile(0.95))),
            qd: quality.map(|[qd, _, _]| qd),
            qt: quality.map(|[_, qt, _]| qt),
            q: quality.map(|[_, _, q]| q),
            ..FlowRow::default()
        }
    }

    /// Returns Qd, Qt and Q (TSQ eq. 1) for the mean delay and the goodput. Without a received packet Qd is the worst
    /// quality.
    fn quality(&self, delay_mean_ms: Option<f64>, goodput_bps: f64) -> Option<[f64; 3]> {
        let class = self.spec.class.class()?;
        let throughput = class.throughput_quality(Rate::from_bps(goodput_bps as u64));
        let delay = delay_mean_ms.map(|ms| class.delay_quality(Duration::from_secs_f64(ms * 1e-3)));
        let delay = delay.unwrap_or(cutline_quality::Quality::WORST);
        Some([delay.get(), throughput.get(), Combination::Min.combine(delay, throughput).get()])
    }

    fn interval(&self, index: u64, found: &FlowInterval) -> SeriesRow {
        let width = self.scenario.interval;
        let bps = |bytes: u64| bytes as f64 * 8.0 / width.as_secs_f64();
        let packets = u64::from(found.packets);
        SeriesRow {
            flow: Arc::clone(&self.flow),
            group: Arc::clone(self.group),
            start_s: (width * index).as_secs_f64(),
            end_s: (width * (index + 1)).as_secs_f64(),
            goodput_bps: bps(found.delivered_bytes),
            sent_bps: bps(found.sent_bytes),
            packets_sent: u64::from(found.sent_packets),
            packets_received: packets,
            packets_dropped: u64::from(found.dropped),
            packets_marked: u64::from(found.marked),
            queuing_mean_ms: mean_ms(found.queuing_ns, packets),
            one_way_mean_ms: mean_ms(found.one_way_ns, packets),
            ipdv_mean_ms: mean_ms(found.ipdv_ns, packets),
            hint: found.hint.map(|hint| u64::from(hint.level())),
            hint_centre: found.centre.map(|hint| u64::from(hint.level())),
            ..SeriesRow::default()
        }
    }
}

/// Returns the size of a flow's only transfer; `None` for another application, or a random size.
pub(crate) fn transfer_bytes(app: &app::Params) -> Option<u64> {
    match app {
        app::Params::Transfer(TransferParams { size: Distribution::Fixed(bytes) }) => {
            Some(bytes.round() as u64)
        }
        _ => None,
    }
}

/// The times of a group's transfers that were completed, by size. The limits are those of Alizadeh et al. 2013 (pFabric, section 5).
#[derive(Default)]
struct TransferTimes {
    all: Histogram,
    /// Up to 100 KB.
    short: Histogram,
    /// Above 100 KB, up to 10 MB.
    medium: Histogram,
    /// Above 10 MB.
    long: Histogram,
}

impl TransferTimes {
    fn add(&mut self, bytes: Option<u64>, found: &FlowOutcome) {
        let (Some(bytes), Some(times)) = (bytes, &found.responses) else { return };
        let of_size = match bytes {
            0..=100_000 => &mut self.short,
            100_001..=10_000_000 => &mut self.medium,
            _ => &mut self.long,
        };
        of_size.merge(times);
        self.all.merge(times);
    }

    fn rows(&self, group: &Arc<str>) -> Vec<DistributionRow> {
        let of = |quantity, times| buckets("group", group, quantity, times);
        [
            of("transfer_ms", &self.all),
            of("transfer_short_ms", &self.short),
            of("transfer_medium_ms", &self.medium),
            of("transfer_long_ms", &self.long),
        ]
        .concat()
    }
}

/// Returns the rows of the three delay distributions of a flow or group. Empty distributions have no rows.
fn delay_distributions(kind: &'static str, subject: &Arc<str>, delays: &DelayRecord) -> Vec<DistributionRow> {
    let DelayRecord { queuing, one_way, ipdv } = delays;
    let of = |quantity, histogram| buckets(kind, subject, quantity, histogram);
    [of("queuing_ms", queuing), of("one_way_ms", one_way), of("ipdv_ms", ipdv)].concat()
}

fn buckets(kind: &str, subject: &Arc<str>, quantity: &str, histogram: &Histogram) -> Vec<DistributionRow> {
    debug_assert!(cutline_results::distributed_quantity(quantity).is_some(), "{quantity} is not described");
    let (kind, quantity): (Arc<str>, Arc<str>) = (kind.into(), quantity.into());
    let row = |bucket: cutline_units::Bucket| DistributionRow {
        subject_kind: Arc::clone(&kind),
        subject: Arc::clone(subject),
        quantity: Arc::clone(&quantity),
        low: bucket.low.as_millis_f64(),
        high: bucket.high.as_millis_f64(),
        count: bucket.count,
        ..DistributionRow::default()
    };
    histogram.buckets().map(row).collect()
}

/// Returns the mean rate of a link over `from..until`, in bit/s.
fn mean_rate(link: &LinkSpec, from: Duration, until: Duration) -> f64 {
    let (from, until) = (Instant::ZERO + from, Instant::ZERO + until);
    let mut bits = 0.0;
    let mut add = |rate: Rate, start: Instant, end: Instant| {
        bits += rate.as_bps() as f64 * end.min(until).saturating_since(start.max(from)).as_secs_f64();
    };
    let (mut rate, mut since) = (link.rate, Instant::ZERO);
    for &(at, changed) in &link.rate_changes {
        add(rate, since, at);
        (rate, since) = (changed, at);
    }
    add(rate, since, until);
    bits / until.saturating_since(from).as_secs_f64()
}

fn ms(duration: Option<Duration>) -> Option<f64> {
    duration.map(Duration::as_millis_f64)
}

/// Returns the mean of a sum of nanoseconds over a number of packets, in ms; `None` without packets.
fn mean_ms(sum_ns: u64, packets: u64) -> Option<f64> {
    (packets > 0).then(|| sum_ns as f64 / packets as f64 * 1e-6)
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
