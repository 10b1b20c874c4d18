//! Metrics: the counters, gauges and histograms of [records](cutline_records), in the text formats of Prometheus (version 0.0.4) and of
//! `OpenMetrics` (1.0).
//!
//! The name of a metric is a prefix and the names of the record's fields; its help is the field's meaning. Names have base units, as
//! Prometheus advises: a field `delay_ms` becomes `delay_seconds` with a thousandth of its value, `rate_bps` becomes
//! `rate_bytes_per_second` with an eighth, and `loss_percent` becomes `loss_ratio`. A counter in packets and bytes, as `sent`, is two metrics.
//!
//! ```
//! use cutline_openmetrics::{TextFormat, Metrics};
//! use cutline_records::record;
//!
//! record! {
//!     /// A queue.
//!     pub struct Queue {
//!         drops: u64, counter("packets"), "Packets dropped.";
//!         wait_ms: f64, gauge("ms"), "Waiting time of the last packet.";
//!     }
//! }
//!
//! let mut metrics = Metrics::new("demo");
//! metrics.add(&["queue"], &[("link", "eth0")], &Queue { drops: 3, wait_ms: 1.5 });
//! let text = metrics.text(TextFormat::Prometheus);
//! assert!(text.contains("demo_queue_drops_total{link=\"eth0\"} 3\n"));
//! assert!(text.contains("demo_queue_wait_seconds{link=\"eth0\"} 0.0015\n"));
//! ```
//!
//! ```text
//! base_unit  names and values in base units
//! metrics    metrics by name, and their text
//! ```

mod base_unit;
mod metrics;

pub use metrics::{Metrics, TextFormat};
