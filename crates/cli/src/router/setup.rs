//! `cutline router setup` and `undo`: interfaces, routes and rules by which the packets that a host forwards pass a router between two
//! TUN interfaces (docs/guide/router.md, "On a host that routes").
//!
//! Both are scripts that a person can read. They are written before the first command runs, so that whatever happens then can be undone.

use super::rules::Rules;
use crate::exit::Failure;
use crate::output_file::OutputFile;
use crate::{interrupt, output};
use clap::ValueEnum;
use cutline_sys::interface::{index, mtu};
use cutline_text::Printable;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lead the packets that this host forwards through two TUN interfaces, for a router between them
///
/// The first half of `cutline router up`. The host must be able to forward packets already, or have its addresses and routes at least. The
/// commands are written to two scripts in FOLDER/NAME first, do.sh and undo.sh. `cutline router undo` takes everything back, also after a
/// crash. After a reboot there is nothing to take back. While no router runs, packets take the same way as before. Requires root.
#[derive(clap::Args)]
#[command(after_help = SETUP_EXAMPLES)]
pub struct SetupArgs {
    #[command(flatten)]
    setup: Setup,
    /// Do not examine the firewall's rules, which may be loaded later, as at the start of the machine
    #[arg(long)]
    unchecked: bool,
    /// Print do.sh and undo.sh, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// The interfaces of a host that routes, and how its packets are led through a router.
#[derive(clap::Args)]
pub struct Setup {
    /// Interface to the hosts behind this one; may be repeated
    #[arg(long, value_name = "INTERFACE", required = true)]
    pub lan: Vec<String>,
    /// Interface to the link that fills up
    #[arg(long, value_name = "INTERFACE")]
    pub wan: String,
    /// Translation of addresses
    #[arg(long, value_enum, default_value_t = Nat::Auto)]
    pub nat: Nat,
    /// Numbers of two routing tables that are not in use
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = TABLES)]
    pub tables: Vec<u32>,
    #[command(flatten)]
    pub place: Place,
}

/// Take back what `cutline router setup` has done
///
/// Missing parts are skipped. Requires root.
#[derive(clap::Args)]
#[command(after_help = UNDO_EXAMPLES)]
pub struct UndoArgs {
    #[command(flatten)]
    place: Place,
    /// Print undo.sh, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Without a setup there is nothing to take back, and that is no failure
    #[arg(long)]
    if_exists: bool,
}

/// The name of a setup, and the folder of its scripts.
#[derive(clap::Args)]
pub struct Place {
    /// Name of the setup; its interfaces are NAME0 and NAME1
    #[arg(long, value_name = "NAME", default_value = USUAL_NAME)]
    pub name: String,
    /// Folder of all setups
    #[arg(long, value_name = "FOLDER", default_value = USUAL_FOLDER)]
    pub folder: PathBuf,
}

/// Translation of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Nat {
    /// `existing` if this host has rules that translate source addresses, else `none`
    Auto,
    /// Nothing: this host translates no addresses
    None,
    /// Only the exception for a host that translates addresses by rules of its own
    Existing,
    /// Translate the IPv4 addresses of what leaves by --wan to its own (masquerading)
    Masquerade,
}

const USUAL_NAME: &str = "cut";
const USUAL_FOLDER: &str = "/run/cutline/setup";

const TABLES: [u32; 2] = [7100, 7101];
/// The priorities of our rules: packets among the hosts behind this one, before forwarded ones.
const PRIORITIES: [u32; 2] = [7100, 7101];

/// The zone of connection tracking of the side of the hosts behind this one.
const ZONE: u16 = 7100;

const SETUP_EXAMPLES: &str = "Examples:
  cutline router setup --lan eth0 --wan eth1 --dry-run
  cutline router setup --lan eth0 --wan eth1
  cutline router setup --lan lan0 --lan wifi0 --wan ppp0 --nat masquerade
  cutline router --in tun:cut0 --out tun:cut1 --rate 40Mbit --reverse-rate 200Mbit";

const UNDO_EXAMPLES: &str = "Examples:
  cutline router undo --dry-run
  cutline router undo";

