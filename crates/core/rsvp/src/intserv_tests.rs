//! Token buckets, flowspecs and AdSpecs.

use super::*;
use proptest::prelude::*;

fn tspec(rate: f32, bucket: f32, peak: f32, min_policed: u32, max_packet: u32) -> Tspec {
    Tspec { rate, bucket, peak, min_policed, max_packet }
}

/// RFC 2210 section 3.1: byte for byte.
#[test]
fn a_sender_tspec_is_seven_words_with_its_headers() {
    let content = tspec(1000.0, 1500.0, f32::INFINITY, 64, 1500).encode();
    let expected = [
        [0, 0, 0, 7],
        [1, 0, 0, 6],
        [127, 0, 0, 5],
        [0x44, 0x7a, 0, 0],
        [0x44, 0xbb, 0x80, 0],
        [0x7f, 0x80, 0, 0],
        [0, 0, 0, 64],
        [0, 0, 0x05, 0xdc],
    ];
    assert_eq!(content, expected.concat());
}

/// RFC 2210 sections 3.2.1 and 3.2.2.
#[test]
fn flowspecs_of_both_services_have_their_words() {
    let bucket = tspec(1.0, 2.0, 3.0, 4, 5);
    let controlled = Flowspec::ControlledLoad(bucket).encode();
    assert_eq!((controlled.len(), &controlled[..8]), (32, &[0, 0, 0, 7, 5, 0, 0, 6][..]));
    let guaranteed = Flowspec::Guaranteed(bucket, Rspec { rate: 1.0, slack_us: 9 }).encode();
    assert_eq!((guaranteed.len(), &guaranteed[..8]), (44, &[0, 0, 0, 10, 2, 0, 0, 9][..]));
    assert_eq!(guaranteed[32..], [130, 0, 0, 2, 0x3f, 0x80, 0, 0, 0, 0, 0, 9]);
}

/// RFC 2211 section 8: order, merging, sum and minimum.
#[test]
fn buckets_are_ordered_merged_and_added() {
    let (a, b) = (tspec(10.0, 100.0, 20.0, 64, 1500), tspec(5.0, 200.0, 30.0, 128, 1000));
    assert!(!a.covers(&b) && !b.covers(&a) && a.covers(&a));
    assert_eq!(a.merge(&b), tspec(10.0, 200.0, 30.0, 64, 1000));
    assert_eq!(a.sum(&b), tspec(15.0, 300.0, 50.0, 64, 1500));
    assert_eq!(a.min(&b), tspec(5.0, 200.0, 20.0, 64, 1000));
    let smaller = tspec(5.0, 50.0, 20.0, 64, 1500);
    assert_eq!((a.min(&smaller), smaller.min(&a)), (smaller, smaller));
    // RFC 2210 section 2.3.2: never more than the senders announce.
    assert_eq!(a.installed(&b), tspec(5.0, 100.0, 20.0, 64, 1000));
}

#[test]
fn services_are_not_merged_with_each_other() {
    let bucket = Tspec::new(1.0, 1.0);
    let rspec = |rate, slack_us| Rspec { rate, slack_us };
    let controlled = Flowspec::ControlledLoad(bucket);
    let guaranteed = |rate, slack| Flowspec::Guaranteed(bucket, rspec(rate, slack));
    assert_eq!(
        (controlled.merge(&guaranteed(1.0, 1)), controlled.covers(&guaranteed(1.0, 1))),
        (None, false)
    );
    assert_eq!(guaranteed(1.0, 1).merge(&guaranteed(2.0, 5)), Some(guaranteed(2.0, 1)));
    assert_eq!(guaranteed(1.0, 1).min(&guaranteed(2.0, 5)), Some(guaranteed(1.0, 5)));
}

#[test]
fn an_error_names_field_value_and_range() {
    let wrong = |tspec: Tspec| tspec.validate().unwrap_err().to_string();
    assert_eq!(wrong(Tspec::new(-1.0, 0.0)), "rate = -1: allowed is 0 to 40e12 bytes per second");
    assert_eq!(
        wrong(Tspec { min_policed: 0, ..Tspec::new(1.0, 1.0) }),
        "min_policed = 0: allowed is at least 1 byte"
    );
    for tspec in [
        Tspec::new(f32::NAN, 1.0),
        Tspec::new(1.0, f32::INFINITY),
        Tspec { max_packet: 63, ..Tspec::new(1.0, 1.0) },
    ] {
        assert!(tspec.validate().is_err() && Tspec::decode(&tspec.encode()).is_none(), "{tspec:?}");
    }
}

/// RFC 2215 section 3: sums, minima, and the break bits of RFC 2210 section 3.3.
#[test]
fn an_adspec_is_composed_at_each_hop() {
    let link = |bandwidth, latency_us, mtu| LinkCharacter { bandwidth, latency_us, mtu };
    let first = Adspec::new(9000).compose(&link(1e6, 300, 1500), false);
    let both = first.compose(&link(2e5, 200, 9000), false);
    assert_eq!((both.hops, both.bandwidth, both.latency_us, both.mtu), (2, 2e5, 500, 1500));
    assert_eq!(both.has_controlled_load(), Some(true));
    let gap = both.compose(&link(1e9, u32::MAX, 1400), true);
    assert!(gap.is_broken && gap.has_controlled_load() == Some(false));
    assert_eq!((gap.latency_us, gap.mtu), (u32::MAX, 1400));
}

