//! A telephone: a tone of G.711, 50 packets of 160 B a second, and what becomes of it.
//!
//! ```text
//! cargo run -p cutline-socket --example phone -- answer 0.0.0.0:5004
//! cargo run -p cutline-socket --example phone -- call 192.0.2.1:5004 10
//! ```

use cutline_quality::spec::Preset;
use cutline_quality::{Class, HintParams};
use cutline_socket::{Event, Marking, QosOptions, QosUdpListener, QosUdpSocket};
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["answer", address] => answer(address),
        ["call", address, seconds] => call(address, seconds.parse()?),
        _ => Err("phone answer ADDRESS | phone call ADDRESS SECONDS".into()),
    }
}

/// A call needs the same of both directions. The hint follows the quality that the other end reports.
fn options() -> QosOptions {
    let call = Preset::Audio.specification();
    let adaptive = Marking::Adaptive(Class::Audio, HintParams::default());
    QosOptions::both(call).marking(adaptive)
}

fn call(address: &str, seconds: u32) -> Result<(), Box<dyn Error>> {
    let line = QosUdpSocket::connect(address, &options())?;
    for second in 1..=seconds {
        for _ in 0..50 {
            line.send(&tone())?;
            std::thread::sleep(Duration::from_millis(20));
        }
        tell(&line, second);
    }
    Ok(())
}

fn answer(address: &str) -> Result<(), Box<dyn Error>> {
    let listener = QosUdpListener::bind(address, &options())?;
    println!("waiting for a call at {}", listener.local_addr()?);
    let (line, from) = listener.accept()?;
    println!("{from} calls");
    line.set_read_timeout(Some(Duration::from_secs(3)))?;
    let mut packet = [0; 400];
    let mut packets = 0_u32;
    while let Ok(length) = line.recv(&mut packet) {
        assert_eq!(length, 160, "G.711");
        packets += 1;
        if packets.is_multiple_of(50) {
            tell(&line, packets / 50);
        }
    }
    println!("{from} has hung up");
    Ok(())
}

/// 20 ms of a tone of 400 Hz, 8000 samples a second.
fn tone() -> [u8; 160] {
    std::array::from_fn(|i| {
        (f64::sin(i as f64 * std::f64::consts::TAU * 400.0 / 8000.0) * 100.0 + 128.0) as u8
    })
}

fn tell(line: &QosUdpSocket, second: u32) {
    let mib = line.mib();
    // Who calls is told by the other end what arrives; who answers sees it.
    if let Some(last) = mib.receive.last.filter(|last| last.messages > 0).or(mib.send.last) {
        let delay = last.delay.map_or_else(|| "unknown".to_owned(), |delay| delay.mean.to_string());
        println!("{second} s: {} packets in 0.5 s, {} lost, delay {delay}", last.messages, last.lost);
    }
    for event in line.events() {
        match event {
            Event::Violated(direction, violation) => println!(
                "   {direction:?}: {} is {:.1} {unit}, allowed is {:.1} {unit}",
                violation.measure,
                violation.measured,
                violation.limit,
                unit = violation.measure.unit()
            ),
            Event::Hint(hint) => println!("   hint {}", hint.level()),
            _ => {}
        }
    }
}