/// A command and what takes it back.
struct Step {
    forward: String,
    back: Option<String>,
}

/// The commands of a setup, in order.
#[derive(Default)]
struct Plan(Vec<Step>);

pub fn setup(args: &SetupArgs) -> Result<(), Failure> {
    let setup = &args.setup;
    let nat = setup.check(args.dry_run, args.unchecked)?;
    if args.dry_run {
        return output::print(&setup.shown(nat)?);
    }
    let stop = interrupt::cancel_flag("What was done is taken back.".to_owned())?;
    setup.make(nat, &stop)?;
    let [first, second] = setup.place.interfaces();
    output::print(&format!(
        "set up; {} says what was done, and `cutline router undo{}` takes it back\n\
         now start the router: cutline router --in tun:{first} --out tun:{second} --rate RATE --reverse-rate RATE\n",
        Printable(setup.place.path().join("do.sh").display()),
        setup.place.options()
    ))
}

pub fn undo(args: &UndoArgs) -> Result<(), Failure> {
    if args.if_exists && !args.place.path().exists() {
        return Ok(());
    }
    let script = args.place.path().join("undo.sh");
    let text = std::fs::read_to_string(&script).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::Failed(format!(
            "there is no setup {:?} in {}: nothing to take back",
            args.place.name,
            Printable(args.place.folder.display())
        )),
        _ => Failure::Failed(format!("{} cannot be read: {error}", Printable(script.display()))),
    })?;
    if args.dry_run {
        return output::print(&text);
    }
    args.place.undo()
}

impl Place {
    /// Returns the folder of this setup.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Returns the names of its two TUN interfaces: towards the hosts behind this one, and towards the link that fills up.
    pub fn interfaces(&self) -> [String; 2] {
        ["0", "1"].map(|end| format!("{}{end}", self.name))
    }

    /// Returns the options that choose this place, where it is not the usual one.
    pub fn options(&self) -> String {
        let mut text = String::new();
        if self.name != USUAL_NAME {
            let _ = write!(text, " --name {}", self.name);
        }
        if self.folder != Path::new(USUAL_FOLDER) {
            let _ = write!(text, " --folder {}", self.folder.display());
        }
        text
    }

    /// Makes the folder, which must not exist.
    fn make(&self) -> Result<PathBuf, Failure> {
        let path = self.path();
        std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::create_dir(&path)).map_err(|error| {
            let shown = Printable(path.display()).to_string();
            match error.kind() {
                ErrorKind::AlreadyExists => self.is_there(),
                _ => Failure::Failed(format!("{shown} cannot be made: {error}; are you root?")),
            }
        })?;
        Ok(path)
    }

    /// Returns the failure of a setup that is there already.
    fn is_there(&self) -> Failure {
        let path = self.path();
        Failure::Failed(format!(
            "already set up: {} says what was done; `cutline router down{options}` takes it back, and ends its router if one runs",
            Printable(path.join("do.sh").display()),
            options = self.options()
        ))
    }

    /// Takes the setup back after a failure, and returns the failure with what became of it.
    pub fn take_back(&self, failure: Failure) -> Failure {
        match self.undo() {
            Ok(()) => failure.with("everything was taken back"),
            Err(why) => failure.with(&format!("taking it back failed, too: {}", why.message())),
        }
    }

    /// Takes the setup back, and removes its folder.
    pub fn undo(&self) -> Result<(), Failure> {
        let path = self.path();
        run(&path.join("undo.sh"))?;
        std::fs::remove_dir_all(&path).map_err(|error| {
            Failure::Failed(format!("{} cannot be removed: {error}", Printable(path.display())))
        })
    }
}

