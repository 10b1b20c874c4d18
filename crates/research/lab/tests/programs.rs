//! NetVideo and DIRM through a pair of gateways on the loopback interface. `make validate-programs` installs ffmpeg and omniORB, and
//! runs this.
#![expect(clippy::disallowed_methods, reason = "programs run in real time, and are waited for")]

use cutline_bindings::Options;
use cutline_gateway::{Gateway, GatewayDocument, GatewayRoute, GatewaySide, Limits, Plan, ProgramTransport};
use cutline_lab::programs::dirm::{Outcome, Requests, Slideshow};
use cutline_lab::programs::netvideo::{Film, Pictures, Receiver, Sender, Viewing, compare, picture};
use cutline_testbed::{LossyPath, skip};
use cutline_units::Duration as Time;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const TO_RUN: &str = "make validate-programs";

/// Returns whether programs are installed. If not, the test is skipped.
#[track_caller]
fn are_installed(programs: &[(&str, &str)]) -> bool {
    let runs = |(program, argument): &(&str, &str)| {
        let mut command = Command::new(program);
        command.arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    let missing: Vec<_> = programs.iter().filter(|program| !runs(program)).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        skip(format_args!("{} is not installed", missing.join(" and ")), TO_RUN);
    }
    missing.is_empty()
}

/// A free port. Another program may take it, which a test would show.
fn free(transport: ProgramTransport) -> SocketAddr {
    match transport {
        ProgramTransport::Tcp => TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(),
        ProgramTransport::Udp => UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap(),
    }
}

fn gateway(side: GatewaySide, transport: ProgramTransport, to: SocketAddr) -> Gateway {
    let route = GatewayRoute { transport, listen: "127.0.0.1:0".parse().unwrap(), to: to.to_string() };
    let specification = match transport {
        ProgramTransport::Udp => include_str!("../../../../experiments/qsock/programs/netvideo.toml"),
        ProgramTransport::Tcp => include_str!("../../../../experiments/qsock/programs/dirm.toml"),
    };
    let mut options = Options::default();
    if side == GatewaySide::Near {
        options.read(specification).unwrap();
    }
    let options = options.qos_options().unwrap();
    let plan = Plan { side, routes: vec![route], options, limits: Limits::default() };
    Gateway::start(&plan, None, Box::new(|text| println!("{text}"))).unwrap()
}

/// Shows a film over gateways between which a share of the messages is lost. Returns the viewer's frames, and the
/// measurements of the far gateway.
fn show(film: &Film, loss: f64, folder: &Path) -> (Viewing, GatewayDocument) {
    let screen = free(ProgramTransport::Udp);
    let far = gateway(GatewaySide::Far, ProgramTransport::Udp, screen);
    let is_message = |datagram: &[u8]| datagram.starts_with(&[0xc7, 0x52]);
    let path = LossyPath::start(far.addresses()[0], loss, 11, is_message);
    let near = gateway(GatewaySide::Near, ProgramTransport::Udp, path.address());
    let receiver = Receiver::start(screen, Duration::from_secs(5), None, folder).unwrap();
    // It listens, and nothing says when.
    std::thread::sleep(Duration::from_secs(1));
    Sender::start(film, near.addresses()[0], None, folder).unwrap().finish().unwrap();
    receiver.finish().unwrap();
    near.stop();
    let document = far.stop();
    (compare(film, folder, folder).unwrap(), document)
}

