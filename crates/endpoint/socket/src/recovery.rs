//! Making a broken connection again, within the time that the specification gives for it
//! ([`QosOptions::reconnect`](crate::QosOptions::reconnect)).
//!
//! ```text
//! up --break_off--> broken --Link::take_down--> down: pause, attempt, longer pause, attempt ... --Link::take_up--> up
//!                                               `--------------------------- time is over ---> over
//! ```
//!
//! Nothing here waits but calls of the application: [`Recovery::serve`] takes the steps that are possible at once, and is called by the thread
//! that serves connections.

use crate::error::QosError;
use crate::options::QosOptions;
use crate::service_thread::is_service_thread;
use crate::session::{Role, begin};
use crate::signals;
use cutline_quality::spec::ConnectionSpecification;
use cutline_signal::negotiation::Carrier;
use cutline_signal::session::{Cause, Direction, Inbound, Outbound, Session, SessionEvent};
use cutline_sys::condition::{InterruptibleCondvar, WaitEnd};
use cutline_sys::lock;
use cutline_sys::now;
use cutline_units::{Duration, Instant};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The first pause between two attempts; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The longest attempt. Its first packets are sent again after a second, by the kernel or by the negotiation.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(3);
/// Interval of checks of a running attempt.
const LOOK: Duration = Duration::from_millis(5);
/// Time after which taking a connection down is tried again while a call is about to leave the kernel.
const SOON: Duration = Duration::from_millis(1);
/// The longest wait of a call at a time.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// A connection that can be made again. None of its functions waits.
///
/// They lock the socket's locks behind that of the [`Recovery`], which calls take in the other order, so they may only try.
pub trait Reconnect {
    /// An attempt to connect.
    type Attempt;

    /// Keeps received data, reports the loss to the application, and gives the socket's connection up. Returns whether it has:
    /// it does nothing while a call is in the kernel.
    fn take_down(&self, cause: &Cause) -> bool;

    /// Begins to connect again.
    fn attempt(&self, options: &QosOptions) -> Result<Self::Attempt, QosError>;

    /// Continues the attempt. Returns its result; `None` while it is under way.
    fn advance(&self, attempt: &mut Self::Attempt, options: &QosOptions) -> Option<Result<(), QosError>>;

    /// Continues with the new connection, after so long without one. Returns the attempt if a call is using the buffers:
    /// then it is taken up later.
    fn take_up(&self, attempt: Self::Attempt, after: Duration) -> Result<(), Self::Attempt>;

    /// Queues an event for the application.
    fn tell(&self, event: SessionEvent);
}

/// Recovery of a broken connection.
pub struct Recovery<A> {
    /// Time for which recovery is tried.
    within: Duration,
    /// True if calls may use the socket. It is false from the moment in which the connection is known to be
    /// broken.
    is_up: AtomicBool,
    /// True if the application has ended the connection, or a direction of it: then there is no recovery.
    is_ended: AtomicBool,
    /// Cause of a break, until the connection is taken down. Nothing is locked while this is.
    broken: Mutex<Option<Cause>>,
    state: Mutex<State<A>>,
    changed: InterruptibleCondvar,
}

struct State<A> {
    options: QosOptions,
    phase: Phase<A>,
    /// The directions whose next call has to fail because of a loss: sending, receiving.
    unreported: [bool; 2],
    /// Cause of the last loss.
    cause: Option<Cause>,
}

enum Phase<A> {
    Up,
    Down(Outage<A>),
    Over { after: Duration, cause: Cause },
}

struct Outage<A> {
    since: Instant,
    failures: u32,
    /// Cause of the last attempt's failure, or before the first one, of the loss.
    cause: Cause,
    step: Step<A>,
}

enum Step<A> {
    /// Nothing until then.
    Pause(Instant),
    /// An attempt, at most until then.
    Attempt(A, Instant),
}

/// A session that is not the connection's yet.
pub struct Candidate {
    pub session: Session,
    pub out: Outbound,
    pub inbound: Inbound,
    pub events: Vec<SessionEvent>,
}

impl Candidate {
    pub fn new(options: &QosOptions, role: &Role, carrier: Carrier) -> Result<Self, QosError> {
        let session = begin(options, role, carrier)?;
        let (out, inbound) = session.directions(now());
        Ok(Self { session, out, inbound, events: Vec::new() })
    }

