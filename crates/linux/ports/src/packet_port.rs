//! An interface as a port of the router, by a packet socket (packet(7)).
//!
//! The socket receives *copies*: the kernel handles the frames too. So a port should be an interface that the host does
//! nothing else with; on a host that routes, packets would arrive twice.
//!
//! Options of the socket:
//! - `PACKET_IGNORE_OUTGOING`: frames that we send do not come back to us.
//! - `PACKET_QDISC_BYPASS`: the router's queue is the only queue; none of the kernel's follows.
//! - promiscuous: frames are for the hosts behind the other port, not for us.
//! - the kernel's receive stamps: a frame meets the queue as it was when the frame arrived, however late we wake up.
//!
//! Frames that the kernel cannot give whole are dropped and counted: those that are longer than a slot of the ring
//! (aggregated by GRO, or sent by a virtual interface with TSO), and those that find no slot. Frames whose checksum a
//! virtual interface left to hardware that is not there pass, and are counted: their receiver drops them
//! ([`cutline_sys::Offloads`]).
//!
//! Network cards take a VLAN tag out of the frame and hand it over beside it; it is put back.

use crate::interface::PortInterface;
use crate::{InterfacePort, PortError, PortStats};
use cutline_router::Port;
use cutline_sys::packet::{self, BATCH, ReceivedFrame, Ring};
use cutline_sys::{SysError, clock, interface};
use cutline_units::Instant;
use cutline_wire::ETHERNET;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt;
use std::io;

/// A port by a packet socket.
pub struct PacketPort {
    interface: PortInterface,
    ring: Ring,
    socket: OwnedFd,
    /// A frame with its tag put back.
    tagged: Vec<u8>,
    stats: PortStats,
}

/// The most frames that are received before it is the other port's turn.
const TURN: usize = 256;
/// Slots of the ring: 2 ms of the smallest frames at 1 Gbit/s, 50 ms of the largest.
const RING_FRAMES: usize = 4096;
/// A VLAN tag (IEEE 802.1Q), bytes.
const TAG: u32 = 4;

impl PacketPort {
    /// Opens a port on an interface.
    ///
    /// # Errors
    /// When there is no such interface, or the process may not.
    pub fn open(name: &str) -> Result<Self, PortError> {
        let index = interface::index(name)?;
        // A payload of its MTU behind a header with one tag.
        let largest = interface::mtu(name)? + ETHERNET as u32 + TAG;
        let room = largest as usize + TAG as usize;
        let failed = |error: io::Error| {
            SysError::privileged(format!("interface `{name}` cannot be opened"), "CAP_NET_RAW", error)
        };
        let (ring, socket) = open(index, room).map_err(failed)?;
        let interface = PortInterface::new(name, index, largest)?;
        Ok(Self { interface, ring, socket, tagged: Vec::with_capacity(room), stats: PortStats::default() })
    }

    /// Sends all of these. Returns false when the kernel takes no more for the moment.
    fn send_batch(&self, mut frames: &[&[u8]], each: &mut dyn FnMut(bool)) -> Result<bool, PortError> {
        while !frames.is_empty() {
            let settled = match packet::send(&self.socket, frames) {
                Ok(sent) => {
                    (0..sent).for_each(|_| each(true));
                    sent
                }
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR) => 0,
                    Some(Errno::AGAIN) => return Ok(false),
                    Some(Errno::NXIO | Errno::NODEV) => return Err(self.interface.removed()),
                    // Down, too long, or no room in the card: this frame is lost, the next one may not be.
                    _ => {
                        each(false);
                        1
                    }
                },
            };
            frames = &frames[settled..];
        }
        Ok(true)
    }
}

fn open(index: u32, largest: usize) -> io::Result<(Ring, OwnedFd)> {
    let socket = packet::open()?;
    let ring = Ring::new(&socket, largest, RING_FRAMES)?;
    packet::IGNORE_OUTGOING.set(&socket, 1)?;
    packet::QDISC_BYPASS.set(&socket, 1)?;
    packet::make_promiscuous(&socket, index)?;
    packet::bind(&socket, index)?;
    Ok((ring, socket))
}

