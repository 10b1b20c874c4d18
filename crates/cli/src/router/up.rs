//! `cutline router up` and `down`: everything that a host that routes needs, by one command, and its removal.
//!
//! `up` does what `cutline router setup` does and starts the router, which goes on when the command has ended, as a tunnel does after
//! `wg-quick up`. `down` finds the router by its claim on the TUN interface, so it needs no file that could be out of date
//! (docs/adr/0051-router-up.md).

use super::settings::{default_limit, link_rate};
use super::setup::{Nat, Place, Setup, write};
use super::units::Units;
use crate::arguments::{duration, overhead};
use crate::exit::Failure;
use crate::output_file::OutputFile;
use crate::{interrupt, output};
use clap::ValueEnum;
use cutline_aqm::{AqmSpec, Discipline as _, Limit, Sieve};
use cutline_params::Value;
use cutline_router::Overhead;
use cutline_router_service::{RouterSpec, holder, long_waits};
use cutline_text::Printable;
use cutline_units::{Duration, Rate};
use std::fmt::Write as _;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Shape what this host forwards: set up its routes, and start a router
///
/// For a host that routes, such as the gateway of a home or an office. Does what `cutline router setup` does, starts a router, and returns
/// when it forwards. `cutline router down` takes back both. If the router ends for any reason, packets take their way without it. After a
/// restart of the machine nothing is left, unless --persist is given. Requires root.
#[derive(clap::Args)]
#[command(after_help = UP_EXAMPLES)]
pub struct UpArgs {
    #[command(flatten)]
    setup: Setup,
    /// Rate from --lan to --wan (upload), such as 20Mbit: a few per cent below that of the link
    #[arg(long, value_parser = link_rate)]
    rate: Rate,
    /// Rate from --wan to --lan (download) [default: the same]
    #[arg(long, value_name = "RATE", value_parser = link_rate)]
    reverse_rate: Option<Rate>,
    /// Round-trip time of most connections through the link, without its queue [default: 100 ms]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    rtt: Option<Duration>,
    /// Overhead of the link per frame, as of `cutline router`
    #[arg(long, default_value = "ethernet", value_parser = overhead)]
    overhead: Overhead,
    /// Unit that gets equal shares of the link
    #[arg(long, value_enum, default_value_t = Fair::Hosts)]
    fair: Fair,
    /// Write units of systemd, and start them now and at each start of the machine
    #[arg(long)]
    persist: bool,
    /// Print the scripts and the router's file, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// End the router of `cutline router up`, and undo its setup
///
/// Also after the router was killed, and after --persist. Missing parts are skipped. Requires root.
#[derive(clap::Args)]
#[command(after_help = DOWN_EXAMPLES)]
pub struct DownArgs {
    #[command(flatten)]
    place: Place,
    /// Exit with 0 if there is nothing to take back
    #[arg(long)]
    if_exists: bool,
}

/// Unit that gets equal shares of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Fair {
    /// The hosts behind this one, and then the flows of each
    Hosts,
    /// All flows
    Flows,
}

const UP_EXAMPLES: &str = "Examples:
  cutline router up --lan eth0 --wan eth1 --rate 20Mbit --reverse-rate 100Mbit
  cutline router up --lan eth0 --wan ppp0 --rate 9.5Mbit --reverse-rate 48Mbit --overhead pppoe-ptm --persist
  cutline router up --lan eth0 --lan wifi0 --wan eth1 --rate 20Mbit --nat masquerade --dry-run";

const DOWN_EXAMPLES: &str = "Examples:
  cutline router down";

/// Time that a router may take to start.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

pub fn up(args: &UpArgs) -> Result<(), Failure> {
    let units = Units::of(&args.setup.place.name);
    let command = std::env::current_exe()
        .map_err(|error| Failure::Failed(format!("the path of this command is not known: {error}")))?;
    let file = args.file(args.persist.then(|| units.socket()))?;
    let spec = RouterSpec::parse(&file, "the router's file")?;
    let nat = args.setup.check(args.dry_run, false)?;
    if args.dry_run {
        return output::print(&format!("{}\n# router.toml\n{file}", args.setup.shown(nat)?));
    }
    for warning in long_waits(&spec) {
        crate::message::print(&warning);
    }
    let place = &args.setup.place;
    let stats = if args.persist {
        if place.options().contains("--folder") {
            return Err(Failure::Usage("--folder is for setups without --persist".to_owned()));
        }
        units.check(&command)?;
        units.start(&command, &args.options(nat), &file)?;
        format!(
            "It starts with the machine: {} is its file, `systemctl status 'cutline-*@{name}'` and `journalctl -u cutline-router@{name}` say \
             more",
            Printable(units.router().display()),
            name = place.name
        )
    } else {
        let stop = interrupt::cancel_flag("What was done is taken back.".to_owned())?;
        args.setup.make(nat, &stop)?;
        start(&command, &place.path(), &file, &stop).map_err(|failure| place.take_back(failure))?;
        format!(
            "It ends with the machine, unless --persist is given; its messages are in {}",
            Printable(place.path().join("router.log").display())
        )
    };
    output::print(&format!(
        "up: {} to {} at {}, back at {}{}\n`cutline router stats` shows what it does; `cutline router down{}` takes everything back. {stats}\n",
        args.setup.lan.join(" and "),
        args.setup.wan,
        args.rate,
        args.reverse(),
        if nat == Nat::None { "" } else { ", addresses are translated" },
        place.options()
    ))
}

