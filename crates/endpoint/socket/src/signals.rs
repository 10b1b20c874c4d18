//! Signals in calls that wait.
//!
//! A call that waits continues waiting when a signal handler has run, as calls of the standard library do. A language with handlers of its
//! own, which run between its calls, needs it to return: [`Interruptible`].

use cutline_manager::resources::FlowId;
use cutline_manager::scheduling::MessageTicket;
use cutline_sys::reactor::{PollFd, wait_once};
use cutline_sys::{lock, now};
use cutline_units::{Duration, Instant};
use std::cell::Cell;
use std::io;
use std::sync::Mutex;

/// The longest time from the first wait of a call that looks for signals until it returns.
const LOOK: Duration = Duration::from_millis(50);

/// The longest wait for a note of another thread.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// A call that returns [`io::ErrorKind::Interrupted`] when a signal handler has run, or may have run, while it has waited. It has then done
/// nothing. A call that writes to a stream returns the number of bytes instead if a part of them has been written.
///
/// ```
/// use cutline_socket::{Interruptible, QosOptions, QosUdpListener};
/// use std::io::ErrorKind;
///
/// # fn handle_signals() -> std::io::Result<()> { Err(ErrorKind::Interrupted.into()) }
/// let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::default())?;
/// let call = Interruptible::new();
/// let outcome = loop {
///     match call.run(|| listener.accept()) {
///         // The time that the call may take continues when it is repeated.
///         Err(error) if error.kind() == ErrorKind::Interrupted => match handle_signals() {
///             Ok(()) => {}
///             Err(error) => break Err(error),
///         },
///         outcome => break outcome.map(drop),
///     }
/// };
/// assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Interrupted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Interruptible {
    looks: bool,
    kept: Mutex<Kept>,
}

/// Place of a message that a call has taken back from [`crate::gate`] when it was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatePlace {
    pub flow: FlowId,
    pub ticket: MessageTicket,
}

/// The end of a call; `None` if it has none.
#[derive(Clone, Copy, Debug)]
struct End(Option<Instant>);

/// State of a call that its repetitions after an interruption continue with.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// The [`CountedWait`]s of the call so far.
    counted: u8,
    /// The end of the call, once its first try has set one.
    until: Option<End>,
    /// Time at which the call began to send its message, once it has.
    begun: Option<Instant>,
    /// Place of its message among those of other sockets, if it was interrupted there.
    place: Option<GatePlace>,
}

/// The call that a thread makes.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// True if the call also returns now and then without a signal: one that came before the wait began is
    /// not missed.
    looks: bool,
    /// Time at which a call that looks returns, once it has waited.
    look_at: Option<Instant>,
    kept: Kept,
}

/// A wait that feedback counts once in a call, however often the call is interrupted and repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CountedWait {
    /// For the agreed rate.
    Pacing = 1,
    /// For room in the send queue.
    Room = 2,
}

thread_local! {
    // Without a destructor, so that calls are possible as long as the process lives.
    static CALL: Cell<Option<Call>> = const { Cell::new(None) };
}

impl Default for Interruptible {
    fn default() -> Self {
        Self::new()
    }
}

impl Interruptible {
    /// A call that is repeated until it is done, or a handler ends it.
    pub const fn new() -> Self {
        Self { looks: true, kept: Mutex::new(Kept::NOTHING) }
    }

    /// A call that is not repeated: it returns for a signal alone.
    pub const fn once() -> Self {
        Self { looks: false, kept: Mutex::new(Kept::NOTHING) }
    }

    /// Makes the call, for the first time or again.
    pub fn run<T>(&self, act: impl FnOnce() -> T) -> T {
        struct Before(Option<Call>);
        impl Drop for Before {
            fn drop(&mut self) {
                CALL.set(self.0);
            }
        }
        let kept = *lock(&self.kept);
        let call = Call { looks: self.looks, look_at: None, kept };
        let _before = Before(CALL.replace(Some(call)));
        let outcome = act();
        if let Some(Call { kept, .. }) = CALL.get() {
            *lock(&self.kept) = kept;
        }
        outcome
    }
}

impl Kept {
    const NOTHING: Self = Self { counted: 0, until: None, begun: None, place: None };
}

/// Changes the kept state of the current call, and returns the result; `None` if the current call does not return for signals.
fn with_kept<T>(act: impl FnOnce(&mut Kept) -> T) -> Option<T> {
    let mut call = CALL.get()?;
    let result = act(&mut call.kept);
    CALL.set(Some(call));
    Some(result)
}

/// The end of the call that is being made, which is `until` if it begins now.
pub fn keep_until(until: Option<Instant>) -> Option<Instant> {
    with_kept(|kept| kept.until.get_or_insert(End(until)).0).unwrap_or(until)
}

