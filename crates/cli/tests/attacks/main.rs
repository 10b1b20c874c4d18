//! All known attacks on Cutline's promises: against a router at work, gateways, stored results, the laboratory.
//!
//! ```text
//! sudo -E make attack                                  # 10 s for each attack, or ATTACK_TIME=...
//! sudo -E make attack ATTACK=flips,kill                # the attacks with one of these words in their name
//! sudo -E make attack ATTACK_SEED=1234                 # the random choices of an earlier run
//! sudo -E cargo test -p cutline-cli --test attacks     # the short form: about a minute
//! ```
//!
//! Each target has a module with a table, and an attack is a line of it: its name, its description, the promise
//! meanwhile, and a function. A table with all outcomes is printed at the end. An attack that finds
//! something does not keep the others from being tried. docs/internals/robustness.md has the promises.
//!
//! The router and the laboratory need root; without it the test says so, and attacks the results alone.

#[path = "../common/mod.rs"]
mod common;

mod bed;
mod garbage;
mod gateway;
mod laboratory;
mod plan;
mod results;
mod router;
mod study;

use plan::Plan;

#[test]
fn promises_are_kept_under_attack() {
    let mut plan = Plan::from_environment();
    plan.attack("results", || Some(results::Stored::new()), &[&results::ATTACKS]);
    plan.attack("study", || Some(study::Reproduced::new()), &[&study::ATTACKS]);
    plan.attack("router", || bed::Bed::new("at", ["p0", "p1"]), &[&router::ATTACKS, &router::ON_ANY_PORT]);
    plan.attack("AF_XDP", || bed::Bed::new("az", ["xdp:p0", "xdp:p1"]), &[&router::ON_ANY_PORT]);
    plan.attack("gateway", || Some(gateway::Gateways::new()), &[&gateway::ATTACKS]);
    plan.attack("laboratory", laboratory::Laboratory::new, &[&laboratory::ATTACKS]);
    plan.conclude();
}
