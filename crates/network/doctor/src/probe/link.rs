//! An interface, as the kernel and its driver describe it.

use super::xdp::{self, XdpFeatures};
use super::{command, kernel, qdisc};
use cutline_sys::ethtool::{self, Command, LRO, LinkMode, RX_VLAN, TX_VLAN};
use cutline_units::Rate;
use serde_json::Value;
use std::fs;

/// The properties of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceProperties {
    /// Its name.
    pub name: String,
    /// The kind of a virtual interface, such as `veth`, `tun` or `bridge`; `None` for a network card.
    pub kind: Option<String>,
    /// The name of the driver; `None` if it is not reported.
    pub driver: Option<String>,
    /// True if the interface is up.
    pub up: bool,
    /// True if there is a carrier: the other end of the wire is connected.
    pub carrier: bool,
    /// The rate of the wire; `None` if the driver does not report it.
    pub speed: Option<Rate>,
    /// True if the wire is full duplex; `None` if the driver does not report it.
    pub full_duplex: Option<bool>,
    /// The largest payload of a frame, bytes.
    pub mtu: u32,
    /// The root of the queue disciplines.
    pub qdisc: String,
    /// Kinds of the queue disciplines below `mq` at the root, one for each transmit queue in use; empty if the root is another one or `tc` is missing.
    pub below_mq: Vec<String>,
    /// The number of the driver's transmit queues that are in use; of all of them where that is not known.
    pub tx_queues: u32,
    /// The entries of the driver's receive and transmit rings; `None` if the driver does not report them.
    pub rings: Option<[u32; 2]>,
    /// True if the driver limits its bytes in flight (BQL); `None` if that is not known.
    pub byte_limits: Option<bool>,
    /// The offloads that are on.
    pub offloads: Vec<Offload>,
    /// The bridge, bond or VRF to which it belongs.
    pub master: Option<String>,
    /// Its addresses with their prefixes, without the link-local addresses of IPv6.
    pub addresses: Vec<String>,
    /// True if an XDP program is attached.
    pub xdp: bool,
    /// The XDP features of the driver; `None` if the kernel does not report them.
    pub xdp_features: Option<XdpFeatures>,
}

/// Work on frames that a card or a driver does for its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// Merges received frames into longer ones, in software.
    Gro,
    /// Merges received frames into longer ones, in hardware.
    Lro,
    /// Splits long TCP segments when they are sent.
    Tso,
    /// Splits long packets as late as possible, in software.
    Gso,
    /// Verifies the checksums of received frames.
    RxChecksum,
    /// Computes the checksums of sent frames.
    TxChecksum,
    /// Removes VLAN tags from received frames.
    RxVlan,
    /// Inserts VLAN tags into sent frames.
    TxVlan,
}

impl Offload {
    /// All offloads, each with the command that reads it and its bit.
    const ALL: [(Self, Command, u32); 8] = [
        (Self::Gro, Command::GRO, 1),
        (Self::Lro, Command::FLAGS, LRO),
        (Self::Tso, Command::TSO, 1),
        (Self::Gso, Command::GSO, 1),
        (Self::RxChecksum, Command::RX_CHECKSUM, 1),
        (Self::TxChecksum, Command::TX_CHECKSUM, 1),
        (Self::RxVlan, Command::FLAGS, RX_VLAN),
        (Self::TxVlan, Command::FLAGS, TX_VLAN),
    ];

    /// The name of the offload for `ethtool -K`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gro => "gro",
            Self::Lro => "lro",
            Self::Tso => "tso",
            Self::Gso => "gso",
            Self::RxChecksum => "rx",
            Self::TxChecksum => "tx",
            Self::RxVlan => "rxvlan",
            Self::TxVlan => "txvlan",
        }
    }

    fn on(name: &str) -> Vec<Self> {
        let is_on = |&(_, command, bit): &(Self, Command, u32)| {
            ethtool::get(name, command).is_ok_and(|value| value & bit != 0)
        };
        Self::ALL.iter().filter(|switch| is_on(switch)).map(|&(offload, ..)| offload).collect()
    }
}

/// All interfaces, in the kernel's order.
///
/// # Errors
/// When `ip` fails or is missing; the error is its message.
pub fn links() -> Result<Vec<InterfaceProperties>, String> {
    let documents = command::list("ip", &["-j", "-d", "address", "show"])?;
    let qdiscs = command::list("tc", &["-j", "qdisc", "show"]).unwrap_or_default();
    let link = |document| {
        let link = described(document).with_driver(document);
        InterfaceProperties { below_mq: qdisc::below_mq(&qdiscs, &link.name), ..link }
    };
    Ok(documents.iter().map(link).collect())
}

/// The properties of an interface in the output of `ip -j -d address`.
fn described(document: &Value) -> InterfaceProperties {
    let text = |path: &str| document.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let number = |path: &str| document.pointer(path).and_then(Value::as_u64).unwrap_or_default() as u32;
    let list = |path: &str| document.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default();
    let flags = list("/flags");
    let has = |flag: &str| flags.iter().any(|found| found == flag);
    InterfaceProperties {
        name: text("/ifname").unwrap_or_default(),
        kind: text("/linkinfo/info_kind"),
        up: has("UP"),
        carrier: has("LOWER_UP"),
        mtu: number("/mtu"),
        qdisc: text("/qdisc").unwrap_or_default(),
        tx_queues: number("/num_tx_queues"),
        master: text("/master"),
        addresses: list("/addr_info").iter().filter_map(address).collect(),
        xdp: document.get("xdp").is_some(),
        ..InterfaceProperties::default()
    }
}

