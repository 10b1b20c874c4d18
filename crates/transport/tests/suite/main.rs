//! The transports from outside: timelines beside the RFCs, properties over bad networks, known throughputs.

mod path;
mod properties;
mod recovery;
mod script;
mod sizes;
mod tfrc_timelines;
mod throughput;
mod timelines;
