//! `cutline gateway`: connections of unchanged programs over QoS sockets.

use crate::arguments::duration;
use crate::class_args::ClassArgs;
use crate::exit::Failure;
use crate::output_file::OutputFile;
use crate::screen::SCREEN;
use crate::service_output::ServiceOutput;
use crate::table::{Table, cells, number, titles};
use crate::{interrupt, output};
use clap::ValueEnum;
use cutline_bindings::Options;
use cutline_gateway::{
    ConnectionDocument, ConnectionTotals, Gateway, GatewayDocument, GatewayError, GatewayRoute, GatewaySide,
    Limits, Plan, ProgramTransport,
};
use cutline_params::Choice as _;
use cutline_service::{FlushResult, OutputQueue, OutputSender};
use cutline_socket::QosOptions;
use cutline_sys::address::{self, AddressError};
use cutline_sys::resources;
use cutline_text::Printable;
use cutline_traffic::control::Key;
use cutline_units::{DscpPool2, Duration, HintCodec as _};
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time;

/// Carry connections of unchanged programs over QoS sockets between two hosts
///
/// Programs connect to the near gateway. The near gateway connects to the far gateway over QoS sockets, and the far gateway connects to the
/// server. Any protocol over TCP or UDP is carried: each connection is one QoS connection, each datagram one message
/// (docs/guide/gateway.md). Ctrl-C ends the gateway and prints the deliveries.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Side of this gateway
    side: SideName,
    /// Carry TCP: the address to listen at (PORT or ADDRESS:PORT), and the address to connect to: the far gateway, or at the far gateway the
    /// server; may be repeated. Without an address only this host can connect
    #[arg(long, value_name = "LISTEN=HOST:PORT", value_parser = link, required_unless_present = "udp")]
    tcp: Vec<Ends>,
    /// Carry UDP, in the same way
    #[arg(long, value_name = "LISTEN=HOST:PORT", value_parser = link)]
    udp: Vec<Ends>,
    /// QoS specification of each connection, TOML or JSON (docs/guide/specification.md), with options of QoS sockets
    #[arg(long, value_name = "FILE", conflicts_with = "class")]
    spec: Option<PathBuf>,
    #[command(flatten)]
    class: ClassArgs,
    /// Option of QoS sockets (docs/guide/sockets.md), such as send.max-delay=100ms; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// File with the key that the other gateway has, too; other users must not be able to read it
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Largest number of connections at a time; further ones are refused
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_connections: u32,
    /// Largest number of connections of one address, or of one /64 network of IPv6; it does not hold for programs of this host, nor at a far
    /// gateway with a key [default: half of them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_per_address: Option<u32>,
    /// End an exchange of datagrams after this time without any
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    idle: Duration,
    /// Time that the server may take to accept a connection
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    connect_timeout: Duration,
    /// Exit after this time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Write deliveries to a file while they happen: a line of JSON for each interval and each message
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Replace the file of --record if it exists
    #[arg(long, requires = "record")]
    force: bool,
    /// Print one JSON document at the end instead of tables
    #[arg(long)]
    json: bool,
    /// Print only errors on stderr
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "Examples, for a web server on port 80 of the far host, and for video from a program that sends to port 5000:
  near$ cutline gateway near --tcp 8080=192.0.2.7:6000 --class web
  far$  cutline gateway far --tcp 192.0.2.7:6000=127.0.0.1:80 --class web --key-file key
  near$ cutline gateway near --udp 5000=192.0.2.7:6001 --spec video.toml --record near.jsonl
  near$ ffmpeg -re -i film.mp4 -f mpegts 'udp://127.0.0.1:5000?pkt_size=1280'
  far$  cutline gateway far --udp 192.0.2.7:6001=127.0.0.1:5000 --record far.jsonl --json
  near$ cutline gateway near --tcp 2809=192.0.2.7:6002 --set send.min-rate=1 --set send.size=60KB

Exit codes: 0 success; 1 a failure; 2 invalid arguments. Connections that fail are reported and counted.";

#[derive(Clone, Copy, ValueEnum)]
enum SideName {
    /// Programs connect to it
    Near,
    /// Connects to the server
    Far,
}

