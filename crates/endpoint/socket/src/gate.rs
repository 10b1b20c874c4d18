//! Order in which the managed datagram sockets of this process send (QUANTA section 5, scheduling by class): real-time
//! ones by deadline, time-shared ones by weight, each class within the rates that the host has granted
//! ([`cutline_manager::scheduling`]).
//!
//! A message arrives at the gate when the pacing of its own connection permits it. While several threads wait at the same time,
//! the scheduler selects the next message. A single thread never waits here for others.
//!
//! A call that looks for signals ([`crate::Interruptible`]) leaves the gate after 50 ms, so that a handler that takes long holds no other message
//! up. When the call is repeated, its message has its deadline and its place as before.

use crate::signals::{self, GatePlace};
use cutline_manager::resources::{FlowId, SchedulingClass};
use cutline_manager::scheduling::{
    ClassScheduler, MessageTicket, SchedulingParams, SchedulingStats, SendTurn,
};
use cutline_sys::condition::{InterruptibleCondvar, WaitEnd};
use cutline_sys::process::PerProcess;
use cutline_sys::{lock, now};
use cutline_units::{Bytes, Duration, Instant, Rate};
use std::io;
use std::sync::{Mutex, MutexGuard};

/// The longest time between checks of a waiting thread, such as for the end of its connection.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

struct Gate {
    state: Mutex<State>,
    /// Signalled when a message has left, or the rates have changed.
    changed: InterruptibleCondvar,
}

struct State {
    scheduler: ClassScheduler,
    next: u64,
}

impl Default for Gate {
    fn default() -> Self {
        let scheduler = ClassScheduler::new(SchedulingParams::default()).expect("the defaults are allowed");
        Self { state: Mutex::new(State { scheduler, next: 0 }), changed: InterruptibleCondvar::new() }
    }
}

fn gate() -> &'static Gate {
    static GATE: PerProcess<Gate> = PerProcess::new();
    GATE.get()
}

/// Outcome of the wait for a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The message may be sent now.
    Now,
    /// Messages of others are due first, and the call does not wait.
    Later,
}

/// A managed connection at the gate. It is removed when this value is dropped.
#[derive(Debug)]
pub struct GatedFlow {
    flow: FlowId,
    generation: u32,
}

impl GatedFlow {
    /// Adds a connection of this class and weight.
    pub fn new(class: SchedulingClass, weight: u32, rate: Rate) -> Self {
        let mut state = lock(&gate().state);
        let flow = FlowId(state.next);
        state.next += 1;
        // The options have checked the weight.
        let _checked = state.scheduler.set_flow(flow, class, weight, rate);
        Self { flow, generation: cutline_sys::process::generation() }
    }

    /// Changes the rate. The class and the weight stay.
    pub fn set_rate(&self, class: SchedulingClass, weight: u32, rate: Rate) {
        let _checked = lock(&gate().state).scheduler.set_flow(self.flow, class, weight, rate);
        gate().changed.notify_all();
    }

    /// The counters of messages and deadlines.
    pub fn stats(&self) -> SchedulingStats {
        lock(&gate().state).scheduler.stats(self.flow).unwrap_or_default()
    }

    /// Waits for the turn of a message, if the call waits at all and `is_up` holds.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`] when the call returns for signals, and one has come, or the call looks for them. It keeps the place of the
    /// message.
    pub fn pass(
        &self,
        bytes: Bytes,
        deadline: Instant,
        waits: bool,
        is_up: impl Fn() -> bool,
    ) -> io::Result<Passage> {
        let gate = gate();
        let mut state = lock(&gate.state);
        let Some(ticket) = self.offer(&mut state.scheduler, bytes, deadline) else {
            return Ok(Passage::Now);
        };
        loop {
            match state.scheduler.peek(now()) {
                SendTurn::Send { ticket: first, .. } if first == ticket => {
                    state.scheduler.next(now());
                    let others = state.scheduler.waiting();
                    drop(state);
                    if others > 0 {
                        gate.changed.notify_all();
                    }
                    return Ok(Passage::Now);
                }
                turn if waits && is_up() => {
                    let longest = signals::longest_look(LONGEST_WAIT);
                    let ended = if longest.is_zero() {
                        signals::look()
                    } else {
                        let end;
                        (state, end) = wait(gate, state, turn, longest);
                        if end == WaitEnd::Interrupted { signals::on_signal() } else { Ok(()) }
                    };
                    if let Err(error) = ended {
                        self.leave(gate, state, ticket);
                        return Err(error);
                    }
                }
                _ => {
                    self.leave(gate, state, ticket);
                    // The caller detects a connection that was lost meanwhile.
                    return Ok(if waits { Passage::Now } else { Passage::Later });
                }
            }
        }
    }

    /// Adds the message of the current call, in the place that it had if the call was interrupted. Returns its ticket; `None` if the flow is gone.
    fn offer(
        &self,
        scheduler: &mut ClassScheduler,
        bytes: Bytes,
        deadline: Instant,
    ) -> Option<MessageTicket> {
        let before = signals::take_place().filter(|place| place.flow == self.flow);
        before
            .map(|place| place.ticket)
            .filter(|ticket| scheduler.offer_again(*ticket, self.flow, bytes, deadline))
            .or_else(|| scheduler.offer(self.flow, bytes, deadline))
    }

    /// Withdraws a message. It has its place again when the current call continues with it.
    fn leave(&self, gate: &Gate, mut state: MutexGuard<'_, State>, ticket: MessageTicket) {
        state.scheduler.withdraw(ticket);
        drop(state);
        gate.changed.notify_all();
        signals::keep_place(GatePlace { flow: self.flow, ticket });
    }
}

