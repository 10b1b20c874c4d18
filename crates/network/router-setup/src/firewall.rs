//! The firewall's rules of this host, as far as they matter to packets that pass it twice: whether they translate source addresses, and
//! whether they drop unknown packets.

use std::process::Command;

/// The rules of nftables and of iptables.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// True if a rule translates source addresses.
    pub translate: bool,
    /// The place of a chain that drops packets that its rules do not accept between interfaces, in the words of its command.
    pub drops: Option<String>,
    /// The text of the rules.
    text: String,
}

/// The beginning of the names of our own tables.
const OWN: &str = "cutline_";

impl Rules {
    /// Reads the rules of this host. Rules that cannot be read are taken for none: without `nft` and `iptables` there is nothing that
    /// could have set them.
    pub fn read() -> Self {
        let nft = output("nft", &["list", "ruleset"]).unwrap_or_default();
        let legacy = ["nat", "filter"].map(|table| {
            // Reading a table of iptables loads it, so the kernel's list is read first.
            let tables = std::fs::read_to_string("/proc/net/ip_tables_names").unwrap_or_default();
            let is_there = tables.lines().any(|name| name == table);
            let saved = || {
                ["iptables-legacy-save", "iptables-save"]
                    .into_iter()
                    .find_map(|command| output(command, &["-t", table]))
            };
            if is_there { saved().unwrap_or_default() } else { String::new() }
        });
        Self::of(&nft, &legacy.concat())
    }

    /// Returns the rules in the output of `nft list ruleset` and of `iptables-save`.
    fn of(nft: &str, legacy: &str) -> Self {
        let mut rules = Self::default();
        rules.add_nft(nft);
        rules.add_legacy(legacy);
        rules
    }

    /// Returns whether a rule names both interfaces.
    pub fn know(&self, interfaces: &[String; 2], prefix: &str) -> bool {
        let is_named = |name: &str| self.text.contains(name);
        interfaces.iter().all(|name| is_named(name))
            || is_named(&format!("{prefix}*"))
            || is_named(&format!("{prefix}+"))
    }

    fn add_nft(&mut self, text: &str) {
        let (mut table, mut chain) = (String::new(), String::new());
        // The kind of the present chain, and whether its last rule drops the remaining packets.
        let (mut is_forward, mut last) = (false, "");
        for line in text.lines().map(str::trim) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["table", family, name, ..] => table = format!("{family} {name}"),
                ["chain", name, ..] => {
                    (is_forward, last) = (false, "");
                    (*name).clone_into(&mut chain);
                }
                _ if table.split(' ').next_back().is_some_and(|name| name.starts_with(OWN)) => {}
                ["type", "filter", "hook", "forward", ..] => {
                    is_forward = true;
                    if line.contains("policy drop") {
                        self.drops = Some(format!("{table} {chain}"));
                    }
                }
                ["}"] if is_forward && is_end(last) => self.drops = Some(format!("{table} {chain}")),
                _ => {
                    self.translate |= translates(&words);
                    self.text += line;
                    self.text.push('\n');
                    last = line;
                }
            }
        }
    }

    fn add_legacy(&mut self, text: &str) {
        for line in text.lines() {
            if line.starts_with(":FORWARD DROP") {
                self.drops = Some("FORWARD".to_owned());
            }
            let target = line.split_once(" -j ").map(|(_, target)| target);
            self.translate |=
                target.is_some_and(|target| translates(&[target.split(' ').next().unwrap_or_default()]));
            let is_last_word = line == "-A FORWARD -j DROP" || line.starts_with("-A FORWARD -j REJECT");
            if is_last_word {
                self.drops = Some("FORWARD".to_owned());
            }
            self.text += line;
            self.text.push('\n');
        }
    }
}

