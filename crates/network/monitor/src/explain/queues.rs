//! Causes that the counters of a link and its interfaces show, whether or not a socket suffers.

use super::interval::{Delivered, Interval, LinkFlowInterval, LinkInterval};
use super::wording::{ms, name, percent, rate};
use super::{DeliveryCause, DeliveryFinding, Strength};
use cutline_records::total;
use cutline_router_service::HostStatistics;

/// The fewest frames of a kind that are a fault: a host sends single ones of them by itself, such as requests of DHCP without checksums.
const FEW_FRAMES: u64 = 10;
/// The least share of an interface's frames that is a fault: a full ring occasionally loses a thousandth.
const SHARE_OF_FRAMES: f64 = 0.001;
/// Utilisation from which a link is busy. It is below the doctor's 0.95, because headers of the link are not counted here: 24 B of
/// Ethernet are 14 % of a datagram of 172 B, and 2 % of a full one.
pub const BUSY: f64 = 0.85;
/// Mean wait from which a queue is too long by itself: the interval of CoDel (RFC 8289 section 4.2), a long round-trip time.
const LONG_WAIT_MS: f64 = 100.0;
/// The fewest frames for a statement about a queue or a flow: at 10 % loss the standard error is 3 %.
const FEW_PACKETS: u64 = 100;
/// Share of the arrivals from which a flow is called large: it takes the share of three other flows.
const LARGE_FLOW: f64 = 0.25;
/// Loss from which a flow may be unresponsive: a responsive one has a window of 3.9 segments or less then.
const UNRESPONSIVE_LOSS: f64 = 0.1;
/// Window of a responsive flow times the root of its loss, packets: that of TCP (Mathis, Semke, Mahdavi and Ott 1997).
const TCP_WINDOW: f64 = 1.22;
/// Factor by which the packets of an unresponsive flow within its wait in the queue exceed this window. They are fewer than those within a
/// round-trip time. Without this condition TCP was named over a path of a millisecond, where four segments fill a link of 4 Mbit/s and 11 %
/// are lost.
const WINDOW_FACTOR: f64 = 2.0;
/// Least rate at the end of the interval, as a share of that at its beginning and of its mean, of a flow that continues: one that has reduced
/// its rate once sends 0.7 (CUBIC, RFC 9438 section 4.6) or less.
const STEADY: f64 = 0.8;
/// The fewest waits in the queue that an interval has if it shows that a TCP does not respond. A wait is less than a round-trip time, and
/// slow start overshoots a long queue for several of them: with eight transfers and waits of 0.7 s one lost 29 % in 5 s and grew.
const TCP_RESPONSE: f64 = 20.0;
const TCP: u8 = 6;
/// Flows of one host that are many: browsers open six connections to a server.
const MANY_FLOWS: u64 = 8;
/// Share of a link from which a host has most of it, with another host beside it.
const MOST_OF_LINK: f64 = 0.6;
/// Rate from which a host takes part in the traffic, bit/s: that of speech by G.729. Messages that find neighbours and routers are
/// less. Without it such a host was named as the one that suffers.
const TAKES_PART_BPS: u64 = 8000;
/// Loss of another host that shows that it gets too little, per cent; ours: a third of the loss from which delivery is bad.
const OTHERS_LOSS_PERCENT: f64 = 1.0;
/// Frames that wait for the interface at both ends of the interval; up to two may be on their way at any moment, as for the doctor.
const STUCK: u64 = 2;
/// Least lead of the wire's rate over the configured one, as for the doctor.
const MARGIN: f64 = 0.02;

/// Returns the causes that links show, in no order.
pub fn findings(interval: &Interval<'_>) -> Vec<DeliveryFinding> {
    let mut findings = Vec::new();
    for link in &interval.links {
        findings.extend(
            [offloads(link, interval), missed(link), slow_link(link, interval)].into_iter().flatten(),
        );
        let of_traffic = unresponsive_flow(link).or_else(|| many_flows(link, interval));
        findings.extend(long_queue(link, of_traffic.is_some()));
        findings.extend(of_traffic);
        findings.extend(rewritten_marks(link, interval));
    }
    findings
}

