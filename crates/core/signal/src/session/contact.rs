//! Liveness of the peer.

use super::event::Cause;
use cutline_units::{Duration, Instant};

/// Number of intervals without a sign of life that count as a loss: twice as many as count as silence.
const MISSED: u64 = 6;
/// The shortest silence that is a loss, however often the ends report.
const LEAST: Duration = Duration::from_secs(1);
/// The same before the first report, which gives the peer's report interval.
const FIRST: Duration = Duration::from_secs(10);

/// Liveness of the peer.
#[derive(Clone, Debug)]
pub(super) struct Contact {
    /// Time of the last sign of life that was no message.
    heard: Instant,
    /// Interval between the peer's latest reports; `None` before the first.
    interval: Option<Duration>,
    /// Time and reason of the loss.
    lost: Option<(Instant, Cause)>,
}

impl Contact {
    pub(super) const fn new(now: Instant) -> Self {
        Self { heard: now, interval: None, lost: None }
    }

    /// A report has arrived, which is about so much time.
    pub(super) fn on_report(&mut self, now: Instant, interval: Duration) {
        self.hear(now);
        self.interval = Some(interval);
    }

    /// A sign of life has come.
    pub(super) fn hear(&mut self, now: Instant) {
        self.heard = self.heard.max(now);
    }

    /// Returns the length of the silence, messages included, of which the last one arrived at `message`.
    pub(super) fn silence(&self, now: Instant, message: Instant) -> Duration {
        now.saturating_since(self.heard.max(message))
    }

    /// Returns the length of a silence that counts as a loss. `ours` is the length of this end's intervals.
    pub(super) fn limit(&self, ours: Duration) -> Duration {
        let Some(theirs) = self.interval else { return FIRST.max(ours * MISSED) };
        LEAST.max(ours.max(theirs) * MISSED)
    }

    /// Returns the reason of the loss; `None` without one.
    pub(super) fn lost(&self) -> Option<&Cause> {
        self.lost.as_ref().map(|(_, cause)| cause)
    }

    /// Marks the peer as lost since then. Returns whether that is new.
    pub(super) fn lose(&mut self, since: Instant, cause: Cause) -> bool {
        let is_new = self.lost.is_none();
        self.lost.get_or_insert((since, cause));
        is_new
    }

    /// Marks the peer as found. Returns the time for which it was lost; `None` if it was not, or is broken.
    pub(super) fn find(&mut self, now: Instant) -> Option<Duration> {
        if let Some(Cause::Failed(_)) = self.lost() {
            return None;
        }
        self.lost.take().map(|(since, _)| now.saturating_since(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_reports_seldom_is_given_more_time() {
        let (ms, at) = (Duration::from_millis, |time| Instant::ZERO + Duration::from_millis(time));
        let mut contact = Contact::new(at(0));
        assert_eq!(
            [ms(10), ms(500), ms(60_000)].map(|ours| contact.limit(ours)),
            [FIRST, FIRST, ms(360_000)]
        );
        contact.on_report(at(500), ms(500));
        assert_eq!(
            [ms(10), ms(500), ms(1000)].map(|ours| contact.limit(ours)),
            [ms(3000), ms(3000), ms(6000)]
        );
        contact.on_report(at(510), ms(10));
        assert_eq!([ms(10), ms(500)].map(|ours| contact.limit(ours)), [LEAST, ms(3000)]);
        assert_eq!(contact.silence(at(700), at(600)), ms(100), "a message is a sign of life, too");
        assert_eq!(contact.silence(at(700), at(100)), ms(190));
        let why = Cause::Silence(ms(190));
        assert!(contact.lose(at(510), why.clone()) && !contact.lose(at(700), Cause::Failed(String::new())));
        assert_eq!(contact.lost(), Some(&why));
        assert_eq!((contact.find(at(900)), contact.find(at(900))), (Some(ms(390)), None));
    }
}