/// Returns whether a rule translates source addresses. `ct status snat` only asks whether one has.
fn translates(words: &[&str]) -> bool {
    let is_it = |at: usize| {
        let word = words[at].trim_matches('"');
        matches!(word, "masquerade" | "snat" | "MASQUERADE" | "SNAT" | "NETMAP")
            && (at == 0 || !matches!(words[at - 1], "status" | "!" | "=="))
    };
    (0..words.len()).any(is_it)
}

/// Returns whether a rule drops all packets that come to it.
fn is_end(rule: &str) -> bool {
    let mut words = rule.split_whitespace().peekable();
    while let Some(word) = words.next() {
        match word {
            "counter" => {
                while words
                    .next_if(|word| matches!(*word, "packets" | "bytes") || word.parse::<u64>().is_ok())
                    .is_some()
                {}
            }
            "drop" | "reject" => return true,
            _ => return false,
        }
    }
    false
}

fn output(command: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(command).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nft(rules: &str) -> Rules {
        Rules::of(rules, "")
    }

    fn chain(kind: &str, rules: &str) -> String {
        format!("table inet home {{\n\tchain c {{\n\t\ttype {kind};\n\t\t{rules}\n\t}}\n}}\n")
    }

    #[test]
    fn translation_is_found_in_each_form() {
        let nat =
            |rule: &str| nft(&chain("nat hook postrouting priority srcnat; policy accept", rule)).translate;
        for rule in [
            "oifname \"wan\" masquerade",
            "ip saddr 10.0.0.0/8 counter packets 3 bytes 9 snat to 192.0.2.1",
            "oifname \"wan\" counter packets 0 bytes 0 xt target \"MASQUERADE\"",
        ] {
            assert!(nat(rule), "{rule}");
        }
        for rule in ["ct status snat accept", "ct status ! snat drop", "accept", "dnat to 10.0.0.1"] {
            assert!(!nat(rule), "{rule}");
        }
        assert!(Rules::of("", "*nat\n-A POSTROUTING -o wan -j MASQUERADE\n").translate);
        assert!(!Rules::of("", "*nat\n-A PREROUTING -j DNAT --to-destination 10.0.0.1\n").translate);
        let own = chain("nat hook postrouting priority srcnat; policy accept", "oifname \"wan\" masquerade");
        assert!(!nft(&own.replace("home", "cutline_cut")).translate, "what a setup has added");
    }

    #[test]
    fn a_firewall_that_drops_the_rest_is_found() {
        let forward = |policy: &str, rule: &str| {
            nft(&chain(&format!("filter hook forward priority filter; policy {policy}"), rule)).drops
        };
        assert_eq!(forward("drop", "iifname \"lan\" oifname \"wan\" accept").as_deref(), Some("inet home c"));
        assert_eq!(
            forward("accept", "iifname \"lan\" accept\n\t\tcounter packets 1 bytes 2 drop").as_deref(),
            Some("inet home c")
        );
        assert_eq!(
            forward("accept", "reject with icmp type admin-prohibited").as_deref(),
            Some("inet home c")
        );
        assert_eq!(forward("accept", "ip saddr 10.0.0.9 drop"), None, "only of one host");
        assert_eq!(nft(&chain("filter hook input priority filter; policy drop", "accept")).drops, None);
        assert_eq!(Rules::of("", "*filter\n:FORWARD DROP [0:0]\n").drops.as_deref(), Some("FORWARD"));
        assert_eq!(Rules::of("", "-A FORWARD -j REJECT --reject-with x\n").drops.as_deref(), Some("FORWARD"));
    }

    #[test]
    fn rules_know_interfaces_by_name_or_by_pattern() {
        let ends = ["cut0".to_owned(), "cut1".to_owned()];
        let know = |rule: &str| {
            nft(&chain("filter hook forward priority filter; policy drop", rule)).know(&ends, "cut")
        };
        assert!(know("iifname { \"lan\", \"cut0\", \"cut1\" } accept") && know("iifname \"cut*\" accept"));
        assert!(!know("iifname \"lan\" oifname \"wan\" accept") && !know("iifname \"cut0\" accept"));
    }
}
