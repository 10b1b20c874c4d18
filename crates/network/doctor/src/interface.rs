//! Findings about an interface: its suitability for a router, and obstacles.

use crate::finding::Finding;
use crate::probe::{InterfaceProperties, Offload};
use std::collections::BTreeSet;

/// Beginning of the kinds of Cutline's queue disciplines.
const OURS: &str = "cutline_";

/// The command that shapes a host's forwarded traffic between interfaces of these names. Where there are fewer, it has
/// words in their place.
pub fn router_up(names: &[String]) -> String {
    let name = |at: usize, word: &str| names.get(at).cloned().unwrap_or_else(|| word.to_owned());
    format!("cutline router up --lan {} --wan {} --rate RATE", name(0, "LAN"), name(1, "WAN"))
}

/// The findings about an interface. `named` is true if the user has named it as an interface of a router. For other
/// interfaces, states that are normal on a host are a note instead of a warning. `routes` is true if the host forwards;
/// then an interface with addresses needs no settings, because the router is between TUN interfaces. `up` is the
/// command for such a host.
pub fn interface(link: &InterfaceProperties, named: bool, routes: bool, up: &str) -> Vec<Finding> {
    let is_routed = routes && !link.addresses.is_empty();
    let tun = link.driver.as_deref() == Some("tun");
    let offloads = if is_routed || tun {
        let what = "as the host needs them: the router of a host that routes gets whole packets";
        vec![Finding::ok("offloads", what)]
    } else {
        vec![aggregation(link, named), checksums(link)]
    };
    let mut findings = vec![wire(link), driver(link), queue(link)];
    findings.extend(offloads);
    let others = [
        transmit_queues(link),
        addresses(link, named, is_routed, up),
        master(link, named),
        xdp(link),
        xdp_program(link),
    ];
    findings.extend(others.into_iter().flatten());
    findings
}

fn wire(link: &InterfaceProperties) -> Finding {
    let name = &link.name;
    let speed = link.speed.map_or_else(|| "speed not reported".to_owned(), |speed| speed.to_string());
    let duplex = match link.full_duplex {
        Some(true) => ", full duplex",
        Some(false) => ", half duplex",
        None => "",
    };
    let what = format!("{speed}{duplex}, MTU {}", link.mtu);
    match (link.up, link.carrier) {
        (false, _) => Finding::warning("wire", format!("down; {what}"), format!("ip link set {name} up")),
        (true, false) => Finding::warning("wire", format!("no carrier; {what}"), "connect the other end"),
        (true, true) if link.full_duplex == Some(false) => {
            let next = "configure full duplex at both ends: with half duplex, both directions share the rate";
            Finding::warning("wire", what, next)
        }
        (true, true) => Finding::ok("wire", what),
    }
}

fn driver(link: &InterfaceProperties) -> Finding {
    let name = link.driver.as_deref().or(link.kind.as_deref()).unwrap_or("not reported");
    let virtually = if link.kind.is_some() { ", virtual" } else { "" };
    let rings = link.rings.map_or_else(String::new, |[rx, tx]| format!(", rings {rx} rx, {tx} tx"));
    Finding::ok("driver", format!("{name}{virtually}, {} tx queues{rings}", link.tx_queues))
}

/// Returns the finding about queues behind the router's own.
fn queue(link: &InterfaceProperties) -> Finding {
    let behind = match (link.kind.is_some(), link.byte_limits) {
        (true, _) => "the other end of a virtual interface",
        (false, Some(true)) => "the driver, with a limit of bytes (BQL)",
        (false, Some(false)) => "the driver's ring, without a limit of bytes (no BQL)",
        (false, None) => "the driver's ring",
    };
    let what = format!(
        "{} for the host's own packets; the router's frames bypass it. After the router's queue: {behind}",
        link.qdisc
    );
    if link.kind.is_none() && link.byte_limits == Some(false) {
        return Finding::note("queues", what)
            .then("keep --rate below the rate of the wire, so that no frames wait there");
    }
    Finding::ok("queues", what)
}

