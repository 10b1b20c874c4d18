//! `cutline tg receive`: waits for senders and measures their flows.

use super::tables;
use crate::arguments::duration;
use crate::exit::Failure;
use crate::{interrupt, output};
use cutline_traffic::ReceiveDocument;
use cutline_traffic::control::{PORT, Receiver, Session};
use cutline_units::Duration;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Wait for senders and measure their flows
///
/// Serves one sender after the other. The measurements are sent to the sender at the end, and printed here, too. Ctrl-C
/// ends the command; an active sender still receives the measurements.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Address and port to listen at; without an address, all addresses of the host
    #[arg(long, value_name = "[ADDRESS]:PORT", value_parser = listen, default_value = "5203")]
    listen: Listen,
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
  cutline tg receive --listen 192.0.2.7:6000 --data-port 6001 --once
  cutline tg receive --duration 10min --json";

#[derive(Clone, Copy, Debug)]
struct Listen {
    address: Option<IpAddr>,
    port: u16,
}

pub fn execute(args: &Args) -> Result<(), Failure> {
    let receiver = bind(args)?;
    let stop = interrupt::cancel_flag("An active sender receives the measurements so far.".to_owned())?;
    if let Some(time) = args.duration {
        end_after(time, &stop);
    }
    anstream::eprintln!("listening at {}", receiver.address()?);
    while let Some(session) = receiver.session(&stop)? {
        let good = session.error.is_none();
        print(args, &session)?;
        if args.once {
            let failed = || Failure::Failed(format!("the sender {} stopped before its end", session.peer));
            return if good { Ok(()) } else { Err(failed()) };
        }
    }
    Ok(())
}

/// Without an address, listens on IPv6 and IPv4, or on IPv4 alone if the host has no IPv6.
fn bind(args: &Args) -> Result<Receiver, Failure> {
    let Listen { address, port } = args.listen;
    let at = |address: IpAddr| Receiver::bind(SocketAddr::new(address, port), args.data_port);
    Ok(match address {
        Some(address) => at(address)?,
        None => at(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| at(Ipv4Addr::UNSPECIFIED.into()))?,
    })
}

fn end_after(time: Duration, stop: &Arc<AtomicBool>) {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_nanos(time.as_nanos()));
        stop.store(true, Ordering::Relaxed);
    });
}

fn print(args: &Args, session: &Session) -> Result<(), Failure> {
    if let Some(error) = &session.error {
        anstream::eprintln!("{}: {error}", session.peer);
    }
    let Some(report) = &session.report else { return Ok(()) };
    if args.json {
        let document =
            ReceiveDocument::new(report, session.peer.to_string(), session.until, session.interval);
        let error = session.error.as_ref().map(ToString::to_string);
        return output::print_json_line(&ReceiveDocument { error, ..document });
    }
    let last = report.flows.iter().filter_map(|flow| flow.last).max().unwrap_or_default();
    let interval = session.interval.filter(|_| args.interval);
    let text = tables::received(report, last.min(session.until), interval);
    output::print(&format!("\n{}: {} flows\n{text}", session.peer, report.flows.len()))
}

/// Parses `5203`, `:5203`, `192.0.2.7:5203` or `[2001:db8::7]:5203`.
fn listen(text: &str) -> Result<Listen, String> {
    let wrong = || format!("expected {PORT}, :{PORT}, 192.0.2.7:{PORT} or [2001:db8::7]:{PORT}");
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Listen { address: Some(address.ip()), port: address.port() });
    }
    let port = text.strip_prefix(':').unwrap_or(text).parse().map_err(|_| wrong())?;
    Ok(Listen { address: None, port })
}
