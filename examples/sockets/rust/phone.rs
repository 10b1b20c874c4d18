//! A telephone: 50 messages of 160 samples a second each way. It sends a tone, and writes the received sound.
//!
//! ```text
//! phone answer 0.0.0.0:5006 10 | aplay -f U8 -r 8000
//! phone call 192.0.2.1:5006 10 | aplay -f U8 -r 8000        for 10 s
//! ```
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an application tells time and sleeps"
)]

use cutline_quality::spec::{ConnectionSpecification, Preset};
use cutline_socket::{QosOptions, QosUdpListener, QosUdpSocket, SessionEvent};
use rustix::io::Errno;
use std::error::Error;
use std::f64::consts::TAU;
use std::io::{self, ErrorKind, Write};
use std::time::{Duration, Instant};
use std::{env, thread};

const SAMPLES: u32 = 160;
const RATE: u32 = 8000;

fn options() -> QosOptions {
    let audio = Preset::Audio.specification();
    let both = ConnectionSpecification { send: audio.clone(), receive: audio, profile: None };
    QosOptions::new(both)
}

/// Writes the received sound until no message arrives for a second.
fn hear(socket: &QosUdpSocket) -> io::Result<()> {
    let mut samples = [0; 2 * SAMPLES as usize];
    loop {
        match socket.recv(&mut samples) {
            Ok(length) => io::stdout().write_all(&samples[..length])?,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {
                return io::stdout().flush();
            }
            Err(error) => return Err(error),
        }
    }
}

fn speak(socket: &QosUdpSocket, seconds: f64) -> io::Result<()> {
    let begin = Instant::now();
    for message in 0..(seconds * f64::from(RATE / SAMPLES)) as u32 {
        let sample = |place| (128.0 + 60.0 * (440.0 * TAU * f64::from(place) / f64::from(RATE)).sin()) as u8;
        let samples: Vec<u8> = (message * SAMPLES..(message + 1) * SAMPLES).map(sample).collect();
        match socket.send(&samples) {
            // A message is lost if the interface of this host has no room for it.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOBUFS) => {}
            sent => drop(sent?),
        }
        for event in socket.events() {
            match event {
                SessionEvent::Agreed(_) => eprintln!("both ends agree"),
                SessionEvent::Violated(_, it) => eprintln!("{} is {:.1}", it.measure.name(), it.measured),
                _ => {}
            }
        }
        let next = Duration::from_secs(1) * SAMPLES / RATE * (message + 1);
        thread::sleep(next.saturating_sub(begin.elapsed()));
    }
    Ok(())
}

fn talk(socket: &QosUdpSocket, seconds: f64) -> Result<(), Box<dyn Error>> {
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    thread::scope(|scope| {
        let ear = scope.spawn(|| hear(socket));
        speak(socket, seconds)?;
        ear.join().expect("nothing panics there")
    })?;
    let received = socket.mib().receive.received;
    eprintln!("heard {} messages, {} lost", received.messages, received.lost());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["call", address, seconds] => talk(&QosUdpSocket::connect(address, &options())?, seconds.parse()?),
        ["answer", address, seconds] => {
            let listener = QosUdpListener::bind(address, &options())?;
            eprintln!("port {}", listener.local_addr()?.port());
            talk(&listener.accept()?.0, seconds.parse()?)
        }
        _ => Err("phone call ADDRESS SECONDS | phone answer ADDRESS SECONDS".into()),
    }
}
