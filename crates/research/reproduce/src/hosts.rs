//! Hosts on a link, as `cutline baseline` measures them (QUANTA section 4.1): each run is a table of its own, between two network
//! namespaces joined by a pair of virtual interfaces, which have no limit but the processors.
//!
//! The name of a flow selects its row of the table:
//!
//! | name | load | buffers |
//! | --- | --- | --- |
//! | `udp-free`, `udp-free-large` | as fast as the socket takes the blocks | the kernel's; 4 MiB |
//! | `udp-50`, `udp-50-large` | half of the rate received without a limit | the kernel's; 4 MiB |
//! | `udp-rate`, `udp-rate-large` | the application's rate | the kernel's; 4 MiB |
//! | `udp-requested-110` | the application's rate, into a requested bandwidth of 110 % of it | the kernel's |
//!
//! and so for `tcp` and `direct`. The size of blocks is that of the flows' applications, and the duration of a measurement the scenario's.

use cutline_baseline::{BaselineDocument, BaselineRow, QueueSize, RowKey};
use cutline_baseline_runner::{BaselinePlan, FarEnd, FarEndKind, Runner};
use cutline_results::{DistributionRow, FlowRow, RunResult, TimingRow};
use cutline_scenario::Scenario;
use cutline_study::{Platform, Run};
use cutline_transport::app::Params;
use cutline_units::{Rate, lock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Waits for the end of other runs that measure the processors of this host, and keeps them out until it is dropped.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    lock(&ALONE)
}

/// The largest load that is chosen for a host.
const MOST: Rate = Rate::from_mbps(100_000);
/// Number of tables that are measured until one has all rows.
const TRIES: u32 = 4;
/// Least number of blocks at a fixed load.
const LEAST_BLOCKS: u32 = 10;

/// Hosts on a link.
#[derive(Debug)]
pub(crate) struct Hosts;

impl Platform for Hosts {
    fn name(&self) -> &'static str {
        "hosts"
    }

    fn label(&self) -> &'static str {
        "hosts"
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn permitted(&self) -> Result<(), String> {
        cutline_lab::permitted().map_err(|error| error.to_string())
    }

    fn run(&self, run: Run<'_>) -> Result<RunResult, String> {
        let _alone = alone();
        let wanted = rows_of(run.scenario)?;
        let plan = plan(run.scenario, &wanted, run.seed)?;
        // The runner measures requested bandwidths of loads that were carried without one. On a busy machine that may need another table.
        let mut missing = String::new();
        for _ in 0..TRIES {
            let document = measure(&plan, run.cancel)?;
            match result(&wanted, &document) {
                Ok(result) => return Ok(result),
                Err(error) => missing = error,
            }
        }
        Err(format!("{missing}, in {TRIES} tables: other programs use the processors"))
    }
}

/// Returns the table of a plan.
fn measure(plan: &BaselinePlan, cancel: &AtomicBool) -> Result<BaselineDocument, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("a folder cannot be made: {error}"))?;
    let failed = |error: cutline_baseline_runner::RunError| error.to_string();
    let far = FarEnd::new(FarEndKind::Namespaces).map_err(failed)?;
    let file = folder.path().join("table.json");
    let mut runner = Runner::new(plan, far, &file, None, "").map_err(failed)?;
    runner.run(cancel, |_| {}).map_err(failed)?;
    if cancel.load(Ordering::Relaxed) {
        return Err("interrupted".to_owned());
    }
    Ok(runner.document().clone())
}

/// Returns the rows of the flows.
///
/// # Errors
/// The first flow whose row the table does not have.
fn result(wanted: &[NamedRow], document: &BaselineDocument) -> Result<RunResult, String> {
    let mut result = RunResult::default();
    for named in wanted {
        let key = named.key(document)?;
        let row = document.row(&key).ok_or_else(|| format!("flow {}: it was not measured", named.flow))?;
        add(&mut result, &named.flow, row);
    }
    // All rates are relative to those of the same run.
    result.timing.push(TimingRow { timing_ok: true, ..TimingRow::default() });
    Ok(result)
}

/// Checks that a scenario names rows of a table.
///
/// # Errors
/// The first flow that does not.
#[cfg(test)]
pub(crate) fn check(scenario: &Scenario) -> Result<(), String> {
    plan(scenario, &rows_of(scenario)?, scenario.seed).map(drop)
}

/// Load of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadKind {
    Free,
    /// Per cent of the protocol's rate without a limit.
    Share(u32),
    /// The application's rate.
    Own,
    /// Requested bandwidth, per cent of the load with headers.
    Requested(u32),
}

/// The row of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedRow {
    flow: String,
    protocol: String,
    load: LoadKind,
    queue: QueueSize,
    block: u64,
    rate: u64,
}