/// The time at which the call that is being made began to send its message, which is `now` if it begins now.
pub fn keep_begin(now: Instant) -> Instant {
    with_kept(|kept| *kept.begun.get_or_insert(now)).unwrap_or(now)
}

/// The message of the current call has been sent: the next one of the call begins later.
pub fn end_message() {
    with_kept(|kept| (kept.begun, kept.place) = (None, None));
}

/// Takes the place that the message of the current call had when the call was interrupted.
pub fn take_place() -> Option<GatePlace> {
    with_kept(|kept| kept.place.take()).flatten()
}

/// Keeps the place of the message of the current call, which is being interrupted.
pub fn keep_place(place: GatePlace) {
    with_kept(|kept| kept.place = Some(place));
}

/// Returns whether the current call also returns now and then without a signal. Such a call waits outside of the system calls that receive and
/// send: a signal that comes just before one of them would not end it.
pub fn looks() -> bool {
    CALL.get().is_some_and(|call| call.looks)
}

/// Returns whether a wait of the current call is to be counted: it has not been, before an interruption or since.
pub fn counts(wait: CountedWait) -> bool {
    let is_new = with_kept(|kept| {
        let before = kept.counted;
        kept.counted |= wait as u8;
        before & wait as u8 == 0
    });
    is_new.unwrap_or(true)
}

/// Returns whether the current call returns for signals.
pub fn may_interrupt() -> bool {
    CALL.get().is_some()
}

/// A call has been interrupted by a signal.
///
/// # Errors
/// [`io::ErrorKind::Interrupted`] when it returns for that.
pub fn on_signal() -> io::Result<()> {
    if may_interrupt() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
}

/// Returns the longest wait of a call that a signal does not end. All waits of a call that looks take 50 ms together: messages of the peer that
/// the application does not see may end each of them early.
pub fn longest_look(longest: Duration) -> Duration {
    let Some(call) = CALL.get().filter(|call| call.looks) else { return longest };
    let now = now();
    let look_at = call.look_at.unwrap_or_else(|| now.saturating_add(LOOK));
    CALL.set(Some(Call { look_at: Some(look_at), ..call }));
    longest.min(look_at.saturating_since(now))
}

/// A call has waited without success.
///
/// # Errors
/// [`io::ErrorKind::Interrupted`] when a signal may have come before it waited.
pub fn look() -> io::Result<()> {
    if looks() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
}

/// Waits until one of the descriptors is ready, at most for `timeout` and 50 ms. Returns whether one is.
///
/// # Errors
/// When the kernel cannot wait for them; [`io::ErrorKind::Interrupted`] when the call returns for signals.
pub fn wait(fds: &mut [PollFd<'_>], timeout: Duration) -> io::Result<bool> {
    wait_at_most(fds, timeout, LOOK)
}

fn wait_at_most(fds: &mut [PollFd<'_>], timeout: Duration, longest: Duration) -> io::Result<bool> {
    let longest = longest_look(longest);
    if longest.is_zero() {
        look()?;
    }
    match wait_once(fds, timeout.min(longest)) {
        Ok(true) => Ok(true),
        Ok(false) if timeout <= longest => Ok(false),
        Ok(false) => look().map(|()| false),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => on_signal().map(|()| false),
        Err(error) => Err(error),
    }
}

/// As [`wait`], for at most half a second where the call returns for signals in another way.
///
/// # Errors
/// As [`wait`].
pub fn wait_long(fds: &mut [PollFd<'_>], timeout: Duration) -> io::Result<bool> {
    wait_at_most(fds, timeout, LONGEST_WAIT)
}

/// Waits for the turn of a message.
///
/// # Errors
/// [`io::ErrorKind::Interrupted`] when the call returns for signals.
pub fn sleep(time: Duration) -> io::Result<()> {
    if !may_interrupt() {
        std::thread::sleep(std::time::Duration::from_nanos(time.as_nanos()));
        return Ok(());
    }
    let until = now().saturating_add(time);
    loop {
        let left = until.saturating_since(now());
        if left.is_zero() {
            return Ok(());
        }
        wait(&mut [], left)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_call_has_begun_once_until_its_message_is_sent() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let call = Interruptible::new();
        assert_eq!(call.run(|| keep_begin(at(5))), at(5));
        assert_eq!(call.run(|| keep_begin(at(70))), at(5));
        call.run(end_message);
        assert_eq!(call.run(|| keep_begin(at(90))), at(90), "another message");
        // Outside of such a call nothing is kept.
        assert_eq!([keep_begin(at(1)), keep_begin(at(2))], [at(1), at(2)]);
    }
}
