//! `cutline tg receive`: wait for senders, and measure what they send.

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

/// Wait for senders one after the other, and measure what they send
///
/// What it measures goes to the sender at the end, and is printed here. Ctrl-C ends it; a sender that is at work still
/// gets what was measured.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Where to listen: `[ADDRESS:]PORT`; without an address everywhere
    #[arg(long, value_name = "[ADDRESS]:PORT", value_parser = listen, default_value = "5203")]
    listen: Listen,
    /// The port that traffic comes to, TCP and UDP [default: one that is free, which the sender is told]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    data_port: u16,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// End after the first sender
    #[arg(long)]
    once: bool,
    /// Print intervals, too, where the sender asks for them
    #[arg(long)]
    interval: bool,
    /// Print JSON, one document a line and sender
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
    let stop = interrupt::cancel_flag("A sender at work gets what was measured so far.".to_owned())?;
    if let Some(time) = args.duration {
        end_after(time, &stop);
    }
    anstream::eprintln!("listening at {}", receiver.address()?);
    while let Some(session) = receiver.session(&stop)? {
        let good = session.error.is_none();
        print(args, &session)?;
        if args.once {
            let failed = || Failure::Failed(format!("the sender {} did not come to its end", session.peer));
            return if good { Ok(()) } else { Err(failed()) };
        }
    }
    Ok(())
}

/// Everywhere is both protocols, or IPv4 alone where there is no IPv6.
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
        let of = ReceiveDocument::new(report, session.peer.to_string(), session.until, session.interval);
        let error = session.error.as_ref().map(ToString::to_string);
        return output::print_json_line(&ReceiveDocument { error, ..of });
    }
    let last = report.flows.iter().filter_map(|flow| flow.last).max().unwrap_or_default();
    let interval = session.interval.filter(|_| args.interval);
    let text = tables::received(report, last.min(session.until), interval);
    output::print(&format!("\n{}: {} flows\n{text}", session.peer, report.flows.len()))
}

/// `5203`, `:5203`, `192.0.2.7:5203`, `[2001:db8::7]:5203`.
fn listen(text: &str) -> Result<Listen, String> {
    let wrong = || format!("write {PORT}, :{PORT}, 192.0.2.7:{PORT} or [2001:db8::7]:{PORT}");
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Listen { address: Some(address.ip()), port: address.port() });
    }
    let port = text.strip_prefix(':').unwrap_or(text).parse().map_err(|_| wrong())?;
    Ok(Listen { address: None, port })
}
