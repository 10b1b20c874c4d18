"""The experiments with Cutline's queues in the kernel: flows, queues, and the findings with their rules."""

import math
from dataclasses import dataclass, replace

import linux_mixes
import stats
from linux_mixes import FRAME, TCP_HEADER, Mark, Mix, Queue, Tcp, Udp
from peer import TOLERANCE, Run, Tolerances, mean

Runs = dict[tuple[str, str], list[Run]]
"""All runs of one engine, by mix and queue."""

AUDIO_KBPS = 128
AUDIO_HINTS = (1, 3, 6, 16)
"""The largest hint is first in, first out, as the law alone: the reference of the normalised quality."""


def hint(level: int) -> Mark:
    """The code point of pool 2 for a hint: hint 6 is code point 23."""
    return Mark((level - 1) << 2 | 3, level)


def audio_mix(level: int) -> Mix:
    """The TSQ paper's audio experiment (section 4.2), with a conference over UDP, with one hint."""
    return Mix(
        f"audio-{level}", f"99 bulk transfers by NewReno, 1 audio conference of {AUDIO_KBPS} kbit/s with hint {level}, 300 ms",
        (Udp("audio", 1, AUDIO_KBPS, mark=hint(level)),), bulk=99, seconds=60, warm_up=35,
    )  # fmt: skip


AUDIO = [audio_mix(level) for level in AUDIO_HINTS]
CHEAT = Mix(
    "cheat", "16 bulk transfers by NewReno without a hint, and 8 that claim hint 1, 100 ms", (),
    bulk=16, tcp_classes=(Tcp("liar", 8, hint(1)),), seconds=18, warm_up=6, delay_ms=100,
)  # fmt: skip
HOME = Mix(
    "home", "6 uploads by CUBIC, 10 readers of pages, 2 videos of 1 Mbit/s, 6 calls of 128 kbit/s, 40 ms",
    (Udp("call", 6, AUDIO_KBPS, mark=hint(6)), Udp("video", 2, 1000, mark=hint(6))),
    bulk=6, control="cubic", tcp_classes=(Tcp("web", 10, hint(12), pages=True),), seconds=15, warm_up=5, delay_ms=40,
)  # fmt: skip
PING = Mix(
    "ping", "4 uploads by CUBIC and 100 echo requests a second of 98 B, on a link of 2 Mbit/s, 20 ms",
    (Udp("ping", 1, 100 * 98 * 8 / 1000, size=98),),
    bulk=4, control="cubic", seconds=20, warm_up=5, delay_ms=20, rate_mbps=2,
)  # fmt: skip
FLOOD_KBPS = 20_000
FLOOD = Mix(
    "flood", f"16 uploads by CUBIC, 6 calls of {AUDIO_KBPS} kbit/s, and a flood of {FLOOD_KBPS // 1000} Mbit/s over UDP that claims hint 1, 40 ms",
    (Udp("call", 6, AUDIO_KBPS, mark=hint(6)), Udp("flood", 1, FLOOD_KBPS, mark=hint(1))),
    bulk=16, control="cubic", seconds=12, warm_up=4, delay_ms=40,
)  # fmt: skip
EXPERIMENTS = {"audio": AUDIO, "cheat": [CHEAT], "home": [HOME], "ping": [PING], "flood": [FLOOD]}
MIXES = [*AUDIO, CHEAT, HOME, PING, FLOOD]


def of_linux(name: str, known: str, mixes: tuple[str, ...]) -> Queue:
    """A queue of the comparison with Linux, with these mixes."""
    [queue] = (queue for queue in linux_mixes.QUEUES if queue.name == known)
    return replace(queue, name=name, mixes=mixes)


# tc computes the weight 1/32 from a burst of 50 packets (Floyd and Jacobson 1993, section IV).
RED = "red limit 1000000 min 30000 max 90000 avpkt 1000 burst 50 probability 0.1 bandwidth 15mbit"

QUEUES = [
    Queue("sieve", "cutline", 'aqm = "sieve", limit = "1000 packets"', mixes=("cheat", "home", "ping", "flood"), marks=True),
    # Its law and its charge are those of the paper's link of 15 Mbit/s and 300 ms, and it isolates no flows.
    Queue("tsq", "cutline --aqm pi --tsq", 'aqm = "pi", limit = "1000 packets", tsq = true', mixes=("audio-*", "cheat", "home"), marks=True),
    of_linux("fq_codel", "fq_codel", ("cheat", "home", "ping", "flood")),
    of_linux("cake", "cake-100ms", ("cheat", "home", "ping", "flood")),
    of_linux("pie", "pie", ("home", "ping", "flood")),
    Queue(
        "red", RED, 'aqm = "red", limit = "1000 packets", min-th = "30 packets", max-th = "90 packets", max-p = 0.1, w-q = 0.03125',
        mixes=("home",),
    ),
    Queue("dualpi2", "dualpi2", 'aqm = "dual-pi2", limit = "10000 packets", mean-packet = "1000 B"', mixes=("home",)),
]  # fmt: skip
TOLERANCES: Tolerances = TOLERANCE | {"quality": (0.0, 0.03), "share": (0.0, 0.10)}


