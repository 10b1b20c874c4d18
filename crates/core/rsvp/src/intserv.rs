//! Reservations of Integrated Services: token buckets, flowspecs and AdSpecs (RFC 2210, RFC 2211, RFC 2212,
//! RFC 2215).
//!
//! Rates are bytes per second and sizes are bytes, as single-precision floating-point numbers, because they have that form on
//! the wire. [`crate::admission`] counts in whole bits per second.

use cutline_flow::TrafficSpec;
use cutline_units::{Bytes, Rate};
use cutline_wire::Reader;
use thiserror::Error;

/// The service number of the general parameters.
const GENERAL: u8 = 1;
/// The service number of guaranteed service.
const GUARANTEED: u8 = 2;
/// The service number of controlled load.
const CONTROLLED_LOAD: u8 = 5;
/// The parameter numbers (RFC 2215 section 3, RFC 2212).
const HOPS: u8 = 4;
const BANDWIDTH: u8 = 6;
const LATENCY: u8 = 8;
const MTU: u8 = 10;
const TOKEN_BUCKET: u8 = 127;
const RSPEC: u8 = 130;
/// The bit of a service header that marks a node without the service.
const BREAK: u8 = 0x80;
/// The flag of a parameter that a node could not update.
const INVALID: u8 = 0x80;
/// The largest rate that the RFC provides for, bytes per second (RFC 2215 section 3.6).
const MOST_RATE: f32 = 40e12;
/// The largest bucket that the RFC provides for, bytes.
const MOST_BUCKET: f32 = 250e9;

/// A token bucket: the most that a flow sends (RFC 2215 section 3.6).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tspec {
    /// The token rate r, bytes per second.
    pub rate: f32,
    /// The bucket depth b, bytes.
    pub bucket: f32,
    /// The peak rate p, bytes per second; infinite if it is not known.
    pub peak: f32,
    /// The minimum policed unit m, bytes: smaller packets count as this size.
    pub min_policed: u32,
    /// The maximum packet size M, bytes.
    pub max_packet: u32,
}

/// A value of a [`Tspec`] that is not allowed.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{field} = {value}: allowed is {allowed}")]
pub struct TspecError {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: f64,
    /// The allowed values.
    pub allowed: &'static str,
}

impl Tspec {
    /// Returns the bucket of a flow with this rate and depth whose packets have 64 to 1500 bytes, and whose peak rate is not known.
    pub const fn new(rate: f32, bucket: f32) -> Self {
        Self { rate, bucket, peak: f32::INFINITY, min_policed: 64, max_packet: 1500 }
    }

    /// Returns the traffic in whole bits and bytes, each rounded up, so that the installed reservation is enough.
    pub fn traffic(&self) -> TrafficSpec {
        // Saturates; a peak rate of infinity becomes the largest number.
        let bits = |bytes: f32| Rate::from_bps((f64::from(bytes) * 8.0).ceil() as u64);
        TrafficSpec {
            rate: bits(self.rate),
            bucket: Bytes::new(self.bucket.ceil() as u64),
            peak: bits(self.peak),
            min_policed: Bytes::new(self.min_policed.into()),
            max_packet: Bytes::new(self.max_packet.into()),
        }
    }

    /// Checks each value.
    ///
    /// # Errors
    /// Names the first field that is not allowed.
    pub fn validate(&self) -> Result<(), TspecError> {
        let wrong = |field, value: f64, allowed| Err(TspecError { field, value, allowed });
        if !(0.0..=MOST_RATE).contains(&self.rate) {
            return wrong("rate", self.rate.into(), "0 to 40e12 bytes per second");
        }
        if !(0.0..=MOST_BUCKET).contains(&self.bucket) {
            return wrong("bucket", self.bucket.into(), "0 to 250e9 bytes");
        }
        if !(0.0..=MOST_RATE).contains(&self.peak) && self.peak != f32::INFINITY {
            return wrong("peak", self.peak.into(), "0 to 40e12 bytes per second, or infinity");
        }
        if self.min_policed == 0 {
            return wrong("min_policed", 0.0, "at least 1 byte");
        }
        if self.max_packet < self.min_policed {
            return wrong("max_packet", self.max_packet.into(), "at least min_policed");
        }
        Ok(())
    }

