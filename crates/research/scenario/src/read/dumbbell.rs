//! Reads the dumbbell topology: `s1..sN - r1 = r2 - d1..dN`.

use super::graph::course;
use super::impairment;
use super::rate_trace::Course;
use crate::spec::DumbbellSpec;
use cutline_config::{TableReader, kind};
use cutline_sim::Impairments;
use cutline_tables::queue::{self, Named, QueueConfig};
use cutline_units::Duration;
use std::sync::Arc;

pub(super) fn read(
    reader: &TableReader<'_>,
    named: &Named,
    duration: Option<Duration>,
) -> Option<DumbbellSpec> {
    let rate = reader.required("rate", &kind::rate());
    let delay = reader.required("delay", &kind::duration());
    let access_rate = reader.required("access-rate", &kind::rate());
    let access_delay = reader.required("access-delay", &kind::duration());
    let queue = queue::required(reader, "queue", named);
    let reverse_queue = queue::optional(reader, "reverse-queue", named);
    let access_queue = queue::optional(reader, "access-queue", named);
    let Course { rate_changes, deliveries } = course(reader, duration);
    let impairments = Impairments {
        forward: impairment::read(reader, "impairment", delay),
        reverse: impairment::read(reader, "reverse-impairment", delay),
        access: impairment::read(reader, "access-impairment", access_delay),
    };
    let of_links = [
        ("impairment", &impairments.forward),
        ("reverse-impairment", &impairments.reverse),
        ("access-impairment", &impairments.access),
    ];
    for (key, impairment) in of_links {
        impairment::check_unit(reader, key, impairment.as_ref(), false);
    }
    let all = [("queue", &queue), ("reverse-queue", &reverse_queue), ("access-queue", &access_queue)];
    for (key, _) in
        all.iter().filter(|(_, queue)| queue.as_ref().is_some_and(|queue| queue.pass_on.is_some()))
    {
        reader.refuse(
            key,
            "pass-on-waiting needs several bottlenecks in a row, and a dumbbell has one: use [[node]] and [[link]]",
        );
    }
    reader.finish();
    let queue = queue?;
    let like_forward = || Arc::new(QueueConfig::drop_tail(queue.limit));
    Some(DumbbellSpec {
        rate: rate?,
        delay: delay?,
        access_rate: access_rate?,
        access_delay: access_delay?,
        reverse_queue: reverse_queue.unwrap_or_else(like_forward),
        access_queue: access_queue.unwrap_or_else(queue::default_queue),
        queue,
        rate_changes,
        deliveries,
        impairments: Box::new(impairments),
    })
}
