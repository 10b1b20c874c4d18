//! A video sender that moves inside its region of operation, and a receiver.
//!
//! ```text
//! cargo run -p cutline-socket --example video -- watch 0.0.0.0:5006
//! cargo run -p cutline-socket --example video -- send 192.0.2.1:5006 30
//! ```

use cutline_quality::spec::Preset;
use cutline_signal::operation::OperationParams;
use cutline_socket::{Event, QosOptions, QosUdpListener, QosUdpSocket};
use std::error::Error;
use std::time::{Duration, Instant};

/// The payload of a packet: that of the class, 1200 B.
const PACKET: usize = 1200;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["watch", address] => watch(address),
        ["send", address, seconds] => send(address, Duration::from_secs(seconds.parse()?)),
        _ => Err("video watch ADDRESS | video send ADDRESS SECONDS".into()),
    }
}

fn send(address: &str, time: Duration) -> Result<(), Box<dyn Error>> {
    let video = Preset::Video.specification();
    let best = video.max_rate.ok_or("the class has a rate")?;
    let options = QosOptions::sending(video).adapt_rate(OperationParams::default());
    let camera = QosUdpSocket::connect(address, &options)?;
    // Packets a second. A real encoder would choose its quality by it.
    let mut rate = best;
    let (begin, mut next) = (Instant::now(), Instant::now());
    while begin.elapsed() < time {
        // A call waits if this is faster than was agreed on.
        camera.send(&[0; PACKET])?;
        next += Duration::from_secs_f64(1.0 / rate);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        for event in camera.events() {
            match event {
                Event::Rate(target) => {
                    rate = target;
                    println!("{:.1} s: {rate:.0} packets/s", begin.elapsed().as_secs_f64());
                }
                Event::Violated(_, violation) => println!(
                    "{:.1} s: {} is {:.1} {unit}, allowed is {:.1} {unit}",
                    begin.elapsed().as_secs_f64(),
                    violation.measure,
                    violation.measured,
                    violation.limit,
                    unit = violation.measure.unit()
                ),
                _ => {}
            }
        }
    }
    let sent = camera.mib().send;
    println!("{} packets sent, {} reported to have arrived", sent.sent.messages, sent.received.messages);
    Ok(())
}

fn watch(address: &str) -> Result<(), Box<dyn Error>> {
    let screen = QosUdpListener::bind(address, &QosOptions::receiving(Preset::Video.specification()))?;
    println!("waiting at {}", screen.local_addr()?);
    let (camera, from) = screen.accept()?;
    camera.set_read_timeout(Some(Duration::from_secs(3)))?;
    let mut packet = [0; PACKET];
    let mut told = Instant::now();
    while camera.recv(&mut packet).is_ok() {
        if told.elapsed() >= Duration::from_secs(1) {
            told = Instant::now();
            if let Some(last) = camera.mib().receive.last {
                println!("{} from {from}, {:.1} % lost", last.throughput(), last.loss().unwrap_or(0.0));
            }
        }
    }
    Ok(())
}
