//! Record of a QoS connection, for the caller of the simulation.

use crate::measure::Window;
use cutline_quality::{Class, Combination};
use cutline_signal::mib::Mib;
use cutline_signal::session::SessionEvent;
use cutline_units::{Duration, Instant, Rate, lock};
use std::sync::{Arc, Mutex, MutexGuard};

/// The log of a connection. It is that of the simulation of its network that was set up last; simulations of one network at the
/// same time would mix theirs.
#[derive(Clone, Debug, Default)]
pub struct QosLog(Arc<Mutex<QosRecord>>);

/// Record of a connection. All times but those inside of events and MIBs are the simulation's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QosRecord {
    /// All messages that the application has made, in their order.
    pub messages: Vec<Passage>,
    /// Record of the sending end.
    pub source: EndRecord,
    /// Record of the receiving end.
    pub sink: EndRecord,
}

/// The times and the length of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Time at which the application made the message.
    pub made: Instant,
    /// Time at which the message was sent: later if it had to wait for its turn.
    pub sent: Instant,
    /// Time of arrival; `None` if the message is lost or under way.
    pub arrived: Option<Instant>,
    /// Its length, bytes.
    pub bytes: u32,
}

/// Record of an end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndRecord {
    /// The session's events, with their times.
    pub events: Vec<(Instant, SessionEvent)>,
    /// The MIB every so often.
    pub mibs: Vec<Mib>,
}

/// Messages sent and arrived in a part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Passed {
    /// Messages made.
    pub made: u64,
    /// Messages of them that have never arrived.
    pub lost: u64,
    /// Messages that have arrived, whenever they were made.
    pub arrived: u64,
    /// Their bytes, per second.
    pub throughput: Rate,
    /// Their mean delay, from the application to the peer; `None` if none has arrived.
    pub delay: Option<Duration>,
    /// The longest of their delays.
    pub longest: Duration,
}

impl QosLog {
    /// Returns the record so far.
    pub fn record(&self) -> QosRecord {
        self.lock().clone()
    }

    /// Takes the record so far, and leaves an empty one.
    pub fn take(&self) -> QosRecord {
        std::mem::take(&mut self.lock())
    }

    pub(super) fn clear(&self) {
        *self.lock() = QosRecord::default();
    }

    /// Locks the record. A thread that has panicked has left it whole.
    pub(super) fn lock(&self) -> MutexGuard<'_, QosRecord> {
        lock(&self.0)
    }
}

impl Passage {
    /// The time from the application to the peer; `None` if the message has not arrived.
    pub fn delay(&self) -> Option<Duration> {
        self.arrived.map(|arrived| arrived.saturating_since(self.made))
    }
}

impl QosRecord {
    /// Returns the sent and the received traffic in a part of the run.
    pub fn passed(&self, window: Window) -> Passed {
        let mut passed = Passed::default();
        let (mut bytes, mut delays) = (0, Duration::ZERO);
        for message in &self.messages {
            let was_made = window.contains(message.made);
            passed.made += u64::from(was_made);
            passed.lost += u64::from(was_made && message.arrived.is_none());
            let arrived = message.arrived.filter(|arrived| window.contains(*arrived));
            if let (Some(_), Some(delay)) = (arrived, message.delay()) {
                passed.arrived += 1;
                bytes += u64::from(message.bytes);
                delays += delay;
                passed.longest = passed.longest.max(delay);
            }
        }
        passed.delay = (passed.arrived > 0).then(|| Duration::from_nanos(delays.as_nanos() / passed.arrived));
        let seconds = window.length().as_secs_f64();
        passed.throughput =
            Rate::from_bps(if seconds > 0.0 { (bytes as f64 * 8.0 / seconds) as u64 } else { 0 });
        passed
    }
}

impl Passed {
    /// The share of the messages made that are lost; 0 if none was made.
    pub fn loss(&self) -> f64 {
        self.lost as f64 / self.made.max(1) as f64
    }

    /// Returns the quality of delay and throughput for a class of application (TSQ eq. 1); 0 if nothing has
    /// arrived. 1); 0 if nothing has arrived.
    pub fn quality(&self, class: Class) -> f64 {
        self.delay.map_or(0.0, |delay| class.quality(delay, self.throughput, Combination::Min).get())
    }
}
