//! A progress bar on stderr, for a terminal only.

use cutline_scenario::runner::{Event, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const TEMPLATE: &str = "{prefix}{bar:30} {pos}/{len} {msg}  {elapsed} elapsed, {eta} to go";

/// How many of a number of jobs are through. It is drawn only where stderr is a terminal.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar over `total` jobs; `quiet` shows none.
    pub fn new(total: usize, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template(TEMPLATE).expect("the template's keys are indicatif's");
        let bar = ProgressBar::with_draw_target(Some(total as u64), target).with_style(style);
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        Self { bar }
    }

    /// Begins anew with another set of jobs, called `name`.
    pub fn stage(&self, name: &str, total: u64) {
        self.bar.reset();
        self.bar.set_length(total);
        self.bar.set_prefix(format!("{name} "));
    }

    /// Takes news of a run: call it from any thread.
    pub fn update(&self, news: &Progress<'_>) {
        let key = news.key;
        let say = |text: String| self.bar.suspend(|| anstream::eprintln!("{text}"));
        match news.event {
            Event::Failed(reason) => say(format!("{} with seed {} failed: {reason}", key.point, key.seed)),
            Event::Damaged(what) => say(format!("{what}; what is damaged is made again")),
            Event::Started | Event::Skipped | Event::Finished | Event::Cancelled => {}
        }
        self.bar.set_length(news.total as u64);
        self.bar.set_position(news.done as u64);
        self.bar.set_message(news.key.point.to_string());
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
