//! Findings about queue disciplines of the kernel and eBPF. Cutline does not need them; experiments compare with them.

use crate::finding::Finding;
use crate::probe::{Answer, Bpf};
use crate::survey::Survey;

/// Kinds of queue disciplines, and requirements of a queue discipline in eBPF.
pub fn queues(survey: &Survey) -> Vec<Finding> {
    let mut findings = kinds(&survey.kinds);
    if let Some(default) = survey.sysctl("net.core.default_qdisc") {
        findings.push(Finding::ok("default", default));
    }
    findings.extend(bpf(&survey.bpf));
    findings
}

/// One finding for the available kinds, one for the missing kinds, one for those that could not be tried.
fn kinds(kinds: &[(&'static str, Answer)]) -> Vec<Finding> {
    let those = |is: &dyn Fn(&Answer) -> bool| {
        let names: Vec<_> = kinds.iter().filter(|(_, answer)| is(answer)).map(|(kind, _)| *kind).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let available = those(&Answer::is_yes).map(|names| Finding::ok("available", names));
    let missing = those(&|answer| matches!(answer, Answer::No(_)))
        .map(|names| Finding::note("not available", format!("{names} (the router needs none of them)")));
    let unknown = those(&|answer| matches!(answer, Answer::Unknown(_)))
        .map(|names| Finding::unknown("not tried", names).then("run it as root"));
    [available, missing, unknown].into_iter().flatten().collect()
}

fn bpf(bpf: &Bpf) -> Vec<Finding> {
    let compiled = match bpf.jit {
        Some(true) => "can be loaded and are compiled",
        Some(false) => "can be loaded but are interpreted (net.core.bpf_jit_enable)",
        None => "can be loaded",
    };
    let supported = if bpf.file_system {
        "supported: `cutline qdisc` puts TSQ and Sieve into the kernel"
    } else {
        "supported, but no bpffs at /sys/fs/bpf: `mount -t bpf bpf /sys/fs/bpf`, and `cutline qdisc` puts TSQ and Sieve into the kernel"
    };
    // The kernel lets only compiled programs call its functions, and a queue calls some.
    let interpreted = "programs are not compiled: `sysctl -w net.core.bpf_jit_enable=1`";
    let queue = match bpf.jit {
        Some(false) if bpf.qdisc.is_yes() => Answer::No(interpreted.to_owned()),
        _ => bpf.qdisc.clone(),
    };
    vec![
        Finding::optional("eBPF programs", &bpf.programs, compiled),
        Finding::optional("XDP programs", &bpf.xdp, "can be loaded"),
        Finding::optional("BTF", &bpf.btf, "the kernel has type information"),
        qdisc(&queue, supported),
    ]
}

/// Returns whether `cutline qdisc` can work; where it cannot, the router can be used instead.
fn qdisc(answer: &Answer, supported: &str) -> Finding {
    let finding = Finding::optional("eBPF qdiscs", answer, supported);
    match answer {
        Answer::No(_) => finding.then("`cutline router up` has the same queues outside of the kernel"),
        _ => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::State;
    use crate::survey::perfect;

    #[test]
    fn kinds_are_grouped_by_their_answers() {
        let found = kinds(&[
            ("htb", Answer::Yes),
            ("fq", Answer::No("the kernel has none".into())),
            ("tbf", Answer::Yes),
            ("pie", Answer::Unknown("no list".into())),
        ]);
        let texts: Vec<_> = found.iter().map(|finding| (finding.state, finding.what.as_str())).collect();
        let expected = [
            (State::Ok, "htb, tbf"),
            (State::Note, "fq (the router needs none of them)"),
            (State::Unknown, "pie"),
        ];
        assert_eq!(texts, expected);
    }

    /// A kernel refuses the programs of a queue where it only interprets programs.
    #[test]
    fn queues_in_the_kernel_need_compiled_programs() {
        let mut survey = perfect();
        let found = |survey: &Survey| qdisc_finding(&bpf(&survey.bpf));
        assert_eq!(found(&survey).0, State::Ok);
        survey.bpf.jit = Some(false);
        let (state, what) = found(&survey);
        assert!(state == State::Note && what.contains("net.core.bpf_jit_enable=1"), "{state:?}: {what}");
    }

    /// The state and the text of the last finding, which is about queues in the kernel.
    fn qdisc_finding(findings: &[Finding]) -> (State, String) {
        let last = findings.last().unwrap();
        (last.state, last.what.clone())
    }

    #[test]
    fn queues_in_the_kernel_are_not_required() {
        let mut survey = perfect();
        let no = || Answer::No("Function not implemented".into());
        survey.bpf = Bpf { programs: no(), xdp: no(), btf: no(), qdisc: no(), jit: None, file_system: false };
        survey.kinds.iter_mut().for_each(|(_, answer)| *answer = no());
        let found = queues(&survey);
        assert!(found.iter().all(|finding| finding.needed_for.is_empty() && finding.state <= State::Note));
        assert!(found.iter().any(|finding| finding.what.contains("Function not implemented")));
    }
}
