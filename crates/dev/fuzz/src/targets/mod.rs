//! All targets, in a table.

mod agentx;
mod allocation_request;
mod baseline_table;
mod control_messages;
mod cutlined_request;
mod direct_frames;
mod folder;
mod frame_headers;
mod http_request;
mod manager_request;
mod negotiation;
mod path_summary;
mod program_file;
mod program_marks;
mod publication;
mod recorded_trace;
mod report;
mod result_summary;
mod result_tables;
mod router_reply;
mod router_request;
mod router_reservation;
mod rsvp;
mod scenario_files;
mod session;
mod snmp_message;
mod specification;
mod toml_files;
mod traffic_headers;
mod traffic_stream;

use crate::Memory;

/// A parser of foreign bytes, and the function that tries it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is also that of its corpus.
    pub name: &'static str,
    /// Gives bytes to the parser and returns whether it accepted them. Panics if the parser breaks a promise.
    pub(crate) parse: fn(&[u8]) -> bool,
    /// Files of the project that are inputs besides the corpus: folders, and the endings of the files' names.
    pub(crate) seeds: &'static [(&'static str, &'static str)],
    /// The longest input that is made, bytes.
    pub longest: usize,
    /// Number of inputs that `cargo test` makes: half a second's worth in a test build, or less.
    pub tries: u64,
    /// The memory that it may hold.
    pub(crate) memory: Memory,
}

/// The memory of a parser that copies little.
const LITTLE: Memory = Memory { fixed: 64 << 10, per_byte: 64 };
/// Memory of a parser that makes a tree with places, or rows, of its input.
const TREE: Memory = Memory { fixed: 4 << 20, per_byte: 4 << 10 };

/// Memory of a parser that generates a graph of up to 16,384 hosts, and copies it.
const GRAPH: Memory = Memory { fixed: 256 << 20, per_byte: 4 << 10 };

/// Memory of reassemblies of frames: the buffers of a few of the longest messages, and their frames.
const REASSEMBLY: Memory = Memory { fixed: 2 << 20, per_byte: 256 };