    /// Returns whether this bucket is as good as or better than the other (RFC 2211 section 8).
    pub fn covers(&self, other: &Self) -> bool {
        self.rate >= other.rate
            && self.bucket >= other.bucket
            && self.peak >= other.peak
            && self.min_policed <= other.min_policed
            && self.max_packet >= other.max_packet
    }

    /// Returns the merged bucket of two reservations (RFC 2211 section 8): the larger values, but the smaller packet sizes.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        Self {
            rate: self.rate.max(other.rate),
            bucket: self.bucket.max(other.bucket),
            peak: self.peak.max(other.peak),
            min_policed: self.min_policed.min(other.min_policed),
            max_packet: self.max_packet.min(other.max_packet),
        }
    }

    /// Returns the sum of the buckets of two flows that share a reservation (RFC 2211 section 8).
    #[must_use]
    pub fn sum(&self, other: &Self) -> Self {
        Self {
            rate: self.rate + other.rate,
            bucket: self.bucket + other.bucket,
            peak: self.peak + other.peak,
            min_policed: self.min_policed.min(other.min_policed),
            max_packet: self.max_packet.max(other.max_packet),
        }
    }

    /// Returns the minimum of two buckets (RFC 2211 section 8): the smaller one, or if they are not ordered, the smaller values,
    /// but the larger bucket.
    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        if self.covers(other) {
            return *other;
        }
        if other.covers(self) {
            return *self;
        }
        Self {
            rate: self.rate.min(other.rate),
            bucket: self.bucket.max(other.bucket),
            peak: self.peak.min(other.peak),
            min_policed: self.min_policed.min(other.min_policed),
            max_packet: self.max_packet.min(other.max_packet),
        }
    }

    /// Returns the bucket that a node installs: no more than the senders announce, for no larger packets (RFC 2210 section 2.3.2),
    /// with the smaller minimum policed unit (RFC 2210 section 3.2.1).
    #[must_use]
    pub fn installed(&self, senders: &Self) -> Self {
        Self {
            rate: self.rate.min(senders.rate),
            bucket: self.bucket.min(senders.bucket),
            peak: self.peak.min(senders.peak),
            min_policed: self.min_policed.min(senders.min_policed),
            max_packet: self.max_packet.min(senders.max_packet),
        }
    }

    fn write(&self, to: &mut Vec<u8>) {
        to.extend([TOKEN_BUCKET, 0, 0, 5]);
        for number in [self.rate, self.bucket, self.peak] {
            to.extend(number.to_bits().to_be_bytes());
        }
        to.extend(self.min_policed.to_be_bytes());
        to.extend(self.max_packet.to_be_bytes());
    }

    /// Reads the five words of the parameter.
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        let mut float = || from.u32().map(f32::from_bits);
        let (rate, bucket, peak) = (float()?, float()?, float()?);
        let tspec = Self { rate, bucket, peak, min_policed: from.u32()?, max_packet: from.u32()? };
        tspec.validate().is_ok().then_some(tspec)
    }

    /// Returns the content of a `SENDER_TSPEC` object (RFC 2210 section 3.1).
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 7, GENERAL, 0, 0, 6];
        self.write(&mut bytes);
        bytes
    }

    /// Reads the content of a `SENDER_TSPEC` object; `None` if it is not one, or a value is not allowed.
    pub fn decode(content: &[u8]) -> Option<Self> {
        let (service, mut data) = single_service(content)?;
        (service == GENERAL).then_some(())?;
        parameter(&mut data, TOKEN_BUCKET, 5)?;
        let tspec = Self::read(&mut data)?;
        data.is_at_end().then_some(tspec)
    }
}

impl From<TrafficSpec> for Tspec {
    /// Converts to the protocol's floating-point numbers, rounded up, so that no reservation is smaller than its request.
    fn from(traffic: TrafficSpec) -> Self {
        let size = |bytes: Bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
        let has_peak = traffic.peak != TrafficSpec::UNKNOWN_PEAK;
        Self {
            rate: rounded_up(traffic.rate.as_bps() as f64 / 8.0).min(MOST_RATE),
            bucket: rounded_up(traffic.bucket.get() as f64).min(MOST_BUCKET),
            peak: if has_peak {
                rounded_up(traffic.peak.as_bps() as f64 / 8.0).min(MOST_RATE)
            } else {
                f32::INFINITY
            },
            min_policed: size(traffic.min_policed),
            max_packet: size(traffic.max_packet),
        }
    }
}

