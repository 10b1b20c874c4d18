#!/usr/bin/env python3
"""Loads the queueing disciplines of `bpf/` into Debian's newest kernel in a virtual machine, or into the oldest one with queueing disciplines in eBPF
(`--kernel oldest`), uses them, and judges what happened.

    python3 validate/qdisc_vm.py --cutline target/debug/cutline --work target/linux-vm

The command `cutline qdisc` loads them and is used as an operator uses it; `bpf/tests/qdisc.c` sets what the command refuses. `bpf/tests/vm.sh` is what the machine does; `CHECKS` is what has to come of it. A second machine has two processors, for queues below `mq` (`vm_mq.sh`, `MQ_CHECKS`). Both begin with `vm_common.sh`. The machine counts instructions as nanoseconds
(`linux_vm.py`), so the same objects and the same kernel give the same output, however busy the host is.
"""

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import bpf_build
import linux_vm
from qdisc_common import Fault, NotRun, building, installed, require, unaccounted

MODULES = ("veth", "sch_netem", "sch_fq_codel", "sch_cake", "sch_htb")
LINK_MBPS = 10.0
MTU = 1000
"""Bytes of the largest frame."""
TIMEOUT = 3600
"""The longest that the machine may take, s."""
FLOWS = 1_000_000
"""Flows of `frames wide flows` in vm.sh."""
SECOND = "mq"
"""First process of the second machine."""
REFUSED = 2
"""Exit status of tc when the kernel refuses."""
PAGE = 4096
MOST_BYTES = 64_000
"""Memory of an interface with the default settings at 10 Mbit/s."""
INTERFACES, ADDED, MOST_BYTES_OF_ALL = 40_000, 100, 4e9
"""Interfaces that there is room for, those that vm.sh adds, and the memory of all that there is room for."""


@dataclass
class Found:
    """Output of the machine about one queueing discipline."""

    status: list[tuple[str, int]] = field(default_factory=list)
    shown: dict[str, dict] = field(default_factory=dict)
    tc: dict[str, list] = field(default_factory=dict)
    loads: dict[str, dict] = field(default_factory=dict)
    slabs: dict[str, int] = field(default_factory=dict)
    costs: list[dict] = field(default_factory=list)
    lists: dict[str, list] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    pins: dict[str, int] = field(default_factory=dict)
    objects: dict[str, int] = field(default_factory=dict)
    memory: dict[str, int] = field(default_factory=dict)
    available: dict[str, int] = field(default_factory=dict)
    salts: dict[str, str] = field(default_factory=dict)
    stream: dict[str, float] = field(default_factory=dict)

    def codes(self, step: str) -> list[int]:
        """Exit statuses of a step."""
        return [code for name, code in self.status if name == step]


@dataclass
class Blast:
    """Cost of a queue: instructions to send a packet, and the share of the packets that left it."""

    instructions: float
    share: float = 1.0

    def more(self, blasts: dict[str, "Blast"]) -> float:
        """Instructions of the queue itself, beyond those of the same packets without a queue. Where a packet has not left, they are those of a queue that drops it."""
        return self.instructions - self.share * blasts["noqueue"].instructions - (1 - self.share) * blasts["blackhole"].instructions


def image(work: Path, tools: bpf_build.Tools, objects: list[Path], command: Path, rounds: int) -> Path:
    """The first file system. The command is where it is installed, with the objects in their place and its libraries."""
    tests, program = bpf_build.ROOT / "bpf/tests", tools.work / "qdisc"
    tools.compile_program(tests / "qdisc.c", program)
    files = {"init": tests / "vm.sh", SECOND: tests / "vm_mq.sh", "common.sh": tests / "vm_common.sh", "qdisc": program} | linux_vm.programs(work)
    for name in ("blast", "frames", "pinned", "six"):
        files[name] = tools.work / name
        subprocess.run(["gcc", "-O2", "-Wall", "-static", "-o", files[name], tests / f"{name}.c"], check=True)
    files |= {f"peer/{name}": (tools.libraries / name).resolve() for name in bpf_build.LIBRARIES}
    files |= installed(work, command, objects)
    contents = {name: (0o100755, path.read_bytes()) for name, path in files.items()} | linux_vm.modules(work, MODULES)
    queues = " ".join(path.name.removesuffix(".bpf.o") for path in objects)
    contents["queues"] = (0o100644, f"{queues}\n".encode())
    contents["rounds"] = (0o100644, f"{rounds}\n".encode())
    written = work / "qdisc.cpio"
    written.write_bytes(linux_vm.archive(contents))
    return written


