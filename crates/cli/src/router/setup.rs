//! `cutline router setup` and `undo`: interfaces, routes and rules by which the packets that a host forwards pass a router between two
//! TUN interfaces (docs/guide/router.md, "On a host that routes").

use crate::exit::Failure;
use crate::{interrupt, output};
use clap::ValueEnum;
use cutline_router_setup::{
    NatMode, RoutedSetup, SetupError, SetupPlace, TABLES, USUAL_FOLDER, USUAL_NAME, routing_tables,
};
use cutline_text::Printable;
use std::path::PathBuf;

/// Lead the packets that this host forwards through two TUN interfaces, for a router between them
///
/// The first half of `cutline router up`. The host must be able to forward packets already, or have its addresses and routes at least. The
/// commands are written to two scripts in FOLDER/NAME first, do.sh and undo.sh. `cutline router undo` undoes everything, also after a
/// crash. After a reboot nothing is left to undo. While no router runs, packets take the same path as before. Requires root.
#[derive(clap::Args)]
#[command(after_help = SETUP_EXAMPLES)]
pub struct SetupArgs {
    #[command(flatten)]
    setup: SetupOptions,
    /// Do not examine the firewall's rules, which may be loaded later, as at the start of the machine
    #[arg(long)]
    unchecked: bool,
    /// Print do.sh and undo.sh, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// The interfaces of a host that routes, and the route of its packets through a router.
#[derive(clap::Args)]
pub struct SetupOptions {
    /// Interface to the hosts behind this one; may be repeated
    #[arg(long, value_name = "INTERFACE", required = true)]
    pub lan: Vec<String>,
    /// Interface to the link that fills up
    #[arg(long, value_name = "INTERFACE")]
    pub wan: String,
    /// Translation of addresses
    #[arg(long, value_enum, default_value_t = NatOption::Auto)]
    pub nat: NatOption,
    /// Numbers of two routing tables that are not in use
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = TABLES)]
    pub tables: Vec<u32>,
    #[command(flatten)]
    pub place: PlaceOptions,
}

/// Undo `cutline router setup`
///
/// Missing parts are skipped. Requires root.
#[derive(clap::Args)]
#[command(after_help = UNDO_EXAMPLES)]
pub struct UndoArgs {
    #[command(flatten)]
    place: PlaceOptions,
    /// Print undo.sh, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Exit with 0 if there is no setup
    #[arg(long)]
    if_exists: bool,
}

/// The name of a setup, and the folder of its scripts.
#[derive(clap::Args)]
pub struct PlaceOptions {
    /// Name of the setup; its interfaces are NAME0 and NAME1
    #[arg(long, value_name = "NAME", default_value = USUAL_NAME)]
    pub name: String,
    /// Folder of all setups
    #[arg(long, value_name = "FOLDER", default_value = USUAL_FOLDER)]
    pub folder: PathBuf,
}

/// Translation of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NatOption {
    /// `existing` if this host has rules that translate source addresses, else `none`
    Auto,
    /// Nothing: this host translates no addresses
    None,
    /// Only the exception for a host that translates addresses by rules of its own
    Existing,
    /// Translate the IPv4 addresses of packets that leave by --wan to its own (masquerading)
    Masquerade,
}

const SETUP_EXAMPLES: &str = "Examples:
  cutline router setup --lan eth0 --wan eth1 --dry-run
  cutline router setup --lan eth0 --wan eth1
  cutline router setup --lan lan0 --lan wifi0 --wan ppp0 --nat masquerade
  cutline router --in tun:cut0 --out tun:cut1 --rate 40Mbit --reverse-rate 200Mbit";

const UNDO_EXAMPLES: &str = "Examples:
  cutline router undo --dry-run
  cutline router undo";

pub fn setup(args: &SetupArgs) -> Result<(), Failure> {
    let setup = args.setup.setup()?;
    let nat = setup.check(args.dry_run, args.unchecked)?;
    if args.dry_run {
        return output::print(&setup.shown(nat)?);
    }
    for warning in setup.warnings()? {
        crate::message::print(&warning);
    }
    let stop = interrupt::cancel_flag("The changes are undone.".to_owned())?;
    setup.make(nat, &stop)?;
    let [first, second] = setup.place.interfaces();
    output::print(&format!(
        "set up; {} lists the changes, and `cutline router undo{}` undoes them\n\
         now start the router: cutline router --in tun:{first} --out tun:{second} --rate RATE --reverse-rate RATE\n",
        Printable(setup.place.path().join("do.sh").display()),
        setup.place.options()
    ))
}

pub fn undo(args: &UndoArgs) -> Result<(), Failure> {
    let place = args.place.place();
    if args.if_exists && !place.path().exists() {
        return Ok(());
    }
    let text = place.undo_script()?;
    if args.dry_run {
        return output::print(&text);
    }
    Ok(place.undo()?)
}

impl SetupOptions {
    /// Returns the setup.
    pub fn setup(&self) -> Result<RoutedSetup, Failure> {
        Ok(RoutedSetup {
            lan: self.lan.clone(),
            wan: self.wan.clone(),
            nat: self.nat.into(),
            tables: routing_tables(&self.tables)?,
            place: self.place.place(),
        })
    }
}

impl PlaceOptions {
    /// Returns the name and the folder.
    pub fn place(&self) -> SetupPlace {
        SetupPlace { name: self.name.clone(), folder: self.folder.clone() }
    }
}

impl From<NatOption> for NatMode {
    fn from(nat: NatOption) -> Self {
        match nat {
            NatOption::Auto => Self::Auto,
            NatOption::None => Self::None,
            NatOption::Existing => Self::Existing,
            NatOption::Masquerade => Self::Masquerade,
        }
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Invalid(message) => Self::Usage(message),
            SetupError::Failed(message) => Self::Failed(message),
        }
    }
}