    /// Runs a call on the session.
    pub fn act(&mut self, act: impl FnOnce(&mut Session, &mut Outbound, &mut Inbound)) {
        act(&mut self.session, &mut self.out, &mut self.inbound);
    }

    /// Returns the outcome of the negotiation with an end that took part before; `None` before it is known.
    pub fn outcome(&mut self) -> Option<Result<(), QosError>> {
        while let Some(event) = self.session.event() {
            match event {
                SessionEvent::Refused { send, receive } => {
                    return Some(Err(QosError::Refused { send, receive }));
                }
                SessionEvent::OneSided(reason) => return Some(Err(QosError::NoPeer(reason))),
                event => self.events.push(event),
            }
        }
        (!self.session.is_joining()).then_some(Ok(()))
    }
}

/// Permission of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The call may use the socket.
    Up,
    /// The call has to wait for the connection.
    Down,
}

impl<A> Recovery<A> {
    /// Returns the recovery of a connection with these options; `None` if they request none.
    ///
    /// # Errors
    /// When the specification gives no time.
    pub fn of(options: &QosOptions) -> Result<Option<Self>, QosError> {
        let Some(within) = options.recovery()? else { return Ok(None) };
        let state = State { options: options.clone(), phase: Phase::Up, unreported: [false; 2], cause: None };
        Ok(Some(Self {
            within,
            is_up: AtomicBool::new(true),
            is_ended: AtomicBool::new(false),
            broken: Mutex::new(None),
            state: Mutex::new(state),
            changed: InterruptibleCondvar::new(),
        }))
    }

    /// Returns whether calls may use the socket.
    pub fn is_up(&self) -> bool {
        self.is_up.load(Ordering::SeqCst)
    }

    /// Returns whether the connection is being made again.
    pub fn is_under_way(&self) -> bool {
        !self.is_up() && !matches!(self.lock().phase, Phase::Over { .. })
    }

    /// The connection is broken. Returns whether it is going to be made again. It may be called with any lock.
    pub fn break_off(&self, cause: impl FnOnce() -> Cause) -> bool {
        if self.is_ended.load(Ordering::SeqCst) {
            return false;
        }
        let mut broken = lock(&self.broken);
        if self.is_up.swap(false, Ordering::SeqCst) {
            *broken = Some(cause());
        }
        true
    }

    /// The application ends the connection.
    pub fn end(&self) {
        self.is_ended.store(true, Ordering::SeqCst);
    }

    /// A new connection is to have this specification.
    pub fn specify(&self, specification: &ConnectionSpecification) {
        self.lock().options.specification = specification.clone();
    }

    /// Runs a call while no attempt is made.
    pub fn between_attempts<T>(&self, act: impl FnOnce() -> T) -> T {
        let _state = self.lock();
        act()
    }

