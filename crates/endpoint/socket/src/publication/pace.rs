//! Times at which the row of a connection is made.
//!
//! A row costs as much as a message, so a connection with few messages has few rows. The thread that publishes looks at each
//! connection once a second, which costs little, and makes a row
//!
//! - of the first look;
//! - if a state, a specification, the number of violations or of lost messages has changed, and while a violation is under way;
//! - after [`ROW_MESSAGES`] messages, and again when messages have stopped after that;
//! - after [`OLDEST_ROW`] if there was a message since, or shortly before it, and after [`OLDEST_IDLE_ROW`] in any case.

use cutline_signal::session::{Activity, Participation};
use cutline_units::{Duration, Instant};

/// Messages, sent and received, after which a row is made: so many cost more than a hundred times as much as a row.
const ROW_MESSAGES: u64 = 200;
/// The oldest row of a connection that has messages, plus the time between two looks.
const OLDEST_ROW: Duration = Duration::from_secs(9);
/// The oldest row of a connection without any, plus the time between two looks.
const OLDEST_IDLE_ROW: Duration = Duration::from_secs(59);
/// Looks without a message until the last interval with messages is over: intervals are shorter than the time between two looks.
const QUIET_LOOKS: u32 = 2;

/// State of a connection that is seen without making a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionGlance {
    /// Counters of the session.
    pub activity: Activity,
    /// Participation of the peer.
    pub participation: Participation,
    /// True while the connection is being made again.
    pub is_reconnecting: bool,
    /// Number of events of the connection that a row shows.
    pub changes: u64,
    /// State of the reservation in a word, and its rate, bit/s.
    pub reservation: (&'static str, Option<u64>),
}

impl ConnectionGlance {
    /// Returns whether anything else than the number of messages has changed.
    fn has_news(&self, before: &Self) -> bool {
        let activity = Activity { messages: self.activity.messages, ..before.activity };
        *self != Self { activity, ..*before }
    }
}

/// Times of the rows of a connection.
#[derive(Debug, Default)]
pub struct RowPace {
    last: Option<LastRow>,
    /// Messages at the last look.
    messages: u64,
    /// Looks since the last message.
    quiet: u32,
}

/// The last row that was made.
#[derive(Clone, Copy, Debug)]
struct LastRow {
    at: Instant,
    glance: ConnectionGlance,
    /// True if it was made after [`ROW_MESSAGES`].
    is_busy: bool,
    /// True if it shows an interval without messages.
    is_quiet: bool,
}

impl RowPace {
    /// Returns whether a row has to be made now, which is noted as made then.
    pub fn is_due(&mut self, now: Instant, glance: ConnectionGlance) -> bool {
        let messages = glance.activity.messages;
        self.quiet = if messages == self.messages { self.quiet.saturating_add(1) } else { 0 };
        self.messages = messages;
        let since = |last: LastRow| messages.abs_diff(last.glance.activity.messages);
        let is_busy = self.last.is_some_and(|last| since(last) >= ROW_MESSAGES);
        let is_due = self.last.is_none_or(|last| {
            let age = now.saturating_since(last.at);
            let oldest = if since(last) > 0 || !last.is_quiet { OLDEST_ROW } else { OLDEST_IDLE_ROW };
            is_busy
                || glance.has_news(&last.glance)
                || glance.activity.is_violated
                || last.is_busy && self.quiet == QUIET_LOOKS
                || age >= oldest
        });
        if is_due {
            self.last = Some(LastRow { at: now, glance, is_busy, is_quiet: self.quiet >= QUIET_LOOKS });
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: ConnectionGlance = ConnectionGlance {
        activity: Activity { messages: 0, lost: 0, violations: 0, is_violated: false },
        participation: Participation::Joined(7),
        is_reconnecting: false,
        changes: 0,
        reservation: ("none", None),
    };

    fn glance(messages: u64) -> ConnectionGlance {
        ConnectionGlance { activity: Activity { messages, ..IDLE.activity }, ..IDLE }
    }

    /// Returns the seconds in which rows are made, if this is seen in each second.
    fn rows(seconds: u64, seen: impl Fn(u64) -> ConnectionGlance) -> Vec<u64> {
        let mut pace = RowPace::default();
        let at = |second| Instant::ZERO + Duration::from_secs(second);
        (0..seconds).filter(|second| pace.is_due(at(*second), seen(*second))).collect()
    }

    #[test]
    fn rows_are_made_by_messages_and_are_never_older_than_is_stated() {
        assert_eq!(rows(4, |second| glance(ROW_MESSAGES * second)), [0, 1, 2, 3]);
        assert_eq!(rows(9, |second| glance(ROW_MESSAGES / 2 * second)), [0, 2, 4, 6, 8]);
        assert_eq!(rows(30, glance), [0, 9, 18, 27]);
        assert_eq!(rows(150, |_| IDLE), [0, 9, 68, 127]);
        // A message that comes when the row is old, and the silence after it.
        assert_eq!(rows(100, |second| glance(u64::from(second >= 40))), [0, 9, 40, 49]);
    }

    #[test]
    fn a_row_shows_that_messages_have_stopped() {
        let sent = |second: u64| glance(ROW_MESSAGES * second.min(5));
        assert_eq!(rows(20, sent), [0, 1, 2, 3, 4, 5, 7]);
        // A message now and then has no row of its own.
        assert_eq!(rows(28, |second| glance(second / 4)), [0, 9, 18, 27]);
    }

    #[test]
    fn changes_have_a_row_in_the_same_second() {
        type Change = fn(&mut ConnectionGlance);
        let changes: [Change; 6] = [
            |it| it.activity.lost = 1,
            |it| it.activity.violations = 1,
            |it| it.participation = Participation::Alone,
            |it| it.is_reconnecting = true,
            |it| it.changes = 1,
            |it| it.reservation = ("reserved", Some(1_000_000)),
        ];
        for change in changes {
            let seen = |second: u64| {
                let mut seen = IDLE;
                if second >= 5 {
                    change(&mut seen);
                }
                seen
            };
            assert_eq!(rows(20, seen), [0, 5]);
        }
        let violated = |second: u64| {
            let mut seen = IDLE;
            seen.activity.is_violated = (5..8).contains(&second);
            seen
        };
        assert_eq!(rows(20, violated), [0, 5, 6, 7, 8]);
    }
}
