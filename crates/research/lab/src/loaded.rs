//! A receiver whose processor other work loads (QUANTA section 4.2, table 3).
//!
//! ```text
//! sender's namespace             receiver's namespace
//! QoS socket  ═══ virtual pair ═══  QoS socket      one processor: the receiving thread, and decoders
//! ```
//!
//! The flows of a scenario are measured one after the other, each for the whole duration, so that a busy machine disturbs them alike. The
//! name of a flow defines its carrier and how its receiver is run: `managed-4` has a protected thread ([`ProtectedThread`]) and four decoders
//! beside it, `unmanaged-0` has neither. Both are datagrams of UDP. `tcp-managed-4` is a stream of TCP, and `direct-managed-4` has its messages
//! in frames below IP. A link of the scenario has no rate and no queue here: it is a pair of virtual interfaces.

use crate::LabError;
use crate::connections::{
    self, Arrived, Connections, Course, MessageSocket, Placement, Sent, accepted, non_blocking, of,
    sink_options, system,
};
use crate::programs::decoder::{EncodedFilm, pin, processors};
use crate::reader::{FIRST_PORT, QOS_PORT};
use crate::routed::{Carried, ManagedStream, connected, connection, rate_of, rows};
use crate::threads::punctual;
use cutline_quality::spec::{Interval, Measure, Region, Specification};
use cutline_results::{DistributionRow, RunResult, TimingRow};
use cutline_scenario::Scenario;
use cutline_sim::qos::{QosConnection, QosRecord};
use cutline_sim::{FlowSpec, SimulationSettings};
use cutline_socket::{DirectAddress, ProtectedThread, QosDirectListener, QosError, QosUdpListener};
use cutline_sys::namespace::{Namespace, sweep};
use cutline_sys::packet::LinkAddress;
use cutline_sys::thread::joined;
use cutline_sys::{SysError, interface, now};
use cutline_units::{Duration, Histogram, Instant, Streams};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tempfile::TempDir;

/// Names of values in the table of distributions: one for each flow.
const IN_REGION: &str = "in_region_percent";
const DECODED: &str = "decoders_percent";

/// Addresses of both hosts. No other namespace has a route to them.
const SOURCE: Ipv4Addr = Ipv4Addr::new(198, 18, 35, 1);
const SINK: Ipv4Addr = Ipv4Addr::new(198, 18, 35, 2);
/// The receiver's address on the link: locally administered.
const SINK_LINK: LinkAddress = [0x02, 0, 0, 0, 0x35, 0x02];
/// The interface of either host.
const HOST: &str = "host";
/// Address at which a flow's receiver listens.
const SINK_PLACE: SocketAddrV4 = SocketAddrV4::new(SINK, QOS_PORT);
/// The largest number of decoders beside a receiver. Each is a process with some 30 MB.
const MOST_DECODERS: u32 = 64;
/// Number of ports of frames.
const MOST_PORTS: usize = 10_000;
/// Time for the start of decoders, and for the ends of a connection to agree.
const LEAD: Duration = Duration::from_millis(500);
/// The largest 99th percentile of the lateness of the sender's messages.
const LATENESS: Duration = Duration::from_millis(2);
/// Quantile of the delays of an interval that has to be inside the region.
const DELAY_QUANTILE: f64 = 0.99;

/// Carrier of a flow's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadedCarrier {
    /// Datagrams of UDP.
    Datagrams,
    /// Frames below IP.
    Frames,
    /// A stream of TCP.
    Stream,
}

/// Configuration of a flow's receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Receiving {
    carrier: LoadedCarrier,
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
            instead: "use managed-N or unmanaged-N, with the number of decoders, 0 to 64, behind tcp- or direct- for a stream or frames",
        };
        let (carrier, receiver) = match flow.split_once('-') {
            Some(("tcp", receiver)) => (LoadedCarrier::Stream, receiver),
            Some(("direct", receiver)) => (LoadedCarrier::Frames, receiver),
            _ => (LoadedCarrier::Datagrams, flow),
        };
        let (kind, decoders) = receiver.rsplit_once('-').ok_or_else(refuse)?;
        let decoders: u32 = decoders.parse().map_err(|_| refuse())?;
        match kind {
            _ if decoders > MOST_DECODERS => Err(refuse()),
            "managed" => Ok(Self { carrier, is_protected: true, decoders }),
            "unmanaged" => Ok(Self { carrier, is_protected: false, decoders }),
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
        let link = SINK_LINK.map(|octet| format!("{octet:02x}")).join(":");
        let lines = format!(
            "link add {HOST} type veth peer name {HOST} address {link} netns {}\n\
             address add {SOURCE}/30 dev {HOST}\nlink set {HOST} up\n",
            receiver.name()
        );
        sender.ip_batch_towards(&[&receiver], &lines)?;
        receiver.ip_batch(&format!("address add {SINK}/30 dev {HOST}\nlink set {HOST} up\n"))?;
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
        let how = Receiving::of(&flow.name)?;
        FlowApplication::of(scenario, flow, (index, how.carrier), scenario.seed).map(drop)
    })
}