    fn lock(&self) -> MutexGuard<'_, State<A>> {
        lock(&self.state)
    }

    /// Returns the permission of a call of a direction.
    ///
    /// # Errors
    /// Once after each loss: data under way is incomplete. Always when the connection was given up.
    pub fn admit(&self, direction: Direction) -> io::Result<Admission> {
        let mut state = self.lock();
        if let Phase::Over { after, cause } = &state.phase {
            return Err(QosError::NotRecovered { after: *after, cause: cause.clone() }.into());
        }
        let is_broken = matches!(state.phase, Phase::Up) && !self.is_up();
        if is_broken {
            return Ok(Admission::Down);
        }
        if std::mem::take(&mut state.unreported[direction as usize])
            && let Some(cause) = state.cause.clone()
        {
            return Err(QosError::Lost(cause).into());
        }
        Ok(if matches!(state.phase, Phase::Up) { Admission::Up } else { Admission::Down })
    }

    /// Waits until a call of a direction need not wait any longer.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when that has not been so at `until`, or the call does not wait; [`io::ErrorKind::Interrupted`] when the call
    /// returns for signals. The thread that serves connections never waits.
    pub fn wait(&self, direction: Direction, until: Option<Instant>, waits: bool) -> io::Result<()> {
        let mut state = self.lock();
        loop {
            let is_over = match state.phase {
                Phase::Up => self.is_up(),
                Phase::Down(_) => state.unreported[direction as usize],
                Phase::Over { .. } => true,
            };
            if is_over {
                return Ok(());
            }
            if !waits || is_service_thread() || until.is_some_and(|until| now() >= until) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let left = until.map_or(Duration::MAX, |until| until.saturating_since(now()));
            let end;
            (state, end) =
                self.changed.wait(&self.state, state, signals::longest_look(LONGEST_WAIT).min(left));
            match end {
                WaitEnd::TimedOut => signals::look()?,
                WaitEnd::Interrupted => signals::on_signal()?,
                WaitEnd::Notified => {}
            }
        }
    }

    /// Handles due deadlines of a broken connection. Returns the next one; `None` if the connection is whole.
    pub fn serve(&self, link: &impl Reconnect<Attempt = A>) -> Option<Instant> {
        if self.is_up() {
            return None;
        }
        let mut state = self.lock();
        loop {
            let now = now();
            let State { options, phase, unreported, cause } = &mut *state;
            match std::mem::replace(phase, Phase::Up) {
                Phase::Up => {
                    let why = lock(&self.broken).clone()?;
                    if !link.take_down(&why) {
                        return Some(now.saturating_add(SOON));
                    }
                    *lock(&self.broken) = None;
                    (*unreported, *cause) = ([true; 2], Some(why.clone()));
                    *phase =
                        Phase::Down(Outage { since: now, failures: 0, cause: why, step: Step::Pause(now) });
                    self.changed.notify_all();
                }
                Phase::Down(outage) => match self.go_on(outage, link, options, now) {
                    Next::Up => {
                        self.is_up.store(true, Ordering::SeqCst);
                        self.changed.notify_all();
                        return None;
                    }
                    Next::Later(outage, due) => {
                        *phase = Phase::Down(outage);
                        return Some(due);
                    }
                    Next::Over(after, cause) => {
                        link.tell(SessionEvent::GaveUp { after, cause: cause.clone() });
                        *phase = Phase::Over { after, cause };
                        self.changed.notify_all();
                    }
                },
                over @ Phase::Over { .. } => {
                    *phase = over;
                    return Some(Instant::FAR_FUTURE);
                }
            }
        }
    }

    fn go_on(
        &self,
        mut outage: Outage<A>,
        link: &impl Reconnect<Attempt = A>,
        options: &QosOptions,
        now: Instant,
    ) -> Next<A> {
        let until = outage.since.saturating_add(self.within);
        let after = now.saturating_since(outage.since);
        if self.is_ended.load(Ordering::SeqCst) {
            return Next::Over(
                after,
                Cause::Failed("the application has shut the connection down".to_owned()),
            );
        }
        let failure = match outage.step {
            _ if now >= until => return Next::Over(after, outage.cause),
            Step::Pause(end) if now < end => return Next::Later(outage, end.min(until)),
            Step::Pause(_) => match link.attempt(options) {
                Ok(attempt) => {
                    outage.step = Step::Attempt(attempt, now.saturating_add(LONGEST_ATTEMPT));
                    return Next::Later(outage, now);
                }
                Err(error) => error,
            },
            Step::Attempt(mut attempt, end) => match link.advance(&mut attempt, options) {
                Some(Ok(())) => match link.take_up(attempt, after) {
                    Ok(()) => return Next::Up,
                    Err(attempt) => {
                        outage.step = Step::Attempt(attempt, end);
                        return Next::Later(outage, now.saturating_add(SOON));
                    }
                },
                None if now < end => {
                    outage.step = Step::Attempt(attempt, end);
                    return Next::Later(outage, now.saturating_add(LOOK));
                }
                None => QosError::System { doing: "cannot connect", source: io::ErrorKind::TimedOut.into() },
                Some(Err(error)) => error,
            },
        };
        let pause = FIRST_PAUSE * (1_u64 << outage.failures.min(16));
        let (failures, step) =
            (outage.failures + 1, Step::Pause(now.saturating_add(pause.min(LONGEST_PAUSE))));
        let outage =
            Outage { since: outage.since, failures, cause: Cause::Failed(failure.to_string()), step };
        Next::Later(outage, now)
    }
}

enum Next<A> {
    Up,
    Later(Outage<A>, Instant),
    Over(Duration, Cause),
}
