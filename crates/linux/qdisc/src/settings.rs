//! Settings of a queue as the kernel's program reads them: parameters of the crate `aqm` in fixed point.

use crate::layout::{
    CODE_POINTS, LAYOUT, LEVELS, LawLayout, PACKET_BITS, PROBABILITY_BITS, Pi2Layout, PiLayout, QdiscConfig,
    RATIO_BITS, RedWorcesterLayout, SieveLayout, TsqLayout, sets_with_filters,
};
use cutline_aqm::red::{Automatic, RedMode, RedVariant, Spacing};
use cutline_aqm::sieve::Key;
use cutline_aqm::{
    AqmSpec, AredParams, DelayEstimate, Limit, Pi2Params, PiParams, QueueSpec, Sieve, SieveParams, TsqParams,
};
use cutline_aqm::{Discipline as _, RedWorcesterParams};
use cutline_params::{Choice as _, ParameterError};
use cutline_router::{Overhead, ShaperParams, Units};
use cutline_units::{Bytes, Duration, Hint, HintTable, Rate};
use std::array;

/// A queue that the kernel can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelQueue {
    /// TSQ over a law.
    Tsq,
    /// Sieve.
    Sieve,
}

impl KernelQueue {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Tsq, Self::Sieve];

    /// Returns its name for `tc qdisc add ... NAME`.
    pub const fn kernel_name(self) -> &'static str {
        match self {
            Self::Tsq => "cutline_tsq3",
            Self::Sieve => "cutline_sieve3",
        }
    }

    /// Returns the name of its object file.
    pub const fn object(self) -> &'static str {
        match self {
            Self::Tsq => "tsq.bpf.o",
            Self::Sieve => "sieve.bpf.o",
        }
    }

    /// Returns the folder of its pins.
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Self::Tsq => "tsq3",
            Self::Sieve => "sieve3",
        }
    }

    /// Returns the queue with this name in the kernel.
    pub fn named(kernel_name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|queue| queue.kernel_name() == kernel_name)
    }

    /// Returns the version of the layouts in the name of a queue of Cutline's, of this version or another: 2 for `cutline_sieve2`.
    pub(crate) fn layout_of(kernel_name: &str) -> Option<u32> {
        let is_digit = |letter: char| letter.is_ascii_digit();
        let behind = |queue: Self| kernel_name.strip_prefix(queue.kernel_name().trim_end_matches(is_digit));
        let version = Self::ALL.into_iter().find_map(behind)?;
        version.parse().ok().filter(|_| version.chars().all(is_digit))
    }
}

/// Settings of the queue of an interface.
#[derive(Clone, Debug, PartialEq)]
pub struct QdiscSettings {
    /// The queue, with the rate of the link. Packets are never marked, whatever `ecn` is.
    pub queue: QueueSpec,
    /// True if the queue itself sends at the link's rate; false in front of a link that has this rate by itself.
    pub shaped: bool,
    /// Overhead of the link for each packet.
    pub overhead: Overhead,
    /// The hint of each code point.
    pub hints: HintTable,
    /// True for a queue for each transmit queue, below `mq`, with one rate and one limit for all; false for one queue.
    pub mq: bool,
}

/// A change of the settings of an interface. Fields that are `None` do not change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QdiscChange {
    /// Rate of the link, and whether the queue itself sends at this rate.
    pub rate: Option<(Rate, bool)>,
    /// The law under TSQ, or Sieve, with all its parameters.
    pub aqm: Option<AqmSpec>,
    /// TSQ, with all its parameters.
    pub tsq: Option<TsqParams>,
    /// Limit of the backlog.
    pub limit: Option<Limit>,
    /// Overhead of the link for each packet.
    pub overhead: Option<Overhead>,
    /// The hint of each code point.
    pub hints: Option<HintTable>,
}