impl Setup {
    /// Checks the options, the interfaces and the rules of this host. Returns the translation of addresses that the setup is for.
    ///
    /// # Errors
    /// When the setup is there already, is impossible, or would cut hosts off.
    pub fn check(&self, is_dry: bool, unchecked: bool) -> Result<Nat, Failure> {
        self.check_names()?;
        if !is_dry {
            self.check_interfaces()?;
        }
        if unchecked {
            return Ok(if self.nat == Nat::Auto { Nat::None } else { self.nat });
        }
        let rules = Rules::read();
        self.check_firewall(&rules)?;
        match (self.nat, rules.translate) {
            (Nat::Existing, false) => Err(Failure::Failed(
                "--nat existing: no rule of this host translates source addresses (`nft list ruleset`). If this host shall do so, use --nat \
                 masquerade; if another one does, or none, --nat none"
                    .to_owned(),
            )),
            (Nat::Auto, true) => Ok(Nat::Existing),
            (Nat::Auto, false) => Ok(Nat::None),
            (nat, _) => Ok(nat),
        }
    }

    /// Checks the names. They go into scripts, so they have letters, digits and a few signs only.
    fn check_names(&self) -> Result<(), Failure> {
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
                return Err(Failure::Usage(format!(
                    "{option} {name:?}: expected 1 to {longest} letters, digits, - _ and ., the first neither - nor ."
                )));
            }
        }
        if self.lan.contains(&self.wan) {
            return Err(Failure::Usage(format!(
                "--lan and --wan are both {}: they are two interfaces",
                self.wan
            )));
        }
        let is_own = |table: &u32| *table < 1 || (253..=255).contains(table);
        if self.tables.len() != 2 || self.tables[0] == self.tables[1] || self.tables.iter().any(is_own) {
            let written: Vec<String> = self.tables.iter().map(ToString::to_string).collect();
            return Err(Failure::Usage(format!(
                "--tables {}: expected two different numbers from 1 that are none of the kernel's own, 253 to 255, such as 7100,7101",
                written.join(",")
            )));
        }
        Ok(())
    }

    /// Checks that the interfaces are there, and that nothing is set up.
    fn check_interfaces(&self) -> Result<(), Failure> {
        for name in self.lan.iter().chain([&self.wan]) {
            index(name).map_err(|error| Failure::Usage(error.to_string()))?;
        }
        if self.place.path().exists() {
            return Err(self.place.is_there());
        }
        for name in self.place.interfaces() {
            if index(&name).is_ok() {
                return Err(Failure::Failed(format!(
                    "there is an interface {name} already: choose another --name"
                )));
            }
        }
        Ok(())
    }

    /// Checks that the firewall does not drop what passes the TUN interfaces.
    fn check_firewall(&self, rules: &Rules) -> Result<(), Failure> {
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
        Err(Failure::Failed(format!(
            "the firewall drops what its rules do not accept between interfaces ({}), and they do not name {near} and {far}. Packets pass it \
             twice: between {lan} and {near}, and between {far} and {wan}. Allow that first, in the firewall's own file if it has one; your rules \
             for {lan} and {wan} then belong to {far} and {wan}:{}",
            Printable(chain),
            ways.map(rule).concat()
        )))
    }

    /// Returns the scripts as text.
    ///
    /// # Errors
    /// When the routes of this host cannot be read.
    pub fn shown(&self, nat: Nat) -> Result<String, Failure> {
        let plan = self.plan(nat)?;
        Ok(format!("# do.sh\n{}\n# undo.sh\n{}", plan.forward(self), plan.back(&self.place.name)))
    }

    /// Sets up. If a command fails, or `stop` is set, undoes the earlier steps.
    ///
    /// # Errors
    /// When a command fails, or the setup is interrupted.
    pub fn make(&self, nat: Nat, stop: &AtomicBool) -> Result<(), Failure> {
        let plan = self.plan(nat)?;
        let folder = self.place.make()?;
        let done = write(&folder.join("undo.sh"), &plan.back(&self.place.name))
            .and_then(|()| write(&folder.join("do.sh"), &plan.forward(self)))
            .and_then(|()| run(&folder.join("do.sh")))
            .and_then(|()| {
                let is_stopped = stop.load(Ordering::Relaxed);
                if is_stopped { Err(Failure::Failed("interrupted".to_owned())) } else { Ok(()) }
            });
        done.map_err(|failure| self.place.take_back(failure))
    }

    fn plan(&self, nat: Nat) -> Result<Plan, Failure> {
        let mut plan = Plan::default();
        let [near, far] = self.place.interfaces();
        // No packet that fits both interfaces is too long for those between them. A dry run may be for another machine.
        let mtus = self.lan.iter().chain([&self.wan]).filter_map(|name| mtu(name).ok());
        let mtu = mtus.max().map_or_else(String::new, |mtu| format!(" mtu {mtu}"));
        for tun in [&near, &far] {
            plan.add(format!("ip tuntap add {tun} mode tun"), format!("ip link delete {tun}"));
            plan.add_kept(format!("ip link set {tun} up txqueuelen 4000{mtu}"));
            // Packets come from addresses whose routes lead elsewhere, which a strict check would refuse.
            plan.add_kept(set(&format!("ipv4/conf/{tun}/rp_filter"), "2"));
            for version in ["ipv4", "ipv6"].into_iter().filter(|version| has(version)) {
                plan.add_kept(set(&format!("{version}/conf/{tun}/ignore_routes_with_linkdown"), "1"));
            }
        }
        if let Some(was) = read("ipv4/ip_forward").filter(|was| was != "1") {
            plan.add(set("ipv4/ip_forward", "1"), set("ipv4/ip_forward", &was));
        }
        let [to_wan, to_lan] = [self.tables[0], self.tables[1]];
        for family in ["-4", "-6"] {
            if family == "-6" && !has("ipv6") {
                continue;
            }
            for (table, tun) in [(to_wan, &near), (to_lan, &far)] {
                plan.add_kept(format!("ip {family} route add default dev {tun} table {table}"));
            }
            for lan in &self.lan {
                for prefix in self.prefixes_beside(lan, family)? {
                    let rule = format!("iif {lan} to {prefix} lookup main priority {}", PRIORITIES[0]);
                    plan.add(
                        format!("ip {family} rule add {rule}"),
                        format!("ip {family} rule delete {rule}"),
                    );
                }
                let rule = format!("iif {lan} lookup {to_wan} priority {}", PRIORITIES[1]);
                plan.add(format!("ip {family} rule add {rule}"), format!("ip {family} rule delete {rule}"));
            }
            let rule = format!("iif {} lookup {to_lan} priority {}", self.wan, PRIORITIES[1]);
            plan.add(format!("ip {family} rule add {rule}"), format!("ip {family} rule delete {rule}"));
        }
        if matches!(nat, Nat::Existing | Nat::Masquerade) {
            plan.add(self.nat_rules(nat), format!("nft delete table inet {}", self.nat_table()));
        }
        Ok(plan)
    }

    /// Returns the prefixes that the other interfaces reach directly from hosts behind this one: such traffic
    /// does not pass the link that fills up.
    fn prefixes_beside(&self, lan: &str, family: &str) -> Result<Vec<String>, Failure> {
        let mut prefixes = Vec::new();
        for other in self.lan.iter().filter(|other| *other != lan) {
            let arguments =
                [family, "-json", "route", "show", "table", "main", "dev", other, "proto", "kernel"];
            let output = Command::new("ip").args(arguments).output();
            let output = output.map_err(|error| {
                Failure::Failed(format!("`ip` cannot be started: {error}; it is in iproute2"))
            })?;
            // Without routes there is nothing; without the interface, a dry run prints what is the same everywhere.
            let routes: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap_or_default();
            prefixes.extend(routes.iter().filter_map(|route| Some(route["dst"].as_str()?.to_owned())));
        }
        prefixes.retain(|prefix| !prefix.starts_with("fe80:"));
        prefixes.dedup();
        Ok(prefixes)
    }

    fn nat_table(&self) -> String {
        format!("cutline_{}", self.place.name.replace(['-', '.'], "_"))
    }

    /// Packets pass the host twice, and connection tracking must not take the second pass for the first. A zone of its own for the pass
    /// on the hosts' side makes them two connections: only that beside the WAN is translated. Without a router there is one pass,
    /// one connection, and it is translated, too.
    fn nat_rules(&self, nat: Nat) -> String {
        let near = &self.place.interfaces()[0];
        let lan: Vec<String> = self.lan.iter().map(|name| format!("\"{name}\"")).collect();
        let mut text = format!(
            "nft -f - <<'END'\ntable inet {} {{\n    chain twice {{\n        type filter hook prerouting priority raw; policy accept;\n        \
             iifname {{ {} }} ct original zone set {ZONE}\n        iifname \"{near}\" ct reply zone set {ZONE}\n    }}\n",
            self.nat_table(),
            lan.join(", ")
        );
        if nat == Nat::Masquerade {
            let wan = &self.wan;
            let lan = lan.join(", ");
            // Connections that began on the other path, before a router started or ended: they are reset, so that they begin anew.
            let _ = write!(
                text,
                "    chain translate {{\n        type nat hook postrouting priority srcnat; policy accept;\n        \
                 meta nfproto ipv4 oifname \"{wan}\" masquerade\n    }}\n    chain changed {{\n        \
                 type filter hook forward priority filter; policy accept;\n        \
                 meta nfproto ipv4 iifname {{ {lan} }} oifname \"{wan}\" ct status confirmed ct status ! snat goto refuse\n        \
                 meta nfproto ipv4 iifname {{ {lan} }} oifname \"{near}\" ct status snat goto refuse\n    }}\n    chain refuse {{\n        \
                 meta l4proto tcp reject with tcp reset\n        reject with icmp type port-unreachable\n    }}\n"
            );
        }
        text + "}\nEND"
    }
}

