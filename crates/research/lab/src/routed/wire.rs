//! The wires of the links: each frame takes the time that its bytes take at the link's rate, one after the other, and then the link's
//! propagation delay.
//!
//! The kernel's traffic control gives a class its rate and does not send slowly: a packet that may leave is at the other end at once.
//! On a line of 1.5 Mbit/s a message of 1280 B takes 7 ms, and waits as long for one that has just begun. So between the two ends of
//! each link is a thread that holds the frames for these times. It drops nothing: the routers send no faster than the line.

use crate::LabError;
use crate::timing::TimingMeasures;
use cutline_ports::{InterfacePort as _, PacketPort, wait};
use cutline_router::Port as _;
use cutline_sys::now;
use cutline_sys::thread::{cpu_time, set_realtime};
use cutline_units::{Bytes, Duration, Instant, Rate};
use std::collections::VecDeque;

/// Ratio of the wire's rate to the routers' rate, so that frames do not accumulate on it.
const MARGIN: f64 = 1.01;
/// The longest time in which a wire does not look whether the run has ended.
const GLANCE: Duration = Duration::from_millis(50);
/// The time after which frames that an interface did not accept are offered again.
const RETRY: Duration = Duration::from_micros(100);

/// The times of the frames in one direction of a link.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    rate: Rate,
    delay: Duration,
    /// Time at which the last frame has left the sender's end.
    free: Instant,
}

impl Line {
    pub fn new(rate: Rate, delay: Duration) -> Self {
        let rate = Rate::from_bps((rate.as_bps() as f64 * MARGIN) as u64);
        Self { rate, delay, free: Instant::ZERO }
    }

    /// Returns the time at which the last byte of a frame that is sent at `at` arrives at the other end.
    fn arrival(&mut self, at: Instant, bytes: usize) -> Instant {
        let length = self.rate.transmission_time(Bytes::new(bytes as u64));
        self.free = self.free.max(at).saturating_add(length);
        self.free.saturating_add(self.delay)
    }
}

/// Both directions of a link.
pub struct Wire {
    /// The ends.
    ports: [PacketPort; 2],
    /// The line that begins at each end.
    lines: [Line; 2],
    /// The frames that are on it, by the end at which they leave it.
    under_way: [VecDeque<(Instant, Vec<u8>)>; 2],
    timing: TimingMeasures,
}

impl Wire {
    /// A wire between two interfaces of the calling thread's namespace. `lines` begin at the first and at the second.
    ///
    /// # Errors
    /// When an interface cannot be opened.
    pub fn open([one, other]: [&str; 2], lines: [Line; 2]) -> Result<Self, LabError> {
        let ports = [PacketPort::open(one)?, PacketPort::open(other)?];
        Ok(Self { ports, lines, under_way: Default::default(), timing: TimingMeasures::default() })
    }

    /// Carries frames until `ended` returns true. Returns the lateness of frames from `zero` on.
    ///
    /// # Errors
    /// When an interface has failed.
    pub fn run(
        mut self,
        zero: Instant,
        ended: &(dyn Fn() -> bool + Sync),
    ) -> Result<TimingMeasures, LabError> {
        set_realtime();
        let cpu_before = cpu_time();
        while !ended() {
            let stuck = self.round(zero)?;
            let due = self.under_way.iter().filter_map(|frames| Some(frames.front()?.0)).min();
            let now = now();
            let next = match due {
                Some(_) if stuck => now + RETRY,
                Some(due) => due.min(now + GLANCE),
                None => now + GLANCE,
            };
            wait(&self.ports, next, Duration::ZERO)?;
        }
        self.timing.cpu = cpu_time().saturating_sub(cpu_before);
        for port in &mut self.ports {
            let stats = port.stats()?;
            self.timing.missed += stats.missed + stats.truncated.packets;
        }
        Ok(self.timing)
    }

    /// Takes the frames that have come, and delivers those that are due. Returns whether an interface did not accept one.
    fn round(&mut self, zero: Instant) -> Result<bool, LabError> {
        let Self { ports, lines, under_way, timing } = self;
        let now = now();
        let [to_one, to_other] = under_way;
        for ((port, line), there) in ports.iter_mut().zip(lines).zip([to_other, to_one]) {
            port.receive(now, &mut |at, frame| {
                there.push_back((line.arrival(at, frame.len()), frame.to_vec()));
                timing.frames += 1;
                if at >= zero {
                    timing.reading.record(now.saturating_since(at));
                }
            })?;
        }
        let mut stuck = false;
        for (port, frames) in ports.iter_mut().zip(under_way) {
            let due = frames.iter().take_while(|(due, _)| *due <= now).count();
            let mut handled = 0;
            let mut leaving = frames.iter().take(due).map(|(_, frame)| frame.as_slice());
            port.send(&mut leaving, &mut |sent| {
                handled += 1;
                timing.unsent += u64::from(!sent);
            })?;
            stuck |= handled < due;
            let gone = cutline_sys::now();
            for (due, _) in frames.drain(..handled) {
                if due >= zero {
                    timing.departure.record(gone.saturating_since(due));
                }
            }
        }
        Ok(stuck)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_follow_each_other_on_a_line() {
        let ms = |ms| Instant::ZERO + Duration::from_millis(ms);
        // 1010 B take 8 ms.
        let mut line = Line::new(Rate::from_kbps(1000), Duration::from_millis(3));
        assert_eq!(line.arrival(ms(100), 1010), ms(111));
        assert_eq!(line.arrival(ms(101), 1010), ms(119), "it waits for the first one");
        assert_eq!(line.arrival(ms(200), 2020), ms(219));
    }
}