/// The targets in the order of their names.
const TARGETS: [Target; 35] = [
    Target { name: "agentx", parse: agentx::parse, seeds: &[], longest: 1024, tries: 38_000, memory: LITTLE },
    Target {
        name: "allocation-request",
        parse: allocation_request::parse,
        seeds: &[],
        longest: 1024,
        tries: 12_000,
        memory: LITTLE,
    },
    Target {
        name: "baseline-table",
        parse: baseline_table::parse,
        seeds: &[],
        longest: 8192,
        tries: 1_900,
        memory: TREE,
    },
    Target {
        name: "control-reply",
        parse: control_messages::reply,
        seeds: &[],
        longest: 4096,
        tries: 12_000,
        memory: TREE,
    },
    Target {
        name: "control-request",
        parse: control_messages::request,
        seeds: &[],
        longest: 512,
        tries: 38_000,
        memory: LITTLE,
    },
    Target {
        name: "cutlined-request",
        parse: cutlined_request::parse,
        seeds: &[],
        longest: 1024,
        tries: 12_000,
        memory: LITTLE,
    },
    Target {
        name: "direct-frames",
        parse: direct_frames::parse,
        seeds: &[],
        longest: 1024,
        tries: 25_000,
        memory: REASSEMBLY,
    },
    Target {
        name: "flows-file",
        parse: toml_files::flows,
        seeds: &[],
        longest: 4096,
        tries: 1_200,
        memory: TREE,
    },
    Target {
        name: "frame-headers",
        parse: frame_headers::parse,
        seeds: &[],
        longest: 256,
        tries: 62_000,
        memory: LITTLE,
    },
    Target {
        name: "graph-file",
        parse: scenario_files::graph,
        seeds: &[],
        longest: 8192,
        tries: 1_900,
        memory: TREE,
    },
    Target {
        name: "http-request",
        parse: http_request::parse,
        seeds: &[],
        longest: 1024,
        tries: 380,
        memory: TREE,
    },
    Target {
        name: "manager-request",
        parse: manager_request::parse,
        seeds: &[],
        longest: 512,
        tries: 25_000,
        memory: LITTLE,
    },
    Target {
        name: "negotiation",
        parse: negotiation::parse,
        seeds: &[],
        longest: 256,
        tries: 12_000,
        memory: LITTLE,
    },
    Target {
        name: "path-summary",
        parse: path_summary::parse,
        seeds: &[],
        longest: 900,
        tries: 3_800,
        memory: LITTLE,
    },
    Target {
        name: "program-file",
        parse: program_file::parse,
        seeds: &[],
        longest: 1024,
        tries: 25_000,
        memory: LITTLE,
    },
    Target {
        name: "program-marks",
        parse: program_marks::parse,
        seeds: &[],
        longest: 256,
        tries: 62_000,
        memory: LITTLE,
    },
    Target {
        name: "publication",
        parse: publication::parse,
        seeds: &[],
        longest: 8192,
        tries: 120,
        memory: TREE,
    },
    Target {
        name: "recorded-trace",
        parse: recorded_trace::parse,
        seeds: &[],
        longest: 1024,
        tries: 25_000,
        memory: LITTLE,
    },
    Target { name: "report", parse: report::parse, seeds: &[], longest: 1024, tries: 19_000, memory: LITTLE },
    Target {
        name: "result-summary",
        parse: result_summary::parse,
        seeds: &[],
        longest: 8192,
        tries: 2_500,
        memory: TREE,
    },
    Target {
        name: "result-tables",
        parse: result_tables::parse,
        seeds: &[],
        longest: 1 << 16,
        tries: 500,
        memory: TREE,
    },
    Target {
        name: "router-file",
        parse: toml_files::router,
        seeds: &[("packaging", ".toml")],
        longest: 4096,
        tries: 1_900,
        memory: TREE,
    },
    Target {
        name: "router-reply",
        parse: router_reply::parse,
        seeds: &[],
        longest: 8192,
        tries: 2_500,
        memory: TREE,
    },
    Target {
        name: "router-request",
        parse: router_request::parse,
        seeds: &[],
        longest: 64,
        tries: 38_000,
        memory: LITTLE,
    },
    Target {
        name: "router-reservation",
        parse: router_reservation::parse,
        seeds: &[],
        longest: 4096,
        tries: 3_800,
        memory: TREE,
    },
    Target { name: "rsvp", parse: rsvp::parse, seeds: &[], longest: 512, tries: 1_000, memory: TREE },
    Target {
        name: "scenario",
        parse: toml_files::scenario,
        seeds: &[
            ("examples", ".toml"),
            ("experiments", ".toml"),
            ("crates/research/scenario/tests/broken", ".toml"),
        ],
        longest: 8192,
        tries: 500,
        memory: GRAPH,
    },
    Target {
        name: "scenario-settings",
        parse: toml_files::settings,
        seeds: &[],
        longest: 512,
        tries: 620,
        memory: TREE,
    },
    Target {
        name: "session",
        parse: session::parse,
        seeds: &[],
        longest: 1024,
        tries: 3_800,
        memory: Memory { fixed: 1 << 20, per_byte: 256 },
    },
    Target {
        name: "size-table",
        parse: scenario_files::sizes,
        seeds: &[("examples", ".cdf")],
        longest: 2048,
        tries: 6_200,
        memory: LITTLE,
    },
    Target {
        name: "snmp-message",
        parse: snmp_message::parse,
        seeds: &[],
        longest: 512,
        tries: 3_800,
        memory: TREE,
    },
    Target {
        name: "specification",
        parse: specification::toml,
        seeds: &[("examples/specifications", ".toml")],
        longest: 2048,
        tries: 1_200,
        memory: TREE,
    },
    Target {
        name: "specification-json",
        parse: specification::json,
        seeds: &[("examples/specifications", ".json")],
        longest: 2048,
        tries: 1_200,
        memory: TREE,
    },
    Target {
        name: "traffic-headers",
        parse: traffic_headers::parse,
        seeds: &[],
        longest: 128,
        tries: 62_000,
        memory: LITTLE,
    },
    Target {
        name: "traffic-stream",
        parse: traffic_stream::parse,
        seeds: &[],
        longest: 512,
        tries: 25_000,
        memory: LITTLE,
    },
];

/// All targets, in the order of their names.
pub const fn all() -> &'static [Target] {
    &TARGETS
}

/// The target of this name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        assert!(TARGETS.is_sorted_by(|one, next| one.name < next.name));
    }
}
