//! TCP: congestion controls, and whether its buffers let a flow fill a long path.

use crate::finding::Finding;
use crate::probe::{Answer, Congestion};
use crate::survey::{CONTROLS, Survey};
use cutline_units::{Bytes, Duration, Rate};

/// The path that buffers have to be enough for: 15 Mbit/s and a round-trip time of 300 ms, as in the TSQ paper.
const PATH_RATE: Rate = Rate::from_mbps(15);
const PATH_RTT: Duration = Duration::from_millis(300);

/// Controls and buffers.
pub fn tcp(survey: &Survey) -> Vec<Finding> {
    let mut findings = vec![controls(&survey.congestion), allowed(&survey.congestion)];
    let buffers = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];
    findings.extend(buffers.iter().filter_map(|name| buffer(name, survey.sysctl(name)?)));
    let limits = ["net.core.rmem_max", "net.core.wmem_max"];
    findings.extend(limits.iter().filter_map(|name| Some(Finding::ok(*name, survey.sysctl(name)?))));
    findings
}

fn controls(congestion: &Congestion) -> Finding {
    let default = congestion.default.as_deref().unwrap_or("unknown");
    let absent: Vec<_> =
        congestion.tried.iter().filter(|(_, answer)| matches!(answer, Answer::No(_))).collect();
    let what = format!("{}; by default {default}", congestion.available.join(", "));
    if absent.is_empty() {
        return Finding::ok("congestion controls", what);
    }
    let names: Vec<_> = absent.iter().map(|(name, _)| name.as_str()).collect();
    let what = format!("{what}; not there: {}", names.join(", "));
    // Reno is always there; a kernel may do without the others, and experiments that name them.
    Finding::warning("congestion controls", what, "experiments must not name what is not there")
}

/// Other users' programs may ask for fewer.
fn allowed(congestion: &Congestion) -> Finding {
    let is_refused = |name: &&str| {
        congestion.available.iter().any(|has| has == name)
            && !congestion.allowed.iter().any(|has| has == name)
    };
    let refused: Vec<_> = CONTROLS.into_iter().filter(|name| is_refused(name)).collect();
    if refused.is_empty() {
        return Finding::ok("for any user", congestion.allowed.join(", "));
    }
    let what = format!("{}; only root may ask for {}", congestion.allowed.join(", "), refused.join(", "));
    let all = congestion.available.join(" ");
    Finding::note("for any user", what)
        .then(format!("sysctl net.ipv4.tcp_allowed_congestion_control=\"{all}\""))
}

/// The third number is the most that the kernel takes for a connection. About half of it is a window: the rest is the
/// kernel's own book-keeping.
fn buffer(name: &str, value: &str) -> Option<Finding> {
    let most = Bytes::new(value.split(' ').nth(2)?.parse().ok()?);
    let rate = Rate::from_bps((most.bits() as f64 / 2.0 / PATH_RTT.as_secs_f64()).round() as u64);
    let mbps = rate.as_bps() as f64 / 1e6;
    let what = format!("{most} at most: {mbps:.1} Mbit/s for a flow at {PATH_RTT} round-trip time");
    if rate >= PATH_RATE {
        return Some(Finding::ok(name, what));
    }
    let next = format!("sysctl {name}=\"4096 131072 6291456\"");
    Some(Finding::warning(name, format!("{what}; a long path is not filled"), next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::State;
    use crate::survey::perfect;

    #[test]
    fn a_perfect_host_is_ok() {
        let found = tcp(&perfect());
        assert!(found.iter().all(|finding| finding.state == State::Ok), "{found:?}");
    }

    #[test]
    fn controls_that_are_not_there_or_not_allowed() {
        let mut survey = perfect();
        survey.congestion.tried[2].1 = Answer::No("No such file or directory".into());
        survey.congestion.available = vec!["reno".into(), "cubic".into()];
        survey.congestion.allowed = vec!["reno".into()];
        let found = tcp(&survey);
        assert_eq!((found[0].state, found[1].state), (State::Warning, State::Note));
        assert!(found[0].what.ends_with("not there: bbr") && found[1].what.ends_with("ask for cubic"));
    }

    /// 562,500 B of window at 15 Mbit/s and 300 ms.
    #[test]
    fn buffers_are_held_against_a_long_path() {
        let state = |most: u64| buffer("tcp_rmem", &format!("4096 1 {most}")).unwrap().state;
        assert_eq!((state(1_125_000), state(1_124_000)), (State::Ok, State::Warning));
        assert_eq!(buffer("tcp_rmem", "4096 1"), None);
        assert_eq!(buffer("tcp_rmem", "4096 1 much"), None);
    }
}
