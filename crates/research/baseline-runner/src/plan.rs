//! The measurements of a table.
//!
//! | step | load | block | buffers |
//! | --- | --- | --- | --- |
//! | limits | as fast as the socket takes the blocks (QUANTA figures 4 and 5, without flow control) | all | default, large |
//! | rates | the given loads, and shares of the rate that the protocol carried in the first step (figure 5, table 1) | all | default; UDP large |
//! | margins | two loads, with a limit below the application of 100 % of the load and more (table 2) | the middle one | default |
//!
//! Each step depends on the rows of those before it, so the list of missing rows is computed again after each measurement.

use cutline_baseline::{BaselineDocument, HostRates, PlanDocument, QueueSize, RowKey};
use cutline_units::{Duration, Rate};

/// The loads of QUANTA's tables 1 and 2, kbit/s.
pub const PAPER_RATES: [u64; 5] = [500, 1_500, 10_000, 25_000, 65_000];
/// The sizes of blocks in QUANTA's tables, bytes.
pub const PAPER_BLOCKS: [u64; 3] = [1024, 8192, 65_536];
/// The smallest and the largest block, bytes.
pub const LEAST_BLOCK: u64 = 64;
/// The largest block, bytes.
pub const MOST_BLOCK: u64 = 65_536;
/// The longest payload of a UDP datagram in IPv4 (RFC 768, RFC 791), which is also taken for frames; IPv6 allows 20 B more.
const LONGEST_DATAGRAM: u64 = 65_507;
/// Loads that are chosen for a host: shares of the rate that a protocol carried without a limit, per cent.
pub const SHARES: [u32; 5] = [25, 50, 75, 90, 100];
/// Requested bandwidths, per cent of the load with headers.
pub const MARGINS: [u32; 7] = [100, 101, 102, 105, 110, 120, 140];
/// `SO_RCVBUF` that gives the kernel's default of 212,992 B: the kernel doubles the value.
const DEFAULT_BUFFER: u64 = 106_496;
/// The larger buffers.
const LARGE_BUFFER: u64 = 4 << 20;
/// Payload that may wait for the requested bandwidth, bytes: STREAMS's high-water mark in QUANTA figure 5 was 32 KB.
const SHAPER_QUEUE: u64 = 32_768;
/// The largest share of lost blocks at which a load counts as carried.
const CARRIED: f64 = 0.01;

/// The measurements to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselinePlan {
    /// The names of the protocols: `tcp`, `udp`, `direct`.
    pub protocols: Vec<String>,
    /// Loads in addition to those that are chosen for the host.
    pub rates: Vec<Rate>,
    /// Loads that are chosen for the host: shares of the rate that a protocol carried without a limit, per cent.
    pub shares: Vec<u32>,
    /// Requested bandwidths, per cent of the load with headers.
    pub margins: Vec<u32>,
    /// Sizes of blocks, bytes, each [`LEAST_BLOCK`]..=[`MOST_BLOCK`]. UDP's longest datagram is a little shorter than the largest.
    pub blocks: Vec<u64>,
    /// Least duration of a measurement.
    pub duration: Duration,
    /// Least number of blocks at a fixed load.
    pub least_blocks: u32,
    /// The largest load.
    pub max_rate: Rate,
    /// True if UDP and frames are measured without rate control, too.
    pub unlimited_udp: bool,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl BaselinePlan {
    /// Returns the plan as a document. Rates and blocks are in order, and each is there once.
    pub fn document(&self) -> PlanDocument {
        let sorted = |mut values: Vec<u64>| {
            values.sort_unstable();
            values.dedup();
            values
        };
        let rates = self.rates.iter().filter(|rate| **rate <= self.max_rate).map(|rate| rate.as_bps());
        PlanDocument {
            protocols: self.protocols.clone(),
            rates_bps: sorted(rates.collect()),
            blocks: sorted(self.blocks.clone()),
            shares_percent: self.shares.clone(),
            margins_percent: self.margins.clone(),
            duration_ms: self.duration.as_nanos() / 1_000_000,
            least_blocks: self.least_blocks,
            max_rate_bps: self.max_rate.as_bps(),
            unlimited_udp: self.unlimited_udp,
            default_buffer: DEFAULT_BUFFER,
            large_buffer: LARGE_BUFFER,
            shaper_queue: SHAPER_QUEUE,
            seed: self.seed,
        }
    }
}

/// Returns the measurements that are missing in a table, as far as they are known now, in order. Adds the loads of the host once the
/// first step is complete.
pub(crate) fn missing(document: &mut BaselineDocument) -> Vec<RowKey> {
    let limits = lacking(document, limits(&document.plan));
    if !limits.is_empty() {
        return limits;
    }
    if document.host_rates.is_empty() {
        document.host_rates = host_rates(document);
    }
    let mut keys = rates(document);
    keys.extend(margins(document));
    lacking(document, keys)
}

