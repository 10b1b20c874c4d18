//! An interface as a port of the router, by a packet socket (packet(7)).
//!
//! What the socket gets are *copies*: the kernel handles the frames too. So a port should be an interface that the host
//! does nothing else with; on a host that routes, packets would arrive twice.
//!
//! Options, and why:
//! - `PACKET_IGNORE_OUTGOING`: what we send is not told to us again.
//! - `PACKET_QDISC_BYPASS`: our queue is the queue; none of the kernel's behind it.
//! - promiscuous: frames are for the hosts behind the other port, not for us.
//! - the kernel's receive stamps: a frame meets the queue as it was when the frame came, however late we wake up.
//!
//! Frames the kernel cannot give whole are dropped and counted: longer than the ring's places (aggregated by GRO or
//! sent by a virtual interface with TSO), or none left in the ring. Frames whose checksum a virtual interface left to
//! hardware that is not there pass, and are counted: their receiver drops them ([`crate::Offloads`]).
//!
//! Network cards take a VLAN tag out of the frame and hand it over beside it; it is put back.

use crate::ring::{Received, Ring};
use crate::socket::{BATCH, bind, make_promiscuous, send, set_option, statistics};
use crate::{LinuxError, clock, interface};
use cutline_aqm::Count;
use cutline_router::{ETHERNET, Port};
use cutline_units::Instant;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::io;

/// What an interface gives and takes.
pub struct PacketPort {
    name: String,
    index: u32,
    largest: u32,
    /// Goes before the socket: its memory belongs to that.
    ring: Ring,
    socket: OwnedFd,
    /// A frame with its tag put back.
    tagged: Vec<u8>,
    stats: PortStats,
}

/// What a port counts beside the router's own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// What the port is.
    pub kind: PortKind,
    /// Did not get into the ring because it was full; as of the last [`PacketPort::stats`]. Frames.
    pub missed: u64,
    /// Came in longer than the ring's places and were dropped.
    pub truncated: Count,
    /// Came in with a checksum that nobody had filled in, and passed.
    pub unfilled: Count,
}

/// How a port gets at frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortKind {
    /// A packet socket.
    #[default]
    Packet,
    /// A TUN interface.
    Tun,
    /// `AF_XDP`, in memory that the card itself reads and writes.
    XdpZeroCopy,
    /// `AF_XDP` with a program in the driver; frames are copied.
    XdpDriver,
    /// `AF_XDP` with a program in the kernel; frames are copied.
    XdpKernel,
}

impl PortKind {
    /// As it is told.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet => "packet socket",
            Self::Tun => "TUN",
            Self::XdpZeroCopy => "AF_XDP, zero copy",
            Self::XdpDriver => "AF_XDP in the driver, with copies",
            Self::XdpKernel => "AF_XDP in the kernel, with copies",
        }
    }
}

/// How many frames are told of before the other port has its turn.
const TURN: usize = 256;
/// How many frames the ring holds: 2 ms of the smallest at 1 Gbit/s, 50 ms of the largest.
const RING_FRAMES: usize = 4096;
/// A VLAN tag (IEEE 802.1Q), bytes.
const TAG: u32 = 4;

impl PacketPort {
    /// Opens an interface.
    ///
    /// # Errors
    /// When there is no such interface, or the process may not.
    pub fn open(name: &str) -> Result<Self, LinuxError> {
        let index = interface::index(name)?;
        let largest = interface::mtu(name)? + ETHERNET as u32 + TAG;
        let room = largest as usize + TAG as usize;
        let failed = |error: io::Error| LinuxError::of(format!("interface `{name}` cannot be opened"), error);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Without a protocol nothing comes until it is bound: else frames of all interfaces would.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
            .map_err(|errno| failed(errno.into()))?;
        let ring = set_up(socket.as_fd(), index, room).map_err(failed)?;
        let (name, stats) = (name.to_owned(), PortStats::default());
        Ok(Self { name, index, largest, ring, socket, tagged: Vec::with_capacity(room), stats })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The longest frame that it sends: a payload of its MTU behind a header with one tag, bytes.
    pub const fn largest_frame(&self) -> u32 {
        self.largest
    }

    /// What has been counted.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn stats(&mut self) -> Result<PortStats, LinuxError> {
        let since = statistics(self.socket.as_fd()).map_err(|error| {
            LinuxError::of(format!("the counters of `{}` cannot be read", self.name), error)
        })?;
        self.stats.missed += u64::from(since.tp_drops);
        Ok(self.stats)
    }

    /// Looks whether the interface is still there, after the socket has reported an error and from time to time: when it
    /// goes down before it is removed, the socket tells of the former alone. That it is down is no error, since it may
    /// come up again.
    ///
    /// # Errors
    /// When the interface has been removed.
    pub(crate) fn check(&self) -> Result<(), LinuxError> {
        // Reading the error clears it, so that it does not wake us again.
        let _cleared = sockopt::socket_error(&self.socket);
        if interface::exists(self.index)? {
            Ok(())
        } else {
            Err(LinuxError::Gone { name: self.name.clone() })
        }
    }
}