/// Ends of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ends {
    listen: SocketAddr,
    to: String,
}

/// Interval of checks for the end of the time and Ctrl-C.
const LOOK_EVERY: time::Duration = time::Duration::from_millis(50);
/// The most connections that are printed one by one.
const MOST_PRINTED: usize = 20;

impl From<GatewayError> for Failure {
    fn from(error: GatewayError) -> Self {
        Self::Failed(error.to_string())
    }
}

pub fn execute(args: &Args) -> Result<(), Failure> {
    let plan = args.plan()?;
    let record = args.record.as_deref().map(|file| open(file, args.force)).transpose()?;
    let stop = interrupt::cancel_flag("The deliveries are printed.".to_owned())?;
    // Each connection takes two, and each that negotiates one. Their buffers come and go.
    resources::allow_most_descriptors();
    resources::return_large_blocks();
    let out = ServiceOutput::new(Arc::clone(&stop));
    let recording = record.map(|file| {
        let queue = OutputQueue::with_capacity(RECORD_ROOM, &file, SCREEN, |lines: String| lines);
        (Recording { sender: queue.sender(), lines: String::new() }, queue)
    });
    let (recording, record): (Option<Box<dyn Write + Send>>, _) = match recording {
        Some((recording, queue)) => (Some(Box::new(recording)), Some(queue)),
        None => (None, None),
    };
    let messages = out.messages();
    let tell = move |message: &str| {
        // One that finds no room is counted.
        let _counted = messages.try_send(message.to_owned());
    };
    let gateway = Gateway::start(&plan, recording, Box::new(tell))?;
    if !args.quiet {
        announce(&plan, gateway.addresses(), &out);
    }
    let until = args.duration.map(|time| time::Instant::now() + time::Duration::from_nanos(time.as_nanos()));
    while !stop.load(Ordering::Relaxed) && until.is_none_or(|until| time::Instant::now() < until) {
        std::thread::sleep(LOOK_EVERY);
    }
    let mut document = gateway.stop();
    if let Some(queue) = record {
        let unwritten = match queue.finish(None, RECORD_PATIENCE) {
            (FlushResult::Failed(error), _) => Some(error.to_string()),
            (FlushResult::Incomplete, _) => Some("it is not read".to_owned()),
            (FlushResult::Complete, dropped) => {
                (dropped > 0).then(|| "it was not read fast enough".to_owned())
            }
        };
        document.record_error = document.record_error.or(unwritten);
    }
    out.finish(Some(if args.json { output::json(&document) } else { output::wrapped(&text(&document)) }))?;
    match (&document.record_error, &args.record) {
        (Some(error), Some(file)) => {
            Err(Failure::Failed(format!("{} was not written whole: {error}", Printable(file.display()))))
        }
        _ => Ok(()),
    }
}

/// The file of --record, whose lines another thread writes.
struct Recording {
    sender: OutputSender<String>,
    /// Lines that are not passed on yet.
    lines: String,
}

/// The most parts of a recording that wait to be written, of [`RECORD_PART`] bytes each.
const RECORD_ROOM: usize = 512;
/// The length at which lines are passed on together, bytes.
const RECORD_PART: usize = 32 << 10;
/// Time that the rest of a recording may take to be written.
const RECORD_PATIENCE: Duration = Duration::from_secs(5);

impl Write for Recording {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.lines.push_str(&String::from_utf8_lossy(bytes));
        if self.lines.len() >= RECORD_PART {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let lines = std::mem::take(&mut self.lines);
        if lines.is_empty() || self.sender.try_send(lines) {
            return Ok(());
        }
        Err(std::io::Error::other("it is not read, or cannot be written"))
    }
}