/// Returns the smallest number of single precision that is at least `value`.
fn rounded_up(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) < value { nearest.next_up() } else { nearest }
}

/// Parameters of guaranteed service beside the bucket (RFC 2212).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rspec {
    /// The reserved rate R, bytes per second.
    pub rate: f32,
    /// The slack term S, microseconds.
    pub slack_us: u32,
}

/// Reservation of a receiver: a service with its parameters (RFC 2210 section 3.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flowspec {
    /// Controlled load: as if the network were unloaded (RFC 2211).
    ControlledLoad(Tspec),
    /// Guaranteed service. A router of ours merges and forwards such requests of others, and refuses to install them.
    Guaranteed(Tspec, Rspec),
}

impl Flowspec {
    /// Returns the token bucket.
    pub const fn tspec(&self) -> &Tspec {
        match self {
            Self::ControlledLoad(tspec) | Self::Guaranteed(tspec, _) => tspec,
        }
    }

    /// Returns whether this request is as good as or better than the other. Requests for different services are not ordered.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ControlledLoad(a), Self::ControlledLoad(b)) => a.covers(b),
            (Self::Guaranteed(a, ra), Self::Guaranteed(b, rb)) => {
                a.covers(b) && ra.rate >= rb.rate && ra.slack_us <= rb.slack_us
            }
            _ => false,
        }
    }

    /// Returns whether this request is strictly greater than the other: it covers it, and is not the same.
    pub fn exceeds(&self, other: &Self) -> bool {
        self.covers(other) && self != other
    }

    /// Returns the least upper bound of two requests; `None` if they are for different services.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::ControlledLoad(a), Self::ControlledLoad(b)) => Some(Self::ControlledLoad(a.merge(b))),
            (Self::Guaranteed(a, ra), Self::Guaranteed(b, rb)) => {
                let rspec = Rspec { rate: ra.rate.max(rb.rate), slack_us: ra.slack_us.min(rb.slack_us) };
                Some(Self::Guaranteed(a.merge(b), rspec))
            }
            _ => None,
        }
    }

    /// Returns the greatest lower bound of two requests; `None` if they are for different services.
    #[must_use]
    pub fn min(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::ControlledLoad(a), Self::ControlledLoad(b)) => Some(Self::ControlledLoad(a.min(b))),
            (Self::Guaranteed(a, ra), Self::Guaranteed(b, rb)) => {
                let rspec = Rspec { rate: ra.rate.min(rb.rate), slack_us: ra.slack_us.max(rb.slack_us) };
                Some(Self::Guaranteed(a.min(b), rspec))
            }
            _ => None,
        }
    }

    /// Returns the content of a `FLOWSPEC` object.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::ControlledLoad(tspec) => {
                let mut bytes = vec![0, 0, 0, 7, CONTROLLED_LOAD, 0, 0, 6];
                tspec.write(&mut bytes);
                bytes
            }
            Self::Guaranteed(tspec, rspec) => {
                let mut bytes = vec![0, 0, 0, 10, GUARANTEED, 0, 0, 9];
                tspec.write(&mut bytes);
                bytes.extend([RSPEC, 0, 0, 2]);
                bytes.extend(rspec.rate.to_bits().to_be_bytes());
                bytes.extend(rspec.slack_us.to_be_bytes());
                bytes
            }
        }
    }

    /// Reads the content of a `FLOWSPEC` object; `None` if it is not one, or a value is not allowed.
    pub fn decode(content: &[u8]) -> Option<Self> {
        let (service, mut data) = single_service(content)?;
        parameter(&mut data, TOKEN_BUCKET, 5)?;
        let tspec = Tspec::read(&mut data)?;
        let flowspec = match service {
            CONTROLLED_LOAD => Self::ControlledLoad(tspec),
            GUARANTEED => {
                parameter(&mut data, RSPEC, 2)?;
                let rate = data.u32().map(f32::from_bits).filter(|rate| (0.0..=MOST_RATE).contains(rate))?;
                Self::Guaranteed(tspec, Rspec { rate, slack_us: data.u32()? })
            }
            _ => return None,
        };
        data.is_at_end().then_some(flowspec)
    }
}

