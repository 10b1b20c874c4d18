//! Opens the connections and proves the paths of the flows that the receiver of a session sends.
//!
//! ```text
//! call    the end that requests the run: it opens the connections and sends the first datagrams
//! gather  the receiver of the session: it collects connections and proven addresses before the run
//! ```
//!
//! The end that requests the run may be behind a firewall or an address translator, so everything goes from its sockets to the
//! port of the traffic. A TCP connection begins with a preamble that names its flow. Datagrams need a proof that a host that knows
//! the session's token receives packets at their source address, because any host can write a foreign source
//! address into a datagram ([`crate::header::Proof`]):
//!
//! | from | to | datagram |
//! | --- | --- | --- |
//! | any socket of the peer's address | the receiver | `Call` with the token |
//! | the receiver | that socket | `Challenge` with a nonce |
//! | that socket | the receiver | `Answer` with the nonce |
//! | the receiver | that socket | `Accepted` |
//!
//! Datagrams from another address than that of the control connection, which TCP has verified, are ignored, and so are those
//! without the token. All have the same length, so nothing is amplified. The caller repeats unanswered messages.

mod call;
mod gather;

pub(crate) use call::{Called, call};
pub(crate) use gather::{Gathered, Gathering};
