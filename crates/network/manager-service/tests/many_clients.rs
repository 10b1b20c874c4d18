//! A hundred clients at the same time.

use crate::common::{Place, whole};
use cutline_allocation::protocol::{AllocationReply, AllocationRequest};
use cutline_sys::now;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Barrier};

const CLIENTS: usize = 100;

#[test]
fn a_hundred_clients_never_get_more_than_the_capacity() {
    request_and_release(60);
}

/// The same with a million requests. The limit of 20,000 lines of a user in a second alone makes it last for a minute.
#[test]
#[ignore = "minutes in release: cargo test --release -p cutline-manager-service --test all -- many_clients::a_million --ignored --nocapture"]
fn a_million_requests_of_a_hundred_clients_never_get_more_than_the_capacity() {
    let begin = now();
    let [admitted, refused, looks] = request_and_release(10_000);
    let took = now().saturating_since(begin).as_secs_f64();
    println!(
        "{} requests of {CLIENTS} clients in {took:.0} s: {admitted} admitted, {refused} refused; {looks} statuses between them",
        admitted + refused
    );
}

/// Requests flows from all clients at the same time, `rounds` from each. Promises that clients have been given, as they learn of them and
/// before they return them, never exceed what may be promised; and the manager's own accounts never exceed the capacity. Returns the
/// numbers of admissions, of refusals, and of looks at the accounts.
fn request_and_release(rounds: u64) -> [u64; 3] {
    let place = Arc::new(Place::new());
    let _service = place.start();
    let promised = Arc::new(AtomicI64::new(0));
    let most = Arc::new(AtomicI64::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let start = Arc::new(Barrier::new(CLIENTS + 1));
    let watcher = {
        let (place, is_over, start) = (Arc::clone(&place), Arc::clone(&is_over), Arc::clone(&start));
        std::thread::spawn(move || {
            let mut client = place.client();
            start.wait();
            let mut looks = 0;
            while !is_over.load(Ordering::SeqCst) {
                let status = client.status();
                let capacity = &status.capacities[0];
                assert!(capacity.in_use <= capacity.capacity, "{capacity:?}");
                assert!(capacity.promised <= capacity.capacity * 3 / 4, "{capacity:?}");
                let granted: u64 = status.flows.iter().map(|flow| flow.granted_bps).sum();
                assert!(granted <= capacity.capacity, "{granted}");
                looks += 1;
            }
            looks
        })
    };
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (place, promised, most) = (Arc::clone(&place), Arc::clone(&promised), Arc::clone(&most));
            let start = Arc::clone(&start);
            std::thread::spawn(move || {
                let mut client = place.client();
                start.wait();
                let (mut admitted, mut refused) = (0, 0);
                for id in 0..rounds {
                    let mbps = 1 + (number as u64 * 7 + id * 3) % 12;
                    // All that is requested, or nothing.
                    match client.admit(id, whole(mbps)) {
                        Ok(rate) => {
                            assert_eq!(rate, mbps * 1_000_000);
                            let sum = promised.fetch_add(rate as i64, Ordering::SeqCst) + rate as i64;
                            most.fetch_max(sum, Ordering::SeqCst);
                            assert!(sum <= 75_000_000, "{sum}");
                            admitted += 1;
                            promised.fetch_sub(rate as i64, Ordering::SeqCst);
                            client.send(&AllocationRequest::Release { id });
                            client.next(|reply| {
                                matches!(reply, AllocationReply::Released { .. }).then_some(())
                            });
                        }
                        Err(_) => refused += 1,
                    }
                }
                (admitted, refused)
            })
        })
        .collect();
    let outcomes: Vec<(u64, u64)> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    is_over.store(true, Ordering::SeqCst);
    let looks = watcher.join().unwrap();
    let (admitted, refused): (u64, u64) =
        outcomes.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!(admitted + refused, CLIENTS as u64 * rounds);
    assert!(admitted > 0 && looks > 0, "{admitted} admitted, {refused} refused, {looks} looks");
    let status = place.status();
    assert_eq!((status.all_flows, status.capacities[0].promised), (0, 0), "all was returned");
    let counters = status.counters;
    assert_eq!((counters.admitted, counters.refused, counters.released), (admitted, refused, admitted));
    [admitted, refused, looks]
}
