//! The monitor of the host in `cutlined`: the table `[monitor]` of its file.

use crate::error::DaemonError;
use crate::machine::{check_address, check_socket};
use cutline_config::{TableReader, ValueKind, kind};
use cutline_monitor::{
    CollectorOptions, DEFAULT_BPFFS, DEFAULT_LISTEN, DEFAULT_QUERY_SOCKET, HostMonitor, KernelQueueReader,
    MonitorOptions, MonitoredHost, PublicationLimits, WebOptions,
};
use cutline_service::regular_file;
use cutline_snmp::{SnmpOptions, SnmpService};
use cutline_sys::address::parse_listen_address;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Settings of the monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorSpec {
    /// Address of the page and the metrics; `None` if there are none.
    pub listen: Option<SocketAddr>,
    /// File with the token of readers with access to everything.
    pub token_file: Option<PathBuf>,
    /// Name of this host that a browser may use, beside its addresses.
    pub name: Option<String>,
    /// True if every user sees the programs of all users.
    pub readers_see_all: bool,
    /// Socket to which programs publish.
    pub publish_socket: PathBuf,
    /// Socket that answers `cutline top`.
    pub socket: PathBuf,
    /// File system in which the kernel's queues are pinned.
    pub bpffs: PathBuf,
    /// Settings of SNMP; `None` without it.
    pub snmp: Option<SnmpOptions>,
}

/// The monitor at work. It works until it is dropped.
#[derive(Debug)]
pub struct MonitorServices {
    snmp: Option<SnmpService>,
    monitor: HostMonitor,
}

impl MonitorSpec {
    /// Reads the table.
    pub(crate) fn read(table: &TableReader<'_>) -> Self {
        let expected = "a text in quotes, an address with a port such as 127.0.0.1:9466, or \"off\"";
        let address = ValueKind::new(expected, |node| match node.as_text().ok_or_else(String::new)? {
            "off" => Ok(None),
            text => parse_listen_address(text).map(Some).map_err(|error| error.to_string()),
        });
        let listen = table.or("listen", &address, DEFAULT_LISTEN.parse().ok());
        let token_file = table.optional("token-file", &kind::absolute_path()).map(PathBuf::from);
        let name = table.optional("name", &kind::text());
        let readers = [("own", false), ("all", true)];
        let readers_see_all = table.or("readers", &kind::one_of("one of", &readers), false);
        let publish_socket = table
            .or("publish-socket", &kind::absolute_path(), cutline_publish::DEFAULT_SOCKET.to_owned())
            .into();
        let socket = table.or("socket", &kind::absolute_path(), DEFAULT_QUERY_SOCKET.to_owned()).into();
        let bpffs = table.or("bpffs", &kind::absolute_path(), DEFAULT_BPFFS.to_owned()).into();
        let is_open = listen.is_some_and(|listen: SocketAddr| !listen.ip().is_loopback());
        if is_open && token_file.is_none() {
            table.lacks("token-file", "other hosts can reach the address in `listen`: the file with a token");
        }
        let snmp = table.table("snmp", "a table: write [monitor.snmp]").as_ref().map(SnmpOptions::read);
        table.finish();
        Self { listen, token_file, name, readers_see_all, publish_socket, socket, bpffs, snmp }
    }

    /// Reads the token's file.
    ///
    /// # Errors
    /// When others may read it, or it has no token.
    pub fn token(&self) -> Result<Option<String>, DaemonError> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let failed = |why| DaemonError::Token { file: path.display().to_string(), why };
        let text = regular_file::read_private(path).map_err(failed)?;
        cutline_monitor::token(&text).map(Some).map_err(failed)
    }

    /// Checks the files with secrets.
    ///
    /// # Errors
    /// When one cannot be used.
    pub fn check(&self) -> Result<(), DaemonError> {
        self.token()?;
        Ok(self.snmp.as_ref().map_or(Ok(()), SnmpOptions::check)?)
    }

    /// Checks that the monitor can start on this machine now: its addresses are those of this machine, and its sockets can be bound. Those of an
    /// agent that runs are no obstacle.
    ///
    /// # Errors
    /// When it cannot start.
    pub fn check_machine(&self) -> Result<(), DaemonError> {
        [&self.publish_socket, &self.socket].into_iter().try_for_each(|path| check_socket(path))?;
        let of_snmp = self.snmp.as_ref().and_then(|snmp| snmp.listen);
        Ok([self.listen, of_snmp].into_iter().flatten().try_for_each(check_address)?)
    }

    /// Starts the monitor. It works until it is dropped. `say` gets the messages of SNMP.
    ///
    /// # Errors
    /// When a file with a secret cannot be used, another monitor runs, or an address cannot be listened at.
    pub fn start(
        &self,
        say: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<MonitorServices, DaemonError> {
        let readers_see_all = self.readers_see_all;
        let token = self.token()?;
        let names = self.name.iter().cloned().collect();
        let web = self.listen.map(|listen| WebOptions { listen, token, names, readers_see_all });
        let collector = CollectorOptions {
            publish: self.publish_socket.clone(),
            query: self.socket.clone(),
            limits: PublicationLimits::DEFAULT,
            readers_see_all,
            kernel_queues: KernelQueueReader::pinned(&self.bpffs),
        };
        let monitor = HostMonitor::start(MonitorOptions { collector, web })?;
        let start = |options| SnmpService::start(options, Arc::clone(monitor.host()), say);
        let snmp = self.snmp.as_ref().map(start).transpose()?;
        Ok(MonitorServices { snmp, monitor })
    }
}

impl MonitorServices {
    /// Returns the state of the host.
    pub const fn host(&self) -> &Arc<MonitoredHost> {
        self.monitor.host()
    }

    /// Returns the address of the page; `None` if there is none.
    pub const fn page(&self) -> Option<SocketAddr> {
        self.monitor.page()
    }

    /// Returns the address of the SNMP agent; `None` if there is none.
    pub fn snmp(&self) -> Option<SocketAddr> {
        self.snmp.as_ref().and_then(SnmpService::address)
    }
}