impl Plan {
    fn add(&mut self, forward: String, back: String) {
        self.0.push(Step { forward, back: Some(back) });
    }

    /// Adds a command that is taken back with another one: routes and settings go with their interface.
    fn add_kept(&mut self, forward: String) {
        self.0.push(Step { forward, back: None });
    }

    fn forward(&self, args: &Setup) -> String {
        let mut text = format!(
            "#!/bin/sh\n# Leads what is forwarded between {} and {} through {}. undo.sh takes it back.\nset -eu\n",
            args.lan.join(", "),
            args.wan,
            args.place.interfaces().join(" and ")
        );
        for step in &self.0 {
            text += &step.forward;
            text.push('\n');
        }
        text
    }

    /// In the reverse order; missing parts are skipped.
    fn back(&self, name: &str) -> String {
        let mut text = format!("#!/bin/sh\n# Takes back the setup {name}. Missing parts are skipped.\n");
        for step in self.0.iter().rev() {
            if let Some(back) = &step.back {
                let _ = writeln!(text, "{back} 2>/dev/null || true");
            }
        }
        text
    }
}

/// The command that sets a value below /proc/sys/net.
fn set(path: &str, value: &str) -> String {
    format!("echo {value} > /proc/sys/net/{path}")
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/sys/net/{path}")).ok().map(|text| text.trim().to_owned())
}