/// Returns the approximate number of measurements after the first step, when the loads of the host are not known yet.
pub(crate) fn unknown(document: &BaselineDocument) -> Vec<RowKey> {
    if !document.host_rates.is_empty() {
        return Vec::new();
    }
    let shares = document.plan.shares_percent.iter();
    let rates_bps: Vec<u64> =
        shares.map(|share| document.plan.max_rate_bps / 100 * u64::from(*share)).collect();
    let host_rates = document.plan.protocols.iter();
    let host_rates =
        host_rates.map(|protocol| HostRates { protocol: protocol.clone(), rates_bps: rates_bps.clone() });
    let assumed = BaselineDocument { host_rates: host_rates.collect(), rows: Vec::new(), ..document.clone() };
    let mut keys = rates(&assumed);
    keys.extend(margins(&assumed));
    keys
}

fn lacking(document: &BaselineDocument, keys: Vec<RowKey>) -> Vec<RowKey> {
    keys.into_iter().filter(|key| document.row(key).is_none()).collect()
}

fn key(protocol: &str, queue: QueueSize, block: u64, load_bps: Option<u64>) -> RowKey {
    let block = if protocol == "tcp" { block } else { block.min(LONGEST_DATAGRAM) };
    RowKey { protocol: protocol.to_owned(), queue, block, load_bps, requested_percent: None }
}

/// Returns whether a protocol is measured without a limit. TCP limits itself.
fn is_measured_without_limit(plan: &PlanDocument, protocol: &str) -> bool {
    protocol == "tcp" || plan.unlimited_udp
}

fn limits(plan: &PlanDocument) -> Vec<RowKey> {
    let mut keys = Vec::new();
    for protocol in plan.protocols.iter().filter(|protocol| is_measured_without_limit(plan, protocol)) {
        for queue in [QueueSize::Default, QueueSize::Large] {
            keys.extend(plan.blocks.iter().map(|block| key(protocol, queue, *block, None)));
        }
    }
    keys
}

/// Returns the loads of each protocol: shares of the most that it received without a limit. Without such a
/// measurement, the loads of another protocol count, and otherwise the largest load.
fn host_rates(document: &BaselineDocument) -> Vec<HostRates> {
    let received = |protocol: Option<&str>| {
        let rows =
            document.rows.iter().filter(|row| protocol.is_none_or(|protocol| row.protocol == protocol));
        let unlimited = rows.filter(|row| row.load_bps.is_none());
        unlimited.map(|row| row.throughput_bps as u64).max().filter(|rate| *rate > 0)
    };
    let most = document.plan.max_rate_bps;
    let of = |protocol: &String| {
        let all = received(Some(protocol)).or_else(|| received(None)).unwrap_or(most).min(most);
        let shares = document.plan.shares_percent.iter();
        let mut rates: Vec<u64> = shares.map(|share| round(all / 100 * u64::from(*share))).collect();
        rates.retain(|rate| *rate > 0 && *rate <= most && !document.plan.rates_bps.contains(rate));
        rates.dedup();
        HostRates { protocol: protocol.clone(), rates_bps: rates }
    };
    document.plan.protocols.iter().map(of).collect()
}

/// Rounds a rate down to two digits.
fn round(rate: u64) -> u64 {
    let unit = 10_u64.pow(rate.max(1).ilog10().saturating_sub(1));
    rate / unit * unit
}

/// Returns all loads of a protocol, in order.
fn loads(document: &BaselineDocument, protocol: &str) -> Vec<u64> {
    let own = document.host_rates.iter().filter(|rates| rates.protocol == protocol);
    let own = own.flat_map(|rates| rates.rates_bps.iter().copied());
    let mut loads: Vec<u64> = document.plan.rates_bps.iter().copied().chain(own).collect();
    loads.sort_unstable();
    loads.dedup();
    loads
}

fn rates(document: &BaselineDocument) -> Vec<RowKey> {
    let mut keys = Vec::new();
    for protocol in &document.plan.protocols {
        let queues: &[QueueSize] =
            if protocol == "tcp" { &[QueueSize::Default] } else { &[QueueSize::Default, QueueSize::Large] };
        for load in loads(document, protocol) {
            for block in &document.plan.blocks {
                keys.extend(queues.iter().map(|queue| key(protocol, *queue, *block, Some(load))));
            }
        }
    }
    keys
}

/// Returns the measurements with requested bandwidths: at the middle of the given loads, and at the largest load up to half of the most
/// that was carried.
fn margins(document: &BaselineDocument) -> Vec<RowKey> {
    let mut keys = Vec::new();
    let Some(block) = middle(&document.plan.blocks) else { return keys };
    for protocol in &document.plan.protocols {
        let all = loads(document, protocol);
        let carried = |load: &u64| {
            let row = document.row(&key(protocol, QueueSize::Default, block, Some(*load)));
            row.is_none_or(|row| {
                row.loss_ratio.unwrap_or(0.0) <= CARRIED
                    && row.throughput_bps >= *load as f64 * (1.0 - CARRIED)
            })
        };
        let most = all.iter().copied().filter(carried).max().unwrap_or(0);
        let half = all.iter().copied().filter(|load| *load <= most / 2).max();
        let mut chosen: Vec<u64> = middle(&document.plan.rates_bps).into_iter().chain(half).collect();
        chosen.retain(carried);
        chosen.sort_unstable();
        chosen.dedup();
        for load in chosen {
            keys.extend(document.plan.margins_percent.iter().map(|percent| RowKey {
                requested_percent: Some(*percent),
                ..key(protocol, QueueSize::Default, block, Some(load))
            }));
        }
    }
    keys
}