fn offloads(link: &LinkInterval<'_>, interval: &Interval<'_>) -> Option<DeliveryFinding> {
    let input = name(link.input_name);
    let (long, empty) = (link.input.truncated, link.input.without_checksum);
    if long.max(empty) < FEW_FRAMES {
        return None;
    }
    let (what, field) = if long >= empty {
        (format!("{long} frames were longer than its MTU and were dropped"), "truncated")
    } else {
        (format!("{empty} frames came without checksums, and their receivers drop them"), "without_checksum")
    };
    let on = interval.interface(link.input_name).map(|interface| interface.offloads.join(", "));
    let on = on.filter(|on| !on.is_empty()).map(|on| format!(" (on at `{input}`: {on})")).unwrap_or_default();
    Some(DeliveryFinding::new(
        DeliveryCause::Offloads,
        Strength::Strong,
        format!("offloads of `{input}` or of the interface behind it break packets: {what}{on}"),
        &[format!("{}.{field}", link.input_path)],
        &format!(
            "turn them off on both ends of the wire: ethtool -K {input} gro off lro off tso off gso off tx off"
        ),
    ))
}

fn missed(link: &LinkInterval<'_>) -> Option<DeliveryFinding> {
    let (missed, input) = (link.input.missed, name(link.input_name));
    let arrived = missed.saturating_add(link.direction.counted(|of| of.received).packets);
    let share = missed as f64 / arrived.max(1) as f64;
    if missed < FEW_FRAMES || share < SHARE_OF_FRAMES {
        return None;
    }
    Some(DeliveryFinding::new(
        DeliveryCause::LossBeforeQueue,
        Strength::Strong,
        format!(
            "packets are lost before the queue: `{input}` lost {missed} frames ({}) because they came faster than the router read them",
            percent(share)
        ),
        &[format!("{}.missed_packets", link.input_path), format!("{}.received", link.path)],
        "give the router more of the processor (`chrt -f 1 cutline router ...`), or a faster port: cutline doctor",
    ))
}

fn slow_link(link: &LinkInterval<'_>, interval: &Interval<'_>) -> Option<DeliveryFinding> {
    let (configured, sent) = (rate(link.direction.after().rate_bps as f64), rate(link.direction.sent_bps()));
    let output = name(link.output_name);
    let evidence = interval.interface(link.output_name);
    // The queue disciplines of its interface are the queue itself, and it drops waiting packets where the interface goes down.
    let of_router = Some(link).filter(|link| !link.is_kernel);
    let refused = of_router.map_or(0, LinkInterval::unsent);
    let stuck = |of: &cutline_router_service::DirectionStatistics| {
        of.queued_packets.saturating_sub(of.backlog.packets)
    };
    let held = stuck(link.direction.before()).min(stuck(link.direction.after()));
    let refused_share = refused as f64 / refused.saturating_add(link.sent_packets()).max(1) as f64;
    let is_busy = link.direction.utilisation() >= BUSY;
    let (strength, what, field) = if refused >= FEW_FRAMES && refused_share >= SHARE_OF_FRAMES {
        (
            Strength::Strong,
            format!("`{output}` refused {refused} frames"),
            format!("{}.dropped.unsent", link.path),
        )
    } else if held > STUCK {
        let field = format!("{}.queued_packets", link.path);
        (Strength::Strong, format!("{held} frames or more always waited for `{output}`"), field)
    } else if let Some(evidence) =
        evidence.filter(|it| of_router.is_some() && it.queued_packets > 0 && it.dropped_packets >= FEW_FRAMES)
    {
        let (queued, dropped) = (evidence.queued_packets, evidence.dropped_packets);
        let what = format!("the kernel's queue of `{output}` held {queued} packets and dropped {dropped}");
        (Strength::Strong, what, format!("tc -s qdisc show dev {output}"))
    } else {
        let speed = evidence?.speed_bps.filter(|_| is_busy)?;
        if speed as f64 >= link.direction.after().rate_bps as f64 * (1.0 + MARGIN) {
            return None;
        }
        (
            Strength::Medium,
            format!("the wire of `{output}` has {}", rate(speed as f64)),
            format!("ethtool {output}"),
        )
    };
    Some(DeliveryFinding::new(
        DeliveryCause::LinkRateLower,
        strength,
        format!(
            "the link behind `{output}` carries less than the {configured} that {} is configured for: {what}, and {sent} were sent",
            link.place()
        ),
        &[field, format!("{}.rate_bps", link.path), format!("{}.sent", link.path)],
        &match of_router {
            Some(_) => "set --rate a few per cent below the link's rate, or let it follow the link: cutline router --autorate".to_owned(),
            None => format!("set a rate a few per cent below the link's: cutline qdisc change dev {output} --rate RATE"),
        },
    ))
}

