//! Tests of the public interface: timelines that follow the RFCs, properties over impaired paths, known throughputs.

mod paced;
mod path;
mod properties;
mod rack;
mod recovery;
mod script;
mod sizes;
mod tfrc_timelines;
mod throughput;
mod timelines;
