//! DIRM: a Slideshow client asks a server for pictures of 18 to 58 KB over CORBA (QoSockets section III.C). Both are programs of
//! `experiments/qsock/programs` over omniORB, and are built here.

use super::child::{Child, ProgramError, of_file};
use cutline_sys::namespace::Namespace;
use cutline_units::{Duration, Instant};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time;

/// The programs' sources.
const SOURCES: [(&str, &str); 4] = [
    ("slideshow.idl", include_str!("../../testbed-programs/slideshow.idl")),
    ("picture.h", include_str!("../../testbed-programs/picture.h")),
    ("server.cc", include_str!("../../testbed-programs/server.cc")),
    ("client.cc", include_str!("../../testbed-programs/client.cc")),
];
/// Time that a program may take to be built, and to start.
const BUILD: time::Duration = time::Duration::from_secs(300);
const START: time::Duration = time::Duration::from_secs(20);
/// Time that a call of the client may take.
const CALL: time::Duration = time::Duration::from_secs(10);
/// Tolerance for a picture because of rounding.
const GRACE: time::Duration = time::Duration::from_secs(10);

/// The programs.
#[derive(Clone, Debug)]
pub struct Slideshow {
    folder: PathBuf,
}

/// Requests of the client.
#[derive(Clone, Copy, Debug)]
pub struct Requests {
    /// Number of requested pictures per second.
    pub rate: f64,
    /// For how long.
    pub duration: Duration,
}

/// Request for a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Slide {
    /// Its number in the repository.
    pub number: u32,
    /// Time of the request, by the host's monotonic clock.
    pub asked: Instant,
    /// Time of the answer or the failure.
    pub answered: Instant,
    /// Its bytes.
    pub bytes: u64,
    /// Outcome of the request.
    pub outcome: Outcome,
}

/// Outcome of a picture's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The picture came as it is in the repository.
    Intact,
    /// The picture came with other bytes.
    Damaged,
    /// The picture did not come: the name of the exception of CORBA.
    Failed(String),
}

impl Slideshow {
    /// Builds the programs in a folder. It needs omniidl, omniORB's library and a C++ compiler.
    ///
    /// # Errors
    /// When one of them is missing, or fails.
    pub fn build(folder: &Path) -> Result<Self, ProgramError> {
        for (name, text) in SOURCES {
            let path = folder.join(name);
            fs::write(&path, text).map_err(of_file(&path))?;
        }
        let run = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).current_dir(folder);
            Child::run(&mut command, &folder.join("build"), BUILD).map(drop)
        };
        run("omniidl", &["-bcxx", "slideshow.idl"])?;
        for (program, source) in [("slideshow-server", "server.cc"), ("slideshow-client", "client.cc")] {
            let libraries = ["-lomniORB4", "-lomnithread", "-lpthread"];
            let what = ["-O1", "-o", program, source, "slideshowSK.cc"];
            run("c++", &[&what[..], &libraries[..]].concat())?;
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// Starts the server, and waits until it listens.
    ///
    /// # Errors
    /// When it does not start.
    pub fn serve(
        &self,
        at: SocketAddr,
        namespace: Option<&Namespace>,
        log: &Path,
    ) -> Result<Server, ProgramError> {
        let mut command = Command::new(self.folder.join("slideshow-server"));
        command.args(["-ORBendPoint", &format!("giop:tcp:{at}")]);
        let mut child = Child::start(&mut command, namespace, log)?;
        child.wait_for("ready", START)?;
        Ok(Server { _child: child })
    }

    /// Starts the client, which asks the server at this address, or the one behind a gateway there.
    ///
    /// # Errors
    /// When it does not start.
    pub fn ask(
        &self,
        at: SocketAddr,
        requests: Requests,
        namespace: Option<&Namespace>,
        log: &Path,
    ) -> Result<Client, ProgramError> {
        let mut command = Command::new(self.folder.join("slideshow-client"));
        let seconds = requests.duration.as_secs_f64();
        command.args([at.to_string(), requests.rate.to_string(), seconds.to_string()]);
        command.args(["-ORBclientCallTimeOutPeriod", &CALL.as_millis().to_string()]);
        let child = Child::start(&mut command, namespace, log)?;
        Ok(Client { child, limit: time::Duration::from_secs_f64(seconds) + CALL + GRACE })
    }
}

/// A server that runs until this is dropped.
#[derive(Debug)]
pub struct Server {
    _child: Child,
}

/// A client that asks.
#[derive(Debug)]
pub struct Client {
    child: Child,
    limit: time::Duration,
}

impl Client {
    /// Waits for its end. Returns the result of each picture.
    ///
    /// # Errors
    /// When it fails, or takes too long.
    pub fn finish(mut self) -> Result<Vec<Slide>, ProgramError> {
        self.child.succeed(self.limit)?;
        let text = self.child.output()?;
        let wrong = |line: &str| ProgramError::Output {
            program: "slideshow-client".to_owned(),
            what: format!("{line:?}"),
        };
        text.lines().map(|line| slide(line).ok_or_else(|| wrong(line))).collect()
    }
}

/// A line of the client: number, time of the request, time of the answer, bytes, outcome.
fn slide(line: &str) -> Option<Slide> {
    let mut words = line.split_whitespace();
    let mut next = || words.next();
    let number = next()?.parse().ok()?;
    let mut at = || {
        let seconds: f64 = next()?.parse().ok()?;
        (0.0..1e9).contains(&seconds).then(|| Instant::from_nanos((seconds * 1e9) as u64))
    };
    let (asked, answered) = (at()?, at()?);
    let bytes = next()?.parse().ok()?;
    let outcome = match next()? {
        "intact" => Outcome::Intact,
        "damaged" => Outcome::Damaged,
        exception => Outcome::Failed(exception.to_owned()),
    };
    next().is_none().then_some(Slide { number, asked, answered, bytes, outcome })
}

impl Slide {
    /// Returns the response time.
    pub fn response(&self) -> Duration {
        self.answered.saturating_since(self.asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_slide() {
        let found = slide("7 100.5 100.75 26248 intact").unwrap();
        assert_eq!((found.number, found.bytes, found.outcome.clone()), (7, 26248, Outcome::Intact));
        assert_eq!(found.response(), Duration::from_millis(250));
        assert_eq!(slide("1 1 2 0 TRANSIENT").unwrap().outcome, Outcome::Failed("TRANSIENT".to_owned()));
        for wrong in
            ["", "1 2 3 4", "1 -2 3 4 intact", "1 2 3 4 intact more", "x 2 3 4 intact", "1 nan 3 4 intact"]
        {
            assert_eq!(slide(wrong), None, "{wrong}");
        }
    }
}
