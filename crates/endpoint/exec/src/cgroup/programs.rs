//! The eBPF programs, each a few dozen instructions.
//!
//! | hook | effect |
//! | --- | --- |
//! | `connect`, `sendmsg` | sets mark and priority, for the packets of this call already |
//! | events of TCP | sets mark, priority and pacing rate when a socket connects, listens, and when a connection is established |
//! | `setsockopt` | replaces the code point in a program's own mark |
//! | egress of an interface | replaces the code point in packets of the group, and corrects IPv4's checksum |
//!
//! Each keeps the ECN bits. Each lets the call or the packet pass whatever happens.

use cutline_marking::MarkSettings;
use cutline_sys::bpf::{Assembler, Condition, Hook, Instruction, Register, Size};
use cutline_units::Dscp;

use Condition::{Equal, Greater, NotEqual};
use Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R10};
use Size::{Byte, Double, Half, Word};

/// The hooks of a group. Without one of them some sockets would have no mark.
pub const HOOKS: [Hook; 6] = [
    Hook::SocketOperations,
    Hook::Connect4,
    Hook::Connect6,
    Hook::SendMessage4,
    Hook::SendMessage6,
    Hook::SetSocketOption,
];

/// Helpers of the kernel (`bpf-helpers(7)`, linux/bpf.h).
mod helper {
    pub(super) const STORE_BYTES: i32 = 9;
    pub(super) const REPLACE_L3_CHECKSUM: i32 = 10;
    pub(super) const LOAD_BYTES: i32 = 26;
    pub(super) const SET_SOCKET_OPTION: i32 = 49;
    pub(super) const GET_SOCKET_OPTION: i32 = 57;
    pub(super) const CGROUP: i32 = 79;
    pub(super) const ANCESTOR_CGROUP: i32 = 83;
}

/// A socket option: its level and name.
type SocketOption = (i32, i32);
const IP_TOS: SocketOption = (0, 1);
const IPV6_TCLASS: SocketOption = (41, 67);
const SO_PRIORITY: SocketOption = (1, 12);
const SO_MAX_PACING_RATE: SocketOption = (1, 47);

/// `AF_INET`.
const INET: i32 = 2;

/// Position of a control group in its hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CgroupPosition {
    /// Its number, which is that of its folder's inode.
    pub id: u64,
    /// Its depth below the root.
    pub level: i32,
}

/// The program for a hook of a control group; `None` if the settings need none there.
pub(super) fn of_group(hook: Hook, settings: &MarkSettings) -> Option<Vec<Instruction>> {
    match hook {
        Hook::Connect4 | Hook::SendMessage4 => of_address(IP_TOS, settings),
        Hook::Connect6 | Hook::SendMessage6 => of_address(IPV6_TCLASS, settings),
        Hook::SocketOperations => Some(of_events(settings)),
        Hook::SetSocketOption => settings.dscp.map(of_option),
        Hook::Egress => None,
    }
}

fn of_address(mark: SocketOption, settings: &MarkSettings) -> Option<Vec<Instruction>> {
    let mut code = Assembler::new();
    code.copy(R6, R1);
    set_mark(&mut code, mark, settings.dscp?);
    set_priority(&mut code, settings);
    code.set(R0, 1).exit();
    Some(code.finish())
}

/// The context is a `struct bpf_sock_ops`: the event, the reply, the family.
fn of_events(settings: &MarkSettings) -> Vec<Instruction> {
    /// Connecting, established as a client and as a server, listening (`BPF_SOCK_OPS_*` of linux/bpf.h).
    const EVENTS: [i32; 4] = [3, 4, 5, 11];
    let [event_at, reply_at, family_at] = [0, 4, 20];
    let mut code = Assembler::new();
    let [ours, is_v6, marked, end] = [(); 4].map(|()| code.label());
    code.copy(R6, R1).load(Word, R7, R6, event_at);
    for event in EVENTS {
        code.jump_if(R7, Equal, event, ours);
    }
    code.jump(end);
    code.place(ours);
    if let Some(dscp) = settings.dscp {
        code.load(Word, R7, R6, family_at).jump_if(R7, NotEqual, INET, is_v6);
        set_mark(&mut code, IP_TOS, dscp);
        code.jump(marked).place(is_v6);
        set_mark(&mut code, IPV6_TCLASS, dscp);
        code.place(marked);
    }
    set_priority(&mut code, settings);
    if let Some(rate) = settings.rate {
        // The largest 32-bit rate is no limit to the kernel; there a socket of 34 Gbit/s is not limited either.
        let bytes = u32::try_from(rate.as_bps() / 8).unwrap_or(u32::MAX);
        set_option(&mut code, SO_MAX_PACING_RATE, bytes as i32);
    }
    // No answer to the questions that other events are.
    code.place(end).set(R7, -1).store(Word, R6, reply_at, R7).set(R0, 1).exit();
    code.finish()
}

