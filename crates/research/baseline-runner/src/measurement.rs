//! One measurement: its flows, and its row.

use crate::error::RunError;
use crate::headers::Packets;
use crate::plan::duration;
use crate::receiver::FarEnd;
use cutline_baseline::{BaselineRow, PlanDocument, QueueSize, RowKey};
use cutline_traffic::control::{BothReports, SendParams, send};
use cutline_traffic::{
    DIRECT, DatagramOptions, FlowPlan, FlowTransport, FlowsSummary, HostUse, PlanDirection, RateShaper,
    ReceiverReport, TcpOptions,
};
use cutline_transport::app::{CbrParams, Params};
use cutline_transport::endpoint::TransportParams;
use cutline_transport::udp;
use cutline_units::{Bytes, Dscp, Duration, Histogram, Rate, Streams};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The numbers of both flows: the blocks, and the datagrams back.
const BLOCKS: u32 = 0;
const BACK: u32 = 1;
/// The rate of an application that is limited by its socket only.
const ENDLESS: Rate = Rate::from_bps(1_000_000_000_000);
/// The datagrams back: 50 per second of 64 B.
const BACK_SIZE: u64 = 64;
const BACK_RATE: Rate = Rate::from_bps(50 * BACK_SIZE * 8);
/// Time after the end of sending in which packets in flight arrive.
const LINGER: Duration = Duration::from_millis(300);

/// Makes the measurement of a key; `None` if `stop` was set meanwhile.
pub(crate) fn measure(
    key: &RowKey,
    plan: &PlanDocument,
    packets: Packets,
    far: &FarEnd,
    stop: &AtomicBool,
) -> Result<Option<BaselineRow>, RunError> {
    let ratio = packets.ratio(&key.protocol, key.block);
    let requested = key.load_bps.zip(key.requested_percent);
    // With headers, as a reservation counts.
    let requested = requested
        .map(|(load, percent)| Rate::from_bps((load as f64 * ratio * f64::from(percent) / 100.0) as u64));
    let first = *far.addresses.first().ok_or(RunError::ReceiverGone)?;
    let plans = vec![blocks(key, plan, (requested, ratio), far.from, first), back(far.from, first)];
    let params = SendParams {
        duration: duration(plan, key),
        linger: LINGER,
        interval: None,
        streams: Streams::new(plan.seed),
        key: far.key,
        datagrams: datagrams(key, plan, requested, packets),
        blocking: key.load_bps.is_none(),
    };
    let reports = far.within(|| send(&far.addresses, plans, params, stop))?;
    // A session that was stopped reports an error, which is not a failure.
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let reports = reports?;
    if let Some(error) = reports.error {
        return Err(error.into());
    }
    let failed = reports.sent.iter().find_map(|sent| Some((sent.name.clone(), sent.error.clone()?)));
    match failed {
        Some((flow, why)) => Err(RunError::Flow { flow, why }),
        None => Ok(Some(row(key, &reports))),
    }
}

/// Returns the flow of the blocks.
fn blocks(
    key: &RowKey,
    plan: &PlanDocument,
    (requested, ratio): (Option<Rate>, f64),
    from: Option<SocketAddr>,
    to: SocketAddr,
) -> FlowPlan {
    let rate = key.load_bps.map_or(ENDLESS, Rate::from_bps);
    let app = CbrParams { random_phase: false, ..CbrParams::new(rate, Bytes::new(key.block)) };
    let transport = if key.protocol == "tcp" {
        let large = (key.queue == QueueSize::Large).then_some(plan.large_buffer as u32);
        FlowTransport::Tcp(TcpOptions {
            send_buffer: large,
            receive_buffer: large,
            // The kernel paces payload.
            max_pacing_rate: requested.map(|rate| Rate::from_bps((rate.as_bps() as f64 / ratio) as u64)),
            ..TcpOptions::default()
        })
    } else if key.protocol == DIRECT {
        FlowTransport::Direct { largest: key.block as u32 }
    } else {
        let params = udp::Params { max_datagram: key.block as u32, ..udp::Params::default() };
        FlowTransport::Datagrams(TransportParams::Udp(Arc::new(params)))
    };
    flow(BLOCKS, "blocks", PlanDirection::Forward, transport, Params::Cbr(app), from, to)
}

/// Returns the flow of the datagrams back.
fn back(from: Option<SocketAddr>, to: SocketAddr) -> FlowPlan {
    let app = Params::Cbr(CbrParams::new(BACK_RATE, Bytes::new(BACK_SIZE)));
    let transport = FlowTransport::Datagrams(TransportParams::Udp(Arc::default()));
    flow(BACK, "back", PlanDirection::Reverse, transport, app, from, to)
}

fn flow(
    id: u32,
    name: &str,
    direction: PlanDirection,
    transport: FlowTransport,
    app: Params,
    from: Option<SocketAddr>,
    to: SocketAddr,
) -> FlowPlan {
    FlowPlan {
        id,
        name: name.to_owned(),
        direction,
        transport,
        app,
        from,
        to,
        dscp: Dscp::DEFAULT,
        ecn: false,
        start: Duration::ZERO,
        stop: None,
    }
}

