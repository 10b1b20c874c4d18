//! Frames by hand, and a port of memory.

#![allow(dead_code, reason = "each test binary uses a part")]

use cutline_router::Port;
use cutline_units::Instant;
use std::collections::VecDeque;
use std::convert::Infallible;

/// A frame of an Ethernet type and its payload.
pub fn frame(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend_from_slice(&kind.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A frame with an IPv4 packet of `size` bytes, whose protocol has no ports, from host `flow`; its checksum is right.
pub fn ip_frame(size: usize, traffic_class: u8, flow: u8) -> Vec<u8> {
    let mut packet = vec![0; size];
    packet[0] = 0x45;
    packet[1] = traffic_class;
    packet[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    packet[8..10].copy_from_slice(&[64, 253]);
    packet[12..20].copy_from_slice(&[10, 0, 0, flow, 10, 0, 1, 1]);
    let sum: u32 = packet[..20].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!folded as u16).to_be_bytes());
    frame(0x0800, &packet)
}

/// A port that gives its input frames, and keeps those that it takes.
#[derive(Default)]
pub struct Memory {
    pub arriving: VecDeque<(Instant, Vec<u8>)>,
    pub sent: Vec<Vec<u8>>,
    /// Number of frames that the port accepts the next time.
    pub room: usize,
    /// True if it loses every other frame.
    pub broken: bool,
}

impl Port for Memory {
    type Error = Infallible;

    fn receive(&mut self, now: Instant, each: &mut dyn FnMut(Instant, &[u8])) -> Result<usize, Infallible> {
        let here = self.arriving.iter().take_while(|(at, _)| *at <= now).count();
        self.arriving.drain(..here).for_each(|(at, frame)| each(at, &frame));
        Ok(here)
    }

    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &'_ [u8]>,
        each: &mut dyn FnMut(bool),
    ) -> Result<(), Infallible> {
        for (place, frame) in frames.take(self.room).enumerate() {
            let lost = self.broken && place % 2 == 1;
            if !lost {
                self.sent.push(frame.to_vec());
            }
            each(!lost);
        }
        Ok(())
    }
}
