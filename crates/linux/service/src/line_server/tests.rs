use super::*;
use crate::SocketFile;
use cutline_sys::now;
use cutline_units::Duration;
use std::io::{BufRead as _, BufReader, Read as _};

const OPTIONS: LineServerOptions = LineServerOptions {
    clients: 200,
    clients_of_users: 200,
    clients_of_user: 200,
    longest_line: 1000,
    lines_of_user: None,
    waiting: 1 << 20,
    waiting_of_all: 64 << 20,
    ends_with_process: false,
};
const LISTENER: u32 = 0;
const CLIENTS: u32 = 1;

/// A server whose clients are this process.
struct Bench {
    _folder: tempfile::TempDir,
    socket: SocketFile,
    reactor: Reactor,
    server: LineServer<()>,
}

impl Bench {
    fn new(options: LineServerOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = SocketFile::bind(&folder.path().join("s")).unwrap();
        socket.listener().set_nonblocking(true).unwrap();
        let reactor = Reactor::new().unwrap();
        reactor.add(socket.listener(), LISTENER, EventFlags::IN).unwrap();
        let server = LineServer::new(CLIENTS, options, |reason| format!("error: {reason}\n"));
        Self { _folder: folder, socket, reactor, server }
    }

    fn connect(&mut self) -> UnixStream {
        let address = self.socket.listener().local_addr().unwrap();
        let client = UnixStream::connect_addr(&address).unwrap();
        self.server.accept(self.socket.listener(), &self.reactor, |_| Ok(()));
        client
    }

    /// Handles the descriptors that are ready now, and returns the requests.
    fn turn(&mut self) -> Vec<(ClientNumber, String)> {
        let ready: Vec<(u32, EventFlags)> = self.reactor.wait(now()).unwrap().collect();
        for (number, flags) in ready {
            if let Some(gone) = self.server.ready(number, flags) {
                self.server.remove(gone);
            }
        }
        let mut requests = Vec::new();
        while let Some(number) = self.server.next_client() {
            let parse = |line: &[u8], (): &mut ()| {
                let text = String::from_utf8(line.to_vec()).unwrap();
                if text == "bad" { Err("malformed".to_owned()) } else { Ok(text) }
            };
            while let Some(request) = self.server.request(number, parse) {
                requests.push((number, request));
            }
        }
        self.flush();
        requests
    }

    fn flush(&mut self) -> Vec<ClientNumber> {
        let ended = self.server.flush(&self.reactor);
        for number in &ended {
            self.server.remove(*number);
        }
        ended
    }
}

/// The text that has arrived at a client.
fn received(client: &UnixStream) -> String {
    client.set_nonblocking(true).unwrap();
    let mut text = Vec::new();
    let _would_block = { client }.read_to_end(&mut text);
    String::from_utf8(text).unwrap()
}

/// Clients that read nothing and leave a little less than each may: those with the most are disconnected, and the rest
/// stays below the bound of all.
#[test]
fn clients_that_do_not_read_hold_little_memory_together() {
    const COUNT: usize = 140;
    let mut bench = Bench::new(OPTIONS);
    let silent: Vec<UnixStream> = (0..COUNT).map(|_| bench.connect()).collect();
    assert_eq!(bench.server.len(), COUNT);
    let numbers: Vec<ClientNumber> = bench.server.clients.keys().copied().collect();
    let (few, many) = numbers.split_at(COUNT / 10);
    let mut ended = Vec::new();
    for (group, bytes) in [(few, 400 << 10), (many, 950 << 10)] {
        for number in group {
            bench.server.send(*number, &"x".repeat(bytes));
            ended.extend(bench.flush());
            let waiting: usize = bench.server.clients.values().map(Client::waiting).sum();
            assert!(waiting <= OPTIONS.waiting_of_all, "{waiting}");
        }
    }
    assert!(ended.len() > COUNT / 10, "{} were disconnected", ended.len());
    assert!(ended.iter().all(|gone| many.contains(gone)), "those that leave less stay");
    assert_eq!(bench.server.len() + ended.len(), COUNT);
    drop(silent);
}

/// A client that always reads a part of its output gets no more memory than the bytes that wait for it.
#[test]
fn written_bytes_take_no_memory() {
    let mut bench = Bench::new(OPTIONS);
    let client = bench.connect();
    let mut part = vec![0; 10_000];
    for _ in 0..100 {
        bench.server.send(0, &"x".repeat(100_000));
        assert!(bench.flush().is_empty());
        while bench.server.clients[&0].waiting() > 300_000 {
            { &client }.read_exact(&mut part).unwrap();
            bench.server.touched.insert(0);
            assert!(bench.flush().is_empty());
        }
        let held = bench.server.clients[&0].outgoing.held();
        assert!(held < 1 << 20, "{held}");
    }
}

#[test]
fn a_client_above_the_limit_gets_the_reason() {
    let mut bench = Bench::new(LineServerOptions { clients: 2, ..OPTIONS });
    let clients = [bench.connect(), bench.connect()];
    let refused = bench.connect();
    assert_eq!(received(&refused), "error: client limit reached (2): try again later\n");
    assert_eq!((bench.server.len(), bench.server.refused()), (2, 1));
    drop(clients);
    bench.turn();
    assert!(bench.server.is_empty());
    let admitted = bench.connect();
    assert_eq!((received(&admitted), bench.server.len()), (String::new(), 1));
}

