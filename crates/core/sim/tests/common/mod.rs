//! The papers' dumbbell, small and quick to set up.

#![allow(dead_code, reason = "each test binary uses a part")]

use cutline_aqm::{AqmSpec, Limit, QueueSpec, TsqParams, pi};
use cutline_sim::{AdaptiveHint, Deliveries, Distributions, Dumbbell, FlowSpec, Impairments, Network};
use cutline_transport::endpoint::TransportParams;
use cutline_transport::{app, tcp, tfrc};
use cutline_units::{Bytes, Duration, Hint, Instant, Rate};
use std::sync::Arc;

/// A dumbbell and its flows.
#[derive(Clone)]
pub struct Plan {
    pub flows: Vec<(TransportParams, app::Params, Hint)>,
    pub access_queue_packets: u32,
    pub serve_every_link: bool,
    /// TSQ over the AQM instead of the AQM alone.
    pub tsq: bool,
    /// Another AQM than PI.
    pub aqm: Option<AqmSpec>,
    pub rate: Rate,
    pub rate_changes: Vec<(Instant, Rate)>,
    /// The record of deliveries that the bottleneck follows in place of its rate.
    pub deliveries: Option<Arc<Deliveries>>,
    pub impairments: Impairments,
    /// Time at which applications stop writing.
    pub stop: Instant,
    /// The records of delays.
    pub distributions: Distributions,
    /// Adaptation of the hints of the TFRC flows; these then keep their series.
    pub adaptive: Option<AdaptiveHint>,
}

/// Bulk transfers over TCP NewReno, without hint.
pub fn bulk(count: usize) -> Vec<(TransportParams, app::Params, Hint)> {
    let params = tcp::Params { mss: 1000, header_bytes: 0, ..tcp::Params::default() };
    vec![(TransportParams::Tcp(Arc::new(params)), app::Params::BULK, Hint::from_level(16)); count]
}

/// The paper's TCP-friendly audio source.
pub fn audio(hint: u16) -> (TransportParams, app::Params, Hint) {
    let cbr = app::CbrParams::new(Rate::from_kbps(128), Bytes::new(1000));
    let params = tfrc::Params { header_bytes: 0, ..tfrc::Params::default() };
    (TransportParams::Tfrc(Arc::new(params)), app::Params::Cbr(cbr), Hint::from_level(hint))
}

impl Plan {
    /// TSQ section 4.1 with bulk transfers: 15 Mbit/s, 150 ms one way, TSQ over PI.
    pub fn paper(flows: usize) -> Self {
        Self {
            flows: bulk(flows),
            access_queue_packets: 1000,
            serve_every_link: false,
            tsq: true,
            aqm: None,
            rate: Rate::from_mbps(15),
            rate_changes: Vec::new(),
            deliveries: None,
            impairments: Impairments::default(),
            stop: Instant::FAR_FUTURE,
            distributions: if flows > 1000 { Distributions::PerGroup } else { Distributions::PerFlow },
            adaptive: None,
        }
    }

    /// The same with 150 kbit/s for every flow, however many there are.
    pub fn scaled(flows: usize) -> Self {
        Self { rate: Rate::from_kbps(150 * flows as u64), ..Self::paper(flows) }
    }

    pub fn network(&self) -> Network {
        let (rate, access_rate) = (self.rate, Rate::from_mbps(50));
        let scale = self.rate.as_bps() as f64 / 15e6;
        let limit = (800.0 * scale) as u32;
        let drop_tail = |packets, rate| QueueSpec::drop_tail(Limit::Packets(packets), rate);
        let dumbbell = Dumbbell {
            rate,
            delay: Duration::from_millis(50),
            access_rate,
            access_delay: Duration::from_millis(50),
            queue: QueueSpec {
                aqm: self.aqm.clone().unwrap_or_else(|| AqmSpec::Pi(pi_for(scale))),
                tsq: self.tsq.then(TsqParams::default),
                ..drop_tail(limit, rate)
            },
            reverse_queue: drop_tail(limit, rate),
            access_queue: drop_tail(self.access_queue_packets, access_rate),
            rate_changes: self.rate_changes.clone(),
            deliveries: self.deliveries.clone(),
            impairments: self.impairments.clone(),
        };
        let mut network = Network::new();
        let middle = dumbbell.lay(&mut network);
        let group = network.add_group("flows");
        for (number, (transport, app, hint)) in self.flows.iter().enumerate() {
            let pair = dumbbell.add_pair(&mut network, middle, number + 1);
            let is_tfrc = matches!(transport, TransportParams::Tfrc(_));
            let adaptive = self.adaptive.clone().filter(|_| is_tfrc).map(Arc::new);
            let (name, routes) = (format!("flow.{}", number + 1), [pair.route, pair.return_route]);
            let flow = FlowSpec {
                hint: *hint,
                adaptive: adaptive.clone(),
                start: (Instant::ZERO, Instant::ZERO + Duration::from_secs(1)),
                stop: self.stop,
                series: adaptive.is_some(),
                distributions: self.distributions,
                ..FlowSpec::new(name, group, routes, transport.clone(), app.clone())
            };
            network.add_flow(flow).expect("the plan is sound");
        }
        if self.serve_every_link {
            network.keep_every_series();
        }
        network
    }
}

/// The papers' PI for a link `scale` times 15 Mbit/s: the same delay, and the gains that keep the loop's shape
/// (Hollot et al. 2001, proposition 2: they fall as the link grows at a constant load per flow).
fn pi_for(scale: f64) -> pi::PiParams {
    let paper = pi::PiParams::default();
    pi::PiParams { a: paper.a / scale, b: paper.b / scale, q_ref: paper.q_ref * scale, ..paper }
}