def is_ours(queue: Queue) -> bool:
    """True if it is a queue of Cutline's in the kernel."""
    return queue.tc.split()[0] == "cutline"


def delay_quality(delay_ms: float) -> float:
    """Qd of an audio conference (TSQ section 2.1): 0.98 at 150 ms, 0.69 at 300 ms, 0 from 525 ms on."""
    if delay_ms <= 150:
        return 1 - 0.000133 * delay_ms
    if delay_ms <= 400:
        return 1.268 - 0.00192 * delay_ms
    return max(0.0, 2.1 - 0.004 * delay_ms)


def throughput_quality(kbps: float) -> float:
    """Qt of an audio conference (TSQ section 2.1): 1 at 128 kbit/s, 0.83 at 64 kbit/s, 0 below 4 kbit/s."""
    if kbps >= AUDIO_KBPS:
        return 1.0
    return 0.24045 * math.log(kbps) - 0.17 if kbps >= 4 else 0.0


def with_derived(run: Run, mix: Mix, more: Run) -> Run:
    """The measures of a run, with those that follow from them: the quality of audio, or the share of the liars or of the flood.

    `more` has measures that are not compared: the mean wait of audio, in s, and the rate at which the flood arrives, in bit/s. Half of the round trip
    without queues is one way. The share of the flood is that of the link, headers included. It does not follow from the loss, since a queue that is
    seconds long has packets at the end that are neither lost nor received.
    """
    if mix in AUDIO:
        delay_ms = mix.delay_ms / 2 + more["audio.mean"] * 1e3
        kbps = AUDIO_KBPS * (1 - run["audio.loss"])
        return run | {"audio.quality": min(delay_quality(delay_ms), throughput_quality(kbps))}
    if mix is FLOOD:
        of_bulk = run["bulk.goodput"] * FRAME / (FRAME - TCP_HEADER)
        return run | {"flood.share": more["flood.rate"] / of_bulk}
    return run | {"liar.share": run["liar.goodput"] / run["bulk.goodput"]} if mix is CHEAT else run


Place = tuple[str, str, str]
"""A mix, a queue and a measure."""


@dataclass(frozen=True)
class Finding:
    """A statement about a measure, or about its difference between two places, and the rule that judges it."""

    key: str
    text: str
    left: Place
    minus: Place | None = None
    above: float | None = None
    below: float | None = None

    def value(self, runs: Runs) -> stats.Estimate:
        """The measure or the difference with its 95 % confidence interval."""
        left = values(runs, self.left)
        if self.minus is None:
            return stats.estimate(left)
        if self.minus == self.left:
            return stats.Estimate(0.0, 0.0, 0.0, len(left))
        return stats.difference(left, values(runs, self.minus))

    def verdict(self, value: stats.Estimate) -> str:
        """`holds` if the whole interval is on the right side of the bound, `fails` if it is on the other side, otherwise `unclear`."""
        if self.above is not None:
            return "holds" if value.low > self.above else "fails" if value.high <= self.above else "unclear"
        assert self.below is not None
        return "holds" if value.high < self.below else "fails" if value.low >= self.below else "unclear"


def values(runs: Runs, place: Place) -> list[float]:
    """The values of a measure, one for each run."""
    mix, queue, measure = place
    return [run[measure] for run in runs[mix, queue]]


def qualities(runs: Runs) -> dict[int, float]:
    """The mean quality of audio by its hint."""
    return {level: mean(values(runs, (f"audio-{level}", "tsq", "audio.quality"))) for level in AUDIO_HINTS}


def best_hint(runs: Runs) -> int:
    """The hint with the best mean quality of audio."""
    found = qualities(runs)
    return max(AUDIO_HINTS, key=lambda level: found[level])


def findings(linux: Runs, cutline: Runs) -> list[Finding]:
    """The findings of the measured queues. The rules are fixed here; the runs only choose the hints that are called the best."""
    best = best_hint(linux), best_hint(cutline)
    return [*audio_findings(*best), *cheat_findings(), *home_findings(linux), *ping_findings(linux), *flood_findings(linux)]


