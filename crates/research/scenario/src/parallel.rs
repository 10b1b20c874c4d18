//! One simulation on several threads: a thread for each shard of its network.
//!
//! The threads meet at the end of each window of time, which has some hundred packets. They wait there without sleeping, because
//! sleeping and waking take as long as the work. The outcome is the same with any number of threads.

use crate::simulate::SimulateError;
use crate::spec::Scenario;
use cutline_results::RunResult;
use cutline_sim::{EndedShard, Mail, Network, Shard, ShardPlan, SimulationOutcome};
use cutline_units::{Duration, Instant, lock};
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The number of flows from which on several threads are faster than one by a margin that is worth the cores.
const FLOWS: usize = 10_000;
/// The number of looks at the others before a waiting thread lets other programs run.
const LOOKS: u32 = 2000;
/// Simulated time between two calls of the progress.
const STEP: Duration = Duration::from_millis(100);

/// Returns the number of threads that a run of this network should have, if so many cores are free for it.
pub fn threads_for(network: &Network, free: NonZeroUsize) -> NonZeroUsize {
    if network.flows().len() < FLOWS { NonZeroUsize::MIN } else { free }
}

/// Returns the number of cores for each of `runs` runs, of which at most `at_once` run at the same time.
pub fn cores_of_run(cores: NonZeroUsize, at_once: NonZeroUsize, runs: usize) -> NonZeroUsize {
    NonZeroUsize::new(cores.get() / at_once.get().min(runs).max(1)).unwrap_or(NonZeroUsize::MIN)
}

impl Scenario {
    /// Simulates `network`, which must come from [`Scenario::network_of`] with this seed, on at most `threads` threads. Networks that
    /// are simulated event by event, or have fewer stages, have fewer. The caller can set `cancel` to end the run early.
    ///
    /// `progress` is called about every 100 ms of simulated time with the time so far.
    ///
    /// # Errors
    /// If the scenario cannot be simulated or the run was cancelled.
    pub fn simulate_on(
        &self,
        threads: NonZeroUsize,
        network: &Network,
        seed: u64,
        cancel: &AtomicBool,
        mut progress: impl FnMut(Instant) + Send,
    ) -> Result<RunResult, SimulateError> {
        let plan = ShardPlan::new(network, threads.get()).ok().filter(|plan| plan.shards() > 1);
        let Some(plan) = plan else {
            return self.simulate_network(network, seed, cancel, |simulation| {
                progress(simulation.time());
                Ok(())
            });
        };
        self.check_without_routers()?;
        let meeting = Meeting::new(plan.shards());
        let outcome = self.run_shards(&plan, network, seed, &meeting, cancel, progress)?;
        Ok(self.rows(network, &outcome))
    }

    fn run_shards(
        &self,
        plan: &ShardPlan,
        network: &Network,
        seed: u64,
        meeting: &Meeting,
        cancel: &AtomicBool,
        progress: impl FnMut(Instant) + Send,
    ) -> Result<SimulationOutcome, SimulateError> {
        let settings = self.settings(seed);
        let start = |number| {
            let shard = Shard::new(network, &settings, plan, number);
            shard.map_err(|error| SimulateError::Lower(error.into()))
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..plan.shards())
                .map(|number| {
                    scope.spawn(move || {
                        let mut part = Part { meeting, is_done: false };
                        part.run(start(number)?, number, || false, |_| {})
                    })
                })
                .collect();
            let first = {
                let mut part = Part { meeting, is_done: false };
                start(0).and_then(|shard| part.run(shard, 0, || cancel.load(Ordering::Relaxed), progress))
            };
            // A panic of a thread is a bug in the simulation. It is propagated with its message.
            let joined = others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            let shards = std::iter::once(first).chain(joined).collect::<Result<Vec<EndedShard>, _>>()?;
            Ok(EndedShard::outcome(shards))
        })
    }
}

/// The place where the threads of a simulation meet at the end of each window, and leave mail for each other.
struct Meeting {
    shards: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    /// True if a thread will not come.
    is_broken: AtomicBool,
    /// The window after which the run is abandoned.
    last_window: AtomicU64,
    /// For each pair of shards two, used in turn: the one of a window is read while the next one is written.
    mail: Vec<[Mutex<Mail>; 2]>,
}

impl Meeting {
    fn new(shards: usize) -> Self {
        Self {
            shards,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            last_window: AtomicU64::new(u64::MAX),
            mail: (0..shards * shards).map(|_| Default::default()).collect(),
        }
    }

    /// Runs a shard to its end. `stops` is asked for the end of the run in each window.
    fn run(
        &self,
        mut shard: Shard,
        number: usize,
        stops: impl Fn() -> bool,
        mut progress: impl FnMut(Instant),
    ) -> Result<EndedShard, SimulateError> {
        let mail = |from: usize, to: usize, window: u64| {
            lock(&self.mail[from * self.shards + to][(window % 2) as usize])
        };
        let others = || (0..self.shards).filter(|other| *other != number);
        let mut next_step = Instant::ZERO;
        let mut window = 0;
        while shard.run_window() {
            shard.open_window();
            for to in others() {
                shard.post(to, &mut mail(number, to, window));
            }
            if stops() {
                self.last_window.fetch_min(window, Ordering::Relaxed);
            }
            if !self.wait() || self.last_window.load(Ordering::Relaxed) <= window {
                return Err(SimulateError::Interrupted);
            }
            for from in others() {
                shard.receive(&mut mail(from, number, window));
            }
            window += 1;
            if shard.time() >= next_step {
                next_step = shard.time() + STEP;
                progress(shard.time());
            }
        }
        progress(shard.time());
        Ok(shard.end())
    }

    /// Waits for all threads. Returns false if one will not come.
    fn wait(&self) -> bool {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.shards {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round + 1, Ordering::Release);
            return true;
        }
        let mut looks = 0;
        while self.round.load(Ordering::Acquire) == round {
            if self.is_broken.load(Ordering::Relaxed) {
                return false;
            }
            looks += 1;
            if looks < LOOKS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        true
    }
}

/// The part of a thread. If it is dropped before its end, as by a panic, the other threads do not wait for it.
struct Part<'m> {
    meeting: &'m Meeting,
    is_done: bool,
}

impl Part<'_> {
    fn run(
        &mut self,
        shard: Shard,
        number: usize,
        stops: impl Fn() -> bool,
        progress: impl FnMut(Instant),
    ) -> Result<EndedShard, SimulateError> {
        let shard = self.meeting.run(shard, number, stops, progress)?;
        self.is_done = true;
        Ok(shard)
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.meeting.is_broken.store(true, Ordering::Relaxed);
        }
    }
}
