//! Causes of the bad delivery of a socket: its own rows, and the rows of the host's links about its packets.

use super::interval::{Delivered, FEW_LOSSES, Interval, LinkFlowInterval, LinkInterval};
use super::queues::{BUSY, too_long};
use super::wording::{measured, ms, name, percent, rate, socket};
use super::{DeliveryCause, DeliveryFinding, Strength};
use cutline_records::total;

/// Share of a violated delay from which the wait in a queue explains it.
const EXPLAINED: f64 = 0.5;
/// Delay that no queue has to explain, ms: late wake-ups of two hosts, as for the doctor.
const TOLERANCE_MS: f64 = 5.0;
/// Error of the clocks, as a share of the limit of a delay, from which the delay cannot be judged.
const CLOCK_SHARE: f64 = 0.5;
/// Lead of a one-way delay over the round-trip time, ms, from which the clocks are wrong: more than a queue grows between two
/// measurements of the round-trip time at a link that is not overloaded.
const CLOCK_LEAD_MS: f64 = 100.0;
/// The fewest messages for the comparison of delays with the round-trip time.
const FEW_MESSAGES: u64 = 20;

/// Returns the causes of the sockets' delivery, in no order. `found` are the causes that links show.
pub fn findings(interval: &Interval<'_>, found: &[DeliveryFinding]) -> Vec<DeliveryFinding> {
    let mut findings = Vec::new();
    for delivered in &interval.delivered {
        if delivered.is_send {
            findings.extend(reservation(delivered));
        }
        findings.extend(clock(delivered));
        findings.extend(host(delivered, "sending-host"));
        findings.extend(host(delivered, "receiving-host"));
    }
    let bad = interval.bad().filter(|it| it.loses_much() || it.violations("network").next().is_some());
    for delivered in bad {
        let has_clock_error = findings.iter().any(|it| it.cause == DeliveryCause::ClockError);
        let only_delay =
            delivered.violations("network").all(|it| it.measure == "delay") && !delivered.loses_much();
        if has_clock_error && only_delay {
            continue;
        }
        if let Some(finding) = network(delivered, interval, found) {
            findings.push(finding);
        }
    }
    once(findings)
}

/// Keeps the strongest finding of each cause: a hundred sockets behind one bottleneck have one cause.
fn once(mut findings: Vec<DeliveryFinding>) -> Vec<DeliveryFinding> {
    findings.sort_by_key(|finding| (finding.cause, std::cmp::Reverse(finding.strength)));
    findings.dedup_by_key(|finding| finding.cause);
    findings
}

fn reservation(delivered: &Delivered<'_>) -> Option<DeliveryFinding> {
    let (was, now) = (&delivered.before.socket, &delivered.entry.socket);
    let who = socket(delivered.entry);
    let why = now.refusal.as_deref().map(|why| format!(": {}", name(why))).unwrap_or_default();
    let had = was.reserved_bps.map_or_else(|| "a reservation".to_owned(), |bps| rate(bps as f64));
    let sentence = if was.reservation == "reserved" && now.reservation != "reserved" {
        format!("the reservation was lost: {who} had {had}, and continues as best effort{why}")
    } else if now.reservation == "refused" || now.reservation == "ended" {
        format!("the reservation is lost: {who} sends as best effort{why}")
    } else {
        return None;
    };
    let place = delivered.path.replace(".send", "");
    let fields =
        [format!("{place}.reservation"), format!("{place}.refusal"), format!("{place}.reserved_bps")];
    let next = "see why at the router and at cutlined: cutline reservations, cutline router reservations";
    Some(DeliveryFinding::new(DeliveryCause::ReservationLost, Strength::Strong, sentence, &fields, next))
}

