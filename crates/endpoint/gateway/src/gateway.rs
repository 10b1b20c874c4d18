//! One gateway at work: its listeners, its end.

use crate::connection_table::ConnectionTable;
use crate::document::GatewayDocument;
use crate::error::GatewayError;
use crate::plan::{GatewaySide, Plan, ProgramTransport};
use crate::record::Recorder;
use crate::shared::{Notify, Shared};
use crate::{datagrams, streams};
use cutline_socket::{QosError, QosOptions, QosTcpListener, QosUdpListener};
use cutline_sys::datagram_server::DatagramServer;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// A gateway at work. It ends when this is dropped, too.
pub struct Gateway {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    listeners: Vec<JoinHandle<()>>,
}

/// A listener, and the traffic of its connections.
enum Entry {
    NearTcp(TcpListener),
    NearUdp(DatagramServer),
    FarTcp(Box<QosTcpListener>),
    FarUdp(Box<QosUdpListener>),
}

impl Entry {
    fn bind(
        side: GatewaySide,
        transport: ProgramTransport,
        address: SocketAddr,
        options: &QosOptions,
    ) -> io::Result<(Self, SocketAddr)> {
        let of_qos = |error: QosError| io::Error::from(error);
        Ok(match (side, transport) {
            (GatewaySide::Near, ProgramTransport::Tcp) => {
                let listener = TcpListener::bind(address)?;
                streams::keep_urgent_bytes(&listener)?;
                listener.set_nonblocking(true)?;
                let at = listener.local_addr()?;
                (Self::NearTcp(listener), at)
            }
            (GatewaySide::Near, ProgramTransport::Udp) => {
                let server = DatagramServer::bind(address)?;
                let at = server.local_addr()?;
                (Self::NearUdp(server), at)
            }
            (GatewaySide::Far, ProgramTransport::Tcp) => {
                let listener = QosTcpListener::bind(address, options).map_err(of_qos)?;
                listener.set_nonblocking(true)?;
                let at = listener.local_addr()?;
                (Self::FarTcp(Box::new(listener)), at)
            }
            (GatewaySide::Far, ProgramTransport::Udp) => {
                let listener = QosUdpListener::bind(address, options).map_err(of_qos)?;
                listener.set_nonblocking(true)?;
                let at = listener.local_addr()?;
                (Self::FarUdp(Box::new(listener)), at)
            }
        })
    }

    fn serve(self, shared: &Arc<Shared>, route: usize) {
        match self {
            Self::NearTcp(listener) => streams::near(shared, route, &listener),
            Self::NearUdp(server) => datagrams::near(shared, route, server),
            Self::FarTcp(listener) => streams::far(shared, route, &listener),
            Self::FarUdp(listener) => datagrams::far(shared, route, &listener),
        }
    }
}

impl Gateway {
    /// Listens at all routes. `notify` receives failures; `record` gets lines of JSON while the gateway works.
    ///
    /// # Errors
    /// When an address is in use or is none of this machine, or an option is not allowed.
    pub fn start(
        plan: &Plan,
        record: Option<Box<dyn Write + Send>>,
        notify: Notify,
    ) -> Result<Self, GatewayError> {
        let options = plan.qos_options();
        let (mut entries, mut addresses) = (Vec::new(), Vec::new());
        for route in &plan.routes {
            let (address, transport) = (route.listen, route.transport);
            let cannot = |source| GatewayError::Listen { transport: transport.name(), address, source };
            let (entry, at) = Entry::bind(plan.side, transport, address, &options).map_err(cannot)?;
            entries.push(entry);
            addresses.push(at);
        }
        let mut book = ConnectionTable::new(plan, record.map(Recorder::new));
        book.set_addresses(&addresses);
        let shared = Arc::new(Shared::new(plan, options, book, notify)?);
        let mut gateway = Self { shared, addresses, listeners: Vec::new() };
        for (route, entry) in entries.into_iter().enumerate() {
            let shared = Arc::clone(&gateway.shared);
            let thread = thread::Builder::new().name(format!("gateway {route}"));
            gateway.listeners.push(thread.spawn(move || entry.serve(&shared, route))?);
        }
        if gateway.shared.book.records() {
            let shared = Arc::clone(&gateway.shared);
            let thread = thread::Builder::new().name("gateway record".to_owned());
            gateway.listeners.push(thread.spawn(move || shared.record())?);
        }
        Ok(gateway)
    }

    /// Returns the addresses at which the gateway listens, in the order of the routes.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the traffic of the connections that have ended.
    pub fn document(&self) -> GatewayDocument {
        self.shared.book.document()
    }

    /// Ends all connections. Returns the record of the deliveries.
    pub fn stop(mut self) -> GatewayDocument {
        self.end();
        self.document()
    }

    fn end(&mut self) {
        self.shared.stop.set();
        for listener in self.listeners.drain(..) {
            // A thread that has panicked has reported it.
            let _panicked = listener.join();
        }
        self.shared.wait_for_connections();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.end();
    }
}
