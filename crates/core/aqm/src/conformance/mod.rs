//! Properties that every AQM must have, as checks that any crate can run over its own AQM.
//!
//! A test of a crate that registers an AQM calls [`check`]; each check panics with the fault:
//!
//! ```
//! use cutline_aqm::{AqmSpec, conformance};
//!
//! conformance::check(&AqmSpec::from_values("pi", []).unwrap());
//! ```
//!
//! This crate's own AQMs are checked in `tests/conformance.rs`. Every check runs an AQM alone and, if it is a law, under
//! TSQ; without and with ECN; with a limit in packets and in bytes. The load is nine seconds of overload by a third,
//! underload and silence in turn ([`run`]).
//!
//! The checks of TSQ need a law that hits some packets and not all. They take the parameters of
//! [`Aqm::moderate_params`](crate::Aqm::moderate_params).
//!
//! It is part of the library because tests of other crates use it. A program that does not call it does not contain it.

mod link;
mod overtaking;
mod parameters;

pub use link::Link;
pub use overtaking::{is_graded, packets_that_overtake_have_a_higher_probability};
pub use parameters::{
    bad_parameters_are_refused_by_name, defaults_are_what_the_description_says, description_is_complete,
};

use crate::{AnyQueue, AqmSpec, DropReason, Limit, Queue, QueueSpec, TsqParams, Verdict};
use cutline_units::{Duration, Instant, Probability, Rate};
use std::collections::BTreeSet;
use std::fmt::{Debug, Write as _};

/// The rate of the link in every check.
pub const RATE: Rate = Rate::from_mbps(15);

/// One of the checks.
pub type Check = fn(&AqmSpec);

/// Every check by its name.
pub const CHECKS: [(&str, Check); 12] = [
    ("packets_are_conserved", packets_are_conserved),
    ("verdicts_agree_with_the_counters", verdicts_agree_with_the_counters),
    ("a_limit_is_never_exceeded", a_limit_is_never_exceeded),
    ("the_same_seed_gives_the_same_run", the_same_seed_gives_the_same_run),
    ("advancing_changes_no_verdict", advancing_changes_no_verdict),
    ("a_queue_that_was_reset_is_new", a_queue_that_was_reset_is_new),
    ("a_long_silence_is_cheap", a_long_silence_is_cheap),
    ("tsq_works_on_laws_only", tsq_works_on_laws_only),
    ("packets_that_overtake_have_a_higher_probability", packets_that_overtake_have_a_higher_probability),
    ("description_is_complete", description_is_complete),
    ("defaults_are_what_the_description_says", defaults_are_what_the_description_says),
    ("bad_parameters_are_refused_by_name", bad_parameters_are_refused_by_name),
];

/// Runs every check over an AQM with its parameters.
///
/// # Panics
/// When a check fails; the message says which AQM, in which setting, and the first difference.
pub fn check(aqm: &AqmSpec) {
    for (_, check) in CHECKS {
        check(aqm);
    }
}

/// The queues that an AQM is checked in: alone and under TSQ, without and with ECN, limited in packets and in bytes.
pub fn specs(aqm: &AqmSpec) -> Vec<QueueSpec> {
    let tsq = aqm.takes_tsq().then(|| Some(TsqParams::default()));
    let settings = [(false, Limit::Packets(400)), (true, Limit::Bytes(300_000))];
    let each = |tsq| settings.map(|(ecn, limit)| QueueSpec { limit, ecn, aqm: aqm.clone(), tsq, rate: RATE });
    [None].into_iter().chain(tsq).flat_map(each).collect()
}

/// A queue of this description with a link behind it.
pub fn link(spec: &QueueSpec) -> Link<AnyQueue<u32>> {
    Link::new(spec.build().expect("the specification is allowed"), spec.rate)
}

/// Trace of a run: for each arrival its verdict, and the probability after it.
pub type VerdictTrace = Vec<(Verdict, Option<Probability>)>;

/// Nine seconds of overload by a third, underload and silence in turn: every AQM gets to act and to rest.
pub fn run(link: &mut Link<AnyQueue<u32>>) -> VerdictTrace {
    let mut trace = Vec::new();
    for i in 0..15_000_u32 {
        let (size, hint) = (300 + i * 7919 % 1200, 1 + (i * 31 % 16) as u16);
        let verdict = link.arrive(size, hint, i % 3 == 0);
        trace.push((verdict, link.queue.probability()));
        let us = match i / 1500 % 3 {
            0 | 1 => 360,
            _ => 700,
        };
        link.wait(Duration::from_micros(us));
        if i % 5000 == 4999 {
            link.wait(Duration::from_secs(1));
        }
    }
    trace
}

