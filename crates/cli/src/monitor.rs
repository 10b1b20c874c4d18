//! `cutline monitor`: the delivery of this host's applications and routers, for people and managers.

use crate::exit::Failure;
use crate::interrupt;
use crate::service_output::ServiceOutput;
use cutline_monitor::{
    CollectorOptions, DEFAULT_BPFFS, DEFAULT_LISTEN, DEFAULT_QUERY_SOCKET, HostMonitor, KernelQueueReader,
    MonitorError, MonitorOptions, PublicationLimits, WebOptions, token,
};
use cutline_service::{SdNotify, regular_file};
use cutline_snmp::{SnmpError, SnmpOptions, SnmpService};
use cutline_sys::address::{AddressError, parse_listen_address};
use cutline_sys::resources;
use cutline_text::Printable;
use cutline_traffic::control::Key;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Show the delivery of this host's applications and routers, as a page and as metrics
///
/// Programs with QoS sockets, routers, gateways and `cutline exec` publish their delivery by themselves, and the monitor
/// collects it: throughput, delay, jitter and loss beside the agreement, violations, queues. `cutline top` shows it in a terminal,
/// the page in a browser, and /metrics is for Prometheus (docs/guide/monitor.md). Each user sees the programs of that user; root sees all. cutlined
/// does the same with a table `[monitor]` in its file.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Address of the page and the metrics, or off
    #[arg(long, value_name = "ADDRESS:PORT", default_value = DEFAULT_LISTEN, value_parser = page_address)]
    listen: PageAddress,
    /// File with a token of at least 16 characters: readers who state it see everything. Other users must not be able to read the file. Readers on other
    /// hosts need it
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Name of this host that a browser may use, beside its addresses and localhost; may be repeated
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    /// Let every user see the programs of all users
    #[arg(long)]
    all_see_all: bool,
    /// File with settings of SNMP, the same as in the table [monitor.snmp] of cutlined; without it nothing is served over SNMP
    #[arg(long, value_name = "FILE")]
    snmp: Option<PathBuf>,
    /// Socket to which programs publish
    #[arg(long, value_name = "PATH", default_value = cutline_publish::DEFAULT_SOCKET)]
    publish_socket: PathBuf,
    /// Socket that answers `cutline top`
    #[arg(long, value_name = "PATH", default_value = DEFAULT_QUERY_SOCKET)]
    socket: PathBuf,
    /// File system for eBPF in which the queues of `cutline qdisc` are pinned
    #[arg(long, value_name = "FOLDER", default_value = DEFAULT_BPFFS)]
    bpffs: PathBuf,
}

const EXAMPLES: &str = "Examples:
  sudo cutline monitor                                 then open http://127.0.0.1:9466/, or run cutline top
  sudo cutline monitor --listen 10.0.0.1:9466 --token-file /etc/cutline/token
  curl http://127.0.0.1:9466/metrics
  sudo cutline monitor --snmp /etc/cutline/snmp.toml   then snmpwalk -v2c -c public 127.0.0.1 .1.3.6.1.4.1.8072.9999.9999.2005";

/// Address of the page.
#[derive(Clone, Copy, Debug)]
enum PageAddress {
    Off,
    At(SocketAddr),
}

/// Interval of checks for Ctrl-C.
const CHECK_EVERY: Duration = Duration::from_millis(50);

fn page_address(text: &str) -> Result<PageAddress, String> {
    if text == "off" {
        return Ok(PageAddress::Off);
    }
    parse_listen_address(text).map(PageAddress::At).map_err(|error| match error {
        AddressError::Malformed => {
            format!("expected an address with a port, such as {DEFAULT_LISTEN}, or off")
        }
        other => other.to_string(),
    })
}

pub fn execute(args: &Args) -> Result<(), Failure> {
    let token = args.token_file.as_deref().map(read_token).transpose()?;
    let snmp = args.snmp.as_deref().map(read_snmp).transpose()?;
    resources::allow_most_descriptors();
    let readers_see_all = args.all_see_all;
    let web = match args.listen {
        PageAddress::Off => None,
        PageAddress::At(listen) => {
            Some(WebOptions { listen, token, names: args.name.clone(), readers_see_all })
        }
    };
    let collector = CollectorOptions {
        publish: args.publish_socket.clone(),
        query: args.socket.clone(),
        limits: PublicationLimits::DEFAULT,
        readers_see_all,
        kernel_queues: KernelQueueReader::pinned(&args.bpffs),
    };
    let monitor = HostMonitor::start(MonitorOptions { collector, web })?;
    let stop = interrupt::cancel_flag(String::new())?;
    let out = ServiceOutput::new(Arc::clone(&stop));
    let sender = out.messages();
    let say = move |message| {
        let _counted = sender.try_send(message);
    };
    let start = |options| SnmpService::start(options, Arc::clone(monitor.host()), say);
    let snmp = snmp.as_ref().map(start).transpose()?;
    if let Some(at) = snmp.as_ref().and_then(SnmpService::address) {
        out.say(format!("the SNMP agent listens at {at}"));
    }
    if let Some(at) = monitor.page() {
        out.say(format!("the page is at http://{at}/, the metrics are at http://{at}/metrics"));
    }
    let publishing = format!("programs publish to {}", Printable(args.publish_socket.display()));
    let service_manager = SdNotify::from_environment();
    service_manager.ready(&publishing);
    out.say(publishing);
    while !stop.load(Ordering::Relaxed) && monitor.is_at_work() {
        service_manager.flush();
        std::thread::sleep(CHECK_EVERY);
    }
    service_manager.stopping();
    let has_failed = !stop.load(Ordering::Relaxed);
    drop(snmp);
    drop(monitor);
    out.finish(None)?;
    if has_failed {
        return Err(Failure::Failed("the monitor has ended: descriptors cannot be waited for".to_owned()));
    }
    Ok(())
}

/// Reads a token from a file that only its owner may read.
fn read_token(path: &Path) -> Result<String, Failure> {
    let content = Key::content(path).map_err(Failure::Usage)?;
    let wrong = |why| Failure::Usage(format!("--token-file {}: {why}", Printable(path.display())));
    token(&String::from_utf8_lossy(&content)).map_err(wrong)
}

/// Reads a file with settings of SNMP.
fn read_snmp(path: &Path) -> Result<SnmpOptions, Failure> {
    let shown = Printable(path.display()).to_string();
    let wrong = |why| Failure::Usage(format!("--snmp {shown}: {why}"));
    let text = regular_file::read(path).map_err(wrong)?;
    SnmpOptions::parse(&text, &shown).map_err(|errors| Failure::Usage(errors.render()))
}

impl From<SnmpError> for Failure {
    fn from(error: SnmpError) -> Self {
        match error {
            SnmpError::Secret { .. } | SnmpError::User { .. } => Self::Usage(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<MonitorError> for Failure {
    fn from(error: MonitorError) -> Self {
        match error {
            MonitorError::NeedsToken(_) => Self::Usage(error.to_string()),
            MonitorError::System(_) => Self::Failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_place_of_the_pins_is_that_of_cutline_qdisc() {
        let bpffs =
            |words: &[&str]| Line::try_parse_from([&["monitor"][..], words].concat()).unwrap().args.bpffs;
        assert_eq!(bpffs(&[]), Path::new("/sys/fs/bpf"));
        assert_eq!(bpffs(&["--bpffs", "/run/bpf"]), Path::new("/run/bpf"));
    }
}