def read(output: str) -> tuple[str, dict[str, Found], dict[str, Blast], list[str]]:
    """The kernel's version, the findings by queueing discipline, the costs by queue, and the faults."""
    version, found, blasts, wrong, queue, step = "", {}, {}, [], Found(), ""
    for line in output.splitlines():
        word, _, rest = line.strip().partition(" ")
        name, _, value = rest.partition(" ")
        try:
            if word == "KERNEL":
                version = rest
            elif word == "QDISC":
                queue = found[rest] = Found()
            elif word == "RUN":
                step = rest
            elif word == "STATUS":
                queue.status.append((name, int(value)))
            elif word in ("SHOW", "TC", "LIST"):
                {"SHOW": queue.shown, "TC": queue.tc, "LIST": queue.lists}[word][name] = json.loads(value)
            elif word == "SAID":
                queue.said[name] = value
            elif word == "PINS":
                queue.pins[name] = int(value)
            elif word == "OBJECTS":
                queue.objects[name] = int(value)
            elif word == "MEMORY":
                queue.memory = json.loads(rest)
            elif word == "AVAILABLE":
                queue.available[name] = int(value)
            elif word == "SALT":
                queue.salts[name] = value
            elif word == "SIX":
                queue.stream = json.loads(rest)
            elif word == "BLAST":
                blasts[name] = Blast(float(value))
            elif word == "LEFT":
                root = json.loads(value)[0]
                blasts[name].share = root["packets"] / (root["packets"] + root["drops"] + root["qlen"])
            elif word == "SLAB":
                queue.slabs[name] = int(value)
            elif word == "RESULT":
                queue.loads[step] = json.loads(rest)
            elif word == "COST":
                queue.costs.append(json.loads(rest))
            elif word in ("FAILED", "KERNELMESSAGE"):
                wrong.append(line)
        except ValueError:
            wrong.append(f"the machine has printed no value: {line}")
    if "\nDONE" not in output:
        wrong.append(f"the machine stopped early:\n{output[-1500:]}")
    return version, found, blasts, wrong


def lost(counts: dict) -> int:
    """Packets that were dropped for any reason."""
    return sum(counts[reason][0] for reason in ("early", "overflow", "unsent"))


def between(queue: Found, first: str, second: str) -> float:
    """Bits that were sent between two readings."""
    return 8 * (queue.shown[second]["sent"][1] - queue.shown[first]["sent"][1])


def refusals(queue: Found) -> str:
    """Without a configuration, with one that is out of range, or where it is already, it is refused; otherwise not."""
    wrong = [step for step in ("unconfigured", "out-of-range", "twice", "forgotten") if queue.codes(step) != [REFUSED]]
    wrong += [step for step in ("set", "attached", "detached", "forget") if set(queue.codes(step)) != {0}]
    return ", ".join(wrong)


def accounting(queue: Found) -> str:
    """Every packet and byte that was received was sent, was dropped for a reason, or waits; the kernel counts the same."""
    wrong = []
    for step, shown in queue.shown.items():
        for unit in (0, 1):
            parts = sum(shown[part][unit] for part in ("sent", "early", "overflow", "unsent", "backlog"))
            if shown["received"][unit] != parts:
                wrong.append(f"{step}: {shown['received'][unit]} received, {parts} accounted for")
        by_hint = sum(hint["departed"] for hint in shown["hints"].values())
        if by_hint != shown["sent"][0] or sum(shown["waits"]) != shown["sent"][0]:
            wrong.append(f"{step}: {shown['sent'][0]} sent, {by_hint} by hint, {sum(shown['waits'])} by wait")
    shown, [kernel] = queue.shown["unshaped"], queue.tc["unshaped"]
    if (kernel["packets"], kernel["bytes"], kernel["drops"]) != (*shown["sent"], lost(shown)):
        wrong.append(f"unshaped: {kernel} against {shown}")
    return "; ".join(wrong)


def shaping(queue: Found) -> str:
    """A full link sends at its rate, give or take 1 %: ten Mbit/s, and four after the change."""
    wrong = []
    slower = between(queue, "slower", "slower-later") / 2e6
    if abs(slower - 4) > 0.04:
        wrong.append(f"{slower:.3f} instead of 4 Mbit/s")
    goodput = sum(queue.loads["mixed"]["goodputs"]) / 1e6
    if not 0.8 * LINK_MBPS < goodput < LINK_MBPS:
        wrong.append(f"{goodput:.3f} Mbit/s of TCP's goodput over a link of {LINK_MBPS}")
    if queue.shown["overload"]["slipped_ms"] > 100:
        wrong.append(f"the schedule has slipped by {queue.shown['overload']['slipped_ms']} ms")
    return "; ".join(wrong)