/// Every packet that arrives is refused, sent, shed or flushed, once, and counted.
pub fn packets_are_conserved(aqm: &AqmSpec) {
    for spec in specs(aqm) {
        let mut link = link(&spec);
        let trace = run(&mut link);
        let mut flushed = 0;
        link.arrive_many(100, 9);
        let waiting = link.queue.backlog();
        link.queue.reset(link.now, &mut |_| flushed += 1);
        let stats = link.queue.stats();
        let sent = link.sent.len() as u64;
        let shed = link.shed.len() as u64;
        equal(&spec, "packets counted as arrived", stats.arrived().packets, trace.len() as u64 + 100);
        equal(&spec, "packets counted as flushed", stats.flushed.packets, flushed);
        equal(&spec, "bytes counted as flushed", stats.flushed.bytes, waiting.bytes);
        equal(&spec, "packets counted as shed", stats.shed().packets, shed);
        equal(&spec, "packets counted as dequeued", stats.dequeued.packets, sent);
        equal(&spec, "packets counted as enqueued", stats.enqueued.packets, sent + shed + flushed);
        let gone = stats.dequeued.bytes + stats.shed().bytes;
        equal(&spec, "bytes counted as enqueued", stats.enqueued.bytes, gone + waiting.bytes);
        let handles = link.sent.iter().map(|(_, departure)| departure.packet);
        let handles: BTreeSet<u32> = handles.chain(link.shed.iter().map(|shed| shed.packet)).collect();
        equal(&spec, "different packets sent or shed", handles.len() as u64, sent + shed);
    }
}

/// The counters of marked and dropped packets agree with the verdicts and departures. The overload shows in
/// them.
pub fn verdicts_agree_with_the_counters(aqm: &AqmSpec) {
    for spec in specs(aqm) {
        let mut link = link(&spec);
        let trace = run(&mut link);
        let count = |kind: fn(&Verdict) -> bool| trace.iter().filter(|(v, _)| kind(v)).count() as u64;
        let stats = link.queue.stats();
        let marked_later = link.sent.iter().filter(|(_, departure)| departure.marked).count() as u64;
        let marked = count(|verdict| *verdict == Verdict::Mark) + marked_later;
        equal(&spec, "packets counted as marked", stats.marked.packets, marked);
        let dropped = count(|verdict| matches!(verdict, Verdict::Drop(_))) + link.shed.len() as u64;
        equal(&spec, "packets counted as dropped", stats.dropped_in_all().packets, dropped);
        require(&spec, "without ECN nothing is marked", spec.ecn || stats.marked.packets == 0);
        require(&spec, "an overload by a third leads to drops", dropped > 0);
        let acts = trace.iter().any(|(_, p)| p.is_none_or(|p| p > Probability::ZERO));
        require(&spec, "in an overload the probability rises above 0", acts);
    }
}

/// The backlog never exceeds the limit.
pub fn a_limit_is_never_exceeded(aqm: &AqmSpec) {
    for spec in specs(aqm) {
        let mut link = link(&spec);
        for i in 0..3000_u32 {
            link.arrive(40 + i * 7919 % 1460, 1 + (i % 16) as u16, true);
            let backlog = link.queue.backlog();
            let within = spec.limit.holds(backlog);
            require(&spec, &format!("{backlog:?} is within the limit, at arrival {i}"), within);
        }
    }
}

/// Two queues that are given the same packets and draw the same numbers do the same.
pub fn the_same_seed_gives_the_same_run(aqm: &AqmSpec) {
    for spec in specs(aqm) {
        let (mut one, mut other) = (link(&spec), link(&spec));
        same(&spec, "verdicts and probabilities of two runs", &run(&mut one), &run(&mut other));
        same(&spec, "departures of two runs", &one.sent, &other.sent);
    }
}

/// [`Queue::advance`] is for recording: calling it changes neither verdicts nor departures.
pub fn advancing_changes_no_verdict(aqm: &AqmSpec) {
    for spec in specs(aqm) {
        let (mut seen, mut unseen) = (link(&spec), link(&spec));
        let (mut seen_verdicts, mut unseen_verdicts) = (Vec::new(), Vec::new());
        for i in 0..6000_u32 {
            let (size, hint) = (300 + i * 7919 % 1200, 1 + (i * 31 % 16) as u16);
            seen_verdicts.push(seen.arrive(size, hint, false));
            unseen_verdicts.push(unseen.arrive(size, hint, false));
            for _ in 0..4 {
                seen.wait(Duration::from_micros(90));
                seen.queue.advance(seen.now);
            }
            unseen.wait(Duration::from_micros(360));
        }
        same(&spec, "verdicts with and without advancing", &seen_verdicts, &unseen_verdicts);
        same(&spec, "departures with and without advancing", &seen.sent, &unseen.sent);
    }
}

/// After a reset a queue behaves as a new one.
pub fn a_queue_that_was_reset_is_new(aqm: &AqmSpec) {
    for spec in specs(aqm) {
        let (mut used, mut new) = (link(&spec), link(&spec));
        run(&mut used);
        used.arrive_many(50, 3);
        used.wait(Duration::from_secs(1));
        used.queue.reset(used.now, &mut |_| {});
        new.wait(used.now - Instant::ZERO);
        new.queue.reset(new.now, &mut |_| {});
        used.random = new.random.clone();
        same(
            &spec,
            "verdicts and probabilities after a reset, and of a new queue",
            &run(&mut used),
            &run(&mut new),
        );
        equal(&spec, "bytes waiting after a reset", used.queue.backlog().bytes, new.queue.backlog().bytes);
    }
}