#[test]
fn a_request_that_is_malformed_or_too_long_ends_the_connection_after_the_reason() {
    for (bytes, reason) in
        [("one\nbad\ntwo\n".to_owned(), "malformed"), ("x".repeat(1001), "a line is longer than 1000 B")]
    {
        let mut bench = Bench::new(OPTIONS);
        let mut client = bench.connect();
        client.write_all(bytes.as_bytes()).unwrap();
        let requests = bench.turn();
        assert!(requests.iter().all(|(_, request)| request == "one"), "{requests:?}");
        assert_eq!(received(&client), format!("error: {reason}\n"));
        assert!(bench.server.is_empty());
    }
}

/// A user's requests above the limit wait for the next second, and the client is not read meanwhile.
#[test]
fn requests_of_a_user_in_a_second_are_limited() {
    let mut bench = Bench::new(LineServerOptions { lines_of_user: Some(3), ..OPTIONS });
    let mut clients = [bench.connect(), bench.connect()];
    clients[0].write_all(b"1\n2\n3\n4\n5\n").unwrap();
    let texts = |requests: Vec<(ClientNumber, String)>| {
        requests.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
    };
    assert_eq!(texts(bench.turn()), ["1", "2", "3"]);
    clients[1].write_all(b"other\n").unwrap();
    assert!(texts(bench.turn()).is_empty() && !bench.server.has_work());
    bench.server.begin_second();
    bench.flush();
    assert!(bench.server.has_work());
    let mut further = texts(bench.turn());
    further.sort();
    assert_eq!(further, ["4", "5", "other"]);
}

/// A long answer in parts: others take turns, lines follow the last part, and so do further requests.
#[test]
fn a_long_answer_in_parts_is_continued_as_it_is_read() {
    let mut bench = Bench::new(OPTIONS);
    let mut clients = [bench.connect(), bench.connect()];
    for client in &mut clients {
        client.write_all(b"list\nafter\n").unwrap();
    }
    let requests = {
        let ready: Vec<(u32, EventFlags)> = bench.reactor.wait(now()).unwrap().collect();
        for (number, flags) in ready {
            assert_eq!(bench.server.ready(number, flags), None);
        }
        std::iter::from_fn(|| bench.server.next_client()).collect::<Vec<_>>()
    };
    let parse = |line: &[u8], (): &mut ()| Ok(line.to_vec());
    for number in requests {
        assert_eq!(bench.server.request(number, parse).unwrap(), b"list");
        bench.server.begin_parts(number, "[");
        assert_eq!(bench.server.request(number, parse), None, "it waits for the answer");
        bench.server.send(number, "notice\n");
    }
    bench.flush();
    assert_eq!(bench.server.clients_for_parts(), [1, 0], "after the first");
    for (part, is_last) in [("1,", false), ("2]\n", true)] {
        for number in bench.server.clients_for_parts() {
            bench.server.send_part(number, part, is_last);
        }
        assert!(bench.server.clients_for_parts().is_empty(), "they have not read the part");
        bench.flush();
    }
    for client in &clients {
        assert_eq!(received(client), "[1,2]\nnotice\n");
    }
    let after: Vec<_> = bench.turn();
    assert_eq!(after.len(), 2, "{after:?}");
}

/// A client that is refused while a long answer is sent gets the rest of the answer, and then the reason.
#[test]
fn a_client_that_is_refused_in_a_long_answer_gets_the_reason_after_it() {
    let mut bench = Bench::new(OPTIONS);
    let client = bench.connect();
    bench.server.begin_parts(0, "[");
    assert!(bench.flush().is_empty());
    bench.server.fail(0, "other rules");
    assert!(bench.flush().is_empty(), "the answer is not complete");
    assert_eq!(bench.server.clients_for_parts(), [0]);
    bench.server.send_part(0, "]\n", true);
    assert_eq!(bench.flush(), [0]);
    assert_eq!(received(&client), "[]\nerror: other rules\n");
}

#[test]
fn a_shared_answer_counts_once_and_arrives_in_order() {
    let mut bench = Bench::new(OPTIONS);
    let clients = [bench.connect(), bench.connect()];
    let answer: Arc<[u8]> = format!("{}\n", "s".repeat(4 << 20)).into_bytes().into();
    for number in 0..2 {
        bench.server.send(number, "before\n");
        bench.server.send_shared(number, Arc::clone(&answer));
        bench.server.send(number, "behind\n");
    }
    assert!(bench.flush().is_empty(), "it is longer than a client may leave unread of other output");
    assert_eq!(bench.server.shared_waiting(|_| true), answer.len());
    assert_eq!(bench.server.shared_waiting(|user| user == 12_345), 0);
    for client in &clients {
        let mut lines = BufReader::new(client).lines();
        for length in ["before".len(), 4 << 20, "behind".len()] {
            let line = std::thread::scope(|scope| {
                let reading = scope.spawn(|| lines.next().unwrap().unwrap());
                while !reading.is_finished() {
                    bench.reactor.wait(now() + Duration::from_millis(1)).unwrap().for_each(drop);
                    bench.server.touched.extend([0, 1]);
                    assert!(bench.server.flush(&bench.reactor).is_empty());
                }
                reading.join().unwrap()
            });
            assert_eq!(line.len(), length);
        }
    }
    assert_eq!(bench.server.shared_waiting(|_| true), 0);
}
