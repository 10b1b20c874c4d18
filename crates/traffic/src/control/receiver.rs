//! The receiver's side of a session. The meter runs in a separate thread.

use super::{ControlError, Hello, LONGEST_REQUEST, Line, PROTOCOL, Reply, Request, Start, Waited, boot_id};
use crate::TrafficError;
use crate::meter::{Meter, MeterParams};
use crate::report::{MeterReport, Window};
use cutline_sys::now;
use cutline_sys::reactor::{LONGEST_WAIT, PollFd, PollFlags, wait};
use cutline_units::{Duration, Instant};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The interval at which the stop flag is checked.
const LOOK: Duration = Duration::from_millis(100);
/// The longest silence of a sender before and after the run.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest run.
const LONGEST_RUN: Duration = Duration::from_secs(7 * 86_400);
/// The largest distance of the run's zero from the present time.
const FARTHEST_ZERO: Duration = Duration::from_secs(60);
/// The largest number of flows.
const MOST_FLOWS: u32 = 100_000;
/// The shortest interval.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);

/// Serves senders, one at a time.
#[derive(Debug)]
pub struct Receiver {
    listener: TcpListener,
    data_port: u16,
}

/// The result of a session with a sender.
#[derive(Debug)]
pub struct Session {
    /// The sender's address and port.
    pub peer: SocketAddr,
    /// The planned duration of sending.
    pub until: Duration,
    /// The width of the intervals.
    pub interval: Option<Duration>,
    /// The measurements; `None` if the session ended before the run.
    pub report: Option<MeterReport>,
    /// The error that ended the session early.
    pub error: Option<ControlError>,
}