impl Args {
    fn plan(&self) -> Result<Plan, Failure> {
        let side = match self.side {
            SideName::Near => GatewaySide::Near,
            SideName::Far => GatewaySide::Far,
        };
        let routes = |transport: ProgramTransport, ends: &[Ends]| {
            let route =
                |Ends { listen, to }: &Ends| GatewayRoute { transport, listen: *listen, to: to.clone() };
            ends.iter().map(route).collect::<Vec<_>>()
        };
        let limits = Limits {
            connections: self.max_connections as usize,
            of_one_address: self.max_per_address.unwrap_or(self.max_connections.div_ceil(2)) as usize,
            idle: self.idle,
            connect: self.connect_timeout,
        };
        let routes =
            [routes(ProgramTransport::Tcp, &self.tcp), routes(ProgramTransport::Udp, &self.udp)].concat();
        Ok(Plan { side, routes, options: self.options()?, limits })
    }

    /// The options of the QoS connections.
    fn options(&self) -> Result<QosOptions, Failure> {
        let mut options = Options::default();
        if let Some(file) = &self.spec {
            let shown = Printable(file.display());
            let text = std::fs::read_to_string(file)
                .map_err(|error| Failure::Usage(format!("--spec {shown}: cannot be read: {error}")))?;
            options.read(&text).map_err(|why| Failure::Usage(format!("--spec {shown}: {why}")))?;
        }
        let ClassArgs { class, rtt, hint } = &self.class;
        let given = [
            ("class", class.map(|class| class.name().to_owned())),
            ("path.rtt", rtt.map(|rtt| format!("{} ns", rtt.as_nanos()))),
            ("marking", hint.and_then(|hint| DscpPool2.decode(hint)).map(|hint| hint.level().to_string())),
        ];
        let given = given.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let pairs = self.set.iter().map(|text| pair(text)).collect::<Result<Vec<_>, _>>()?;
        for (name, value) in given.chain(pairs) {
            if name == "peer" {
                let why = "--set peer: the peer of a gateway is a gateway";
                return Err(Failure::Usage(why.to_owned()));
            }
            let wrong = |why| Failure::Usage(format!("{}: {why}", Printable(name)));
            options.set(name, value).map_err(wrong)?;
        }
        if let Some(file) = &self.key_file {
            let content = Key::content(file).map_err(Failure::Usage)?;
            let wrong = |why| Failure::Usage(format!("key file {}: {why}", Printable(file.display())));
            options.set_key(&content).map_err(wrong)?;
        }
        options.qos_options().map_err(Failure::Usage)
    }
}

/// Prints the routes, and the hosts that can use them.
fn announce(plan: &Plan, addresses: &[SocketAddr], out: &ServiceOutput) {
    for (route, address) in plan.routes.iter().zip(addresses) {
        let transport = route.transport.name();
        out.say(format!("{transport} {address} goes to {}", Printable(&route.to)));
    }
    let is_open = addresses.iter().any(|address| !address.ip().to_canonical().is_loopback());
    if is_open && plan.side == GatewaySide::Far && !plan.options.has_key() {
        out.say(
            "warning: every host that can reach this gateway can reach the server: --key-file requires a key"
                .to_owned(),
        );
    }
    if is_open && plan.side == GatewaySide::Near {
        out.say(
            "warning: every host that can reach this gateway can reach the server behind the far one"
                .to_owned(),
        );
    }
}

/// Opens the file of --record.
fn open(file: &Path, force: bool) -> Result<File, Failure> {
    Ok(OutputFile::create(file, force)?.into_file())
}

/// Returns the deliveries as text.
fn text(document: &GatewayDocument) -> String {
    let heads: Vec<_> =
        ["", "listens at", "connects to"].into_iter().chain(titles::<ConnectionTotals>()).collect();
    let mut routes = Table::new(3, &heads);
    for route in &document.routes {
        let names = [route.transport.clone(), route.listen.clone(), route.to.clone()];
        routes.add(names.into_iter().chain(cells(&route.totals)).collect());
    }
    let heads = [
        "connection",
        "from",
        "ending",
        "s",
        "direction",
        "messages",
        "received",
        "kbit/s",
        "lost %",
        "delay, ms",
        "p99",
        "jitter, ms",
        "p99",
        "clock ±ms",
    ];
    let mut connections = Table::new(3, &heads);
    for connection in document.connections.iter().take(MOST_PRINTED) {
        for row in rows(connection) {
            connections.add(row);
        }
    }
    let mut text = format!("after {:.1} s\n\n{}", document.elapsed_s, routes.render());
    if !connections.is_empty() {
        text = text + "\n" + &connections.render();
    }
    let more = document.connections.len().saturating_sub(MOST_PRINTED) as u64 + document.unlisted;
    if more > 0 {
        text = text + "and " + &more.to_string() + " more connections; --json lists a thousand\n";
    }
    text
}

