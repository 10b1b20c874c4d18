//! Real programs in the places of flows, each over a pair of gateways ([`cutline_gateway`]), and their measurements.
//!
//! ```text
//! NetVideo  ffmpeg ── gateway ════ reserved ════ gateway ── ffmpeg        all four at the flow's ends
//! DIRM      server ── gateway ════ reserved ════ gateway ── client        the gateways at nodes of their own
//! ```
//!
//! The gateways record their delivery. Of the video these are rates, losses, delays and jitters of its messages. Of DIRM they are rates;
//! the delay of an image is its client's waiting time.

use super::control::LinkShapers;
use super::network::{Ends, Nodes};
use super::outcome::{Measured, connected, interval_count};
use crate::LabError;
use crate::programs::dirm::{Client, Outcome as SlideOutcome, Requests, Server, Slide, Slideshow};
use crate::programs::netvideo::{Film, Pictures, Receiver, Sender, Viewing, compare, picture};
use crate::threads::punctual;
use cutline_gateway::{Gateway, GatewayRoute, GatewaySide, Limits, Plan, ProgramTransport};
use cutline_results::DistributionRow;
use cutline_scenario::spec::{ProgramSpec, QosSpec};
use cutline_sim::measure::{DelayRecord, FlowInterval, FlowRecord, FlowTotals};
use cutline_sim::qos::{Passage, QosRecord};
use cutline_sim::{FlowOutcome, FlowSpec, SimulationSettings};
use cutline_socket::{IfRefused, QosOptions};
use cutline_sys::lock;
use cutline_sys::reactor::wait;
use cutline_sys::{SysError, now};
use cutline_transport::endpoint::TransportCounts;
use cutline_units::{Duration, Instant};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time;
use tempfile::TempDir;

/// Port at which programs and gateways listen beside that of the QoS connection.
const NEAR_PORT: u16 = 5600;
pub const PROGRAM_PORT: u16 = 5700;
/// The images of section III.C: 480 kbit/s of 38 KB each in the mean.
const IMAGES_PER_SECOND: f64 = 1.58;
/// Time that a receiver needs to listen, which it does not report.
const LISTENING: Duration = Duration::from_secs(1);
/// Time for which the last messages may be under way.
const LAST: Duration = Duration::from_millis(1500);
/// Time without a message after which a receiver takes the film for over. Asked to end, ffmpeg waits as long
/// for the next one.
const PATIENCE: time::Duration = time::Duration::from_secs(6);

/// One film is compared at a time.
static COMPARING: Mutex<()> = Mutex::new(());

/// The programs, and the places of their files.
#[derive(Clone, Debug)]
pub struct Programs {
    /// Folder in which programs are built, once for all runs.
    folder: PathBuf,
    /// Folder for pictures of the viewer's film; none if `None`.
    pictures: Option<PathBuf>,
}

impl Programs {
    /// Programs that are built in a folder, which is created.
    pub fn new(folder: &Path) -> Self {
        Self { folder: absolute(folder), pictures: None }
    }

    /// Puts pictures of a video's viewer into a folder, which is created.
    #[must_use]
    pub fn with_pictures(self, folder: &Path) -> Self {
        Self { pictures: Some(absolute(folder)), ..self }
    }

    /// Returns the program among those needed that is not installed.
    pub fn missing() -> Option<&'static str> {
        let runs = |(program, argument): &(&str, &str)| {
            let mut command = std::process::Command::new(program);
            let silent = std::process::Stdio::null;
            command.arg(argument).stdin(silent()).stdout(silent()).stderr(silent()).status().is_ok()
        };
        let needed = [("ffmpeg", "-version"), ("omniidl", "-V"), ("c++", "--version")];
        needed.iter().find(|program| !runs(program)).map(|(name, _)| *name)
    }

    /// The programs of DIRM, built once for each folder and process.
    fn slideshow(&self) -> Result<Slideshow, LabError> {
        static BUILT: Mutex<BTreeMap<PathBuf, Slideshow>> = Mutex::new(BTreeMap::new());
        let mut built = lock(&BUILT);
        if let Some(slideshow) = built.get(&self.folder) {
            return Ok(slideshow.clone());
        }
        create(&self.folder)?;
        let slideshow = Slideshow::build(&self.folder)?;
        // Agents that start at the same time change the permissions of new files of this process.
        for program in ["slideshow-server", "slideshow-client"] {
            let path = self.folder.join(program);
            let failed = |source| LabError::File { path: path.clone(), source };
            std::fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(failed)?;
        }
        built.insert(self.folder.clone(), slideshow.clone());
        Ok(slideshow)
    }
}