fn unresponsive_flow(link: &LinkInterval<'_>) -> Option<DeliveryFinding> {
    let share = |flow: &LinkFlowInterval<'_>| {
        flow.received.bytes as f64 / link.direction.counted(|of| of.received).bytes.max(1) as f64
    };
    let is_it = |flow: &&LinkFlowInterval<'_>| {
        flow.received.packets >= FEW_PACKETS
            && share(flow) >= LARGE_FLOW
            && flow.loss() >= UNRESPONSIVE_LOSS
            && is_steady(flow, link)
            && exceeds_window(flow, link)
    };
    let flow = link.flows.iter().filter(is_it).max_by_key(|flow| flow.received.bytes)?;
    let of = flow.after;
    Some(DeliveryFinding::new(
        DeliveryCause::UnresponsiveFlow,
        Strength::Strong,
        format!(
            "one unresponsive flow, {}, sends {} of the arrivals at `{}` ({} of a link of {}) and continues although {} of its packets are dropped",
            flow_name(flow),
            percent(share(flow)),
            name(&link.direction.after().name),
            rate(of.recent_bps as f64),
            rate(link.direction.after().rate_bps as f64),
            percent(flow.loss())
        ),
        &[format!("{}.flows", link.path), format!("{}.received", link.path)],
        &format!(
            "limit its sender to less than its share, such as cutline exec --rate RATE -- PROGRAM on {}",
            name(&of.source)
        ),
    ))
}

/// Returns whether a flow has not reduced its rate in the interval. One that was not listed at the beginning is not known.
fn is_steady(flow: &LinkFlowInterval<'_>, link: &LinkInterval<'_>) -> bool {
    let Some(before) = flow.before else { return false };
    let mean_bps = flow.received.bytes as f64 * 8.0 / link.direction.seconds();
    flow.after.recent_bps as f64 >= STEADY * mean_bps.max(before.recent_bps as f64)
}

/// Returns whether a flow has far more packets under way than a responsive one would have with its loss, after the time that TCP needs to
/// respond.
fn exceeds_window(flow: &LinkFlowInterval<'_>, link: &LinkInterval<'_>) -> bool {
    let wait_s = flow.mean_wait_ms.unwrap_or_default() / 1e3;
    if flow.after.protocol == TCP && link.direction.seconds() < TCP_RESPONSE * wait_s {
        return false;
    }
    let under_way = flow.received.packets as f64 / link.direction.seconds() * wait_s;
    let mut window = WINDOW_FACTOR * TCP_WINDOW / flow.loss().sqrt();
    if flow.after.protocol == TCP {
        // TCP responds once to all losses of a window (RFC 5681 section 3.2). If there are k, the window is TCP_WINDOW * sqrt(k / loss),
        // and k is no more than the window. Without this condition a transfer was named beside a video, whose bursts made it lose
        // several packets at a time: 11 % with 9 packets under way.
        window = window.max(TCP_WINDOW * TCP_WINDOW / flow.loss());
    }
    under_way >= window
}

