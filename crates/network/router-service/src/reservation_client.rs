//! A client that reserves in a running router by its socket.
//!
//! The reservations belong to the connection: they end when the client is dropped, when its process ends, and when the router does.
//! A client that outlives its router notices by [`AsFd`]: the descriptor becomes readable only when the connection has ended.

use crate::client::{LONGEST, next_line};
use crate::error::{RouterClientError, RouterClientErrorKind};
use crate::replies::{ErrorReply, ReservationDone, ReservationsEnd};
use crate::reservation_request::{ReservationAction, ReservationRequest, RouterDirection};
use crate::statistics::{ReservationStatistics, StatisticsError};
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_service::LineClient;
use cutline_sys::now;
use cutline_units::Duration;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// A connection to a router, and the reservations that were made by it.
#[derive(Debug)]
pub struct ReservationClient {
    path: PathBuf,
    lines: LineClient,
    /// Longest time of a reply.
    patience: Duration,
}

/// Part of a configuration that is needed here.
#[derive(Deserialize)]
struct Interfaces {
    config: InAndOut,
}

#[derive(Deserialize)]
struct InAndOut {
    #[serde(rename = "in")]
    input: String,
    #[serde(rename = "out")]
    output: String,
}

/// A line of the reply to `reservations`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Listed {
    Reservation(Box<ReservationStatistics>),
    End(ReservationsEnd),
}

impl ReservationClient {
    /// Connects to the router whose socket is at `path`. Connecting and each reply may take `patience`.
    ///
    /// # Errors
    /// When no process listens there, or this process may not connect.
    pub fn connect(path: &Path, patience: Duration) -> Result<Self, RouterClientError> {
        let lines = LineClient::connect(path, LONGEST, patience).map_err(|error| RouterClientError {
            path: path.to_owned(),
            kind: RouterClientErrorKind::Io(error),
        })?;
        Ok(Self { path: path.to_owned(), lines, patience })
    }

    /// Returns the names of the router's interfaces, `in` and `out`. Packets that leave by `out` are those of
    /// [`RouterDirection::Forward`]. A name may begin with the kind of its port, such as `tun:`.
    ///
    /// # Errors
    /// When the router does not answer.
    pub fn interfaces(&mut self) -> Result<[String; 2], RouterClientError> {
        let Interfaces { config } = self.ask("config")?;
        Ok([config.input, config.output])
    }

