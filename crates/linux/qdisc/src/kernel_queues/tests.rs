//! Queues in the kernel on files as the kernel shows them.

use super::*;
use std::cell::RefCell;
use std::os::unix::fs::PermissionsExt as _;

/// Returns a root with queueing disciplines for the transmit queues from 1 on.
fn root(kind: &str, below: &[&str]) -> RootQdisc {
    let below = (1..).zip(below.iter().map(|kind| (*kind).to_owned())).collect();
    RootQdisc { kind: kind.to_owned(), handle: 1, below }
}

#[test]
fn a_folder_that_is_no_bpffs_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let queues = KernelQueues::new(folder.path());
    let refused = queues.remove("lo", false).unwrap_err().to_string();
    match cutline_sys::bpf::queueing_disciplines() {
        Ok(()) => assert!(refused.contains("mount -t bpf bpf"), "{refused}"),
        Err(why) => assert!(refused.contains(&why.to_string()), "{refused}"),
    }
    assert!(queues.list().unwrap().0.is_empty());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

/// Without pins, `del` of a wrong name is not about the kernel or its bpffs.
#[test]
fn an_interface_that_does_not_exist_is_named_first() {
    let folder = tempfile::tempdir().unwrap();
    let error = KernelQueues::new(folder.path()).remove("cutline-none0", false).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("no interface `cutline-none0`"), "{error}");
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let is_own_with = |mode| {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        let found = stat(folder.path()).unwrap();
        is_own(found.st_uid, found.st_mode)
    };
    assert_eq!([0o700, 0o755, 0o775, 0o1777].map(is_own_with), [true, true, false, false]);
    assert!(!is_own(geteuid().as_raw() + 1, 0o700));
    let refused = QdiscError::NotOwn { folder: PathBuf::from("/sys/fs/bpf/cutline") }.to_string();
    assert!(refused.contains("/sys/fs/bpf/cutline") && refused.contains("remove it"), "{refused}");
}

#[test]
fn the_load_is_of_cells_in_use() {
    let cell = |state, at| AccountLayout {
        finish: 0,
        upper_finish: 0,
        at,
        id: 1,
        lag: 0,
        warned_until: 0,
        waiting: 0,
        state,
    };
    // The clock of 16 bits has restarted since the third.
    let cells = [cell(0x8000, 5), cell(0, 5), cell(0x9001, u16::MAX), cell(0x8000, u16::MAX - 225)];
    let now = Instant::from_nanos((1 << 38) + (6 << 22));
    assert_eq!(table_load(&cells, 150_000_000, now), 0.5);
    assert_eq!(table_load(&[], 150_000_000, now), 0.0);
}

#[test]
fn only_a_missing_privilege_makes_a_value_unknown() {
    let failed = |kind: std::io::ErrorKind| Err::<u32, _>(QdiscError::map("unread")(kind.into()));
    assert_eq!(permitted(Ok(7)).unwrap(), Some(7));
    assert_eq!(permitted(failed(std::io::ErrorKind::PermissionDenied)).unwrap(), None);
    assert!(permitted(failed(std::io::ErrorKind::NotFound)).is_err());
}

#[test]
fn the_error_of_a_command_is_not_hidden_by_that_of_tidying_up() {
    let folder = tempfile::tempdir().unwrap();
    let pins = folder.path().join(FOLDER).join(KernelQueue::Tsq.folder());
    fs::create_dir_all(&pins).unwrap();
    // A link without maps cannot be opened.
    fs::write(pins.join(pins::LINK), "").unwrap();
    let queues = KernelQueues::new(folder.path());
    queues.finish(Ok(())).unwrap_err();
    let own = QdiscError::NoInstance { instances: 1, kind: KernelQueue::Tsq.kernel_name() };
    let error = queues.finish(Err::<(), _>(own)).unwrap_err();
    assert!(matches!(error, QdiscError::NoInstance { .. }), "{error}");
}

#[test]
fn a_limit_without_memory_is_compared_with_the_memory_of_a_transmit_queue() {
    let message = |queues| QdiscError::LargerLimit { limit: 12_000, slots: 2500, queues }.to_string();
    assert!(message(1).contains("memory for 2500; remove it"), "{}", message(1));
    assert!(message(16).contains("memory for 2500 in each transmit queue; remove it"), "{}", message(16));
}

