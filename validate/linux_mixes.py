"""The mixes of flows and the queues of the comparison with Linux: as a Cutline scenario, and for `linux/load.c`."""

from dataclasses import dataclass

RATE_MBPS = 15
DELAY_MS = 300
"""The round trip without queues; in the virtual machine all of it is on the way back."""
FRAME = 1000
"""The size of every data packet on the wire, with the Ethernet header, which Linux's queues count."""
ACK = 66
TCP_HEADER = 66


@dataclass(frozen=True)
class Udp:
    """A class of UDP flows."""

    name: str
    count: int
    kbps: int
    kind: str = "cbr"


@dataclass(frozen=True)
class Mix:
    """Flows that share the link."""

    name: str
    text: str
    udp: tuple[Udp, ...]
    bulk: int = 0
    control: str = "newreno"
    seconds: int = 45
    warm_up: int = 15

    def load(self, seed: int) -> str:
        """The arguments of `load`."""
        control = {"newreno": "reno"}.get(self.control, self.control)
        flows = [f"udp:{udp.name}:{udp.count}:{udp.kbps * 1000}:{udp.kind}" for udp in self.udp]
        flows += [f"tcp:{self.bulk}:{control}"] if self.bulk else []
        return f"{seed} {self.seconds} {self.warm_up} {' '.join(flows)}"

    def scenario(self, queue: "Queue", seeds: range) -> str:
        """The same as a scenario of Cutline, with the parameters of Linux's TCP."""
        text = f"""name = "{self.name}"
duration = "{self.seconds} s"
warm-up = "{self.warm_up} s"
interval = "{self.seconds - self.warm_up} s"
seed = {seeds[0]}
seeds = {len(seeds)}

[dumbbell]
rate = "{RATE_MBPS} Mbit/s"
delay = "0 ms"
access-rate = "10 Gbit/s"
access-delay = "{DELAY_MS / 4:g} ms"
queue = {{ {queue.cutline} }}
"""
        for udp in self.udp:
            app = f'kind = "{udp.kind}", rate = "{udp.kbps} kbit/s", size = "{FRAME} B"'
            text += self._group(udp.name, udp.count, 'protocol = "udp", header = "0 B"', app)
        if self.bulk:
            text += self._group("bulk", self.bulk, self.tcp(), 'kind = "bulk"')
        return text

    def tcp(self) -> str:
        """The keys of the transfers' transport in a scenario."""
        return (
            f'protocol = "tcp", defaults = "linux", congestion-control = "{self.control}", mss = "{FRAME - TCP_HEADER} B", '
            f'header = "{TCP_HEADER} B", ack-size = "{ACK} B"'
        )

    @staticmethod
    def _group(name: str, count: int, transport: str, app: str) -> str:
        return f"""
[[flow]]
name = "{name}"
count = {count}
start = {{ from = "0 s", to = "1 s" }}
transport = {{ {transport} }}
app = {{ {app} }}
series = false
distributions = "flow"
"""


@dataclass(frozen=True)
class Queue:
    """A queue of both."""

    name: str
    tc: str
    cutline: str
    udp_only: bool = False


QUEUES = [
    Queue("pfifo", "pfifo limit 1000", 'aqm = "drop-tail", limit = "1000 packets"'),
    Queue("codel", "codel", 'aqm = "codel", limit = "1000 packets", mtu = "1000 B"'),
    Queue(
        "fq_codel", "fq_codel noecn",
        'aqm = "fq-codel", limit = "10240 packets", mtu = "1000 B", quantum = "1000 B"',
    ),
    Queue(
        "fq_codel-full", "fq_codel noecn limit 100",
        'aqm = "fq-codel", limit = "100 packets", mtu = "1000 B", quantum = "1000 B"', udp_only=True,
    ),
    Queue("pie", "pie", 'aqm = "pie", limit = "1000 packets", mean-packet = "1000 B"'),
]  # fmt: skip

AUDIO = 128
SHORT = {"seconds": 20, "warm_up": 5}

MIXES = [
    Mix("udp-110", "30 Poisson flows of 550 kbit/s: 110 % of the link", (Udp("udp", 30, 550, "poisson"),), **SHORT),
    Mix("udp-slow", "128 flows of 128 kbit/s: 109 % of the link", (Udp("audio", 128, AUDIO),), **SHORT),
    Mix(
        "udp-fat", "a Poisson flow of 9 Mbit/s and 20 of 400 kbit/s: 113 % of the link",
        (Udp("slow", 20, 400, "poisson"), Udp("fat", 1, 9000, "poisson")), **SHORT,
    ),
    Mix("bulk-99", "99 bulk transfers, 1 audio conference", (Udp("audio", 1, AUDIO),), bulk=99),
    Mix("bulk-75", "75 bulk transfers, 25 audio conferences", (Udp("audio", 25, AUDIO),), bulk=75),
    Mix("bulk-50", "50 bulk transfers, 50 audio conferences", (Udp("audio", 50, AUDIO),), bulk=50),
    Mix("above-share", "19 bulk transfers, video of 1.5 Mbit/s, twice its share", (Udp("video", 1, 1500),), bulk=19),
    Mix("cubic-75", "75 bulk transfers by CUBIC, 25 audio conferences", (Udp("audio", 25, AUDIO),), bulk=75, control="cubic"),
]  # fmt: skip