/// Returns the name of a flow: its protocol, addresses and ports.
fn flow_name(flow: &LinkFlowInterval<'_>) -> String {
    let of = flow.after;
    let protocol = match of.protocol {
        6 => "TCP".to_owned(),
        17 => "UDP".to_owned(),
        other => format!("protocol {other}"),
    };
    let end = |host: &str, port: Option<u16>| {
        let host = name(host);
        match port {
            Some(port) if host.contains(':') => format!("[{host}]:{port}"),
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    };
    format!(
        "{protocol} from {} to {}",
        end(&of.source, of.source_port),
        end(&of.destination, of.destination_port)
    )
}

fn many_flows(link: &LinkInterval<'_>, interval: &Interval<'_>) -> Option<DeliveryFinding> {
    if link.direction.utilisation() < BUSY {
        return None;
    }
    ["source", "destination"].into_iter().find_map(|side| {
        let takes_part = move |host: &&HostStatistics| host.side == side && host.recent_bps >= TAKES_PART_BPS;
        let hosts = || link.direction.after().hosts.iter().filter(takes_part);
        let total = total(hosts().map(|host| host.recent_bps));
        let host = hosts().max_by_key(|host| host.recent_bps)?;
        let share = host.recent_bps as f64 / total.max(1) as f64;
        let suffers = |other: &HostStatistics| {
            other.dropped_percent >= OTHERS_LOSS_PERCENT
                || other.mean_wait_ms >= LONG_WAIT_MS
                || interval.bad().any(|delivered| is_of(delivered, link, other))
        };
        let other = hosts().filter(|other| other.host != host.host).find(|other| suffers(other))?;
        if host.flows < MANY_FLOWS || share < MOST_OF_LINK {
            return None;
        }
        let all = hosts().count();
        Some(DeliveryFinding::new(
            DeliveryCause::ManyFlowsOfHost,
            Strength::Strong,
            format!(
                "many flows of one host take the link: {} has {} flows and {} of what arrives at `{}`, while {}, one of {all} hosts, loses {} and waits {}",
                name(&host.host),
                host.flows,
                percent(share),
                name(&link.direction.after().name),
                name(&other.host),
                percent(other.dropped_percent / 100.0),
                ms(other.mean_wait_ms)
            ),
            &[format!("{}.hosts", link.path), format!("{}.sent", link.path)],
            "give hosts equal shares: cutline router --fair hosts",
        ))
    })
}

/// Returns whether a direction of a socket is one of a host's flows.
fn is_of(delivered: &Delivered<'_>, link: &LinkInterval<'_>, host: &HostStatistics) -> bool {
    link.flow_of(delivered).is_some_and(|flow| {
        let of = flow.after;
        host.host == if host.side == "source" { of.source.as_str() } else { of.destination.as_str() }
    })
}

fn long_queue(link: &LinkInterval<'_>, is_explained: bool) -> Option<DeliveryFinding> {
    let wait = link.mean_wait_ms.filter(|wait| *wait >= LONG_WAIT_MS)?;
    if link.direction.utilisation() < BUSY || link.sent_packets() < FEW_PACKETS {
        return None;
    }
    // Where one flow or host fills the queue, that is the cause and this is its effect.
    let strength = if is_explained { Strength::Medium } else { Strength::Strong };
    Some(too_long(link, strength, &format!("packets waited {} on average", ms(wait)), &[]))
}

/// Returns the finding that a queue is too long.
pub fn too_long(link: &LinkInterval<'_>, strength: Strength, what: &str, more: &[String]) -> DeliveryFinding {
    let own = [format!("{}.waits_us", link.path), format!("{}.sent", link.path)];
    DeliveryFinding::new(
        DeliveryCause::QueueTooLong,
        strength,
        format!(
            "the queue `{}` of `{}` is too long: {what}, at {} of its {}",
            name(&link.direction.after().queue),
            name(&link.direction.after().name),
            percent(link.direction.utilisation()),
            rate(link.direction.after().rate_bps as f64)
        ),
        &[more, &own[..]].concat(),
        if link.is_kernel {
            "take a queue with a short target, such as cutline qdisc add --replace with --aqm sieve (the default), or give the flow a lower hint"
        } else {
            "take a queue with a short target, such as cutline router --aqm sieve (the default), or give the flow a lower hint"
        },
    )
}

/// Share of a socket's packets at the router that shows its code point: enough that a change of its hint is not the reason.
const MARKED_PACKETS: u64 = 10;

fn rewritten_marks(link: &LinkInterval<'_>, interval: &Interval<'_>) -> Option<DeliveryFinding> {
    interval.delivered.iter().filter(|delivered| delivered.is_send).find_map(|delivered| {
        let flow = link.flow_of(delivered)?;
        let was = flow.before?;
        let (now, before) = (delivered.entry.socket.hint?, delivered.before.socket.hint?);
        // A hint that adapts may be changed between the two rows.
        let is_other = |of: &cutline_router_service::FlowStatistics, hint: u16| {
            u16::from(of.code_point) != (hint.saturating_sub(1) << 2 | 3) && of.hint != hint
        };
        let is_steady = now == before && was.code_point == flow.after.code_point;
        if !is_steady || flow.received.packets < MARKED_PACKETS || !is_other(flow.after, now) {
            return None;
        }
        Some(DeliveryFinding::new(
            DeliveryCause::MarksRewritten,
            Strength::Strong,
            format!(
                "marks are rewritten on the way: {} sends with hint {now} (code point {}), and its {} packets reach the router with code point {}, which is hint {} there",
                super::wording::socket(delivered.entry),
                now.saturating_sub(1) << 2 | 3,
                flow.received.packets,
                flow.after.code_point,
                flow.after.hint
            ),
            &[
                delivered.path.replace(".send", ".hint"),
                format!("{}.flows", link.path),
            ],
            "find the device that re-marks (tcpdump -v shows `tos`), and let it keep code points, or mark again: cutline router --hint CODE=LEVEL",
        ))
    })
}