fn clock(delivered: &Delivered<'_>) -> Option<DeliveryFinding> {
    let row = &delivered.entry.socket;
    let place = delivered.path.split('.').next().unwrap_or_default();
    let delay = delivered.row.last_delay.as_ref();
    let error = row.clock_error_ms?;
    let next = "compare clocks over a path that is not loaded: open the connection before the load, or give both hosts a common clock (chronyc tracking)";
    if let Some(limit) =
        delivered.limit("delay").filter(|limit| error >= CLOCK_SHARE * limit && delivered.received > 0)
    {
        let sentence = format!(
            "the clocks are not known well enough: the delays of {} are exact to {}, which is {} of their limit of {}",
            socket(delivered.entry),
            ms(error),
            percent(error / limit),
            ms(limit)
        );
        let fields = [format!("{place}.clock_error_ms"), format!("{}.limits", delivered.path)];
        return Some(DeliveryFinding::new(
            DeliveryCause::ClockError,
            Strength::Strong,
            sentence,
            &fields,
            next,
        ));
    }
    // With TCP a message waits in the send queue as well, which the round-trip time does not include.
    let (mean, rtt) = (delay?.mean_ms, row.rtt_ms.filter(|_| row.transport != "tcp")?);
    if delivered.received < FEW_MESSAGES || mean < rtt + error + CLOCK_LEAD_MS {
        return None;
    }
    // Both directions are wrong by the same time: the other one is too short then.
    let both = [&row.send, &row.receive].map(|row| row.last_delay.as_ref().map(|delay| delay.mean_ms));
    let other = both.into_iter().flatten().fold(f64::INFINITY, f64::min);
    let is_queue = !delivered.row.violations.is_empty() && other > TOLERANCE_MS;
    if is_queue {
        return None;
    }
    let sentence = format!(
        "the clocks differ from their estimate: the delays of {} are {} one way, longer than the round-trip time of {}",
        socket(delivered.entry),
        ms(mean),
        ms(rtt)
    );
    let fields = [
        format!("{}.last_delay", delivered.path),
        format!("{place}.rtt_ms"),
        format!("{place}.clock_error_ms"),
    ];
    Some(DeliveryFinding::new(DeliveryCause::ClockError, Strength::Weak, sentence, &fields, next))
}

fn host(delivered: &Delivered<'_>, origin: &str) -> Option<DeliveryFinding> {
    let violation = delivered.violations(origin).next()?;
    let who = socket(delivered.entry);
    let measure = name(&violation.measure);
    let violates = format!("{who} violates its {measure}");
    let (held, unread) = (ms(delivered.row.held_ms), ms(delivered.row.unread_ms));
    let dropped = delivered.row.overflowed_datagrams;
    let (cause, sentence, next) = match (origin, &*violation.measure) {
        ("sending-host", "recovery") => (
            DeliveryCause::SendingHost,
            format!(
                "the application of the sending end does not read: {violates}, and reports wait behind data there"
            ),
            "look at the application of the sending end: it leaves data unread, and reports come behind them",
        ),
        ("sending-host", _) => (
            DeliveryCause::SendingHost,
            format!("the sending host held the application back: {violates}, and was held for {held} in all"),
            "send less, or agree on a higher rate: cutline translate shows the reasons of the settings",
        ),
        (_, "loss") if dropped > 0 => (
            DeliveryCause::ReceivingHost,
            format!(
                "the receiving host drops datagrams: {violates}, and {dropped} did not fit into the receive buffer in all"
            ),
            "look at the receiving application: it reads less often than data arrives, or the buffer is too small for bursts",
        ),
        _ => (
            DeliveryCause::ReceivingHost,
            format!(
                "the receiving application does not read: {violates}, and data waited there for {unread} in all"
            ),
            "look at the receiving application: it reads less often than data arrives",
        ),
    };
    let fields = [format!("{}.violations", delivered.path)];
    Some(DeliveryFinding::new(cause, Strength::Strong, sentence, &fields, next))
}

