//! Requests of managers, which the monitor passes to a publisher.

use serde::{Deserialize, Serialize};

/// Request for a socket of a process. The process carries it out if the socket's owner allows that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ManagerRequest {
    /// A weaker limit.
    Limit {
        /// Number of the socket.
        socket: u64,
        /// True for the direction in which the socket receives.
        receive: bool,
        /// Name of the measure.
        measure: String,
        /// The worst value that is acceptable from now on, in the measure's unit.
        worst: f64,
    },
    /// A new negotiation of the owner's first specification.
    Renegotiate {
        /// Number of the socket.
        socket: u64,
    },
}

impl ManagerRequest {
    /// Returns the number of the socket.
    pub const fn socket(&self) -> u64 {
        match self {
            Self::Limit { socket, .. } | Self::Renegotiate { socket } => *socket,
        }
    }

    /// Returns the request as a line, its end included.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("a request has text keys only") + "\n"
    }
}

/// Received bytes of a monitor, taken line by line.
#[derive(Debug, Default)]
pub struct RequestLines(Vec<u8>);

/// The longest line, bytes. Longer lines belong to a later version, and are skipped.
const LONGEST: usize = 4096;

impl RequestLines {
    /// Adds received bytes. Returns the complete requests, and skips lines that are not requests.
    pub fn add(&mut self, bytes: &[u8]) -> Vec<ManagerRequest> {
        self.0.extend_from_slice(bytes);
        let mut requests = Vec::new();
        while let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
            requests.extend(serde_json::from_slice(&self.0[..end]).ok());
            self.0.drain(..=end);
        }
        if self.0.len() > LONGEST {
            self.0.clear();
        }
        requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_in_any_pieces_and_others_are_skipped() {
        let limit = ManagerRequest::Limit { socket: 7, receive: true, measure: "delay".into(), worst: 120.5 };
        let again = ManagerRequest::Renegotiate { socket: 9 };
        let text = format!("{}nonsense\n{{\"later\":1}}\n{}", limit.line(), again.line());
        for piece in [1, 7, 1000] {
            let mut lines = RequestLines::default();
            let found: Vec<_> = text.as_bytes().chunks(piece).flat_map(|bytes| lines.add(bytes)).collect();
            assert_eq!(found, [limit.clone(), again.clone()], "{piece}");
        }
        let mut lines = RequestLines::default();
        assert!(lines.add(&[b'x'; 5000]).is_empty() && lines.0.is_empty());
    }
}
