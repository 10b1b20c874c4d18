//! A manager in a folder of its own, and clients of it.

use cutline_allocation::ManagerConnection;
use cutline_allocation::protocol::{AllocationReply, AllocationRequest, FlowNeed};
use cutline_allocation::status::ManagerStatus;
use cutline_manager::resources::{Capacities, CarrierKind, ResourceParams, SchedulingClass};
use cutline_manager_service::{ManagerService, ManagerSpec};
use cutline_service::JsonLineError;
use cutline_testbed::patiently;
use cutline_units::{Duration, Rate};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// Time in which anything here has to happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with the files of a manager.
pub struct Place {
    folder: TempDir,
    pub spec: ManagerSpec,
    pub said: Arc<Mutex<Vec<String>>>,
}

impl Place {
    /// A place whose datagrams may have 100 Mbit/s together. Flows of clients that do not renew them stay for as long as a test may take.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        let spec = ManagerSpec {
            socket: path("manager.sock"),
            state: path("manager.state"),
            capacities: Capacities { datagrams: Some(Rate::from_mbps(100)), ..Capacities::default() },
            resources: ResourceParams {
                user_share: 1.0,
                lease: Duration::from_secs(600),
                ..ResourceParams::default()
            },
            ..ManagerSpec::default()
        };
        Self { folder, spec, said: Arc::default() }
    }

    pub fn start(&self) -> ManagerService {
        let said = Arc::clone(&self.said);
        ManagerService::start(self.spec.clone(), &[], move |line| said.lock().unwrap().push(line)).unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.spec.socket, None).unwrap()
    }

    pub fn status(&self) -> ManagerStatus {
        self.client().status()
    }
}

/// A client that waits for the replies that it expects.
pub struct Client(pub ManagerConnection);

impl Client {
    pub fn connect(socket: &Path, session: Option<&str>) -> Result<Self, JsonLineError> {
        patiently(|| ManagerConnection::connect(socket, session), JsonLineError::is_late).map(Self)
    }

    pub fn send(&mut self, request: &AllocationRequest) {
        self.0.send(request).unwrap();
    }

    pub fn reply(&mut self) -> AllocationReply {
        self.0.reply(PATIENCE).unwrap().expect("the manager answers in time")
    }

    /// The next reply that `pick` takes. Others are passed over.
    pub fn next<T>(&mut self, mut pick: impl FnMut(AllocationReply) -> Option<T>) -> T {
        loop {
            if let Some(found) = pick(self.reply()) {
                return found;
            }
        }
    }

    /// Requests a flow. Returns its first rate, or the reason of the refusal.
    pub fn admit(&mut self, id: u64, need: FlowNeed) -> Result<u64, String> {
        self.send(&AllocationRequest::Admit { id, need });
        self.next(|reply| match reply {
            AllocationReply::Rate { id: its, rate_bps, .. } if its == id => Some(Ok(rate_bps)),
            AllocationReply::Refused { id: its, reason } if its == id => Some(Err(reason)),
            _ => None,
        })
    }

    /// Waits for a rate of a flow.
    pub fn rate(&mut self, id: u64) -> u64 {
        self.next(|reply| match reply {
            AllocationReply::Rate { id: its, rate_bps, .. } if its == id => Some(rate_bps),
            _ => None,
        })
    }

    pub fn status(&mut self) -> ManagerStatus {
        self.send(&AllocationRequest::Status {});
        self.next(|reply| match reply {
            AllocationReply::Status { status } => Some(*status),
            _ => None,
        })
    }
}

/// A flow of datagrams on loopback with this rate, and a tenth of it as its minimum.
pub fn need(class: SchedulingClass, mbps: u64) -> FlowNeed {
    FlowNeed {
        class,
        carrier: CarrierKind::Datagrams,
        source: "127.0.0.1:4000".parse().unwrap(),
        destination: "127.0.0.1:5000".parse().unwrap(),
        desired_bps: Some(mbps * 1_000_000),
        minimum_bps: mbps * 100_000,
        priority: 5,
        weight: 1,
        delay_ms: None,
        loss_percent: None,
    }
}

/// A real-time flow that accepts no lower rate.
pub fn whole(mbps: u64) -> FlowNeed {
    FlowNeed { minimum_bps: mbps * 1_000_000, ..need(SchedulingClass::RealTime, mbps) }
}

/// A time-shared flow without a minimum.
pub fn open(mbps: u64) -> FlowNeed {
    FlowNeed { minimum_bps: 0, ..need(SchedulingClass::TimeShared, mbps) }
}

/// Waits until a condition holds. Returns whether it did in time.
pub fn eventually(time: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let until = cutline_sys::now() + time;
    loop {
        if holds() {
            return true;
        }
        if cutline_sys::now() >= until {
            return false;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
