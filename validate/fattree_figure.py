"""The figure of the comparison on fat-trees: the slowdown of transfers by their size, in both engines."""

import math

WIDTH, HEIGHT, LEFT, TOP, GAP = 380, 260, 58, 40, 30
BINS = 10
SIDES = (("cutline", "Cutline", "#1b6ca8", ""), ("ns3", "ns-3", "#c8553d", "5 4"))
"""Engine, name, colour and dashes."""
QUANTILES = ((0.5, "median", 1.6), (0.99, "99th percentile", 2.6))
"""Share, name, and width of the line."""


def points(slowdowns: list[tuple[int, float]], q: float) -> list[tuple[float, float]]:
    """The quantile of the slowdowns in each tenth of the transfers by size, at the middle of its sizes on a logarithmic scale."""
    ordered = sorted(slowdowns)
    found = []
    for number in range(BINS):
        part = ordered[len(ordered) * number // BINS : len(ordered) * (number + 1) // BINS]
        if part:
            values = sorted(value for _, value in part)
            size = math.sqrt(part[0][0] * part[-1][0])
            found.append((size, values[min(len(values) - 1, int(q * len(values)))]))
    return found


def figure(cases: list[dict]) -> str:
    """An SVG with a panel for each case."""
    total = len(cases) * (WIDTH + GAP) + GAP
    curves = [
        (number, side, q, points(case["slowdowns"][side], q))
        for number, case in enumerate(cases)
        for side, *_ in SIDES
        for q, *_ in QUANTILES
    ]
    sizes = [size for *_, curve in curves for size, _ in curve]
    most = max(value for *_, curve in curves for _, value in curve)
    low, high = math.log10(min(sizes)) - 0.05, math.log10(max(sizes)) + 0.05
    decades = math.ceil(math.log10(most))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{HEIGHT + 60}" font-family="sans-serif" font-size="12" '
        'role="img"><title>Slowdown of transfers by size, in Cutline and in ns-3</title>',
        f'<rect width="{total}" height="{HEIGHT + 60}" fill="white"/>',
    ]
    inner_width, inner_height = WIDTH - LEFT, HEIGHT - TOP - 36

    def place(number: int, size: float, value: float) -> tuple[float, float]:
        across = (math.log10(size) - low) / (high - low)
        up = math.log10(max(value, 1.0)) / decades
        return GAP + number * (WIDTH + GAP) + LEFT + across * inner_width, TOP + (1 - up) * inner_height

    for number, case in enumerate(cases):
        left = GAP + number * (WIDTH + GAP) + LEFT
        parts.append(f'<text x="{left}" y="24" font-weight="bold">{case["case"]}</text>')
        for decade in range(decades + 1):
            y = TOP + (1 - decade / decades) * inner_height
            parts.append(f'<line x1="{left}" x2="{left + inner_width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
            parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10**decade}</text>')
        for power, text in ((4, "10 KB"), (5, "100 KB"), (6, "1 MB"), (7, "10 MB")):
            if low <= power <= high:
                x, _ = place(number, 10**power, 1)
                parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{TOP + inner_height}" stroke="#dddddd"/>')
                parts.append(f'<text x="{x:.1f}" y="{TOP + inner_height + 16}" text-anchor="middle">{text}</text>')
        parts.append(f'<text x="{left + inner_width / 2}" y="{TOP + inner_height + 32}" text-anchor="middle">size</text>')
        middle = TOP + inner_height / 2
        parts.append(
            f'<text x="{left - 42}" y="{middle}" text-anchor="middle" transform="rotate(-90 {left - 42} {middle})">slowdown</text>'
        )
    for number, side, q, curve in curves:
        colour, dashes = next((colour, dashes) for name, _, colour, dashes in SIDES if name == side)
        width = next(width for share, _, width in QUANTILES if share == q)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(number, size, value) for size, value in curve))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes}"/>')
    x = GAP + LEFT
    for _, name, colour, dashes in SIDES:
        for _, of, width in QUANTILES:
            y = HEIGHT + 36
            parts.append(
                f'<line x1="{x}" x2="{x + 28}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes}"/>'
            )
            parts.append(f'<text x="{x + 34}" y="{y + 4}">{name}, {of}</text>')
            x += 34 + 7 * len(f"{name}, {of}") + 16
    return "\n".join([*parts, "</svg>"]) + "\n"