fn set_up(socket: BorrowedFd<'_>, index: u32, largest: usize) -> io::Result<Ring> {
    let ring = Ring::new(socket, largest, RING_FRAMES)?;
    set_option(socket, libc::PACKET_IGNORE_OUTGOING, &1_i32)?;
    set_option(socket, libc::PACKET_QDISC_BYPASS, &1_i32)?;
    make_promiscuous(socket, index)?;
    bind(socket, index)?;
    Ok(ring)
}

impl AsFd for PacketPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Port for PacketPort {
    type Error = LinuxError;

    fn receive(&mut self, now: Instant, each: &mut dyn FnMut(Instant, &[u8])) -> Result<usize, LinuxError> {
        let Self { ring, tagged, stats, .. } = self;
        let mut wall_ahead = None;
        let mut count = 0;
        while count < TURN {
            let taken = ring.take(|frame| {
                let ahead = *wall_ahead.get_or_insert_with(clock::wall_ahead);
                let at = clock::of_stamp(frame.stamp.0, frame.stamp.1, ahead, now);
                if let Some(bytes) = whole(&frame, tagged, stats) {
                    each(at, bytes);
                }
            });
            if !taken {
                break;
            }
            count += 1;
        }
        Ok(count)
    }

    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &'_ [u8]>,
        each: &mut dyn FnMut(bool),
    ) -> Result<(), LinuxError> {
        loop {
            let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
            // A place first: the frame behind the last one that has a place must not be taken from the iterator.
            let count = batch.iter_mut().zip(&mut *frames).map(|(place, frame)| *place = frame).count();
            if count == 0 {
                return Ok(());
            }
            if !self.send_batch(&batch[..count], each)? {
                return Ok(());
            }
        }
    }

    #[inline]
    fn clock(&self) -> Option<Instant> {
        Some(clock::now())
    }
}

impl PacketPort {
    /// Sends all of these; answers false when the kernel takes no more for the moment.
    fn send_batch(&self, mut frames: &[&[u8]], each: &mut dyn FnMut(bool)) -> Result<bool, LinuxError> {
        while !frames.is_empty() {
            let settled = match send(self.socket.as_fd(), frames) {
                Ok(sent) => {
                    (0..sent).for_each(|_| each(true));
                    sent
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV)) => {
                    return Err(LinuxError::Gone { name: self.name.clone() });
                }
                // Down, too long, or no room in the card: this frame is lost, the next one may not be.
                Err(_) => {
                    each(false);
                    1
                }
            };
            frames = &frames[settled..];
        }
        Ok(true)
    }
}

/// The frame as it was on the wire, with its tag; `None` when it is not whole.
#[inline]
fn whole<'f>(frame: &Received<'f>, tagged: &'f mut Vec<u8>, stats: &mut PortStats) -> Option<&'f [u8]> {
    /// Where a tag belongs: behind the two addresses.
    const TAG_AT: usize = 12;
    if frame.length as usize > frame.bytes.len() {
        stats.truncated.add(frame.length);
        return None;
    }
    if frame.status & libc::TP_STATUS_CSUMNOTREADY != 0 {
        stats.unfilled.add(frame.length);
    }
    let Some((protocol, control)) = frame.vlan.filter(|_| frame.bytes.len() >= TAG_AT) else {
        return Some(frame.bytes);
    };
    let (addresses, rest) = frame.bytes.split_at(TAG_AT);
    tagged.clear();
    tagged.extend_from_slice(addresses);
    tagged.extend_from_slice(&protocol.to_be_bytes());
    tagged.extend_from_slice(&control.to_be_bytes());
    tagged.extend_from_slice(rest);
    Some(tagged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(bytes: &[u8], length: u32, status: u32, vlan: Option<(u16, u16)>) -> Received<'_> {
        Received { bytes, length, status, stamp: (0, 0), vlan }
    }

    #[test]
    fn a_tag_is_put_back_behind_the_addresses() {
        let frame: Vec<u8> = (0..20).collect();
        let (mut tagged, mut stats) = (Vec::new(), PortStats::default());
        let bytes = whole(&received(&frame, 20, 0, Some((0x8100, 0x2064))), &mut tagged, &mut stats).unwrap();
        assert_eq!(bytes[..12], frame[..12]);
        assert_eq!(bytes[12..16], [0x81, 0x00, 0x20, 0x64]);
        assert_eq!(bytes[16..], frame[12..]);
        assert_eq!(stats, PortStats::default());
    }

    #[test]
    fn what_is_not_whole_is_dropped_and_what_has_no_checksum_is_counted() {
        let frame = [0; 60];
        let (mut tagged, mut stats) = (Vec::new(), PortStats::default());
        assert!(whole(&received(&frame, 61, 0, None), &mut tagged, &mut stats).is_none());
        let unfilled = received(&frame, 60, libc::TP_STATUS_CSUMNOTREADY, None);
        assert_eq!(whole(&unfilled, &mut tagged, &mut stats), Some(&frame[..]));
        assert_eq!((stats.truncated.bytes, stats.unfilled.packets), (61, 1));
    }
}