/// Returns the finding about the queue disciplines of several transmit queues: whether Cutline's are one link, or could be.
fn transmit_queues(link: &InterfaceProperties) -> Option<Finding> {
    let subject = "transmit queues";
    let add = format!("cutline qdisc add dev {} --rate RATE --mq", link.name);
    if link.qdisc.starts_with(OURS) && link.tx_queues > 1 {
        let what = format!(
            "{} with one queue for all of them ({}): processors that send at the same time take turns",
            link.tx_queues, link.qdisc
        );
        return Some(
            Finding::note(subject, what)
                .then(format!("for a queue each, with one rate, above 1 Gbit/s: `{add} --replace`")),
        );
    }
    let all = link.below_mq.len();
    if all < 2 {
        return None;
    }
    let ours = link.below_mq.iter().filter(|kind| kind.starts_with(OURS)).count();
    let kinds: BTreeSet<&str> = link.below_mq.iter().map(String::as_str).collect();
    let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
    if ours == all {
        return Some(Finding::ok(subject, format!("{all} with {kinds} each, which have one rate together")));
    }
    if ours > 0 {
        let what = format!(
            "{ours} of {all} have a queue of Cutline's ({kinds}): the rate does not hold for packets of the others"
        );
        return Some(Finding::warning(subject, what, format!("{add} --replace")));
    }
    let what = format!("{all} with {kinds} below mq: each one orders and drops its own packets alone");
    Some(
        Finding::note(subject, what)
            .then(format!("for queues of Cutline's that have one rate together: `{add}`")),
    )
}

/// Receive aggregation merges frames into longer ones, which are too long for the other port.
fn aggregation(link: &InterfaceProperties, named: bool) -> Finding {
    let on = |offload: &Offload| link.offloads.contains(offload);
    let names: Vec<_> = [Offload::Gro, Offload::Lro].iter().filter(|it| on(it)).map(|it| it.name()).collect();
    let subject = "receive aggregation";
    if names.is_empty() {
        return Finding::ok(subject, "off");
    }
    let off: Vec<_> = names.iter().map(|name| format!("{name} off")).collect();
    let what = format!("{} on: it makes frames too long for the other interface", names.join(" and "));
    let next = format!("`ethtool -K {} {}`, or `cutline router --fix-offloads`", link.name, off.join(" "));
    if named { Finding::warning(subject, what, next) } else { Finding::note(subject, what).then(next) }
}

/// A virtual pair leaves checksums to hardware that does not exist, and passes long segments without splitting them. Both
/// must be switched off at the sending end, which is the one with addresses.
fn checksums(link: &InterfaceProperties) -> Finding {
    let subject = "transmit offloads";
    let on: Vec<_> = [Offload::TxChecksum, Offload::Tso, Offload::Gso]
        .iter()
        .filter(|offload| link.offloads.contains(offload))
        .map(|offload| offload.name())
        .collect();
    let what = if on.is_empty() { "off".to_owned() } else { format!("{} on", on.join(", ")) };
    if link.kind.as_deref() != Some("veth") {
        // The router's frames are complete and need none of them.
        return Finding::ok(subject, what);
    }
    if !link.addresses.is_empty() && link.offloads.contains(&Offload::TxChecksum) {
        let what = format!("{what}: packets leave without checksums, and are discarded behind a router");
        return Finding::warning(subject, what, format!("ethtool -K {} tx off", link.name));
    }
    let next = "at the other end of the pair, on the host: `ethtool -K INTERFACE tx off`";
    Finding::note(subject, format!("{what} at this end; packets from the other end may lack checksums"))
        .then(next)
}

fn addresses(link: &InterfaceProperties, named: bool, is_routed: bool, up: &str) -> Option<Finding> {
    let addresses = link.addresses.join(", ");
    if link.addresses.is_empty() {
        return None;
    }
    if is_routed {
        let what = format!("{addresses}: this host routes here, so a bridge is refused");
        let next = format!("`{up}` shapes forwarded traffic; `cutline router setup` is its first half");
        return Some(Finding::note("addresses", what).then(next));
    }
    if !named {
        return Some(Finding::note("addresses", addresses));
    }
    let what = format!("{addresses}: the host uses it itself, so a bridge is refused");
    let next = format!(
        "bridge interfaces without addresses; if this host shall route, turn forwarding on, and `{up}`"
    );
    Some(Finding::warning("addresses", what, next))
}

fn master(link: &InterfaceProperties, named: bool) -> Option<Finding> {
    let master = link.master.as_ref()?;
    let next = format!(
        "name `{master}` instead, if this host routes; or take it out: ip link set {} nomaster",
        link.name
    );
    let what = format!("it belongs to `{master}`, which receives its frames, too");
    Some(if named { Finding::warning("master", what, next) } else { Finding::note("master", what) })
}

