//! A pair of gateways on the loopback interface.

#![allow(dead_code, reason = "each test binary uses a part")]

use cutline_gateway::{Gateway, GatewayDocument, GatewayRoute, GatewaySide, Limits, Plan, ProgramTransport};
use cutline_socket::QosOptions;
use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread::spawn;
use std::time::{Duration, Instant};

/// Output and recordings of gateways.
#[derive(Clone, Default)]
pub struct Heard(Arc<Mutex<Vec<u8>>>);

impl Heard {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Waits until something was reported.
    pub fn wait_for(&self, what: &str) {
        let until = Instant::now() + Duration::from_secs(60);
        while !self.text().contains(what) {
            assert!(Instant::now() < until, "{what:?} is not in {:?}", self.text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Settings of a gateway that a test may change.
#[derive(Clone, Default)]
pub struct Settings {
    pub options: QosOptions,
    pub limits: Limits,
    pub records: bool,
}

/// A gateway, its messages and its records.
pub struct Watched {
    pub gateway: Option<Gateway>,
    pub told: Heard,
    pub recorded: Heard,
}

impl Watched {
    pub fn start(
        side: GatewaySide,
        transport: ProgramTransport,
        to: SocketAddr,
        settings: &Settings,
    ) -> Self {
        Self::start_at("127.0.0.1:0", side, transport, &to.to_string(), settings)
    }

    pub fn start_at(
        listen: &str,
        side: GatewaySide,
        transport: ProgramTransport,
        to: &str,
        settings: &Settings,
    ) -> Self {
        let route = GatewayRoute { transport, listen: listen.parse().unwrap(), to: to.to_owned() };
        Self::with_routes(side, vec![route], settings)
    }

    pub fn with_routes(side: GatewaySide, routes: Vec<GatewayRoute>, settings: &Settings) -> Self {
        let Settings { options, limits, records } = settings.clone();
        let plan = Plan { side, routes, options, limits };
        let (told, recorded) = (Heard::default(), Heard::default());
        let of_gateway = told.clone();
        let notify = move |text: &str| writeln!(of_gateway.clone(), "{text}").unwrap();
        let record = records.then(|| Box::new(recorded.clone()) as Box<dyn Write + Send>);
        let gateway = Gateway::start(&plan, record, Box::new(notify)).unwrap();
        Self { gateway: Some(gateway), told, recorded }
    }

    pub fn address(&self) -> SocketAddr {
        self.gateway.as_ref().unwrap().addresses()[0]
    }

    pub fn stop(&mut self) -> GatewayDocument {
        self.gateway.take().unwrap().stop()
    }

    /// Waits until so many connections have ended.
    pub fn wait_for_ends(&self, count: usize) -> GatewayDocument {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let document = self.gateway.as_ref().unwrap().document();
            if document.connections.len() >= count {
                return document;
            }
            assert!(Instant::now() < until, "{document:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A pair of gateways in front of a server: near, far.
pub fn pair(transport: ProgramTransport, to: SocketAddr, settings: &Settings) -> (Watched, Watched) {
    let far = Watched::start(GatewaySide::Far, transport, to, settings);
    let near = Watched::start(GatewaySide::Near, transport, far.address(), settings);
    (near, far)
}

/// A server that answers each datagram with the same.
pub fn echo() -> SocketAddr {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = server.local_addr().unwrap();
    spawn(move || {
        let mut buffer = vec![0; 65_535];
        while let Ok((length, from)) = server.recv_from(&mut buffer) {
            let _gone = server.send_to(&buffer[..length], from);
        }
    });
    at
}

/// Sends a datagram until an answer comes, at most a minute.
pub fn is_answered(program: &UdpSocket) -> bool {
    program.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        if program.send(b"ask").is_ok() && program.recv(&mut [0; 10]).is_ok() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        // A port that is closed refuses at once.
        std::thread::sleep(Duration::from_millis(5));
    }
}
