//! Admission control for controlled load (RFC 2211): a share of a link is reserved, and never more.
//!
//! A reservation takes its token rate from the share of bandwidth, with the headers of the link's layer on packets of the minimum
//! policed unit, and its bucket from the bytes that may come at once. Both are counted in whole numbers, rounded up, so that exactly the
//! taken amount is returned.

use crate::intserv::{LinkCharacter, Tspec};
use crate::object::code;
use cutline_params::Parameters;
use cutline_units::{Duration, Rate};
use std::collections::BTreeMap;

/// Share of a link that can be reserved.
#[derive(Clone, Debug, PartialEq, Parameters)]
pub struct ShareParams {
    /// The share of the link's rate that can be reserved.
    #[param(default = 0.75, range = (0.0, 1.0), source = "ours: a quarter stays for best effort, whatever is reserved")]
    pub share: f64,
    /// Time that the buckets of all reservations together may take at the reservable rate. If all come at
    /// once, best effort waits so long.
    #[param(
        default = Duration::from_secs(2),
        range = (Duration::from_millis(1), Duration::from_secs(60)),
        source = "ours: an image of 180 kB fits a link of 1 Mbit/s"
    )]
    pub burst: Duration,
    /// The bytes that the link's layer adds to a packet.
    #[param(default = 18, range = (0, 1000), unit = "B", source = "Ethernet: header and frame check sequence")]
    pub overhead: u32,
}

/// A reservation on an interface, which traffic control knows by this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservationHandle(pub u64);

/// Reason why a reservation is refused: the value of an admission error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionError {
    /// The buckets together would be too deep.
    Delay,
    /// The rates together would exceed the share.
    Bandwidth,
    /// The packets are larger than the MTU.
    PacketSize,
}

impl AdmissionError {
    /// Returns the error value.
    pub const fn value(self) -> u16 {
        match self {
            Self::Delay => code::DELAY_BOUND,
            Self::Bandwidth => code::BANDWIDTH,
            Self::PacketSize => code::PACKET_SIZE,
        }
    }
}

/// Share of the link that a reservation uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Charge {
    bps: u64,
    bytes: u64,
}

/// The reservable share of a link and its holders.
#[derive(Clone, Debug)]
pub struct Share {
    overhead: u32,
    mtu: u32,
    limit: Charge,
    taken: Charge,
    charges: BTreeMap<ReservationHandle, Charge>,
}

impl Share {
    /// Returns the share of a link with this rate and MTU.
    pub fn new(params: &ShareParams, rate: Rate, mtu: u32) -> Self {
        Self {
            overhead: params.overhead,
            mtu,
            limit: limit(params, rate),
            taken: Charge::default(),
            charges: BTreeMap::new(),
        }
    }

    /// Changes the MTU of the link. Reservations stay.
    pub const fn set_mtu(&mut self, mtu: u32) {
        self.mtu = mtu;
    }

    /// Changes how much can be reserved. Reservations keep their share; their headers are counted as before until they change.
    pub fn set_limit(&mut self, params: &ShareParams, rate: Rate) {
        self.limit = limit(params, rate);
        self.overhead = params.overhead;
    }

    /// Returns the rate that can be reserved altogether.
    pub const fn reservable(&self) -> Rate {
        Rate::from_bps(self.limit.bps)
    }

    /// Returns the rate that is reserved.
    pub const fn reserved(&self) -> Rate {
        Rate::from_bps(self.taken.bps)
    }

    /// Returns the number of reservations.
    pub fn reservations(&self) -> usize {
        self.charges.len()
    }

    /// Returns the characterization of the link for an AdSpec. The latency is not known.
    pub fn character(&self) -> LinkCharacter {
        LinkCharacter { bandwidth: (self.limit.bps / 8) as f32, latency_us: u32::MAX, mtu: self.mtu }
    }

    /// Replaces the share of a reservation by the one that it needs.
    ///
    /// # Errors
    /// The reason of the shortage. Then the reservation keeps its share.
    pub fn admit(&mut self, handle: ReservationHandle, tspec: &Tspec) -> Result<(), AdmissionError> {
        // RFC 2211 section 5: packets beyond the link's MTU are refused.
        if tspec.max_packet > self.mtu {
            return Err(AdmissionError::PacketSize);
        }
        let had = self.charges.get(&handle).copied().unwrap_or_default();
        let needs = self.charge(tspec);
        let others = Charge { bps: self.taken.bps - had.bps, bytes: self.taken.bytes - had.bytes };
        let total = Charge {
            bps: others.bps.saturating_add(needs.bps),
            bytes: others.bytes.saturating_add(needs.bytes),
        };
        // A reservation may always become smaller, also where the limit has become smaller than the sum of reservations.
        if total.bps > self.limit.bps && needs.bps > had.bps {
            return Err(AdmissionError::Bandwidth);
        }
        if total.bytes > self.limit.bytes && needs.bytes > had.bytes {
            return Err(AdmissionError::Delay);
        }
        self.taken = total;
        self.charges.insert(handle, needs);
        Ok(())
    }

