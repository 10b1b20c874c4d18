//! Video-like traffic: frames at a rate that adapts to the network's delivery.
//!
//! ```text
//! video receive 0.0.0.0:5004
//! video send 192.0.2.1:5004 10        for 10 s
//! ```
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an application tells time and sleeps"
)]

use cutline_quality::spec::Preset;
use cutline_signal::operation::OperationParams;
use cutline_socket::{QosOptions, QosUdpListener, QosUdpSocket, SessionEvent};
use rustix::io::Errno;
use std::error::Error;
use std::io::ErrorKind;
use std::time::{Duration, Instant};
use std::{env, thread};

fn print(event: &SessionEvent) {
    match event {
        SessionEvent::Agreed(_) => println!("both ends agree"),
        SessionEvent::Violated(_, it) => {
            println!("{} is {:.3}, allowed is {:.3}", it.measure.name(), it.measured, it.limit);
        }
        SessionEvent::Rate(rate) => println!("send at {rate:.1} frames/s"),
        _ => {}
    }
}

fn send(address: &str, time: Duration) -> Result<(), Box<dyn Error>> {
    let options = QosOptions::sending(Preset::Video.specification()).adapt_rate(OperationParams::default());
    let socket = QosUdpSocket::connect(address, &options)?;
    let (begin, mut rate) = (Instant::now(), 100.0);
    while begin.elapsed() < time {
        for event in socket.events() {
            print(&event);
            if let SessionEvent::Rate(target) = event {
                rate = target;
            }
        }
        match socket.send(&[0; 1000]) {
            // A frame is lost if the interface of this host has no room for it.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOBUFS) => {}
            sent => drop(sent?),
        }
        thread::sleep(Duration::from_secs_f64(1.0 / rate));
    }
    let received = socket.mib().send.received;
    println!("sent: {} frames arrived, {} lost", received.messages, received.lost());
    Ok(())
}

fn receive(address: &str) -> Result<(), Box<dyn Error>> {
    let options = QosOptions::receiving(Preset::Video.specification());
    let listener = QosUdpListener::bind(address, &options)?;
    println!("port {}", listener.local_addr()?.port());
    let (socket, _) = listener.accept()?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut frame = [0; 2000];
    loop {
        match socket.recv(&mut frame) {
            Ok(_) => socket.events().for_each(|event| print(&event)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let received = socket.mib().receive.received;
    println!("received: {} frames, {} lost", received.messages, received.lost());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["send", address, seconds] => send(address, Duration::from_secs_f64(seconds.parse()?)),
        ["receive", address] => receive(address),
        _ => Err("video send ADDRESS SECONDS | video receive ADDRESS".into()),
    }
}
