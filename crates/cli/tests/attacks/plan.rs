//! Plan of the attacks: their selection, duration and random choices, and their outcomes.

use cutline_units::{RandomStream, Streams};
use std::any::Any;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// An attack on a `V`.
pub struct Attack<V: Victim> {
    pub name: &'static str,
    pub what: &'static str,
    /// Promise that holds during the attack.
    pub promise: V::Promise,
    pub run: fn(&mut V, &mut Assault),
}

impl<V: Victim> Attack<V> {
    pub const fn new(
        name: &'static str,
        what: &'static str,
        promise: V::Promise,
        run: fn(&mut V, &mut Assault),
    ) -> Self {
        Self { name, what, promise, run }
    }
}

/// Victim of attacks. It panics where a promise is broken, and is then no longer used.
pub trait Victim: Sized + 'static {
    /// Promise while an attack lasts.
    type Promise: Copy + 'static;

    /// Runs an attack, and checks that the promise holds.
    fn withstand(&mut self, attack: &Attack<Self>, assault: &mut Assault) {
        (attack.run)(self, assault);
    }
}

/// An attack while it is made.
pub struct Assault {
    time: Duration,
    random: RandomStream,
    /// Number of rounds.
    pub rounds: u64,
    /// Numbered datagrams.
    pub datagrams: Option<Tally>,
}

/// Tally of numbered datagrams.
#[derive(Clone, Copy)]
pub struct Tally {
    pub sent: u64,
    pub missing: u64,
    /// Losses that were counted, of anything.
    pub counted: u64,
}

impl Assault {
    /// Runs `round` again and again until the time is over, and once at least.
    pub fn repeat(&mut self, mut round: impl FnMut(&mut Self)) {
        let until = Instant::now() + self.time;
        loop {
            round(self);
            self.rounds += 1;
            if Instant::now() >= until {
                return;
            }
        }
    }

    /// A random number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.random.uniform() * end as f64) as usize
    }

    /// A random byte.
    pub fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// A random time up to `longest`.
    pub fn moment(&mut self, longest: Duration) -> Duration {
        longest.mul_f64(self.random.uniform())
    }
}

/// The selected attacks.
pub struct Plan {
    time: Duration,
    seed: u64,
    names: Vec<String>,
    /// True if a name is that of an attack here, made or not.
    is_known: bool,
    /// The file that collects the names that programs of attacks know; `None` if this program is the only one.
    known: Option<PathBuf>,
    lines: Vec<Line>,
}

/// Outcome of an attack.
struct Line {
    victim: &'static str,
    name: &'static str,
    rounds: u64,
    datagrams: Option<Tally>,
    time: Duration,
    finding: Option<String>,
}

