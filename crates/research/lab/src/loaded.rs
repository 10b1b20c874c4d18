//! A receiver whose processor other work loads (QUANTA section 4.2, table 3).
//!
//! ```text
//! sender's namespace                receiver's namespace
//! QosUdpSocket  ═══ virtual pair ═══  QosUdpSocket      one processor: the receiving thread, and decoders
//! ```
//!
//! The flows of a scenario are measured one after the other, each for the whole duration, so that a busy machine disturbs them alike. The
//! name of a flow defines how its receiver is run: `managed-4` has a protected thread ([`ProtectedThread`]) and four decoders beside it,
//! `unmanaged-0` has neither. A link of the scenario has no rate and no queue here: it is a pair of virtual interfaces.

use crate::LabError;
use crate::connections::{
    self, Arrived, Connections, Course, GLANCE, LISTEN, LONGEST, Placement, Sent, is_temporary, non_blocking,
    of, sink_options, standard, system,
};
use crate::programs::decoder::{EncodedFilm, pin, processors};
use crate::reader::{FIRST_PORT, QOS_PORT};
use crate::routed::{Carried, connected, connection, rate_of, rows};
use crate::threads::punctual;
use cutline_quality::spec::{Interval, Measure, Region, Specification};
use cutline_results::{DistributionRow, RunResult, TimingRow};
use cutline_scenario::Scenario;
use cutline_sim::qos::{QosConnection, QosRecord};
use cutline_sim::{FlowSpec, SimulationSettings};
use cutline_socket::{ProtectedThread, QosError, QosUdpListener};
use cutline_sys::namespace::{Namespace, sweep};
use cutline_sys::now;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_sys::thread::joined;
use cutline_units::{Duration, Histogram, Instant, Streams};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tempfile::TempDir;

/// Names of values in the table of distributions: one for each flow.
const IN_REGION: &str = "in_region_percent";
const DECODED: &str = "decoders_percent";

/// Addresses of both hosts. No other namespace has a route to them.
const SOURCE: Ipv4Addr = Ipv4Addr::new(198, 18, 35, 1);
const SINK: Ipv4Addr = Ipv4Addr::new(198, 18, 35, 2);
/// Time for the start of decoders, and for the ends of a connection to agree.
const LEAD: Duration = Duration::from_millis(500);
/// The largest 99th percentile of the lateness of the sender's messages.
const LATENESS: Duration = Duration::from_millis(2);
/// Quantile of the delays of an interval that has to be inside the region.
const DELAY_QUANTILE: f64 = 0.99;

/// Configuration of a flow's receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Receiving {
    is_protected: bool,
    decoders: u32,
}

impl Receiving {
    /// # Errors
    /// When the name has no such form.
    fn of(flow: &str) -> Result<Self, LabError> {
        let refuse = || LabError::NoRouters {
            place: format!("flow {flow}"),
            what: "a name that does not say how its receiver is run",
            instead: "use managed-N or unmanaged-N, with the number of decoders, 0 to 16",
        };
        let (kind, decoders) = flow.rsplit_once('-').ok_or_else(refuse)?;
        let decoders: u32 = decoders.parse().map_err(|_| refuse())?;
        match kind {
            _ if decoders > 16 => Err(refuse()),
            "managed" => Ok(Self { is_protected: true, decoders }),
            "unmanaged" => Ok(Self { is_protected: false, decoders }),
            _ => Err(refuse()),
        }
    }
}

/// The hosts and their processors.
struct Bed {
    sender: Namespace,
    receiver: Namespace,
    /// The processor of the receiver, and those of the sender.
    receiving: usize,
    sending: Vec<usize>,
    film: EncodedFilm,
    _folder: TempDir,
}

impl Bed {
    fn new() -> Result<Self, LabError> {
        static RUNS: AtomicU32 = AtomicU32::new(1);
        let run = RUNS.fetch_add(1, Ordering::Relaxed);
        let failed = |source| LabError::File { path: std::env::temp_dir(), source };
        let folder = tempfile::Builder::new().prefix("cutline-").tempdir().map_err(failed)?;
        let film = EncodedFilm::make(folder.path()).map_err(|error| LabError::Program(Box::new(error)))?;
        let sender = Namespace::create(&format!("loads{run}"))?;
        let receiver = Namespace::create(&format!("loaded{run}"))?;
        sender.ip_batch(&format!(
            "link add host type veth peer name host netns {}\naddress add {SOURCE}/30 dev host\nlink set host up\n",
            receiver.name()
        ))?;
        receiver.ip_batch(&format!("address add {SINK}/30 dev host\nlink set host up\n"))?;
        let mut sending = processors().map_err(failed)?;
        let receiving = sending.pop().unwrap_or(0);
        if sending.is_empty() {
            sending.push(receiving);
        }
        Ok(Self { sender, receiver, receiving, sending, film, _folder: folder })
    }
}