/// Returns the cause of bad delivery whose origin is the network.
fn network(
    delivered: &Delivered<'_>,
    interval: &Interval<'_>,
    found: &[DeliveryFinding],
) -> Option<DeliveryFinding> {
    let passed = interval.link_of(delivered);
    // Faults in the counters of a link are causes for the traffic that passes it.
    let rests_on = |it: &DeliveryFinding, path: &str| it.rests_on.iter().any(|field| field.starts_with(path));
    let is_shown = |it: &&DeliveryFinding| match passed {
        Some((link, _)) => rests_on(it, &link.path) || rests_on(it, &link.input_path),
        None => delivered.is_send || !rests_on(it, "kernel_queues["),
    };
    let is_cause = |it: &&DeliveryFinding| it.cause != DeliveryCause::MarksRewritten;
    if found.iter().filter(is_cause).any(|it| is_shown(&it)) {
        return None;
    }
    let of_delay = delivered.violation_of(&["delay", "jitter"]);
    if let Some(finding) = of_delay.and_then(|_| delay(delivered, interval, passed)) {
        return Some(finding);
    }
    let of_loss =
        delivered.loses_much() || delivered.violation_of(&["loss", "gap", "rate", "recovery"]).is_some();
    if let Some(finding) = Some(())
        .filter(|()| of_loss && delivered.lost >= FEW_LOSSES)
        .and_then(|()| loss(delivered, interval, passed))
    {
        return Some(finding);
    }
    Some(unexplained(delivered))
}

/// Returns the cause of long delays: the wait in a queue of this host, or the rest.
fn delay(
    delivered: &Delivered<'_>,
    interval: &Interval<'_>,
    passed: Option<(&LinkInterval<'_>, &LinkFlowInterval<'_>)>,
) -> Option<DeliveryFinding> {
    let measured = delivered.row.last_delay.as_ref()?.mean_ms;
    let who = socket(delivered.entry);
    let field = format!("{}.last_delay", delivered.path);
    let mut possible = interval.possible_links(delivered).peekable();
    if possible.peek().is_none() || measured <= TOLERANCE_MS {
        return None;
    }
    // Of a flow that no router lists, the longest of the waits that packets with its hint may have had.
    let wait = match passed {
        Some((_, flow)) => flow.mean_wait_ms.unwrap_or_default(),
        None => possible.filter_map(|link| link.mean_wait_ms).fold(0.0, f64::max),
    };
    if wait >= EXPLAINED * measured {
        let busiest = |link: &&LinkInterval<'_>| (link.direction.utilisation() * 1e6) as u64;
        let link = passed
            .map(|(link, _)| link)
            .or_else(|| interval.possible_links(delivered).max_by_key(busiest))?;
        let what = format!("{} waits {} of its {} there", who, ms(wait), ms(measured));
        let strength = if passed.is_some() { Strength::Strong } else { Strength::Medium };
        return Some(too_long(link, strength, &what, &[field]));
    }
    if measured - wait <= TOLERANCE_MS {
        return None;
    }
    let what = format!(
        "the delay of {who} is {}, and only {} of it is the wait in the queue of {}",
        ms(measured),
        ms(wait),
        place_of(delivered, passed, interval)
    );
    Some(elsewhere(delivered, passed, interval, &what, field))
}

/// Returns the place of the queues that a direction of a socket passes, or may pass, in a sentence.
fn place_of(
    delivered: &Delivered<'_>,
    passed: Option<(&LinkInterval<'_>, &LinkFlowInterval<'_>)>,
    interval: &Interval<'_>,
) -> &'static str {
    if let Some((link, _)) = passed {
        return link.place();
    }
    let has = |is_kernel| interval.possible_links(delivered).any(|link| link.is_kernel == is_kernel);
    match (has(false), has(true)) {
        (true, true) => "the router or the kernel",
        (_, false) => "the router",
        (false, true) => "the kernel",
    }
}