fn wait<'g>(
    gate: &'g Gate,
    state: MutexGuard<'g, State>,
    turn: SendTurn,
    longest: Duration,
) -> (MutexGuard<'g, State>, WaitEnd) {
    let time = match turn {
        SendTurn::Wait(until) => until.saturating_since(now()).min(longest),
        // The message of another thread is due, and that thread is awake.
        SendTurn::Send { .. } | SendTurn::Idle => longest,
    };
    gate.changed.wait(&gate.state, state, time)
}

impl Drop for GatedFlow {
    fn drop(&mut self) {
        // In a copy of the process the lock may be held forever.
        if self.generation != cutline_sys::process::generation() {
            return;
        }
        let _tickets: Vec<MessageTicket> = lock(&gate().state).scheduler.remove_flow(self.flow);
        gate().changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::Interruptible;
    use cutline_testbed::patiently;
    use std::sync::{Arc, Barrier};
    use std::thread;

    /// Only one of these tests at a time has connections: all of a process share the gate.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Returns when no other of these tests runs, with an empty gate: a message that another one has sent at a low rate would use the rate of its
    /// class for a second.
    fn alone() -> MutexGuard<'static, ()> {
        let alone = lock(&ALONE);
        lock(&gate().state).scheduler = Gate::default().state.into_inner().expect("it is new").scheduler;
        alone
    }

    /// Many threads at the same time: none waits forever, and a class keeps to its rate.
    #[test]
    fn threads_take_turns_within_the_rate_of_their_class() {
        let _alone = alone();
        let flows: Vec<Arc<GatedFlow>> = (0..8)
            .map(|_| Arc::new(GatedFlow::new(SchedulingClass::RealTime, 1, Rate::from_mbps(1))))
            .collect();
        let start = Arc::new(Barrier::new(flows.len() + 1));
        let threads: Vec<_> = flows
            .iter()
            .map(|flow| {
                let (flow, start) = (Arc::clone(flow), Arc::clone(&start));
                thread::spawn(move || {
                    start.wait();
                    for _ in 0..25 {
                        let deadline = now() + Duration::from_secs(1);
                        assert_eq!(
                            flow.pass(Bytes::new(1000), deadline, true, || true).unwrap(),
                            Passage::Now
                        );
                    }
                })
            })
            .collect();
        start.wait();
        let begin = now();
        for thread in threads {
            thread.join().unwrap();
        }
        // 200 messages at 8 Mbit/s, without the burst. No other test of this program has real-time connections.
        let took = now().saturating_since(begin);
        assert!(took >= Duration::from_millis(190), "{took}");
        let sent: u64 = flows.iter().map(|flow| flow.stats().sent).sum();
        assert_eq!(sent, 200);
    }

    #[test]
    fn a_call_that_does_not_wait_is_sent_back() {
        let _alone = alone();
        // A message takes 100 s.
        let flow = GatedFlow::new(SchedulingClass::TimeShared, 1, Rate::from_bps(80));
        let pass = || flow.pass(Bytes::new(1000), Instant::FAR_FUTURE, false, || true).unwrap();
        // The test before may have used the rate of the class, and connections of other tests may have messages that are due.
        let first = patiently(|| (pass() == Passage::Now).then_some(()).ok_or(()), |()| true);
        assert_eq!(first, Ok(()));
        // Without a rate no message has its turn.
        flow.set_rate(SchedulingClass::TimeShared, 1, Rate::ZERO);
        assert_eq!(pass(), Passage::Later);
        assert_eq!(flow.stats().sent, 1);
        // A connection that is lost does not wait.
        let lost = flow.pass(Bytes::new(1000), Instant::FAR_FUTURE, true, || false);
        assert_eq!(lost.unwrap(), Passage::Now);
    }

    /// Ctrl-C in Python: the call returns to the language now and then, and is repeated.
    #[test]
    fn a_call_that_checks_signals_leaves_the_gate_and_returns_to_its_place() {
        let _alone = alone();
        // Without a rate no message has its turn.
        let flow = GatedFlow::new(SchedulingClass::TimeShared, 1, Rate::ZERO);
        let call = Interruptible::new();
        let deadline = Instant::FAR_FUTURE;
        let pass = || call.run(|| flow.pass(Bytes::new(1000), deadline, true, || true));
        let mut places = Vec::new();
        for _ in 0..2 {
            let begin = now();
            assert_eq!(pass().unwrap_err().kind(), io::ErrorKind::Interrupted);
            let took = now().saturating_since(begin);
            assert!(took >= LONGEST_WAIT, "{took}");
            let place = call.run(signals::take_place).expect("it has waited");
            // A handler that takes long holds no message of others up.
            assert!(!lock(&gate().state).scheduler.withdraw(place.ticket));
            call.run(|| signals::keep_place(place));
            places.push(place);
        }
        assert_eq!(places[0], places[1]);
        // Another thread's message of the same connection, which came later and never leaves.
        let later = lock(&gate().state).scheduler.offer(flow.flow, Bytes::new(1000), deadline).unwrap();
        flow.set_rate(SchedulingClass::TimeShared, 1, Rate::from_bps(8000));
        // Real-time messages of another test may be first for a moment.
        let passage = (0..1200).find_map(|_| pass().ok());
        assert_eq!(passage, Some(Passage::Now), "it is before the later one");
        assert!(lock(&gate().state).scheduler.withdraw(later));
        assert_eq!(flow.stats().sent, 1);
    }
}