/// Checks whether this laboratory supports a scenario, without running it.
///
/// # Errors
/// The first feature that it does not have.
pub fn check(scenario: &Scenario) -> Result<(), LabError> {
    let network = scenario.network()?;
    network.flows().iter().enumerate().try_for_each(|(index, flow)| {
        Receiving::of(&flow.name)?;
        planned(scenario, flow, index, scenario.seed).map(drop)
    })
}

/// The connection in the place of a flow, by the flow's number.
fn planned(scenario: &Scenario, flow: &FlowSpec, index: usize, seed: u64) -> Result<Connections, LabError> {
    let network = scenario.network()?;
    let group = &scenario.flows[flow.group.0 as usize];
    let connection = connection(flow, group, &network, Streams::new(seed))?;
    let connection = connection.ok_or_else(|| LabError::NoRouters {
        place: format!("flow {}", flow.name),
        what: "a receiver of something else than datagrams with a specification",
        instead: "set protocol = \"udp\" and [flow.qos.send]",
    })?;
    // Flows are measured one after the other.
    let connection = QosConnection { start: Instant::ZERO, stop: Instant::FAR_FUTURE, ..connection };
    let connections = Connections::from([(index, connection)]);
    connections::check(&connections, network.flows())?;
    Ok(connections)
}

/// Measures the flows of a scenario, one after the other. Setting `cancel` from another thread ends the run early.
///
/// # Errors
/// When the scenario is not supported, ffmpeg is not installed, the process lacks a privilege, or the run was interrupted.
pub fn run(scenario: &Scenario, seed: u64, cancel: &AtomicBool) -> Result<RunResult, LabError> {
    check(scenario)?;
    sweep()?;
    cutline_socket::start()
        .map_err(|error| cutline_sys::SysError::new("a thread cannot be started", error))?;
    let (bed, network, settings) = (Bed::new()?, scenario.network()?, scenario.settings(seed));
    let mut carried = Carried {
        measured: Vec::new(),
        extra: Vec::new(),
        lateness: Histogram::default(),
        failed: 0,
        overflowed: 0,
    };
    for (index, flow) in network.flows().iter().enumerate() {
        let connections = planned(scenario, flow, index, seed)?;
        let connection = &connections[&index];
        let measured = measure(&bed, flow, index, &connections, &settings, cancel)?;
        carried.lateness.merge(&measured.lateness);
        carried.measured.push(connected(flow, &settings, &measured.record));
        let inside = share_inside(&connection.send, &measured.record, &settings);
        carried.extra.push(DistributionRow::single(&flow.name, IN_REGION, 100.0 * inside));
        carried.extra.push(DistributionRow::single(&flow.name, DECODED, 100.0 * measured.decoded));
        if cancel.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
    }
    bed.sender.check()?;
    bed.receiver.check()?;
    let late = carried.lateness.quantile(0.99).unwrap_or_default();
    let timing = TimingRow {
        timing_ok: late <= LATENESS,
        problem: if late <= LATENESS {
            "".into()
        } else {
            format!("1 % of the messages left more than {late} late (bound {LATENESS})").into()
        },
        source_lateness_p99_ms: Some(late.as_millis_f64()),
        ..TimingRow::default()
    };
    Ok(rows(scenario, &network, &settings, carried, &[], timing))
}

/// Measurements of a flow.
struct LoadedMeasurement {
    record: QosRecord,
    lateness: Histogram,
    /// The processor time of the decoders, as a share of one processor.
    decoded: f64,
}

fn measure(
    bed: &Bed,
    flow: &FlowSpec,
    index: usize,
    connections: &Connections,
    settings: &SimulationSettings,
    cancel: &AtomicBool,
) -> Result<LoadedMeasurement, LabError> {
    let (how, connection) = (Receiving::of(&flow.name)?, &connections[&index]);
    let program = |error| LabError::Program(Box::new(error));
    let decoders = bed.film.decode(how.decoders, bed.receiving).map_err(program)?;
    let zero = now() + LEAD;
    let ended = || cancel.load(Ordering::Relaxed);
    let course = Course { zero, end: zero + settings.duration, ended: &ended };
    let sink = SocketAddrV4::new(SINK, QOS_PORT);
    let place = |_: usize| Placement {
        source: SocketAddrV4::new(SOURCE, FIRST_PORT),
        sink,
        share: None,
        most: rate_of(&flow.app),
    };
    let listener = bed.receiver.within(|| {
        let listener = QosUdpListener::bind(sink, &sink_options(connection));
        listener
            .and_then(|listener| non_blocking(listener).map_err(system("cannot listen")))
            .map_err(of(connection))
    })??;
    let before = decoders.processor_time().map_err(program)?;
    let began = now();
    let (sent, arrived) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let receive = || {
                on(&[bed.receiving], || receive(&listener, course, how.is_protected)).map_err(of(connection))
            };
            bed.receiver.within(receive)
        });
        let sender = scope.spawn(|| {
            let send = || {
                let send = || {
                    punctual(|| connections::send(connections, &place, Streams::new(settings.seed), course))
                };
                on(&bed.sending, || Ok(send())).map_err(of(connection))
            };
            bed.sender.within(send)
        });
        (joined(sender), joined(receiver))
    });
    let seconds = now().saturating_since(began).as_secs_f64();
    let decoded = (decoders.processor_time().map_err(program)? - before) / seconds;
    drop(decoders);
    let (sent, arrived): (Vec<Sent>, Arrived) = (sent???, arrived??);
    let sent = sent.into_iter().next().unwrap_or_default();
    let lateness = sent.lateness.clone();
    Ok(LoadedMeasurement { record: connections::record(sent, arrived, course), lateness, decoded })
}

