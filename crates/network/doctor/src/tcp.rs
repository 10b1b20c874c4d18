//! Findings about TCP: congestion controls, and whether the buffers are large enough for a long path.

use crate::finding::Finding;
use crate::probe::{Answer, Congestion};
use crate::survey::{CONTROLS, Survey};
use cutline_units::{Bytes, Duration, Rate};

/// The rate of the path for which buffers should be large enough, as in the TSQ paper.
const PATH_RATE: Rate = Rate::from_mbps(15);
/// The round-trip time of this path.
const PATH_RTT: Duration = Duration::from_millis(300);

/// Congestion controls and buffers.
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
    let what = format!("{what}; not available: {}", names.join(", "));
    // Reno is always available. Only experiments that name them need the others.
    Finding::warning("congestion controls", what, "do not use them in experiments")
}

/// The congestion controls that programs of other users may select.
fn allowed(congestion: &Congestion) -> Finding {
    let is_refused = |name: &&str| {
        congestion.available.iter().any(|has| has == name)
            && !congestion.allowed.iter().any(|has| has == name)
    };
    let refused: Vec<_> = CONTROLS.into_iter().filter(|name| is_refused(name)).collect();
    if refused.is_empty() {
        return Finding::ok("for any user", congestion.allowed.join(", "));
    }
    let what = format!("{}; only root may select {}", congestion.allowed.join(", "), refused.join(", "));
    let all = congestion.available.join(" ");
    Finding::note("for any user", what)
        .then(format!("sysctl net.ipv4.tcp_allowed_congestion_control=\"{all}\""))
}

/// The third number is the largest buffer of a connection. About half of it is available to the window; the kernel uses the
/// rest for its own data.
fn buffer(name: &str, value: &str) -> Option<Finding> {
    let max = Bytes::new(value.split(' ').nth(2)?.parse().ok()?);
    let rate = Rate::from_bps((max.bits() as f64 / 2.0 / PATH_RTT.as_secs_f64()).round() as u64);
    let mbps = rate.as_bps() as f64 / 1e6;
    let what = format!("at most {max}: {mbps:.1} Mbit/s for a flow with a round-trip time of {PATH_RTT}");
    if rate >= PATH_RATE {
        return Some(Finding::ok(name, what));
    }
    let next = format!("sysctl {name}=\"4096 131072 6291456\"");
    Some(Finding::warning(name, format!("{what}; a flow cannot use all of a long path"), next))
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
    fn controls_that_are_missing_or_not_allowed() {
        let mut survey = perfect();
        survey.congestion.tried[2].1 = Answer::No("No such file or directory".into());
        survey.congestion.available = vec!["reno".into(), "cubic".into()];
        survey.congestion.allowed = vec!["reno".into()];
        let found = tcp(&survey);
        assert_eq!((found[0].state, found[1].state), (State::Warning, State::Note));
        assert!(found[0].what.ends_with("not available: bbr") && found[1].what.ends_with("select cubic"));
    }

    /// A window of 562,500 B fills a path of 15 Mbit/s and 300 ms.
    #[test]
    fn buffers_are_compared_with_a_long_path() {
        let state = |max: u64| buffer("tcp_rmem", &format!("4096 1 {max}")).unwrap().state;
        assert_eq!((state(1_125_000), state(1_124_000)), (State::Ok, State::Warning));
        assert_eq!(buffer("tcp_rmem", "4096 1"), None);
        assert_eq!(buffer("tcp_rmem", "4096 1 much"), None);
    }
}
