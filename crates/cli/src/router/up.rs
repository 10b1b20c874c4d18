//! `cutline router up` and `down`: everything that a host that routes needs, by one command, and its removal.
//!
//! `up` runs `cutline router setup` and starts the router, which continues when the command has ended, as a tunnel does after
//! `wg-quick up`. `down` finds the router by its claim on the TUN interface, so it needs no file that could be out of date
//! (docs/adr/0051-router-up.md).

use super::setup::{PlaceOptions, SetupOptions};
use crate::arguments::{duration, overhead};
use crate::exit::Failure;
use crate::queue_args::link_rate;
use crate::{interrupt, output};
use clap::ValueEnum;
use cutline_router::Overhead;
use cutline_router_service::{RouterSpec, warnings};
use cutline_router_setup::{FairShares, NatMode, RouterFile, SystemdUnits, start};
use cutline_text::Printable;
use cutline_units::{Duration, Rate};

/// Shape the traffic that this host forwards: set up its routes, and start a router
///
/// For a host that routes, such as the gateway of a home or an office. Runs `cutline router setup`, starts a router, and returns
/// when it forwards. `cutline router down` undoes both. If the router ends for any reason, packets are forwarded without it. After a
/// restart of the machine nothing is left, unless --persist is given. Requires root.
#[derive(clap::Args)]
#[command(after_help = UP_EXAMPLES)]
pub struct UpArgs {
    #[command(flatten)]
    setup: SetupOptions,
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
/// Works also after the router was killed, and after --persist. Missing parts are skipped. Requires root.
#[derive(clap::Args)]
#[command(after_help = DOWN_EXAMPLES)]
pub struct DownArgs {
    #[command(flatten)]
    place: PlaceOptions,
    /// Exit with 0 if there is nothing to undo
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

pub fn up(args: &UpArgs) -> Result<(), Failure> {
    let setup = args.setup.setup()?;
    let place = &setup.place;
    let units = SystemdUnits::of(&place.name);
    let command = std::env::current_exe()
        .map_err(|error| Failure::Failed(format!("the path of this command is not known: {error}")))?;
    let socket = args.persist.then(|| units.socket());
    let file = args.file().text(place, socket.as_deref())?;
    let spec = RouterSpec::parse(&file, "the router's file")?;
    let nat = setup.check(args.dry_run, false)?;
    if args.dry_run {
        return output::print(&format!("{}\n# router.toml\n{file}", setup.shown(nat)?));
    }
    for warning in setup.warnings()?.into_iter().chain(warnings(&spec)) {
        crate::message::print(&warning);
    }
    let stats = if args.persist {
        if place.options().contains("--folder") {
            return Err(Failure::Usage("--folder is for setups without --persist".to_owned()));
        }
        units.check(&command)?;
        let stop = interrupt::cancel_flag("All changes are undone.".to_owned())?;
        units.start(&command, &setup.options(nat), &file, &stop)?;
        format!(
            "The router starts with the machine. Its file is {}; `systemctl status 'cutline-*@{name}'` and `journalctl -u cutline-router@{name}` \
             show more",
            Printable(units.router().display()),
            name = place.name
        )
    } else {
        let stop = interrupt::cancel_flag("The changes are undone.".to_owned())?;
        setup.make(nat, &stop)?;
        start(&command, &place.path(), &file, &stop).map_err(|error| place.take_back(error))?;
        format!(
            "The router ends with the machine, unless --persist is given. Its messages are in {}",
            Printable(place.path().join("router.log").display())
        )
    };
    output::print(&format!(
        "up: {} to {} at {}, back at {}{}\n`cutline router stats` shows its statistics; `cutline router down{}` undoes everything. {stats}\n",
        setup.lan.join(" and "),
        setup.wan,
        args.rate,
        args.file().reverse_rate,
        if nat == NatMode::None { "" } else { ", addresses are translated" },
        place.options()
    ))
}

pub fn down(args: &DownArgs) -> Result<(), Failure> {
    let place = args.place.place();
    let units = SystemdUnits::of(&place.name);
    let (is_persistent, is_set_up) = (units.are_written(), place.path().exists());
    if is_persistent {
        units.stop()?;
    } else if !is_set_up {
        return if args.if_exists { Ok(()) } else { Err(place.is_missing().into()) };
    }
    place.end_router()?;
    if place.path().exists() {
        place.undo()?;
    }
    Ok(())
}

impl UpArgs {
    fn file(&self) -> RouterFile {
        RouterFile {
            rate: self.rate,
            reverse_rate: self.reverse_rate.unwrap_or(self.rate),
            rtt: self.rtt,
            overhead: self.overhead,
            fair: match self.fair {
                Fair::Hosts => FairShares::Hosts,
                Fair::Flows => FairShares::Flows,
            },
        }
    }
}
