//! Interval series: what happened in each interval of a fixed width, counted from time zero.

use cutline_units::{Duration, Instant};

/// What one flow received in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowInterval {
    /// Payload bytes received.
    pub bytes: u64,
    /// Packets received.
    pub packets: u32,
    /// The sum of their queuing delays, ns.
    pub queuing_ns: u64,
    /// Packets of the flow dropped by queues.
    pub dropped: u32,
}

/// What one queue did in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueInterval {
    /// Packets waiting at the interval's end.
    pub backlog_packets: u32,
    /// Bytes waiting at the interval's end.
    pub backlog_bytes: u64,
    /// The AQM's probability at the interval's end; `None` where it has none.
    pub probability: Option<f64>,
    /// Packets that arrived in the interval.
    pub arrived: u64,
    /// Of these, dropped.
    pub dropped: u64,
    /// Of these, marked.
    pub marked: u64,
    /// Bytes sent in the interval.
    pub sent_bytes: u64,
}

/// A flow's intervals as they fill: the open one is kept apart and closed by the first event beyond it.
#[derive(Clone, Debug)]
pub struct FlowSeries {
    width: Duration,
    ends: Instant,
    open: FlowInterval,
    closed: Vec<FlowInterval>,
}

impl FlowSeries {
    /// Intervals of `width`, the first one beginning at time zero.
    pub fn new(width: Duration) -> Self {
        assert!(!width.is_zero(), "an interval must have a width");
        Self { width, ends: Instant::ZERO + width, open: FlowInterval::default(), closed: Vec::new() }
    }

    /// The interval that `now` lies in, open for counting.
    #[inline]
    pub fn at(&mut self, now: Instant) -> &mut FlowInterval {
        while now >= self.ends {
            self.close();
        }
        &mut self.open
    }

    /// Every interval that ended by `end`.
    pub fn finish(mut self, end: Instant) -> Vec<FlowInterval> {
        while end >= self.ends {
            self.close();
        }
        self.closed
    }

    #[inline(never)]
    fn close(&mut self) {
        self.closed.push(std::mem::take(&mut self.open));
        self.ends += self.width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_intervals_are_there_too() {
        let ms = |n: u64| Instant::from_nanos(n * 1_000_000);
        let mut series = FlowSeries::new(Duration::from_millis(300));
        series.at(ms(299)).bytes += 1;
        series.at(ms(300)).bytes += 2;
        series.at(ms(1000)).bytes += 3;
        let bytes: Vec<u64> = series.finish(ms(1200)).iter().map(|interval| interval.bytes).collect();
        assert_eq!(bytes, [1, 2, 0, 3]);
    }
}
