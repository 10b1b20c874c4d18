//! A progress bar on stderr. It is shown only on a terminal.

use crate::message;
use cutline_scenario::runner::{Job, JobProgress, RunEvent};
use cutline_text::Printable;
use cutline_units::Duration;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

const JOBS: &str = "{prefix}{bar:30} {pos}/{len} {msg}  {elapsed} elapsed, {eta} to go";
const COUNTDOWN: &str = "{bar:30} {pos}/{len} {msg}";
const SIMULATED: &str = "{bar:30} {msg}  {speed} simulated seconds a second, {elapsed} elapsed, {eta} to go";

/// The progress of jobs. The bar is drawn only if stderr is a terminal.
pub struct Bar {
    bar: ProgressBar,
    counts: Counts,
}

/// The time left of a series of measurements. The bar is drawn only if stderr is a terminal.
pub struct Countdown(ProgressBar);

impl Countdown {
    /// Returns a bar.
    pub fn new() -> Self {
        let style = ProgressStyle::with_template(COUNTDOWN).expect("the template's keys are indicatif's");
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr()).with_style(style);
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        Self(bar)
    }

    /// Shows the number of measurements, the time that they still take, and the present one.
    pub fn update(&self, done: usize, all: usize, left: Duration, now: &str) {
        self.0.set_length(all as u64);
        self.0.set_position(done as u64);
        let seconds = left.as_nanos().div_ceil(1_000_000_000);
        self.0.set_message(format!(
            "about {} min {:02} s to go; {}",
            seconds / 60,
            seconds % 60,
            Printable(now)
        ));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// Unit of the bar's position.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// Finished jobs.
    Jobs,
    /// Simulated milliseconds of all jobs.
    Simulated,
}

impl Bar {
    /// Returns a bar for `total` jobs; a hidden one if `quiet`.
    pub fn new(total: usize, quiet: bool) -> Self {
        Self::drawn(Counts::Jobs, total as u64, quiet)
    }

    /// Returns a bar for the simulated time of jobs; a hidden one if `quiet`.
    pub fn of_simulated_time(jobs: &[Job<'_>], quiet: bool) -> Self {
        let total = jobs.iter().map(|job| millis(job.scenario.duration)).sum();
        Self::drawn(Counts::Simulated, total, quiet)
    }

    fn drawn(counts: Counts, total: u64, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let template = if counts == Counts::Jobs { JOBS } else { SIMULATED };
        let speed = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            // Writing into the bar's line does not fail.
            let _ = write!(text, "{:.0}", state.per_sec() / 1e3);
        };
        let style = ProgressStyle::with_template(template)
            .expect("the template's keys are indicatif's and ours")
            .with_key("speed", speed);
        let bar = ProgressBar::with_draw_target(Some(total), target).with_style(style);
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        Self { bar, counts }
    }

    /// Counts simulated time. May be called from any thread.
    pub fn simulated(&self, passed: Duration) {
        self.bar.inc(millis(passed));
    }

    /// Restarts the bar for another set of jobs with this name.
    pub fn stage(&self, name: &str, total: u64) {
        self.bar.reset();
        self.bar.set_length(total);
        self.bar.set_prefix(format!("{} ", Printable(name)));
    }

    /// Shows the progress of a run. May be called from any thread.
    pub fn update(&self, news: &JobProgress<'_>) {
        let key = news.key;
        let say = |text: String| self.bar.suspend(|| message::print(&text));
        match news.event {
            RunEvent::Failed(reason) => {
                say(format!("{} with seed {} failed: {reason}", Printable(&key.point), key.seed));
            }
            RunEvent::Damaged(what) => say(format!("{what}; re-running the damaged runs")),
            RunEvent::Started | RunEvent::Skipped | RunEvent::Finished | RunEvent::Cancelled => {}
        }
        let point = Printable(&key.point);
        match self.counts {
            Counts::Jobs => {
                self.bar.set_length(news.total as u64);
                self.bar.set_position(news.done as u64);
                self.bar.set_message(point.to_string());
            }
            Counts::Simulated => self.bar.set_message(format!("{}/{} {point}", news.done, news.total)),
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

const fn millis(time: Duration) -> u64 {
    time.as_nanos() / 1_000_000
}
