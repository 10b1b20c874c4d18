//! The loader on a host, as a program uses it: refusals, by kernels without such queues and with them.

use cutline_aqm::{AqmSpec, Limit, QueueSpec, TsqParams};
use cutline_qdisc::{BPFFS, KernelQueues, QdiscChange, QdiscError, QdiscSettings};
use cutline_qdisc_loader::ObjectLoader;
use cutline_router::Overhead;
use cutline_sys::namespace::Namespace;
use cutline_testbed::may_make_namespaces;
use cutline_units::{HintTable, Rate};
use std::path::Path;

const COMMAND: &str = "sudo -E cargo test -p cutline-qdisc-loader";

/// Runs a test in a network namespace of its own: no test adds a queue to an interface of the host.
fn in_namespace(label: &str, test: impl FnOnce() + Send) {
    if may_make_namespaces(COMMAND) {
        Namespace::create(label).unwrap().within(test).unwrap();
    }
}

fn settings(aqm: &str, tsq: bool) -> QdiscSettings {
    let aqm = AqmSpec::from_values(aqm, []).unwrap();
    let queue = QueueSpec {
        limit: Limit::Packets(100),
        ecn: false,
        aqm,
        tsq: tsq.then(TsqParams::default),
        rate: Rate::from_mbps(10),
    };
    let (overhead, hints) = (Overhead::Ethernet, HintTable::standard());
    QdiscSettings { queue, shaped: true, overhead, hints, mq: false }
}

#[test]
fn errors_distinguish_kernels_without_these_queues() {
    in_namespace("without", || {
        let folder = Path::new(BPFFS).join("cutline");
        let was_there = folder.exists();
        let queues = KernelQueues::new(Path::new(BPFFS));
        let added = queues.add("lo", &settings("sieve", false), false, &ObjectLoader::default());
        match (cutline_sys::bpf::queueing_disciplines(), added) {
            (Err(_), Err(error @ QdiscError::NotSupported(_))) => {
                let message = error.to_string();
                assert!(message.contains("cutline router up") && message.contains("CONFIG_"), "{message}");
                assert!(!error.is_usage());
            }
            // Where the kernel has them, the objects or the privilege are missing, or it has worked and is undone.
            (Ok(()), Ok(_)) => drop(queues.remove("lo", false).unwrap()),
            (Ok(()), Err(error)) => assert!(!matches!(error, QdiscError::NotSupported(_)), "{error}"),
            (supported, added) => panic!("{supported:?} and {added:?}"),
        }
        let (left, _) = queues.list().unwrap();
        assert!(left.is_empty() && folder.exists() == was_there, "nothing is left behind: {left:?}");
    });
}

#[test]
fn settings_are_refused_before_any_system_call() {
    in_namespace("refused", || {
        let queues = KernelQueues::new(Path::new(BPFFS));
        for (aqm, tsq) in [("pie", true), ("fq-codel", false), ("pi", false), ("cake", false)] {
            let error = queues.add("lo", &settings(aqm, tsq), false, &ObjectLoader::default()).unwrap_err();
            assert!(error.is_usage(), "{aqm}: {error}");
            assert!(error.to_string().contains("sieve"), "{aqm}: {error}");
        }
    });
}

#[test]
fn an_interface_that_does_not_exist_is_named() {
    let queues = KernelQueues::new(Path::new(BPFFS));
    let none = "cutline-none0";
    let refused = [
        queues.add(none, &settings("sieve", false), false, &ObjectLoader::default()).map(drop),
        queues.show(none).map(drop),
        queues.change(none, &QdiscChange::default()).map(drop),
    ];
    for refused in refused {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(none), "{error}");
    }
}

#[test]
fn an_interface_without_a_queue_says_so() {
    in_namespace("empty", || {
        let error = KernelQueues::new(Path::new(BPFFS)).show("lo").unwrap_err();
        assert!(matches!(error, QdiscError::NotThere { .. }), "{error}");
        assert!(error.to_string().contains("`lo` has no queue of Cutline's"), "{error}");
    });
}
