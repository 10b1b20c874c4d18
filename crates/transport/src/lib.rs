//! Transports and applications as sans-IO state machines.
//!
//! Nothing here reads a clock, opens a socket or keeps a thread: segments, acknowledgements and `now` come in,
//! segments, acknowledgements and the next deadline go out. The simulator, the laboratory's generators and the
//! `QoS` socket drive the very same objects. Every sender has the same four questions:
//!
//! - `on_ack` / `on_feedback`: what the network brought;
//! - `deadline`: when it next wants to be woken, [`cutline_units::Instant::FAR_FUTURE`] if never;
//! - `on_deadline`: it is that late now (calling it early does no harm, so timers may be re-armed lazily);
//! - `transmit`: the next packet that may leave now, asked until it answers `None`.
//!
//! | module | what | source |
//! | --- | --- | --- |
//! | [`tcp`] | `NewReno`, SACK, CUBIC, ECN, delayed acknowledgements | RFC 5681, 6582, 6298, 6675, 9438, 3168 |
//! | [`tfrc`] | TCP-friendly rate control for media | RFC 5348 |
//! | [`udp`] | datagrams that leave as they are written | RFC 768 |
//! | [`endpoint`] | all of them behind one face | |
//! | [`wire`] | the headers of those that go over a real network as datagrams | |
//! | [`LazyTimer`] | one pending wake-up for a deadline that moves | |
//! | [`app`] | bulk, constant rate, on/off, files, web, talk spurts | named in each file |
//! | [`conformance`] | checks for applications and congestion controls of any crate | |
//!
//! Dispatch is static and no packet allocates: headers are small `Copy` values. What is absent: addresses,
//! ports, checksums, handshakes. A connection exists from its first segment on.

#[macro_use]
mod list;

pub mod app;
pub mod conformance;
pub mod endpoint;
mod error;
mod lazy_timer;
mod queue;
pub mod tcp;
pub mod tfrc;
pub mod udp;
pub mod wire;

pub use lazy_timer::LazyTimer;
