//! A target's part of `cargo test`: the committed corpus, then a fixed number of mutations of it.
//!
//! The seed is that of proptest (`PROPTEST_RNG_SEED`), so `make test` tries the same inputs every time and `make properties`
//! new ones.

use crate::Target;
use crate::check::processor_time;
use crate::corpus::{replay_command, words};
use crate::mutate::{Mutator, Seed};
use cutline_units::{Streams, lock};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use std::{env, io, thread};

/// Processor time for mutations: a slow machine tries fewer inputs than a fast one, and a busy one as many.
const LONGEST: Duration = Duration::from_secs(15);
/// An input that takes longer hangs. It is time on the wall, so it is far above [`Target::check`]'s bound.
const HANGS: Duration = Duration::from_secs(60);

/// Result of a trial.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// The seed of the mutations.
    pub seed: u64,
    /// Inputs of the corpus.
    pub replayed: u64,
    /// Inputs made of them.
    pub tried: u64,
    /// Number of these inputs that the parser accepted.
    pub accepted: u64,
    /// The time that it took.
    pub took: Duration,
}

/// Replays the target's corpus and tries mutations of it.
///
/// # Errors
/// When the corpus cannot be read.
///
/// # Panics
/// At the first input that the target fails with. The input is in a file then, which the message names.
pub fn run(target: &Target) -> io::Result<Trial> {
    let corpus = target.corpus()?;
    let began = Instant::now();
    let current = Arc::new(Mutex::new(Current { input: Vec::new(), since: began }));
    let watched = Arc::downgrade(&current);
    let of = *target;
    thread::spawn(move || watch(&of, &watched));
    let seed = env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut trial = Trial { seed, replayed: 0, tried: 0, accepted: 0, took: Duration::ZERO };
    let mut seeds = Vec::new();
    for entry in &corpus {
        let accepted = check(target, &entry.bytes, &current);
        seeds.push(Seed { input: &entry.bytes, accepted });
    }
    trial.replayed = seeds.len() as u64;
    let random = Streams::new(seed).stream(target.name, "mutations");
    let mut mutator = Mutator::new(&seeds, words(&corpus), target.longest, random);
    let replayed = processor_time();
    while trial.tried < target.tries && processor_time().saturating_sub(replayed) < LONGEST {
        trial.accepted += u64::from(check(target, &mutator.next_input(), &current));
        trial.tried += 1;
    }
    trial.took = began.elapsed();
    Ok(trial)
}

/// The input that is being tried.
struct Current {
    input: Vec<u8>,
    since: Instant,
}

fn check(target: &Target, input: &[u8], current: &Mutex<Current>) -> bool {
    {
        let mut current = lock(current);
        current.input.clear();
        current.input.extend_from_slice(input);
        current.since = Instant::now();
    }
    catch_unwind(AssertUnwindSafe(|| target.check(input))).unwrap_or_else(|panic| {
        tell(target, input);
        resume_unwind(panic)
    })
}

/// Ends the process when an input hangs: a thread cannot be ended.
fn watch(target: &Target, current: &Weak<Mutex<Current>>) {
    while let Some(current) = current.upgrade() {
        let current = lock(&current);
        if current.since.elapsed() > HANGS {
            eprintln!("{} hangs: {HANGS:?} with one input", target.name);
            tell(target, &current.input);
            std::process::exit(1);
        }
        drop(current);
        thread::sleep(Duration::from_millis(200));
    }
}

fn tell(target: &Target, input: &[u8]) {
    match target.keep_failure(input) {
        Ok(path) => eprintln!(
            "{} fails with an input of {} B; to replay it:\n    {}",
            target.name,
            input.len(),
            replay_command(target, &path)
        ),
        Err(error) => eprintln!("{} fails with {input:?}, which cannot be kept: {error}", target.name),
    }
}
