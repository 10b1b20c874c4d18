//! A progress bar on stderr. It is shown only on a terminal.

use crate::message;
use cutline_scenario::runner::{Event, Progress};
use cutline_text::Printable;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const TEMPLATE: &str = "{prefix}{bar:30} {pos}/{len} {msg}  {elapsed} elapsed, {eta} to go";

/// The number of finished jobs of a total. The bar is drawn only if stderr is a terminal.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// Returns a bar for `total` jobs; a hidden one if `quiet`.
    pub fn new(total: usize, quiet: bool) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template(TEMPLATE).expect("the template's keys are indicatif's");
        let bar = ProgressBar::with_draw_target(Some(total as u64), target).with_style(style);
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        Self { bar }
    }

    /// Restarts the bar for another set of jobs with this name.
    pub fn stage(&self, name: &str, total: u64) {
        self.bar.reset();
        self.bar.set_length(total);
        self.bar.set_prefix(format!("{} ", Printable(name)));
    }

    /// Shows the progress of a run. May be called from any thread.
    pub fn update(&self, news: &Progress<'_>) {
        let key = news.key;
        let say = |text: String| self.bar.suspend(|| message::print(&text));
        match news.event {
            Event::Failed(reason) => {
                say(format!("{} with seed {} failed: {reason}", Printable(&key.point), key.seed));
            }
            Event::Damaged(what) => say(format!("{what}; what is damaged is made again")),
            Event::Started | Event::Skipped | Event::Finished | Event::Cancelled => {}
        }
        self.bar.set_length(news.total as u64);
        self.bar.set_position(news.done as u64);
        self.bar.set_message(Printable(&news.key.point).to_string());
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