/// Reads the headers of content with the data of one service. Returns the service's number and its data.
fn single_service(content: &[u8]) -> Option<(u8, Reader<'_>)> {
    let mut reader = Reader::new(content);
    let [version, _, high, low] = reader.take()?;
    let words = usize::from(u16::from_be_bytes([high, low]));
    (version >> 4 == 0 && content.len() == 4 * (words + 1)).then_some(())?;
    let [service, _, high, low] = reader.take()?;
    (usize::from(u16::from_be_bytes([high, low])) + 1 == words).then_some((service, reader))
}

/// Reads the header of a parameter that must have this number and as many words.
fn parameter(reader: &mut Reader<'_>, number: u8, words: u8) -> Option<()> {
    let [found, _, high, low] = reader.take()?;
    (found == number && high == 0 && low == words).then_some(())
}

/// Offer of a path, as far as its nodes have stated it (RFC 2210 section 3.3).
#[derive(Clone, Debug, PartialEq)]
pub struct Adspec {
    /// True if some node on the path has no Integrated Services. Then the other values may be wrong.
    pub is_broken: bool,
    /// Number of nodes with Integrated Services.
    pub hops: u32,
    /// The least bandwidth, bytes per second.
    pub bandwidth: f32,
    /// The sum of the least delays, microseconds; the largest number if it is not known.
    pub latency_us: u32,
    /// The smallest MTU, bytes.
    pub mtu: u32,
    /// The flags of the four values above, as they came.
    flags: [u8; 4],
    /// The parts about single services, in the order of their numbers.
    services: Vec<ServicePart>,
}

/// An [`Adspec`]'s part about a service.
#[derive(Clone, Debug, PartialEq)]
struct ServicePart {
    service: u8,
    is_broken: bool,
    /// Whole words, whose parameters fill them.
    data: Vec<u8>,
}

/// A node's contribution to an [`Adspec`] for one of its links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkCharacter {
    /// The bandwidth that can be reserved, bytes per second.
    pub bandwidth: f32,
    /// The least delay, microseconds; `u32::MAX` if it is not known.
    pub latency_us: u32,
    /// The MTU, bytes.
    pub mtu: u32,
}

impl Adspec {
    /// Returns the AdSpec of a sender: no hop crossed, and a receiver may use controlled load.
    pub fn new(mtu: u32) -> Self {
        let services = vec![ServicePart { service: CONTROLLED_LOAD, is_broken: false, data: Vec::new() }];
        Self {
            is_broken: false,
            hops: 0,
            bandwidth: f32::INFINITY,
            latency_us: 0,
            mtu,
            flags: [0; 4],
            services,
        }
    }

    /// Returns whether every node so far has controlled load; `None` if the sender excludes its use.
    pub fn has_controlled_load(&self) -> Option<bool> {
        let part = self.services.iter().find(|part| part.service == CONTROLLED_LOAD)?;
        Some(!part.is_broken && !self.is_broken)
    }

    /// Returns the AdSpec that is sent over a link: the values composed with those of the link (RFC 2215 section 3). `after_gap` says that there
    /// were nodes without RSVP before this one.
    #[must_use]
    pub fn compose(&self, link: &LinkCharacter, after_gap: bool) -> Self {
        let services = self.services.iter().map(|part| match part.service {
            CONTROLLED_LOAD => ServicePart { data: compose_overrides(&part.data, link), ..part.clone() },
            // RFC 2210 section 3.3: a service that this node does not have.
            _ => ServicePart { is_broken: true, ..part.clone() },
        });
        Self {
            is_broken: self.is_broken || after_gap,
            hops: self.hops.saturating_add(1),
            bandwidth: self.bandwidth.min(link.bandwidth),
            latency_us: self.latency_us.saturating_add(link.latency_us),
            mtu: self.mtu.min(link.mtu),
            flags: self.flags,
            services: services.collect(),
        }
    }

