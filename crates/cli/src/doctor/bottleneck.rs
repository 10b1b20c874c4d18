//! `cutline doctor bottleneck`: finds out whether packets wait in the router's queue or elsewhere.

use super::BOLD;
use crate::arguments::{duration, overhead};
use crate::exit::Failure;
use crate::{interrupt, output};
use cutline_doctor::{
    BottleneckDocument, BottleneckPlace, Judgement, LinkWatch, Observations, Source, Thresholds, judge,
};
use cutline_router::Overhead;
use cutline_sys::address::{AddressError, ZonedIp};
use cutline_sys::interface;
use cutline_units::Duration;
use std::net::{ToSocketAddrs as _, UdpSocket};

/// Find out whether packets wait in the router's queue or elsewhere
///
/// Observes the network for some seconds, which needs load, and reports where the bottleneck is. The statistics of a
/// router show how busy its queue is and how long packets wait in it. Probes (ICMP echo, ten per second) show how much the
/// round-trip time to a host has grown. The interface behind the router shows the length of its queue. Run the command on a
/// host whose packets pass the router, so that the probes pass it, too (docs/guide/doctor.md).
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Statistics of the router: the output file of `cutline router --json --stats 1s`, a pipe, the router's socket, or
    /// - for stdin
    #[arg(long, value_name = "PATH", value_parser = source)]
    stats: Option<Source>,
    /// Host behind the bottleneck that answers echo requests, by name or address; a link-local one is `fe80::1%eth0`
    #[arg(long, value_name = "HOST")]
    probe: Option<String>,
    /// Interface behind the router's queue, on the router's host
    #[arg(long, value_name = "INTERFACE")]
    out: Option<String>,
    /// Observe the direction from the router's --out to its --in
    #[arg(long)]
    reverse: bool,
    /// Overhead of the link, as in the option --overhead of the router
    #[arg(long, default_value = "ethernet", value_parser = overhead)]
    overhead: Overhead,
    /// Hint that the router assigns to the probes, 1 to 16
    #[arg(long, value_name = "LEVEL", default_value = "16", value_parser = clap::value_parser!(u16).range(1..=16))]
    hint: u16,
    /// Round-trip time to the host without load [default: the shortest one observed]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    base_rtt: Option<Duration>,
    /// Time to observe, from 1s to 1h
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = watched)]
    duration: Duration,
    /// Print one JSON document with the judgement and the observations
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  cutline router --in lan --out wan --rate 15Mbit --json --stats 500ms > router.jsonl &
  cutline doctor bottleneck --stats router.jsonl --out wan
  ssh router tail -f router.jsonl | cutline doctor bottleneck --stats - --probe 192.0.2.1 --base-rtt 20ms

Exit codes: 0 success; 1 the observation failed; 2 invalid arguments.";

pub fn execute(args: &Args) -> Result<(), Failure> {
    let watch = args.watch()?;
    let stop = interrupt::cancel_flag("The judgement uses the observations so far.".to_owned())?;
    let seen = watch.observe(&stop).map_err(|error| Failure::Failed(error.to_string()))?;
    let judgement = judge(&seen, &Thresholds::default());
    if args.json {
        return output::print_json(&BottleneckDocument { judgement: &judgement, observed: &seen });
    }
    output::print_wrapped(&rendered(&judgement, &seen))
}

impl Args {
    fn watch(&self) -> Result<LinkWatch, Failure> {
        if self.stats.is_none() && self.probe.is_none() && self.out.is_none() {
            let why = "nothing to observe: at least one of --stats, --probe and --out is required";
            return Err(Failure::Usage(why.to_owned()));
        }
        if let Some(name) = &self.out {
            interface::index(name)?;
        }
        Ok(LinkWatch {
            source: self.stats.clone(),
            reverse: self.reverse,
            overhead: self.overhead,
            hint: self.hint,
            probe: self.probe.as_deref().map(address).transpose()?,
            base: self.base_rtt,
            port: self.out.clone(),
            duration: self.duration,
        })
    }
}