#[test]
fn a_queue_that_was_removed_for_another_one_is_reported_with_the_reason() {
    let error = Box::new(QdiscError::NoInstance { instances: 7, kind: KernelQueue::Tsq.kernel_name() });
    let error = QdiscError::NotReplaced { interface: "eth0".to_owned(), error };
    let message = error.to_string();
    assert!(message.starts_with("all 7 instances") && message.contains("`eth0`"), "{message}");
    assert!(message.contains("removed") && message.contains("cutline qdisc add"), "{message}");
    assert!(!error.is_usage());
}

/// `ip netns exec` hides the pins of a queue that the interface has.
#[test]
fn a_queue_without_pins_is_not_denied() {
    let message = |kind: Option<&str>| {
        let root = kind.map(|kind| root(kind, &[]));
        KernelQueues::new(Path::new(BPFFS)).missing("eth0".to_owned(), root.as_ref()).to_string()
    };
    let hidden = message(Some("cutline_sieve3"));
    assert!(hidden.contains("has the queue cutline_sieve3") && hidden.contains("--bpffs"), "{hidden}");
    assert!(!hidden.contains("no queue"), "{hidden}");
    let none = "`eth0` has no queue of Cutline's in the kernel";
    assert!(message(Some("htb")).starts_with(&format!("{none}; it has htb: ")));
    assert!(message(None).starts_with(&format!("{none}: `cutline qdisc add` adds one")));
}

#[test]
fn an_mq_of_another_program_is_not_cutlines() {
    let message = |kind: &str| {
        QdiscError::OtherQdisc { interface: "eth0".to_owned(), kind: kind.to_owned(), handle: 1 }.to_string()
    };
    assert!(message("mq").contains("mq 1:") && message("mq").contains("one for all transmit queues"));
    assert!(message("mq").contains("one for each with --mq"));
    assert!(!message("htb").contains("transmit queues"));
    let found = |kind: &str, below: &[&str]| queue_at(&root(kind, below));
    assert_eq!(found("cutline_tsq3", &[]), Some(KernelQueue::Tsq));
    assert_eq!(found("mq", &["cutline_sieve3"]), Some(KernelQueue::Sieve));
    assert_eq!(found("mq", &["cutline_sieve3", "fq_codel"]), Some(KernelQueue::Sieve));
    assert_eq!([found("mq", &["fq_codel"]), found("mq", &[]), found("htb", &["cutline_tsq3"])], [None; 3]);
}

#[test]
fn queueing_disciplines_of_other_programs_below_an_mq_are_named() {
    let others = |below: &[&str]| others_below(&root("mq", below));
    assert_eq!(others(&["cutline_tsq3", "cutline_tsq3"]), BTreeMap::new());
    assert_eq!(others_below(&root("cutline_tsq3", &[])), BTreeMap::new());
    let message = |others| QdiscError::OthersBelow { interface: "eth0".to_owned(), others }.to_string();
    let one = message(others(&["cutline_sieve3", "fq_codel", "cutline_sieve3"]));
    assert!(one.starts_with("fq_codel on transmit queue 2 of `eth0`, set by another program"), "{one}");
    assert!(one.contains("nothing was removed") && one.contains("del --all` removes it"), "{one}");
    let some = message(others(&["pfifo", "cutline_tsq3", "fq_codel", "pfifo"]));
    let expected = "fq_codel on transmit queue 3 and pfifo on transmit queues 1, 4 of `eth0`";
    assert!(some.starts_with(expected) && some.contains("removes them"), "{some}");
}

#[test]
fn a_queue_of_another_version_is_cutlines() {
    let of = |kind: &str, below: &[&str]| {
        let root = root(kind, below);
        other_version(&root).map(|(kind, layout)| (kind.to_owned(), layout))
    };
    let known = |kind: &str, layout| Some((kind.to_owned(), layout));
    assert_eq!(of("cutline_sieve2", &[]), known("cutline_sieve2", 2));
    assert_eq!(of("mq", &["fq_codel", "cutline_tsq12"]), known("cutline_tsq12", 12));
    for (kind, below) in [("cutline_sieve3", None), ("mq", Some("cutline_tsq3")), ("htb", Some("cutline_x2"))]
    {
        assert_eq!(of(kind, below.as_slice()), None, "{kind}");
    }
    for other in ["cutline_sieve", "cutline_tsqx2", "cutline_tsq+2", "xcutline_tsq2", "fq_codel"] {
        assert_eq!(of(other, &[]), None, "{other}");
    }
    let queues = KernelQueues::new(Path::new(BPFFS));
    let old = queues.missing("eth0".to_owned(), Some(&root("cutline_sieve2", &[]))).to_string();
    for words in [
        "queue cutline_sieve2 of an older version of Cutline",
        "cutline qdisc add --replace",
        "tc qdisc del dev eth0 root",
        "/sys/fs/bpf/cutline/sieve2",
    ] {
        assert!(old.contains(words), "{old}");
    }
    let newer = queues.missing("eth0".to_owned(), Some(&root("mq", &["cutline_tsq4"]))).to_string();
    assert!(newer.contains("cutline_tsq4 of a newer version"), "{newer}");
}