/// Most packets that a queue may hold: 48 MB of TSQ's slots, 32 MB of Sieve's.
pub const MOST_PACKETS: u32 = 1_000_000;
/// The least bytes of a packet by which a limit in bytes is turned into slots.
const LEAST_PACKET: u64 = 64;
/// Sets of flows in Sieve's table for each so many bytes of its memory: the rest is for the filters of new flows, as in the crate `aqm`, whose flows have
/// 24 B. In the kernel they have 20 B, so the table is smaller than that memory.
const SETS: (u64, u64) = (149, 32_768);
/// Largest memory of Sieve's flows, B: a little less than [`PLACES`](crate::layout::PLACES) of them.
const MOST_MEMORY: u64 = 28_000_000;
/// The rates that the programs accept, bit/s.
const RATES: std::ops::RangeInclusive<u64> = 1_000..=10_000_000_000_000;
/// The largest rate of Sieve, bit/s.
const MOST_OF_SIEVE: Rate = Rate::from_bps(100_000_000_000);
/// The largest threshold of RED that the programs accept, packets.
const MOST_THRESHOLD: f64 = 1e7;
/// Number of hint bits of the kernel's table of hints.
const MOST_BITS: u64 = 4;

/// Returns a number from 0 to 1 in fixed point, with [`PROBABILITY_BITS`] fractional bits.
fn fixed_fraction(number: f64) -> u64 {
    (number * (1_u64 << PROBABILITY_BITS) as f64).round() as u64
}

/// Returns a number of packets in fixed point, with [`PACKET_BITS`] fractional bits.
fn fixed_packets(number: f64) -> u64 {
    (number * f64::from(1 << PACKET_BITS)) as u64
}

impl QdiscSettings {
    /// Returns the queue of the kernel that these settings are for.
    ///
    /// # Errors
    /// When the kernel has no such queue.
    pub fn kernel_queue(&self) -> Result<KernelQueue, ParameterError> {
        let queue = queue_of(&self.queue.aqm)?;
        let has_tsq = self.queue.tsq.is_some();
        if has_tsq == (queue == KernelQueue::Tsq) {
            Ok(queue)
        } else {
            Err(not_in_the_kernel(&self.queue.aqm))
        }
    }

    /// Returns the configuration for an interface whose packets are counted with `header` bytes of link header, and with a salt and a
    /// generation.
    ///
    /// # Errors
    /// When the kernel's queue cannot be set so. The error names the parameter and the allowed values.
    pub fn config(&self, header: Bytes, salt: u64, generation: u32) -> Result<QdiscConfig, ParameterError> {
        let rate = self.queue.rate;
        // The programs check the parameters of the queue that is not used, too.
        let law = LawLayout::None;
        let (tsq, sieve) = (tsq_layout(&TsqParams::default())?, sieve_layout(&SieveParams::default())?);
        let mut config = QdiscConfig {
            layout: LAYOUT,
            generation,
            link_bps: 0,
            shape_bps: 0,
            burst: ShaperParams::BURST.as_nanos(),
            limit_bytes: 0,
            limit_packets: 1,
            overhead: 0,
            least_bytes: 0,
            law: law.number(),
            salt,
            hints: [0; CODE_POINTS],
            tsq,
            law_parameters: law.parameters(),
            sieve,
        };
        let change = QdiscChange {
            rate: Some((rate, self.shaped)),
            aqm: Some(self.queue.aqm.clone()),
            tsq: self.queue.tsq,
            limit: Some(self.queue.limit),
            overhead: Some(self.overhead),
            hints: Some(self.hints.clone()),
        };
        change.apply(&mut config, self.kernel_queue()?, header)?;
        Ok(config)
    }

    /// Returns the number of sets of Sieve's table, those of its filters among them; `None` for TSQ.
    pub fn account_sets(&self) -> Option<u32> {
        match &self.queue.aqm {
            AqmSpec::Sieve(params) => Some(account_sets(params)),
            _ => None,
        }
    }
}

