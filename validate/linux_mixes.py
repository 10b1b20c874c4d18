"""The mixes of flows and the queues of the comparison with Linux: as a Cutline scenario, and for `linux/load.c`."""

import enum
import fnmatch
from dataclasses import dataclass

RATE_MBPS = 15
DELAY_MS = 300
"""The round trip without queues; in the virtual machine all of it is on the way back."""
FRAME = 1000
"""The size of every data packet on the wire, with the Ethernet header, which Linux's queues count."""
ACK = 66
TCP_HEADER = 66


@dataclass(frozen=True)
class Mark:
    """A code point, and the hint that it stands for in Cutline's standard table."""

    code_point: int
    hint: int


EF = Mark(46, 6)
AF31 = Mark(26, 12)

HOSTS = (11, 12)
"""The hosts of UDP and of the transfers, or of two classes of UDP, where classes have hosts: 10.0.1.11 and 10.0.1.12."""


@dataclass(frozen=True)
class Udp:
    """A class of UDP flows, with the mark that it has where queues look at marks."""

    name: str
    count: int
    kbps: float
    kind: str = "cbr"
    mark: Mark | None = None
    size: int = FRAME
    """Of its packets on the wire, with the Ethernet header."""


@dataclass(frozen=True)
class Tcp:
    """A class of TCP flows beside the bulk transfers, with the mark that it has where queues look at marks."""

    name: str
    count: int
    mark: Mark
    pages: bool = False
    """True for pages with pauses between them; otherwise it is one long transfer."""


PAGE_KB, PAGE_SIGMA, PAUSE_S = 12, 1.3, 2
"""Of pages: the median of the lognormal size in 1000 B, the standard deviation of its logarithm, and the mean exponential pause."""

PAGES = (
    f'kind = "request-response", object = {{ distribution = "lognormal", median = "{PAGE_KB} KB", sigma = {PAGE_SIGMA} }}, '
    f'think-time = {{ distribution = "exponential", mean = "{PAUSE_S} s" }}'
)


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
    delay_ms: int = DELAY_MS
    """The round trip without queues."""
    tcp_classes: tuple[Tcp, ...] = ()
    rate_mbps: int = RATE_MBPS
    """The rate of the link."""

    def load(self, queue: "Queue", seed: int) -> str:
        """The arguments of `load`."""
        control = {"newreno": "reno"}.get(self.control, self.control)
        flows = []
        for number, udp in enumerate(self.udp):
            host = HOSTS[number] if queue.hosts is Hosts.CLASS else 0
            code_point = udp.mark.code_point if queue.marks and udp.mark else 0
            optional = [(host, 0), (code_point, 0), (udp.size, FRAME)]
            while optional and optional[-1][0] == optional[-1][1]:
                optional.pop()
            flows.append(":".join(map(str, ["udp", udp.name, udp.count, udp.kbps * 1000, udp.kind, *(value for value, _ in optional)])))
        if self.bulk:
            flows.append(f"tcp:{self.bulk}:{control}" + (f":{HOSTS[-1]}" if queue.hosts is Hosts.CLASS else ""))
        for tcp in self.tcp_classes:
            kind, pages = ("pages", f":{PAGE_KB * 1000}:{PAGE_SIGMA}:{PAUSE_S}") if tcp.pages else ("tcp", "")
            flows.append(f"{kind}:{tcp.count}:{control}:0:{tcp.mark.code_point if queue.marks else 0}{pages}")
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
rate = "{self.rate_mbps} Mbit/s"
delay = "0 ms"
access-rate = "10 Gbit/s"
access-delay = "{self.delay_ms / 4:g} ms"
queue = {{ {queue.cutline} }}
"""
        for udp in self.udp:
            app = f'kind = "{udp.kind}", rate = "{udp.kbps} kbit/s", size = "{udp.size} B"'
            keys = queue.host(udp.name) + (f"hint = {udp.mark.hint}\n" if queue.marks and udp.mark else "")
            text += self._group(udp.name, udp.count, 'protocol = "udp", header = "0 B"', app, keys)
        if self.bulk:
            text += self._group("bulk", self.bulk, self.tcp(), 'kind = "bulk"', queue.host("bulk"))
        for tcp in self.tcp_classes:
            keys = queue.host(tcp.name) + (f"hint = {tcp.mark.hint}\n" if queue.marks else "")
            text += self._group(tcp.name, tcp.count, self.tcp(), PAGES if tcp.pages else 'kind = "bulk"', keys)
        return text

    def tcp(self) -> str:
        """The keys of the transfers' transport in a scenario."""
        return (
            f'protocol = "tcp", defaults = "linux", congestion-control = "{self.control}", mss = "{FRAME - TCP_HEADER} B", '
            f'header = "{TCP_HEADER} B", ack-size = "{ACK} B"'
        )

    @staticmethod
    def _group(name: str, count: int, transport: str, app: str, keys: str) -> str:
        return f"""
[[flow]]
name = "{name}"
count = {count}
{keys}start = {{ from = "0 s", to = "1 s" }}
transport = {{ {transport} }}
app = {{ {app} }}
series = false
distributions = "flow"
"""


