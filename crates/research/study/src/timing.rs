//! Timing of runs in real time.

use crate::data::Data;
use cutline_report::report::{Claim, ClaimVerdict};

/// The claim if the timing of some runs is not valid. A difference is then unclear, because the machine may be its cause.
pub(crate) fn doubted(claim: Claim) -> Claim {
    if claim.holds != ClaimVerdict::Differs {
        return claim;
    }
    let doubt = "It differs here, but the timing of some runs is not valid: see below.";
    let note = [claim.note.as_str(), doubt].join(" ").trim().to_owned();
    Claim { holds: ClaimVerdict::Unclear, note, ..claim }
}

/// A note about the timing of an experiment's runs; `None` for a simulation.
pub(crate) fn note(experiment: &str, data: &Data) -> Option<String> {
    let errors = data.timing.iter().filter_map(|row| row.departure_error_p99_ms);
    let worst = errors.max_by(f64::total_cmp).map_or_else(String::new, |worst| {
        format!("; the worst 99th percentile of the departure error is {worst:.2} ms")
    });
    let bad: Vec<String> = data
        .timing
        .iter()
        .filter(|row| !row.timing_ok)
        .map(|row| format!("{} with seed {}: {}", row.point, row.seed, row.problem))
        .collect();
    let runs = data.timing.len();
    if runs == 0 {
        return None;
    }
    Some(if bad.is_empty() {
        format!("{experiment}: the timing of all {runs} runs is valid{worst}.")
    } else {
        format!(
            "{experiment}: the timing of {} of {runs} runs is not valid (--resume runs them again): {}.",
            bad.len(),
            bad.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_whose_timing_is_not_valid_show_no_difference() {
        let claim = |holds, note: &str| Claim {
            holds,
            note: note.to_owned(),
            ..Claim::new("lab-cheat.others", "3", "others lose little")
        };
        assert_eq!(doubted(claim(ClaimVerdict::Holds, "as before")), claim(ClaimVerdict::Holds, "as before"));
        let unclear = doubted(claim(ClaimVerdict::Differs, "Linux waits."));
        assert_eq!(unclear.holds, ClaimVerdict::Unclear);
        assert!(unclear.note.starts_with("Linux waits. It differs here"), "{}", unclear.note);
        assert!(doubted(claim(ClaimVerdict::Differs, "")).note.starts_with("It differs"));
    }
}