impl QdiscChange {
    /// Returns whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Changes a configuration of this queue. `header` is as for [`QdiscSettings::config`]. On an error the configuration may be changed in part.
    ///
    /// # Errors
    /// As [`QdiscSettings::config`], and when the change is to the other queue.
    pub fn apply(
        &self,
        config: &mut QdiscConfig,
        queue: KernelQueue,
        header: Bytes,
    ) -> Result<(), ParameterError> {
        if let Some((rate, shaped)) = self.rate {
            if !RATES.contains(&rate.as_bps()) {
                return Err(ParameterError::new("rate", rate, "1 kbit/s to 10 Tbit/s"));
            }
            config.link_bps = rate.as_bps();
            config.shape_bps = if shaped { rate.as_bps() } else { 0 };
        }
        let rate = Rate::from_bps(config.link_bps);
        if queue == KernelQueue::Sieve && rate > MOST_OF_SIEVE {
            return Err(ParameterError::new("rate", rate, format!("at most {MOST_OF_SIEVE} with Sieve")));
        }
        if let Some(aqm) = &self.aqm {
            if queue_of(aqm)? != queue {
                let allowed = "the same queue: TSQ and Sieve replace each other by `del` and `add`";
                return Err(ParameterError::new("aqm", aqm.name(), allowed));
            }
            if let AqmSpec::Sieve(params) = aqm {
                config.sieve = sieve_layout(params)?;
            } else {
                let law = law_layout(aqm, rate)?;
                config.law = law.number();
                config.law_parameters = law.parameters();
            }
        }
        if let Some(tsq) = &self.tsq {
            if queue != KernelQueue::Tsq {
                return Err(ParameterError::new("tsq", "", "nothing with Sieve: it orders packets itself"));
            }
            config.tsq = tsq_layout(tsq)?;
        }
        if let Some(limit) = self.limit {
            (config.limit_packets, config.limit_bytes) = limits(limit)?;
        }
        if let Some(overhead) = self.overhead {
            (config.overhead, config.least_bytes) = overheads(overhead, header)?;
        }
        if let Some(hints) = &self.hints {
            config.hints = levels(hints);
        }
        Ok(())
    }
}

/// Returns the queue that an AQM belongs to, whether or not TSQ is set.
fn queue_of(aqm: &AqmSpec) -> Result<KernelQueue, ParameterError> {
    match aqm {
        AqmSpec::Sieve(_) => Ok(KernelQueue::Sieve),
        AqmSpec::Pi(_)
        | AqmSpec::Pi2(_)
        | AqmSpec::RedWorcester(_)
        | AqmSpec::Ared(_)
        | AqmSpec::DropTail(_) => Ok(KernelQueue::Tsq),
        _ => Err(not_in_the_kernel(aqm)),
    }
}

fn not_in_the_kernel(aqm: &AqmSpec) -> ParameterError {
    const QUEUES: &str =
        "sieve without TSQ, or pi, pi2, red-worcester, ared or drop-tail with TSQ, in the kernel";
    ParameterError::new("aqm", aqm.name(), QUEUES)
}

fn law_layout(aqm: &AqmSpec, rate: Rate) -> Result<LawLayout, ParameterError> {
    match aqm {
        AqmSpec::Pi(params) => Ok(LawLayout::Pi(pi_layout(params))),
        AqmSpec::Pi2(params) => Ok(LawLayout::Pi2(pi2_layout(params)?)),
        AqmSpec::Ared(params) => red_layout(params, rate).map(LawLayout::RedWorcester),
        AqmSpec::RedWorcester(params) => red_worcester_layout(params, rate).map(LawLayout::RedWorcester),
        _ => Ok(LawLayout::None),
    }
}

