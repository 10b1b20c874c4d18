//! Findings about the host: privileges, kernel, tools, timers.

use crate::finding::{Finding, Use};
use crate::format::approximately;
use crate::probe::{Answer, CAPABILITIES, Lateness, Waiting};
use crate::survey::Survey;
use cutline_units::Duration;

/// The longest time that reading the clock should take. The router reads it once or twice for each frame.
const SLOW_CLOCK: Duration = Duration::from_micros(1);
/// The transmission time of a frame of 1500 B at 15 Mbit/s. If departures are later than that, they come in bursts.
const LATE: Duration = Duration::from_micros(800);

/// Capabilities, and real-time scheduling.
pub fn privileges(survey: &Survey) -> Vec<Finding> {
    let needs: [(&str, &[Use]); 3] = [
        ("CAP_NET_RAW", &[Use::Router, Use::Laboratory]),
        ("CAP_NET_ADMIN", &[Use::Laboratory]),
        ("CAP_SYS_ADMIN", &[Use::Laboratory]),
    ];
    let capability = |&(_, name, what): &(_, &'static str, &str)| {
        let needed = needs.iter().find(|(needed, _)| *needed == name);
        match (survey.privileges.has.contains(&name), needed) {
            (true, _) => Finding::ok(name, what),
            (false, None) => Finding::note(name, format!("not available; for {what}")),
            (false, Some((_, uses))) => {
                Finding::missing(name, format!("not available; for {what}"), uses, "run it as root")
            }
        }
    };
    let fifo = match &survey.privileges.fifo {
        Answer::Yes => Finding::ok("SCHED_FIFO", "available: `chrt -f 1 cutline router ...`"),
        Answer::No(why) | Answer::Unknown(why) => {
            Finding::note("SCHED_FIFO", format!("not available: {why}"))
                .then("run it as root; in a container, give its control group real-time bandwidth")
        }
    };
    CAPABILITIES.iter().map(capability).chain([fifo]).collect()
}

/// Kernel, cores, clock, tools, whether the host routes.
pub fn host(survey: &Survey) -> Vec<Finding> {
    let kernel = &survey.kernel;
    vec![
        Finding::ok("kernel", format!("Linux {}", kernel.release)),
        cores(kernel.cores),
        clock(kernel.clock_source.as_deref(), kernel.clock_read),
        iproute2(survey),
        forwarding(survey),
    ]
}

fn cores(cores: usize) -> Finding {
    if cores > 1 {
        return Finding::ok("cores", cores.to_string());
    }
    Finding::note(
        "cores",
        "one: the router shares it with all other processes, and --spin would keep it busy",
    )
}

fn clock(source: Option<&str>, read: Duration) -> Finding {
    let what = format!("{}, {} per reading", source.unwrap_or("unknown"), approximately(read));
    if read < SLOW_CLOCK {
        return Finding::ok("clock", what);
    }
    let next =
        "choose a faster source from /sys/devices/system/clocksource/clocksource0/available_clocksource";
    Finding::warning("clock", format!("{what}: slow"), next)
}

fn iproute2(survey: &Survey) -> Finding {
    let install = "install iproute2";
    match (&survey.tools.ip, &survey.tools.tc) {
        (Some(ip), Some(_)) => Finding::ok("iproute2", ip.clone()),
        (Some(_), None) => {
            Finding::warning("iproute2", "`tc` is missing: queue disciplines cannot be examined", install)
        }
        (None, _) => Finding::missing("iproute2", "`ip` is missing", &[Use::Laboratory], install),
    }
}

/// The settings of forwarding that are on.
fn forwarding_settings(survey: &Survey) -> Vec<&'static str> {
    let is_on = |name: &&str| survey.sysctl(name).is_some_and(|value| value != "0");
    ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"].into_iter().filter(is_on).collect()
}

/// Returns whether the host forwards packets.
pub fn is_forwarding(survey: &Survey) -> bool {
    !forwarding_settings(survey).is_empty()
}