/// Application of a flow: both ends.
enum FlowApplication {
    /// Messages over UDP: the connection in the place of the flow, by the flow's number.
    Datagrams(Connections),
    /// Messages in frames below IP, to a port of their own: the socket of the flow before may be open for a moment.
    Frames { connection: Box<QosConnection>, port: u16 },
    /// Blocks over TCP.
    Stream(Box<ManagedStream>),
}

/// Receives in the namespace in which its socket was opened, until the end of the run.
type Receive<'a> = Box<dyn FnOnce(Course<'_>) -> Result<Arrived, LabError> + Send + 'a>;

impl FlowApplication {
    /// Returns the application of a flow, by the flow's number and carrier.
    ///
    /// # Errors
    /// When the flow has another transport, no specification, or parameters that sockets do not have.
    fn of(
        scenario: &Scenario,
        flow: &FlowSpec,
        (index, carrier): (usize, LoadedCarrier),
        seed: u64,
    ) -> Result<Self, LabError> {
        let network = scenario.network()?;
        let group = &scenario.flows[flow.group.0 as usize];
        let (place, streams) = (format!("flow {}", flow.name), Streams::new(seed));
        if carrier == LoadedCarrier::Stream {
            let stream = ManagedStream::of(flow, group, streams)?.ok_or(LabError::NoRouters {
                place,
                what: "a receiver named tcp- of something else than a stream with a specification",
                instead: "set protocol = \"tcp\" and [flow.qos.send]",
            })?;
            // Flows are measured one after the other.
            return Ok(Self::Stream(Box::new(stream.throughout())));
        }
        let connection = connection(flow, group, &network, streams)?.ok_or(LabError::NoRouters {
            place,
            what: "a receiver of something else than datagrams with a specification",
            instead: "set protocol = \"udp\" and [flow.qos.send], or begin the name with tcp-",
        })?;
        let connection = QosConnection { start: Instant::ZERO, stop: Instant::FAR_FUTURE, ..connection };
        let connections = Connections::from([(index, connection.clone())]);
        connections::check(&connections, network.flows())?;
        let port = QOS_PORT + (index % MOST_PORTS) as u16;
        let frames = Self::Frames { connection: Box::new(connection), port };
        Ok(if carrier == LoadedCarrier::Frames { frames } else { Self::Datagrams(connections) })
    }

    /// Specification of the sending end.
    fn specification(&self) -> &Specification {
        match self {
            Self::Datagrams(connections) => &only(connections).send,
            Self::Frames { connection, .. } => &connection.send,
            Self::Stream(stream) => stream.specification(),
        }
    }

    /// Listens, in the namespace of the calling thread. Returns the function that receives.
    ///
    /// # Errors
    /// When the socket cannot be opened.
    fn listen(&self) -> Result<Receive<'_>, LabError> {
        let failed = system("cannot listen");
        let receiving: Receive<'_> = match self {
            Self::Datagrams(connections) => {
                let connection = only(connections);
                let listener = QosUdpListener::bind(SINK_PLACE, &sink_options(connection))
                    .and_then(|listener| non_blocking(listener).map_err(failed))
                    .map_err(of(connection))?;
                Box::new(move |course: Course<'_>| {
                    let accept = || listener.accept().map(|(socket, _)| socket);
                    receive(&listener, accept, course).map_err(of(connection))
                })
            }
            Self::Frames { connection, port } => {
                let listener = QosDirectListener::bind(HOST, *port, &sink_options(connection))
                    .map_err(of(connection))?;
                listener.set_nonblocking(true).map_err(failed).map_err(of(connection))?;
                Box::new(move |course: Course<'_>| {
                    let accept = || listener.accept().map(|(socket, _)| socket);
                    receive(&listener, accept, course).map_err(of(connection))
                })
            }
            Self::Stream(stream) => {
                let listener = stream.listen(SINK_PLACE)?;
                Box::new(move |course: Course<'_>| stream.take(&listener, course))
            }
        };
        Ok(receiving)
    }

    /// Sends until the end of the run, in the namespace of the calling thread. `most` is the largest number of messages per second.
    ///
    /// # Errors
    /// When the connection cannot be made, or breaks.
    fn send(&self, most: Option<f64>, streams: Streams, course: Course<'_>) -> Result<Sent, LabError> {
        let source = SocketAddrV4::new(SOURCE, FIRST_PORT);
        let place = |_: usize| Placement { source, sink: SINK_PLACE, share: None, most };
        match self {
            Self::Datagrams(connections) => {
                let sent = connections::send(connections, &place, streams, course)?;
                Ok(sent.into_iter().next().unwrap_or_default())
            }
            Self::Frames { connection, port } => {
                let number = interface::index(HOST)?;
                let to = DirectAddress { interface: number, link: SINK_LINK, port: *port };
                connections::send_in_frames(connection, to, most, streams, course)
            }
            Self::Stream(stream) => stream.write(&place(0), course),
        }
    }
}