/// The context is a `struct bpf_sockopt`: socket, value, end of the value, level, name.
fn of_option(dscp: Dscp) -> Vec<Instruction> {
    let [value_at, end_at, level_at, name_at] = [8, 16, 24, 28];
    let mut code = Assembler::new();
    let [try_v6, replace, is_octet, given, end] = [(); 5].map(|()| code.label());
    code.copy(R6, R1).load(Word, R2, R6, level_at).load(Word, R3, R6, name_at);
    code.jump_if(R2, NotEqual, IP_TOS.0, try_v6).jump_if(R3, NotEqual, IP_TOS.1, end).jump(replace);
    code.place(try_v6).jump_if(R2, NotEqual, IPV6_TCLASS.0, end).jump_if(R3, NotEqual, IPV6_TCLASS.1, end);
    code.place(replace).load(Double, R2, R6, value_at).load(Double, R3, R6, end_at);
    code.copy(R4, R2).add(R4, 4).jump_if_both(R4, Greater, R3, is_octet);
    // -1 requests the default, 0. Other values that are no octet are refused by the kernel, and stay.
    code.load(Word, R5, R2, 0).jump_if(R5, NotEqual, -1, given).set(R5, 0).place(given);
    code.jump_if(R5, Greater, 0xff, end);
    code.and(R5, 3).or(R5, octet(dscp)).store(Word, R2, 0, R5).jump(end);
    code.place(is_octet).copy(R4, R2).add(R4, 1).jump_if_both(R4, Greater, R3, end);
    code.load(Byte, R5, R2, 0).and(R5, 3).or(R5, octet(dscp)).store(Byte, R2, 0, R5);
    code.place(end).set(R0, 1).exit();
    code.finish()
}

/// The program for packets that leave an interface. `network` is where IP begins in a frame.
///
/// The context is a `struct __sk_buff`. The packet's first two bytes are version and header length, then the traffic class for
/// IPv4; for IPv6 they are the version, the traffic class, and a part of the flow label.
pub(super) fn of_egress(position: CgroupPosition, network: i32, settings: &MarkSettings) -> Vec<Instruction> {
    const CHECKSUM: i32 = 10;
    /// Place of the copy of the two bytes.
    const COPY: i16 = -8;
    let [protocol_at, priority_at] = [16, 32];
    let mut code = Assembler::new();
    let [ours, is_v6, write, end] = [(); 4].map(|()| code.label());
    // In the group itself, or in one below it. In a container, levels are relative; then the first holds alone.
    code.copy(R6, R1).call(helper::CGROUP).set_wide(R7, position.id).jump_if_both(R0, Equal, R7, ours);
    code.copy(R1, R6)
        .set(R2, position.level)
        .call(helper::ANCESTOR_CGROUP)
        .jump_if_both(R0, NotEqual, R7, end);
    code.place(ours);
    if let Some(priority) = settings.priority {
        code.set(R2, priority.into()).store(Word, R6, priority_at, R2);
    }
    if let Some(dscp) = settings.dscp {
        let dscp = i32::from(dscp.get());
        code.copy(R1, R6)
            .set(R2, network)
            .copy(R3, R10)
            .add(R3, COPY.into())
            .set(R4, 2)
            .call(helper::LOAD_BYTES);
        code.jump_if(R0, NotEqual, 0, end).load(Half, R7, R10, COPY);
        code.load(Word, R1, R6, protocol_at).jump_if(R1, Equal, i32::from(0x86dd_u16.to_be()), is_v6);
        code.jump_if(R1, NotEqual, i32::from(0x0800_u16.to_be()), end);
        code.load(Byte, R1, R10, COPY + 1).and(R1, 3).or(R1, dscp << 2).store(Byte, R10, COPY + 1, R1);
        code.load(Half, R8, R10, COPY).jump_if_both(R7, Equal, R8, end);
        code.copy(R1, R6).set(R2, network + CHECKSUM).copy(R3, R7).copy(R4, R8).set(R5, 2);
        code.call(helper::REPLACE_L3_CHECKSUM).jump(write);
        // Six bits over two bytes: the upper four end the first byte, the lower two begin the second.
        code.place(is_v6)
            .load(Byte, R1, R10, COPY)
            .and(R1, 0xf0)
            .or(R1, dscp >> 2)
            .store(Byte, R10, COPY, R1);
        code.load(Byte, R1, R10, COPY + 1).and(R1, 0x3f).or(R1, (dscp & 3) << 6).store(
            Byte,
            R10,
            COPY + 1,
            R1,
        );
        code.load(Half, R8, R10, COPY).jump_if_both(R7, Equal, R8, end);
        code.place(write)
            .copy(R1, R6)
            .set(R2, network)
            .copy(R3, R10)
            .add(R3, COPY.into())
            .set(R4, 2)
            .set(R5, 0);
        code.call(helper::STORE_BYTES);
    } else {
        // Jumps need their labels.
        code.place(is_v6).place(write);
    }
    // TCX_NEXT: other programs of the interface see the packet, too.
    code.place(end).set(R0, -1).exit();
    code.finish()
}