fn tsq_layout(params: &TsqParams) -> Result<TsqLayout, ParameterError> {
    if params.bits > MOST_BITS {
        return Err(ParameterError::new("bits", params.bits, "1 to 4 in the kernel"));
    }
    if params.age_credit {
        let allowed = "false: the kernel does not know how long a packet has waited before";
        return Err(ParameterError::new("age-credit", true, allowed));
    }
    let root = params.max_ratio.map_or(0, |ratio| (ratio.sqrt() * f64::from(1 << RATIO_BITS)).ceil() as u64);
    Ok(TsqLayout { l: params.l.as_nanos(), ratio_root: root, bits: params.bits as u32, reserved: 0 })
}

fn sieve_layout(params: &SieveParams) -> Result<SieveLayout, ParameterError> {
    if params.key != Key::Flow {
        let allowed = "flow: the kernel's Sieve knows flows alone";
        return Err(ParameterError::new("key", params.key.name(), allowed));
    }
    if params.memory > MOST_MEMORY {
        let allowed = "at most 28,000,000 B in the kernel: room for a million flows";
        return Err(ParameterError::new("memory", params.memory, allowed));
    }
    Ok(SieveLayout {
        rtt: params.rtt.as_nanos(),
        tau: params.tau.as_nanos(),
        newcomer_age: params.newcomer_age.as_nanos(),
    })
}

fn account_sets(params: &SieveParams) -> u32 {
    let (sets, bytes) = SETS;
    sets_with_filters((params.memory * sets / bytes).max(1) as u32)
}

fn pi_layout(params: &PiParams) -> PiLayout {
    PiLayout {
        a: fixed_fraction(params.a),
        b: fixed_fraction(params.b),
        q_ref: fixed_packets(params.q_ref),
        period: Duration::from_secs_f64(1.0 / params.frequency).as_nanos(),
        mean_packet: params.mean_packet.unwrap_or_default() as u32,
        reserved: 0,
    }
}

fn pi2_layout(params: &Pi2Params) -> Result<Pi2Layout, ParameterError> {
    let Pi2Params { control, estimate, .. } = params;
    if *estimate != DelayEstimate::LinkRate {
        return Err(ParameterError::new("estimate", estimate.name(), "link-rate in the kernel"));
    }
    // Gains are per second there, and per nanosecond here.
    let gain = |per_second: f64| fixed_fraction(per_second * 1e-9);
    Ok(Pi2Layout {
        alpha: gain(control.alpha),
        beta: gain(control.beta),
        target: control.target.as_nanos(),
        t_update: control.t_update.as_nanos(),
    })
}

/// Returns Adaptive RED: RED-Worcester with a target that stays in the middle of the thresholds.
fn red_layout(params: &AredParams, rate: Rate) -> Result<Box<RedWorcesterLayout>, ParameterError> {
    let AredParams { red, adaptation } = params;
    let refuse = |name, value: &str, allowed| Err(ParameterError::new(name, value, allowed));
    if red.mode != RedMode::Packets {
        return refuse("mode", red.mode.name(), "packets in the kernel");
    }
    if red.variant != RedVariant::Papers {
        return refuse("variant", red.variant.name(), "papers in the kernel");
    }
    if red.spacing != Spacing::Uniform {
        return refuse("spacing", red.spacing.name(), "uniform in the kernel");
    }
    let Automatic { min_th, max_th, w_q } = red.automatic(rate);
    if max_th > MOST_THRESHOLD {
        let allowed = "at most 10,000,000 packets in the kernel, also where it is automatic";
        return Err(ParameterError::new("max-th", max_th, allowed));
    }
    Ok(Box::new(RedWorcesterLayout {
        min_th: fixed_packets(min_th),
        max_th: fixed_packets(max_th),
        max_p: fixed_fraction(red.max_p),
        w_q: fixed_fraction(w_q),
        ln_keep: fixed_fraction(-(-w_q).ln_1p()),
        w_t: 0,
        interval: adaptation.interval.as_nanos(),
        alpha: fixed_fraction(adaptation.alpha.unwrap_or_default()),
        beta: fixed_fraction(adaptation.beta),
        range: fixed_fraction(adaptation.range),
        floor: fixed_fraction(adaptation.floor),
        ceiling: fixed_fraction(adaptation.ceiling),
        mean_packet: red.mean_packet as u32,
        gentle: u32::from(red.gentle),
        delays: [0; LEVELS],
    }))
}

