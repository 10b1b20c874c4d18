//! Summary that the manager of a host sends to the others of a path.
//!
//! | bytes | field |
//! | --- | --- |
//! | 1 | version: 1 |
//! | 1 | order of lowering: 0 priority, 1 largest slack, 2 newest |
//! | 8 | the sending host |
//! | 8 | the path |
//! | 8 | number: higher than that of every earlier summary of this host |
//! | 8 | the coordinator whose directive the host follows |
//! | 8 | epoch of the directive |
//! | 4 | cutoff of the directive, in 2^-16 ranks |
//! | 1 | 1 if the following says how it is with this directive, 0 if reports for that are still missing |
//! | 4 | flows that report |
//! | 2 | the share of them that is disturbed, thousandths |
//! | 2 | the share whose last report shows a queue, thousandths |
//! | 4 | the median of these queues, us |
//! | 2 | the worst predicted headroom, in thousandths, plus 1000 |
//! | 2 | the predicted headroom that most flows have, likewise |
//! | 2 | ranks that have flows, a bit for each |
//! | 3 x 8 for each | rate delivered, sum of minima, sum of references, bit/s |
//!
//! All numbers are big-endian. Everything is a state and no change, so a lost summary does no harm. A summary is not
//! authenticated by itself: the owner sends it over a channel that proves the sending host, such as a datagram with a
//! tag of [`cutline_signal::authentication`], and passes that host to
//! [`PathFeedback::receive_from`](super::PathFeedback::receive_from). Numbers keep old summaries from being sent again
//! by others. A host that is authenticated and lies can lower all flows of the path to their minima, or keep them from
//! being lowered; it cannot go below a minimum, nor touch another path.

use super::cutoff::{Cutoff, Loads, RANKS, RankLoad};
use crate::resources::LoweringOrder;
use cutline_units::Duration;
use cutline_wire::{Reader, Writer};
use std::fmt;

/// A host with a manager. The one with the lowest number coordinates a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u64);

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A path: flows that share a bottleneck, such as those over one uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u64);

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Decision of a coordinator on how far flows are lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directive {
    /// The coordinator.
    pub coordinator: HostId,
    /// Number of the decision.
    pub epoch: u64,
    /// Ranks that are lowered.
    pub cutoff: Cutoff,
}

/// State of a host's flows on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostState {
    /// True if enough was reported since the directive holds.
    pub is_ready: bool,
    /// Flows that report.
    pub flows: u32,
    /// The share of them that is disturbed, averaged over users, 0 to 1.
    pub disturbed: f64,
    /// The share whose last report shows a queue, averaged over users, 0 to 1: a delay that exceeds the shortest one by a fifth of the room in the region.
    pub queued: f64,
    /// Median of these queues; on the wire in microseconds, at most 71 minutes.
    pub queue: Duration,
    /// The worst predicted headroom, -1 to 1.
    pub ahead: f64,
    /// The predicted headroom that most users have: all but half of [`FeedbackParams::corroboration`](super::FeedbackParams::corroboration),
    /// -1 to 1.
    pub ahead_of_most: f64,
    /// Loads by rank.
    pub loads: Loads,
}

/// A summary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathSummary {
    /// The order of lowering that the ranks follow.
    pub order: LoweringOrder,
    /// The sending host.
    pub host: HostId,
    /// The path.
    pub path: PathId,
    /// Higher than that of every earlier summary of this host.
    pub number: u64,
    /// The directive that the host follows; if it is the coordinator, its own.
    pub directive: Directive,
    /// State of its flows.
    pub state: HostState,
}

/// Reason why a summary is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SummaryError {
    /// Shorter or longer than its fields.
    #[error("length = {0} B: allowed is the length of the fields, at most {most} B", most = PathSummary::LONGEST)]
    Length(usize),
    /// A field has an impossible value.
    #[error("{field} = {value}: allowed is {allowed}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The allowed values.
        allowed: &'static str,
    },
    /// Of another path.
    #[error("path = {0}: allowed is the path of this object")]
    Path(PathId),
    /// Of a host that is none of the peers, or not the one that has sent it.
    #[error("host = {0}: allowed is the sending host, one of the peers")]
    Stranger(HostId),
    /// Not newer than an earlier one.
    #[error("number = {number}: allowed is more than {last}")]
    Stale {
        /// Its number.
        number: u64,
        /// The highest number of an earlier one.
        last: u64,
    },
}

const VERSION: u8 = 1;
const HEAD: usize = 65;
const ENTRY: usize = 24;
/// The highest rate in a summary, bit/s.
const MOST_BPS: u64 = 1 << 60;

impl PathSummary {
    /// The length of the longest summary, bytes.
    pub const LONGEST: usize = HEAD + ENTRY * RANKS;