/// Returns both directions of a connection as rows.
fn rows(of: &ConnectionDocument) -> [Vec<String>; 2] {
    let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    [("sent", &of.sent), ("received", &of.received)].map(|(direction, totals)| {
        let name = if direction == "sent" { of.connection.to_string() } else { String::new() };
        let (peer, ending) =
            if direction == "sent" { (of.peer.clone(), of.ending.clone()) } else { <_>::default() };
        vec![
            name,
            peer,
            ending,
            number(of.elapsed_s),
            direction.to_owned(),
            totals.sent_messages.to_string(),
            totals.received_messages.to_string(),
            number(totals.received_bps * 1e-3),
            shown(totals.loss_percent),
            shown(totals.mean_delay_ms),
            shown(totals.p99_delay_ms),
            shown(totals.mean_jitter_ms),
            shown(totals.p99_jitter_ms),
            shown(of.clock_error_ms),
        ]
    })
}

/// Returns name and value of an option.
fn pair(text: &str) -> Result<(&str, &str), Failure> {
    let wrong = || Failure::Usage(format!("--set \"{}\": expected NAME=VALUE", Printable(text)));
    text.split_once('=').map(|(name, value)| (name.trim(), value.trim())).ok_or_else(wrong)
}

/// Parses `8080=192.0.2.7:6000` or `192.0.2.7:6000=server.example:80`.
fn link(text: &str) -> Result<Ends, String> {
    let (listen, to) = text
        .split_once('=')
        .ok_or("expected LISTEN=HOST:PORT, such as 8080=192.0.2.7:6000 or 192.0.2.7:6000=127.0.0.1:80")?;
    address::check(to, None).map_err(|error| format!("{to}: {error}"))?;
    let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let port = listen.parse::<u16>().map(local).ok();
    let listen = port.map_or_else(|| address::parse_listen_address(listen), Ok).map_err(|error| match error {
        AddressError::Malformed => format!(
            "{listen}: expected 8080, 192.0.2.7:8080, 0.0.0.0:8080 for all IPv4 addresses, [2001:db8::7]:8080 or [fe80::7%eth0]:8080"
        ),
        error => format!("{listen}: {error}"),
    })?;
    Ok(Ends { listen, to: to.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_a_place_to_listen_and_a_place_to_go() {
        let ends = |listen: &str, to: &str| Ok(Ends { listen: listen.parse().unwrap(), to: to.to_owned() });
        assert_eq!(link("8080=host:80"), ends("127.0.0.1:8080", "host:80"));
        assert_eq!(link("[::]:0=[2001:db8::7]:80"), ends("[::]:0", "[2001:db8::7]:80"));
        let lo = cutline_sys::interface::index("lo").unwrap();
        assert_eq!(
            link("[fe80::1%lo]:0=[fe80::7%lo]:80"),
            ends(&format!("[fe80::1%{lo}]:0"), "[fe80::7%lo]:80")
        );
        for (text, expected) in [
            ("8080", "expected LISTEN=HOST:PORT"),
            ("8080=80", "80: expected HOST:PORT"),
            ("8080=:80", ":80: expected an address"),
            ("8080=host:0", "host:0: port \"0\": expected a number from 1 to 65535"),
            ("8080=[fe80::7%nosuch0]:80", "there is no interface `nosuch0`; there are: "),
            ("8080=[fe80::7]:80", "write fe80::7%INTERFACE, one of "),
            ("[fe80::7]:80=host:80", "write fe80::7%INTERFACE, one of "),
            ("eighty=host:80", "eighty: expected 8080"),
            ("70000=host:80", "70000: expected 8080"),
        ] {
            let error = link(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
