//! Transports and applications as sans-IO state machines.
//!
//! Nothing here reads a clock, opens a socket or starts a thread. The input is segments, acknowledgements and the current
//! time; the output is segments, acknowledgements and the next deadline. The simulator, the laboratory's generators and the
//! `QoS` socket drive the same objects. Every sender has these methods:
//!
//! - `on_ack` or `on_feedback` handles arriving packets.
//! - `deadline` returns when `on_deadline` must be called, [`cutline_units::Instant::FAR_FUTURE`] if never.
//! - `on_deadline` handles the timer. An early call has no effect, so timers may be set lazily.
//! - `transmit` returns the next packet that may leave now. The caller calls it until it returns `None`.
//!
//! | module | contents | source |
//! | --- | --- | --- |
//! | [`tcp`] | `NewReno`, CUBIC, DCTCP, BBR, Prague, LEDBAT, SACK, pacing, ECN, delayed acknowledgements | see the module |
//! | [`tfrc`] | TCP-friendly rate control for media | RFC 5348 |
//! | [`nada`] | congestion control for interactive media, with a video encoder | RFC 8698 |
//! | [`udp`] | datagrams that leave when they are written | RFC 768 |
//! | [`abr`] | a source of ATM whose cell rate follows the indications of switches | ATM Forum af-tm-0056 |
//! | [`endpoint`] | one interface to all of them | |
//! | [`wire`] | the headers of those that a real network carries as datagrams | |
//! | [`LazyTimer`] | one pending timer event for a deadline that moves | |
//! | [`app`] | bulk, constant rate, on/off, files, web, talk spurts | named in each file |
//! | [`conformance`] | checks for applications and congestion controls of any crate | |
//!
//! Dispatch is static, and no packet allocates memory: headers are small `Copy` values. There are no addresses, ports,
//! checksums or handshakes. A connection exists from its first segment on.

#[macro_use]
mod list;

pub mod abr;
#[cfg(feature = "applications")]
pub mod app;
#[cfg(feature = "applications")]
pub mod conformance;
pub mod endpoint;
#[cfg(feature = "applications")]
mod error;
mod lazy_timer;
pub mod nada;
mod queue;
pub mod tcp;
pub mod tfrc;
pub mod udp;
pub mod wire;
mod write;

pub use lazy_timer::LazyTimer;
pub use write::Write;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
