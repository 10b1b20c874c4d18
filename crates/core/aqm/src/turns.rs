//! Round robin of the flows of a fair queue: deficit round robin with new flows first (DRR++).
//!
//! Source: RFC 8290 sections 4.1 and 4.2. A flow that was empty joins the new flows with a full quantum. A flow that is out of credit
//! gets a quantum more and goes to the end of the old flows. A new flow that is found empty goes there, too, so that it cannot be
//! new again at once; an old one leaves.

use std::collections::VecDeque;

/// One flow in the turns.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// Bytes that the flow may still send.
    credit: i64,
    /// True if the flow is in the list of new or of old flows.
    queued: bool,
}

/// The turns of a number of flows.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    quantum: i64,
    /// True if an empty new flow leaves when there is no old one (Linux).
    renew_lone_flow: bool,
    flows: Vec<Turn>,
    pub(crate) new: VecDeque<u32>,
    pub(crate) old: VecDeque<u32>,
}

/// The flow whose turn it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    pub(crate) flow: u32,
    is_new: bool,
}

impl Turns {
    pub(crate) fn new(flows: usize, quantum: u64, renew_lone_flow: bool) -> Self {
        Self {
            quantum: quantum as i64,
            renew_lone_flow,
            flows: vec![Turn::default(); flows],
            new: VecDeque::with_capacity(flows),
            old: VecDeque::with_capacity(flows),
        }
    }

    /// A packet of a flow has been stored.
    #[inline]
    pub(crate) fn arrived(&mut self, flow: usize) {
        let turn = &mut self.flows[flow];
        if !turn.queued {
            *turn = Turn { credit: self.quantum, queued: true };
            self.new.push_back(flow as u32);
        }
    }

    /// Returns the next flow; `None` if none is backlogged.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Next> {
        loop {
            let is_new = !self.new.is_empty();
            let flows = if is_new { &mut self.new } else { &mut self.old };
            let flow = *flows.front()?;
            let turn = &mut self.flows[flow as usize];
            if turn.credit > 0 {
                return Some(Next { flow, is_new });
            }
            turn.credit += self.quantum;
            flows.pop_front();
            self.old.push_back(flow);
        }
    }

    /// The flow whose turn it is has sent a packet of this size.
    #[inline]
    pub(crate) fn sent(&mut self, next: Next, size: u32) {
        self.flows[next.flow as usize].credit -= i64::from(size);
    }

    /// The flow whose turn it is has nothing to send.
    pub(crate) fn was_empty(&mut self, next: Next) {
        let stays = next.is_new && !(self.renew_lone_flow && self.old.is_empty());
        let flows = if next.is_new { &mut self.new } else { &mut self.old };
        flows.pop_front();
        if stays {
            self.old.push_back(next.flow);
        } else {
            self.flows[next.flow as usize].queued = false;
        }
    }

    pub(crate) fn reset(&mut self) {
        self.flows.fill(Turn::default());
        self.new.clear();
        self.old.clear();
    }
}
