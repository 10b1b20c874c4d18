#!/usr/bin/env python3
"""Writes mobile.toml: transfers and a call over links whose rates wander as those of mobile networks do.

Recordings of mobile networks cannot be included, so the rates are drawn from the model that Winstein, Sivaraman and
Balakrishnan (NSDI 2013, section 3.1) fitted to theirs: packets of 1500 B leave as a Poisson process whose rate wanders
as Brownian motion of `SIGMA` packets/s per square root of a second; a rate of zero is sticky, and left at a rate of
`ESCAPE` per second. Here the rate is reflected at twice its middle, so that a link has the middle that it is named by,
and steps are 100 ms long. The least rate is 300 kbit/s, so that a call of 75 kbit/s beside two transfers stays below its share.

    python3 experiments/suites/mobile.py 9101 > experiments/suites/mobile.toml

The number is the seed of the rates. Those for tuning are 101 and up, the judged ones 9101 and up.
"""

import random
import sys

SIGMA = 200.0
ESCAPE = 1.0
PACKET_BITS = 12_000
STEP = 0.1
SECONDS = 30
LEAST = 300_000
MIDDLES = [5, 15, 40]

HEAD = """# Two CUBIC transfers and a call over links whose rates wander as those of mobile networks do. Written by mobile.py with seed {seed}.
# {statistics}
name = "suite-mobile"
title = "Links like mobile ones"
seed = 9101
seeds = 3
duration = "30 s"
warm-up = "5 s"

[dumbbell]
rate = "8 Mbit/s"
delay = "19.5 ms"
access-rate = "10 Gbit/s"
access-delay = "0.25 ms"
queue = "sieve"

{queues}
[[flow]]
name = "bulk"
count = 2
start = {{ from = "0 s", to = "0.5 s" }}
transport = {{ protocol = "tcp", defaults = "linux", congestion-control = "cubic" }}
app = {{ kind = "bulk" }}
series = false
distributions = "group"

[[flow]]
name = "sparse"
class = "audio"
start = {{ from = "0 s", to = "1 s" }}
transport = {{ protocol = "udp" }}
app = {{ kind = "cbr", rate = "64 kbit/s", size = "160 B" }}
series = false
distributions = "group"

[sweep]
"dumbbell.queue" = {names}

[[sweep.together]]
"dumbbell.rate" = [{rates}]
"dumbbell.rate-changes" = [
{changes}
]
"""

NAMES = ["fq-codel", "cake", "dual-pi2", "sieve"]


def rates(middle_mbps, draw):
    """The rate in each step, bit/s."""
    top = 2 * middle_mbps * 1e6 / PACKET_BITS
    rate, found = top / 2, []
    while len(found) < SECONDS / STEP:
        if rate > 0 or draw.random() < ESCAPE * STEP:
            # A link of 5 Mbit/s wanders less: the step is at most a tenth of its range.
            rate += draw.gauss(0, min(SIGMA * STEP**0.5, top / 10))
        rate = max(0.0, min(rate, 2 * top - rate))
        found.append(max(LEAST, round(rate * PACKET_BITS)))
    return found


def main():
    seed = int(sys.argv[1])
    draw = random.Random(seed)
    cells = [(middle, rates(middle, draw)) for middle in MIDDLES for _ in range(2)]
    lines = []
    statistics = []
    for middle, found in cells:
        changes = [f'{{ at = "{round(i * 1000 * STEP)} ms", rate = "{rate} bit/s" }}' for i, rate in enumerate(found) if i > 0]
        lines.append("    [" + ", ".join(changes) + "],")
        ordered = sorted(found)
        low, median, high = (ordered[len(ordered) * p // 100] / 1e6 for p in (10, 50, 90))
        statistics.append(f"{low:.1f}, {median:.1f}, {high:.1f}")
    print(
        HEAD.format(
            seed=seed,
            statistics="10th percentile, median and 90th percentile of the rates, Mbit/s: " + "; ".join(statistics) + ".",
            queues="".join(f'[queue.{name}]\naqm = "{name}"\nlimit = "10000 packets"\n\n' for name in NAMES),
            names="[" + ", ".join(f'"{name}"' for name in NAMES) + "]",
            rates=", ".join(f'"{found[0]} bit/s"' for _, found in cells),
            changes="\n".join(lines),
        ),
        end="",
    )


if __name__ == "__main__":
    main()