    /// The summary as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::LONGEST];
        let mut to = Writer::new(&mut bytes);
        let Directive { coordinator, epoch, cutoff } = self.directive;
        let HostState { is_ready, flows, disturbed, queued, queue, ahead, ahead_of_most, loads } = self.state;
        let thousandths = |share: f64| (share * 1000.0).round() as u16;
        let headroom = |headroom: f64| thousandths(headroom.clamp(-1.0, 1.0) + 1.0);
        let order = match self.order {
            LoweringOrder::Priority => 0,
            LoweringOrder::LargestSlack => 1,
            LoweringOrder::Newest => 2,
        };
        to.u8(VERSION).u8(order).u64(self.host.0).u64(self.path.0).u64(self.number);
        to.u64(coordinator.0).u64(epoch).u32(cutoff.to_bits());
        to.u8(is_ready.into()).u32(flows);
        to.u16(thousandths(disturbed.clamp(0.0, 1.0))).u16(thousandths(queued.clamp(0.0, 1.0)));
        to.u32(u32::try_from(queue.as_nanos() / 1000).unwrap_or(u32::MAX));
        let filled = || loads.0.iter().enumerate().filter(|(_, load)| **load != RankLoad::default());
        let ranks = filled().fold(0_u16, |bits, (rank, _)| bits | 1 << rank);
        to.u16(headroom(ahead)).u16(headroom(ahead_of_most)).u16(ranks);
        for (_, RankLoad { used, minimum, reference }) in filled() {
            to.u64((*used).min(MOST_BPS)).u64((*minimum).min(MOST_BPS)).u64((*reference).min(MOST_BPS));
        }
        let length = to.length();
        bytes.truncate(length);
        bytes
    }

    /// The summary from bytes.
    ///
    /// # Errors
    /// When the length is wrong, or a field has an impossible value.
    pub fn decode(bytes: &[u8]) -> Result<Self, SummaryError> {
        let length = SummaryError::Length(bytes.len());
        let head = Head::read(&mut Reader::new(bytes)).ok_or(length)?;
        head.check()?;
        let mut from = Reader::new(&bytes[HEAD..]);
        let mut loads = Loads::default();
        for rank in (0..RANKS).filter(|rank| head.ranks & 1 << rank != 0) {
            loads.0[rank] = read_load(&mut from).ok_or(length)?;
            check_load(loads.0[rank])?;
        }
        if !from.is_at_end() {
            return Err(length);
        }
        let order = [LoweringOrder::Priority, LoweringOrder::LargestSlack, LoweringOrder::Newest]
            [usize::from(head.order)];
        let cutoff = Cutoff::from_bits(head.cutoff).expect("the head has been checked");
        Ok(Self {
            order,
            host: HostId(head.host),
            path: PathId(head.path),
            number: head.number,
            directive: Directive { coordinator: HostId(head.coordinator), epoch: head.epoch, cutoff },
            state: HostState {
                is_ready: head.is_ready == 1,
                flows: head.flows,
                disturbed: f64::from(head.disturbed) / 1000.0,
                queued: f64::from(head.queued) / 1000.0,
                queue: Duration::from_micros(head.queue.into()),
                ahead: f64::from(head.ahead) / 1000.0 - 1.0,
                ahead_of_most: f64::from(head.ahead_of_most) / 1000.0 - 1.0,
                loads,
            },
        })
    }
}

/// The fields before the loads, as they are on the wire.
struct Head {
    version: u8,
    order: u8,
    host: u64,
    path: u64,
    number: u64,
    coordinator: u64,
    epoch: u64,
    cutoff: u32,
    is_ready: u8,
    flows: u32,
    disturbed: u16,
    queued: u16,
    queue: u32,
    ahead: u16,
    ahead_of_most: u16,
    ranks: u16,
}

impl Head {
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            version: from.u8()?,
            order: from.u8()?,
            host: from.u64()?,
            path: from.u64()?,
            number: from.u64()?,
            coordinator: from.u64()?,
            epoch: from.u64()?,
            cutoff: from.u32()?,
            is_ready: from.u8()?,
            flows: from.u32()?,
            disturbed: from.u16()?,
            queued: from.u16()?,
            queue: from.u32()?,
            ahead: from.u16()?,
            ahead_of_most: from.u16()?,
            ranks: from.u16()?,
        })
    }

    fn check(&self) -> Result<(), SummaryError> {
        let checks = [
            (self.version == VERSION, "version", u64::from(self.version), "1"),
            (self.order <= 2, "order", u64::from(self.order), "0 to 2"),
            (
                Cutoff::from_bits(self.cutoff).is_some(),
                "cutoff",
                u64::from(self.cutoff),
                "0 to 2^20, which is 16 ranks",
            ),
            (self.is_ready <= 1, "ready", u64::from(self.is_ready), "0 or 1"),
            (self.disturbed <= 1000, "disturbed", u64::from(self.disturbed), "0 to 1000"),
            (self.queued <= 1000, "queued", u64::from(self.queued), "0 to 1000"),
            (self.ahead_of_most <= 2000, "headroom of most", u64::from(self.ahead_of_most), "0 to 2000"),
            (self.ahead <= 2000, "headroom", u64::from(self.ahead), "0 to 2000"),
        ];
        let wrong = checks.into_iter().find(|(is_right, ..)| !is_right);
        wrong.map_or(Ok(()), |(_, field, value, allowed)| Err(SummaryError::Field { field, value, allowed }))
    }
}

