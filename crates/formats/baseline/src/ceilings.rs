//! The most that a host carried, as the resource manager counts capacities.

use crate::{BaselineDocument, BaselineRow};
use cutline_units::Rate;

/// Loads that are chosen for a host are rounded down to two digits, so the largest one may be this much of the largest load of the plan.
const NEAR: f64 = 0.9;

/// The most that a host carried over one protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceiling {
    /// The highest rate of payload. Of a protocol that can lose, the highest rate without a loss.
    pub rate: Rate,
    /// Processor time of the thread that sent, at the rate, per Gbit/s of payload: 1 is one processor. `None` if it is unknown.
    pub cpu_per_gbit: Option<f64>,
}

impl BaselineDocument {
    /// Returns the ceiling of a protocol: `tcp`, `udp` or `direct`. `None` if the table has no measurement of it, or none without a
    /// loss.
    pub fn ceiling(&self, protocol: &str) -> Option<Ceiling> {
        let is_whole = |row: &&BaselineRow| {
            row.protocol == protocol && row.loss_ratio.unwrap_or(0.0) == 0.0 && row.throughput_bps >= 1.0
        };
        let most = self.rows.iter().filter(is_whole);
        let most = most.max_by(|a, b| a.throughput_bps.total_cmp(&b.throughput_bps))?;
        Some(Ceiling {
            rate: Rate::from_bps(most.throughput_bps as u64),
            cpu_per_gbit: most.sender_cpu.map(|cpu| cpu * 1e9 / most.throughput_bps),
        })
    }

    /// Returns whether a protocol that can lose was measured only up to the largest load of the plan, and lost nothing there: its ceiling may be
    /// higher.
    pub fn may_carry_more(&self, protocol: &str) -> bool {
        let own = || self.rows.iter().filter(|row| row.protocol == protocol);
        let Some(most) = own().filter_map(|row| row.load_bps).max() else { return false };
        let is_carried = |row: &BaselineRow| row.load_bps == Some(most) && row.loss_ratio == Some(0.0);
        own().all(|row| row.load_bps.is_some())
            && own().any(is_carried)
            && most as f64 >= self.plan.max_rate_bps as f64 * NEAR
    }

    /// Returns whether both ends were in one process, on the loopback or in two namespaces: no hardware has limited the rates.
    pub fn is_of_one_host(&self) -> bool {
        ["loopback", "namespaces"].contains(&self.path.receiver.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PlanDocument;

    #[test]
    fn a_ceiling_is_the_highest_rate_without_a_loss() {
        let row = |protocol: &str, mbps: f64, loss_ratio, sender_cpu| BaselineRow {
            protocol: protocol.to_owned(),
            throughput_bps: mbps * 1e6,
            loss_ratio,
            sender_cpu,
            ..BaselineRow::default()
        };
        let rows = vec![
            row("udp", 100.0, Some(0.0), Some(0.1)),
            row("udp", 400.0, Some(0.0), Some(0.2)),
            row("udp", 900.0, Some(0.01), Some(0.9)),
            row("tcp", 800.0, None, None),
            row("direct", 500.0, Some(0.5), None),
        ];
        let table = BaselineDocument { rows, ..BaselineDocument::default() };
        let ceiling = table.ceiling("udp").unwrap();
        assert_eq!((ceiling.rate, ceiling.cpu_per_gbit), (Rate::from_bps(400_000_000), Some(0.5)));
        assert_eq!(
            table.ceiling("tcp"),
            Some(Ceiling { rate: Rate::from_bps(800_000_000), cpu_per_gbit: None })
        );
        assert_eq!(table.ceiling("direct"), None);
    }

    #[test]
    fn a_ceiling_at_the_largest_load_of_the_plan_may_be_higher() {
        let row = |load_bps, loss_ratio| BaselineRow {
            protocol: "udp".to_owned(),
            load_bps,
            loss_ratio: Some(loss_ratio),
            ..BaselineRow::default()
        };
        let may = |max_rate_bps, rows: &[BaselineRow]| {
            let plan = PlanDocument { max_rate_bps, ..PlanDocument::default() };
            BaselineDocument { plan, rows: rows.to_vec(), ..BaselineDocument::default() }
                .may_carry_more("udp")
        };
        let (slow, fast) = (row(Some(10_000_000), 0.01), row(Some(96_000_000), 0.0));
        assert!(may(100_000_000, &[slow.clone(), fast.clone()]));
        assert!(!may(1_000_000_000, &[slow.clone(), fast.clone()]), "the host chose the loads");
        assert!(!may(100_000_000, &[slow, row(Some(96_000_000), 0.01)]), "it lost there");
        assert!(!may(100_000_000, &[fast, row(None, 0.0)]), "it was measured without a limit");
        assert!(!may(100_000_000, &[]));
    }
}