/// Programs run in folders of their own. Without a current folder there is nothing that a path can be relative to.
fn absolute(folder: &Path) -> PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

fn create(folder: &Path) -> Result<(), LabError> {
    let failed = |source| LabError::File { path: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(failed)
}

/// The lines that a gateway records.
#[derive(Clone, Debug, Default)]
struct Record(Arc<Mutex<Vec<u8>>>);

impl Write for Record {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Record {
    fn lines(&self) -> Vec<Value> {
        let bytes = lock(&self.0);
        bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }
}

/// A program in the place of a flow.
pub struct Application<'a> {
    settings: &'a SimulationSettings,
    nodes: &'a Nodes,
    programs: &'a Programs,
    ends: &'a Ends,
    is_reserved: bool,
    program: ProgramSpec,
    folder: TempDir,
    gateways: Gateways,
}

/// The gateways, and their records.
struct Gateways {
    near: Gateway,
    far: Gateway,
    at_near: Record,
    at_far: Record,
}

impl<'a> Application<'a> {
    /// Starts the gateways of a program.
    ///
    /// # Errors
    /// When one cannot listen.
    pub fn prepare(
        program: ProgramSpec,
        ends: &'a Ends,
        qos: Option<&QosSpec>,
        control: &LinkShapers,
        (nodes, settings, programs): (&'a Nodes, &'a SimulationSettings, &'a Programs),
    ) -> Result<Self, LabError> {
        let failed = |source| LabError::File { path: std::env::temp_dir(), source };
        let folder = tempfile::Builder::new().prefix("cutline-").tempdir().map_err(failed)?;
        if program == ProgramSpec::Dirm {
            programs.slideshow()?;
        }
        let gateways = Gateways::start(program, ends, qos, control, nodes)?;
        let is_reserved = qos.is_some();
        Ok(Self { settings, nodes, programs, ends, is_reserved, program, folder, gateways })
    }

    /// Runs the program until the end of the scenario, from a thread of its own.
    ///
    /// # Errors
    /// When it cannot be started, fails or takes too long.
    pub fn run(self, flow: &FlowSpec, zero: Instant) -> Result<Applied, LabError> {
        match self.program {
            ProgramSpec::NetVideo => self.video(flow, zero),
            ProgramSpec::Dirm => self.slides(flow, zero),
        }
    }

    fn video(self, flow: &FlowSpec, zero: Instant) -> Result<Applied, LabError> {
        let Self { settings, nodes, ends, programs, is_reserved, gateways, folder: temporary, .. } = self;
        let folder = temporary.path();
        let film =
            Film::paper(u32::try_from(settings.duration.as_nanos() / 1_000_000_000).unwrap_or(1).max(2) - 1);
        let screen = SocketAddr::from((Ipv4Addr::LOCALHOST, PROGRAM_PORT));
        let receiver = Receiver::start(screen, PATIENCE, Some(nodes.get(&ends.to)), folder)?;
        pause_until(now() + LISTENING)?;
        pause_until(zero)?;
        let camera = SocketAddr::from((Ipv4Addr::LOCALHOST, NEAR_PORT));
        Sender::start(&film, camera, Some(nodes.get(&ends.from)), folder)?.finish()?;
        pause_until(now() + LAST)?;
        receiver.finish()?;
        let (_, far) = gateways.stop();
        let record = passages(&far, zero, film.message).ok_or_else(|| incomplete(flow))?;
        // Comparing takes all of the machine for some seconds, which other runs share.
        let alone = lock(&COMPARING);
        let viewing = compare(&film, folder, folder)?;
        drop(alone);
        let extra = viewed(&flow.name, &viewing, film.frames);
        if let Some(pictures) = &programs.pictures {
            create(pictures)?;
            let name = if is_reserved { "reserved" } else { "unreserved" };
            for (of, what) in [(Pictures::Viewed, name), (Pictures::Source, "source")] {
                let to = pictures.join(format!("{what}.png"));
                picture(&film, folder, of, shown_frame(&film), &to)?;
            }
        }
        Ok(Applied { measured: connected(flow, settings, &record), extra })
    }

    fn slides(self, flow: &FlowSpec, zero: Instant) -> Result<Applied, LabError> {
        let Self { settings, nodes, ends, programs, gateways, folder: temporary, .. } = self;
        let folder = temporary.path();
        let slideshow = programs.slideshow()?;
        let server: Server =
            slideshow.serve(ends.program, Some(nodes.get(&ends.from)), &folder.join("server"))?;
        let requests = Requests { rate: IMAGES_PER_SECOND, duration: settings.duration };
        pause_until(zero)?;
        let at = SocketAddr::from((*ends.sink.ip(), NEAR_PORT));
        let client: Client =
            slideshow.ask(at, requests, Some(nodes.get(&ends.to)), &folder.join("client"))?;
        let slides = client.finish()?;
        drop(server);
        let (near, far) = gateways.stop();
        if let Some(failed) = slides.iter().find(|slide| slide.outcome != SlideOutcome::Intact) {
            return Err(LabError::Image { number: failed.number, outcome: format!("{:?}", failed.outcome) });
        }
        Ok(Applied { measured: images(flow, settings, &slides, (&near, &far), zero), extra: Vec::new() })
    }
}

/// Measurements of a program.
pub struct Applied {
    pub measured: Measured,
    /// Measurements of this program alone.
    pub extra: Vec<DistributionRow>,
}

/// The picture that is kept: three quarters of the film are over, so that queues are full.
fn shown_frame(film: &Film) -> u32 {
    film.frames * 3 / 4
}

fn incomplete(flow: &FlowSpec) -> LabError {
    LabError::Untranslatable {
        flow: flow.name.clone(),
        error: "its gateway has not recorded every message".to_owned(),
    }
}

fn pause_until(at: Instant) -> Result<(), LabError> {
    loop {
        let left = at.saturating_since(now());
        if left.is_zero() {
            return Ok(());
        }
        wait(&mut [], left).map_err(|error| SysError::new("a thread cannot wait", error))?;
    }
}

impl Gateways {
    fn start(
        program: ProgramSpec,
        ends: &Ends,
        qos: Option<&QosSpec>,
        control: &LinkShapers,
        nodes: &Nodes,
    ) -> Result<Self, LabError> {
        let specification = qos.map(|qos| &qos.specification);
        // The near gateway is where programs connect to: at the sender of a video, at the receiver of images.
        let (transport, near_at, far_at, listen, to, options) = match program {
            ProgramSpec::NetVideo => (
                ProgramTransport::Udp,
                &ends.from,
                &ends.to,
                SocketAddr::from((Ipv4Addr::LOCALHOST, NEAR_PORT)),
                SocketAddr::from((Ipv4Addr::LOCALHOST, PROGRAM_PORT)),
                specification.map(|wanted| QosOptions::new(wanted.clone())),
            ),
            ProgramSpec::Dirm => (
                ProgramTransport::Tcp,
                &ends.gateways[1],
                &ends.gateways[0],
                SocketAddr::from((*ends.sink.ip(), NEAR_PORT)),
                ends.program,
                specification.map(|wanted| QosOptions::receiving(wanted.send.clone())),
            ),
        };
        let service = SocketAddr::V4(match program {
            ProgramSpec::NetVideo => ends.sink,
            ProgramSpec::Dirm => ends.source,
        });
        let (at_near, at_far) = (Record::default(), Record::default());
        let start = |side, node: &String, route, options: QosOptions, record: &Record| {
            let namespace = nodes.get(node);
            // Both ends ask the agents of their nodes, if there are any.
            let options = match (qos, control.access(node)) {
                (Some(qos), Some(access)) => {
                    let asking = options.service("rsvp", &access).expect("it is one of our services");
                    asking.ack_path(qos.ack_path).if_refused(IfRefused::Fail)
                }
                _ => options,
            };
            let plan = Plan { side, routes: vec![route], options, limits: Limits::default() };
            // The gateway's threads inherit how this one is scheduled.
            let start =
                || punctual(|| Gateway::start(&plan, Some(Box::new(record.clone())), Box::new(|_| {})));
            Ok::<_, LabError>(namespace.within(start)??)
        };
        let far_route = GatewayRoute { transport, listen: service, to: to.to_string() };
        // An end requests its agreement, so with agents both have to state their needs.
        let send =
            || specification.filter(|_| control.access(far_at).is_some()).map(|wanted| wanted.send.clone());
        let far_options = match program {
            ProgramSpec::NetVideo => send().map(QosOptions::receiving),
            ProgramSpec::Dirm => send().map(QosOptions::sending),
        };
        let far = start(GatewaySide::Far, far_at, far_route, far_options.unwrap_or_default(), &at_far)?;
        let near_route = GatewayRoute { transport, listen, to: service.to_string() };
        let near = start(GatewaySide::Near, near_at, near_route, options.unwrap_or_default(), &at_near)?;
        Ok(Self { near, far, at_near, at_far })
    }

    /// Ends both. Returns the records of the near and the far one.
    fn stop(self) -> (Vec<Value>, Vec<Value>) {
        self.near.stop();
        self.far.stop();
        (self.at_near.lines(), self.at_far.lines())
    }
}

fn is_kind(line: &Value, kind: &str) -> bool {
    line["kind"] == kind
}

/// A time of a record, on the scale of the run.
fn since(zero: Instant, seconds: f64) -> Instant {
    let at = Instant::ZERO + Duration::from_secs_f64(seconds.max(0.0));
    Instant::ZERO + at.saturating_since(zero)
}

/// The messages that a gateway has received, and those that are missing between them; `None` if it has not recorded all.
fn passages(lines: &[Value], zero: Instant, message: u32) -> Option<QosRecord> {
    if lines.iter().any(|line| is_kind(line, "forgotten")) {
        return None;
    }
    let mut arrived: BTreeMap<u64, Passage> = BTreeMap::new();
    for line in lines.iter().filter(|line| is_kind(line, "message")) {
        let at = line["at_s"].as_f64()?;
        // Until the offset between the clocks is known there is no delay.
        let delay = line["delay_ms"].as_f64().unwrap_or(0.0) / 1e3;
        let (sent, arrival) = (since(zero, at - delay), since(zero, at));
        let bytes = u32::try_from(line["bytes"].as_u64()?).ok()?;
        let passage = Passage { made: sent, sent, arrived: Some(arrival), bytes };
        arrived.insert(line["number"].as_u64()?, passage);
    }
    let mut messages: Vec<Passage> = Vec::new();
    for (number, passage) in arrived {
        // One that is missing was sent between the two around it.
        let before = messages.last().map_or(passage.sent, |last| last.sent);
        let missing = (number as usize).saturating_sub(messages.len());
        let gap = passage.sent.saturating_since(before);
        messages.extend((1..=missing as u64).map(|n| {
            let sent = before + Duration::from_nanos(gap.as_nanos() * n / (missing as u64 + 1));
            Passage { made: sent, sent, arrived: None, bytes: message }
        }));
        messages.push(passage);
    }
    Some(QosRecord { messages, ..QosRecord::default() })
}

/// Returns the viewer's film in the table of distributions: one value each.
fn viewed(flow: &str, viewing: &Viewing, frames: u32) -> Vec<DistributionRow> {
    let shown = 100.0 * f64::from(viewing.shown) / f64::from(frames.max(1));
    let freeze = f64::from(viewing.longest_freeze);
    let values = [
        (FRAMES_SHOWN, Some(shown)),
        (SSIM, Some(viewing.source.ssim)),
        (PSNR, viewing.source.psnr_db),
        ("longest_freeze_frames", Some(freeze)),
    ];
    values.into_iter().filter_map(|(name, value)| Some(DistributionRow::single(flow, name, value?))).collect()
}

/// The name of the share of the frames that a viewer saw, in the table of distributions: one value for each video.
pub const FRAMES_SHOWN: &str = "frames_shown_percent";
/// Name of the structural similarity of the viewer's pictures to the drawn ones.
pub const SSIM: &str = "ssim_ratio";
/// Name of the peak signal-to-noise ratio of the viewer's pictures.
pub const PSNR: &str = "psnr_db";

/// Images: rates as the gateways have recorded them, delays as their client has waited.
fn images(
    flow: &FlowSpec,
    settings: &SimulationSettings,
    slides: &[Slide],
    (near, far): (&[Value], &[Value]),
    zero: Instant,
) -> Measured {
    let window = settings.window;
    let run = |at: Instant| Instant::ZERO + at.saturating_since(zero);
    let index = |at: Instant| (at.as_nanos() / settings.interval.as_nanos()) as usize;
    let mut series = vec![FlowInterval::default(); interval_count(settings)];
    let (mut record, mut delays) = (FlowRecord::default(), DelayRecord::default());
    let mut offered = 0.0;
    for line in far.iter().filter(|line| is_kind(line, "sent")) {
        let of = |name: &str| line[name].as_f64().unwrap_or(0.0);
        let (from, to) = (since(zero, of("from_s")), since(zero, of("to_s")));
        let length = to.saturating_since(from);
        if !length.is_zero() {
            let share = window.overlap(from, to).as_secs_f64() / length.as_secs_f64();
            offered += of("bytes") * share;
        }
        if let Some(open) = series.get_mut(index(from + length.mul_f64(0.5))) {
            open.sent_bytes += of("bytes") as u64;
        }
    }
    for line in near.iter().filter(|line| is_kind(line, "message")) {
        let bytes = line["bytes"].as_u64().unwrap_or(0);
        let at = since(zero, line["at_s"].as_f64().unwrap_or(0.0));
        record.delivered_bytes += if window.contains(at) { bytes } else { 0 };
        if let Some(open) = series.get_mut(index(at)) {
            open.delivered_bytes += bytes;
        }
    }
    let mut last: Option<Duration> = None;
    for slide in slides {
        let (asked, answered) = (run(slide.asked), run(slide.answered));
        let delay = slide.response();
        let change = last.replace(delay).map(|last| last.abs_diff(delay));
        record.totals.sent += 1;
        record.totals.received += 1;
        record.sent_packets += u64::from(window.contains(asked));
        if let Some(open) = series.get_mut(index(asked)) {
            open.sent_packets += 1;
        }
        if let Some(open) = series.get_mut(index(answered)) {
            open.packets += 1;
            open.one_way_ns += delay.as_nanos();
            open.ipdv_ns += change.map_or(0, Duration::as_nanos);
        }
        if window.contains(answered) {
            record.received_packets += 1;
            record.one_way_sum += delay;
            delays.one_way.record(delay);
            if let Some(change) = change {
                delays.ipdv.record(change);
            }
        }
    }
    record.sent_bytes = offered as u64;
    record.totals = FlowTotals { dropped: 0, ..record.totals };
    Measured {
        offered: offered as u64,
        outcome: FlowOutcome {
            hint: flow.hint,
            record,
            delays: Some(Box::new(delays)),
            series: Some(series),
            transport: TransportCounts::default(),
            responses: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn message(number: u64, at_s: f64, delay_ms: f64) -> Value {
        serde_json::json!({ "kind": "message", "connection": 1, "number": number, "at_s": at_s, "bytes": 1280, "delay_ms": delay_ms })
    }

    #[test]
    fn messages_that_no_line_names_are_lost_between_their_neighbours() {
        let lines = [message(0, 100.01, 10.0), message(1, 100.03, 10.0), message(4, 100.10, 20.0)];
        let record = passages(&lines, at(99_000), 1280).unwrap();
        let sent: Vec<u64> =
            record.messages.iter().map(|one| one.sent.as_nanos().div_ceil(1_000_000)).collect();
        assert_eq!(sent, [1000, 1020, 1040, 1060, 1080]);
        let lost: Vec<bool> = record.messages.iter().map(|one| one.arrived.is_none()).collect();
        assert_eq!(lost, [false, false, true, true, false]);
        let delay = record.messages[4].delay().unwrap();
        assert!((delay.as_millis_f64() - 20.0).abs() < 0.01, "{delay}");
        let forgotten = serde_json::json!({ "kind": "forgotten", "connection": 1, "messages": 3 });
        assert!(passages(&[forgotten], at(0), 1280).is_none());
    }
}
