//! The quantities whose distributions `distributions.parquet` has, each with its unit and meaning. Some have one value for each flow.

use cutline_records::Description;

/// All quantities, in the order of the documentation. The unit is the last word of the name where there is one.
pub static DISTRIBUTED_QUANTITIES: &[Description] = &[
    Description::new(["queuing_ms", "ms", "Queuing delay of packets."]),
    Description::new(["one_way_ms", "ms", "One-way delay of packets."]),
    Description::new(["ipdv_ms", "ms", "Delay variation between consecutive packets, absolute value."]),
    Description::new(["delay_ms", "ms", "Queuing delay at one queue, of the packets that departed."]),
    Description::new(["transfer_ms", "ms", "Time from a transfer's start to its end."]),
    Description::new(["transfer_short_ms", "ms", "As `transfer_ms`, of transfers of at most 100 KB."]),
    Description::new(["transfer_medium_ms", "ms", "As `transfer_ms`, above 100 KB and of at most 10 MB."]),
    Description::new(["transfer_long_ms", "ms", "As `transfer_ms`, above 10 MB."]),
    Description::new(["offered_bps", "bit/s", "Rate at which an application passed payload on."]),
    Description::new(["frames_shown_percent", "%", "Frames of a film that its viewer saw."]),
    Description::new(["ssim_ratio", "-", "Structural similarity of the viewer's film to the drawn one."]),
    Description::new(["psnr_db", "dB", "Peak signal-to-noise ratio of the viewer's film."]),
    Description::new([
        "longest_freeze_frames",
        "frames",
        "Longest run of frames that the viewer did not see.",
    ]),
    Description::new([
        "receiver_told_ms",
        "ms",
        "Time from the first late message to the violation at the receiver.",
    ]),
    Description::new([
        "sender_told_ms",
        "ms",
        "Time from the first late message to the violation at the sender.",
    ]),
    Description::new(["in_region_percent", "%", "Intervals of a flow inside its region of operation."]),
    Description::new(["decoders_percent", "%", "Processor time of the decoders, of one processor."]),
    Description::new([
        "flows_in_region_percent",
        "%",
        "Half seconds inside the regions of operation, of all flows of a path.",
    ]),
    Description::new([
        "lowered_per_hour",
        "1/h",
        "Number of times that the managers of a path lowered a flow.",
    ]),
    Description::new([
        "lost_sender_queue_percent",
        "%",
        "Blocks lost in a queue of the sender, of those written.",
    ]),
    Description::new(["lost_interface_percent", "%", "Blocks lost at the interface, of those written."]),
    Description::new([
        "lost_receive_buffer_percent",
        "%",
        "Blocks lost at the receive buffer, of those written.",
    ]),
    Description::new(["lost_path_percent", "%", "Blocks lost on the path, of those written."]),
    Description::new(["rtt_ms", "ms", "Round-trip time of a block, mean."]),
];

/// Returns the quantity with this name; `None` if no distribution has it.
pub fn distributed_quantity(name: &str) -> Option<&'static Description> {
    DISTRIBUTED_QUANTITIES.iter().find(|about| about.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Row;
    use crate::rows::{FlowRow, QueueRow};

    /// A measure is found by its name alone, in columns and in quantities.
    #[test]
    fn the_names_of_quantities_are_unique_and_those_of_no_column() {
        let columns = FlowRow::columns().into_iter().map(|column| column.about.name);
        let mut names: Vec<&str> =
            columns.chain(DISTRIBUTED_QUANTITIES.iter().map(|about| about.name)).collect();
        let of_queues: Vec<&str> = QueueRow::columns().iter().map(|column| column.about.name).collect();
        assert!(DISTRIBUTED_QUANTITIES.iter().all(|about| !of_queues.contains(&about.name)));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert_eq!(distributed_quantity("flows_in_region_percent").map(|about| about.unit), Some("%"));
        assert_eq!(distributed_quantity("q"), None);
    }
}