def audio_findings(kernels_best: int, simulators_best: int) -> list[Finding]:
    """TSQ: the order of waits, the charge, and the best hint."""

    def of(level: int, measure: str) -> Place:
        return f"audio-{level}", "tsq", f"audio.{measure}"

    found = [
        Finding(f"order-{low}-{high}", f"audio, TSQ: median wait with hint {high}, less that with hint {low}", of(high, "p50"), of(low, "p50"), above=0)
        for low, high in zip(AUDIO_HINTS, AUDIO_HINTS[1:])
    ]
    least, most = AUDIO_HINTS[0], AUDIO_HINTS[-1]
    return [
        *found,
        Finding("charge", f"audio, TSQ: loss with hint {least}, less that with hint {most}", of(least, "loss"), of(most, "loss"), above=0),
        Finding(
            "best-hint", f"audio, TSQ: quality with the simulator's best hint, {simulators_best}, less that with the kernel's, {kernels_best}",
            of(simulators_best, "quality"), of(kernels_best, "quality"), above=-0.03,
        ),
        Finding(
            "gain", f"audio, TSQ: quality with hint {simulators_best}, less that without TSQ",
            of(simulators_best, "quality"), of(most, "quality"), above=0,
        ),
    ]  # fmt: skip


def cheat_findings() -> list[Finding]:
    """A false hint gains no throughput, to a tenth."""
    return [
        Finding(f"cheat-{queue}", f"cheat, {title}: goodput of a transfer that claims hint 1, over that of one without a hint", ("cheat", queue, "liar.share"), below=1.1)
        for queue, title in (("tsq", "TSQ"), ("sieve", "Sieve"))
    ]  # fmt: skip


def rivals(mix: str, measured: Runs) -> list[str]:
    """The other queues that a mix is measured with."""
    return [queue.name for queue in QUEUES if queue.name != "sieve" and (mix, queue.name) in measured]


def sparse_findings(measured: Runs, mix: str, prefix: str, flow: str, who: str, wait: float) -> list[Finding]:
    """Sieve: sparse flows wait for less than `wait` s, no longer than with the other queues, to 3 ms, and lose nothing, to 0.5 %."""
    p99 = f"{flow}.p99"
    return [
        Finding(f"{prefix}-wait", f"{mix}, Sieve: wait of {who}, 99th percentile", (mix, "sieve", p99), below=wait),
        Finding(f"{prefix}-loss", f"{mix}, Sieve: loss of {who}", (mix, "sieve", f"{flow}.loss"), below=0.005),
        *(
            Finding(f"{prefix}-{rival}", f"{mix}: wait of {who}, 99th percentile, with Sieve, less that with {rival}", (mix, "sieve", p99), (mix, rival, p99), below=0.003)
            for rival in rivals(mix, measured)
        ),
    ]  # fmt: skip


def utilisation_finding(mix: str, id: str) -> Finding:
    """Sieve: the link is as busy as with FQ-CoDel, to two hundredths."""
    places = [(mix, queue, "utilisation") for queue in ("sieve", "fq_codel")]
    return Finding(id, f"{mix}: utilisation with Sieve, less that with fq_codel", *places, above=-0.02)


def home_findings(measured: Runs) -> list[Finding]:
    """Sieve: calls wait and lose as little as with the other queues, and the link is as busy as with FQ-CoDel."""
    return [*sparse_findings(measured, "home", "calls", "call", "calls", 0.010), utilisation_finding("home", "utilisation")]


def ping_findings(measured: Runs) -> list[Finding]:
    """Sieve: a ping waits for two packets of 4 ms at most, and no longer than with the other queues, and loses nothing."""
    return [*sparse_findings(measured, "ping", "ping", "ping", "the ping", 0.008), utilisation_finding("ping", "ping-utilisation")]


def flood_findings(measured: Runs) -> list[Finding]:
    """Sieve: beside a flood calls wait and lose as little as at home, and the flood gets no more than with the kernel's queues for flows, to a tenth of a share."""

    def of(queue: str, measure: str) -> Place:
        return "flood", queue, measure

    return [
        *sparse_findings(measured, "flood", "flood", "call", "calls", 0.010),
        *(
            Finding(
                f"flood-share-{rival}", f"flood: rate of the flood, over that of an upload, with Sieve, less that with {rival}",
                of("sieve", "flood.share"), of(rival, "flood.share"), below=0.1,
            )
            for rival in ("fq_codel", "cake")
        ),
    ]  # fmt: skip