/// Runs a function on some processors, on the calling thread.
fn on<T>(processors: &[usize], work: impl FnOnce() -> Result<T, QosError>) -> Result<T, QosError> {
    pin(processors).map_err(system("cannot choose a processor"))?;
    work()
}

/// Receives the messages of a connection until the end of the run. Their times are those at which the application has them.
fn receive(listener: &QosUdpListener, course: Course<'_>, is_protected: bool) -> Result<Arrived, QosError> {
    let failed = system("cannot receive");
    let protected = if is_protected { Some(ProtectedThread::new().map_err(&failed)?) } else { None };
    let mut arrived = Arrived::default();
    let socket = loop {
        if course.is_over() {
            return Ok(arrived);
        }
        match listener.accept() {
            Ok((socket, _)) => break socket,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(&mut [PollFd::new(listener, PollFlags::IN)], LISTEN).map_err(&failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
    };
    socket.set_read_timeout(Some(standard(GLANCE))).map_err(&failed)?;
    let mut buffer = vec![0; LONGEST];
    while !course.is_over() {
        match socket.recv(&mut buffer) {
            Ok(length) => {
                let number = buffer[..length].first_chunk();
                arrived.messages.extend(number.map(|number| (u64::from_be_bytes(*number), now())));
            }
            Err(error) if is_temporary(error.kind()) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    drop(protected);
    Ok(arrived)
}

/// Returns the share of the measured intervals in which the delivery was inside the region of operation: the rate, the loss, and the delay
/// of all but 1 % of the messages. Messages belong to the interval in which they were sent.
fn share_inside(send: &Specification, record: &QosRecord, settings: &SimulationSettings) -> f64 {
    let region = Region::new(send);
    let (from, width) = (settings.window.from, settings.interval);
    let count = (settings.window.length().as_nanos() / width.as_nanos()).max(1);
    let is_inside = |number: u64| {
        let window = from + width * number..from + width * (number + 1);
        let messages = record.messages.iter().filter(|message| window.contains(&message.sent));
        let (mut sent, mut delays) = (0_u64, Vec::new());
        for message in messages {
            sent += 1;
            delays.extend(message.delay());
        }
        delays.sort_unstable();
        let mut interval = Interval::new(region.clone());
        interval.observe(Measure::Rate, delays.len() as f64 / width.as_secs_f64());
        let missing = sent.saturating_sub(delays.len() as u64);
        interval.observe(Measure::Loss, if sent == 0 { 0.0 } else { 100.0 * missing as f64 / sent as f64 });
        let at = (delays.len() as f64 * DELAY_QUANTILE) as usize;
        if let Some(delay) = delays.get(at.min(delays.len().saturating_sub(1))) {
            interval.observe(Measure::Delay, delay.as_millis_f64());
        }
        interval.is_inside()
    };
    (0..count).filter(|number| is_inside(*number)).count() as f64 / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_sim::Window;
    use cutline_sim::qos::Passage;

    #[test]
    fn names_say_how_receivers_are_run() {
        assert_eq!(Receiving::of("managed-4").unwrap(), Receiving { is_protected: true, decoders: 4 });
        assert_eq!(Receiving::of("unmanaged-0").unwrap(), Receiving { is_protected: false, decoders: 0 });
        for name in ["managed", "managed-x", "managed-17", "video-1"] {
            assert!(Receiving::of(name).unwrap_err().to_string().contains("managed-N"), "{name}");
        }
    }

    #[test]
    fn an_interval_is_inside_if_rate_delay_and_loss_are() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let window = Window { from: at(0), until: at(2000) };
        let settings = SimulationSettings {
            seed: 1,
            duration: Duration::from_secs(2),
            window,
            interval: Duration::from_millis(500),
        };
        let send = Specification {
            min_rate: Some(18.0),
            max_rate: Some(20.0),
            max_delay: Some(Duration::from_millis(20)),
            loss: Some(5.0),
            ..Specification::default()
        };
        // Ten in each half second; in the second interval one is late, in the third one is lost.
        let message = |number: u64| {
            let delay = if number == 15 { 30 } else { 1 };
            let sent = at(number * 50);
            let arrived = (number != 25).then_some(sent + Duration::from_millis(delay));
            Passage { made: sent, sent, arrived, bytes: 100 }
        };
        let record = QosRecord { messages: (0..40).map(message).collect(), ..QosRecord::default() };
        assert_eq!(share_inside(&send, &record, &settings), 0.5);
    }
}