pub fn down(args: &DownArgs) -> Result<(), Failure> {
    let (place, units) = (&args.place, Units::of(&args.place.name));
    let (is_persistent, is_set_up) = (units.are_written(), place.path().exists());
    if is_persistent {
        units.stop()?;
    } else if !is_set_up {
        let why = format!(
            "there is no setup {:?} in {}: nothing to take back",
            place.name,
            Printable(place.folder.display())
        );
        return if args.if_exists { Ok(()) } else { Err(Failure::Failed(why)) };
    }
    let mut indexes =
        place.interfaces().into_iter().filter_map(|name| cutline_sys::interface::index(&name).ok());
    if let Some(holder) = indexes.find_map(holder) {
        holder.end()?;
    }
    if place.path().exists() { place.undo() } else { Ok(()) }
}

impl UpArgs {
    fn reverse(&self) -> Rate {
        self.reverse_rate.unwrap_or(self.rate)
    }

    /// Returns the router's file.
    fn file(&self, socket: Option<String>) -> Result<String, Failure> {
        let [first, second] = self.setup.place.interfaces();
        let mut text = format!(
            "# The router of `cutline router up`. docs/guide/router.md explains every key. SIGHUP makes the router read this file again.\n\
             in = \"tun:{first}\"\nout = \"tun:{second}\"\noverhead = \"{}\"\n",
            self.overhead
        );
        if self.fair == Fair::Hosts {
            // The hosts of a LAN share a prefix.
            text += "ipv6-host-prefix = 128\n";
        }
        if let Some(socket) = socket {
            let _ = writeln!(text, "socket = \"{socket}\"");
        }
        for (direction, rate, host) in
            [("forward", self.rate, "source"), ("reverse", self.reverse(), "destination")]
        {
            let _ = write!(
                text,
                "\n[{direction}]\nrate = \"{rate}\"\nqueue = {{ {} }}\n",
                self.queue(rate, host)?
            );
        }
        Ok(text)
    }

    /// Returns the queue of a direction; `host` says which end of a packet is behind this host.
    fn queue(&self, rate: Rate, host: &str) -> Result<String, Failure> {
        let name = Sieve::<()>::NAME;
        let set = self.rtt.map(|rtt| ("rtt", Value::Duration(rtt)));
        let aqm =
            AqmSpec::from_values(name, set).map_err(|error| Failure::Usage(format!("--rtt: {error}")))?;
        let limit = match default_limit(&aqm, rate) {
            Limit::Packets(packets) => format!("{packets} packets"),
            Limit::Bytes(bytes) => format!("{bytes} B"),
        };
        let mut text = format!("aqm = \"{name}\", limit = \"{limit}\"");
        if let Some(rtt) = self.rtt {
            let _ = write!(text, ", rtt = \"{rtt}\"");
        }
        if self.fair == Fair::Hosts {
            let _ = write!(text, ", key = \"{host}-then-flow\"");
        }
        Ok(text)
    }

    /// Returns the options of `cutline router setup` for a unit, which gives the name.
    fn options(&self, nat: Nat) -> String {
        let Setup { lan, wan, tables, .. } = &self.setup;
        let lan: Vec<String> = lan.iter().map(|name| format!("--lan {name}")).collect();
        let nat = nat.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        format!("{} --wan {wan} --nat {nat} --tables {},{}", lan.join(" "), tables[0], tables[1])
    }
}

/// Starts a router with this file in the background, and waits until it forwards.
fn start(command: &Path, folder: &Path, file: &str, stop: &AtomicBool) -> Result<(), Failure> {
    let [path, log, notify] = ["router.toml", "router.log", "ready"].map(|name| folder.join(name));
    write(&path, file)?;
    let failed = |what: &str, path: &PathBuf, error: std::io::Error| {
        Failure::Failed(format!("{} cannot be {what}: {error}", Printable(path.display())))
    };
    let output = OutputFile::create(&log, true)?.into_file();
    let errors = output.try_clone().map_err(|error| failed("written", &log, error))?;
    // The router reports by the protocol of service managers that it is ready.
    let ready = UnixDatagram::bind(&notify).map_err(|error| failed("made", &notify, error))?;
    let mut router = Command::new(command);
    router.args(["router", "--config"]).arg(&path).env("NOTIFY_SOCKET", &notify).env_remove("WATCHDOG_USEC");
    router.stdin(Stdio::null()).stdout(output).stderr(errors).current_dir("/").process_group(0);
    let mut router = router.spawn().map_err(|error| failed("started", &command.to_owned(), error))?;
    let result = wait(&ready, &mut router, stop);
    drop(std::fs::remove_file(&notify));
    result.map_err(|failure| {
        drop(router.kill());
        drop(router.wait());
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        let said: Vec<String> = said.trim().lines().map(|line| Printable(line).to_string()).collect();
        if said.is_empty() { failure } else { failure.with(&said.join("\n")) }
    })
}

/// Waits until the router is ready.
fn wait(ready: &UnixDatagram, router: &mut Child, stop: &AtomicBool) -> Result<(), Failure> {
    let failed = |why: &str| Err(Failure::Failed(why.to_owned()));
    let until = Instant::now() + PATIENCE;
    if let Err(error) = ready.set_read_timeout(Some(std::time::Duration::from_millis(50))) {
        return failed(&format!("the router cannot be awaited: {error}"));
    }
    let mut message = [0; 4096];
    loop {
        if let Ok(length) = ready.recv(&mut message)
            && message[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1")
        {
            return Ok(());
        }
        match router.try_wait() {
            Ok(Some(status)) => return failed(&format!("the router has ended ({status}):")),
            Ok(None) => {}
            Err(error) => return failed(&format!("the router cannot be awaited: {error}")),
        }
        if stop.load(Ordering::Relaxed) {
            return failed("interrupted");
        }
        if Instant::now() >= until {
            return failed("the router has not started within a minute");
        }
    }
}