impl Plan {
    /// A tenth of a second for each attack and always the same choices, unless something else is requested.
    pub fn from_environment() -> Self {
        let value = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let number = |name: &str| {
            value(name)
                .map(|text| text.parse::<f64>().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
        };
        let seconds = number("CUTLINE_ATTACK_SECONDS").unwrap_or(0.1);
        let seed = number("CUTLINE_ATTACK_SEED").map_or(1, |seed| seed as u64);
        let names = value("CUTLINE_ATTACK").unwrap_or_default();
        println!("CUTLINE_ATTACK_SEED={seed}");
        let names = names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let known = value("CUTLINE_ATTACK_KNOWN").map(PathBuf::from);
        let time = Duration::from_secs_f64(seconds);
        Self { time, seed, names, is_known: false, known, lines: Vec::new() }
    }

    /// Makes these attacks, as far as they are requested, on what `new` answers; `None` where this machine does not let us.
    /// After a finding there is a new one.
    pub fn attack<V: Victim>(
        &mut self,
        victim: &'static str,
        new: impl Fn() -> Option<V>,
        tables: &[&[Attack<V>]],
    ) {
        let mut attacked = None;
        for attack in tables.iter().copied().flatten() {
            if !self.is_asked_for(victim, attack.name) {
                continue;
            }
            self.is_known = true;
            let Some(mut one) = attacked.take().or_else(&new) else { return };
            let mut assault = Assault {
                time: self.time,
                random: Streams::new(self.seed).stream(victim, attack.name),
                rounds: 0,
                datagrams: None,
            };
            let began = Instant::now();
            let result = catch_unwind(AssertUnwindSafe(|| one.withstand(attack, &mut assault)));
            let finding = result.err().map(|panic| text_of(panic.as_ref()));
            let Assault { rounds, datagrams, .. } = assault;
            let line = Line { victim, name: attack.name, rounds, datagrams, time: began.elapsed(), finding };
            println!("{}   {}", line.text(), attack.what);
            if line.finding.is_none() {
                attacked = Some(one);
            }
            self.lines.push(line);
        }
    }

    fn is_asked_for(&self, victim: &str, attack: &str) -> bool {
        let has = |name: &String| victim == name || attack.contains(name.as_str());
        self.names.is_empty() || self.names.iter().any(has)
    }

    /// Prints all outcomes. Where other programs have attacks, too, a name without an attack here is printed, and one that has some is
    /// noted in the file that they share.
    ///
    /// # Panics
    /// When there is a finding; and when there was no such attack, and this program is the only one.
    pub fn conclude(self) {
        println!("\n{}", Line::HEADING);
        self.lines.iter().for_each(|line| println!("{}", line.text()));
        let mut findings = String::new();
        for Line { victim, name, finding, .. } in &self.lines {
            if let Some(finding) = finding {
                // Writing into a string does not fail.
                let _ = write!(findings, "\n{victim}, {name}: {finding}");
            }
        }
        assert!(findings.is_empty(), "CUTLINE_ATTACK_SEED={}{findings}", self.seed);
        let is_known = self.is_known || self.names.is_empty();
        match &self.known {
            Some(file) if is_known => {
                std::fs::write(file, "known").expect("the file of known attacks can be written");
            }
            Some(_) => println!("no attack of this program is called {:?}", self.names),
            None => assert!(is_known, "no attack is called {:?}", self.names),
        }
    }
}

impl Line {
    const HEADING: &'static str =
        "victim      attack                    rounds      sent   missing    counted    time  result";

    fn text(&self) -> String {
        let Self { victim, name, rounds, datagrams, time, finding } = self;
        let of = |part: fn(Tally) -> u64| {
            datagrams.map_or_else(|| "-".to_owned(), |tally| part(tally).to_string())
        };
        let [sent, missing, counted] =
            [of(|tally| tally.sent), of(|tally| tally.missing), of(|tally| tally.counted)];
        let result = if finding.is_none() { "kept" } else { "FINDING" };
        let time = time.as_secs_f64();
        format!(
            "{victim:<11} {name:<24} {rounds:>7} {sent:>9} {missing:>9} {counted:>10} {time:>5.1} s  {result}"
        )
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// Nothing can be attacked, as on a machine without the privileges.
impl Victim for () {
    type Promise = ();
}

const HARMLESS: [Attack<()>; 1] = [Attack::new("harmless", "does nothing", (), |(), _| {})];

/// A program without an attack of this name is no failure if another program may have one.
#[test]
fn a_name_must_be_that_of_an_attack_of_one_program() {
    let concluded = |name: &str, is_shared: bool| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known");
        let mut plan = Plan {
            time: Duration::ZERO,
            seed: 1,
            names: vec![name.to_owned()],
            is_known: false,
            known: is_shared.then(|| file.clone()),
            lines: Vec::new(),
        };
        plan.attack("nothing", || None::<()>, &[&HARMLESS]);
        let result = catch_unwind(AssertUnwindSafe(|| plan.conclude()));
        (result.is_ok(), file.exists())
    };
    assert_eq!(concluded("harm", true), (true, true));
    assert_eq!(concluded("typo", true), (true, false));
    assert_eq!(concluded("harm", false), (true, false));
    assert_eq!(concluded("typo", false), (false, false));
}
