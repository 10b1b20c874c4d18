//! `cutline doctor`: what this machine offers, and whether the bottleneck is at our queue.

mod bottleneck;

use crate::exit::Failure;
use crate::{interrupt, output};
use anstyle::{AnsiColor, Style};
use clap::Subcommand;
use cutline_doctor::{Finding, Group, Report, ReportDocument, State, Survey, Use};
use cutline_sys::{interface, namespace};
use std::cmp::Reverse;

/// What this machine offers to the router and the laboratory
///
/// Tries what can be tried without harm, in a network namespace of its own, and says what is there, what is not, and what
/// to do about it (docs/guide/doctor.md). Takes about a second. As root it can look at everything; without, it says what
/// it could not look at. Interfaces that are named are judged as the router's.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    question: Option<Question>,
    /// The interfaces to look at [default: all that are up]
    #[arg(value_name = "INTERFACE")]
    interfaces: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Question {
    Bottleneck(bottleneck::Args),
}

const EXAMPLES: &str = "Examples:
  cutline doctor
  cutline doctor eth0 eth1
  cutline doctor --json | jq '.findings[] | select(.state == \"missing\")'
  cutline doctor bottleneck --stats router.jsonl --probe 192.0.2.1

Exit codes: 0 all that the router and the laboratory need is there; 1 something is missing; 2 bad arguments.";

pub fn execute(args: &Args) -> Result<(), Failure> {
    if let Some(Question::Bottleneck(args)) = &args.question {
        return bottleneck::execute(args);
    }
    for name in &args.interfaces {
        interface::index(name)?;
    }
    // Whoever interrupts it waits for its end, a second at most: what it has made is removed there.
    let _noticed = interrupt::cancel_flag("It ends within a second.".to_owned())?;
    // What a killed process has left behind; without root there is none of ours, and it cannot be removed either.
    drop(namespace::sweep());
    let survey = Survey::take();
    let chosen = chosen(args, &survey);
    let report = cutline_doctor::report(&survey, &chosen, !args.interfaces.is_empty());
    if args.json {
        output::print_json(&ReportDocument::new(&report))?;
    } else {
        output::print(&rendered(&report))?;
    }
    verdict(&report)
}

/// Those that were named, or else those that are up; the loopback is nobody's bottleneck.
fn chosen(args: &Args, survey: &Survey) -> Vec<String> {
    if !args.interfaces.is_empty() {
        return args.interfaces.clone();
    }
    let links = survey.links.as_deref().unwrap_or_default();
    let up = links.iter().filter(|link| link.up && link.name != "lo");
    up.map(|link| link.name.clone()).collect()
}

/// Exit code 1 when something is missing.
fn verdict(report: &Report) -> Result<(), Failure> {
    let not_ready = Use::ALL.into_iter().filter(|&of| !report.missing(of).is_empty());
    let told: Vec<_> = not_ready
        .map(|of| {
            let subjects: Vec<_> =
                report.missing(of).iter().map(|finding| finding.subject.as_str()).collect();
            format!("the {} needs {}", of.name(), subjects.join(", "))
        })
        .collect();
    if told.is_empty() { Ok(()) } else { Err(Failure::Failed(told.join("; "))) }
}

/// For people: groups of findings, then what is ready, then what to do.
fn rendered(report: &Report) -> String {
    let width = widest(report.findings());
    let group = |group: &Group| {
        let lines = group.findings.iter().map(|finding| line(finding, width, &finding.what));
        format!("{BOLD}{}{BOLD:#}\n{}\n", group.title, lines.collect::<String>())
    };
    let ready = |of: Use| {
        let state = if report.missing(of).is_empty() { "ready" } else { "not ready" };
        format!("{BOLD}{}: {state}{BOLD:#}\n", of.name())
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

/// The worst first.
fn to_do(report: &Report) -> String {
    let mut steps: Vec<&Finding> = report.findings().filter(|finding| finding.do_next.is_some()).collect();
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

    fn report() -> Report {
        let findings = vec![
            Finding::warning("clock", "slow", "choose another"),
            Finding::missing("iproute2", "gone", &[Use::Laboratory], "install it"),
            Finding::ok("cores", "2"),
        ];
        Report { groups: vec![Group { title: "host".into(), findings }] }
    }

    #[test]
    fn the_worst_is_to_be_done_first() {
        let text = anstream::adapter::strip_str(&rendered(&report())).to_string();
        let expected = "host\n  warning  clock     slow\n  missing  iproute2  gone\n  ok       cores     2\n\n\
                        router: ready\nlaboratory: not ready\n\nwhat to do next\n  \
                        missing  iproute2  install it\n  warning  clock     choose another\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_missing_is_a_failure_that_names_it() {
        let Err(Failure::Failed(message)) = verdict(&report()) else { panic!("it fails") };
        assert_eq!(message, "the laboratory needs iproute2");
        assert!(verdict(&Report { groups: Vec::new() }).is_ok());
    }
}