#[test]
#[ignore = "ffmpeg and omniORB in real time: `make validate-programs`"]
fn a_viewer_of_netvideo_receives_the_sent_video_less_its_losses() {
    if !are_installed(&[("ffmpeg", "-version")]) {
        return;
    }
    let film = Film::paper(6);
    let whole = tempfile::tempdir().unwrap();
    let (seen, far) = show(&film, 0.0, whole.path());
    println!("no loss: {} of {} frames, {:?}, {:?}", seen.shown, film.frames, seen.source, seen.sent);
    let received = &far.connections[0].received;
    assert_eq!(received.lost, 0);
    // 640 kbit/s for 6 s are 375 messages of 1280 B; the stream begins and ends within half a second.
    assert!((335..400).contains(&received.received_messages), "{received:?}");
    assert!(received.received_bytes > (received.received_messages - 2) * 1280, "{received:?}");
    // Every frame came, but for the last ones, which the decoder may still have when it is ended.
    assert!(seen.shown + 2 >= film.frames && seen.sent.ssim > 0.995, "{:?}", seen.sent);
    assert!(seen.source.ssim > 0.9 && seen.source.psnr_db.unwrap() > 25.0, "{:?}", seen.source);

    let lossy = tempfile::tempdir().unwrap();
    let (damaged, far) = show(&film, 0.2, lossy.path());
    println!(
        "20 % loss: {} of {} frames, {:?}, {:?}",
        damaged.shown, film.frames, damaged.source, damaged.sent
    );
    let loss = far.connections[0].received.loss_percent.unwrap();
    assert!((12.0..28.0).contains(&loss), "{loss} %");
    assert!(damaged.shown < seen.shown && damaged.shown > 0, "{} of {} frames", damaged.shown, seen.shown);
    assert!(damaged.source.ssim < seen.source.ssim - 0.05 && damaged.sent.ssim < seen.sent.ssim - 0.05);
    assert!(damaged.source.psnr_db.unwrap() < seen.source.psnr_db.unwrap() - 3.0);
    for (of, name) in [(Pictures::Source, "source"), (Pictures::Sent, "sent"), (Pictures::Viewed, "viewed")] {
        let file = lossy.path().join(format!("{name}.png"));
        picture(&film, lossy.path(), of, film.frames / 2, &file).unwrap();
        assert!(std::fs::read(file).unwrap().starts_with(b"\x89PNG"));
    }
}

#[test]
#[ignore = "ffmpeg and omniORB in real time: `make validate-programs`"]
fn every_picture_of_dirm_crosses_intact() {
    if !are_installed(&[("omniidl", "-V"), ("c++", "--version")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let slideshow = Slideshow::build(folder.path()).unwrap();
    let place = free(ProgramTransport::Tcp);
    let server = slideshow.serve(place, None, &folder.path().join("server")).unwrap();
    let far = gateway(GatewaySide::Far, ProgramTransport::Tcp, place);
    let near = gateway(GatewaySide::Near, ProgramTransport::Tcp, far.addresses()[0]);
    let ask = |log: &str, rate: f64, seconds: u64| {
        let requests = Requests { rate, duration: Time::from_secs(seconds) };
        let log = folder.path().join(log);
        slideshow.ask(near.addresses()[0], requests, None, &log).unwrap().finish().unwrap()
    };
    let slides = ask("client", 3.0, 10);
    assert!((25..=30).contains(&slides.len()), "{}", slides.len());
    for slide in &slides {
        assert_eq!(slide.outcome, Outcome::Intact, "{slide:?}");
        assert!(
            (18_000..59_000).contains(&slide.bytes) && slide.response() < Time::from_secs(5),
            "{slide:?}"
        );
    }
    let bytes: u64 = slides.iter().map(|slide| slide.bytes).sum();
    let sizes: Vec<_> = slides.iter().map(|slide| slide.bytes).collect();
    assert!(*sizes.iter().min().unwrap() < 19_000 && *sizes.iter().max().unwrap() > 57_000, "{sizes:?}");
    // A server that has gone is an exception of CORBA, and soon.
    drop(server);
    let failed = ask("without", 1.0, 1);
    assert!(failed.iter().all(|slide| matches!(slide.outcome, Outcome::Failed(_))), "{failed:?}");
    near.stop();
    let document = far.stop();
    assert!(document.connections[0].sent.sent_bytes > bytes, "{document:?}");
    assert!(document.routes[0].totals.failed > 0, "{document:?}");
}
