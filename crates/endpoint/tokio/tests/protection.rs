//! Protected threads of a runtime, as the kernel says.

use cutline_tokio::{ProtectedThread, QosOptions, QosUdpListener, QosUdpSocket, RaisedPriority};
use rustix::thread::{CapabilitySet, capabilities};
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Policies of sched(7).
const SCHED_OTHER: u32 = 0;
const SCHED_RR: u32 = 2;

fn may_run() -> bool {
    let may = capabilities(None).unwrap().effective.contains(CapabilitySet::SYS_NICE);
    if !may {
        cutline_testbed::skip("this process lacks CAP_SYS_NICE", "run the tests of cutline-tokio as root");
    }
    may
}

/// Returns the scheduling of the calling thread: the policy and the nice value (`proc_pid_stat(5)`, fields 41 and 19).
fn scheduling() -> (u32, i32) {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    (fields[41 - 3].parse().unwrap(), fields[19 - 3].parse().unwrap())
}

/// Returns whether the calling thread is as protected as this says.
fn is_raised(priority: RaisedPriority) -> bool {
    let (policy, nice) = scheduling();
    match priority {
        RaisedPriority::RealTime => policy == SCHED_RR,
        RaisedPriority::Nice => policy == SCHED_OTHER && nice <= -10,
    }
}

#[test]
fn the_thread_of_a_runtime_is_protected_while_its_tasks_wait() {
    if !may_run() {
        return;
    }
    let before = scheduling();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = QosOptions::default();
        let listener = QosUdpListener::bind("127.0.0.1:0", &options).await.unwrap();
        let to = listener.local_addr().unwrap();
        let (ours, theirs) = tokio::join!(QosUdpSocket::connect(to, &options), listener.accept());
        let (ours, (theirs, _)) = (ours.unwrap(), theirs.unwrap());
        let protected = ProtectedThread::new().unwrap();
        let priority = protected.priority();
        let receiving = async {
            let mut buffer = [0; 10];
            let length = theirs.recv(&mut buffer).await.unwrap();
            (length, is_raised(priority))
        };
        let sending = async {
            tokio::task::yield_now().await;
            ours.send(b"a message").await.unwrap()
        };
        assert_eq!(tokio::join!(receiving, sending), ((9, true), 9));
        // Another task of this thread is protected by that as well, and cannot be so twice.
        let again = tokio::spawn(async move { (is_raised(priority), ProtectedThread::new().is_err()) });
        assert_eq!(again.await.unwrap(), (true, true));
        let started = tokio::task::spawn_blocking(scheduling).await.unwrap();
        assert!(started.0 == SCHED_OTHER && started.1 >= 0, "{started:?}");
        drop(protected);
        assert_eq!(scheduling(), before);
    });
}

#[test]
fn the_threads_of_a_runtime_protect_themselves() {
    if !may_run() {
        return;
    }
    thread_local!(static PROTECTED: RefCell<Option<ProtectedThread>> = const { RefCell::new(None) });
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    let before = scheduling();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .on_thread_start(|| {
            PROTECTED.set(Some(ProtectedThread::with(RaisedPriority::Nice).unwrap()));
            STARTED.fetch_add(1, Ordering::SeqCst);
        })
        .build()
        .unwrap();
    runtime.block_on(async {
        for _ in 0..20 {
            assert!(tokio::spawn(async { is_raised(RaisedPriority::Nice) }).await.unwrap());
        }
        assert_eq!(scheduling(), before, "the thread that has started the runtime");
    });
    drop(runtime);
    assert!(STARTED.load(Ordering::SeqCst) >= 1);
}