impl NamedRow {
    /// # Errors
    /// When the name is that of no row.
    fn of(flow: &str, block: u64, rate: u64) -> Result<Self, String> {
        let wrong = || {
            format!(
                "flow {flow}: its name is that of no row of a baseline; allowed are tcp, udp or direct, and -free, -rate, -1 to -100 (per cent), \
                 each perhaps with -large, or -requested-100 to -requested-1000 (per cent)"
            )
        };
        let mut parts = flow.split('-');
        let protocol =
            parts.next().filter(|name| ["tcp", "udp", "direct"].contains(name)).ok_or_else(wrong)?;
        let percent = |text: Option<&str>, from: u32, to: u32| {
            text.and_then(|text| text.parse::<u32>().ok())
                .filter(|percent| (from..=to).contains(percent))
                .ok_or_else(wrong)
        };
        let load = match parts.next() {
            Some("free") => LoadKind::Free,
            Some("rate") => LoadKind::Own,
            Some("requested") => LoadKind::Requested(percent(parts.next(), 100, 1000)?),
            other => LoadKind::Share(percent(other, 1, 100)?),
        };
        let queue = match parts.next() {
            None => QueueSize::Default,
            Some("large") if !matches!(load, LoadKind::Requested(_)) => QueueSize::Large,
            Some(_) => return Err(wrong()),
        };
        if parts.next().is_some() {
            return Err(wrong());
        }
        Ok(Self { flow: flow.to_owned(), protocol: protocol.to_owned(), load, queue, block, rate })
    }

    /// Returns the key of its row in a complete table.
    ///
    /// # Errors
    /// When the loads of the table are not those that it was to have.
    fn key(&self, document: &BaselineDocument) -> Result<RowKey, String> {
        let of_protocol = document.host_rates.iter().find(|rates| rates.protocol == self.protocol);
        let (load_bps, requested_percent) = match self.load {
            LoadKind::Free => (None, None),
            LoadKind::Own => (Some(self.rate), None),
            LoadKind::Requested(percent) => (Some(self.rate), Some(percent)),
            LoadKind::Share(percent) => {
                let at = document.plan.shares_percent.iter().position(|share| *share == percent);
                let rates = of_protocol.map_or(&[][..], |rates| &rates.rates_bps);
                // A rate that another share has already, or that is not above 0, is left out.
                let known = at.filter(|_| rates.len() == document.plan.shares_percent.len());
                let rate = known.and_then(|at| rates.get(at)).copied();
                (
                    Some(rate.ok_or_else(|| {
                        format!("flow {}: nothing was received without a limit", self.flow)
                    })?),
                    None,
                )
            }
        };
        Ok(RowKey {
            protocol: self.protocol.clone(),
            queue: self.queue,
            block: self.block,
            load_bps,
            requested_percent,
        })
    }
}

/// The rows that a scenario names.
fn rows_of(scenario: &Scenario) -> Result<Vec<NamedRow>, String> {
    let of = |group: &cutline_scenario::spec::FlowGroupSpec| match &group.app {
        Params::Cbr(app) => NamedRow::of(&group.name, app.size.get(), app.rate.as_bps()),
        _ => Err(format!("flow {}: its application has no blocks; set app.kind = \"cbr\"", group.name)),
    };
    scenario.nonempty_groups().map(of).collect()
}