class Hosts(enum.Enum):
    """Hosts of the flows."""

    EACH = "a host of its own for each flow; queues do not look at hosts"
    ONE = "one host for all"
    CLASS = "one host for each class"


@dataclass(frozen=True)
class Queue:
    """A queue of both."""

    name: str
    tc: str
    cutline: str
    mixes: tuple[str, ...] = ("*",)
    """Patterns of the mixes that it is measured with."""
    marks: bool = False
    """True if the flows have the marks of their class."""
    hosts: Hosts = Hosts.EACH

    def has(self, mix: Mix) -> bool:
        """True if it is measured with this mix."""
        return any(fnmatch.fnmatch(mix.name, pattern) for pattern in self.mixes)

    def tc_at(self, rate_mbps: int) -> str:
        """The arguments of `tc` for a link of another rate."""
        return self.tc.replace(f"{RATE_MBPS}mbit", f"{rate_mbps}mbit")

    def host(self, group: str) -> str:
        """The line of a scenario that names the host of a group, if it is named."""
        return {Hosts.EACH: "", Hosts.ONE: 'host = "all"\n', Hosts.CLASS: f'host = "{group}"\n'}[self.hosts]


CAKE = 'aqm = "cake", limit = "10240 packets", mtu = "1000 B"'

QUEUES = [
    Queue("pfifo", "pfifo limit 1000", 'aqm = "drop-tail", limit = "1000 packets"'),
    Queue("codel", "codel", 'aqm = "codel", limit = "1000 packets", mtu = "1000 B"'),
    Queue(
        "fq_codel", "fq_codel noecn",
        'aqm = "fq-codel", limit = "10240 packets", mtu = "1000 B", quantum = "1000 B"',
    ),
    Queue(
        "fq_codel-full", "fq_codel noecn limit 100",
        'aqm = "fq-codel", limit = "100 packets", mtu = "1000 B", quantum = "1000 B"', mixes=("udp-*",),
    ),
    Queue("pie", "pie", 'aqm = "pie", limit = "1000 packets", mean-packet = "1000 B"'),
    Queue(
        "fq_pie", "fq_pie noecn",
        'aqm = "fq-pie", limit = "10240 packets", mean-packet = "1000 B", quantum = "1000 B"',
    ),
    Queue("cake", "cake bandwidth 15mbit besteffort rtt 300ms", f'{CAKE}, rtt = "300 ms"', hosts=Hosts.ONE),
    Queue(
        "cake-100ms", "cake bandwidth 15mbit besteffort", CAKE, hosts=Hosts.ONE,
        mixes=("udp-110", "udp-slow", "udp-fat", "bulk-75", "cubic-75"),
    ),
    Queue(
        "cake-diffserv4", "cake bandwidth 15mbit diffserv4 rtt 300ms", f'{CAKE}, rtt = "300 ms", tins = "diffserv4"',
        mixes=("udp-slow", "udp-fat", "bulk-75", "bulk-50", "above-share"), marks=True, hosts=Hosts.ONE,
    ),
    Queue(
        "cake-hosts", "cake bandwidth 15mbit besteffort dual-srchost rtt 300ms",
        f'{CAKE}, rtt = "300 ms", isolation = "dual-srchost"', mixes=("udp-fat", "bulk-75", "above-share"), hosts=Hosts.CLASS,
    ),
]  # fmt: skip

AUDIO = 128
SHORT = {"seconds": 20, "warm_up": 5}

MIXES = [
    Mix("udp-110", "30 Poisson flows of 550 kbit/s: 110 % of the link", (Udp("udp", 30, 550, "poisson"),), **SHORT),
    Mix("udp-slow", "128 flows of 128 kbit/s: 109 % of the link", (Udp("audio", 128, AUDIO, mark=EF),), **SHORT),
    Mix(
        "udp-fat", "a Poisson flow of 9 Mbit/s and 20 of 400 kbit/s: 113 % of the link",
        (Udp("slow", 20, 400, "poisson", EF), Udp("fat", 1, 9000, "poisson")), **SHORT,
    ),
    Mix("bulk-99", "99 bulk transfers, 1 audio conference", (Udp("audio", 1, AUDIO, mark=EF),), bulk=99),
    Mix("bulk-75", "75 bulk transfers, 25 audio conferences", (Udp("audio", 25, AUDIO, mark=EF),), bulk=75),
    Mix("bulk-50", "50 bulk transfers, 50 audio conferences", (Udp("audio", 50, AUDIO, mark=EF),), bulk=50),
    Mix("above-share", "19 bulk transfers, video of 1.5 Mbit/s, twice its share", (Udp("video", 1, 1500, mark=AF31),), bulk=19),
    Mix("cubic-75", "75 bulk transfers by CUBIC, 25 audio conferences", (Udp("audio", 25, AUDIO, mark=EF),), bulk=75, control="cubic"),
]  # fmt: skip