/// A hundred years without a packet take no time and leave no trace. Samples taken one by one would not end.
pub fn a_long_silence_is_cheap(aqm: &AqmSpec) {
    for spec in specs(aqm) {
        let mut link = link(&spec);
        run(&mut link);
        link.drain();
        link.wait(Duration::from_secs(100 * 365 * 86_400));
        link.queue.advance(link.now);
        let verdict = link.arrive(1000, 1, false);
        require(
            &spec,
            &format!("a packet after a long silence passes: {verdict:?}"),
            verdict == Verdict::Pass,
        );
    }
}

/// TSQ can be set on a law, and is refused on a discipline. On a law, TSQ does not change the treatment of the largest hint.
pub fn tsq_works_on_laws_only(aqm: &AqmSpec) {
    let spec = |tsq| QueueSpec { limit: Limit::Packets(400), ecn: true, aqm: aqm.clone(), tsq, rate: RATE };
    let tsq = spec(Some(TsqParams::default()));
    if aqm.takes_tsq() {
        tsq_leaves_the_largest_hint_alone(aqm);
        let moderate = AqmSpec::moderate(aqm.name()).expect("the moderate parameters are allowed");
        let hits = tsq_leaves_the_largest_hint_alone(&moderate);
        let statement = format!("with moderate parameters the law acts: of 15,000 packets it hits {hits}");
        require(&tsq, &statement, hits > 100 || link(&tsq).queue.probability().is_none());
        return;
    }
    let error = tsq.build::<u32>().err().map(|error| error.to_string()).unwrap_or_default();
    let expected = format!("tsq = true: allowed is false with {}", aqm.name());
    require(&tsq, &format!("TSQ on a discipline is refused: {error:?}"), error.starts_with(&expected));
}

/// Packets of the largest hint alone are treated under TSQ as in a FIFO, if the law learns there, too, that packets
/// change places. Returns the number of hit packets among 15,000.
pub fn tsq_leaves_the_largest_hint_alone(aqm: &AqmSpec) -> usize {
    let spec = |tsq| QueueSpec { limit: Limit::Packets(400), ecn: true, aqm: aqm.clone(), tsq, rate: RATE };
    let (plain, charged) = (spec(None), spec(Some(TsqParams::default())));
    let (mut fifo, mut tsq) = (link(&plain), link(&charged));
    if let AnyQueue::Fifo(fifo) = &mut fifo.queue {
        fifo.reorders();
    }
    let (mut fifo_trace, mut tsq_trace) = (Vec::new(), Vec::new());
    for i in 0..15_000 {
        let capable = i % 2 == 0;
        fifo_trace.push((fifo.arrive(1000, 16, capable), fifo.queue.readings()));
        tsq_trace.push((tsq.arrive(1000, 16, capable), tsq.queue.readings()));
        fifo.wait(Duration::from_micros(450));
        tsq.wait(Duration::from_micros(450));
    }
    same(&charged, "verdicts and readings under TSQ and in a FIFO", &tsq_trace, &fifo_trace);
    same(&charged, "departures under TSQ and in a FIFO", &tsq.sent, &fifo.sent);
    let is_hit = |verdict: &Verdict| matches!(verdict, Verdict::Mark | Verdict::Drop(DropReason::Early));
    tsq_trace.iter().filter(|(verdict, _)| is_hit(verdict)).count()
}

/// Fails unless two counts are equal.
fn equal(spec: &QueueSpec, what: &str, found: u64, expected: u64) {
    assert!(found == expected, "{}: {what}: {found}, which should be {expected}", label(spec));
}

/// Fails unless a statement is true.
fn require(spec: &QueueSpec, statement: &str, holds: bool) {
    assert!(holds, "{}: this should hold: {statement}", label(spec));
}

/// Fails unless two records are equal, and prints the first place where they differ rather than both records.
fn same<T: PartialEq + Debug>(spec: &QueueSpec, what: &str, one: &[T], other: &[T]) {
    if one == other {
        return;
    }
    let differ = |at: &usize| one.get(*at) != other.get(*at);
    let places: Vec<usize> = (0..one.len().max(other.len())).filter(differ).collect();
    let first = places[0];
    let mut message = format!("{}: {what} differ in {} of ", label(spec), places.len());
    let _ = write!(message, "{} places, first in place {first}:", one.len().max(other.len()));
    for (name, record) in [("one", one), ("other", other)] {
        let entry = record.get(first).map_or_else(|| "(nothing)".to_owned(), |entry| format!("{entry:?}"));
        let _ = write!(message, "\n  the {name}: {entry}");
    }
    panic!("{message}");
}

/// An AQM's name and the setting it is in.
fn label(spec: &QueueSpec) -> String {
    let tsq = if spec.tsq.is_some() { " under TSQ" } else { "" };
    let ecn = if spec.ecn { "with" } else { "without" };
    format!("{}{tsq}, {ecn} ECN, limit {:?}", spec.aqm.name(), spec.limit)
}
