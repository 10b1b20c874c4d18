"""The dumbbells that both engines run, as a Cutline scenario and as arguments of `ns2/dumbbell.tcl`."""

import random
from dataclasses import dataclass

SECONDS, WARM_UP = 100, 20
SAMPLE = 0.1
"""The interval at which RED's average and max_p are sampled, s."""


def scattered(seed: int) -> int:
    """A seed for ns-2: its generator is linear in the seed, so that the draws of 1, 2, 3 would be multiples of each other."""
    return random.Random(seed).randrange(1, 2**31 - 1)


@dataclass(frozen=True)
class Red:
    """RED's settings in both engines: RED-Worcester's thresholds, and as weight the automatic one of Adaptive RED.

    ns-2's own defaults are gentle and the spacing `wait`; Adaptive RED's paper has the uniform spacing.
    """

    adaptive: bool = False
    max_p: float = 0.1  # what Adaptive RED begins with
    wait: bool = True
    gentle: bool = True
    min_th: int = 20
    max_th: int = 80

    def scenario(self) -> str:
        """The keys of Cutline's queue."""
        weight = "" if self.adaptive else ", w-q = 0.0015987"
        return (
            f', min-th = "{self.min_th} packets", max-th = "{self.max_th} packets", max-p = {self.max_p}{weight}'
            f', gentle = {str(self.gentle).lower()}, spacing = "{"wait" if self.wait else "uniform"}", variant = "ns-2"'
        )

    def ns2_arguments(self) -> dict[str, float]:
        """The arguments of `dumbbell.tcl`."""
        return {
            "adaptive": int(self.adaptive), "minth": self.min_th, "maxth": self.max_th, "maxp": self.max_p,
            "gentle": int(self.gentle), "wait": int(self.wait), "qweight": 0 if self.adaptive else 0.0015987,
        }  # fmt: skip


