//! Load: frames of one size at a pace, and their fate.

use crate::bed::{Carrier, GATEWAY, NOBODY};
use cutline_ports::{PacketPort, PortError};
use cutline_router::Port;
use cutline_sys::now;
use cutline_sys::thread::cpu_time;
use cutline_units::{Duration, Instant};
use cutline_wire::ETHERNET;

/// Offset of a frame's time of sending: behind Ethernet, IPv4 and UDP.
const STAMP: usize = ETHERNET + 28;
/// Frames of one system call.
const BATCH: usize = 32;

/// Work of a sender.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub frames: u64,
    pub elapsed: Duration,
    /// CPU time of the sending thread, in which the kernel also receives at the other end, and forwards.
    pub cpu_ns: u64,
}

/// Schedule of sending.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// As fast as the kernel takes them.
    Flat,
    /// This many packets per second, polling the clock in between.
    Exact(f64),
    /// This many packets per second on average, sleeping in between.
    Relaxed(f64),
}

/// A frame that has come.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub at: Instant,
    pub sent: Instant,
}

/// A frame with an IPv4 packet of `size` bytes with UDP from host a to host b.
pub fn frame(carrier: Carrier, size: usize) -> Vec<u8> {
    let mut frame = vec![0; ETHERNET + size];
    frame[..6].copy_from_slice(if carrier == Carrier::Kernel { &GATEWAY } else { &NOBODY });
    frame[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 0x08, 0x00]);
    let packet = &mut frame[ETHERNET..];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    packet[8..10].copy_from_slice(&[64, 17]);
    packet[12..24].copy_from_slice(&[10, 8, 1, 2, 10, 8, 2, 2, 0x30, 0x39, 0, 9]);
    packet[24..26].copy_from_slice(&(size as u16 - 20).to_be_bytes());
    let sum: u32 = packet[..20].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    packet[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    frame
}

/// Sends copies of a frame, each with the time of its sending, at a pace for some time.
pub fn send(port: &mut PacketPort, frame: &[u8], pace: Pace, for_long: Duration) -> Result<Sent, PortError> {
    let mut frames = vec![frame.to_vec(); BATCH];
    let (start, cpu) = (now(), cpu_time());
    let mut sent = 0;
    loop {
        let elapsed = now() - start;
        if elapsed >= for_long {
            return Ok(Sent { frames: sent, elapsed, cpu_ns: cpu_time().saturating_sub(cpu).as_nanos() });
        }
        let due = match pace {
            Pace::Flat => BATCH as u64,
            Pace::Exact(rate) | Pace::Relaxed(rate) => (elapsed.as_secs_f64() * rate) as u64 + 1 - sent,
        };
        let batch = &mut frames[..due.min(BATCH as u64) as usize];
        let stamp = now().as_nanos().to_be_bytes();
        for frame in batch.iter_mut() {
            frame[STAMP..STAMP + 8].copy_from_slice(&stamp);
        }
        port.send(&mut batch.iter().map(Vec::as_slice), &mut |_| sent += 1)?;
        if matches!(pace, Pace::Relaxed(_)) && due <= BATCH as u64 {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
    }
}

/// Takes all our frames that have come to a port.
pub fn receive(port: &mut PacketPort, arrivals: &mut Vec<Arrival>) -> Result<(), PortError> {
    let mut take = |at, frame: &[u8]| {
        if let Some(stamp) = frame.get(STAMP..).and_then(|rest| rest.first_chunk()) {
            let sent = Instant::from_nanos(u64::from_be_bytes(*stamp));
            arrivals.push(Arrival { at, sent });
        }
    };
    // Frames that come while others are read keep their own stamps: no code acts on them.
    while port.receive(Instant::FAR_FUTURE, &mut take)? > 0 {}
    Ok(())
}