def changes(queue: Found) -> str:
    """A change is taken over by the next packet, one that is out of range is not, and says so."""
    before, after, refused = (queue.shown[step] for step in ("segments", "slower", "refused"))
    wrong = [] if after["generation"] > 0 and after["refused"] == 0 else ["the change is not in use"]
    if refused["refused"] != after["generation"] + 1 or refused["generation"] != after["generation"]:
        wrong.append(f"a rate of 7 bit/s: {refused['generation']} in use, {refused['refused']} refused")
    if queue.codes("after-refused") != [0] or before["generation"] != refused["generation"] + 3:
        wrong.append("the changes after the refused one are not in use")
    return "; ".join(wrong)


def down_and_up(queue: Found) -> str:
    """Packets that wait when the interface goes down are counted as unsent, and traffic continues when it is up again."""
    before, down, up = (queue.shown[step] for step in ("changed", "down", "up-later"))
    wrong = [] if down["backlog"][0] == 0 and down["unsent"][0] > before["unsent"][0] else ["nothing was flushed"]
    if up["sent"][0] < down["sent"][0] + 500:
        wrong.append("no traffic after it")
    return "; ".join(wrong)


def commands(queue: Found) -> str:
    """The command adds, changes, replaces and removes; a second `add`, a foreign queueing discipline, a missing object and a wrong value are refused with a reason."""
    wanted = {"loaded": 0, "add": 0, "replace": 0, "replace-own": 0, "kept": 0, "change": 0, "metrics": 0, "del": 0, "many-add": 0, "many-del": 0, "many-instances": 0}
    refused = {"under-mq": REFUSED, "over-mq": 1, "add-twice": 1, "add-foreign": 1, "del-twice": 1, "unloadable": 1, "wrong": 2, "change-larger": 2, "no-interface": 2, "unknown": REFUSED}
    wrong = [f"{step}: {queue.codes(step)}" for step, code in (wanted | refused).items() if set(queue.codes(step)) != {code}]
    reasons = {
        "add-twice": ("already", "cutline qdisc change"),
        "add-foreign": ("pfifo 77:", "--replace"),
        "del-twice": ("no queue of Cutline's",),
        "unloadable": (".bpf.o is missing",),
        "del-gone": ("memory was freed",),
        "over-mq": ("mq 1:", "one for all transmit queues"),
        "many-add": ("2 transmit queues",),
        "many-instances": ("--instances 7 has no effect", "was set to 64"),
        "change": ("4 Mbit/s", "in use", "tso off gso off"),
    }
    for step, words in reasons.items():
        wrong += [f"{step} does not say `{word}`: {queue.said[step]}" for word in words if word not in queue.said[step]]
    return "; ".join(wrong)


def records(queue: Found) -> str:
    """`show --json` has every packet: received = sent + dropped + queued, for each hint and each wait."""
    wrong = []
    for step, listed in queue.lists.items():
        [shown] = listed
        if fault := unaccounted(shown):
            wrong.append(f"{step}: {fault}")
        if not shown["running"] or shown["statistics"]["sent"]["packets"] == 0:
            wrong.append(f"{step}: nothing was sent")
    return "; ".join(wrong)


def command_changes(queue: Found) -> str:
    """A change by the command while packets flow: 4 Mbit/s give or take 1 %, with the next generation, and no packet that waits is lost by it."""
    [flowing], [slower], [later], [changed] = (queue.lists[step] for step in ("flowing", "slower", "slower-later", "changed"))
    rate = 8 * (later["statistics"]["sent"]["bytes"] - slower["statistics"]["sent"]["bytes"]) / (later["elapsed_s"] - slower["elapsed_s"]) / 1e6
    wrong = [] if abs(rate - 4) < 0.04 else [f"{rate:.3f} instead of 4 Mbit/s"]
    generations = [shown["generation"] for shown in (flowing, slower, later, changed)]
    if generations != [1, 2, 2, 3] or slower["statistics"]["rate_bps"] != 4_000_000:
        wrong.append(f"generations {generations}, rate {slower['statistics']['rate_bps']}")
    if changed["limit_packets"] != 500 or changed["statistics"]["rate_bps"] != 10_000_000:
        wrong.append(f"the second change: {changed}")
    unsent = later["statistics"]["dropped"]["unsent"]["packets"]
    return "; ".join([*wrong, f"{unsent} packets were lost by the change"] if unsent else wrong)


