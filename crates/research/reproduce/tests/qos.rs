//! The study of QoS sockets, from scenario to report, shortened.

use crate::common::{measured, measured_and_drawn, study};

#[test]
fn a_video_keeps_within_its_limits_and_a_plain_one_does_not() {
    let evaluation = measured_and_drawn(study("qos"), &[1]);
    assert!(measured(&evaluation, "qos-video.within") > 90.0);
    assert!(measured(&evaluation, "qos-video.within-plain") < 10.0);
    assert!(measured(&evaluation, "qos-video.lost") < 1.0);
    assert!((0.5..=2.5).contains(&measured(&evaluation, "qos-video.moves")));
    assert!((10.0..74.0).contains(&measured(&evaluation, "qos-video.returns")));
}

/// In half a minute no hint has moved for good, so the calls differ by little.
#[test]
fn calls_are_measured_at_every_load() {
    let evaluation = measured_and_drawn(study("qos"), &[2, 3]);
    assert_eq!(evaluation.claims.len(), 20);
    for claim in &evaluation.claims {
        assert!(claim.measured.unwrap().abs() < 0.1, "{claim:?}");
    }
}

#[test]
fn a_video_that_accepts_less_is_in_time_on_a_link_below_its_least_rate() {
    let evaluation = measured_and_drawn(study("qos"), &[5]);
    assert!((1.0..15.0).contains(&measured(&evaluation, "qos-below.weaker")));
    assert!(measured(&evaluation, "qos-below.in-time") > 70.0);
    assert!(measured(&evaluation, "qos-below.in-time-firm") < 10.0);
    assert!(measured(&evaluation, "qos-below.stays") > 105.0);
    assert!((20.0..112.0).contains(&measured(&evaluation, "qos-below.returns")));
}

/// In half a minute a share is further from its mean than the study's limits allow, but not the one without TFRC.
#[test]
fn datagrams_with_tfrc_leave_transfers_a_share() {
    let evaluation = measured_and_drawn(study("qos"), &[6]);
    assert!((0.2..=2.5).contains(&measured(&evaluation, "qos-fair.share")));
    assert!(measured(&evaluation, "qos-fair.agreed") > 3.0);
    assert!((0.2..=2.5).contains(&measured(&evaluation, "qos-fair.random")));
}
