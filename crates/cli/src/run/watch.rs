//! The option `--watch`: a run in the terminal, while it runs. Every interval of the scenario's series is shown when it has ended.

use crate::exit::Failure;
use crate::table::{Table, number};
use cutline_scenario::Scenario;
use cutline_sim::measure::FlowInterval;
use cutline_sim::{LinkId, Network, Simulation};
use cutline_text::Printable;
use cutline_units::{Duration, Hint, Instant};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest bar of a queue, characters.
const BAR: u32 = 30;
/// Shortest time between changes of the picture, and interval of checks for an interruption.
const FRAME: std::time::Duration = std::time::Duration::from_millis(50);

/// Simulated seconds a second; `None` for as many as there can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(Option<f64>);

/// Parses a speed.
pub fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed(None));
    }
    let allowed = |speed: &f64| (0.01..=1e6).contains(speed);
    text.parse().ok().filter(allowed).map(|speed| Speed(Some(speed))).ok_or_else(|| {
        "expected the simulated seconds a second, from 0.01 to 1000000, or max; write --watch=10".to_owned()
    })
}

/// Checks that there is a terminal to draw on.
pub fn terminal() -> Result<(), Failure> {
    let why = "--watch draws on a terminal, and the standard error output is not a terminal; cutline plot draws stored results";
    if ProgressDrawTarget::stderr().is_hidden() { Err(Failure::Usage(why.to_owned())) } else { Ok(()) }
}

/// The picture of a run.
pub struct Screen {
    bar: ProgressBar,
    links: Vec<WatchedLink>,
    groups: Vec<WatchedGroup>,
    width: Duration,
    duration: Duration,
    speed: Speed,
    began: std::time::Instant,
    drawn: Option<std::time::Instant>,
    /// The number of the next interval.
    next: usize,
}

struct WatchedLink {
    id: LinkId,
    name: String,
    /// The most packets that have waited so far, which is the length of a full bar.
    most: u32,
}

struct WatchedGroup {
    name: String,
    flows: Vec<usize>,
}

impl Screen {
    /// Returns an empty picture of a run of this scenario's network.
    pub fn new(scenario: &Scenario, network: &Network, speed: Speed) -> Self {
        let style = ProgressStyle::with_template("{msg}").expect("the template's key is indicatif's");
        let links = (0..).map(LinkId).zip(network.links()).filter(|(_, link)| link.series);
        let groups = network.groups().iter().zip(0..).map(|(name, group)| {
            let members = network.flows().iter().enumerate().filter(|(_, flow)| flow.group.0 == group);
            WatchedGroup { name: name.clone(), flows: members.map(|(index, _)| index).collect() }
        });
        Self {
            bar: ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style),
            links: links.map(|(id, _)| WatchedLink { id, name: network.link_name(id), most: 1 }).collect(),
            groups: groups.filter(|group| !group.flows.is_empty()).collect(),
            width: scenario.interval,
            duration: scenario.duration,
            speed,
            began: std::time::Instant::now(),
            drawn: None,
            next: 0,
        }
    }

    /// Shows the last interval that has ended, if there is a new one, and waits until the run may continue.
    pub fn show(&mut self, simulation: &Simulation, cancel: &AtomicBool) {
        let passed = simulation.time().saturating_since(Instant::ZERO);
        let ended = (passed.as_nanos() / self.width.as_nanos()) as usize;
        let is_time = self.drawn.is_none_or(|drawn| drawn.elapsed() >= FRAME);
        if ended > self.next && (is_time || passed >= self.duration) {
            self.next = ended;
            self.drawn = Some(std::time::Instant::now());
            let picture = self.picture(simulation, passed, ended - 1);
            self.bar.set_message(picture);
            self.bar.tick();
        }
        self.wait(passed, cancel);
    }

    fn wait(&self, passed: Duration, cancel: &AtomicBool) {
        let Speed(Some(speed)) = self.speed else { return };
        let due = std::time::Duration::from_secs_f64(passed.as_secs_f64() / speed);
        while !cancel.load(Ordering::Relaxed) {
            match due.checked_sub(self.began.elapsed()) {
                Some(left) if !left.is_zero() => std::thread::sleep(left.min(FRAME)),
                _ => return,
            }
        }
    }

    fn picture(&mut self, simulation: &Simulation, passed: Duration, interval: usize) -> String {
        let real = self.began.elapsed().as_secs_f64().max(1e-9);
        let mut text = format!(
            "{:.1} s of {}, {:.0} simulated seconds a second\n\n",
            passed.as_secs_f64(),
            self.duration,
            passed.as_secs_f64() / real
        );
        if !self.links.is_empty() {
            text.push_str(&self.queues(simulation, interval));
            text.push('\n');
        }
        text.push_str(&self.flows(simulation, interval));
        text
    }

    fn queues(&mut self, simulation: &Simulation, interval: usize) -> String {
        let seconds = self.width.as_secs_f64();
        let mut table = Table::new(
            2,
            &["queue", "backlog", "packets", "wait ms", "probability", "dropped", "marked", "Mbit/s"],
        );
        for link in &mut self.links {
            let Some(found) = simulation.queue_interval(link.id, interval) else { continue };
            link.most = link.most.max(found.backlog_packets);
            let wait = (found.sent > 0).then(|| found.waited.as_millis_f64() / found.sent as f64);
            table.add(vec![
                Printable(&link.name).to_string(),
                bar(found.backlog_packets, link.most),
                found.backlog_packets.to_string(),
                or_dash(wait),
                or_dash(found.probability),
                found.dropped.to_string(),
                found.marked.to_string(),
                number(found.sent_bytes as f64 * 8e-6 / seconds),
            ]);
        }
        table.render()
    }

    fn flows(&self, simulation: &Simulation, interval: usize) -> String {
        let seconds = self.width.as_secs_f64();
        let mut table =
            Table::new(1, &["flows", "number", "kbit/s each", "queuing ms", "one-way ms", "lost %", "hint"]);
        for group in &self.groups {
            let found: Vec<FlowInterval> =
                group.flows.iter().filter_map(|flow| simulation.flow_interval(*flow, interval)).collect();
            let sum = |of: fn(&FlowInterval) -> u64| found.iter().map(of).sum::<u64>();
            let (packets, dropped) = (sum(|flow| flow.packets.into()), sum(|flow| flow.dropped.into()));
            let mean_ms = |ns: u64| (packets > 0).then(|| ns as f64 * 1e-6 / packets as f64);
            let each = sum(|flow| flow.delivered_bytes) as f64 * 8e-3 / seconds / found.len() as f64;
            let lost = dropped as f64 * 100.0 / (packets + dropped) as f64;
            table.add(vec![
                Printable(&group.name).to_string(),
                group.flows.len().to_string(),
                or_dash(Some(each).filter(|_| !found.is_empty())),
                or_dash(mean_ms(sum(|flow| flow.queuing_ns))),
                or_dash(mean_ms(sum(|flow| flow.one_way_ns))),
                or_dash(Some(lost).filter(|_| packets + dropped > 0)),
                hints(&found),
            ]);
        }
        let mut text = table.render();
        let _ = write!(text, "\nthe last {}; Ctrl-C ends the run", self.width);
        text
    }
}

