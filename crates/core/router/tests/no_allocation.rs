//! A frame of a reserved flow allocates nothing once the class has held its largest backlog. A binary of its own, for its allocator.

use cutline_aqm::{Limit, QueueSpec};
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_router::{Overhead, Port, ReservationId, Shaper, ShaperParams};
use cutline_units::{Bytes, Duration, Instant, Rate, Streams};
use etherparse::PacketBuilder;
use std::convert::Infallible;

/// Takes everything.
struct Sink;

impl Port for Sink {
    type Error = Infallible;

    fn receive(&mut self, _: Instant, _: &mut dyn FnMut(Instant, &[u8])) -> Result<usize, Infallible> {
        Ok(0)
    }

    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &'_ [u8]>,
        each: &mut dyn FnMut(bool),
    ) -> Result<(), Infallible> {
        frames.for_each(|_| each(true));
        Ok(())
    }
}

#[test]
fn a_frame_of_a_reserved_flow_allocates_nothing() {
    let queue = QueueSpec::drop_tail(Limit::Packets(100), Rate::from_mbps(100));
    let params = ShaperParams { overhead: Overhead::Ip, reservations: 1000, ..ShaperParams::new(queue) };
    let mut shaper = Shaper::new(params, Streams::new(1).stream("router", "drop")).unwrap();
    let mut frames = Vec::new();
    for flow in 0..100_u8 {
        let filter = FlowSelector {
            destination: [10, 0, 1, 1].into(),
            protocol: Some(17),
            destination_port: Some(5),
            source: (flow % 2 == 0).then(|| [10, 0, 0, flow].into()),
            source_port: Some(1000 + u16::from(flow)),
            flow_label: None,
        };
        let bucket = TrafficSpec {
            rate: Rate::from_kbps(500),
            bucket: Bytes::new(3000),
            peak: TrafficSpec::UNKNOWN_PEAK,
            min_policed: Bytes::new(64),
            max_packet: Bytes::new(1500),
        };
        shaper.reserve(ReservationId { owner: 1, number: flow.into() }, bucket, &[filter]).unwrap();
        let mut frame = Vec::new();
        let packet = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, flow], [10, 0, 1, 1], 64);
        packet.udp(1000 + u16::from(flow), 5).write(&mut frame, &[7; 972]).unwrap();
        frames.push(frame);
    }
    let mut now = Instant::ZERO;
    let mut round = |shaper: &mut Shaper| {
        for frame in &frames {
            now += Duration::from_micros(70);
            shaper.receive(now, frame);
        }
        shaper.send(&mut Sink).unwrap();
    };
    (0..100).for_each(|_| round(&mut shaper));
    let had = shaper.stats().reserved;
    let allocations = allocation_counter::measure(|| (0..100).for_each(|_| round(&mut shaper)));
    let has = shaper.stats().reserved;
    assert!(
        has.conforming.packets > had.conforming.packets && has.excess.packets > had.excess.packets,
        "{has:?}"
    );
    assert_eq!(allocations.count_total, 0, "{allocations:?}");
}