@dataclass(frozen=True)
class Dumbbell:
    """One case: a queue, a bottleneck and a mix of flows. Packets have 1000 B on the wire, acknowledgements 40 B."""

    name: str
    queue: str
    rate_mbps: float
    newreno: int = 0
    tfrc: int = 0
    udp: int = 0
    window: int = 10_000
    tfrc_kbps: int = 0  # of the application; 0: always has data
    udp_kbps: int = 0
    limit: int = 800
    q_ref: int = 200
    a: float = 1.822e-5  # PI's gains, per packet
    b: float = 1.816e-5
    seconds: int = SECONDS
    until: int | None = None  # end of measuring, if not that of the run
    delay_ms: float = 50
    access_mbps: float = 50
    access_delay_ms: float = 50
    sack: bool = False  # NewReno with SACK; ns-2's is Sack1
    syn: bool = True  # ns-2's TCP begins with a SYN; Cutline's has none
    red: Red | None = None

    def describe(self) -> str:
        """One line for a heading."""
        flows = [
            self.newreno
            and f"{self.newreno} TCP NewReno" + (" with SACK" if self.sack else "") + (", window 20" if self.window == 20 else ""),
            self.tfrc and f"{self.tfrc} TFRC, " + (f"fed with {self.tfrc_kbps} kbit/s" if self.tfrc_kbps else "greedy"),
            self.udp and f"{self.udp} UDP at {self.udp_kbps} kbit/s",
        ]
        queue = {"pi": f"PI, q-ref {self.q_ref}", "drop-tail": "drop-tail", "red": "RED", "ared": "Adaptive RED"}[self.queue]
        parts = [flow for flow in flows if flow] + [f"{self.rate_mbps:g} Mbit/s", f"{queue}, limit {self.limit} packets"]
        if self.access_delay_ms != 50:
            parts.append(f"access links of {self.access_delay_ms:g} ms")
        if not self.syn:
            parts.append("ns-2's TCP without a SYN")
        if self.red:
            slope = "gentle" if self.red.gentle else "not gentle"
            spacing = "wait" if self.red.wait else "uniform"
            parts.append(f"thresholds {self.red.min_th} and {self.red.max_th} packets, {slope}, spacing {spacing}")
        return "; ".join(parts)

    def measured(self) -> int:
        """Seconds."""
        return (self.until or self.seconds) - WARM_UP

    def classes(self) -> dict[str, int]:
        """Flows of each kind."""
        counts = {"newreno": self.newreno, "tfrc": self.tfrc, "udp": self.udp}
        return {name: count for name, count in counts.items() if count}

    def ns2_arguments(self, seed: int) -> list[str]:
        """The arguments of `dumbbell.tcl`.

        Drop-tail's limit is one more than Cutline's: ns-2 drops what would make the queue as long as `limit_`, so it
        holds one packet less than that. Under an overload of UDP, a limit of 20 keeps 18.5 packets waiting; PI's keeps
        19.6, as both of Cutline's do.
        """
        given = {
            "queue": self.queue, "rate": self.rate_mbps, "limit": self.limit + (self.queue == "drop-tail"), "qref": self.q_ref,
            "a": self.a, "b": self.b,
            "duration": self.seconds, "from": WARM_UP, "syn": int(self.syn), "sack": int(self.sack), "seed": scattered(seed), "window": self.window,
            "newreno": self.newreno, "tfrc": self.tfrc, "udp": self.udp,
            "tfrc_rate": self.tfrc_kbps, "udp_rate": self.udp_kbps, "access_delay": self.access_delay_ms,
            "delay": self.delay_ms, "access_rate": self.access_mbps, "to": self.until or self.seconds, "sample": SAMPLE,
        }  # fmt: skip
        given |= self.red.ns2_arguments() if self.red else {}
        return [f"{key}={value}" for key, value in given.items()]

    def scenario(self, seeds: range) -> str:
        """The same as a scenario of Cutline, with ns-2's defaults in the transports; at least one seed."""
        law = f', q-ref = "{self.q_ref} packets", a = {self.a}, b = {self.b}' if self.queue == "pi" else ""
        law += self.red.scenario() if self.red else ""
        head = f"""name = "{self.name}"
duration = "{self.seconds} s"
warm-up = "{WARM_UP} s"
measure-until = "{self.until or self.seconds} s"
interval = "{SAMPLE if self.red else self.measured():g} s"
seed = {seeds[0]}
seeds = {len(seeds)}

[dumbbell]
rate = "{self.rate_mbps:g} Mbit/s"
delay = "{self.delay_ms:g} ms"
access-rate = "{self.access_mbps:g} Mbit/s"
access-delay = "{self.access_delay_ms:g} ms"
queue = {{ aqm = "{self.queue}", limit = "{self.limit} packets"{law} }}
"""
        return head + "".join(self._group(name, count) for name, count in self.classes().items())

    def _group(self, name: str, count: int) -> str:
        transport, rate = {
            "newreno": (
                f'protocol = "tcp", defaults = "ns-2", max-window = "{self.window} packets"' + (", sack = true" if self.sack else ""),
                0,
            ),
            "tfrc": ('protocol = "tfrc", defaults = "ns-2"' + self._send_buffer(), self.tfrc_kbps),
            "udp": ('protocol = "udp", header = "0 B"', self.udp_kbps),
        }[name]
        app = f'kind = "cbr", rate = "{rate} kbit/s", size = "1000 B"' if rate else 'kind = "bulk"'
        return f"""
[[flow]]
name = "{name}"
count = {count}
start = {{ from = "0 s", to = "1 s" }}
transport = {{ {transport} }}
app = {{ {app} }}
distributions = "group"
series = false
"""

    def _send_buffer(self) -> str:
        return ', send-buffer = "2 packets"' if self.tfrc_kbps else ""


def red_worcester(queue: str, red: Red, newreno: int) -> Dumbbell:
    """The RED-Worcester paper's dumbbell with this number of NewReno flows among its 20 flows; the others are TFRC."""
    return Dumbbell(
        f"{queue}-{newreno}-{20 - newreno}", queue, 5, newreno=newreno, tfrc=20 - newreno, limit=120, until=80,
        delay_ms=20, access_mbps=20, access_delay_ms=15, red=red,
    )  # fmt: skip


