//! Measurements of a host and a path, and the settings that follow from them (QUANTA sections 4.1 and 5: "The proposed QoS
//! system can refer to the tables presented in this paper to select appropriate protocol control parameters").
//!
//! | setting | from | rule |
//! | --- | --- | --- |
//! | block of TCP | throughput and delay by block size | the most throughput within the delay; where that is equal within 2 %, the least delay if the time of messages matters, else the largest block |
//! | receive buffer of datagrams | losses with the default and with a larger buffer | the larger one if it loses less |
//! | bandwidth to request | losses by the ratio of the requested bandwidth to the load | the smallest ratio from which on nothing was lost and less than a block waited: the mean delay was not above the least one by more than the time of a block, or 5 ms |
//! | largest rate | throughput without loss | demands above it cannot be met |
//!
//! A measurement at another load applies to the next smaller load: nothing is concluded about loads above the largest one that was
//! measured.

use crate::decision::Chosen;
use crate::protocol::{Ends, Protocol};
use crate::stream::Stream;
use cutline_units::{Bytes, Duration, Rate};
use std::fmt::Write as _;

/// Differences of throughput within this ratio are noise.
const EQUAL: f64 = 0.02;
/// A delay above the least one by more than this, and than the time of a block, is a queue in front of the requested bandwidth. Shorter ones
/// come from the host's scheduler.
const QUEUED: Duration = Duration::from_millis(5);
/// The loss up to which a rate counts as carried.
const CARRIED: f64 = 0.001;

/// Measurements of a host and a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// The measurements, in any order.
    pub points: Vec<BaselinePoint>,
    /// The larger buffer of receivers of datagrams that some were made with (`SO_RCVBUF` before the kernel doubles it).
    pub large_buffer: Bytes,
}

/// Measurement at one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaselinePoint {
    /// [`Protocol::Tcp`], [`Protocol::Udp`] or [`Protocol::Direct`].
    pub protocol: Protocol,
    /// Number of bytes that the application passed to one write.
    pub block: Bytes,
    /// The payload rate of the application; `None` if it wrote as fast as its socket took the blocks.
    pub load: Option<Rate>,
    /// The ratio of the bandwidth that was requested below the application to the load with its headers; `None` without such a limit.
    pub requested: Option<f64>,
    /// True with [`Baseline::large_buffer`].
    pub has_large_buffer: bool,
    /// Received payload.
    pub throughput: Rate,
    /// The share of blocks lost, 0..=1; zero for TCP.
    pub loss: f64,
    /// The mean time from writing a block to reading its last byte; `None` if none arrived.
    pub delay: Option<Duration>,
}

/// The bandwidth to request, measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// The ratio of the bandwidth to the load with headers.
    pub ratio: f64,
    /// The load at which it was measured.
    pub load: Rate,
    /// The delay at this ratio.
    pub delay: Duration,
    /// Loss and delay at the next smaller ratio; `None` if this is the smallest that was measured.
    pub below: Option<(f64, Option<Duration>)>,
}

impl Baseline {
    /// Returns the largest payload rate that a protocol has carried with at most 0.1 % lost; `None` if nothing was measured.
    pub fn ceiling(&self, protocol: Protocol) -> Option<Rate> {
        let carried = self.of(protocol).filter(|point| point.requested.is_none() && point.loss <= CARRIED);
        carried.map(|point| point.throughput).max()
    }

    /// Returns the measurements of a protocol at the smallest load that is at least `rate`; at no fixed load if `rate` is `None`.
    fn at(&self, protocol: Protocol, rate: Option<Rate>) -> Vec<&BaselinePoint> {
        let free = || self.of(protocol).filter(|point| point.requested.is_none());
        let load = match rate {
            None => None,
            Some(rate) => match free().filter_map(|point| point.load).filter(|load| *load >= rate).min() {
                None => return Vec::new(),
                found => found,
            },
        };
        free().filter(|point| point.load == load).collect()
    }

    fn of(&self, protocol: Protocol) -> impl Iterator<Item = &BaselinePoint> {
        self.points.iter().filter(move |point| point.protocol == protocol)
    }

    /// Returns the measurement with the best block of a stream.
    fn best_block(
        &self,
        protocol: Protocol,
        rate: Option<Rate>,
        limit: Option<Duration>,
        is_timely: bool,
    ) -> Option<&BaselinePoint> {
        let points = self.at(protocol, rate).into_iter().filter(|point| !point.has_large_buffer);
        let fits = |point: &&BaselinePoint| {
            point.loss <= CARRIED && limit.is_none_or(|limit| point.delay.is_some_and(|delay| delay <= limit))
        };
        let points: Vec<_> = points.filter(fits).collect();
        let most = points.iter().map(|point| point.throughput).max()?.as_bps() as f64;
        let equal =
            points.into_iter().filter(|point| point.throughput.as_bps() as f64 >= most * (1.0 - EQUAL));
        if is_timely {
            equal.min_by_key(|point| (point.delay, point.block))
        } else {
            equal.max_by_key(|point| point.block)
        }
    }

