"""The page `docs/validation/ns3-fat-tree.md`: completion times, processor time and memory on fat-trees, beside each other."""

from peer_page import VERDICTS, paragraph, with_interval

HEAD = """# Against ns-3 on a fat-tree

This page compares the same transfers in Cutline and in ns-3.37, on fat-trees with k = 4 (16 hosts)
and k = 8 (128 hosts). `make validate-ns3` rewrites this page.

Transfers arrive at random between all hosts. Their sizes are those of a web-search cluster (mean
1.71 MB), and their payload is half of the rate of the hosts' links. Both engines have the same list
of starts, sizes and paths, which `cutline check --flows` prints: in ns-3, a routing protocol of the
program sends each flow over its path, because ns-3.37 cannot choose a path by the hash of a flow.
Runs with the same seed therefore form pairs, and the intervals of differences are those of pairs
(Student's t, 95 %).

Links have 1 Gbit/s and 5 us, queues of switches 100 packets, queues of hosts 1000 packets, all
drop-tail. A data packet has 1500 B as an IP packet and an acknowledgement 52 B; a higher rate of
ns-3's links compensates for 2 B of PPP. TCP is NewReno without SACK and limited transmit in both
engines, with delayed acknowledgements, growth by the acknowledgement, an initial window of 10
segments, timeouts of at least 10 ms, and acknowledgements that wait for 1 ms at most (with ns-3's
200 ms, more than the timeout, some of its transfers never end). A completion time is that from the
first byte that is written to the last byte at the receiver. In ns-3 a transfer begins when its
connection is established; Cutline has no handshakes. A run ends after all transfers.

The slowdown of a transfer is its completion time over that without other packets and without limits
by windows. The figure has a point for each tenth of the transfers by size; with fewer than 100
transfers in a tenth, its 99th percentile is the largest one.

![Slowdown of transfers by size, median and 99th percentile, in both engines](ns3-fat-tree.svg)

The judgements are those of [the dumbbell's page](ns3.md). The tolerances were fixed before the
first run: 10 % of means, medians and the mean slowdown, and 20 % of 99th percentiles, of ns-3's
values. A percentile is judged where each run has at least 100 transfers of the class. A class
counts where each run has a transfer.
"""

TITLES = {"short": "up to 100 KB", "medium": "100 KB to 10 MB", "long": "above 10 MB"}
MEASURES = {"mean": "mean, ms", "p50": "median, ms", "p99": "99th percentile, ms"}

CAUSE = (
    "With 14 rows of 95 % intervals, 0.7 differences are expected by chance. The dumbbell shows a difference in the same direction: "
    "after losses ns-3's NewReno leaves links idle for longer, so that its long transfers take longer, and queues in front of short ones "
    "are shorter. It has not been verified that this is the cause here."
)
NOTES: dict[str, str] = {"k = 4, load 50 %: short.p50": CAUSE, "k = 4, load 50 %: long.p50": CAUSE, "k = 8, load 50 %: short.mean": CAUSE}
"""Known causes of differences, by the beginning of `CASE: MEASURE`."""


def page(cases: list[dict]) -> tuple[str, list[str]]:
    """The page, and the rows that differ without a note."""
    parts = [HEAD]
    unexplained = []
    for case in cases:
        parts.append(f"## {case['case']}\n")
        dropped = case["dropped"]
        parts.append(
            paragraph(
                f"{case['seeds']} seeds with {case['transfers']:,} transfers and {case['hops']:,} transmissions of packets. Queues dropped "
                f"{dropped['cutline']:,} packets in Cutline and {dropped['ns3']:,} in ns-3."
            )
        )
        parts.append(table(case))
        notes = set()
        for row in case["rows"]:
            if row["verdict"] != "differs":
                continue
            name = f"{case['case']}: {row['measure']}"
            known = [text for start, text in NOTES.items() if name.startswith(start)]
            notes.update(known)
            unexplained += [] if known else [name]
        parts += [paragraph(text) for text in sorted(notes)]
    parts.append(costs(cases))
    return "\n".join(parts), unexplained


def table(case: dict) -> str:
    """The rows of a case."""
    lines = ["| transfers | measure | Cutline | ns-3 | difference | judgement |", "| --- | --- | --- | --- | --- | --- |"]
    for row in case["rows"]:
        kind, name = row["measure"].split(".")
        of = TITLES.get(kind, "all")
        cells = [with_interval(row[side], 1.0, sign) for side, sign in (("cutline", ""), ("ns3", ""), ("difference", "+"))]
        title = MEASURES.get(name, "slowdown, mean")
        lines.append(f"| {of} | {title} | {' | '.join(cells)} | {VERDICTS[row['verdict']]} |")
    return "\n".join(lines) + "\n"


def costs(cases: list[dict]) -> str:
    """The processor time and the memory of both engines."""
    lines = [
        "## Time and memory\n",
        paragraph(
            "Processes ran one after the other, in turn, on a machine with much other load, which also lengthens processor times. "
            "Time and memory are medians over the seeds, of the whole process with set-up and output; "
            "transmissions per second are those of the fastest seed, "
            "and so are the ratios. Debian's ns-3 contains logging. It is off here, but the check for it costs time. Transmissions "
            "are those that Cutline counts; each link that a packet crosses is one."
        ),
        "| case | engine | processor time, s | largest memory, MB | transmissions per second |",
        "| --- | --- | --- | --- | --- |",
    ]
    for case in cases:
        for side, name in (("cutline", "Cutline"), ("ns3", "ns-3")):
            found = case["cost"][side]
            cells = f"{found['seconds']:.2f} | {found['megabytes']:.0f} | {found['hops_per_second'] / 1e6:.2f} million"
            lines.append(f"| {case['case']} | {name} | {cells} |")
    for case in cases:
        ours, theirs = case["cost"]["cutline"], case["cost"]["ns3"]
        ratio = ours["hops_per_second"] / theirs["hops_per_second"]
        memory = theirs["megabytes"] / ours["megabytes"]
        lines += ["", paragraph(f"{case['case']}: ns-3 takes {ratio:.0f} times as long and {memory:.1f} times as much memory.").rstrip()]
    return "\n".join(lines) + "\n"