fn datagrams(
    key: &RowKey,
    plan: &PlanDocument,
    requested: Option<Rate>,
    packets: Packets,
) -> DatagramOptions {
    let is_large = key.queue == QueueSize::Large;
    let buffer = if is_large { plan.large_buffer } else { plan.default_buffer };
    let queue = plan.shaper_queue.max(2 * key.block);
    DatagramOptions {
        send_buffer: is_large.then_some(plan.large_buffer as u32),
        receive_buffer: Some(buffer as u32),
        shaper: requested.map(|rate| RateShaper { rate, queue, mtu: packets.mtu }),
    }
}

/// Losses by their place, in blocks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Places {
    sender_queue: u64,
    receive_buffer: u64,
    interface: u64,
    path: u64,
}

impl Places {
    /// Assigns the lost blocks: first those that are counted for this flow alone, then those that the counters of the hosts
    /// explain. The others were lost on the path.
    fn of(lost: u64, unsent: u64, in_buffer: u64, at_interfaces: u64) -> Self {
        let mut left = lost;
        let mut take = |most: u64| {
            let taken = most.min(left);
            left -= taken;
            taken
        };
        let (sender_queue, receive_buffer) = (take(unsent), take(in_buffer));
        let interface = take(at_interfaces);
        Self { sender_queue, receive_buffer, interface, path: left }
    }
}

fn row(key: &RowKey, reports: &BothReports) -> BaselineRow {
    let sent = &reports.sent[BLOCKS as usize];
    let meter = reports.received.as_ref();
    let received = |flow: u32| meter.and_then(|meter| meter.flows.iter().find(|report| report.flow == flow));
    let (there, back) = (received(BLOCKS), received(BACK));
    let mut summary = FlowsSummary::default();
    summary.add(sent, there);
    let is_tcp = key.protocol == "tcp";
    let host = reports.receiver_host.unwrap_or_default();
    let arrived = there.map_or(0, |report| report.packets);
    let written = if is_tcp { sent.messages } else { sent.packets + sent.unsent };
    let lost = if is_tcp { 0 } else { written.saturating_sub(arrived) };
    let in_buffer = meter.map_or(0, |meter| meter.overflowed).max(host.drops.receive_buffer);
    let at_interfaces =
        reports.sender_host.drops.interface_sent.saturating_add(host.drops.interface_received);
    let places = Places::of(lost, sent.unsent, in_buffer, at_interfaces);
    let mean = |histogram: Option<&Histogram>| Some(histogram?.mean()?.as_millis_f64());
    let delay = mean(there.map(|report| &report.delay));
    let until = there.and_then(|report| report.last).unwrap_or_default().max(reports.elapsed);
    let per_second =
        |bytes: u64| if until.is_zero() { 0.0 } else { bytes as f64 * 8.0 / until.as_secs_f64() };
    // Before and after sending, both threads wait.
    let sending = reports.elapsed.as_secs_f64();
    let cpu = |host: &HostUse| (sending > 0.0).then(|| host.thread_ns as f64 * 1e-9 / sending);
    let due = key
        .load_bps
        .map_or(0.0, |load| load as f64 * reports.elapsed.as_secs_f64() / (key.block as f64 * 8.0));
    BaselineRow {
        protocol: key.protocol.clone(),
        queue: key.queue,
        block: key.block,
        load_bps: key.load_bps,
        requested_percent: key.requested_percent,
        duration_s: reports.elapsed.as_secs_f64(),
        blocks: sent.messages,
        throughput_bps: per_second(there.map_or(0, |report: &ReceiverReport| report.bytes)),
        loss_ratio: (!is_tcp && written > 0).then(|| lost as f64 / written as f64),
        not_written: (due as u64).saturating_sub(sent.messages),
        lost_sender_queue: places.sender_queue,
        lost_interface: places.interface,
        lost_receive_buffer: places.receive_buffer,
        lost_path: places.path,
        not_reassembled: host.drops.reassembly,
        segments: if is_tcp { sent.packets } else { 0 },
        retransmissions: sent.retransmissions,
        delay_ms: delay,
        delay_p99_ms: summary.delay.quantile(0.99).map(Duration::as_millis_f64),
        rtt_ms: delay.zip(mean(back.map(|report| &report.delay))).map(|(there, back)| there + back),
        kernel_rtt_ms: sent.tcp.map(|tcp| tcp.rtt.as_millis_f64()),
        sender_cpu: cpu(&reports.sender_host),
        receiver_cpu: reports.receiver_host.as_ref().and_then(cpu),
        sender_busy: reports.sender_host.busy_share(),
        receiver_busy: reports.receiver_host.as_ref().and_then(HostUse::busy_share),
        receive_buffer: host.receive_buffer.filter(|_| !is_tcp),
        clock_error_ms: reports.clock.error().as_millis_f64(),
        late_p99_ms: key.load_bps.and_then(|_| Some(sent.lateness.quantile(0.99)?.as_millis_f64())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_assigned_once() {
        let all = Places::of(100, 20, 30, 500);
        assert_eq!(all, Places { sender_queue: 20, receive_buffer: 30, interface: 50, path: 0 });
        assert_eq!(Places::of(10, 0, 0, 3), Places { interface: 3, path: 7, ..Places::default() });
        assert_eq!(Places::of(0, 5, 5, 5), Places::default());
    }
}
