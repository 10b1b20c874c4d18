//! Messages of a master agent (AgentX): a name has no more arcs than are allowed, and ranges are made of the payload alone.

use cutline_snmp::agentx::{AgentxHeader, AgentxRequest, HEADER};

/// The longest name, arcs: those of a message, behind a prefix of five.
const LONGEST_NAME: usize = 128 + 5;

pub fn parse(bytes: &[u8]) -> bool {
    let Some((head, payload)) = bytes.split_first_chunk::<HEADER>() else { return false };
    let Ok(header) = AgentxHeader::parse(*head) else { return false };
    let payload = &payload[..payload.len().min(header.length)];
    let Ok(request) = AgentxRequest::parse(&header, payload) else { return false };
    let ranges = match &request {
        AgentxRequest::Get(ranges)
        | AgentxRequest::GetNext(ranges)
        | AgentxRequest::GetBulk { ranges, .. } => ranges.as_slice(),
        _ => &[],
    };
    // A range has two names, of four bytes each at least.
    assert!(ranges.len() * 8 <= payload.len(), "{ranges:?}");
    let is_short = |name: &[u32]| name.len() <= LONGEST_NAME;
    assert!(ranges.iter().all(|range| is_short(&range.from) && is_short(&range.to)), "{ranges:?}");
    true
}