/// Returns the finding whether an `AF_XDP` port would be faster.
fn xdp(link: &InterfaceProperties) -> Option<Finding> {
    let features = link.xdp_features?;
    Some(match (features.native, features.zero_copy) {
        (true, true) => Finding::ok("XDP", "in the driver, with zero copy"),
        (true, false) => Finding::note("XDP", "in the driver, copying: no faster than packet sockets"),
        (false, _) => Finding::note("XDP", "not in the driver: no faster than packet sockets"),
    })
}

fn xdp_program(link: &InterfaceProperties) -> Option<Finding> {
    let next = format!("ip link set {} xdp off, if nothing needs it", link.name);
    let what = "an XDP program receives frames before the router, and may drop or redirect them";
    link.xdp.then(|| Finding::warning("XDP program", what, next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::State;
    use crate::probe::XdpFeatures;
    use cutline_units::Rate;

    fn findings(link: &InterfaceProperties, named: bool) -> Vec<Finding> {
        interface(link, named, false, "cutline router up")
    }

    fn card() -> InterfaceProperties {
        InterfaceProperties {
            name: "eth0".into(),
            driver: Some("e1000e".into()),
            up: true,
            carrier: true,
            speed: Some(Rate::from_mbps(1000)),
            full_duplex: Some(true),
            mtu: 1500,
            qdisc: "fq_codel".into(),
            tx_queues: 1,
            rings: Some([256, 512]),
            byte_limits: Some(true),
            ..InterfaceProperties::default()
        }
    }

    fn of<'f>(findings: &'f [Finding], subject: &str) -> &'f Finding {
        findings.iter().find(|finding| finding.subject == subject).unwrap()
    }

    #[test]
    fn a_card_without_other_uses_is_ok() {
        let found = findings(&card(), true);
        assert!(found.iter().all(|finding| finding.state == State::Ok), "{found:?}");
        assert!(of(&found, "driver").what.contains("e1000e, 1 tx queues, rings 256 rx, 512 tx"), "{found:?}");
    }

    #[test]
    fn obstacles_of_a_router_are_warnings_at_named_interfaces() {
        let link = InterfaceProperties {
            offloads: vec![Offload::Gro, Offload::TxChecksum],
            addresses: vec!["10.0.0.1/24".into()],
            master: Some("br0".into()),
            ..card()
        };
        for (named, state) in [(true, State::Warning), (false, State::Note)] {
            let found = findings(&link, named);
            for subject in ["receive aggregation", "addresses", "master"] {
                assert_eq!(of(&found, subject).state, state, "{subject}");
            }
        }
        let found = findings(&link, true);
        let gro = of(&found, "receive aggregation").do_next.as_deref().unwrap();
        assert!(gro.contains("ethtool -K eth0 gro off") && gro.contains("--fix-offloads"), "{gro}");
        assert_eq!(of(&found, "transmit offloads").state, State::Ok, "a card computes them");
    }

    #[test]
    fn a_tun_interface_needs_no_settings() {
        let tun = InterfaceProperties {
            driver: Some("tun".into()),
            kind: Some("tun".into()),
            offloads: vec![Offload::Gro, Offload::Gso],
            ..card()
        };
        let found = findings(&tun, true);
        assert_eq!(of(&found, "offloads").state, State::Ok);
        assert!(found.iter().all(|finding| finding.do_next.is_none()), "{found:?}");
    }

    #[test]
    fn a_wire_that_is_down_or_half_duplex_is_a_warning() {
        let next = |link: InterfaceProperties| of(&findings(&link, true), "wire").do_next.clone().unwrap();
        assert_eq!(next(InterfaceProperties { up: false, ..card() }), "ip link set eth0 up");
        assert!(next(InterfaceProperties { carrier: false, ..card() }).contains("other end"));
        assert!(next(InterfaceProperties { full_duplex: Some(false), ..card() }).contains("full duplex"));
    }

    #[test]
    fn virtual_pairs_leave_checksums_out() {
        let veth =
            InterfaceProperties { kind: Some("veth".into()), offloads: vec![Offload::TxChecksum], ..card() };
        let state = |link: &InterfaceProperties| of(&findings(link, true), "transmit offloads").state;
        assert_eq!(state(&veth), State::Note, "the router's end");
        let host = InterfaceProperties { addresses: vec!["10.0.0.1/24".into()], ..veth };
        assert_eq!(state(&host), State::Warning, "the host's end");
    }

    #[test]
    fn a_driver_without_limits_is_noted() {
        let found = findings(&InterfaceProperties { byte_limits: Some(false), ..card() }, true);
        assert_eq!(of(&found, "queues").state, State::Note);
        let found = findings(&InterfaceProperties { xdp: true, ..card() }, false);
        assert_eq!(of(&found, "XDP program").state, State::Warning);
    }

    #[test]
    fn one_queue_for_several_transmit_queues_is_noted() {
        let link = InterfaceProperties { qdisc: "cutline_sieve3".into(), tx_queues: 8, ..card() };
        let found = findings(&link, false);
        let finding = of(&found, "transmit queues");
        assert_eq!(finding.state, State::Note);
        assert!(finding.what.starts_with("8 with one queue for all of them (cutline_sieve3)"), "{finding:?}");
        let next = finding.do_next.as_deref().unwrap();
        assert!(next.contains("cutline qdisc add dev eth0 --rate RATE --mq --replace"), "{next}");
        let has_one = |link: &InterfaceProperties| {
            findings(link, false).iter().any(|finding| finding.subject == "transmit queues")
        };
        assert!(!has_one(&InterfaceProperties { tx_queues: 1, ..link }));
        assert!(!has_one(&InterfaceProperties { tx_queues: 8, ..card() }), "one fq_codel");
    }

    #[test]
    fn queues_below_mq_are_one_link_if_all_are_cutlines() {
        let finding = |kinds: &[&str]| {
            let below_mq = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            let link = InterfaceProperties { qdisc: "mq".into(), tx_queues: 8, below_mq, ..card() };
            findings(&link, false).into_iter().find(|finding| finding.subject == "transmit queues")
        };
        let all = finding(&["cutline_tsq3", "cutline_tsq3"]).unwrap();
        assert_eq!((all.state, all.do_next), (State::Ok, None));
        assert!(all.what.starts_with("2 with cutline_tsq3 each"), "{}", all.what);
        let some = finding(&["cutline_tsq3", "fq_codel", "cutline_tsq3"]).unwrap();
        assert_eq!(some.state, State::Warning);
        assert!(
            some.what.starts_with("2 of 3 have a queue of Cutline's (cutline_tsq3, fq_codel)"),
            "{some:?}"
        );
        assert_eq!(some.do_next.as_deref(), Some("cutline qdisc add dev eth0 --rate RATE --mq --replace"));
        let none = finding(&["fq_codel", "fq_codel"]).unwrap();
        assert_eq!(none.state, State::Note);
        let next = none.do_next.as_deref().unwrap();
        assert!(next.ends_with("`cutline qdisc add dev eth0 --rate RATE --mq`"), "{next}");
        assert_eq!((finding(&[]), finding(&["fq_codel"])), (None, None));
    }

    #[test]
    fn drivers_that_share_memory_are_ok() {
        let state = |native, zero_copy| {
            let link =
                InterfaceProperties { xdp_features: Some(XdpFeatures { native, zero_copy }), ..card() };
            of(&findings(&link, true), "XDP").state
        };
        assert_eq!(
            (state(true, true), state(true, false), state(false, false)),
            (State::Ok, State::Note, State::Note)
        );
    }

    /// The host would be cut off, and a bridge would send every packet twice.
    #[test]
    fn a_gateway_gets_the_advice_to_route_and_to_keep_its_addresses() {
        let gateway = InterfaceProperties {
            addresses: vec!["10.0.0.1/24".into()],
            offloads: vec![Offload::Gro, Offload::TxChecksum],
            kind: Some("veth".into()),
            ..card()
        };
        let up = router_up(&["eth0".into(), "eth1".into()]);
        assert_eq!(up, "cutline router up --lan eth0 --wan eth1 --rate RATE");
        for (named, routes) in [(true, true), (false, true), (true, false)] {
            let found = interface(&gateway, named, routes, &up);
            let next = of(&found, "addresses").do_next.as_deref().unwrap();
            assert!(next.contains(&up) && !next.contains("flush"), "{next}");
            assert_eq!(next.contains("cutline router setup"), routes, "{next}");
            assert!(
                found.iter().all(|finding| !finding.do_next.as_deref().unwrap_or_default().contains("flush"))
            );
        }
        let found = interface(&gateway, true, true, &up);
        assert!(found.iter().all(|finding| finding.state <= State::Note), "{found:?}");
        assert_eq!(router_up(&[]), "cutline router up --lan LAN --wan WAN --rate RATE");
    }
}