/// RFC 2210 section 3.3: a service's own values are composed, those of other services are marked as broken.
#[test]
fn parts_of_services_are_composed_or_marked() {
    let mut bytes = Adspec::new(1500).encode();
    bytes.truncate(bytes.len() - 4);
    bytes.extend([2, 0, 0, 2, 133, 0, 0, 1, 0, 0, 0, 7]);
    bytes.extend([5, 0, 0, 4, 10, 0, 0, 1, 0, 0, 4, 0, 200, 0, 0, 1, 0, 0, 0, 1]);
    let words = (bytes.len() / 4 - 1) as u8;
    bytes[3] = words;
    let adspec = Adspec::decode(&bytes).unwrap();
    assert_eq!(adspec.encode(), bytes);
    let composed =
        adspec.compose(&LinkCharacter { bandwidth: 1.0, latency_us: 1, mtu: 1000 }, false).encode();
    let parts = &composed[composed.len() - 32..];
    assert_eq!(parts[..4], [2, 0x80, 0, 2]);
    assert_eq!(parts[12..], [5, 0, 0, 4, 10, 0, 0, 1, 0, 0, 3, 0xe8, 200, 0x80, 0, 1, 0, 0, 0, 1]);
}

fn any_tspec() -> impl Strategy<Value = Tspec> {
    (0.0_f32..1e9, 0.0_f32..1e9, 0.0_f32..1e9, 1_u32..2000, 0_u32..2000)
        .prop_map(|(rate, bucket, peak, unit, more)| tspec(rate, bucket, peak, unit, unit + more))
}

proptest! {
    #[test]
    fn tspecs_and_flowspecs_are_read_as_they_were_written(bucket in any_tspec(), rate in 0.0_f32..1e9, slack_us: u32) {
        prop_assert_eq!(Tspec::decode(&bucket.encode()), Some(bucket));
        for flowspec in [Flowspec::ControlledLoad(bucket), Flowspec::Guaranteed(bucket, Rspec { rate, slack_us })] {
            prop_assert_eq!(Flowspec::decode(&flowspec.encode()), Some(flowspec));
        }
    }

    /// A merged bucket has room for the rate of either, and merging knows no order.
    #[test]
    fn a_merged_bucket_has_room_for_both(a in any_tspec(), b in any_tspec()) {
        let merged = a.merge(&b);
        prop_assert_eq!(merged, b.merge(&a));
        for one in [a, b] {
            let same_size = Tspec { max_packet: one.max_packet, ..merged };
            prop_assert!(same_size.covers(&one));
        }
        prop_assert_eq!(a.min(&b), b.min(&a));
    }

    #[test]
    fn foreign_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = (Tspec::decode(&bytes), Flowspec::decode(&bytes));
        if let Some(adspec) = Adspec::decode(&bytes) {
            let _ = adspec.compose(&LinkCharacter { bandwidth: 1.0, latency_us: 1, mtu: 1 }, true).encode();
        }
    }
}

#[test]
fn whole_bits_and_bytes_are_rounded_up() {
    let traffic = tspec(1000.1, 10.5, f32::INFINITY, 40, 1500).traffic();
    assert_eq!((traffic.rate, traffic.bucket), (Rate::from_bps(8001), Bytes::new(11)));
    assert_eq!(traffic.peak, TrafficSpec::UNKNOWN_PEAK);
    assert_eq!((traffic.min_policed, traffic.max_packet), (Bytes::new(40), Bytes::new(1500)));
}

/// A bucket of any message has values that routers and traffic control accept.
#[test]
fn every_bucket_can_be_installed() {
    let largest = tspec(f32::MAX, f32::MAX, f32::MAX, u32::MAX, u32::MAX);
    let least = tspec(0.0, 0.0, 0.0, 0, 0);
    for tspec in [largest, least, tspec(1e3, 10.0, 1e3, 1500, 1500)] {
        tspec.traffic().installable().check().unwrap_or_else(|error| panic!("{tspec:?}: {error}"));
    }
}

/// The largest values become the largest ones of a message, which are valid.
#[test]
fn the_largest_traffic_is_a_valid_bucket() {
    let traffic = TrafficSpec {
        rate: TrafficSpec::MAX_RATE,
        bucket: TrafficSpec::MAX_BUCKET,
        peak: TrafficSpec::UNKNOWN_PEAK,
        min_policed: TrafficSpec::MAX_PACKET,
        max_packet: TrafficSpec::MAX_PACKET,
    };
    let tspec = Tspec::from(traffic);
    tspec.validate().unwrap();
    assert_eq!((tspec.rate, tspec.bucket, tspec.peak), (MOST_RATE, MOST_BUCKET, f32::INFINITY));
}

proptest! {
    /// A message requests no less than the application does, and no less is installed for it.
    #[test]
    fn no_conversion_makes_a_reservation_smaller(
        bps in 8..TrafficSpec::MAX_RATE.as_bps() / 2,
        peak in 8..TrafficSpec::MAX_RATE.as_bps() / 2,
        bucket in 1..TrafficSpec::MAX_BUCKET.get() / 2,
    ) {
        let [min_policed, max_packet] = [64, 1500].map(Bytes::new);
        let [rate, peak] = [bps, peak].map(Rate::from_bps);
        let traffic = TrafficSpec { rate, bucket: Bytes::new(bucket), peak, min_policed, max_packet };
        let tspec = Tspec::from(traffic);
        prop_assert!(tspec.validate().is_ok(), "{tspec:?}");
        let back = tspec.traffic();
        prop_assert!(back.rate >= traffic.rate && back.bucket >= traffic.bucket && back.peak >= traffic.peak);
        prop_assert_eq!(Tspec::from(back), tspec);
    }
}
