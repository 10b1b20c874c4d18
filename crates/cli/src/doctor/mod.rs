//! `cutline doctor`: checks the machine, finds the bottleneck of a network, and explains bad delivery.

mod bottleneck;
mod explain;

use crate::exit::Failure;
use crate::{interrupt, output};
use anstyle::{AnsiColor, Style};
use clap::Subcommand;
use cutline_doctor::{Finding, FindingGroup, Findings, ReportDocument, State, Survey, Use};
use cutline_sys::{interface, namespace};
use std::cmp::Reverse;
use std::collections::HashSet;

/// Check whether this machine can run the router and the laboratory
///
/// Tests features without harm in a separate network namespace, and lists available and missing ones, with remedies
/// (docs/guide/doctor.md). Takes about a second. Without root some features cannot be tested; they are listed
/// as unknown. The interfaces in the arguments are checked as interfaces of the router.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    question: Option<Question>,
    /// Interfaces to check [default: all that are up]
    #[arg(value_name = "INTERFACE")]
    interfaces: Vec<String>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Question {
    Bottleneck(bottleneck::Args),
    Explain(explain::Args),
}

const EXAMPLES: &str = "Examples:
  cutline doctor
  cutline doctor eth0 eth1
  cutline doctor --json | jq '.findings[] | select(.state == \"missing\")'
  cutline doctor bottleneck --stats router.jsonl --probe 192.0.2.1
  cutline doctor explain

Exit codes: 0 the router and the laboratory can run; 1 something is missing; 2 invalid arguments.";

pub fn execute(args: &Args) -> Result<(), Failure> {
    match &args.question {
        Some(Question::Bottleneck(args)) => return bottleneck::execute(args),
        Some(Question::Explain(args)) => return explain::execute(args),
        None => {}
    }
    for name in &args.interfaces {
        interface::index(name)?;
    }
    // An interrupted survey runs to its end, which takes at most a second, and removes the namespace that it created.
    let _noticed = interrupt::cancel_flag("The command ends within a second.".to_owned())?;
    // Removes the namespaces of killed processes. An error is ignored: without root there are none.
    drop(namespace::sweep());
    let survey = Survey::take();
    let chosen = chosen(args, &survey);
    let report = cutline_doctor::report(&survey, &chosen, !args.interfaces.is_empty());
    if args.json {
        output::print_json(&ReportDocument::new(&report))?;
    } else {
        output::print_wrapped(&rendered(&report))?;
    }
    verdict(&report)
}

/// Returns the interfaces of the arguments, or all that are up, without the loopback.
fn chosen(args: &Args, survey: &Survey) -> Vec<String> {
    if !args.interfaces.is_empty() {
        return args.interfaces.clone();
    }
    let links = survey.links.as_deref().unwrap_or_default();
    let up = links.iter().filter(|link| link.up && link.name != "lo");
    up.map(|link| link.name.clone()).collect()
}

/// Returns an error if the router or the laboratory cannot run.
fn verdict(report: &Findings) -> Result<(), Failure> {
    let not_ready = Use::ALL.into_iter().filter(|&purpose| !report.missing(purpose).is_empty());
    let messages: Vec<_> = not_ready
        .map(|purpose| {
            let subjects: Vec<_> =
                report.missing(purpose).iter().map(|finding| finding.subject.as_str()).collect();
            format!("the {} needs {}", purpose.name(), subjects.join(", "))
        })
        .collect();
    if messages.is_empty() { Ok(()) } else { Err(Failure::Failed(messages.join("; "))) }
}

/// Returns the report as text: groups of findings, the readiness of each use, the next steps.
fn rendered(report: &Findings) -> String {
    let width = widest(report.findings());
    let group = |group: &FindingGroup| {
        let lines = group.findings.iter().map(|finding| line(finding, width, &finding.what));
        format!("{BOLD}{}{BOLD:#}\n{}\n", group.title, lines.collect::<String>())
    };
    let ready = |purpose: Use| {
        let state = if report.missing(purpose).is_empty() { "ready" } else { "not ready" };
        format!("{BOLD}{}: {state}{BOLD:#}\n", purpose.name())
    };
    let groups: String = report.groups.iter().map(group).collect();
    groups + &Use::ALL.map(ready).concat() + &to_do(report)
}

const BOLD: Style = Style::new().bold();

fn style(state: State) -> Style {
    match state {
        State::Ok => AnsiColor::Green.on_default(),
        State::Note | State::Unknown => AnsiColor::Cyan.on_default(),
        State::Warning => AnsiColor::Yellow.on_default().bold(),
        State::Missing => AnsiColor::Red.on_default().bold(),
    }
}

fn widest<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> usize {
    findings.into_iter().map(|finding| finding.subject.chars().count()).max().unwrap_or(0)
}

fn line(finding: &Finding, width: usize, text: &str) -> String {
    let style = style(finding.state);
    let (state, subject) = (finding.state.name(), &finding.subject);
    format!("  {style}{state:<7}{style:#}  {subject:<width$}  {text}\n")
}

/// Returns the next steps, the worst finding first. A step that several interfaces have in common is there once.
fn to_do(report: &Findings) -> String {
    let mut seen = HashSet::new();
    let mut steps: Vec<&Finding> = report.findings().filter(|finding| finding.do_next.is_some()).collect();
    steps.retain(|finding| seen.insert((&finding.subject, &finding.do_next)));
    steps.sort_by_key(|finding| Reverse(finding.state));
    if steps.is_empty() {
        return String::new();
    }
    let width = widest(steps.iter().copied());
    let lines =
        steps.iter().map(|finding| line(finding, width, finding.do_next.as_deref().unwrap_or_default()));
    format!("\n{BOLD}what to do next{BOLD:#}\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Findings {
        let findings = vec![
            Finding::warning("clock", "slow", "choose another"),
            Finding::missing("iproute2", "gone", &[Use::Laboratory], "install it"),
            Finding::ok("cores", "2"),
        ];
        Findings { groups: vec![FindingGroup { title: "host".into(), findings }] }
    }

    #[test]
    fn the_worst_finding_is_the_first_step() {
        let text = anstream::adapter::strip_str(&rendered(&report())).to_string();
        let expected = "host\n  warning  clock     slow\n  missing  iproute2  gone\n  ok       cores     2\n\n\
                        router: ready\nlaboratory: not ready\n\nwhat to do next\n  \
                        missing  iproute2  install it\n  warning  clock     choose another\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_step_for_several_interfaces_is_printed_once() {
        let interface = |name: &str| FindingGroup {
            title: format!("interface {name}"),
            findings: vec![Finding::note("addresses", name).then("let it route")],
        };
        let text = to_do(&Findings { groups: vec![interface("eth0"), interface("eth1")] });
        assert_eq!(text.matches("let it route").count(), 1, "{text}");
    }

    #[test]
    fn a_missing_feature_is_a_failure_that_names_it() {
        let Err(Failure::Failed(message)) = verdict(&report()) else { panic!("expected a failure") };
        assert_eq!(message, "the laboratory needs iproute2");
        assert!(verdict(&Findings { groups: Vec::new() }).is_ok());
    }
}
