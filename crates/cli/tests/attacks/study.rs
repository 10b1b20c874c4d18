//! Attacks on a study: its report is that of an undisturbed evaluation, or an error names the file.

use super::common::place::{Place, said};
use super::plan::{Assault, Attack, Victim};
use super::results::{copy, ends, files, flip, is_named, killed};
use std::fs;
use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

pub const ATTACKS: [Attack<Reproduced>; 3] = [
    Attack::new(
        "bit flips",
        "bits of tables and summaries change before `report`, or `--resume`",
        (),
        flip_bits,
    ),
    Attack::new("kill -9", "`reproduce` is killed, and so is what resumes it", (), kill),
    Attack::new("two processes", "`reproduce` of two figures and of one of them", (), set_two_at_it),
];

const STUDY: [&str; 7] = ["reproduce", "tsq", "--quick", "--figure", "16", "--json", "--quiet"];
const FOLDER: &str = "results/tsq-quick";

/// A figure of a study, with two short runs.
pub struct Reproduced {
    place: Place,
    /// The tables of an undisturbed evaluation.
    expected: Vec<Vec<u8>>,
    /// The claims about it.
    claims: Vec<u8>,
    long: Duration,
}

impl Victim for Reproduced {
    type Promise = ();
}

impl Reproduced {
    pub fn new() -> Self {
        let place = Place::new();
        let began = Instant::now();
        let output = place.command(&STUDY).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let long = began.elapsed();
        fs::rename(place.path("results"), place.path("undisturbed")).unwrap();
        let expected = place.tables("undisturbed/tsq-quick/unresponsive");
        Self { place, expected, claims: output.stdout, long }
    }

    fn clear(&self) {
        drop(fs::remove_dir_all(self.place.path("results")));
    }

    fn ends(&self, arguments: &[&str]) -> Output {
        ends(&mut self.place.command(arguments))
    }

    fn resume(&self) -> Output {
        self.ends(&[&STUDY[..], &["--resume"]].concat())
    }

    /// Checks the files of an evaluation that has ended well.
    fn is_whole(&self, output: &Output) {
        assert!(output.stdout == self.claims, "other claims");
        assert!(self.place.tables(&format!("{FOLDER}/unresponsive")) == self.expected, "the tables differ");
        assert_eq!(self.names(FOLDER), self.names("undisturbed/tsq-quick"));
    }

    fn names(&self, folder: &str) -> Vec<PathBuf> {
        let folder = self.place.path(folder);
        files(&folder).into_iter().map(|path| path.strip_prefix(&folder).unwrap().to_owned()).collect()
    }
}

fn flip_bits(study: &mut Reproduced, assault: &mut Assault) {
    assault.repeat(|assault| {
        study.clear();
        copy(&study.place.path("undisturbed"), &study.place.path("results"));
        let damaged = flip(&files(&study.place.path(&format!("{FOLDER}/unresponsive"))), assault);
        let is_report = assault.below(2) == 0;
        let output =
            if is_report { study.ends(&["report", "tsq", "--quick", "--json"]) } else { study.resume() };
        let text = said(&output);
        match output.status.code() {
            Some(0) => study.is_whole(&output),
            Some(1) => assert!(is_named(&text, &damaged), "{}: {text}", damaged.display()),
            code => panic!("{}: {code:?}: {text}", damaged.display()),
        }
    });
}

fn kill(study: &mut Reproduced, assault: &mut Assault) {
    assault.repeat(|assault| {
        study.clear();
        killed(study.place.start(&STUDY), assault, study.long);
        while assault.below(3) > 0 {
            killed(study.place.start(&[&STUDY[..], &["--resume"]].concat()), assault, study.long);
        }
        let output = study.resume();
        assert!(output.status.success(), "{}", said(&output));
        study.is_whole(&output);
    });
}

/// The one of two figures has the locks of both from its start; the second one has computed nothing.
fn set_two_at_it(study: &mut Reproduced, assault: &mut Assault) {
    let both = [&STUDY[..], &["--figure", "15"]].concat();
    assault.repeat(|assault| {
        study.clear();
        let mut first = study.place.start(&both);
        let lock = study.place.path(&format!("{FOLDER}/unresponsive/.lock"));
        let until = Instant::now() + Duration::from_secs(120);
        while fs::metadata(&lock).map_or(0, |about| about.len()) == 0 {
            assert!(Instant::now() < until && first.try_wait().unwrap().is_none(), "the first has no lock");
            std::thread::sleep(Duration::from_millis(1));
        }
        let second = study.ends(&STUDY);
        let text = said(&second);
        assert_eq!(second.status.code(), Some(1), "{text}");
        assert!(text.contains(&format!("(process {},", first.id())), "{text}");
        killed(first, assault, study.long);
        let output = study.resume();
        assert!(output.status.success(), "{}", said(&output));
        assert!(study.place.tables(&format!("{FOLDER}/unresponsive")) == study.expected, "the tables differ");
    });
}