fn middle(values: &[u64]) -> Option<u64> {
    values.get(values.len() / 2).or(values.last()).copied()
}

/// Returns the duration of sending of a measurement.
pub(crate) fn duration(plan: &PlanDocument, key: &RowKey) -> Duration {
    let least = Duration::from_millis(plan.duration_ms);
    let Some(load) = key.load_bps else { return least };
    let bits = key.block as f64 * 8.0 * f64::from(plan.least_blocks);
    least.max(Duration::from_secs_f64(bits / load as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_baseline::BaselineRow;

    fn plan(unlimited_udp: bool) -> PlanDocument {
        let plan = BaselinePlan {
            protocols: vec!["tcp".into(), "udp".into()],
            rates: PAPER_RATES.map(Rate::from_kbps).to_vec(),
            shares: SHARES.to_vec(),
            margins: MARGINS.to_vec(),
            blocks: PAPER_BLOCKS.to_vec(),
            duration: Duration::from_secs(2),
            least_blocks: 10,
            max_rate: Rate::from_mbps(100),
            unlimited_udp,
            seed: 1,
        };
        plan.document()
    }

    /// Measures everything that is missing on a host that carries 43 Mbit/s, and returns the number of measurements.
    fn complete(document: &mut BaselineDocument) -> usize {
        let before = document.rows.len();
        while let Some(key) = missing(document).into_iter().next() {
            let throughput = key.load_bps.map_or(43.21e6, |load| (load as f64).min(43.21e6));
            document.rows.push(BaselineRow {
                protocol: key.protocol,
                queue: key.queue,
                block: key.block,
                load_bps: key.load_bps,
                requested_percent: key.requested_percent,
                throughput_bps: throughput,
                ..BaselineRow::default()
            });
        }
        document.rows.len() - before
    }

    #[test]
    fn the_steps_follow_each_other_and_end() {
        let mut document = BaselineDocument { plan: plan(true), ..BaselineDocument::default() };
        assert_eq!(
            missing(&mut document).len(),
            12,
            "limits: two protocols, three blocks, two sizes of buffers"
        );
        let after_that = unknown(&document).len();
        let all = complete(&mut document);
        // A quarter, 10 Mbit/s, is among the given loads.
        assert_eq!(document.host_rates[0].rates_bps, [21_000_000, 32_000_000, 38_000_000, 43_000_000]);
        // 9 loads, since 10 Mbit/s are there; 27 measurements of TCP and 54 of UDP; two margins of each.
        assert_eq!(all, 12 + 27 + 54 + 4 * 7);
        assert!(after_that >= all - 12, "{after_that}");
        assert!(missing(&mut document).is_empty() && unknown(&document).is_empty());
        // One that is lost is measured again, and nothing else.
        let lost = document.rows.remove(40);
        assert_eq!(missing(&mut document), [lost.key()]);
        let margins: Vec<_> = document.rows.iter().filter(|row| row.requested_percent == Some(140)).collect();
        let loads: Vec<_> = margins.iter().map(|row| row.load_bps.unwrap()).collect();
        assert_eq!(loads, [10_000_000, 21_000_000, 10_000_000, 21_000_000]);
    }

    #[test]
    fn udp_is_not_measured_without_a_limit_unless_allowed() {
        let mut document = BaselineDocument { plan: plan(false), ..BaselineDocument::default() };
        complete(&mut document);
        assert!(document.rows.iter().all(|row| row.protocol == "tcp" || row.load_bps.is_some()));
        assert_eq!(
            document.host_rates[1].rates_bps, document.host_rates[0].rates_bps,
            "TCP's stand for UDP's"
        );
        let most = |load: Option<u64>| load.is_none_or(|load| load <= 100_000_000);
        assert!(document.rows.iter().all(|row| most(row.load_bps)));
    }

    #[test]
    fn slow_loads_last_longer() {
        let plan = plan(true);
        let of = |load: Option<u64>| duration(&plan, &key("tcp", QueueSize::Default, 65_536, load));
        assert_eq!([of(None), of(Some(65_000_000))], [Duration::from_secs(2); 2]);
        // Ten blocks of 524,288 bits.
        assert_eq!(of(Some(500_000)), Duration::from_secs_f64(10.485_76));
        assert_eq!([round(43_210_000), round(7), round(99)], [43_000_000, 7, 99]);
    }
}
