//! The transports from outside: timelines beside the RFCs, properties over bad networks, known throughputs.

mod path;
mod recovery;
mod script;
mod throughput;
mod timelines;