    /// Returns the content of an `ADSPEC` object.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 0, GENERAL, if self.is_broken { BREAK } else { 0 }, 0, 8];
        let values = [self.hops, self.bandwidth.to_bits(), self.latency_us, self.mtu];
        for ((number, flags), value) in
            [HOPS, BANDWIDTH, LATENCY, MTU].into_iter().zip(self.flags).zip(values)
        {
            bytes.extend([number, flags, 0, 1]);
            bytes.extend(value.to_be_bytes());
        }
        for ServicePart { service, is_broken, data } in &self.services {
            bytes.extend([*service, if *is_broken { BREAK } else { 0 }]);
            bytes.extend(((data.len() / 4) as u16).to_be_bytes());
            bytes.extend(data);
        }
        let words = (bytes.len() / 4 - 1) as u16;
        bytes[2..4].copy_from_slice(&words.to_be_bytes());
        bytes
    }

    /// Reads the content of an `ADSPEC` object; `None` if it is not one, or a value is not allowed.
    pub fn decode(content: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(content);
        let [version, _, high, low] = reader.take()?;
        let words = usize::from(u16::from_be_bytes([high, low]));
        (version >> 4 == 0 && content.len() == 4 * (words + 1)).then_some(())?;
        let [service, bits, high, low] = reader.take()?;
        (service == GENERAL && [high, low] == [0, 8]).then_some(())?;
        let mut flags = [0; 4];
        let mut values = [0; 4];
        for (at, number) in [HOPS, BANDWIDTH, LATENCY, MTU].into_iter().enumerate() {
            let [found, bits, high, low] = reader.take()?;
            (found == number && [high, low] == [0, 1]).then_some(())?;
            flags[at] = bits;
            values[at] = reader.u32()?;
        }
        let bandwidth = f32::from_bits(values[1]);
        (bandwidth >= 0.0).then_some(())?;
        let mut services: Vec<ServicePart> = Vec::new();
        while !reader.is_at_end() {
            let [service, bits, high, low] = reader.take()?;
            let data = reader.bytes(4 * usize::from(u16::from_be_bytes([high, low])))?;
            let last = services.last().map_or(GENERAL, |part| part.service);
            (service > last && parameters_fill(data)).then_some(())?;
            services.push(ServicePart { service, is_broken: bits & BREAK != 0, data: data.to_vec() });
        }
        let [hops, _, latency_us, mtu] = values;
        Some(Self { is_broken: bits & BREAK != 0, hops, bandwidth, latency_us, mtu, flags, services })
    }
}

/// Returns whether the parameters of a service fill its data.
fn parameters_fill(data: &[u8]) -> bool {
    let mut reader = Reader::new(data);
    while !reader.is_at_end() {
        let Some([_, _, high, low]) = reader.take() else { return false };
        if reader.bytes(4 * usize::from(u16::from_be_bytes([high, low]))).is_none() {
            return false;
        }
    }
    true
}

/// Composes the general parameters that a service has its own values of. An unknown one gets the flag for it.
fn compose_overrides(data: &[u8], link: &LinkCharacter) -> Vec<u8> {
    let mut composed = data.to_vec();
    let mut at = 0;
    while at < composed.len() {
        let words = usize::from(u16::from_be_bytes([composed[at + 2], composed[at + 3]]));
        let value = at + 4..at + 4 + 4 * words;
        let before = <[u8; 4]>::try_from(&composed[value.clone()]).ok().map(u32::from_be_bytes);
        let after = match (composed[at], before) {
            (HOPS, Some(hops)) => Some(hops.saturating_add(1)),
            (BANDWIDTH, Some(bits)) => Some(f32::from_bits(bits).min(link.bandwidth).to_bits()),
            (LATENCY, Some(latency)) => Some(latency.saturating_add(link.latency_us)),
            (MTU, Some(mtu)) => Some(mtu.min(link.mtu)),
            _ => None,
        };
        match after {
            Some(after) => composed[value.clone()].copy_from_slice(&after.to_be_bytes()),
            None => composed[at + 1] |= INVALID,
        }
        at = value.end;
    }
    composed
}

#[cfg(test)]
#[path = "intserv_tests.rs"]
mod tests;