    /// Reserves for the packets of these filters, of which there must be one. The number is the client's choice, and is its own in
    /// this direction. Returns when the reservation is in effect.
    ///
    /// # Errors
    /// When the router refuses it ([`RouterClientError::is_refusal`]); then nothing is reserved. When it does not answer.
    pub fn reserve(
        &mut self,
        direction: RouterDirection,
        number: u64,
        bucket: TrafficSpec,
        filters: &[FlowSelector],
    ) -> Result<(), RouterClientError> {
        let (first, more) = filters.split_at(filters.len().min(ReservationRequest::MAX_FILTERS));
        self.change_by(direction, number, ReservationAction::Reserve(bucket, first.to_vec()))?;
        for filter in more {
            if let Err(error) = self.add_filter(direction, number, *filter) {
                if error.is_refusal() {
                    self.release(direction, number)?;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Changes the token bucket of a reservation.
    ///
    /// # Errors
    /// When the router refuses it; then the reservation is as before. When it does not answer.
    pub fn change(
        &mut self,
        direction: RouterDirection,
        number: u64,
        bucket: TrafficSpec,
    ) -> Result<(), RouterClientError> {
        self.change_by(direction, number, ReservationAction::Change(bucket))
    }

    /// Lets the packets of a further filter use a reservation.
    ///
    /// # Errors
    /// When the router refuses it, or does not answer.
    pub fn add_filter(
        &mut self,
        direction: RouterDirection,
        number: u64,
        filter: FlowSelector,
    ) -> Result<(), RouterClientError> {
        self.change_by(direction, number, ReservationAction::AddFilter(filter))
    }

    /// Removes a filter from a reservation.
    ///
    /// # Errors
    /// When the router refuses it, or does not answer.
    pub fn remove_filter(
        &mut self,
        direction: RouterDirection,
        number: u64,
        filter: FlowSelector,
    ) -> Result<(), RouterClientError> {
        self.change_by(direction, number, ReservationAction::RemoveFilter(filter))
    }

    /// Ends a reservation.
    ///
    /// # Errors
    /// When there is none of this number, or the router does not answer.
    pub fn release(&mut self, direction: RouterDirection, number: u64) -> Result<(), RouterClientError> {
        self.change_by(direction, number, ReservationAction::Release)
    }

    /// Returns all reservations of the router, those of other clients included, with their counters.
    ///
    /// # Errors
    /// When the router does not answer.
    pub fn list(&mut self) -> Result<Vec<ReservationStatistics>, RouterClientError> {
        let mut all = Vec::new();
        let mut next = self.ask("reservations")?;
        loop {
            match next {
                Listed::Reservation(reservation) => all.push(*reservation),
                Listed::End(end) if end.reservations == all.len() as u64 => return Ok(all),
                Listed::End(_) => {
                    let error =
                        io::Error::new(io::ErrorKind::InvalidData, "its list of reservations has gaps");
                    return Err(self.failed(RouterClientErrorKind::Io(error)));
                }
            }
            next = self.reply().map_err(|kind| self.failed(kind))?;
        }
    }

    fn change_by(
        &mut self,
        direction: RouterDirection,
        number: u64,
        action: ReservationAction,
    ) -> Result<(), RouterClientError> {
        let request = ReservationRequest { direction, number, action };
        self.ask(&request.to_string()).map(|_: ReservationDone| ())
    }

    fn ask<T: DeserializeOwned>(&mut self, request: &str) -> Result<T, RouterClientError> {
        let sent = self
            .lines
            .send(request, now().saturating_add(self.patience))
            .map_err(RouterClientErrorKind::from);
        sent.and_then(|()| self.reply()).map_err(|kind| self.failed(kind))
    }

    fn reply<T: DeserializeOwned>(&mut self) -> Result<T, RouterClientErrorKind> {
        let line = next_line(&mut self.lines, self.patience)?;
        ErrorReply::check(line)?;
        Ok(serde_json::from_str(line).map_err(StatisticsError::Other)?)
    }

    fn failed(&self, kind: RouterClientErrorKind) -> RouterClientError {
        RouterClientError { path: self.path.clone(), kind }
    }
}

impl AsFd for ReservationClient {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lines.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local_socket::LocalSocket;
    use crate::reservations::reservation_channel;
    use crate::session::reception;
    use crate::snapshots::StatsSnapshots;
    use crate::spec::RouterSpec;
    use cutline_aqm::{Limit, QueueSpec};
    use cutline_router::{DuplexShaper, Shaper, ShaperParams};
    use cutline_sys::now;
    use cutline_units::{Bytes, Rate, Streams};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use tempfile::TempDir;

    /// A router without ports whose loop does nothing but look for orders. It ends when it is dropped.
    struct Bed {
        folder: TempDir,
        stop: Arc<AtomicBool>,
        looping: Option<thread::JoinHandle<()>>,
        _socket: LocalSocket,
    }

    impl Bed {
        fn new(are_allowed: bool) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let text = "in = 'a'\nout = 'b'\nqueue.q = { aqm = 'pi', limit = '9 packets' }\n\
                        forward = { rate = '15 Mbit/s', queue = 'q' }\nreverse = { rate = '2 Mbit/s', queue = 'q' }\n";
            let spec = RouterSpec::parse(text, "r.toml").unwrap_or_else(|errors| panic!("{errors}"));
            let socket = LocalSocket::bind(&folder.path().join("s")).unwrap();
            let (desk, mut registrar) = reservation_channel();
            let desk = are_allowed.then_some(desk);
            socket.serve(&reception(Arc::new(StatsSnapshots::new(Arc::new(spec))), desk)).unwrap();
            let stop = Arc::new(AtomicBool::new(false));
            let is_stopped = Arc::clone(&stop);
            let mut duplex = DuplexShaper { forward: shaper(), reverse: shaper() };
            let looping = thread::spawn(move || {
                while !is_stopped.load(Ordering::Relaxed) {
                    let usual = now() + Duration::from_millis(5);
                    let next = registrar.look(now(), &mut duplex, usual);
                    thread::park_timeout(std::time::Duration::from_nanos(
                        next.saturating_since(now()).as_nanos(),
                    ));
                }
            });
            Self { folder, stop, looping: Some(looping), _socket: socket }
        }

        fn client(&self) -> ReservationClient {
            ReservationClient::connect(&self.folder.path().join("s"), Duration::from_secs(60)).unwrap()
        }

        /// Waits for this number of reservations.
        fn wait_for(&self, count: usize) {
            let are_there = (0..20_000).any(|_| {
                thread::park_timeout(std::time::Duration::from_millis(5));
                self.client().list().unwrap().len() == count
            });
            assert!(are_there, "{:?}", self.client().list());
        }
    }

    impl Drop for Bed {
        fn drop(&mut self) {
            self.stop.store(true, Ordering::Relaxed);
            self.looping.take().unwrap().join().unwrap();
        }
    }

    fn shaper() -> Shaper {
        let queue = QueueSpec::drop_tail(Limit::Packets(10), Rate::from_mbps(10));
        let params = ShaperParams { reservations: 200, ..ShaperParams::new(queue) };
        Shaper::new(params, Streams::new(1).stream("router", "drop")).unwrap()
    }

    fn bucket(kbps: u64) -> TrafficSpec {
        TrafficSpec {
            rate: Rate::from_kbps(kbps),
            bucket: Bytes::new(2000),
            peak: TrafficSpec::UNKNOWN_PEAK,
            min_policed: Bytes::new(200),
            max_packet: Bytes::new(1500),
        }
    }

    fn to_port(port: u16) -> FlowSelector {
        FlowSelector {
            protocol: Some(17),
            destination_port: Some(port),
            ..FlowSelector::to("10.0.1.1".parse().unwrap())
        }
    }

    #[test]
    fn reservations_last_as_long_as_the_connection_of_their_client() {
        let bed = Bed::new(true);
        let (mut one, mut other) = (bed.client(), bed.client());
        assert_eq!(one.interfaces().unwrap(), ["a", "b"]);
        one.reserve(RouterDirection::Forward, 7, bucket(640), &[to_port(1)]).unwrap();
        one.change(RouterDirection::Forward, 7, bucket(320)).unwrap();
        one.add_filter(RouterDirection::Forward, 7, to_port(2)).unwrap();
        one.remove_filter(RouterDirection::Forward, 7, to_port(1)).unwrap();
        other.reserve(RouterDirection::Reverse, 7, bucket(64), &[to_port(2)]).unwrap();
        other.reserve(RouterDirection::Forward, 7, bucket(64), &[to_port(3)]).unwrap();
        let seen: Vec<_> = other
            .list()
            .unwrap()
            .iter()
            .map(|of| (of.direction, of.own, of.rate_bps, of.filters[0].destination_port))
            .collect();
        let expected = [
            (RouterDirection::Forward, false, 320_000, Some(2)),
            (RouterDirection::Forward, true, 64_000, Some(3)),
            (RouterDirection::Reverse, true, 64_000, Some(2)),
        ];
        assert_eq!(seen, expected);
        other.release(RouterDirection::Forward, 7).unwrap();
        drop(one);
        bed.wait_for(1);
        let mut again = bed.client();
        again
            .reserve(RouterDirection::Forward, 7, bucket(640), &[to_port(2)])
            .expect("the filter is free again");
    }

    #[test]
    fn a_refusal_changes_nothing_and_keeps_the_connection() {
        let bed = Bed::new(true);
        let mut client = bed.client();
        let many: Vec<FlowSelector> = (1..=50).map(to_port).collect();
        client.reserve(RouterDirection::Forward, 1, bucket(64), &many).unwrap();
        assert_eq!(client.list().unwrap()[0].filters.len(), 50);
        let last_is_taken: Vec<FlowSelector> = (100..=120).chain([50]).map(to_port).collect();
        for (result, why) in [
            (
                client.reserve(RouterDirection::Forward, 2, bucket(64), &last_is_taken),
                "a filter that no other reservation has",
            ),
            (
                client.reserve(RouterDirection::Forward, 2, bucket(64), &[]),
                "expected a list of 1 to 16 filters",
            ),
            (
                client.reserve(RouterDirection::Forward, 1, bucket(64), &[to_port(99)]),
                "there is one of this number",
            ),
            (client.reserve(RouterDirection::Forward, 2, bucket(20_000), &[to_port(99)]), "rate = 20 Mbit/s"),
            (
                client.change(RouterDirection::Reverse, 1, bucket(64)),
                "reservation = 1: there is none of this number",
            ),
        ] {
            let error = result.unwrap_err();
            assert!(error.is_refusal() && error.to_string().contains(why), "{error}\nnot: {why}");
        }
        assert_eq!(client.list().unwrap().len(), 1);
    }

    #[test]
    fn hundreds_end_together_and_leases_are_few() {
        let bed = Bed::new(true);
        let mut clients: Vec<ReservationClient> = (0..5).map(|_| bed.client()).collect();
        for number in 0..150 {
            clients[0]
                .reserve(RouterDirection::Forward, number, bucket(10), &[to_port(1 + number as u16)])
                .unwrap();
        }
        for (place, client) in clients[1..4].iter_mut().enumerate() {
            client.reserve(RouterDirection::Reverse, 1, bucket(10), &[to_port(1 + place as u16)]).unwrap();
        }
        assert_eq!(clients[0].list().unwrap().len(), 153);
        let error = clients[4]
            .reserve(RouterDirection::Reverse, 1, bucket(10), &[to_port(9)])
            .unwrap_err()
            .to_string();
        assert!(error.contains("limit of clients with reservations reached (4)"), "{error}");
        drop(clients.remove(0));
        bed.wait_for(3);
        clients[3].reserve(RouterDirection::Reverse, 1, bucket(10), &[to_port(9)]).unwrap();
    }

    #[test]
    fn nothing_can_be_reserved_where_it_is_not_allowed() {
        let bed = Bed::new(false);
        let mut client = bed.client();
        let error = client.reserve(RouterDirection::Forward, 1, bucket(64), &[to_port(1)]).unwrap_err();
        assert!(error.is_refusal() && error.to_string().contains("reservations = \"none\""), "{error}");
        assert_eq!(client.list().unwrap(), []);
    }

    /// A client learns of the router's end, because the connection ends.
    #[test]
    fn a_router_that_ends_is_an_error() {
        let bed = Bed::new(true);
        let mut client = bed.client();
        client.reserve(RouterDirection::Forward, 1, bucket(64), &[to_port(1)]).unwrap();
        drop(bed);
        let error = client.change(RouterDirection::Forward, 1, bucket(60)).unwrap_err();
        assert!(error.to_string().contains("the router does not answer"), "{error}");
        assert!(!client.change(RouterDirection::Forward, 1, bucket(60)).unwrap_err().is_refusal());
    }
}
