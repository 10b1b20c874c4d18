//! Attacks on a pair of gateways with a key: programs are served meanwhile and afterwards, and no other host reaches the server.

use super::plan::{Assault, Attack, Victim};
use cutline_testbed::KilledChild;
use rustix::net::sockopt::set_socket_linger;
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const ATTACKS: [Attack<Gateways>; 10] = [
    Attack::new(
        "silent connections",
        "hundreds connect to the far gateway and say nothing, or half an offer",
        (),
        silent,
    ),
    Attack::new("garbage", "random bytes to every port of both gateways, over TCP and UDP", (), garbage),
    Attack::new(
        "replays",
        "what a near gateway has sent is sent again, whole, cut off, with changed bits",
        (),
        replays,
    ),
    Attack::new("false sources", "datagrams from thousands of addresses", (), false_sources),
    Attack::new("slow programs", "programs that send byte by byte, read nothing, or break off", (), slow),
    Attack::new("many programs", "a hundred programs at once, streams and datagrams", (), many),
    Attack::new(
        "unread outputs",
        "a pipe of 4 KiB that nobody reads gets a line for each failure",
        (),
        unread,
    ),
    Attack::new("no descriptors", "the far gateway may open none for a while", (), no_descriptors),
    Attack::new("frozen", "a gateway is stopped for a moment", (), frozen),
    Attack::new("kill -9", "a gateway is killed and started again", (), kill),
];

/// Largest time that a program waits for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most threads of a gateway beside those of connections that an attack makes through it.
const MOST_THREADS: usize = 60;
/// The most memory of a gateway, kB.
const MOST_MEMORY: usize = 400_000;

/// Two gateways before a server of streams and one of datagrams.
pub struct Gateways {
    folder: TempDir,
    near: Running,
    far: Running,
    served: Served,
    /// A program whose exchange of datagrams continues all the time.
    known: UdpSocket,
}

/// Data that have reached the servers.
#[derive(Clone, Default)]
struct Served {
    streams: Arc<AtomicUsize>,
    datagrams: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// A gateway. Its outputs are not read after the first lines.
struct Running {
    process: KilledChild,
    errors: BufReader<ChildStderr>,
    tcp: SocketAddr,
    udp: SocketAddr,
}

impl Running {
    fn start(side: &str, key: &str, [tcp, udp]: [String; 2]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
        command.args(["gateway", side, "--tcp", &tcp, "--udp", &udp, "--key-file", key]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = KilledChild(command.spawn().unwrap());
        let mut errors = BufReader::new(process.stderr.take().unwrap());
        let mut address = || {
            let mut line = String::new();
            errors.read_line(&mut line).unwrap();
            let address = line.split_whitespace().nth(1).and_then(|word| word.parse().ok());
            address.unwrap_or_else(|| panic!("{line:?}"))
        };
        let (tcp, udp) = (address(), address());
        Self { process, errors, tcp, udp }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// A number of `/proc/PID/status`.
    fn status(&self, name: &str) -> usize {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap()
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Victim for Gateways {
    type Promise = ();

    fn withstand(&mut self, attack: &Attack<Self>, assault: &mut Assault) {
        self.serves();
        (attack.run)(self, assault);
        self.serves();
        for (side, gateway) in [("near", &self.near), ("far", &self.far)] {
            let memory = gateway.status("VmRSS");
            assert!(memory < MOST_MEMORY, "the {side} gateway has {memory} kB");
        }
    }
}

impl Gateways {
    pub fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let served = Served::default();
        let (streams, datagrams) = (stream_server(&served), datagram_server(&served));
        let key = key_of(&folder);
        let far = Running::start("far", &key, [streams, datagrams].map(|to| format!("0={to}")));
        let near = Running::start("near", &key, [far.tcp, far.udp].map(|to| format!("0={to}")));
        let known = program(near.udp);
        Self { folder, near, far, served, known }
    }

    /// Checks that a stream is answered. A program tries again where it is not: on a busy machine the gateways may not agree within their ten
    /// seconds.
    #[track_caller]
    fn serves_stream(&self) {
        let until = Instant::now() + PATIENCE;
        while let Err(error) = ask(self.near.tcp) {
            assert!(Instant::now() < until, "a stream is not served: {error}");
            sleep(Duration::from_millis(50));
        }
    }

    /// Checks that a stream and datagrams of an old and of a new program are answered.
    fn serves(&self) {
        self.serves_stream();
        assert!(is_answered(&self.known), "a program that was served before is not answered");
        assert!(is_answered(&program(self.near.udp)), "a new program is not answered");
    }

    /// Checks that strangers have no threads.
    fn has_few_threads(&self) {
        for (side, gateway) in [("near", &self.near), ("far", &self.far)] {
            let threads = gateway.status("Threads");
            assert!(threads < MOST_THREADS, "the {side} gateway has {threads} threads");
        }
    }

    fn restart_far(&mut self) {
        let (tcp, udp) = (self.far.tcp, self.far.udp);
        let (streams, datagrams) = (stream_server(&self.served), datagram_server(&self.served));
        let routes = [format!("{tcp}={streams}"), format!("{udp}={datagrams}")];
        self.far = Running::start("far", &key_of(&self.folder), routes);
    }

    fn restart_near(&mut self) {
        let routes = [(self.near.tcp, self.far.tcp), (self.near.udp, self.far.udp)];
        let routes = routes.map(|(listen, to)| format!("{listen}={to}"));
        self.near = Running::start("near", &key_of(&self.folder), routes);
    }
}

fn key_of(folder: &TempDir) -> String {
    let path = folder.path().join("key");
    if !path.exists() {
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path).unwrap();
        file.write_all(&[b'k'; 64]).unwrap();
    }
    path.to_str().unwrap().to_owned()
}

/// A server that echoes its input, behind a byte.
fn stream_server(served: &Served) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::clone(&served.streams));
    spawn(move || {
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::Relaxed);
            spawn(move || {
                let mut stream = stream.unwrap();
                let mut request = vec![b'!'];
                let whole = stream.read_to_end(&mut request);
                let _gone = whole.and_then(|_| stream.write_all(&request));
            });
        }
    });
    address
}