def frames(queue: Found) -> str:
    """Frames of every code point, in IPv4, IPv6, behind tags and before extension headers, have their hint, others that of code point 0; jumbo frames, a smaller MTU and the largest limit work."""
    codes = {"wide-add": 0, "wide-larger": 2, "frames": 0, "wide-change": 0, "wide-del": 0}
    wrong = [f"{step}: {queue.codes(step)}" for step, code in codes.items() if set(queue.codes(step)) != {code}]
    steps = ("points", "malformed", "jumbo", "smaller", "extensions")
    points, malformed, jumbo, smaller, extensions = (queue.lists[step][0]["statistics"] for step in steps)
    if queue.lists["points"][0]["limit_packets"] != 1_000_000:
        wrong.append(f"limit {queue.lists['points'][0]['limit_packets']} packets")
    departed = [{hint["hint"]: hint["departed"]["packets"] for hint in shown["hints"]} for shown in (points, malformed, smaller, extensions)]
    # Four code points of each hint, in five forms.
    if departed[0] != dict.fromkeys(range(1, 17), 20) or points["not_ip"]["packets"] != 0:
        wrong.append(f"code points: {departed[0]} by hint, {points['not_ip']['packets']} not IP")
    if departed[1] != departed[0] | {1: 27} or malformed["not_ip"]["packets"] != 7:
        wrong.append(f"malformed: {departed[1]} by hint, {malformed['not_ip']['packets']} not IP")
    sent = [jumbo["sent"][unit] - malformed["sent"][unit] for unit in ("packets", "bytes")]
    if sent != [20, 20 * 9014]:
        wrong.append(f"jumbo frames: {sent[0]} packets, {sent[1]} B")
    before = queue.lists.get("flows", queue.lists["jumbo"])[0]["statistics"]["sent"]["packets"]
    if smaller["sent"]["packets"] <= before or smaller["queued_packets"] != 0:
        wrong.append(f"smaller MTU: {smaller['sent']['packets'] - before} sent, {smaller['queued_packets']} wait")
    # vm.sh gives code point 46 the hint 15.
    if departed[3] != departed[2] | {15: departed[2][15] + 8} or extensions["not_ip"] != smaller["not_ip"]:
        wrong.append(f"extension headers: {departed[3]} after {departed[2]} by hint, {extensions['not_ip']['packets']} not IP")
    return "; ".join(wrong)


def tcp_over_ipv6(queue: Found) -> str:
    """A stream of TCP over IPv6 with EF fills the link, and its packets have the hint of EF, 6, and count with all their segments."""
    wrong = [f"{step}: {queue.codes(step)}" for step in ("six-add", "six-del") if queue.codes(step) != [0]]
    goodput = 8 * queue.stream["bytes"] / queue.stream["seconds"] / 1e6
    if not 0.8 * LINK_MBPS < goodput < LINK_MBPS:
        wrong.append(f"{goodput:.3f} Mbit/s of goodput over a link of {LINK_MBPS}")
    [listed] = queue.lists["six"]
    shown = listed["statistics"]
    departed = sum(hint["departed"]["bytes"] for hint in shown["hints"] if hint["hint"] == 6)
    if departed <= queue.stream["bytes"] or shown["not_ip"]["packets"] != 0:
        wrong.append(f"{departed} B with hint 6 for {queue.stream['bytes']} B, {shown['not_ip']['packets']} packets not IP")
    return "; ".join(wrong)


def unloading(queue: Found) -> str:
    """The programs, the maps and all pins go with the last queue."""
    pins, objects = queue.pins, queue.objects
    is_gone = pins["unloaded"] == 0 and objects["unloaded"] == objects["before"]
    return "" if is_gone and pins["loaded"] > 5 and objects["loaded"] > objects["before"] + 5 else f"pins: {pins}, programs and maps: {objects}"