/// Resolves a host's name or address.
fn address(host: &str) -> Result<ZonedIp, Failure> {
    let unknown = |why: String| {
        Failure::Usage(format!("--probe {host}: {why}; expected the name or address of a host"))
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<ZonedIp>() {
        Ok(address) => return Ok(address),
        Err(AddressError::Malformed) => {}
        Err(error) => return Err(unknown(error.to_string())),
    }
    let found = (bare, 0).to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
    // The first address with a route, or else the first one.
    let mut found: Vec<ZonedIp> = found.map(ZonedIp::from).collect();
    let reachable = found.iter().position(|address| has_route(*address)).unwrap_or(0);
    if found.is_empty() {
        return Err(unknown("the name has no address".to_owned()));
    }
    Ok(found.swap_remove(reachable))
}

/// Returns whether the kernel has a route to an address.
fn has_route(address: ZonedIp) -> bool {
    let any = if address.ip().is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    UdpSocket::bind(any).is_ok_and(|socket| socket.connect(address.with_port(9)).is_ok())
}

#[expect(clippy::unnecessary_wraps, reason = "clap requires a result")]
fn source(text: &str) -> Result<Source, String> {
    Ok(if text == "-" { Source::Stdin } else { Source::Path(text.into()) })
}

fn watched(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let allowed = Duration::from_secs(1)..=Duration::from_secs(3600);
    if allowed.contains(&time) { Ok(time) } else { Err("it must be from 1 s to 3600 s".to_owned()) }
}

/// Returns the judgement, the reasons and the next steps as text.
fn rendered(judgement: &Judgement, seen: &Observations) -> String {
    let place = match judgement.place {
        BottleneckPlace::Ours => "the bottleneck is the router's queue",
        BottleneckPlace::Interface => "packets wait at the interface behind the router's queue",
        BottleneckPlace::Elsewhere => "packets wait outside the router",
        BottleneckPlace::Nowhere => "there was no bottleneck: too little load",
        BottleneckPlace::Unknown => "the observations do not show where the bottleneck is",
    };
    let rate = seen.rate.map_or_else(String::new, |rate| format!(" (shaped to {rate})"));
    let confidence = format!("{:?}", judgement.confidence).to_lowercase();
    let list = |items: &[String]| {
        let lines: Vec<_> = items.iter().map(|item| format!("  - {item}\n")).collect();
        lines.concat()
    };
    let next = if judgement.do_next.is_empty() { "" } else { "what to do next\n" };
    format!(
        "{BOLD}{place}{rate}; confidence: {confidence}{BOLD:#}\n{}{next}{}",
        list(&judgement.reasons),
        list(&judgement.do_next)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_resolved_and_a_time_has_bounds() {
        assert_eq!(address("127.0.0.1").unwrap().to_string(), "127.0.0.1");
        assert_eq!(address("fe80::1%lo").unwrap().to_string(), "fe80::1%lo");
        assert_eq!(address("[fe80::1%lo]").unwrap().to_string(), "fe80::1%lo");
        let Err(Failure::Usage(message)) = address("fe80::1") else { panic!("expected a usage error") };
        assert!(message.contains("write fe80::1%INTERFACE, one of "), "{message}");
        let Err(Failure::Usage(message)) = address("no host") else { panic!("expected a usage error") };
        assert!(message.starts_with("--probe no host: "), "{message}");
        assert!(watched("0.5").is_err() && watched("2h").is_err());
        assert_eq!(watched("10s"), Ok(Duration::from_secs(10)));
    }

    #[test]
    fn the_judgement_is_the_first_line() {
        let seen = Observations::default();
        let text = rendered(&judge(&seen, &Thresholds::default()), &seen);
        let text = anstream::adapter::strip_str(&text).to_string();
        assert!(text.starts_with("the observations do not show where"), "{text}");
        assert!(text.contains("what to do next\n  - "), "{text}");
    }
}
