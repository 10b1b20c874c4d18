//! A setup: its interfaces and options, checked, made and taken back.

use crate::error::{SetupError, write};
use crate::firewall::Rules;
use crate::place::{SetupPlace, run};
use crate::plan::Plan;
use crate::surroundings;
use cutline_sys::interface::index;
use cutline_text::Printable;
use std::sync::atomic::{AtomicBool, Ordering};

/// The usual numbers of the two routing tables.
pub const TABLES: [u32; 2] = [7100, 7101];

/// The interfaces of a host that routes, and the route of its packets through a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutedSetup {
    /// Interfaces to the hosts behind this one; at least one.
    pub lan: Vec<String>,
    /// Interface to the link that fills up.
    pub wan: String,
    /// Translation of addresses.
    pub nat: NatMode,
    /// Numbers of two routing tables that are not in use: towards the WAN, and towards the LAN.
    pub tables: [u32; 2],
    /// Its name, and the folder of its scripts.
    pub place: SetupPlace,
}

/// Translation of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NatMode {
    /// `Existing` if this host has rules that translate source addresses, else `None`.
    Auto,
    /// Nothing: this host translates no addresses.
    None,
    /// Only the exception for a host that translates addresses by rules of its own.
    Existing,
    /// The IPv4 addresses of packets that leave by the WAN are translated to the WAN's address (masquerading).
    Masquerade,
}

impl NatMode {
    /// Returns its name among the values of `--nat`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Existing => "existing",
            Self::Masquerade => "masquerade",
        }
    }
}

/// Returns the numbers of the two routing tables: towards the WAN, and towards the LAN.
///
/// # Errors
/// When they are not two different numbers of tables that the kernel does not use itself.
pub fn routing_tables(numbers: &[u32]) -> Result<[u32; 2], SetupError> {
    let is_free = |table: &u32| *table >= 1 && !(253..=255).contains(table);
    match <[u32; 2]>::try_from(numbers) {
        Ok([to_wan, to_lan]) if to_wan != to_lan && numbers.iter().all(is_free) => Ok([to_wan, to_lan]),
        _ => {
            let written: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            Err(SetupError::Invalid(format!(
                "--tables {}: expected two different numbers from 1 that are none of the kernel's own, 253 to 255, such as 7100,7101",
                written.join(",")
            )))
        }
    }
}

impl RoutedSetup {
    /// Checks the options, the interfaces and the rules of this host. Returns the translation of addresses that the setup is for.
    ///
    /// # Errors
    /// When the setup is there already, is impossible, or would cut hosts off.
    pub fn check(&self, is_dry: bool, unchecked: bool) -> Result<NatMode, SetupError> {
        self.check_names()?;
        if !is_dry {
            self.check_interfaces()?;
        }
        if unchecked {
            return Ok(if self.nat == NatMode::Auto { NatMode::None } else { self.nat });
        }
        if !is_dry {
            surroundings::check(self)?;
        }
        let rules = Rules::read();
        self.check_firewall(&rules)?;
        match (self.nat, rules.translate) {
            (NatMode::Existing, false) => Err(SetupError::Failed(
                "--nat existing: no rule of this host translates source addresses (`nft list ruleset`). If this host shall translate them, use \
                 --nat masquerade; if another host does, or none, use --nat none"
                    .to_owned(),
            )),
            (NatMode::Auto, true) => Ok(NatMode::Existing),
            (NatMode::Auto, false) => Ok(NatMode::None),
            (nat, _) => Ok(nat),
        }
    }

    /// Returns the omissions of the setup, as text: other interfaces by which this host routes.
    ///
    /// # Errors
    /// When the interfaces of this host cannot be read.
    pub fn warnings(&self) -> Result<Vec<String>, SetupError> {
        let names: Vec<String> =
            surroundings::left_out(self)?.iter().map(|name| format!("`{}`", Printable(name))).collect();
        let warning = || {
            format!(
                "warning: packets from hosts behind {} do not pass the router; name each interface with hosts behind it: --lan INTERFACE",
                names.join(", ")
            )
        };
        Ok((!names.is_empty()).then(warning).into_iter().collect())
    }

