//! Events that the tests of streams and datagrams wait for.

use crate::connection::Connection;
use cutline_signal::session::{Direction, SessionEvent};
use cutline_signal::violation::ViolationOrigin;
use cutline_units::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Waits until both ends have a violation of this origin, and then sets `is_over`. A violation of another origin may come
/// first: the machine may pause when a test begins.
pub(crate) fn both_ends_know(
    origin: ViolationOrigin,
    sending: &Connection,
    receiving: &Connection,
    is_over: &AtomicBool,
) {
    let known = thread::scope(|scope| {
        let here = scope.spawn(|| await_violation(sending, Direction::Send, origin));
        let there = scope.spawn(|| await_violation(receiving, Direction::Receive, origin));
        [here.join(), there.join()]
    });
    // Also after a failure, so that the threads that send end.
    is_over.store(true, Ordering::SeqCst);
    assert!(known.iter().all(Result::is_ok), "{origin:?}");
}

fn await_violation(connection: &Connection, side: Direction, origin: ViolationOrigin) {
    loop {
        match connection.wait_for_event(Duration::from_secs(60)).expect("no event comes") {
            SessionEvent::Violated(direction, violation)
                if direction == side && violation.origin == origin =>
            {
                break;
            }
            _ => {}
        }
    }
}