fn read_load(from: &mut Reader<'_>) -> Option<RankLoad> {
    Some(RankLoad { used: from.u64()?, minimum: from.u64()?, reference: from.u64()? })
}

fn check_load(load: RankLoad) -> Result<(), SummaryError> {
    let RankLoad { used, minimum, reference } = load;
    let field = |field, value, allowed| Err(SummaryError::Field { field, value, allowed });
    if used > MOST_BPS {
        return field("delivered rate", used, "0 to 2^60 bit/s");
    }
    if reference > MOST_BPS {
        return field("reference", reference, "0 to 2^60 bit/s");
    }
    if load == RankLoad::default() {
        return field("load of a rank", 0, "more than nothing");
    }
    if minimum > reference { field("minimum", minimum, "at most the reference") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_summary() -> impl Strategy<Value = PathSummary> {
        let load = (0..1_u64 << 40, 0..1_u64 << 40, 0..1_u64 << 40)
            .prop_map(|(used, minimum, more)| RankLoad { used, minimum, reference: minimum + more });
        let loads = prop::collection::vec(prop_oneof![Just(RankLoad::default()), load], RANKS);
        let order = prop_oneof![
            Just(LoweringOrder::Priority),
            Just(LoweringOrder::LargestSlack),
            Just(LoweringOrder::Newest)
        ];
        let state = (any::<bool>(), any::<u32>(), any::<u32>(), -1000_i32..=1000, loads, any::<u32>());
        let ids = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
        (order, ids, 0..=(RANKS as u32) << 16, state).prop_map(|(order, ids, cutoff, state)| PathSummary {
            order,
            host: HostId(ids.0),
            path: PathId(ids.1),
            number: ids.2,
            directive: Directive {
                coordinator: HostId(ids.3),
                epoch: ids.4,
                cutoff: Cutoff::from_bits(cutoff).unwrap(),
            },
            state: HostState {
                is_ready: state.0,
                flows: state.1,
                disturbed: f64::from(state.2 % 1001) / 1000.0,
                queued: f64::from(state.5 % 1001) / 1000.0,
                queue: Duration::from_micros(state.5.into()),
                ahead: f64::from(state.3 + 1000) / 1000.0 - 1.0,
                ahead_of_most: f64::from(1000 - state.3) / 1000.0 - 1.0,
                loads: Loads(state.4.try_into().unwrap()),
            },
        })
    }

    proptest! {
        #[test]
        fn a_summary_is_read_as_it_was_written(summary in any_summary(), cut in 0_usize..500) {
            let bytes = summary.encode();
            prop_assert!(bytes.len() <= PathSummary::LONGEST);
            prop_assert_eq!(PathSummary::decode(&bytes), Ok(summary));
            if cut < bytes.len() {
                prop_assert_eq!(PathSummary::decode(&bytes[..cut]), Err(SummaryError::Length(cut)));
            }
            let longer = [&bytes[..], &[0]].concat();
            prop_assert_eq!(PathSummary::decode(&longer), Err(SummaryError::Length(longer.len())));
        }

        /// Foreign bytes never panic, and accepted bytes are written as the same bytes.
        #[test]
        fn any_bytes_are_a_summary_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..500), version in 0_u8..3) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = version;
            }
            if let Ok(summary) = PathSummary::decode(&bytes) {
                prop_assert_eq!(summary.encode(), bytes);
            }
        }
    }

    #[test]
    fn impossible_fields_are_named() {
        let summary = PathSummary {
            order: LoweringOrder::Newest,
            host: HostId(1),
            path: PathId(2),
            number: 3,
            directive: Directive { coordinator: HostId(1), epoch: 4, cutoff: Cutoff::NONE },
            state: HostState { flows: 5, ..HostState::default() },
        };
        let good = summary.encode();
        assert_eq!(good.len(), HEAD);
        let changed = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            PathSummary::decode(&bytes).unwrap_err().to_string()
        };
        assert_eq!(changed(0, 2), "version = 2: allowed is 1");
        assert_eq!(changed(1, 3), "order = 3: allowed is 0 to 2");
        assert_eq!(changed(42, 1), "cutoff = 16777216: allowed is 0 to 2^20, which is 16 ranks");
        assert_eq!(changed(46, 9), "ready = 9: allowed is 0 or 1");
        assert_eq!(changed(51, 255), "disturbed = 65280: allowed is 0 to 1000");
        assert_eq!(changed(53, 255), "queued = 65280: allowed is 0 to 1000");
        assert_eq!(changed(59, 255), "headroom = 65512: allowed is 0 to 2000");
        assert_eq!(changed(61, 255), "headroom of most = 65512: allowed is 0 to 2000");
        assert_eq!(
            PathSummary::decode(&[]).unwrap_err().to_string(),
            "length = 0 B: allowed is the length of the fields, at most 449 B"
        );
    }
}