const fn octet(dscp: Dscp) -> i32 {
    dscp.in_traffic_class(0) as i32
}

/// Place of options on the stack.
const VALUE: i16 = -8;

/// Sets the code point with the ECN bits that the socket has; the context is in register 6.
fn set_mark(code: &mut Assembler, option: SocketOption, dscp: Dscp) {
    code.store_constant(Word, R10, VALUE, 0);
    option_call(code, option, helper::GET_SOCKET_OPTION);
    code.load(Word, R7, R10, VALUE).and(R7, 3).or(R7, octet(dscp)).store(Word, R10, VALUE, R7);
    option_call(code, option, helper::SET_SOCKET_OPTION);
}

/// The kernel changes the priority with the mark, so it comes after it.
fn set_priority(code: &mut Assembler, settings: &MarkSettings) {
    if let Some(priority) = settings.priority {
        set_option(code, SO_PRIORITY, priority.into());
    }
}

fn set_option(code: &mut Assembler, option: SocketOption, value: i32) {
    code.store_constant(Word, R10, VALUE, value);
    option_call(code, option, helper::SET_SOCKET_OPTION);
}

/// Passes the four bytes on the stack to a helper of socket options.
fn option_call(code: &mut Assembler, (level, name): SocketOption, helper: i32) {
    code.copy(R1, R6)
        .set(R2, level)
        .set(R3, name)
        .copy(R4, R10)
        .add(R4, VALUE.into())
        .set(R5, 4)
        .call(helper);
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Rate;

    /// A hook has a program if there is something to set.
    #[test]
    fn a_hook_has_a_program_if_there_is_something_to_set() {
        let marks = MarkSettings::new(Dscp::new(23), None);
        let paces = MarkSettings::new(None, Some(Rate::from_mbps(8)));
        let has = |settings: &MarkSettings| HOOKS.map(|hook| of_group(hook, settings).is_some());
        assert_eq!(has(&marks), [true; 6]);
        assert_eq!(has(&paces), [true, false, false, false, false, false]);
        assert_eq!(of_group(Hook::Egress, &marks), None);
    }

    #[test]
    fn programs_are_short_and_end() {
        let settings = MarkSettings::new(Dscp::new(23), Some(Rate::from_mbps(8)));
        let position = CgroupPosition { id: 1 << 40, level: 3 };
        let mut programs: Vec<_> = HOOKS.iter().filter_map(|&hook| of_group(hook, &settings)).collect();
        programs.push(of_egress(position, 14, &settings));
        programs.push(of_egress(position, 0, &MarkSettings { dscp: None, ..settings }));
        for code in programs {
            assert!(code.len() <= 72, "{} instructions", code.len());
            assert_eq!(code.last().map(|instruction| instruction[0]), Some(0x95), "the last one is exit");
        }
    }
}