/// Returns whether the kernel has this version of IP.
fn has(version: &str) -> bool {
    Path::new("/proc/sys/net").join(version).exists()
}

/// Writes a file, but not through a symbolic link: a masked unit is a link to /dev/null.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    OutputFile::create(path, true)?.write_all(text.as_bytes())
}

/// Runs a script. The error has what its command said.
fn run(script: &Path) -> Result<(), Failure> {
    // Ctrl-C goes to this process alone, which takes back what was done.
    let output = Command::new("sh").arg(script).process_group(0).output();
    let output = output.map_err(|error| Failure::Failed(format!("`sh` cannot be started: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<String> = said.trim().lines().map(|line| Printable(line).to_string()).collect();
    Err(Failure::Failed(format!("{}: {}", Printable(script.display()), said.join("\n"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_unit_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let unit = folder.path().join("cutline.service");
        std::os::unix::fs::symlink("/dev/null", &unit).unwrap();
        let Err(Failure::Failed(message)) = write(&unit, "[Unit]\n") else { panic!("the unit is masked") };
        assert!(message.contains("cutline.service is a symbolic link"), "{message}");
        assert_eq!(std::fs::read_link(&unit).unwrap(), Path::new("/dev/null"));
        // What an earlier run has written is replaced.
        let script = folder.path().join("undo.sh");
        for text in ["first, and longer", "second"] {
            write(&script, text).map_err(|_| ()).unwrap();
            assert_eq!(std::fs::read_to_string(&script).unwrap(), text);
        }
    }
}