fn red_worcester_layout(
    params: &RedWorcesterParams,
    rate: Rate,
) -> Result<Box<RedWorcesterLayout>, ParameterError> {
    if params.largest_is_unmarked {
        return Err(ParameterError::new("largest-is-unmarked", true, "false in the kernel"));
    }
    let mut red = red_layout(&params.ared, rate)?;
    red.w_t = fixed_fraction(params.w_t);
    let delays = params.delays.unwrap_or_else(|| array::from_fn(|lane| params.step * (lane as u64 + 1)));
    red.delays = delays.map(Duration::as_nanos);
    Ok(red)
}

/// Returns the limit in packets and the limit in bytes, which is 0 for none.
fn limits(limit: Limit) -> Result<(u32, u64), ParameterError> {
    match limit {
        Limit::Packets(packets @ 1..=MOST_PACKETS) => Ok((packets, 0)),
        Limit::Bytes(bytes @ 1..) => {
            let packets = (bytes / LEAST_PACKET).clamp(1, MOST_PACKETS.into());
            Ok((packets as u32, bytes))
        }
        Limit::Packets(packets) => {
            Err(ParameterError::new("limit", format!("{packets} packets"), "1 to 1,000,000 packets"))
        }
        Limit::Bytes(_) => Err(ParameterError::new("limit", "0 B", "at least 1 B")),
    }
}

/// Returns the bytes that a link adds to a packet that the kernel counts with `header` bytes of link header, and the least bytes on the link.
fn overheads(overhead: Overhead, header: Bytes) -> Result<(i32, u32), ParameterError> {
    // The sizes of crates/core/router/src/overhead.rs, for a packet of the kernel: IEEE 802.3's shortest frame, the bytes around a frame, and its header.
    const SHORTEST: u32 = 60;
    const AROUND: i32 = 24;
    const ETHERNET: i32 = 14;
    let without_header = -(header.get() as i32);
    // An interface such as `ppp0` counts packets without the Ethernet header that they get on the link.
    let with_ethernet = without_header + ETHERNET;
    match overhead {
        Overhead::None => Ok((0, 0)),
        Overhead::Ip => Ok((without_header, 0)),
        Overhead::Ethernet => Ok((with_ethernet + AROUND, SHORTEST + AROUND as u32)),
        Overhead::Pppoe => Ok((with_ethernet + 8 + AROUND, SHORTEST + AROUND as u32)),
        Overhead::Docsis => Ok((without_header + 18, SHORTEST + 4)),
        Overhead::Added(bytes, Units::Bytes) => Ok((without_header + i32::from(bytes), 0)),
        Overhead::Ptm | Overhead::PppoePtm | Overhead::Pppoa | Overhead::PppoeAtm | Overhead::Added(..) => {
            Err(ParameterError::new(
                "overhead",
                overhead,
                "none, ip, ethernet, pppoe, docsis or a number of bytes: the kernel's queues count neither cells nor code blocks",
            ))
        }
    }
}

fn levels(hints: &HintTable) -> [u8; CODE_POINTS] {
    let largest = LEVELS as u16;
    let level = |hint: Hint| hint.level().min(largest) as u8;
    let mut levels = [largest as u8; CODE_POINTS];
    for dscp in cutline_units::Dscp::all() {
        levels[usize::from(dscp.get())] = level(hints.hint(dscp));
    }
    levels
}

