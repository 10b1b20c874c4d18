//! The application's handler of events (QoSockets calls it an exception handler).
//!
//! The thread that serves connections calls it, without any lock of this crate.

use crate::service_thread::{ServedConnection, call_soon, is_service_thread};
use cutline_signal::session::SessionEvent;
use cutline_sys::lock;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, PoisonError, Weak};

/// Handler of events. `None` reports that a message waits which the descriptor does not report.
pub type Handler = Box<dyn FnMut(Option<SessionEvent>) + Send>;

/// The most events that wait for a handler that has not returned; of more, the oldest are forgotten.
const MOST_EVENTS: usize = 256;

/// A connection's handler, if it has one.
#[derive(Default)]
pub struct Handling {
    state: Mutex<State>,
    /// A call has returned.
    returned: Condvar,
}

#[derive(Default)]
struct State {
    /// `None` also while it is called.
    handler: Option<Handler>,
    /// The connection, while there is a handler.
    service: Option<Weak<dyn ServedConnection>>,
    /// Counts changes of the handler.
    changes: u64,
    is_called: bool,
    /// True if the thread knows that there are events.
    is_announced: bool,
    /// Arguments of the next calls.
    events: VecDeque<Option<SessionEvent>>,
}

impl Handling {
    /// Removes the handler. After the return it is no longer called, unless it is the handler that does this.
    pub fn remove(&self) {
        let mut state = lock(&self.state);
        state.changes += 1;
        state.service = None;
        state.events.clear();
        let before = state.handler.take();
        while state.is_called && !is_service_thread() {
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        // The destructors of the application's values may do anything.
        drop(before);
    }

    /// Sets the handler, which is called first with earlier events.
    pub fn set(
        &self,
        service: Weak<dyn ServedConnection>,
        handler: Handler,
        earlier: impl IntoIterator<Item = SessionEvent>,
    ) {
        let mut state = lock(&self.state);
        state.changes += 1;
        state.service = Some(service);
        let before = state.handler.replace(handler);
        for event in earlier {
            state.add(Some(event));
        }
        drop(state);
        drop(before);
    }

    /// Calls the handler with an event.
    pub fn add(&self, event: &SessionEvent) {
        let mut state = lock(&self.state);
        if state.service.is_some() {
            state.add(Some(event.clone()));
        }
    }

    /// Calls the handler soon because a message waits that the descriptor does not report.
    pub fn note_pending(&self) {
        let mut state = lock(&self.state);
        if state.service.is_some() && !state.events.contains(&None) {
            state.add(None);
        }
    }

    /// Calls the handler with all events that wait. One that panics has been called.
    pub fn call(&self) {
        loop {
            let mut state = lock(&self.state);
            let next = state.events.pop_front();
            let Some((event, mut handler)) = next.and_then(|event| Some((event, state.handler.take()?)))
            else {
                state.is_announced = false;
                return;
            };
            state.is_called = true;
            let changes = state.changes;
            drop(state);
            // The default hook has printed its message.
            let _panicked = catch_unwind(AssertUnwindSafe(|| handler(event)));
            let mut state = lock(&self.state);
            state.is_called = false;
            let is_current = state.changes == changes;
            let before = if is_current { state.handler.replace(handler) } else { Some(handler) };
            drop(state);
            self.returned.notify_all();
            drop(before);
        }
    }
}

impl State {
    fn add(&mut self, event: Option<SessionEvent>) {
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
        if let Some(service) = self.service.clone().filter(|_| !self.is_announced) {
            self.is_announced = true;
            call_soon(service);
        }
    }
}
