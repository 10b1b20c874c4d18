//! Checks whether the timing of a run is valid, for the run's results.
//!
//! The links follow a schedule, so a late wake-up changes no verdict. But a packet that leaves late reaches its host late,
//! and a laboratory that lacks processor time measures itself. Three quantities are checked: how late packets left (the
//! departure error), how busy the machine was, and whether packets arrived faster than they were read.

use cutline_results::TimingRow;
use cutline_sys::now;
use cutline_units::{Duration, Histogram, Instant};
use std::num::NonZeroUsize;

/// The timing measures of a run.
#[derive(Clone, Debug, Default)]
pub struct TimingMeasures {
    /// Departure errors: the delays with which packets were sent to their hosts.
    pub departure: Histogram,
    /// Times between the arrivals of packets and their reading.
    pub reading: Histogram,
    /// Packets received.
    pub frames: u64,
    /// Packets that belong to no flow of the scenario.
    pub strangers: u64,
    /// Packets that arrived faster than they were read.
    pub missed: u64,
    /// Packets that an interface did not accept.
    pub unsent: u64,
    /// CPU time of the links' thread.
    pub cpu: Duration,
    /// Delays with which the applications wrote.
    pub sources: Histogram,
}

/// The bounds of valid timing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The largest allowed 99th percentile of the departure error.
    pub departure: Duration,
    /// The largest allowed share of busy cores, 0..=1.
    pub busy: f64,
}

impl Default for Bounds {
    /// 1 ms, which is less than a packet of 1000 B takes at 5 Mbit/s; and 95 % of the machine.
    fn default() -> Self {
        Self { departure: Duration::from_millis(1), busy: 0.95 }
    }
}

impl TimingMeasures {
    /// The run's row of the table of timings.
    pub fn row(
        &self,
        bounds: &Bounds,
        duration: Duration,
        machine: Option<Machine>,
        failed_flows: u64,
    ) -> TimingRow {
        let ms = |time: Option<Duration>| time.map(Duration::as_millis_f64);
        let problem = self.problem(bounds, machine, failed_flows);
        TimingRow {
            timing_ok: problem.is_empty(),
            problem: problem.into(),
            departure_error_p50_ms: ms(self.departure.quantile(0.5)),
            departure_error_p99_ms: ms(self.departure.quantile(0.99)),
            departure_error_max_ms: ms(self.departure.max()),
            departure_bound_ms: bounds.departure.as_millis_f64(),
            reading_delay_p99_ms: ms(self.reading.quantile(0.99)),
            source_lateness_p99_ms: ms(self.sources.quantile(0.99)),
            network_cpu: self.cpu.as_secs_f64() / duration.as_secs_f64(),
            machine_busy: machine.map(|of| of.busy),
            machine_stolen: machine.map(|of| of.stolen),
            frames: self.frames,
            missed: self.missed + self.unsent,
            failed_flows,
            ..TimingRow::default()
        }
    }

    /// The problems with the timing; empty if it is valid.
    fn problem(&self, bounds: &Bounds, machine: Option<Machine>, failed_flows: u64) -> String {
        let mut problems = Vec::new();
        if let Some(late) = self.departure.quantile(0.99).filter(|late| *late > bounds.departure) {
            problems
                .push(format!("1 % of the packets left more than {late} late (bound {})", bounds.departure));
        }
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        if let Some(machine) = machine.filter(|of| of.busy > bounds.busy) {
            let (busy, bound) = (percent(machine.busy), percent(bounds.busy));
            problems.push(format!("the machine was {busy} busy (bound {bound})"));
        }
        if self.missed + self.unsent > 0 {
            problems.push(format!("{} packets were lost outside the queues", self.missed + self.unsent));
        }
        if failed_flows > 0 {
            problems.push(format!("{failed_flows} flows ended with an error"));
        }
        // Stolen time is not a problem in itself, but often the cause of one.
        if let Some(machine) = machine.filter(|of| !problems.is_empty() && of.stolen >= MIN_REPORTED_STOLEN) {
            let stolen = percent(machine.stolen);
            problems.push(format!("this virtual machine's host gave {stolen} of the cores' time to others"));
        }
        problems.join("; ")
    }
}

/// A smaller share of stolen time is not reported as a possible cause.
const MIN_REPORTED_STOLEN: f64 = 0.01;