impl Receiver {
    /// Listens on `address` for senders. The traffic uses `data_port`; with 0 the kernel chooses a free port.
    ///
    /// # Errors
    /// Returns an error if the address is not available.
    pub fn bind(address: SocketAddr, data_port: u16) -> Result<Self, TrafficError> {
        let failed = |error| TrafficError::system(format!("cannot listen on {address}"))(error);
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener, data_port })
    }

    /// Returns the address and port on which the receiver listens.
    ///
    /// # Errors
    /// Returns an error if the system does not report the address.
    pub fn address(&self) -> Result<SocketAddr, TrafficError> {
        self.listener
            .local_addr()
            .map_err(TrafficError::system("cannot read the address of the listening socket"))
    }

    /// Waits for the next sender and serves it to the end. Returns `None` if `stop` is set before a sender connects.
    ///
    /// # Errors
    /// Returns an error if the receiver cannot accept connections. An error of a session is in the [`Session`].
    pub fn session(&self, stop: &AtomicBool) -> Result<Option<Session>, TrafficError> {
        while !stop.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
            // An error needs no handling: the loop checks the flag and the listener in any case.
            let _ready = wait(&mut fds, LONGEST_WAIT);
            match self.listener.accept() {
                Ok((stream, peer)) => return Ok(Some(self.serve(stream, peer, stop))),
                Err(error) if super::is_timeout(&error) => {}
                // The sender closed the connection before it was accepted.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(TrafficError::system("cannot listen for senders")(error)),
            }
        }
        Ok(None)
    }

    fn serve(&self, stream: std::net::TcpStream, peer: SocketAddr, stop: &AtomicBool) -> Session {
        let mut session = Session { peer, until: Duration::ZERO, interval: None, report: None, error: None };
        let line = stream.set_nonblocking(false).and_then(|()| Line::new(stream));
        let done = line.map_err(ControlError::Broken).and_then(|mut line| {
            let hello = Hello { cutline_tg: PROTOCOL, boot_id: boot_id() };
            line.send(&Reply::Hello(hello)).map_err(ControlError::Broken)?;
            let Some(Request::Start(start)) = answer(&mut line, PATIENCE, stop)? else {
                return Err(ControlError::Unexpected("`finish` before `start`".to_owned()));
            };
            self.measure(&mut line, start, stop, &mut session)
        });
        session.error = done.err();
        session
    }

    fn measure(
        &self,
        line: &mut Line,
        start: Start,
        stop: &AtomicBool,
        session: &mut Session,
    ) -> Result<(), ControlError> {
        let refuse = |line: &Line, why: String| {
            // The sender may be gone already.
            let _gone = line.send(&Reply::Refused(why.clone()));
            ControlError::Unexpected(why)
        };
        let (zero, params) = check(start).map_err(|why| refuse(line, why))?;
        let local = line.stream().local_addr().map_err(ControlError::Broken)?;
        let data = SocketAddr::new(local.ip(), self.data_port);
        let meter = Meter::bind(data, params).map_err(|error| refuse(line, error.to_string()))?;
        let until = Duration::from_nanos(start.until_ns);
        (session.until, session.interval) = (until, params.interval);
        line.send(&Reply::Ready { port: meter.address().port() }).map_err(ControlError::Broken)?;
        let ended = AtomicBool::new(false);
        let last = until + PATIENCE;
        let (answered, report) = thread::scope(|scope| {
            let meter = scope.spawn(|| meter.run(zero, last, &ended));
            let patience = zero.saturating_add(last).saturating_since(now());
            let answered = answer(line, patience, stop);
            ended.store(true, Ordering::Relaxed);
            (answered, meter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let report = session.report.insert(report?);
        match answered? {
            // Without a request the receiver was stopped; the sender still gets the report.
            Some(Request::Finish) | None => {
                line.send(&Reply::Report(Box::new(report.clone()))).map_err(ControlError::Broken)
            }
            Some(_) => Err(ControlError::Unexpected("a second `start`".to_owned())),
        }
    }
}

/// Answers `clock` requests until another request arrives, and returns that one. Returns `None` if `stop` is set.
fn answer(line: &mut Line, patience: Duration, stop: &AtomicBool) -> Result<Option<Request>, ControlError> {
    let gone = || ControlError::Broken(std::io::ErrorKind::UnexpectedEof.into());
    let tired = now().saturating_add(patience);
    loop {
        match line.wait(LOOK).map_err(ControlError::Broken)? {
            _ if stop.load(Ordering::Relaxed) => return Ok(None),
            Waited::Nothing if now() < tired => continue,
            Waited::Nothing => return Err(ControlError::Unexpected(format!("no request within {patience}"))),
            Waited::End => return Err(gone()),
            Waited::Message => {}
        }
        let came_ns = now().as_nanos();
        match line.receive(LONGEST_REQUEST).map_err(ControlError::Broken)?.ok_or_else(gone)? {
            Request::Clock => {
                let left_ns = now().as_nanos();
                line.send(&Reply::Clock { came_ns, left_ns }).map_err(ControlError::Broken)?;
            }
            other => return Ok(Some(other)),
        }
    }
}

/// Checks the run that a sender asks for, and returns its zero and the meter's parameters.
fn check(start: Start) -> Result<(Instant, MeterParams), String> {
    let Start { flows, zero_ns, until_ns, interval_ns } = start;
    let zero = Instant::from_nanos(zero_ns);
    let away = Duration::from_nanos(zero_ns.abs_diff(now().as_nanos()));
    let interval = interval_ns.map(Duration::from_nanos);
    if !(1..=MOST_FLOWS).contains(&flows) {
        return Err(format!("flows = {flows}: must be 1..{MOST_FLOWS}"));
    }
    if away > FARTHEST_ZERO {
        return Err(format!("the run's zero is {away} from now: must be at most {FARTHEST_ZERO}"));
    }
    if until_ns > LONGEST_RUN.as_nanos() {
        return Err(format!("duration = {}: must be at most {LONGEST_RUN}", Duration::from_nanos(until_ns)));
    }
    if let Some(interval) = interval.filter(|interval| *interval < LEAST_INTERVAL) {
        return Err(format!("interval = {interval}: must be at least {LEAST_INTERVAL}"));
    }
    Ok((zero, MeterParams { flows, window: Window::ALL, interval }))
}
