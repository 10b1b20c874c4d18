//! `cutline tg receive`: waits for senders and measures their flows.

use super::tables;
use crate::arguments::{duration, rate};
use crate::exit::Failure;
use crate::service_output::ServiceOutput;
use crate::{interrupt, output};
use cutline_sys::address::{self, AddressError, ZonedIp};
use cutline_traffic::ReceiveDocument;
use cutline_traffic::control::{PORT, Prefix, Receiver, ReceiverParams, SenderSession};
use cutline_units::{Duration, Rate};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Wait for senders and measure their flows
///
/// Serves one sender after the other. It also sends the flows that a sender requests (`send --reverse`), to that sender
/// alone. The measurements are sent to the sender at the end, and printed here, too. Ctrl-C ends the command; an active
/// sender still receives the measurements.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Address and port to listen at; 0.0.0.0 for all IPv4 addresses, `::` for all addresses, `fe80::1%eth0` for a link-local one [default: the loopback
    /// addresses, which only this host can reach, and port 5203]
    #[arg(long, value_name = "[ADDRESS][:PORT]", value_parser = listen_address, default_value = "5203", hide_default_value = true)]
    listen: ListenAddress,
    /// File with a key that senders must have, too; other users must not be able to read it
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Serve only senders with this address or prefix, such as 192.0.2.0/24; may be repeated
    #[arg(long, value_name = "PREFIX", value_parser = str::parse::<Prefix>)]
    allow: Vec<Prefix>,
    /// Largest number of flows of a sender
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_flows: u32,
    /// Longest duration of a sender's run, at most 7 days
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = run_time)]
    max_duration: Duration,
    /// Largest rate of all UDP and TFRC that this end sends (a sender's --reverse); TCP has no limit
    #[arg(long, value_name = "RATE", default_value = "100Mbit", value_parser = rate)]
    max_rate: Rate,
    /// Port for the traffic, TCP and UDP [default: a free port, which is sent to the sender]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    data_port: u16,
    /// Exit after this time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Exit after the first sender
    #[arg(long)]
    once: bool,
    /// Also print intervals if the sender measures them
    #[arg(long)]
    interval: bool,
    /// Print one JSON document per sender, each on a line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  cutline tg receive
  cutline tg receive --listen :: --key-file key
  cutline tg receive --listen 192.0.2.7:6000 --data-port 6001 --allow 192.0.2.0/24 --once
  cutline tg receive --duration 10min --json";

#[derive(Clone, Copy, Debug)]
struct ListenAddress {
    address: Option<ZonedIp>,
    port: u16,
}

pub fn execute(args: &Args) -> Result<(), Failure> {
    let mut receiver = bind(args)?;
    let stop = interrupt::cancel_flag("An active sender receives the measurements so far.".to_owned())?;
    if let Some(time) = args.duration {
        end_after(time, &stop);
    }
    let out = ServiceOutput::new(Arc::clone(&stop));
    announce(args, &receiver.addresses()?, &out);
    let served = serve(args, &mut receiver, &stop, &out);
    let printed = out.finish(None);
    served.and(printed)
}

fn serve(
    args: &Args,
    receiver: &mut Receiver,
    stop: &AtomicBool,
    out: &ServiceOutput,
) -> Result<(), Failure> {
    while let Some(session) = receiver.session(stop)? {
        print(args, &session, out);
        if args.once {
            let failed = || Failure::Failed(format!("the sender {} stopped before its end", session.peer));
            return if session.error.is_none() { Ok(()) } else { Err(failed()) };
        }
    }
    if receiver.refused() > 0 {
        out.say(format!("{} connections were refused", receiver.refused()));
    }
    Ok(())
}