fn datagram_server(served: &Served) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (address, seen) = (socket.local_addr().unwrap(), Arc::clone(&served.datagrams));
    spawn(move || {
        let mut buffer = vec![0; 65_535];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            if buffer.starts_with(b"record") {
                seen.lock().unwrap().push(buffer[..length].to_vec());
            }
            let _gone = socket.send_to(&buffer[..length], from);
        }
    });
    address
}

fn program(near: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket.connect(near).unwrap();
    socket
}

/// Sends until an answer comes, as programs do.
fn is_answered(program: &UdpSocket) -> bool {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let sent = program.send(b"ping");
        if sent.is_ok() && program.recv(&mut [0; 10]).is_ok() {
            return true;
        }
        sleep(Duration::from_millis(10));
    }
    false
}

fn ask(near: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(near)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"ask")?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    if answer == b"!ask" { Ok(()) } else { Err(std::io::Error::other(format!("{answer:?}"))) }
}

/// Closes a stream with a reset.
fn reset(stream: &TcpStream) {
    set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
}

fn noise(assault: &mut Assault, most: usize) -> Vec<u8> {
    let length = 1 + assault.below(most);
    (0..length).map(|_| assault.byte()).collect()
}

fn silent(gateways: &mut Gateways, assault: &mut Assault) {
    assault.repeat(|assault| {
        let mut streams = Vec::new();
        for _ in 0..300 {
            // What the kernel's queue has no room for waits.
            let Ok(mut stream) = TcpStream::connect(gateways.far.tcp) else { continue };
            if assault.below(2) == 0 {
                let _reset = stream.write(&[0xc7; 3]);
            }
            streams.push(stream);
            if assault.below(50) == 0 {
                gateways.serves_stream();
            }
        }
        gateways.has_few_threads();
        gateways.serves_stream();
    });
}

fn garbage(gateways: &mut Gateways, assault: &mut Assault) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let before = gateways.served.streams.load(Ordering::Relaxed);
    assault.repeat(|assault| {
        for _ in 0..20 {
            let bytes = noise(assault, 2000);
            if let Ok(mut stream) = TcpStream::connect(gateways.far.tcp) {
                let _reset = stream.write(&bytes);
                if assault.below(2) == 0 {
                    reset(&stream);
                }
            }
            for to in [gateways.far.udp, gateways.near.udp] {
                drop(socket.send_to(&noise(assault, 1400), to));
            }
        }
    });
    assert_eq!(gateways.served.streams.load(Ordering::Relaxed), before, "garbage has reached the server");
}

