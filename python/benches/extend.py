"""Cost of extensions in Python: the same runs with an algorithm in Rust and in Python. Run it with the package installed, on an idle machine.

    python python/benches/extend.py
"""

import time

import cutline
from cutline.extend import Control, Law, Source, Time, register

SCENARIO = cutline.Scenario.from_dict({
    "name": "cost", "duration": "60 s", "warm-up": "1 s",
    "dumbbell": {"rate": "20 Mbit/s", "delay": "10 ms", "access-rate": "100 Mbit/s", "access-delay": "1 ms",
                 "queue": {"aqm": "drop-tail", "limit": "100 packets"}},
    "flow": [{"name": "bulk", "count": 4, "class": "file-transfer", "file-size": "1 MB", "transport": {"protocol": "tcp"},
              "app": {"kind": "bulk"}},
             {"name": "small", "count": 4, "class": "none", "transport": {"protocol": "udp"},
              "app": {"kind": "cbr", "rate": "640 kbit/s", "size": "160 B"}}],
})


@register
class Nothing(Law):
    """Drops nothing: the cost of one call for each arrival."""

    name, title, source = "cost-law", "Nothing", "a benchmark"

    def arrive(self, now, packet, backlog):
        return 0.0


@register
class Steady(Source):
    """A message of 160 bytes each 2 ms."""

    name, title, source = "cost-source", "Steady", "a benchmark"
    interval = Time(0.002, least=0.001, most=1.0, source="640 kbit/s", doc="Time between messages.")

    def begin(self, now):
        self.deadline = now

    def write(self, now):
        self.deadline = now + self.interval
        return 160


@register
class Reno(Control):
    """NewReno's increase and decrease."""

    name, title, source = "cost-control", "Reno", "RFC 5681"

    def avoid(self, window, acked):
        window.cwnd += max(self.mss * min(acked.bytes, self.mss) // window.cwnd, 1)

    def congested(self, window, flight):
        return max(flight // 2, 2 * self.mss)


def seconds(scenario):
    """Returns the least processor time of seven runs, and the results of one."""
    best, results = float("inf"), None
    for _ in range(7):
        start = time.process_time()
        results = cutline.run(scenario, seeds=1, jobs=1, results=None, progress=False)
        best = min(best, time.process_time() - start)
    return best, results


def main():
    base, results = seconds(SCENARIO)
    queue = next(iter(results.queues))
    bulk = [row["packets_sent"] for row in results.flows if row["group"] == "bulk"]
    small = [row["packets_sent"] for row in results.flows if row["group"] == "small"]
    print(f"in Rust: {base:.3f} s, {queue['arrived']} arrivals at the queue")
    for what, settings, calls in (
            ("law, per arrival", {"dumbbell.queue": {"aqm": "cost-law", "limit": "100 packets"}}, queue["arrived"]),
            ("source, per message", {"flow.small.app": {"kind": "cost-source"}}, sum(small)),
            ("control, per data packet", {"flow.bulk.transport": {"protocol": "tcp", "congestion-control": "cost-control"}}, sum(bulk))):
        time_, _ = seconds(SCENARIO.with_(settings))
        print(f"{what}: {(time_ - base) / calls * 1e6:.2f} us more ({time_:.3f} s)")


if __name__ == "__main__":
    main()