fn forwarding(survey: &Survey) -> Finding {
    let on = forwarding_settings(survey);
    if on.is_empty() {
        return Finding::ok("forwarding", "off: only the router forwards packets");
    }
    let what = format!("{} on: this host routes", on.join(" and "));
    Finding::note("forwarding", what).then(format!("`{}` shapes forwarded traffic", crate::router_up(&[])))
}

/// Returns the findings about the lateness of sleeps.
pub fn timers(lateness: &[Lateness], fifo_allowed: bool) -> Vec<Finding> {
    lateness.iter().filter_map(|of| timer(of, fifo_allowed)).collect()
}

fn timer(of: &Lateness, fifo_allowed: bool) -> Option<Finding> {
    let [p50, p99] = [of.late.quantile(0.5)?, of.late.quantile(0.99)?].map(approximately);
    let class = if of.fifo { ", SCHED_FIFO" } else { "" };
    let subject = format!("{}{class}", of.waiting.name());
    let what = format!("late by {p50} (p50), {p99} (p99) over {} sleeps", of.late.count());
    let exact = if fifo_allowed && !of.fifo { "`chrt -f 1 cutline router ...`, or --spin" } else { "--spin" };
    Some(match of.waiting {
        // The router waits with ppoll. The others are shown for comparison.
        Waiting::Poll if p99 > LATE => Finding::warning(
            subject,
            format!("{what}: longer than the transmission time of 1500 B at 15 Mbit/s"),
            format!("use {exact}; measure again when the machine is idle"),
        ),
        _ => Finding::ok(subject, what),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::State::{self, Missing, Note, Ok, Warning};
    use crate::survey::perfect;
    use cutline_units::Histogram;

    fn states(findings: &[Finding]) -> Vec<State> {
        findings.iter().map(|finding| finding.state).collect()
    }

    #[test]
    fn a_perfect_host_has_no_next_step() {
        let survey = perfect();
        let all = [privileges(&survey), host(&survey), timers(&survey.lateness, true)].concat();
        assert!(all.iter().all(|finding| finding.state == State::Ok && finding.do_next.is_none()), "{all:?}");
    }

    #[test]
    fn missing_privileges_are_shown_with_their_purpose() {
        let mut survey = perfect();
        survey.privileges.has = vec!["CAP_NET_RAW"];
        survey.privileges.fifo = Answer::No("Operation not permitted".into());
        let found = privileges(&survey);
        assert_eq!(states(&found), [Ok, Missing, Missing, Note, Note, Note, Note]);
        assert_eq!(found[1].needed_for, [Use::Laboratory]);
        assert!(found[6].what.contains("not permitted"), "{found:?}");
    }

    #[test]
    fn findings_about_tools_clock_cores_and_forwarding() {
        let mut survey = perfect();
        survey.kernel.cores = 1;
        survey.kernel.clock_read = Duration::from_micros(3);
        survey.tools.ip = None;
        survey.sysctls[0].value = Some("1".into());
        let found = host(&survey);
        assert_eq!(states(&found), [Ok, Note, Warning, Missing, Note]);
        assert!(found[4].what.starts_with("net.ipv4.ip_forward on:"), "{found:?}");
    }

    #[test]
    fn late_timers_are_a_warning_for_the_way_that_the_router_waits() {
        let of = |waiting, fifo, micros| {
            let mut late = Histogram::default();
            (0..10).for_each(|_| late.record(Duration::from_micros(micros)));
            Lateness { waiting, fifo, late }
        };
        let state = |lateness| timer(&lateness, true).unwrap().state;
        assert_eq!(state(of(Waiting::Poll, false, 2000)), State::Warning);
        assert_eq!(state(of(Waiting::Nanosleep, false, 2000)), State::Ok);
        assert_eq!(state(of(Waiting::Poll, false, 300)), State::Ok);
        let next = |fifo, allowed| timer(&of(Waiting::Poll, fifo, 2000), allowed).unwrap().do_next.unwrap();
        assert!(next(false, true).contains("chrt") && !next(true, true).contains("chrt"));
        assert!(!next(false, false).contains("chrt"));
        let empty = Lateness { waiting: Waiting::Poll, fifo: false, late: Histogram::default() };
        assert_eq!(timer(&empty, true), None);
    }
}