/// The picture is not left on the terminal: the tables of the results follow.
impl Drop for Screen {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A bar of `#` for a part of the most.
fn bar(part: u32, most: u32) -> String {
    let full = (u64::from(part) * u64::from(BAR)).div_ceil(u64::from(most.max(1))) as usize;
    format!("{:<1$}", "#".repeat(full.min(BAR as usize)), BAR as usize)
}

/// The hints of the flows: one, or the lowest and the highest.
fn hints(found: &[FlowInterval]) -> String {
    let levels = || found.iter().filter_map(|flow| flow.hint).map(Hint::level);
    match (levels().min(), levels().max()) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => "-".to_owned(),
    }
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_a_number_or_max() {
        assert_eq!((speed("max"), speed("2.5")), (Ok(Speed(None)), Ok(Speed(Some(2.5)))));
        for wrong in ["0", "-1", "fast", "nan", "1e9"] {
            assert!(speed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_bar_is_as_long_as_its_part() {
        let length = |part, most| bar(part, most).trim_end().len();
        assert_eq!((length(0, 200), length(1, 200), length(100, 200), length(200, 200)), (0, 1, 15, 30));
        assert_eq!(bar(0, 0).len(), 30);
    }

    /// The picture of a run's interval has its queue and its groups.
    #[test]
    fn a_picture_shows_queues_and_flows() {
        let text = r#"
name = "watched"
duration = "4 s"
interval = "1 s"
[dumbbell]
rate = "1 Mbit/s"
delay = "10 ms"
access-rate = "10 Mbit/s"
access-delay = "1 ms"
queue = { aqm = "pi", limit = "50 packets" }
[[flow]]
name = "bulk"
count = 3
transport = { protocol = "tcp" }
app = { kind = "bulk" }
"#;
        let scenario = Scenario::parse(text, "w.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let network = scenario.network().unwrap();
        let mut screen = Screen::new(&scenario, &network, Speed(None));
        let mut simulation = Simulation::new(&network, &scenario.settings(1)).unwrap();
        simulation.advance(Instant::ZERO + Duration::from_secs(3));
        let picture = screen.picture(&simulation, Duration::from_secs(3), 2);
        assert!(picture.starts_with("3.0 s of 4 s, "), "{picture}");
        assert!(picture.contains("r1->r2  #"), "{picture}");
        let bulk = picture.lines().find(|line| line.starts_with("bulk")).unwrap();
        assert!(bulk.split_whitespace().nth(1) == Some("3") && bulk.ends_with(" 16"), "{picture}");
    }
}