/// Time after which a relay looks if it is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A relay between a near gateway of its own and the far one, which keeps the near one's data.
fn record(gateways: &Gateways) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (stream, datagrams) = (Arc::<Mutex<Vec<u8>>>::default(), Arc::<Mutex<Vec<Vec<u8>>>>::default());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let is_over = Arc::new(AtomicBool::new(false));
    socket.set_read_timeout(Some(LOOK_EVERY)).unwrap();
    let relays = [listener.local_addr().unwrap(), socket.local_addr().unwrap()];
    let (tcp, udp) = (gateways.far.tcp, gateways.far.udp);
    let kept = Arc::clone(&stream);
    let of_streams = spawn(move || {
        let (mut from, _) = listener.accept().unwrap();
        let mut to = TcpStream::connect(tcp).unwrap();
        let (mut back_from, mut back_to) = (to.try_clone().unwrap(), from.try_clone().unwrap());
        spawn(move || std::io::copy(&mut back_from, &mut back_to));
        let mut buffer = [0; 4096];
        while let Ok(length) = from.read(&mut buffer)
            && length > 0
        {
            kept.lock().unwrap().extend(&buffer[..length]);
            if to.write_all(&buffer[..length]).is_err() {
                return;
            }
        }
        drop(to.shutdown(Shutdown::Write));
    });
    let (kept, until) = (Arc::clone(&datagrams), Arc::clone(&is_over));
    let of_datagrams = spawn(move || {
        let onwards = UdpSocket::bind("127.0.0.1:0").unwrap();
        onwards.connect(udp).unwrap();
        let (back, near) = (onwards.try_clone().unwrap(), Arc::new(Mutex::new(None)));
        let (to, at, is_back_over) = (Arc::clone(&socket), Arc::clone(&near), Arc::clone(&until));
        spawn(move || {
            let mut buffer = [0; 4096];
            back.set_read_timeout(Some(LOOK_EVERY)).unwrap();
            while !is_back_over.load(Ordering::Relaxed) {
                let Ok(length) = back.recv(&mut buffer) else { continue };
                let near: Option<SocketAddr> = *at.lock().unwrap();
                near.map(|near| to.send_to(&buffer[..length], near));
            }
        });
        let mut buffer = [0; 4096];
        while !until.load(Ordering::Relaxed) {
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
            *near.lock().unwrap() = Some(from);
            kept.lock().unwrap().push(buffer[..length].to_vec());
            drop(onwards.send(&buffer[..length]));
        }
    });
    let near = Running::start("near", &key_of(&gateways.folder), relays.map(|to| format!("0={to}")));
    ask(near.tcp).unwrap();
    let recorded = program(near.udp);
    let until = Instant::now() + PATIENCE;
    while gateways.served.datagrams.lock().unwrap().is_empty() {
        assert!(Instant::now() < until, "the recorded program is not served");
        drop(recorded.send(b"record this"));
        sleep(Duration::from_millis(50));
    }
    drop(near);
    of_streams.join().unwrap();
    is_over.store(true, Ordering::Relaxed);
    of_datagrams.join().unwrap();
    let (stream, datagrams) = (stream.lock().unwrap().clone(), datagrams.lock().unwrap().clone());
    (stream, datagrams)
}

fn replays(gateways: &mut Gateways, assault: &mut Assault) {
    gateways.served.datagrams.lock().unwrap().clear();
    let (stream, datagrams) = record(gateways);
    assert!(stream.len() > 100 && !datagrams.is_empty());
    // Data on its way arrives.
    sleep(Duration::from_millis(200));
    gateways.served.datagrams.lock().unwrap().clear();
    let before = gateways.served.streams.load(Ordering::Relaxed);
    assault.repeat(|assault| {
        let kind = assault.below(3);
        let changed = |assault: &mut Assault, bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            match kind {
                0 => {}
                1 => bytes.truncate(1 + assault.below(bytes.len())),
                _ => {
                    let at = assault.below(bytes.len());
                    bytes[at] ^= 1 << assault.below(8);
                }
            }
            bytes
        };
        if let Ok(mut again) = TcpStream::connect(gateways.far.tcp) {
            let bytes = changed(assault, &stream);
            let _reset = again.write_all(&bytes);
            again.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            let mut answer = Vec::new();
            let _late = again.read_to_end(&mut answer);
            assert!(!answer.ends_with(b"!ask"), "a replayed stream was answered");
        }
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for datagram in &datagrams {
            let bytes = changed(assault, datagram);
            drop(socket.send_to(&bytes, gateways.far.udp));
        }
    });
    gateways.serves();
    let streams = gateways.served.streams.load(Ordering::Relaxed);
    // One by `serves`, which may have asked several times.
    assert!(streams > before);
    assert!(
        gateways.served.datagrams.lock().unwrap().is_empty(),
        "a replayed datagram has reached the server"
    );
}

fn false_sources(gateways: &mut Gateways, assault: &mut Assault) {
    assault.repeat(|assault| {
        for _ in 0..1500 {
            let from = Ipv4Addr::from_bits(0x7f01_0000 + assault.below(1 << 16) as u32);
            // On the loopback every address is this host's.
            let Ok(socket) = UdpSocket::bind((from, 0)) else { continue };
            let to = if assault.below(4) == 0 { gateways.far.udp } else { gateways.near.udp };
            drop(socket.send_to(b"false", to));
        }
        gateways.has_few_threads();
        assert!(is_answered(&gateways.known), "a program that was served before is not answered");
        assert!(is_answered(&program(gateways.near.udp)), "a new program is not answered");
    });
}