    /// Returns the losses with the default and with the larger buffer at a rate, with the block that is nearest to `size`; `None` unless
    /// both were measured.
    fn losses(
        &self,
        protocol: Protocol,
        rate: Rate,
        size: Bytes,
    ) -> Option<(&BaselinePoint, &BaselinePoint)> {
        let points = self.at(protocol, Some(rate));
        let pick = |large: bool| {
            let with = points.iter().copied().filter(move |point| point.has_large_buffer == large);
            with.min_by_key(|point| point.block.get().abs_diff(size.get()))
        };
        pick(false).zip(pick(true)).filter(|(small, large)| small.block == large.block)
    }

    /// Returns the margin of the bandwidth to request for a load, measured at the nearest load; `None` if it was not measured, or if
    /// something was lost at every ratio.
    pub fn margin(&self, protocol: Protocol, load: Rate) -> Option<Margin> {
        let loads =
            self.of(protocol).filter(|point| point.requested.is_some()).filter_map(|point| point.load);
        let distance = |other: Rate| (other.as_bps().max(1) as f64 / load.as_bps().max(1) as f64).ln().abs();
        let nearest = loads.min_by(|one, other| distance(*one).total_cmp(&distance(*other)))?;
        let at = self.of(protocol).filter(|point| point.load == Some(nearest));
        let mut ratios: Vec<_> = at.filter_map(|point| Some((point.requested?, point))).collect();
        ratios.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let least = ratios.iter().filter_map(|(_, point)| point.delay).min()?;
        let block = nearest.transmission_time(ratios.first()?.1.block);
        let calm = least + block.max(QUEUED);
        let good =
            |point: &BaselinePoint| point.loss <= 0.0 && point.delay.is_some_and(|delay| delay <= calm);
        let first = ratios.len() - ratios.iter().rev().take_while(|(_, point)| good(point)).count();
        let (ratio, point) = ratios.get(first)?;
        let below = first.checked_sub(1).map(|below| (ratios[below].1.loss, ratios[below].1.delay));
        Some(Margin { ratio: *ratio, load: nearest, delay: point.delay?, below })
    }
}

/// Replaces the block of a stream of bytes by the one that was measured as best. A message with a delay stays one write.
pub(crate) fn block(ends: &Ends<'_>, protocol: Protocol, chosen: Chosen<Bytes>) -> Chosen<Bytes> {
    let Stream { spec, .. } = ends.send;
    if spec.size.is_some() && spec.max_delay.is_some() {
        return chosen;
    }
    let found = ends.measured.and_then(|measured| {
        measured.best_block(protocol, ends.send.drain_rate(), spec.max_delay, ends.send.is_timely())
    });
    let Some(point) = found else { return chosen };
    let load = point.load.map_or_else(|| "without a limit".to_owned(), |load| format!("at a load of {load}"));
    let delay = point.delay.map_or_else(String::new, |delay| format!(" and a mean delay of {delay}"));
    let why = format!(
        "measured {load}: blocks of {} B had a throughput of {}{delay}; no other size that was measured had more than 2 % more",
        point.block.get(),
        point.throughput
    );
    Chosen::set(point.block, "QUANTA section 4.1.1", why)
}

/// Replaces the receive buffer of datagrams by the one measured as better, the default or a larger one.
pub(crate) fn receive_buffer(ends: &Ends<'_>, protocol: Protocol, chosen: Chosen<Bytes>) -> Chosen<Bytes> {
    let receive = &ends.receive;
    let (Some(measured), Some(rate), Some(size)) =
        (ends.measured, receive.peak_throughput(), receive.spec.size)
    else {
        return chosen;
    };
    let Some((small, large)) = measured.losses(protocol, rate, size) else { return chosen };
    let load = small.load.unwrap_or_default();
    let losses = format!("{} % of blocks of {} B", percent(small.loss), small.block.get());
    let source = "QUANTA section 4.1.1";
    if small.loss <= CARRIED || large.loss >= small.loss {
        let why = format!(
            "measured at a load of {load}: the default lost {losses}, {} B lost {} %",
            measured.large_buffer.get(),
            percent(large.loss)
        );
        return Chosen::leave(source, why);
    }
    let why = format!(
        "measured at a load of {load}: the default lost {losses}, this one {} %; the kernel doubles the value, and gives at most \
         net.core.rmem_max",
        percent(large.loss)
    );
    Chosen::set(measured.large_buffer, source, why)
}