/// An address, unless the kernel has assigned it automatically.
fn address(document: &Value) -> Option<String> {
    let given = document["scope"] != "link" || document["family"] == "inet";
    let (local, prefix) = (document["local"].as_str()?, document["prefixlen"].as_u64()?);
    given.then(|| format!("{local}/{prefix}"))
}

impl InterfaceProperties {
    /// Adds the properties that the driver reports.
    fn with_driver(self, document: &Value) -> Self {
        let LinkMode { speed, full_duplex } = ethtool::link_mode(&self.name);
        let folder = sysfs(&self.name, document);
        let index = document["ifindex"].as_u64().map(|index| index as u32);
        let used = index.and_then(|index| cutline_sys::interface::transmit_queues(&self.name, index));
        Self {
            driver: ethtool::driver(&self.name),
            speed,
            full_duplex,
            rings: ethtool::ring_sizes(&self.name),
            tx_queues: used.unwrap_or(self.tx_queues),
            byte_limits: folder.as_deref().and_then(has_byte_limits),
            offloads: Offload::on(&self.name),
            xdp_features: index.and_then(xdp::features),
            ..self
        }
    }
}

/// The folder of the interface in `/sys`. `/sys` may show another namespace than that of this thread, so index and address
/// must be the same.
fn sysfs(name: &str, document: &Value) -> Option<String> {
    let folder = format!("/sys/class/net/{name}");
    let of = |file: &str| kernel::file(&format!("{folder}/{file}"));
    let same = of("ifindex") == document["ifindex"].as_u64().map(|index| index.to_string())
        && of("address").as_deref() == document["address"].as_str();
    same.then_some(folder)
}

/// Returns whether a driver limits its bytes in flight. A driver with limits has a limit above zero after it
/// has sent a frame. Recent kernels have no such folder for drivers without limits.
fn has_byte_limits(folder: &str) -> Option<bool> {
    match kernel::file(&format!("{folder}/queues/tx-0/byte_queue_limits/limit")) {
        Some(limit) => (limit != "0").then_some(true),
        None => Some(false),
    }
}

/// The backlog of an interface behind a router's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkBacklog {
    /// The backlog of the queue disciplines, packets.
    pub qdisc_packets: u64,
    /// The packets dropped by the queue disciplines since they were created.
    pub qdisc_dropped: u64,
    /// The backlog of the driver, bytes; `None` if it does not count them.
    pub driver_bytes: Option<u64>,
    /// The outgoing packets dropped by the interface since it was created.
    pub dropped: u64,
}

/// The current backlog of an interface.
///
/// # Errors
/// When `tc` fails or is missing, or there is no such interface.
pub fn backlog(name: &str) -> Result<LinkBacklog, String> {
    let qdiscs = super::qdiscs(name)?;
    let shown = command::list("ip", &["-j", "-s", "link", "show", "dev", name])?;
    let document = shown.first().cloned().unwrap_or_default();
    let driver_bytes = sysfs(name, &document)
        .filter(|folder| has_byte_limits(folder) == Some(true))
        .map(|folder| inflight(&folder));
    Ok(LinkBacklog {
        // The root includes the counts of the disciplines below it.
        qdisc_packets: qdiscs.iter().filter(|qdisc| qdisc.root).map(|qdisc| qdisc.backlog_packets).sum(),
        qdisc_dropped: qdiscs.iter().filter(|qdisc| qdisc.root).map(|qdisc| qdisc.dropped).sum(),
        driver_bytes,
        dropped: document.pointer("/stats64/tx/dropped").and_then(Value::as_u64).unwrap_or_default(),
    })
}

/// The bytes in flight in all queues of a driver.
fn inflight(folder: &str) -> u64 {
    let queues = fs::read_dir(format!("{folder}/queues")).into_iter().flatten().flatten();
    let of = |path: std::path::PathBuf| fs::read_to_string(path.join("byte_queue_limits/inflight")).ok();
    queues.filter_map(|queue| of(queue.path())?.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_ip_is_read() {
        let text = r#"{"ifindex":7,"ifname":"p0","flags":["BROADCAST","UP","LOWER_UP"],"mtu":1500,"qdisc":"noqueue",
            "master":"br0","num_tx_queues":2,"linkinfo":{"info_kind":"veth","info_slave_kind":"bridge"},"addr_info":[
            {"family":"inet","local":"10.0.0.1","prefixlen":24,"scope":"global"},
            {"family":"inet6","local":"fe80::1","prefixlen":64,"scope":"link"}]}"#;
        let link = described(&serde_json::from_str(text).unwrap());
        let expected = InterfaceProperties {
            name: "p0".into(),
            kind: Some("veth".into()),
            up: true,
            carrier: true,
            mtu: 1500,
            qdisc: "noqueue".into(),
            tx_queues: 2,
            master: Some("br0".into()),
            addresses: vec!["10.0.0.1/24".into()],
            ..InterfaceProperties::default()
        };
        assert_eq!(link, expected);
    }

    #[test]
    fn the_loopback_is_among_them() {
        let links = links().unwrap();
        let loopback = links.iter().find(|link| link.name == "lo").unwrap();
        assert_eq!(loopback.addresses.first().map(String::as_str), Some("127.0.0.1/8"));
        assert_eq!((loopback.speed, loopback.xdp), (None, false));
        assert_eq!(backlog("lo").unwrap().qdisc_packets, 0);
    }
}
