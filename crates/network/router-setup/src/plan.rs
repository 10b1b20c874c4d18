//! The commands of a setup, and those that take them back, as scripts.

use crate::error::SetupError;
use crate::setup::{NatMode, RoutedSetup};
use crate::surroundings::DUMMY;
use cutline_sys::interface::mtu;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The priorities of our rules: packets among the hosts behind this one, before forwarded ones.
const PRIORITIES: [u32; 2] = [7100, 7101];

/// The zone of connection tracking of the side of the hosts behind this one.
const ZONE: u16 = 7100;

/// A command and its inverse.
struct Step {
    forward: String,
    back: Option<String>,
}

/// The commands of a setup, in order.
#[derive(Default)]
pub struct Plan(Vec<Step>);

impl Plan {
    /// Returns the commands of a setup.
    ///
    /// # Errors
    /// When the routes of this host cannot be read.
    pub fn new(setup: &RoutedSetup, nat: NatMode) -> Result<Self, SetupError> {
        let mut plan = Self::default();
        let [near, far] = setup.place.interfaces();
        // No packet that fits both interfaces is too long for those between them. A dry run may be for another machine.
        let mtus = setup.lan.iter().chain([&setup.wan]).filter_map(|name| mtu(name).ok());
        let mtu = mtus.max().map_or_else(String::new, |mtu| format!(" mtu {mtu}"));
        for tun in [&near, &far] {
            plan.add(format!("ip tuntap add {tun} mode tun"), format!("ip link delete {tun}"));
            plan.add_kept(format!("ip link set {tun} up txqueuelen 4000{mtu}"));
            // Packets come from addresses whose routes lead elsewhere. A strict check would refuse them, and so would any check at an
            // interface that has no address.
            plan.add_kept(format!("ip address add {DUMMY}/32 dev {tun}"));
            plan.add_kept(set(&format!("ipv4/conf/{tun}/rp_filter"), "2"));
            for version in ["ipv4", "ipv6"].into_iter().filter(|version| has(version)) {
                plan.add_kept(set(&format!("{version}/conf/{tun}/ignore_routes_with_linkdown"), "1"));
            }
        }
        if let Some(was) = read("ipv4/ip_forward").filter(|was| was != "1") {
            plan.add(set("ipv4/ip_forward", "1"), set("ipv4/ip_forward", &was));
        }
        let [to_wan, to_lan] = setup.tables;
        for family in ["-4", "-6"] {
            if family == "-6" && !has("ipv6") {
                continue;
            }
            for (table, tun) in [(to_wan, &near), (to_lan, &far)] {
                plan.add_kept(format!("ip {family} route add default dev {tun} table {table}"));
            }
            for lan in &setup.lan {
                for prefix in prefixes_beside(&setup.lan, lan, family)? {
                    let rule = format!("iif {lan} to {prefix} lookup main priority {}", PRIORITIES[0]);
                    plan.add(
                        format!("ip {family} rule add {rule}"),
                        format!("ip {family} rule delete {rule}"),
                    );
                }
                let rule = format!("iif {lan} lookup {to_wan} priority {}", PRIORITIES[1]);
                plan.add(format!("ip {family} rule add {rule}"), format!("ip {family} rule delete {rule}"));
            }
            let rule = format!("iif {} lookup {to_lan} priority {}", setup.wan, PRIORITIES[1]);
            plan.add(format!("ip {family} rule add {rule}"), format!("ip {family} rule delete {rule}"));
        }
        if matches!(nat, NatMode::Existing | NatMode::Masquerade) {
            plan.add(
                nat_rules(setup, nat),
                format!("nft delete table inet {}", nat_table(&setup.place.name)),
            );
        }
        Ok(plan)
    }

    fn add(&mut self, forward: String, back: String) {
        self.0.push(Step { forward, back: Some(back) });
    }

    /// Adds a command that is taken back with another one: routes and settings go with their interface.
    fn add_kept(&mut self, forward: String) {
        self.0.push(Step { forward, back: None });
    }

    /// Returns the script that makes the setup.
    pub fn forward(&self, setup: &RoutedSetup) -> String {
        let mut text = format!(
            "#!/bin/sh\n# Leads forwarded packets between {} and {} through {}. undo.sh undoes it.\nset -eu\n",
            setup.lan.join(", "),
            setup.wan,
            setup.place.interfaces().join(" and ")
        );
        for step in &self.0 {
            text += &step.forward;
            text.push('\n');
        }
        text
    }

    /// Returns the script that takes the setup back: in the reverse order; missing parts are skipped.
    pub fn back(&self, name: &str) -> String {
        let mut text = format!("#!/bin/sh\n# Undoes the setup {name}. Missing parts are skipped.\n");
        for step in self.0.iter().rev() {
            if let Some(back) = &step.back {
                let _ = writeln!(text, "{back} 2>/dev/null || true");
            }
        }
        text
    }
}

/// Returns the prefixes that the other interfaces reach directly from hosts behind this one: such traffic
/// does not pass the link that fills up.
fn prefixes_beside(all: &[String], lan: &str, family: &str) -> Result<Vec<String>, SetupError> {
    let mut prefixes = Vec::new();
    for other in all.iter().filter(|other| *other != lan) {
        let arguments = [family, "-json", "route", "show", "table", "main", "dev", other, "proto", "kernel"];
        let output = Command::new("ip").args(arguments).output();
        let output = output.map_err(|error| {
            SetupError::Failed(format!("`ip` cannot be started: {error}; it is in iproute2"))
        })?;
        // Without routes there is no command; without the interface, a dry run prints the commands that are the same everywhere.
        let routes: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap_or_default();
        prefixes.extend(routes.iter().filter_map(|route| Some(route["dst"].as_str()?.to_owned())));
    }
    prefixes.retain(|prefix| !prefix.starts_with("fe80:"));
    prefixes.dedup();
    Ok(prefixes)
}

/// Returns the name of the table of rules of a setup.
fn nat_table(name: &str) -> String {
    format!("cutline_{}", name.replace(['-', '.'], "_"))
}

/// Returns the rules for the translation of addresses.
///
/// Packets pass the host twice, and connection tracking must not take the second pass for the first. A zone of its own for the pass
/// on the hosts' side makes them two connections: only that beside the WAN is translated. Without a router there is one pass,
/// one connection, and it is translated, too.
fn nat_rules(setup: &RoutedSetup, nat: NatMode) -> String {
    let near = &setup.place.interfaces()[0];
    let lan: Vec<String> = setup.lan.iter().map(|name| format!("\"{name}\"")).collect();
    let mut text = format!(
        "nft -f - <<'END'\ntable inet {} {{\n    chain twice {{\n        type filter hook prerouting priority raw; policy accept;\n        \
         iifname {{ {} }} ct original zone set {ZONE}\n        iifname \"{near}\" ct reply zone set {ZONE}\n    }}\n",
        nat_table(&setup.place.name),
        lan.join(", ")
    );
    if nat == NatMode::Masquerade {
        let wan = &setup.wan;
        let lan = lan.join(", ");
        // Connections that began on the other path, before a router started or ended: they are reset, so that they start again.
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

/// The command that sets a value below /proc/sys/net.
fn set(path: &str, value: &str) -> String {
    format!("echo {value} > /proc/sys/net/{path}")
}

/// Reads a value below /proc/sys/net.
pub fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/sys/net/{path}")).ok().map(|text| text.trim().to_owned())
}

/// Returns whether the kernel has this version of IP.
fn has(version: &str) -> bool {
    Path::new("/proc/sys/net").join(version).exists()
}
