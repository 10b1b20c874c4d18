//! One run on several threads.

use cutline_scenario::{Scenario, ScenarioFile, SimulateError, threads_for};
use cutline_units::Instant;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};

const fn threads(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

fn dumbbell(flows: usize) -> Scenario {
    let text = format!(
        "name = \"parallel\"\nduration = \"3 s\"\nwarm-up = \"1 s\"\ninterval = \"300 ms\"\nseed = 7\n\
         [dumbbell]\nrate = \"40 Mbit/s\"\ndelay = \"20 ms\"\naccess-rate = \"1 Gbit/s\"\naccess-delay = \"2 ms\"\n\
         queue = {{ aqm = \"pi\", limit = \"300 packets\", ecn = true, tsq = true }}\n\
         [[flow]]\nname = \"bulk\"\ncount = {flows}\nseries = true\napp = {{ kind = \"bulk\" }}\n\
         transport = {{ protocol = \"tcp\", congestion-control = \"cubic\", sack = true }}\n\
         [[flow]]\nname = \"call\"\ncount = 5\n\
         transport = {{ protocol = \"udp\" }}\napp = {{ kind = \"cbr\", rate = \"64 kbit/s\", size = \"200 B\" }}\n"
    );
    ScenarioFile::parse(&text, "parallel.toml").unwrap().scenario().unwrap()
}

#[test]
fn a_run_has_the_same_result_with_any_number_of_threads() {
    let scenario = dumbbell(60);
    let network = scenario.network_of(7).unwrap();
    let never = AtomicBool::new(false);
    let expected = scenario.simulate(7, &never).unwrap();
    assert!(expected.flows.iter().any(|flow| flow.packets_dropped > 0));
    for number in 1..6 {
        let mut times = Vec::new();
        let found =
            scenario.simulate_on(threads(number), &network, 7, &never, |time| times.push(time)).unwrap();
        assert!(found == expected, "{number} threads");
        assert!(times.is_sorted() && times.len() > 10);
        assert_eq!(times.last(), Some(&Instant::from_nanos(3_000_000_000)));
    }
}

#[test]
fn a_run_on_several_threads_can_be_cancelled() {
    let scenario = dumbbell(60);
    let network = scenario.network_of(7).unwrap();
    for number in [1, 2, 4] {
        let cancel = AtomicBool::new(false);
        let after_a_second = |time: Instant| {
            if time > Instant::from_nanos(1_000_000_000) {
                cancel.store(true, Ordering::Relaxed);
            }
        };
        let found = scenario.simulate_on(threads(number), &network, 7, &cancel, after_a_second);
        assert_eq!(found.err(), Some(SimulateError::Interrupted), "{number} threads");
    }
}

#[test]
#[should_panic(expected = "the progress is broken")]
fn a_panic_of_one_thread_ends_the_others() {
    let scenario = dumbbell(60);
    let network = scenario.network_of(7).unwrap();
    let breaks = |_| panic!("the progress is broken");
    drop(scenario.simulate_on(threads(3), &network, 7, &AtomicBool::new(false), breaks));
}

#[test]
fn small_networks_have_one_thread() {
    let network = dumbbell(60).network().unwrap();
    assert_eq!(threads_for(&network, threads(8)), threads(1));
    let network = dumbbell(9_995).network().unwrap();
    assert_eq!(threads_for(&network, threads(8)), threads(8));
}