def allocated(size: int) -> int:
    """Bytes that the kernel takes for a map of this size: a power of two up to 8 pages, else whole pages."""
    return 1 << (size - 1).bit_length() if size <= 8 * PAGE else -(-size // PAGE) * PAGE


def memory(queue: Found) -> str:
    """An interface with the default settings at 10 Mbit/s takes at most 64 kB, rounding by the kernel included."""
    maps = {name: size for name, size in queue.memory.items() if name.startswith("cutline_")}
    total = sum(map(allocated, maps.values())) + queue.memory["configuration"] + queue.memory["statistics"]
    return "" if 0 < min(maps.values()) and total <= MOST_BYTES else f"{total} B: {queue.memory}"


def memory_of_many(queue: Found) -> str:
    """With room for 40,000 interfaces, a hundred are added and removed, and 40,000 like them take less than 4 GB of the machine's memory."""
    wrong = [f"{step}: {queue.codes(step)}" for step in ("hundred-add", "hundred-del") if queue.codes(step) != [0] * ADDED]
    before, loaded, added = (1024 * queue.available[step] for step in ("before", "loaded", "added"))
    total = before - loaded + (loaded - added) / ADDED * INTERFACES
    return "; ".join(wrong if 0 < total < MOST_BYTES_OF_ALL else [*wrong, f"{total / 1e9:.2f} GB: {queue.available} kB"])


def leaks(queue: Found) -> str:
    """After a hundred rounds, or as many as wanted, of adding and removing by the command under load, no packet is left: a packet in every second round would be found."""
    wrong = []
    for step in ("round-add", "round-del"):
        if not queue.codes(step) or set(queue.codes(step)) != {0}:
            wrong.append(f"{step}: {queue.codes(step)}")
    return "; ".join([*wrong, *packets_left(queue)])


def packets_left(queue: Found) -> list[str]:
    """The fault of packets in the kernel's memory that rounds of adding and removing have left: at least one in two rounds."""
    before, after, rounds = queue.slabs["before"], queue.slabs["after"], len(queue.codes("round-add"))
    return [f"{before} packets of the kernel before {rounds} rounds, {after} after"] if after >= before + rounds / 2 else []


def one_packet(queue: Found) -> str:
    """With a limit of one packet the queue goes on, with one packet."""
    shown, before = queue.shown["one-packet"], queue.shown["before-one-packet"]
    return "" if shown["backlog"][0] <= 1 and shown["sent"][0] > before["sent"][0] + 20 else f"backlog {shown['backlog']}"


def segments(queue: Found) -> str:
    """Packets of several segments count with all their bytes: TCP with such packets does not get more than the link's rate."""
    before, after = (queue.shown[step]["sent"] for step in ("up-later", "segments"))
    mean = (after[1] - before[1]) / (after[0] - before[0])
    goodput = sum(queue.loads["segments"]["goodputs"]) / 1e6
    wrong = [] if mean > 1.1 * MTU else [f"packets have {mean:.0f} B on the mean, so there were no segments"]
    if not 0.5 * LINK_MBPS < goodput < LINK_MBPS:
        wrong.append(f"{goodput:.3f} Mbit/s of goodput over a link of {LINK_MBPS}")
    return "; ".join(wrong)


def unshaped(queue: Found) -> str:
    """Without a rate to shape to nothing waits for more than a millisecond, and nothing is lost."""
    shown = queue.shown["unshaped"]
    slow = sum(shown["waits"][11:])
    return "" if lost(shown) == 0 and slow == 0 and shown["sent"][0] > 400 else f"{lost(shown)} lost, {slow} waited"


def order_by_hint(queue: Found) -> str:
    """TSQ: a smaller hint waits less and loses more, and PI drops early."""
    shown = queue.shown["mixed"]
    six, sixteen = shown["hints"]["6"], shown["hints"]["16"]
    wrong = [] if six["mean_wait_ms"] < 0.7 * sixteen["mean_wait_ms"] else ["hint 6 does not wait less"]
    loss = {name: hint["dropped"] / (hint["dropped"] + hint["departed"]) for name, hint in shown["hints"].items()}
    if loss["6"] <= loss["16"]:
        wrong.append(f"hint 6 loses {loss['6']:.4f}, hint 16 {loss['16']:.4f}")
    if shown["early"][0] < 20:
        wrong.append("PI has dropped nothing")
    return "; ".join(wrong)


def other_laws(queue: Found) -> str:
    """TSQ: PI2 holds a shorter queue than PI, RED-Worcester's average is between its thresholds; both drop early, more of the smaller hint."""
    wrong = []
    for law in ("pi2", "redw"):
        before, after = queue.shown[f"before-{law}"], queue.shown[law]
        if after["early"][0] - before["early"][0] < 20:
            wrong.append(f"{law} has dropped {after['early'][0] - before['early'][0]}")
        for name in ("6", "16"):
            first, last = (shown["hints"][name] for shown in (before, after))
            counts = [last[what] - first[what] for what in ("departed", "dropped")]
            wait = (last["mean_wait_ms"] * last["departed"] - first["mean_wait_ms"] * first["departed"]) / counts[0]
            if law == "pi2" and wait > 50:
                wrong.append(f"hint {name} waits for {wait:.1f} ms under PI2")
        # Calls of both hints arrive alike. TCP does not: its packets come when the queue is long.
        calls = [queue.loads[law]["classes"][name] for name in ("call", "plain")]
        six, sixteen = (1 - call["received"] / call["sent"] for call in calls)
        if six <= sixteen:
            wrong.append(f"{law}: calls with hint 6 lose {six:.4f}, those with hint 16 {sixteen:.4f}")
    red = queue.shown["redw"]
    # C D / P is 37.5 packets for level 6 and 100 for level 16.
    if not 20 < red["average"] < 100 or not 37 < red["target"] <= 100 or red["max_p"] <= 0:
        wrong.append(f"RED-Worcester: average {red['average']}, target {red['target']}, max_p {red['max_p']}")
    return "; ".join(wrong)


def calls_go_first(queue: Found) -> str:
    """Sieve: calls below the fair share wait for less than 10 ms and lose nothing, beside ten TCP and beside a flood, whatever their hint."""
    wrong = []
    for step, names in (("mixed", ("call", "plain")), ("overload", ("call",))):
        for name in names:
            call = queue.loads[step]["classes"][name]
            if call["received"] != call["sent"] or call["p99"] > 0.01:
                got = f"{call['received']:.0f} of {call['sent']:.0f} packets"
                wrong.append(f"{step}: {name} has {got}, with a delay of {call['p99'] * 1e3:.1f} ms (p99)")
    flood = queue.loads["overload"]["classes"]["flood"]
    if flood["received"] > 0.55 * flood["sent"]:
        wrong.append("the flood has lost too little")
    return "; ".join(wrong)


def rotated_salt(queue: Found) -> str:
    """Sieve: while its table of flows gets another salt, calls beside ten TCP wait for less than 10 ms and lose nothing."""
    wrong = [] if queue.salts["before"] != queue.salts["after"] else ["the salt is the same"]
    for name in ("call", "plain"):
        call = queue.loads["rotated"]["classes"][name]
        if call["received"] != call["sent"] or call["p99"] > 0.01:
            wrong.append(f"{name} has {call['received']:.0f} of {call['sent']:.0f} packets, with a delay of {call['p99'] * 1e3:.1f} ms (p99)")
    return "; ".join(wrong)


def many_flows(queue: Found) -> str:
    """Sieve: a million flows of a packet each, on a link that is faster than they come, leave a full table, and lose less than one packet in a hundred."""
    before, after = (queue.lists[step][0]["statistics"] for step in ("jumbo", "flows"))
    received, sent = (after[part]["packets"] - before[part]["packets"] for part in ("received", "sent"))
    wrong = [] if received == FLOWS and sent >= 0.99 * FLOWS else [f"{received} received, {sent} sent"]
    load = after["sieve"]["load"]
    return "; ".join(wrong if 0.5 < load <= 1 else [*wrong, f"load {load}"])


def mq_commands(queue: Found) -> str:
    """The command adds, changes, replaces and removes a queue for each of two transmit queues in use, below `mq`, and nothing is left. It sets one where one is in use, refuses 300, and leaves a queue of another program unless it may not."""
    wanted = {"add": 0, "change": 0, "replace": 0, "del": 0, "round-add": 0, "round-del": 0, "add-twice": 1, "del-twice": 1}
    wanted |= {"spare-add": 0, "spare-del": 0, "too-many": 2, "del-others": 1, "del-all": 0}
    wrong = [f"{step}: {queue.codes(step)}" for step, code in wanted.items() if set(queue.codes(step)) != {code}]
    if "one for each of 2 transmit queues" not in queue.said["add"]:
        wrong.append(f"add says {queue.said['add']}")
    [spare] = queue.lists["spare"]
    if spare["hardware_queues"] != 1:
        wrong.append(f"{spare['hardware_queues']} queues for a transmit queue in use")
    if "at most 256 transmit queues" not in queue.said["too-many"]:
        wrong.append(f"300 transmit queues: {queue.said['too-many']}")
    if "pfifo on transmit queue 2 of `many`" not in queue.said["del-others"] or "--all" not in queue.said["del-others"]:
        wrong.append(f"a queue of another program: {queue.said['del-others']}")
    shown = {step: sorted(entry["kind"].rstrip("0123456789") for entry in queue.tc[step]) for step in ("others", "none")}
    if len(shown["others"]) != 3 or "pfifo" not in shown["others"] or any(kind.startswith("cutline_") for kind in shown["none"]):
        wrong.append(f"del without and with --all leaves {shown}")
    kinds = [entry["kind"] for entry in queue.tc["first"]]
    if kinds[0] != "mq" or len(kinds) != 3 or not all(kind.startswith("cutline_") for kind in kinds[1:]):
        wrong.append(f"queueing disciplines {kinds}")
    if queue.pins["unloaded"] != 0:
        wrong.append(f"{queue.pins['unloaded']} pins are left")
    wrong += packets_left(queue)
    return "; ".join(wrong)


def leaf_bytes(queue: Found, step: str) -> list[int]:
    """Bytes that each transmit queue has sent, by its number."""
    leaves = [entry for entry in queue.tc[step] if entry["kind"].startswith("cutline_")]
    return [entry["bytes"] for entry in sorted(leaves, key=lambda entry: int(entry["parent"].rpartition(":")[2], 16))]


def mq_mbps(queue: Found, step: str) -> float:
    """The rate of all transmit queues together from a reading to the later one."""
    [before], [after] = queue.lists[step], queue.lists[f"{step}-later"]
    return 8 * (after["statistics"]["sent"]["bytes"] - before["statistics"]["sent"]["bytes"]) / (after["elapsed_s"] - before["elapsed_s"]) / 1e6


def mq_parts(queue: Found, step: str) -> list[float]:
    """The part of each transmit queue of the bytes from a reading to the later one."""
    sent = [after - before for before, after in zip(leaf_bytes(queue, step), leaf_bytes(queue, f"{step}-later"), strict=True)]
    return [each / sum(sent) for each in sent]


def mq_rate(queue: Found) -> str:
    """Two transmit queues have the rate together, give or take 1 %: each alone, both, and where one has little to send; and a changed rate."""
    rates = {step: 10.0 for step in ("first", "second", "both", "little")} | {"slower": 4.0}
    found = {step: mq_mbps(queue, step) for step in rates}
    wrong = [f"{step}: {found[step]:.3f} instead of {rate} Mbit/s" for step, rate in rates.items() if abs(found[step] / rate - 1) > 0.01]
    [changed] = queue.lists["slower"]
    return "; ".join(wrong if changed["generation"] == 2 else [*wrong, f"generation {changed['generation']}"])


def mq_shares(queue: Found) -> str:
    """A sender alone uses its own transmit queue, two equal ones have half of the link each, and one with little to send keeps it."""
    first, second, both, little = (mq_parts(queue, step) for step in ("first", "second", "both", "little"))
    wrong = [] if first[0] > 0.98 and second[1] > 0.98 else [f"alone: {first} and {second}"]
    # Under TSQ, packets of both are dropped by chance.
    off = 0.05 if "tsq" in queue.tc["both"][1]["kind"] else 0.03
    if abs(both[0] - 0.5) > off:
        wrong.append(f"both: {both}")
    # 2 of 10 Mbit/s, of which only Sieve loses nothing.
    if "sieve" in queue.tc["both"][1]["kind"] and abs(little[1] - 0.2) > 0.01:
        wrong.append(f"little: {little}")
    return "; ".join(wrong)


def mq_accounting(queue: Found) -> str:
    """All transmit queues together account for every packet, and the kernel counts as many on each."""
    wrong = []
    for step in ("settled", "unshaped"):
        [shown] = queue.lists[step]
        found = shown["statistics"]
        dropped = sum(counted["packets"] for counted in found["dropped"].values())
        parts = found["sent"]["packets"] + dropped + found["queued_packets"]
        by_hint = sum(hint["departed"]["packets"] for hint in found["hints"])
        if found["received"]["packets"] != parts or by_hint != found["sent"]["packets"] or found["queued_packets"] != 0:
            wrong.append(f"{step}: {found}")
        if sum(leaf_bytes(queue, step)) != found["sent"]["bytes"] or shown["hardware_queues"] != 2 or not shown["running"]:
            wrong.append(f"{step}: {leaf_bytes(queue, step)} B by transmit queue, {shown['hardware_queues']} of them")
    [down], [up] = queue.lists["down"], queue.lists["up"]
    if down["statistics"]["dropped"]["unsent"]["packets"] == 0 or up["statistics"]["sent"]["packets"] < down["statistics"]["sent"]["packets"] + 300:
        wrong.append("down and up: nothing was flushed, or nothing sent after it")
    [unshaped] = queue.lists["unshaped"]
    lost_there = sum(counted["packets"] for counted in unshaped["statistics"]["dropped"].values())
    if lost_there or unshaped["statistics"]["sent"]["packets"] < 10000:
        wrong.append(f"unshaped: {lost_there} lost, {unshaped['statistics']['sent']['packets']} sent")
    return "; ".join(wrong)


def costs(blasts: dict[str, Blast]) -> str:
    """A datagram through an empty queue, or to a full link, takes at most as many instructions as with CAKE."""
    more = {name: blast.more(blasts) for name, blast in blasts.items()}
    pairs = [(f"{name}{link}", f"cake{link}") for name in CHECKS for link in ("", "-full")]
    return "; ".join(f"{name} takes {more[name]:.0f}, {cake} {more[cake]:.0f}" for name, cake in pairs if more[name] > more[cake])


COMMON = (
    refusals, accounting, shaping, changes, down_and_up, segments, one_packet, unshaped, commands, records, command_changes, frames, memory,
    memory_of_many, tcp_over_ipv6, leaks, unloading,
)  # fmt: skip
CHECKS = {"tsq": (*COMMON, order_by_hint, other_laws), "sieve": (*COMMON, calls_go_first, rotated_salt, many_flows)}
MQ_CHECKS = dict.fromkeys(CHECKS, (mq_commands, mq_rate, mq_shares, mq_accounting))
"""Of the second machine."""


def main() -> int:
    """Builds, runs and judges."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cutline", type=Path, default=Path("target/debug/cutline"), help="the command (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=Path("target/linux-vm"), help="the machine's folder (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("target/bpf"), help="folder of the objects (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=100, help="rounds of adding and removing under load (default: %(default)s)")
    parser.add_argument("--only", choices=("init", SECOND), default="", help="one machine: that with one processor, or that with two")
    parser.add_argument(
        "--kernel", choices=("newest", "oldest"), default="newest",
        help="that of the suites to boot: the oldest one with queueing disciplines in eBPF gets a folder of its own in that of the machine (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--verbose", action="store_true", help="print the machine's output as well")
    arguments = parser.parse_args()
    try:
        require(arguments.cutline)
        with building():
            # The objects are those of the newest kernel's types: one file is for all kernels.
            tools, objects = bpf_build.build(arguments.work, arguments.out)
            if arguments.kernel != "newest":
                arguments.work /= arguments.kernel
                arguments.work.mkdir(exist_ok=True)
                linux_vm.kernel(arguments.work, arguments.kernel)
            files = image(arguments.work, tools, objects, arguments.cutline, arguments.rounds)
    except NotRun as reason:
        print(f"test-vm: not run: {reason}")
        return 0
    except Fault as fault:
        print(f"test-vm: {fault}", file=sys.stderr)
        return 1
    machines = (("init", 1, CHECKS), (SECOND, 2, MQ_CHECKS))
    wanted = [machine for machine in machines if arguments.only in ("", machine[0])]
    return max(judge(arguments, files, *machine) for machine in wanted)


def judge(arguments: argparse.Namespace, files: Path, first: str, processors: int, checks: dict) -> int:
    """Runs a machine, and prints what came of it. Returns the exit status."""
    try:
        done = linux_vm.boot(arguments.work, files, TIMEOUT, processors, first)
    except subprocess.TimeoutExpired:
        log = linux_vm.log_of(arguments.work, files, first)
        print(f"test-vm: the machine has not ended within {TIMEOUT} s: its output is in {log}", file=sys.stderr)
        return 1
    if arguments.verbose:
        print(done.stdout)
    version, found, blasts, wrong = read(done.stdout)
    if done.returncode != 0:
        wrong.append(f"qemu has ended with {done.returncode}: {done.stderr.strip()}")
    print(f"Linux {version or 'did not start'}")
    for name, queue in found.items():
        for check in checks[name]:
            try:
                failure = check(queue)
            except KeyError as missing:
                failure = f"the machine has not printed {missing}"
            except (IndexError, TypeError, ValueError, ZeroDivisionError) as error:
                failure = f"the machine has printed something else than expected: {error}"
            about = check.__doc__.strip()
            print(f"{'FAILED' if failure else 'ok':7}{name}: {about}")
            if failure:
                wrong.append(f"{name}, {check.__name__}: {failure}")
        for cost in queue.costs:
            if cost["calls"] and name in cost["program"]:
                each = cost["ns"] / cost["calls"]
                long = f"{cost['instructions']} BPF instructions long"
                print(f"       {cost['program']}: {long}, {each:.0f} x86 instructions a call ({cost['calls']} calls)")
    for name, blast in blasts.items():
        more = f", {blast.more(blasts):.0f} of them of the queue" if {"noqueue", "blackhole"} <= blasts.keys() else ""
        left = f", of which {blast.share:.1%} leave" if blast.share < 1 else ""
        print(f"       {name}: {blast.instructions:.0f} x86 instructions to send a packet{left}{more}")
    # The second machine does not measure them. One that stopped early has said so.
    if {"cake", *CHECKS} <= blasts.keys():
        failure = costs(blasts)
        print(f"{'FAILED' if failure else 'ok':7}{costs.__doc__}")
        if failure:
            wrong.append(f"costs: {failure}")
    for line in wrong:
        print(f"test-vm: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