    /// Checks the names. They go into scripts, so they have letters, digits and a few signs only.
    fn check_names(&self) -> Result<(), SetupError> {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let named = self
            .lan
            .iter()
            .map(|name| ("--lan", name))
            .chain([("--wan", &self.wan), ("--name", &self.place.name)]);
        for (option, name) in named {
            // The name of a setup gets one more character, and an interface has 15 at most.
            let longest = if option == "--name" { 14 } else { 15 };
            if name.is_empty()
                || name.len() > longest
                || !name.chars().all(good)
                || name.starts_with(['-', '.'])
            {
                return Err(SetupError::Invalid(format!(
                    "{option} {name:?}: expected 1 to {longest} letters, digits, - _ and ., the first neither - nor ."
                )));
            }
        }
        if self.lan.contains(&self.wan) {
            return Err(SetupError::Invalid(format!(
                "--lan and --wan are both {}: name two interfaces",
                self.wan
            )));
        }
        Ok(())
    }

    /// Checks that the interfaces are there, and that nothing is set up.
    fn check_interfaces(&self) -> Result<(), SetupError> {
        for name in self.lan.iter().chain([&self.wan]) {
            index(name).map_err(|error| SetupError::Invalid(error.to_string()))?;
        }
        if self.place.path().exists() {
            return Err(self.place.is_there());
        }
        for name in self.place.interfaces() {
            if index(&name).is_ok() {
                return Err(SetupError::Failed(format!(
                    "there is an interface {name} already: choose another --name"
                )));
            }
        }
        Ok(())
    }

    /// Checks that the firewall does not drop packets on the TUN interfaces.
    fn check_firewall(&self, rules: &Rules) -> Result<(), SetupError> {
        let ends = self.place.interfaces();
        let Some(chain) = rules.drops.as_ref().filter(|_| !rules.know(&ends, &self.place.name)) else {
            return Ok(());
        };
        let [near, far] = ends;
        let (lan, wan) = (&self.lan[0], &self.wan);
        let ways = [(lan, &near, ""), (&near, lan, ""), (&far, wan, ""), (wan, &far, "established,related")];
        let rule = |(from, to, state): (&String, &String, &str)| {
            if chain == "FORWARD" {
                let state = if state.is_empty() {
                    String::new()
                } else {
                    format!(" -m conntrack --ctstate {}", state.to_uppercase())
                };
                format!("\n  iptables -I FORWARD -i {from} -o {to}{state} -j ACCEPT")
            } else {
                let state = if state.is_empty() { String::new() } else { format!(" ct state {state}") };
                format!("\n  nft insert rule {} iifname {from} oifname {to}{state} accept", Printable(chain))
            }
        };
        Err(SetupError::Failed(format!(
            "the firewall drops forwarded packets that its rules do not accept ({}), and they do not name {near} and {far}. Packets pass it \
             twice: between {lan} and {near}, and between {far} and {wan}. Allow these packets first, in the firewall's own file if it has one; your rules \
             for {lan} and {wan} then belong to {far} and {wan}:{}",
            Printable(chain),
            ways.map(rule).concat()
        )))
    }

    /// Returns the scripts as text.
    ///
    /// # Errors
    /// When the routes of this host cannot be read.
    pub fn shown(&self, nat: NatMode) -> Result<String, SetupError> {
        let plan = Plan::new(self, nat)?;
        Ok(format!("# do.sh\n{}\n# undo.sh\n{}", plan.forward(self), plan.back(&self.place.name)))
    }

    /// Sets up. If a command fails, or `stop` is set, undoes the earlier steps.
    ///
    /// # Errors
    /// When a command fails, or the setup is interrupted.
    pub fn make(&self, nat: NatMode, stop: &AtomicBool) -> Result<(), SetupError> {
        let plan = Plan::new(self, nat)?;
        let folder = self.place.make()?;
        let done = write(&folder.join("undo.sh"), &plan.back(&self.place.name))
            .and_then(|()| write(&folder.join("do.sh"), &plan.forward(self)))
            .and_then(|()| run(&folder.join("do.sh")))
            .and_then(|()| {
                let is_stopped = stop.load(Ordering::Relaxed);
                if is_stopped { Err(SetupError::Failed("interrupted".to_owned())) } else { Ok(()) }
            });
        done.map_err(|error| self.place.take_back(error))
    }

    /// Returns the options of `cutline router setup` for this setup, for a unit that gives the name.
    pub fn options(&self, nat: NatMode) -> String {
        let lan: Vec<String> = self.lan.iter().map(|name| format!("--lan {name}")).collect();
        let [to_wan, to_lan] = self.tables;
        format!("{} --wan {} --nat {} --tables {to_wan},{to_lan}", lan.join(" "), self.wan, nat.name())
    }
}