/// The use of all cores together over some time, as shares of this time, 0..=1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// The share of time in which the cores were busy with any process, or not available.
    pub busy: f64,
    /// The share of time in which the host of a virtual machine ran other machines instead.
    pub stolen: f64,
}

/// The accumulated busy time of all cores at some time.
///
/// The kernel's idle time is not used, because it is not updated for cores that sleep for long.
#[derive(Clone, Copy, Debug)]
pub struct Busy {
    /// Busy time in ticks of a hundredth of a second (`USER_HZ`), including stolen time.
    ticks: u64,
    /// Stolen time in ticks.
    stolen: u64,
    /// The time of the reading.
    at: Instant,
}

/// The number of ticks per second.
const TICKS: f64 = 100.0;

impl Busy {
    /// Reads the busy time now; `None` if `/proc/stat` cannot be read.
    pub fn now() -> Option<Self> {
        Self::from_text(&std::fs::read_to_string("/proc/stat").ok()?, now())
    }

    /// Parses the text of `/proc/stat` (`proc_stat(5)`).
    fn from_text(text: &str, at: Instant) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; user includes the time of guests.
        let [user, nice, system, _, _, irq, softirq, stolen] = *ticks.first_chunk()?;
        Some(Self { ticks: user + nice + system + irq + softirq + stolen, stolen, at })
    }

    /// The use of the cores since an earlier reading; `None` if no time has passed.
    pub fn since(self, before: Self, cores: NonZeroUsize) -> Option<Machine> {
        let seconds = self.at.saturating_since(before.at).as_secs_f64();
        let share = |now: u64, before: u64| {
            (now.saturating_sub(before) as f64 / (TICKS * seconds * cores.get() as f64)).min(1.0)
        };
        (seconds > 0.0).then(|| Machine {
            busy: share(self.ticks, before.ticks),
            stolen: share(self.stolen, before.stolen),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(late: Duration) -> TimingMeasures {
        let mut timing = TimingMeasures { frames: 100, ..TimingMeasures::default() };
        (0..100).for_each(|_| timing.departure.record(late));
        timing
    }

    const QUIET: Machine = Machine { busy: 0.4, stolen: 0.01 };

    #[test]
    fn a_run_with_valid_timing_has_no_problem() {
        let row = timing(Duration::from_micros(80)).row(
            &Bounds::default(),
            Duration::from_secs(10),
            Some(QUIET),
            0,
        );
        assert_eq!((row.timing_ok, &*row.problem), (true, ""));
        assert!(row.departure_error_p99_ms.unwrap() < 0.1);
    }

    #[test]
    fn each_problem_is_named_with_its_bound() {
        let seconds = Duration::from_secs(10);
        let problem = |timing: &TimingMeasures, machine, failed| {
            let row = timing.row(&Bounds::default(), seconds, machine, failed);
            assert!(!row.timing_ok);
            row.problem.to_string()
        };
        let late = problem(&timing(Duration::from_millis(3)), None, 0);
        assert!(late.contains("late (bound 1ms)") || late.contains("late (bound 1 ms)"), "{late}");
        let fine = timing(Duration::ZERO);
        assert_eq!(
            problem(&fine, Some(Machine { busy: 0.99, stolen: 0.0 }), 0),
            "the machine was 99 % busy (bound 95 %)"
        );
        let stolen = problem(&timing(Duration::from_millis(3)), Some(Machine { busy: 0.6, stolen: 0.37 }), 0);
        assert!(
            stolen.ends_with("; this virtual machine's host gave 37 % of the cores' time to others"),
            "{stolen}"
        );
        assert_eq!(
            problem(&TimingMeasures { missed: 2, ..fine.clone() }, None, 0),
            "2 packets were lost outside the queues"
        );
        assert_eq!(problem(&fine, None, 3), "3 flows ended with an error");
    }

    #[test]
    fn the_share_of_busy_time_is_the_difference_of_two_readings() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let cores = NonZeroUsize::new(2).unwrap();
        let before = Busy::from_text("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1", at(1)).unwrap();
        let after = Busy::from_text("cpu  160 5 60 820 60 2 1 2 0 0\n", at(2)).unwrap();
        assert_eq!(after.since(before, cores), Some(QUIET));
        assert_eq!(before.since(before, cores), None);
        assert!(Busy::from_text("intr 5", at(1)).is_none());
    }
}