/// Returns the usual limit of a queue ([`AqmSpec::usual_limit`]), at most that of a queue in the kernel.
pub fn default_limit(aqm: &AqmSpec, rate: Rate) -> Limit {
    Limit::Packets(aqm.usual_limit(rate).min(MOST_PACKETS))
}

/// Returns the usual memory of Sieve's flows, B: up to 100 Mbit/s, where a machine may have an interface for each of many subscribers, that of 672 flows, with
/// which the map takes 16 KiB of the kernel's memory; above that the default of the crate `aqm`.
pub fn default_sieve_memory(rate: Rate) -> u64 {
    const SUBSCRIBER: Rate = Rate::from_bps(100_000_000);
    const FLOWS: u64 = 18_500;
    if rate <= SUBSCRIBER { FLOWS } else { SieveParams::default().memory }
}

/// Returns the name of the queue of a configuration, such as `TSQ over pi2`, in the words of the router.
pub fn in_words(queue: KernelQueue, config: &QdiscConfig) -> &'static str {
    match queue {
        KernelQueue::Sieve => Sieve::<()>::NAME,
        KernelQueue::Tsq => match LawLayout::of(config) {
            Some(LawLayout::None) => "TSQ over drop-tail",
            Some(LawLayout::Pi(_)) => "TSQ over pi",
            Some(LawLayout::Pi2(_)) => "TSQ over pi2",
            Some(LawLayout::RedWorcester(red)) if red.w_t == 0 => "TSQ over ared",
            Some(LawLayout::RedWorcester(_)) => "TSQ over red-worcester",
            None => "TSQ over a law that this version does not know",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_params::ParameterValue;

    fn settings(aqm: &str, values: &[(&str, ParameterValue)], tsq: Option<TsqParams>) -> QdiscSettings {
        let aqm = AqmSpec::from_values(aqm, values.iter().cloned()).unwrap();
        let rate = Rate::from_mbps(10);
        let queue = QueueSpec { limit: Limit::Packets(800), ecn: false, aqm, tsq, rate };
        let (overhead, hints) = (Overhead::Ethernet, HintTable::standard());
        QdiscSettings { queue, shaped: true, overhead, hints, mq: false }
    }

    fn config(settings: &QdiscSettings) -> Result<QdiscConfig, String> {
        settings.config(Bytes::new(14), 9, 3).map_err(|error| error.to_string())
    }

    #[test]
    fn the_papers_pi_in_fixed_point() {
        let found = config(&settings("pi", &[], Some(TsqParams::default()))).unwrap();
        assert_eq!((found.link_bps, found.shape_bps, found.burst), (10_000_000, 10_000_000, 10_000_000));
        assert_eq!((found.limit_packets, found.limit_bytes, found.generation, found.salt), (800, 0, 3, 9));
        assert_eq!((found.overhead, found.least_bytes), (24, 84));
        assert_eq!((found.tsq.l, found.tsq.ratio_root, found.tsq.bits), (40_000_000, 0, 4));
        // EF, the default, and hint 3 of pool 2.
        assert_eq!((found.hints[46], found.hints[0], found.hints[11]), (6, 16, 3));
        let Some(LawLayout::Pi(pi)) = LawLayout::of(&found) else { panic!("{found:?}") };
        // The numbers of bpf/tests/vm.sh.
        assert_eq!((pi.period, pi.q_ref, pi.mean_packet), (5_882_353, 200 << 20, 0));
        assert!(
            pi.a.abs_diff(21_006_229_813_936) < 1000 && pi.b.abs_diff(20_937_054_523_660) < 1000,
            "{pi:?}"
        );
    }

    #[test]
    fn pi2_and_red_in_fixed_point() {
        let found = config(&settings("pi2", &[], Some(TsqParams::default()))).unwrap();
        let Some(LawLayout::Pi2(pi2)) = LawLayout::of(&found) else { panic!("{found:?}") };
        assert_eq!((pi2.target, pi2.t_update), (20_000_000, 32_000_000));
        assert!(pi2.alpha.abs_diff(360_287_970) <= 1 && pi2.beta.abs_diff(3_602_879_701) <= 1, "{pi2:?}");
        let thresholds = [("min-th", ParameterValue::Number(20.0)), ("max-th", ParameterValue::Number(80.0))];
        let found = config(&settings("red-worcester", &thresholds, Some(TsqParams::default()))).unwrap();
        let Some(LawLayout::RedWorcester(red)) = LawLayout::of(&found) else { panic!("{found:?}") };
        assert_eq!((red.min_th, red.max_th, red.gentle), (20 << 20, 80 << 20, 1));
        assert_eq!((red.delays[0], red.delays[15]), (5_000_000, 80_000_000));
        assert_eq!(red.w_t, fixed_fraction(0.02));
        let found = config(&settings("ared", &[], Some(TsqParams::default()))).unwrap();
        let Some(LawLayout::RedWorcester(red)) = LawLayout::of(&found) else { panic!("{found:?}") };
        // 10 Mbit/s are 1250 packets of 1000 B a second, and half of 5 ms of them is less than 5 packets.
        assert_eq!((red.min_th, red.max_th, red.w_t), (5 << 20, 15 << 20, 0));
    }

    #[test]
    fn sieve_needs_no_law() {
        let found = settings("sieve", &[("rtt", ParameterValue::Duration(Duration::from_millis(30)))], None);
        assert_eq!(found.kernel_queue(), Ok(KernelQueue::Sieve));
        // 298 sets of flows.
        assert_eq!(found.account_sets(), Some(350));
        // 84 sets of flows. All sets, of 160 B, and the map itself fit into 16 KiB.
        let memory = default_sieve_memory(Rate::from_mbps(100));
        let aqm = AqmSpec::Sieve(SieveParams { memory, ..SieveParams::default() });
        let queue = QueueSpec { aqm, ..found.queue.clone() };
        assert_eq!(QdiscSettings { queue, ..found.clone() }.account_sets(), Some(98));
        assert_eq!(default_sieve_memory(Rate::from_mbps(101)), 65_536);
        let config = config(&found).unwrap();
        assert_eq!((config.sieve.rtt, config.sieve.tau, config.law), (30_000_000, 150_000_000, 0));
        assert_eq!(in_words(KernelQueue::Sieve, &config), "sieve");
    }

    #[test]
    fn settings_that_the_kernel_lacks_are_refused_by_name() {
        let tsq = Some(TsqParams::default());
        let refused = |settings: QdiscSettings, words: &str| {
            let why = config(&settings).unwrap_err();
            assert!(why.contains(words), "{why}");
        };
        refused(settings("pie", &[], tsq), "pi2");
        refused(settings("pi", &[], None), "aqm");
        refused(settings("cake", &[], None), "sieve");
        refused(
            settings("pi2", &[("estimate", ParameterValue::Choice("timestamp".into()))], tsq),
            "link-rate",
        );
        refused(settings("pi", &[], Some(TsqParams { bits: 5, ..TsqParams::default() })), "1 to 4");
        refused(settings("ared", &[("mode", ParameterValue::Choice("bytes".into()))], tsq), "packets");
        // A second at 100 Gbit/s is 12.5 million packets of 1000 B: max-th is three halves of that.
        let second = ParameterValue::Duration(Duration::from_secs(1));
        let mut distant = settings("ared", &[("target-delay", second)], tsq);
        distant.queue.rate = Rate::from_bps(100_000_000_000);
        refused(distant, "max-th = 18750000");
        let mut too_fast = settings("sieve", &[], None);
        too_fast.queue.rate = Rate::from_bps(200_000_000_000);
        refused(too_fast, "Sieve");
        for limit in [Limit::Packets(0), Limit::Packets(MOST_PACKETS + 1), Limit::Bytes(0)] {
            let mut wrong = settings("pi", &[], tsq);
            wrong.queue.limit = limit;
            refused(wrong, "limit");
        }
        refused(settings("sieve", &[("memory", ParameterValue::Count(28_000_001))], None), "million flows");
        for overhead in [Overhead::Ptm, Overhead::Pppoa, Overhead::Added(10, Units::Cells)] {
            refused(QdiscSettings { overhead, ..settings("pi", &[], tsq) }, "overhead");
        }
    }

    #[test]
    fn overheads_are_those_of_the_router() {
        use cutline_wire::Headers;
        let frame = |length: usize| {
            let mut frame = vec![0_u8; length];
            frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
            frame[16..18].copy_from_slice(&(length as u16 - 14).to_be_bytes());
            frame
        };
        for overhead in [
            Overhead::None,
            Overhead::Ip,
            Overhead::Ethernet,
            Overhead::Docsis,
            Overhead::Added(18, Units::Bytes),
        ] {
            let (added, least) = overheads(overhead, Bytes::new(14)).unwrap();
            for length in [60, 200, 1514] {
                let headers = Headers::parse(&frame(length), 0);
                let size = (length as i32 + added).max(least as i32) as u32;
                assert_eq!(size, overhead.size(length as u32, &headers), "{overhead} {length}");
            }
        }
    }

    /// PPPoE that this host speaks: a packet of 1492 B on `ppp0` is a frame of 1514 B, and 24 B around it.
    #[test]
    fn an_interface_without_a_header_counts_that_of_the_link() {
        let found = |overhead, header| overheads(overhead, Bytes::new(header)).unwrap();
        assert_eq!([found(Overhead::Pppoe, 0), found(Overhead::Pppoe, 14)], [(46, 84), (32, 84)]);
        assert_eq!([found(Overhead::Ethernet, 0), found(Overhead::Ethernet, 14)], [(38, 84), (24, 84)]);
        assert_eq!([found(Overhead::None, 0), found(Overhead::Ip, 0)], [(0, 0), (0, 0)]);
        assert_eq!([found(Overhead::Docsis, 0), found(Overhead::Docsis, 14)], [(18, 64), (4, 64)]);
    }

    #[test]
    fn a_change_leaves_the_rest() {
        let before = config(&settings("pi", &[], Some(TsqParams::default()))).unwrap();
        let mut after = before.clone();
        let change = QdiscChange { rate: Some((Rate::from_mbps(4), true)), ..QdiscChange::default() };
        assert!(!change.is_empty() && QdiscChange::default().is_empty());
        change.apply(&mut after, KernelQueue::Tsq, Bytes::new(14)).unwrap();
        assert_eq!((after.link_bps, after.shape_bps), (4_000_000, 4_000_000));
        assert_eq!(QdiscConfig { link_bps: before.link_bps, shape_bps: before.shape_bps, ..after }, before);
        let sieve = settings("sieve", &[], None).queue.aqm;
        let other = QdiscChange { aqm: Some(sieve), ..QdiscChange::default() };
        let refused = other.apply(&mut before.clone(), KernelQueue::Tsq, Bytes::new(14)).unwrap_err();
        assert!(refused.to_string().contains("`del` and `add`"), "{refused}");
    }

    #[test]
    fn a_limit_in_bytes_has_slots_for_the_smallest_packets() {
        assert_eq!(limits(Limit::Bytes(64_000)), Ok((1000, 64_000)));
        assert_eq!(limits(Limit::Bytes(1)), Ok((1, 1)));
        assert_eq!(limits(Limit::Bytes(u64::MAX)), Ok((MOST_PACKETS, u64::MAX)));
        let fast = AqmSpec::from_values("sieve", []).unwrap();
        assert_eq!(default_limit(&fast, Rate::from_mbps(10)), Limit::Packets(1000));
        assert_eq!(default_limit(&fast, Rate::from_mbps(1000)), Limit::Packets(11_111));
    }
}