    /// Returns the share of a reservation to the pool.
    pub fn release(&mut self, handle: ReservationHandle) {
        let had = self.charges.remove(&handle).unwrap_or_default();
        self.taken.bps -= had.bps;
        self.taken.bytes -= had.bytes;
    }

    /// RFC 2210 section 3.1: the headers of the link's layer on packets of the minimum policed unit.
    fn charge(&self, tspec: &Tspec) -> Charge {
        let (unit, headers) = (f64::from(tspec.min_policed), f64::from(self.overhead));
        let up = |number: f64| number.ceil() as u64;
        let bps = f64::from(tspec.rate) * 8.0 * (unit + headers) / unit;
        Charge { bps: up(bps), bytes: up(f64::from(tspec.bucket)) }
    }
}

/// Returns the reservable share of a link with this rate.
fn limit(params: &ShareParams, rate: Rate) -> Charge {
    let bps = (rate.as_bps() as f64 * params.share) as u64;
    Charge { bps, bytes: Rate::from_bps(bps).bytes_in(params.burst).get() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share(kbps: u64) -> Share {
        let params = ShareParams { share: 0.5, burst: Duration::from_millis(500), overhead: 0 };
        Share::new(&params, Rate::from_kbps(kbps), 1500)
    }

    /// RFC 2211 section 5.
    #[test]
    fn a_reservation_is_refused_for_each_reason() {
        let mut share = share(1600);
        let (one, two) = (ReservationHandle(1), ReservationHandle(2));
        share.admit(one, &Tspec::new(60_000.0, 1000.0)).unwrap();
        assert_eq!(share.admit(two, &Tspec::new(40_001.0, 0.0)), Err(AdmissionError::Bandwidth));
        assert_eq!(share.admit(two, &Tspec::new(1.0, 49_001.0)), Err(AdmissionError::Delay));
        let large = Tspec { max_packet: 1501, ..Tspec::new(1.0, 1.0) };
        assert_eq!(share.admit(two, &large), Err(AdmissionError::PacketSize));
        share.admit(two, &Tspec::new(40_000.0, 49_000.0)).unwrap();
        assert_eq!(share.reserved(), share.reservable());
        assert_eq!(share.admit(one, &Tspec::new(60_001.0, 1000.0)), Err(AdmissionError::Bandwidth));
        share.admit(one, &Tspec::new(10_000.0, 10.0)).unwrap();
        assert_eq!(share.reserved(), Rate::from_kbps(400));
    }

    /// RFC 2210 section 3.1: 18 bytes on packets of 90 are a fifth more.
    #[test]
    fn headers_of_the_link_are_reserved_with_small_packets() {
        let mut share = Share::new(&ShareParams::default(), Rate::from_mbps(1), 1500);
        share.admit(ReservationHandle(1), &Tspec { min_policed: 90, ..Tspec::new(10_000.0, 100.0) }).unwrap();
        assert_eq!(share.reserved(), Rate::from_kbps(96));
    }

    proptest! {
        /// Reservations never exceed the share, and all of it is returned, whatever is requested in whatever
        /// order.
        #[test]
        fn admission_never_exceeds_the_share_and_returns_it(
            steps in prop::collection::vec((0_u64..20, 0.0_f32..200_000.0, 0.0_f32..90_000.0, any::<bool>()), 1..200)
        ) {
            let mut share = share(1600);
            for (handle, rate, bucket, releases) in steps {
                if releases {
                    share.release(ReservationHandle(handle));
                } else {
                    let before = share.taken;
                    let outcome = share.admit(ReservationHandle(handle), &Tspec::new(rate, bucket));
                    prop_assert!(outcome.is_ok() || share.taken == before);
                }
                prop_assert!(share.taken.bps <= share.limit.bps && share.taken.bytes <= share.limit.bytes);
                let sum: u64 = share.charges.values().map(|charge| charge.bps).sum();
                prop_assert_eq!(share.taken.bps, sum);
            }
            (0..20).for_each(|handle| share.release(ReservationHandle(handle)));
            prop_assert_eq!(share.taken, Charge::default());
        }
    }
}
