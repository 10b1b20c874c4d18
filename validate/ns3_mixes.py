"""The mixes of flows and the queues of the comparison with ns-3: as a Cutline scenario, and for `ns3/dumbbell.cc`."""

from dataclasses import dataclass

from linux_mixes import FRAME, SHORT, Mix, Queue, Udp

TCP_HEADERS = 52
"""Of IPv4 and TCP with timestamps, which ns-3 sends."""


@dataclass(frozen=True)
class Ns3Mix(Mix):
    """Flows that share the link, with the parameters of ns-3's TCP."""

    def arguments(self, seed: int, queue: Queue) -> list[str]:
        """The arguments of `dumbbell`."""
        flows = [f"udp:{udp.name}:{udp.count}:{udp.kbps * 1000}:{udp.kind}" for udp in self.udp]
        flows += [f"tcp:{self.bulk}"] if self.bulk else []
        times = [f"--seconds={self.seconds}", f"--warmUp={self.warm_up}"]
        return [f"--seed={seed}", *times, f"--queue={queue.name}", f"--flows={','.join(flows)}"]

    def tcp(self) -> str:
        """The keys of the transfers' transport in a scenario."""
        return (
            f'protocol = "tcp", mss = "{FRAME - TCP_HEADERS} B", header = "{TCP_HEADERS} B", ack-size = "{TCP_HEADERS} B", '
            'limited-transmit = false, delayed-ack = true, avoidance = "acknowledgements"'
        )


RFC_FQ = 'spare = "flow-backlog", half = "packets", count-overflow = false, renew-lone-flow = false'
RFC_PIE = 'decay-share = 0.02, high-delay = "off", derandomize = false, guard = "last-update", few = "up-to-two"'
RED = 'limit = "1000 packets", min-th = "100 packets", max-th = "300 packets", gentle = true, spacing = "wait", variant = "ns-2"'

QUEUES = [
    Queue("fifo", "", 'aqm = "drop-tail", limit = "1000 packets"'),
    Queue("codel", "", 'aqm = "codel", limit = "1000 packets", mtu = "1000 B", root = "newton"'),
    Queue("fq-codel", "", f'aqm = "fq-codel", limit = "10240 packets", mtu = "1000 B", quantum = "1000 B", {RFC_FQ}'),
    Queue("pie", "", f'aqm = "pie", limit = "1000 packets", mean-packet = "1000 B", {RFC_PIE}'),
    Queue("red", "", f'aqm = "red", {RED}, max-p = 0.1, w-q = 0.000533'),
    Queue("ared", "", f'aqm = "ared", {RED}'),
]

AUDIO = 64

MIXES = [
    Ns3Mix("udp-110", "30 Poisson flows of 550 kbit/s: 110 % of the link", (Udp("udp", 30, 550, "poisson"),), **SHORT),
    Ns3Mix("udp-slow", "256 flows of 64 kbit/s: 109 % of the link", (Udp("audio", 256, AUDIO),), **SHORT),
    # The transfers come out of their first slow start with windows that differ between the engines, and grow by half a segment a round
    # trip from there. The warm-up is long enough for that to be over.
    Ns3Mix("bulk-20", "20 bulk transfers, 5 audio conferences", (Udp("audio", 5, AUDIO),), bulk=20, seconds=180, warm_up=120),
    Ns3Mix("bulk-75", "75 bulk transfers, 25 audio conferences", (Udp("audio", 25, AUDIO),), bulk=75, seconds=120, warm_up=60),
]