/// Returns the plan whose table has these rows.
fn plan(scenario: &Scenario, wanted: &[NamedRow], seed: u64) -> Result<BaselinePlan, String> {
    let distinct = |of: &dyn Fn(&NamedRow) -> Option<u64>| {
        let mut all: Vec<u64> = wanted.iter().filter_map(of).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let blocks = distinct(&|row| Some(row.block));
    if blocks.len() != 1 {
        return Err(format!("flows have blocks of {blocks:?} B; all flows of a scenario must have the same"));
    }
    let percents = |all: Vec<u64>| all.into_iter().map(|percent| percent as u32).collect::<Vec<_>>();
    let shares =
        distinct(&|row| if let LoadKind::Share(percent) = row.load { Some(percent.into()) } else { None });
    let margins = distinct(&|row| {
        if let LoadKind::Requested(percent) = row.load { Some(percent.into()) } else { None }
    });
    let has_own_rate = |row: &NamedRow| matches!(row.load, LoadKind::Own | LoadKind::Requested(_));
    let rates = distinct(&|row| has_own_rate(row).then_some(row.rate));
    let mut protocols: Vec<String> = wanted.iter().map(|row| row.protocol.clone()).collect();
    protocols.sort();
    protocols.dedup();
    Ok(BaselinePlan {
        protocols,
        rates: rates.into_iter().map(Rate::from_bps).collect(),
        shares: percents(shares),
        margins: percents(margins),
        blocks,
        duration: scenario.duration,
        least_blocks: LEAST_BLOCKS,
        max_rate: MOST,
        unlimited_udp: wanted.iter().any(|row| !has_own_rate(row)),
        seed,
    })
}

/// Returns a count of a row.
type CountOfRow = fn(&BaselineRow) -> u64;

/// Values of a flow in the table of distributions: shares of the blocks that were written, by the place where they were lost, and the load.
const PLACES: [(&str, CountOfRow); 4] = [
    ("lost_sender_queue_percent", |row| row.lost_sender_queue),
    ("lost_interface_percent", |row| row.lost_interface),
    ("lost_receive_buffer_percent", |row| row.lost_receive_buffer),
    ("lost_path_percent", |row| row.lost_path),
];

fn add(result: &mut RunResult, flow: &str, row: &BaselineRow) {
    let lost = row.lost_sender_queue + row.lost_interface + row.lost_receive_buffer + row.lost_path;
    result.flows.push(FlowRow {
        flow: flow.into(),
        group: flow.into(),
        class: "none".into(),
        goodput_bps: row.throughput_bps,
        sent_bps: row.blocks as f64 * row.block as f64 * 8.0 / row.duration_s,
        loss_ratio: row.loss_ratio,
        packets_sent: row.blocks,
        packets_received: row.blocks.saturating_sub(lost),
        packets_dropped: lost,
        retransmissions: (row.protocol == "tcp").then_some(row.retransmissions),
        one_way_mean_ms: row.delay_ms,
        one_way_p99_ms: row.delay_p99_ms,
        ..FlowRow::default()
    });
    let mut single = |quantity: &str, value: f64| {
        result.distributions.push(DistributionRow::single(flow, quantity, value));
    };
    if let Some(ratio) = row.loss_ratio {
        for (quantity, count) in PLACES {
            // Divided first: a place with all losses has exactly `loss_percent`, and a claim about the rest has exactly 0.
            single(quantity, 100.0 * ratio * (count(row) as f64 / lost.max(1) as f64));
        }
    }
    row.rtt_ms.into_iter().for_each(|rtt| single("rtt_ms", rtt));
    let load =
        row.load_bps.map_or(row.blocks as f64 * row.block as f64 * 8.0 / row.duration_s, |load| load as f64);
    single("offered_bps", load);
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_baseline::HostRates;

    #[test]
    fn names_are_rows() {
        let of = |name: &str| NamedRow::of(name, 8192, 10_000_000);
        assert_eq!(of("udp-free-large").unwrap().load, LoadKind::Free);
        assert_eq!(of("udp-free-large").unwrap().queue, QueueSize::Large);
        assert_eq!(of("direct-50").unwrap().load, LoadKind::Share(50));
        assert_eq!(of("tcp-requested-110").unwrap().load, LoadKind::Requested(110));
        assert_eq!(of("tcp-rate").unwrap().load, LoadKind::Own);
        for wrong in [
            "udp",
            "sctp-free",
            "udp-0",
            "udp-101",
            "udp-requested",
            "udp-requested-110-large",
            "udp-free-small",
            "udp-rate-50",
            "udp-50-large-2",
        ] {
            assert!(of(wrong).unwrap_err().contains("allowed are tcp, udp or direct"), "{wrong}");
        }
    }

    #[test]
    fn a_share_is_the_load_that_was_chosen_for_the_host() {
        let mut document = BaselineDocument::default();
        document.plan.shares_percent = vec![50, 100];
        document.host_rates = vec![HostRates { protocol: "udp".into(), rates_bps: vec![40, 80] }];
        let of = |name: &str| NamedRow::of(name, 8192, 7).unwrap();
        assert_eq!(of("udp-100").key(&document).unwrap().load_bps, Some(80));
        assert_eq!(of("udp-requested-110").key(&document).unwrap().load_bps, Some(7));
        assert_eq!(
            of("udp-rate").key(&document).unwrap(),
            RowKey { requested_percent: None, ..of("udp-requested-110").key(&document).unwrap() }
        );
        assert!(of("tcp-100").key(&document).is_err());
    }

    #[test]
    fn a_place_with_all_losses_has_the_loss_without_a_rounding() {
        for lost in 1..=1000_u64 {
            let loss_ratio = lost as f64 / 1000.0;
            let row = BaselineRow {
                blocks: 1000,
                duration_s: 1.0,
                loss_ratio: Some(loss_ratio),
                lost_receive_buffer: lost,
                ..BaselineRow::default()
            };
            let mut result = RunResult::default();
            add(&mut result, "udp-free", &row);
            let place = |quantity: &str| {
                result.distributions.iter().find(|row| &*row.quantity == quantity).unwrap().low
            };
            // The measure `loss_percent` of a flow is computed in this way.
            assert_eq!(place("lost_receive_buffer_percent"), 100.0 * loss_ratio, "{lost} of 1000");
            assert_eq!(place("lost_path_percent"), 0.0, "{lost} of 1000");
        }
    }
}