/// Returns the ratio of the bandwidth to request to a load with headers, B/s, with its reason; `None` if it was not measured.
pub(crate) fn margin(ends: &Ends<'_>, protocol: Protocol, load: f64) -> Option<(f64, String)> {
    let load = Rate::from_bps((load * 8.0) as u64);
    let Margin { ratio, load, delay, below } = ends.measured?.margin(protocol.unreserved(), load)?;
    let mut why = format!(
        "measured at a load of {load}: with {ratio:.2} times the load nothing was lost, and the mean delay was {delay}"
    );
    if let Some((loss, delay)) = below {
        let delay =
            delay.map_or_else(|| "nothing arrived".to_owned(), |delay| format!("the delay was {delay}"));
        let _ = write!(why, "; with less {} % was lost, and {delay}", percent(loss));
    }
    Some((ratio, why))
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.01 { "less than 0.01".to_owned() } else { format!("{percent:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(protocol: Protocol, block: u64, load: Option<u64>) -> BaselinePoint {
        BaselinePoint {
            protocol,
            block: Bytes::new(block),
            load: load.map(Rate::from_mbps),
            requested: None,
            has_large_buffer: false,
            throughput: Rate::from_mbps(load.unwrap_or(100)),
            loss: 0.0,
            delay: Some(Duration::from_millis(1)),
        }
    }

    /// QUANTA table 2: the bandwidth of the load, 40 % and 100 % more, for 0.5 Mbit/s in blocks of 8 KB.
    fn table_2() -> Baseline {
        let row = |requested: f64, loss: f64, rtt: u64| BaselinePoint {
            requested: Some(requested),
            loss,
            delay: Some(Duration::from_millis(rtt)),
            ..point(Protocol::Udp, 8192, Some(1))
        };
        Baseline {
            points: vec![row(2.0, 0.0, 70), row(1.0, 0.0112, 5672), row(1.4, 0.0, 115)],
            ..Baseline::default()
        }
    }

    #[test]
    fn the_margin_is_the_least_without_loss_and_queue() {
        let margin = table_2().margin(Protocol::Udp, Rate::from_kbps(500)).unwrap();
        assert_eq!((margin.ratio, margin.delay), (1.4, Duration::from_millis(115)));
        assert_eq!(margin.below, Some((0.0112, Some(Duration::from_millis(5672)))));
        assert_eq!(table_2().margin(Protocol::Tcp, Rate::from_kbps(500)), None);
        // No loss, but a queue.
        let mut queued = table_2();
        queued.points[1].loss = 0.0;
        assert_eq!(queued.margin(Protocol::Udp, Rate::from_kbps(500)).unwrap().ratio, 1.4);
        // A loss at the largest ratio leaves none.
        queued.points[0].loss = 1e-6;
        assert_eq!(queued.margin(Protocol::Udp, Rate::from_kbps(500)), None);
    }

    #[test]
    fn the_best_block_has_the_most_throughput_within_the_delay() {
        let with = |block: u64, mbps: u64, ms: u64| BaselinePoint {
            throughput: Rate::from_mbps(mbps),
            delay: Some(Duration::from_millis(ms)),
            ..point(Protocol::Tcp, block, None)
        };
        let baseline = Baseline {
            points: vec![with(1024, 50, 1), with(8192, 99, 5), with(65_536, 100, 20)],
            ..Baseline::default()
        };
        let best = |limit: Option<u64>, timely| {
            let limit = limit.map(Duration::from_millis);
            baseline.best_block(Protocol::Tcp, None, limit, timely).map(|point| point.block.get())
        };
        assert_eq!([best(None, false), best(None, true)], [Some(65_536), Some(8192)]);
        assert_eq!(
            [best(Some(10), true), best(Some(2), true), best(Some(0), true)],
            [Some(8192), Some(1024), None]
        );
        assert_eq!(baseline.ceiling(Protocol::Tcp), Some(Rate::from_mbps(100)));
        assert_eq!(baseline.ceiling(Protocol::Udp), None);
    }

    #[test]
    fn a_measurement_applies_to_smaller_loads() {
        let lossy = BaselinePoint { loss: 0.15, ..point(Protocol::Udp, 8192, Some(65)) };
        let large = BaselinePoint { has_large_buffer: true, loss: 0.0, ..lossy };
        let points = vec![lossy, large, point(Protocol::Udp, 8192, Some(10))];
        let baseline = Baseline { points, large_buffer: Bytes::new(4 << 20) };
        let losses = |mbps| {
            let found = baseline.losses(Protocol::Udp, Rate::from_mbps(mbps), Bytes::new(1200));
            found.map(|(small, large)| (small.loss, large.loss))
        };
        assert_eq!([losses(20), losses(65)], [Some((0.15, 0.0)); 2]);
        assert_eq!([losses(66), losses(9)], [None; 2], "too fast, and without the larger buffer");
        assert_eq!(baseline.ceiling(Protocol::Udp), Some(Rate::from_mbps(65)), "with the larger buffer");
    }
}