/// Without an address, listens on the loopback addresses of IPv4 and IPv6, or on that of IPv4 alone if the host has no IPv6.
fn bind(args: &Args) -> Result<Receiver, Failure> {
    let ListenAddress { address, port } = args.listen;
    let params = ReceiverParams {
        data_port: args.data_port,
        key: args.key_file.as_deref().map(super::key).transpose()?,
        allow: args.allow.clone(),
        most_flows: args.max_flows,
        longest_run: args.max_duration,
        most_rate: args.max_rate,
        ..ReceiverParams::default()
    };
    let at = |addresses: &[ZonedIp]| {
        let addresses: Vec<_> = addresses.iter().map(|address| address.with_port(port)).collect();
        Receiver::bind(&addresses, params.clone())
    };
    let (v4, v6) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST));
    let has_v6 = || std::net::UdpSocket::bind((v6, 0)).is_ok();
    let (v4, v6) = (v4.into(), v6.into());
    Ok(match address {
        Some(address) => at(&[address])?,
        // With port 0 the two would have different ports.
        None if port != 0 && has_v6() => at(&[v4, v6])?,
        None => at(&[v4])?,
    })
}

/// Prints the address of the receiver, and the hosts that can reach it.
fn announce(args: &Args, addresses: &[SocketAddr], out: &ServiceOutput) {
    let shown: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
    out.say(format!("listening at {}", shown.join(" and ")));
    let is_local = addresses.iter().all(|address| address.ip().to_canonical().is_loopback());
    if args.listen.address.is_none() {
        out.say("only this host can send to it: --listen :: listens at all addresses".to_owned());
    } else if !is_local && args.key_file.is_none() {
        let who =
            if args.allow.is_empty() { "every host that can reach it" } else { "every allowed address" };
        out.say(format!("warning: {who} can start a measurement: --key-file requires a key"));
    }
}

fn end_after(time: Duration, stop: &Arc<AtomicBool>) {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_nanos(time.as_nanos()));
        stop.store(true, Ordering::Relaxed);
    });
}

fn print(args: &Args, session: &SenderSession, out: &ServiceOutput) {
    if let Some(error) = &session.error {
        out.say(format!("{}: {error}", session.peer));
    }
    let Some(report) = &session.report else { return };
    if args.json {
        return out.print(output::json_line(&ReceiveDocument::new(session, report)));
    }
    let last = report.flows.iter().filter_map(|flow| flow.last).max().unwrap_or_default();
    let interval = session.interval.filter(|_| args.interval);
    let received = if report.flows.is_empty() && !session.sent.is_empty() {
        String::new()
    } else {
        tables::received(report, last.min(session.until), interval)
    };
    let count = report.flows.len() + session.sent.len();
    let sent = tables::sent_here(&session.sent);
    out.print(output::wrapped(&format!("\n{}: {count} flows\n{received}{sent}", session.peer)));
}

/// Parses `5203`, `:5203`, `192.0.2.7`, `[2001:db8::7]`, `2001:db8::7`, `192.0.2.7:5203` or `[2001:db8::7]:5203`.
fn listen_address(text: &str) -> Result<ListenAddress, String> {
    let wrong = || {
        format!(
            "expected {PORT}, :{PORT}, 192.0.2.7, 192.0.2.7:{PORT}, ::, [2001:db8::7]:{PORT} or [fe80::7%eth0]:{PORT}"
        )
    };
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
        return Ok(ListenAddress { address: None, port });
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let found = match bare.parse::<ZonedIp>() {
        Err(AddressError::Malformed) => {
            address::parse_listen_address(text).map(|found| (ZonedIp::from(found), found.port()))
        }
        alone => alone.map(|address| (address, PORT)),
    };
    match found {
        Ok((address, port)) => Ok(ListenAddress { address: Some(address), port }),
        Err(AddressError::Malformed | AddressError::Port(_)) => Err(wrong()),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses the longest duration of a run.
fn run_time(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_secs(7 * 86_400);
    let time = duration(text)?;
    if time <= LONGEST { Ok(time) } else { Err("it must be at most 7 days".to_owned()) }
}
