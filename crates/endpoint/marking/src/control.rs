//! The traffic class in a message's control messages.
//!
//! QUIC libraries set ECN bits datagram by datagram with a control message (cmsg(3)) of `IP_TOS` or `IPV6_TCLASS`, which
//! replaces the whole octet, also the code point that was set on the socket.

use crate::MarkSettings;

const IPPROTO_IP: i32 = 0;
const IP_TOS: i32 = 1;
const IPPROTO_IPV6: i32 = 41;
const IPV6_TCLASS: i32 = 67;

const WORD: usize = size_of::<usize>();
/// Length (a word), level and kind.
const HEADER: usize = WORD + 8;

/// Replaces the code point of every traffic class in control messages, and keeps its ECN bits. Returns the number of replaced ones.
///
/// A malformed part, and everything behind it, is not changed: the kernel refuses it.
pub fn remark(control: &mut [u8], settings: &MarkSettings) -> usize {
    let mut rest = control;
    let mut found = 0;
    while let Some(length) = rest.first_chunk().map(|bytes| usize::from_ne_bytes(*bytes)) {
        let Some(message) = rest.get_mut(..length) else { break };
        if length < HEADER {
            break;
        }
        let (header, data) = message.split_at_mut(HEADER);
        let word = |at: usize| header.get(at..).and_then(<[u8]>::first_chunk).map(|x| i32::from_ne_bytes(*x));
        if matches!(
            (word(WORD), word(WORD + 4)),
            (Some(IPPROTO_IP), Some(IP_TOS)) | (Some(IPPROTO_IPV6), Some(IPV6_TCLASS))
        ) {
            found += usize::from(replace(data, settings));
        }
        rest = rest.get_mut(length.next_multiple_of(WORD)..).unwrap_or_default();
    }
    found
}

/// The kernel takes an `int` or, for IPv4, an octet. -1 means the socket's own value, which is marked already; any other that is
/// no octet is refused.
fn replace(data: &mut [u8], settings: &MarkSettings) -> bool {
    if let Some(int) = data.first_chunk_mut::<4>() {
        let asked = i32::from_ne_bytes(*int);
        if (0..=0xff).contains(&asked) {
            *int = settings.traffic_class(asked).to_ne_bytes();
        }
        return true;
    }
    if let [octet] = data {
        *octet = settings.traffic_class(i32::from(*octet)) as u8;
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Dscp;
    use proptest::prelude::*;

    const SETTINGS: MarkSettings =
        MarkSettings { dscp: Dscp::new(23), priority: None, rate: None, unsent: None };

    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut bytes = (HEADER + data.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(WORD), 0);
        bytes
    }

    #[test]
    fn each_kind_of_traffic_class_is_replaced_and_nothing_else() {
        let other = message(17, 103, &1200_u16.to_ne_bytes());
        let before = [
            message(IPPROTO_IP, IP_TOS, &2_i32.to_ne_bytes()),
            other.clone(),
            message(IPPROTO_IP, IP_TOS, &[0xb9]),
            message(IPPROTO_IPV6, IPV6_TCLASS, &1_i32.to_ne_bytes()),
            message(IPPROTO_IPV6, IPV6_TCLASS, &(-1_i32).to_ne_bytes()),
            message(IPPROTO_IP, IP_TOS, &256_i32.to_ne_bytes()),
        ];
        let after = [
            message(IPPROTO_IP, IP_TOS, &(23_i32 << 2 | 2).to_ne_bytes()),
            other,
            message(IPPROTO_IP, IP_TOS, &[23 << 2 | 1]),
            message(IPPROTO_IPV6, IPV6_TCLASS, &(23_i32 << 2 | 1).to_ne_bytes()),
            message(IPPROTO_IPV6, IPV6_TCLASS, &(-1_i32).to_ne_bytes()),
            message(IPPROTO_IP, IP_TOS, &256_i32.to_ne_bytes()),
        ];
        let mut control = before.concat();
        assert_eq!(remark(&mut control, &SETTINGS), 5);
        assert_eq!(control, after.concat());
    }

    #[test]
    fn the_last_message_needs_no_padding() {
        let mut control = message(IPPROTO_IP, IP_TOS, &[0]);
        control.truncate(HEADER + 1);
        assert_eq!(remark(&mut control, &SETTINGS), 1);
        assert_eq!(control.last(), Some(&(23 << 2)));
    }

    #[test]
    fn malformed_control_data_is_unchanged() {
        for mut control in [vec![], vec![0; 40], vec![0xff; 40], message(IPPROTO_IP, IP_TOS, &[]), vec![1; 7]]
        {
            let before = control.clone();
            assert_eq!(remark(&mut control, &SETTINGS), 0);
            assert_eq!(control, before);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_lengths_stay(mut control in proptest::collection::vec(0_u8..70, 0..200)) {
            let length = control.len();
            remark(&mut control, &SETTINGS);
            prop_assert_eq!(control.len(), length);
        }
    }
}