/// Returns the connection of a flow that is measured alone.
fn only(connections: &Connections) -> &QosConnection {
    connections.values().next().expect("a flow has a connection")
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
        let how = Receiving::of(&flow.name)?;
        let application = FlowApplication::of(scenario, flow, (index, how.carrier), seed)?;
        let measured = measure(&bed, flow, (how, &application), &settings, cancel)?;
        carried.lateness.merge(&measured.lateness);
        carried.measured.push(connected(flow, &settings, &measured.record));
        let inside = share_inside(application.specification(), &measured.record, &settings);
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
    (how, application): (Receiving, &FlowApplication),
    settings: &SimulationSettings,
    cancel: &AtomicBool,
) -> Result<LoadedMeasurement, LabError> {
    let program = |error| LabError::Program(Box::new(error));
    let decoders = bed.film.decode(how.decoders, bed.receiving).map_err(program)?;
    let zero = now() + LEAD;
    let ended = || cancel.load(Ordering::Relaxed);
    let course = Course { zero, end: zero + settings.duration, ended: &ended };
    let receive = bed.receiver.within(|| application.listen())??;
    let before = decoders.processor_time().map_err(program)?;
    let began = now();
    let (sent, arrived) = std::thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let receive = || protected(how.is_protected, || receive(course));
            bed.receiver.within(|| on(&[bed.receiving], receive))
        });
        let sender = scope.spawn(|| {
            let (most, streams) = (rate_of(&flow.app), Streams::new(settings.seed));
            let send = || punctual(|| application.send(most, streams, course));
            bed.sender.within(|| on(&bed.sending, send))
        });
        (joined(sender), joined(receiver))
    });
    let seconds = now().saturating_since(began).as_secs_f64();
    let decoded = (decoders.processor_time().map_err(program)? - before) / seconds;
    drop(decoders);
    let (sent, arrived): (Sent, Arrived) = (sent??, arrived??);
    let lateness = sent.lateness.clone();
    Ok(LoadedMeasurement { record: connections::record(sent, arrived, course), lateness, decoded })
}

/// Runs a function on some processors, on the calling thread.
fn on<T>(processors: &[usize], work: impl FnOnce() -> Result<T, LabError>) -> Result<T, LabError> {
    pin(processors).map_err(|error| SysError::new("a thread cannot choose its processors", error))?;
    work()
}

/// Runs a function on the calling thread, which is protected meanwhile if that is wanted.
fn protected<T>(is_wanted: bool, work: impl FnOnce() -> Result<T, LabError>) -> Result<T, LabError> {
    let protection = is_wanted.then(ProtectedThread::new).transpose();
    let _protection = protection.map_err(|error| SysError::new("a thread cannot be protected", error))?;
    work()
}

/// Receives the messages of a connection until the end of the run. Their times are those at which the application has them.
fn receive<S: MessageSocket>(
    listener: &impl AsFd,
    accept: impl Fn() -> io::Result<S>,
    course: Course<'_>,
) -> Result<Arrived, QosError> {
    let failed = system("cannot receive");
    let mut arrived = Arrived::default();
    let Some(socket) = accepted(listener, accept, course).map_err(&failed)? else { return Ok(arrived) };
    let take = |message: &[u8], _: Instant| {
        let number = message.first_chunk();
        arrived.messages.extend(number.map(|number| (u64::from_be_bytes(*number), now())));
    };
    connections::receive(&socket, course, take).map_err(failed)?;
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
    fn names_select_the_mode_of_receivers() {
        let receiving = |carrier, is_protected, decoders| Receiving { carrier, is_protected, decoders };
        for (name, expected) in [
            ("managed-4", receiving(LoadedCarrier::Datagrams, true, 4)),
            ("unmanaged-0", receiving(LoadedCarrier::Datagrams, false, 0)),
            ("direct-managed-64", receiving(LoadedCarrier::Frames, true, 64)),
            ("tcp-unmanaged-1", receiving(LoadedCarrier::Stream, false, 1)),
        ] {
            assert_eq!(Receiving::of(name).unwrap(), expected, "{name}");
        }
        for name in [
            "managed",
            "managed-x",
            "managed-65",
            "video-1",
            "tcp-1",
            "udp-managed-1",
            "tcp-direct-managed-1",
        ] {
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