/// Returns the finding that packets wait or are lost outside of the links of this host.
fn elsewhere(
    delivered: &Delivered<'_>,
    passed: Option<(&LinkInterval<'_>, &LinkFlowInterval<'_>)>,
    interval: &Interval<'_>,
    what: &str,
    field: String,
) -> DeliveryFinding {
    let (strength, busy) = match passed {
        Some((link, _)) => (Strength::Strong, Some(link).filter(|link| link.direction.utilisation() >= BUSY)),
        None => (
            Strength::Medium,
            interval.possible_links(delivered).find(|link| link.direction.utilisation() >= BUSY),
        ),
    };
    if let Some(link) = busy {
        return DeliveryFinding::new(
            DeliveryCause::LinkRateLower,
            Strength::Medium,
            format!(
                "the link carries less than the {} that {} is configured for: it sends at {} of that, and {what}",
                rate(link.direction.after().rate_bps as f64),
                link.place(),
                percent(link.direction.utilisation())
            ),
            &[field, format!("{}.sent", link.path), format!("{}.rate_bps", link.path)],
            "set --rate lower, step by step, until delays no longer exceed the queue's wait; check --overhead",
        );
    }
    let (utilised, path) =
        match passed.map(|(link, _)| link).or_else(|| interval.possible_links(delivered).next()) {
            Some(link) => (
                format!(", whose link is {} utilised", percent(link.direction.utilisation())),
                link.path.clone(),
            ),
            None => (String::new(), "routers".to_owned()),
        };
    DeliveryFinding::new(
        DeliveryCause::BottleneckElsewhere,
        strength,
        format!(
            "the bottleneck is elsewhere than at {}{utilised}: {what}",
            place_of(delivered, passed, interval)
        ),
        &[field, format!("{path}.waits_us"), format!("{path}.sent")],
        "find the place with cutline doctor bottleneck --probe HOST; set --rate below the rate of the slower link, or move the router there",
    )
}

/// Returns the cause of losses: before the router, in its queue, or behind it.
fn loss(
    delivered: &Delivered<'_>,
    interval: &Interval<'_>,
    passed: Option<(&LinkInterval<'_>, &LinkFlowInterval<'_>)>,
) -> Option<DeliveryFinding> {
    let (lost, who) = (delivered.lost, socket(delivered.entry));
    let field = format!("{}.lost_messages", delivered.path);
    let share = percent(delivered.loss());
    let Some((link, flow)) = passed else {
        let mut possible = interval.possible_links(delivered);
        let first = possible.next()?;
        let dropped = total(possible.map(|link| link.dropped).chain([first.dropped]));
        if dropped >= lost / 4 {
            return None;
        }
        let what = format!(
            "{who} lost {lost} messages ({share}), and the queue of {} dropped {dropped} packets",
            place_of(delivered, passed, interval)
        );
        return Some(before_queue(Strength::Weak, &what, &[field, format!("{}.dropped", first.path)]));
    };
    let fields = [field, format!("{}.sent_messages", delivered.path), format!("{}.flows", link.path)];
    let arrived = flow.received.packets;
    if flow.dropped >= lost / 2 {
        let what = format!("it dropped {} of the {arrived} packets of {who}", flow.dropped);
        return Some(too_long(link, Strength::Medium, &what, &fields));
    }
    if delivered.sent.saturating_sub(arrived) >= lost / 2 {
        let what = format!(
            "{who} sent {} messages, of which {arrived} reached the router, and {lost} ({share}) were lost",
            delivered.sent
        );
        return Some(before_queue(Strength::Strong, &what, &fields));
    }
    let what = format!(
        "{who} lost {lost} messages ({share}) behind the router, whose queue dropped {} of them",
        flow.dropped
    );
    Some(elsewhere(delivered, passed, interval, &what, fields[0].clone()))
}

fn before_queue(strength: Strength, what: &str, fields: &[String]) -> DeliveryFinding {
    DeliveryFinding::new(
        DeliveryCause::LossBeforeQueue,
        strength,
        format!("packets are lost before the queue: {what}"),
        fields,
        "look for drops and errors on the way to the router: ip -s link, ethtool -S INTERFACE, tc -s qdisc",
    )
}

fn unexplained(delivered: &Delivered<'_>) -> DeliveryFinding {
    let who = socket(delivered.entry);
    let what = match delivered.violations("network").next() {
        Some(violation) => format!(
            "{who} violates its {} (limit {}, worst {}, for {:.1} s)",
            name(&violation.measure),
            measured(&violation.measure, violation.limit),
            measured(&violation.measure, violation.measured),
            violation.for_s
        ),
        None => format!("{who} loses {}", percent(delivered.loss())),
    };
    DeliveryFinding::new(
        DeliveryCause::NotExplained,
        Strength::Weak,
        format!("delivery is bad, and no row of this host explains it: {what}"),
        &[format!("{}.violations", delivered.path), format!("{}.lost_messages", delivered.path)],
        "run this on the host of the router, whose queue decides it, and while the fault lasts; cutline doctor bottleneck --probe HOST",
    )
}
