//! The load of blocks with the headers of their packets, as a reservation counts it: from the header behind that of the link on.

use cutline_traffic::DIRECT;
use cutline_wire::direct::{DirectFlow, Segments};

/// The headers of TCP with time stamps (RFC 7323 section 3.2) and of UDP, B.
const TCP: u64 = 32;
const UDP: u64 = 8;
/// The header of an IPv6 fragment (RFC 8200 section 4.5), B.
const FRAGMENT: u64 = 8;

/// Ports, which no length depends on.
const NO_FLOW: DirectFlow = DirectFlow { destination: 0, source: 0 };

/// The packets of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packets {
    pub(crate) mtu: u32,
    pub(crate) is_ipv6: bool,
}

impl Packets {
    const fn ip(self) -> u64 {
        if self.is_ipv6 { 40 } else { 20 }
    }

    /// Returns the ratio of the bytes on the network of a block to its payload.
    pub(crate) fn ratio(self, protocol: &str, block: u64) -> f64 {
        let mtu = u64::from(self.mtu);
        let headers = if protocol == DIRECT {
            let segments = Segments::new(NO_FLOW, 0, None, block as usize, self.mtu as usize);
            segments.map_or(0, |segments| segments.on_wire() as u64 - block) as f64
        } else if protocol == "tcp" {
            // Neighbouring blocks fill segments; a lone one has at least one.
            let segment = mtu.saturating_sub(self.ip() + TCP).max(1);
            (block as f64 / segment as f64).max(1.0) * (self.ip() + TCP) as f64
        } else if block + UDP + self.ip() <= mtu {
            (UDP + self.ip()) as f64
        } else {
            let each = self.ip() + if self.is_ipv6 { FRAGMENT } else { 0 };
            let room = (mtu.saturating_sub(each) / 8 * 8).max(8);
            (UDP + (block + UDP).div_ceil(room) * each) as f64
        };
        1.0 + headers / block as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_datagrams_fragments_and_segments() {
        let packets = Packets { mtu: 1500, is_ipv6: false };
        let bytes =
            |protocol: &str, block: u64| (packets.ratio(protocol, block) * block as f64).round() as u64;
        assert_eq!([bytes("udp", 1024), bytes("udp", 8192)], [1052, 8200 + 6 * 20]);
        // 8192 B are 5.66 segments of 1448 B.
        assert_eq!([bytes("tcp", 1024), bytes("tcp", 8192)], [1076, 8192 + 294]);
        // 8192 B in six frames with 20 B each, and the checksum.
        assert_eq!([bytes("direct", 1024), bytes("direct", 8192)], [1048, 8192 + 6 * 20 + 4]);
        let ipv6 = Packets { is_ipv6: true, ..packets };
        assert_eq!((ipv6.ratio("udp", 8192) * 8192.0).round() as u64, 8200 + 6 * 48);
    }
}