fn slow(gateways: &mut Gateways, assault: &mut Assault) {
    assault.repeat(|assault| {
        let mut streams: Vec<TcpStream> =
            (0..20).map(|_| TcpStream::connect(gateways.near.tcp).unwrap()).collect();
        let block = vec![b'x'; 1 << 16];
        for _ in 0..5 {
            for stream in &mut streams {
                stream.set_nonblocking(true).unwrap();
                // Some send a byte, others as much as is taken; none is read.
                let length = if assault.below(2) == 0 { 1 } else { block.len() };
                let full = stream.write(&block[..length]).err().map(|error| error.kind());
                assert!(full.is_none_or(|kind| kind == ErrorKind::WouldBlock), "{full:?}");
            }
            gateways.serves_stream();
        }
        for stream in &streams {
            match assault.below(3) {
                0 => reset(stream),
                1 => drop(stream.shutdown(Shutdown::Write)),
                _ => {}
            }
        }
    });
}

fn many(gateways: &mut Gateways, assault: &mut Assault) {
    assault.repeat(|_| {
        let (tcp, udp) = (gateways.near.tcp, gateways.near.udp);
        let one = |number: u32| {
            spawn(move || match number % 2 {
                0 => ask(tcp).map_err(|error| error.to_string()),
                _ if is_answered(&program(udp)) => Ok(()),
                _ => Err("no answer".to_owned()),
            })
        };
        let asking: Vec<_> = (0..100).map(one).collect();
        let failed: Vec<String> = asking.into_iter().filter_map(|one| one.join().unwrap().err()).collect();
        assert_eq!(failed, [] as [String; 0]);
    });
}

/// The gateways' output is not read. The far gateway has a line for each stranger and for each server that refuses.
fn unread(gateways: &mut Gateways, assault: &mut Assault) {
    let key = key_of(&gateways.folder);
    // There is no listener.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assault.repeat(|_| {
        let far = Running::start("far", &key, [format!("0={nobody}"), format!("0={nobody}")]);
        rustix::pipe::fcntl_setpipe_size(far.errors.get_ref(), 4096).unwrap();
        let near = Running::start("near", &key, [far.tcp, far.udp].map(|to| format!("0={to}")));
        rustix::pipe::fcntl_setpipe_size(near.errors.get_ref(), 4096).unwrap();
        for _ in 0..150 {
            assert!(ask(near.tcp).is_err(), "there is no server");
        }
        for mut gateway in [near, far] {
            gateway.signal(Signal::TERM);
            let until = Instant::now() + PATIENCE;
            while gateway.process.try_wait().unwrap().is_none() {
                assert!(Instant::now() < until, "a gateway whose output nobody reads does not end");
                sleep(Duration::from_millis(20));
            }
        }
    });
}

fn no_descriptors(gateways: &mut Gateways, assault: &mut Assault) {
    let pid = Some(Pid::from_child(&gateways.far.process));
    let maximum = getrlimit(Resource::Nofile).maximum;
    assault.repeat(|assault| {
        let before = prlimit(pid, Resource::Nofile, Rlimit { current: Some(4), maximum }).unwrap();
        let streams: Vec<_> = (0..20).filter_map(|_| TcpStream::connect(gateways.near.tcp).ok()).collect();
        sleep(assault.moment(Duration::from_millis(300)));
        prlimit(pid, Resource::Nofile, before).unwrap();
        drop(streams);
        gateways.serves();
    });
}

fn frozen(gateways: &mut Gateways, assault: &mut Assault) {
    assault.repeat(|assault| {
        let gateway = if assault.below(2) == 0 { &gateways.near } else { &gateways.far };
        gateway.signal(Signal::STOP);
        let tcp = gateways.near.tcp;
        let asking = spawn(move || ask(tcp));
        sleep(assault.moment(Duration::from_millis(500)));
        gateway.signal(Signal::CONT);
        asking.join().unwrap().unwrap();
        gateways.serves();
    });
}

fn kill(gateways: &mut Gateways, assault: &mut Assault) {
    assault.repeat(|assault| {
        let open: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(gateways.near.tcp).unwrap()).collect();
        for mut stream in &open {
            stream.write_all(b"half a request").unwrap();
        }
        sleep(assault.moment(Duration::from_millis(100)));
        if assault.below(2) == 0 {
            gateways.near.kill();
            gateways.restart_near();
        } else {
            gateways.far.kill();
            gateways.restart_far();
        }
        for mut stream in open {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut rest = Vec::new();
            // An end or a reset, never an answer, and no wait forever.
            if let Err(error) = stream.read_to_end(&mut rest) {
                assert_ne!(error.kind(), ErrorKind::WouldBlock, "a connection of a killed gateway goes on");
            }
            assert_eq!(rest, b"");
        }
        gateways.serves();
    });
}