/// All instances by default, and a few of tens of thousands.
#[test]
fn a_command_examines_a_few_instances() {
    let from = |instances, draw| examined_from(instances, draw).collect::<Vec<_>>();
    assert_eq!([from(0, 5), from(1, 5), from(64, 5)], [[0], [0], [0]]);
    assert_eq!(from(65, 5), [0, 1]);
    for draw in [0, 1, 99, 49_935, u64::MAX] {
        let found = from(50_000, draw);
        assert!(found.len() == 2 && found[1] >= 1 && found[1] + EXAMINED <= 50_000, "{found:?}");
    }
}

#[test]
fn an_interface_has_a_queue_for_each_transmit_queue_in_use_if_that_is_wanted() {
    assert_eq!(
        [(8, false), (257, false), (1, true), (8, true), (256, true)].map(|(used, mq)| queues_of(used, mq)),
        [Ok(1), Ok(1), Ok(1), Ok(8), Ok(256)]
    );
    let refused = queues_of(257, true).unwrap_err().to_string();
    assert!(refused.contains("mq = 257") && refused.contains("ethtool -L"), "{refused}");
}

#[test]
fn an_interface_may_take_the_instance_that_it_has() {
    let key = |index| InterfaceKey { namespace_inode: 1, index };
    let entry = |index, instance, queues| Entry { key: key(index), instance, queues };
    let entries = [entry(7, 0, 1), entry(8, 1, 1)];
    let free = |index, instances| free_instances(&entries, &key(index), instances, 1);
    assert_eq!([free(7, 2), free(8, 2), free(9, 3)], [Some(0), Some(1), Some(2)]);
    assert_eq!(free(9, 2), None);
}

#[test]
fn the_instances_of_an_interface_are_in_a_row() {
    let key = |index| InterfaceKey { namespace_inode: 1, index };
    let entry = |index, instance, queues| Entry { key: key(index), instance, queues };
    let entries = [entry(7, 2, 4), entry(8, 9, 1)];
    let free = |index, count| free_instances(&entries, &key(index), 12, count);
    assert_eq!([free(9, 2), free(9, 3), free(9, 4)], [Some(0), Some(6), None]);
    // Its own old ones are free.
    assert_eq!([free(7, 9), free(7, 10)], [Some(0), None]);
    assert_eq!(free(9, 13), None);
}

#[test]
fn no_generation_is_zero() {
    assert_eq!([0, 1, u32::MAX].map(next), [1, 2, 1]);
    // 0 is that of no refused configuration.
    assert_eq!(
        [(3, 0), (3, 3), (3, 4), (u32::MAX, 1)].map(|(last, refused)| next_but(last, refused)),
        [4, 4, 5, 2]
    );
}

/// The program is a function here: it takes over the rates that it accepts.
#[test]
fn a_refused_change_leaves_the_configuration_before_it() {
    let status = crate::testing::status("pi2", true);
    let map = RefCell::new(status.config.clone());
    let changed = |rate, accepted: &dyn Fn(u64) -> Option<bool>| {
        let before = map.borrow().clone();
        let after = QdiscConfig { generation: before.generation + 1, link_bps: rate, ..before.clone() };
        let write = |config: &QdiscConfig| {
            map.borrow_mut().clone_from(config);
            Ok(())
        };
        let counters = || {
            let mut counters = status.counters.clone();
            let written = map.borrow();
            match accepted(written.link_bps) {
                Some(true) => counters.generation = written.generation,
                Some(false) => counters.refused_generation = written.generation,
                None => {}
            }
            Ok(counters)
        };
        take_over([&before, &after], write, counters).unwrap()
    };
    assert_eq!(changed(7, &|rate| Some(rate > 1000)), None);
    assert_eq!(*map.borrow(), status.config);
    assert_eq!(changed(4_000_000, &|rate| Some(rate > 1000)), Some(ChangeOutcome::InUse));
    assert_eq!((map.borrow().link_bps, map.borrow().generation), (4_000_000, 4));
    assert_eq!(changed(5_000_000, &|_| None), Some(ChangeOutcome::WithNextPacket));
    assert_eq!((map.borrow().link_bps, map.borrow().generation), (5_000_000, 5));
}