impl AsFd for PacketPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl InterfacePort for PacketPort {
    fn name(&self) -> &str {
        &self.interface.name
    }

    fn largest_frame(&self) -> u32 {
        self.interface.largest_frame
    }

    fn stats(&mut self) -> Result<PortStats, PortError> {
        let dropped = packet::take_drops(&self.socket).map_err(|error| self.interface.uncounted(error))?;
        self.stats.missed += u64::from(dropped);
        Ok(self.stats)
    }

    /// An interface that goes down before it is removed reports only that it went down, so this is called from time to time.
    fn check(&self) -> Result<(), PortError> {
        // Reading the error clears it, so that it does not wake us again.
        let _cleared = sockopt::socket_error(&self.socket);
        self.interface.check()
    }
}

impl Port for PacketPort {
    type Error = PortError;

    fn receive(&mut self, now: Instant, each: &mut dyn FnMut(Instant, &[u8])) -> Result<usize, PortError> {
        let Self { ring, tagged, stats, .. } = self;
        let mut offset = None;
        let mut count = 0;
        while count < TURN {
            let received = ring.receive(|frame| {
                let offset = *offset.get_or_insert_with(clock::wall_clock_offset);
                let at = clock::from_wall_clock(frame.stamp.0, frame.stamp.1, offset, now);
                if let Some(bytes) = whole(&frame, tagged, stats) {
                    each(at, bytes);
                }
            });
            if !received {
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
    ) -> Result<(), PortError> {
        loop {
            let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
            // The batch's slots come first: a frame for which there is no slot must not be taken from the iterator.
            let count = batch.iter_mut().zip(&mut *frames).map(|(slot, frame)| *slot = frame).count();
            if count == 0 || !self.send_batch(&batch[..count], each)? {
                return Ok(());
            }
        }
    }

    #[inline]
    fn clock(&self) -> Option<Instant> {
        Some(clock::now())
    }
}

/// Returns the frame as it was on the wire, with its tag; `None` when it is not whole.
#[inline]
fn whole<'f>(frame: &ReceivedFrame<'f>, tagged: &'f mut Vec<u8>, stats: &mut PortStats) -> Option<&'f [u8]> {
    /// Offset of a VLAN tag: behind the two addresses.
    const TAG_AT: usize = 12;
    if frame.length as usize > frame.bytes.len() {
        stats.truncated.add(frame.length);
        return None;
    }
    if frame.lacks_checksum {
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

    fn received(bytes: &[u8], length: u32, vlan: Option<(u16, u16)>) -> ReceivedFrame<'_> {
        ReceivedFrame { bytes, length, stamp: (0, 0), lacks_checksum: false, vlan }
    }

    #[test]
    fn a_tag_is_put_back_behind_the_addresses() {
        let frame: Vec<u8> = (0..20).collect();
        let (mut tagged, mut stats) = (Vec::new(), PortStats::default());
        let bytes = whole(&received(&frame, 20, Some((0x8100, 0x2064))), &mut tagged, &mut stats).unwrap();
        assert_eq!(bytes[..12], frame[..12]);
        assert_eq!(bytes[12..16], [0x81, 0x00, 0x20, 0x64]);
        assert_eq!(bytes[16..], frame[12..]);
        assert_eq!(stats, PortStats::default());
    }

    #[test]
    fn a_truncated_frame_is_dropped_and_one_without_checksum_is_counted() {
        let frame = [0; 60];
        let (mut tagged, mut stats) = (Vec::new(), PortStats::default());
        assert!(whole(&received(&frame, 61, None), &mut tagged, &mut stats).is_none());
        let unfilled = ReceivedFrame { lacks_checksum: true, ..received(&frame, 60, None) };
        assert_eq!(whole(&unfilled, &mut tagged, &mut stats), Some(&frame[..]));
        assert_eq!((stats.truncated.bytes, stats.unfilled.packets), (61, 1));
    }
}