MIXES = (19, 15, 10, 5, 1)
ADAPTIVE = Red(adaptive=True, wait=False)

CASES = [
    Dumbbell("newreno-100-pi", "pi", 15, newreno=100),
    Dumbbell("newreno-100-pi-window-20", "pi", 15, newreno=100, window=20),
    Dumbbell("newreno-100-drop-tail", "drop-tail", 15, newreno=100),
    Dumbbell("newreno-100-drop-tail-small", "drop-tail", 15, newreno=100, limit=100),
    Dumbbell("newreno-100-drop-tail-small-off-phase", "drop-tail", 15, newreno=100, limit=100, access_delay_ms=49.97),
    Dumbbell("newreno-20-pi", "pi", 4, newreno=20),
    Dumbbell("newreno-20-pi-window-20", "pi", 4, newreno=20, window=20),
    Dumbbell("newreno-20-pi-window-20-no-syn", "pi", 4, newreno=20, window=20, syn=False),
    Dumbbell("newreno-20-drop-tail", "drop-tail", 4, newreno=20, limit=100),
    Dumbbell("newreno-3-pi", "pi", 4, newreno=3, q_ref=50, limit=200, seconds=220),
    Dumbbell("newreno-3-drop-tail", "drop-tail", 4, newreno=3, limit=100, seconds=220),
    Dumbbell("newreno-1-drop-tail", "drop-tail", 4, newreno=1, limit=100, seconds=220),
    Dumbbell("tfrc-20-pi", "pi", 4, tfrc=20),
    Dumbbell("tfrc-20-drop-tail", "drop-tail", 4, tfrc=20, limit=100),
    Dumbbell("tfrc-20-fed-drop-tail", "drop-tail", 4, tfrc=20, tfrc_kbps=300, limit=100),
    Dumbbell("sack-100-pi", "pi", 15, newreno=100, sack=True),
    Dumbbell("sack-100-drop-tail", "drop-tail", 15, newreno=100, sack=True),
    Dumbbell("sack-20-pi", "pi", 4, newreno=20, sack=True),
    Dumbbell("sack-3-drop-tail", "drop-tail", 4, newreno=3, sack=True, limit=100, seconds=220),
    Dumbbell("tfrc-10-under-udp-pi", "pi", 4, tfrc=10, udp=10, udp_kbps=650),
    Dumbbell("tfrc-10-under-udp-drop-tail", "drop-tail", 4, tfrc=10, udp=10, udp_kbps=650, limit=100),
    Dumbbell("udp-overload-pi", "pi", 4, udp=10, udp_kbps=500),
    Dumbbell("udp-overload-drop-tail", "drop-tail", 4, udp=10, udp_kbps=500, limit=100),
    Dumbbell("audio", "pi", 15, newreno=99, tfrc=1, tfrc_kbps=128),
    Dumbbell("video", "pi", 4, newreno=19, tfrc=1, tfrc_kbps=500),
    Dumbbell("cheat", "pi", 15, newreno=99, udp=1, udp_kbps=600),
    Dumbbell("mixed-50-50", "pi", 15, newreno=50, tfrc=50),
    Dumbbell("mixed-three", "pi", 10, newreno=20, tfrc=20, udp=10, udp_kbps=200),
    Dumbbell("mixed-three-no-syn", "pi", 10, newreno=20, tfrc=20, udp=10, udp_kbps=200, syn=False),
    Dumbbell("mixed-three-drop-tail", "drop-tail", 10, newreno=20, tfrc=20, udp=10, udp_kbps=200, limit=250),
    *(red_worcester("red", Red(), newreno) for newreno in MIXES),
    *(red_worcester("ared", ADAPTIVE, newreno) for newreno in MIXES),
    Dumbbell("udp-overload-red", "red", 4, udp=10, udp_kbps=500, limit=200, red=Red()),
    Dumbbell("newreno-3-ared", "ared", 4, newreno=3, limit=200, seconds=220, red=ADAPTIVE),
]  # fmt: skip
