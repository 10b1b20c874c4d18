//! The messages between agents that are in transit, by the handles of their packets.

use crate::agent::AgentMessage;
use crate::calendar::EventHandle;
use std::collections::BTreeMap;

/// The messages in transit.
#[derive(Default)]
pub(crate) struct Messages {
    in_transit: BTreeMap<EventHandle, AgentMessage>,
    /// The message whose packet was dropped last, for the observation of its link.
    dropped: Option<(EventHandle, AgentMessage)>,
}

impl Messages {
    /// Adds the message that a packet carries.
    pub(crate) fn put(&mut self, handle: EventHandle, message: AgentMessage) {
        self.in_transit.insert(handle, message);
    }

    /// Removes and returns the message that has arrived; `None` if the handle is a timer's.
    pub(crate) fn take(&mut self, handle: EventHandle) -> Option<AgentMessage> {
        self.in_transit.remove(&handle)
    }

    /// Removes a message whose packet was dropped.
    pub(crate) fn drop_packet(&mut self, handle: EventHandle) {
        self.dropped = self.in_transit.remove(&handle).map(|message| (handle, message));
    }

    /// Returns a message in transit, or the one that was dropped last.
    pub(crate) fn get(&self, handle: EventHandle) -> &AgentMessage {
        let dropped =
            || self.dropped.as_ref().filter(|(other, _)| *other == handle).map(|(_, message)| message);
        self.in_transit.get(&handle).or_else(dropped).expect("a packet to an agent carries a message")
    }
}
