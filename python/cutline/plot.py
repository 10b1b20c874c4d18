"""Figures with matplotlib: those of `cutline plot`, and those of the studies that `cutline reproduce` has run.

    axes = cutline.plot.sweep("results/dumbbell", measures=["q"], style="one-column")
    cutline.plot.save(axes, "quality.pdf")

Each function returns the axes of its panels. The drawn values are computed by the code of the command: the same points and intervals. A style
sets the width, fonts and lines: "screen", or "one-column" (3.5 in) and "two-column" (7.16 in) for papers, without the title and the notes,
which are in `title` and `notes` of `describe`. `save` writes PDF, PGF for LaTeX, SVG or PNG.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._files import write_whole
from .errors import ArgumentError, StoreError
from .results import Results, _library, _texts, open as open_results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Description", "Style", "cdf", "describe", "overview", "paper", "plane", "save", "studies", "sweep", "time"]

Style = Literal["screen", "one-column", "two-column"]
"""The width, fonts and lines of a figure."""

Given = Results | str | os.PathLike[str]

# Okabe and Ito (2008), then darker shades: as in the command's pictures.
_COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#b8ab00", "#003a66", "#7a2f00", "#004d38", "#7d2f59", "#6e4b00",
    "#8c8c8c", "#4a4600",
)
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (8, 3)), (0, (3, 1, 1, 1, 1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")
_HATCHES = ("", "//", "..", "xx", "\\\\", "oo", "--", "||")

_PAPER = {
    "font.size": 8.0, "axes.titlesize": 8.0, "axes.labelsize": 8.0, "xtick.labelsize": 7.0, "ytick.labelsize": 7.0, "legend.fontsize": 7.0,
    "lines.linewidth": 1.1, "lines.markersize": 3.2, "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
    "grid.linewidth": 0.4, "font.family": "serif", "mathtext.fontset": "stix", "hatch.linewidth": 0.5,
}
_STYLES: dict[str, tuple[float, float, dict[str, Any]]] = {
    # Width of a figure and height of a row, inches.
    "screen": (10.0, 3.6, {"font.size": 10.0, "axes.titlesize": 11.0, "lines.linewidth": 1.6, "lines.markersize": 5.0}),
    "one-column": (3.5, 2.3, _PAPER),
    "two-column": (7.16, 2.3, _PAPER),
}
_SHARED = {
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#dddddd", "axes.axisbelow": True,
    "legend.frameon": False, "axes.titlelocation": "left",
}
# Type 42 is a font that editors and publishers take.
_FILES = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none", "pgf.texsystem": "pdflatex", "pgf.rcfonts": False}
_FORMATS = (".pdf", ".pgf", ".svg", ".png")


@dataclass(frozen=True)
class Description:
    """The texts of a figure beside its axes."""

    title: str
    notes: tuple[str, ...]
    """Remarks for the caption: the meaning of bars and bands, and what all points have in common."""


def overview(
    results: Given | Sequence[Given], *, groups: str | Sequence[str] = (), points: str | Sequence[str] = (),
    axes: Axes | Iterable[Axes] | None = None, style: Style = "screen",
) -> list[Axes]:
    """Draws measures along the sweep, or without one the course over time and the distribution of delays.

    results: results, their folder, or several of them, which are drawn into the same axes.
    groups, points: only these groups and queues, and the points whose label contains one of these texts.
    axes: the axes to draw into, as many as there are panels; None for a new figure.
    """
    return _picture("overview", results, (), None, groups, points, axes, style)


def cdf(
    results: Given | Sequence[Given], *, measures: str | Sequence[str] = (), groups: str | Sequence[str] = (),
    points: str | Sequence[str] = (), axes: Axes | Iterable[Axes] | None = None, style: Style = "screen",
) -> list[Axes]:
    """Draws the distribution of the packets' delays, or of other quantities such as "one_way_ms". Arguments as in `overview`."""
    return _picture("cdf", results, measures, None, groups, points, axes, style)


def time(
    results: Given | Sequence[Given], *, measures: str | Sequence[str] = (), groups: str | Sequence[str] = (),
    points: str | Sequence[str] = (), axes: Axes | Iterable[Axes] | None = None, style: Style = "screen",
) -> list[Axes]:
    """Draws the course over time of goodput, delay, queue and drops, or of other measures. Arguments as in `overview`."""
    return _picture("time", results, measures, None, groups, points, axes, style)


def sweep(
    results: Given | Sequence[Given], by: str | None = None, *, measures: str | Sequence[str] = (), groups: str | Sequence[str] = (),
    points: str | Sequence[str] = (), axes: Axes | Iterable[Axes] | None = None, style: Style = "screen",
) -> list[Axes]:
    """Draws means over the seeds along a swept key, with 95 % intervals.

    by: the key on the horizontal axis; None for the one with the most values. Other arguments as in `overview`.
    """
    return _picture("sweep", results, measures, by, groups, points, axes, style)


def plane(
    results: Given | Sequence[Given], x: str = "queuing_p99_ms", y: str = "goodput_bps", *, by: str | None = None,
    groups: str | Sequence[str] = (), points: str | Sequence[str] = (), axes: Axes | Iterable[Axes] | None = None,
    style: Style = "screen",
) -> list[Axes]:
    """Draws one measure against another, with a panel for each group.

    by: the swept key along which points are joined. Other arguments as in `overview`.
    """
    return _picture("plane", results, (x, y), by, groups, points, axes, style)


def paper(
    study: str, figure: int, *, results: str | os.PathLike[str] = "results", quick: bool = False,
    axes: Axes | Iterable[Axes] | None = None, style: Style = "screen",
) -> list[Axes]:
    """Draws a figure of a study from its stored results, as the report of `cutline reproduce` has it.

    study: "tsq", "redw" or another one of `studies()`. `cutline reproduce STUDY --figure N` makes the simulations that the figure needs.
    figure: its number in the paper.
    results: the folder of all results.
    quick: whether the results are those of `cutline reproduce --quick`.
    """
    if isinstance(figure, bool) or not isinstance(figure, int) or not 0 <= figure < 2**32:
        raise ArgumentError(f"figure: {figure!r} is not allowed: expected the number of a figure", "figure")
    if not isinstance(study, str):
        raise ArgumentError(f"study: {study!r} is not allowed: expected the name of a study, such as \"tsq\"", "study")
    return _draw(json.loads(_native.study_figure(study, figure, os.fspath(results), bool(quick))), axes, style)


def studies() -> dict[str, dict[int, str]]:
    """Returns the studies by name, each with its figures: number and heading."""
    return {name: dict(figures) for name, _, figures in _native.studies()}


def describe(axes: Axes | Iterable[Axes]) -> Description:
    """Returns the title and the notes of the figure of some axes, for a caption."""
    described: Description = getattr(_list(axes)[0], "_cutline", Description("", ()))
    return described


def save(axes: Axes | Iterable[Axes], path: str | os.PathLike[str], **options: Any) -> None:
    """Writes the figure of some axes as .pdf, .pgf, .svg or .png. PGF needs LaTeX. Options are those of matplotlib's `savefig`.

    A file that cannot be written whole is not written.
    """
    matplotlib = _library("matplotlib", "save")
    file = Path(path)
    if file.suffix not in _FORMATS:
        raise ArgumentError(f"path: {os.fspath(path)!r} is not allowed: expected a name that ends with {', '.join(_FORMATS)}", "path")
    dpi = {"dpi": 200, **options} if file.suffix == ".png" else options
    try:
        # Matplotlib would follow a link in the place of the file. PGF may have further files, its bitmaps.
        with tempfile.TemporaryDirectory() as private:
            with matplotlib.rc_context(_FILES):
                _list(axes)[0].figure.get_figure(root=True).savefig(Path(private, file.name), **dpi)
            for made in sorted(Path(private).iterdir(), key=lambda made: made.name == file.name):
                write_whole(file.with_name(made.name), file.with_name(f".{made.name}.unfinished"), made.read_bytes())
    except OSError as error:
        raise StoreError(error.errno, f"{os.fspath(path)} cannot be written: {error.strerror or error}") from error


def _picture(
    kind: str, results: Given | Sequence[Given], measures: str | Sequence[str], by: str | None, groups: str | Sequence[str],
    points: str | Sequence[str], axes: Axes | Iterable[Axes] | None, style: Style,
) -> list[Axes]:
    if by is not None and not isinstance(by, str):
        raise ArgumentError(f"by: {by!r} is not allowed: expected a swept key, such as \"flow.audio.hint\"", "by")
    several = [results] if isinstance(results, (Results, str, os.PathLike)) else list(results)
    if not several:
        raise ArgumentError("results: [] is not allowed: expected results, or the folder of results", "results")
    opened = [one if isinstance(one, Results) else open_results(one) for one in several]
    found = _native.picture(
        [one._native for one in opened], kind, _texts("measures", measures), by, _texts("groups", groups), _texts("points", points))
    return _draw(json.loads(found), axes, style)


def _draw(documents: list[dict[str, Any]], axes: Axes | Iterable[Axes] | None, style: Style) -> list[Axes]:
    matplotlib = _library("matplotlib", "cutline.plot")
    if style not in _STYLES:
        raise ArgumentError(f"style: {style!r} is not allowed: expected one of {', '.join(_STYLES)}", "style")
    width, height, settings = _STYLES[style]
    charts = [chart for document in documents for chart in document["charts"]]
    names = list(dict.fromkeys(series["name"] for chart in charts for series in chart["series"] if not series["expected"]))
    description = Description(
        documents[0]["title"] or charts[0]["title"], tuple(dict.fromkeys(note for document in documents for note in document["notes"])))
    with matplotlib.rc_context({**_SHARED, **settings}):
        figure: Figure | None = None
        if axes is None:
            across = 1 if style == "one-column" else min(max(document["columns"] for document in documents), len(charts))
            down = math.ceil(len(charts) / across)
            pyplot = _library("matplotlib.pyplot", "cutline.plot")
            figure, grid = pyplot.subplots(down, across, figsize=(width, height * down), layout="constrained", squeeze=False)
            drawn: list[Axes] = list(grid.flat)
            for empty in drawn[len(charts):]:
                empty.remove()
            drawn = drawn[: len(charts)]
        else:
            drawn = _list(axes)
            if len(drawn) != len(charts):
                raise ArgumentError(f"axes: {len(drawn)} are not allowed: expected {len(charts)}, one for each panel", "axes")
        for chart, on in zip(charts, drawn):
            _chart(chart, on, names, len(charts) > 1 or style == "screen")
            on._cutline = description  # type: ignore[attr-defined]
        _legend(figure, drawn, style)
        if figure is not None and style == "screen":
            figure.suptitle(description.title, x=0.01, ha="left", fontweight="bold")
            if description.notes:
                figure.supxlabel(" ".join(description.notes), fontsize="small", color="#555555", wrap=True, x=0.01, ha="left")
        is_interactive: bool = matplotlib.is_interactive()
    # The first figure of a notebook turns this on, and the end of the context has turned it off again.
    matplotlib.interactive(is_interactive)
    return drawn


def _chart(chart: dict[str, Any], axes: Axes, names: list[str], with_title: bool) -> None:
    bars = [series for series in chart["series"] if series["shape"] == "bars"]
    for series in chart["series"]:
        slot = names.index(series["name"]) if series["name"] in names else 0
        x, y, low, high = ([math.nan if value is None else value for value in column] for column in zip(*series["points"])) \
            if series["points"] else ([], [], [], [])
        if series["shape"] == "bars":
            _bars(axes, series["name"], slot, (x, y, low, high), bars.index(series), len(bars))
        else:
            _line(axes, series, slot, x, y, low, high)
    for reference in chart["references"]:
        _reference(axes, reference)
    _axis(axes, "x", chart["x"])
    _axis(axes, "y", chart["y"])
    cap = chart["y"]["cap"]
    if cap is not None:
        _cut(axes, chart["series"], cap)
    if with_title and chart["title"]:
        axes.set_title("\n".join(text for text in (chart["title"], chart["subtitle"]) if text))


def _line(axes: Axes, series: dict[str, Any], slot: int, x: list[float], y: list[float], low: list[float], high: list[float]) -> None:
    colour = "#222222" if series["expected"] else _COLOURS[slot % len(_COLOURS)]
    is_marked = series["marked"] or series["expected"]
    markers: dict[str, Any] = {"marker": _MARKERS[slot % len(_MARKERS)], "markerfacecolor": "none" if series["expected"] else colour} if is_marked else {}
    if series["shape"] == "steps":
        axes.step(x, y, where="post", label=series["name"], color=colour, linestyle=_DASHES[slot % len(_DASHES)], **markers)
    else:
        dash = "none" if series["shape"] == "markers" else _DASHES[slot % len(_DASHES)]
        axes.plot(x, y, label=series["name"], color=colour, linestyle=dash, **markers)
    known = [place for place in zip(x, y, low, high) if not any(math.isnan(value) for value in place)]
    if not known:
        return
    if series["band"]:
        axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    else:
        at, middle, lower, upper = zip(*known)
        errors = [[m - one for m, one in zip(middle, lower)], [one - m for m, one in zip(middle, upper)]]
        axes.errorbar(at, middle, yerr=[[max(e, 0.0) for e in side] for side in errors], fmt="none", ecolor=colour, capsize=2,
                      elinewidth=0.8, capthick=0.8)


def _bars(axes: Axes, name: str, slot: int, points: Sequence[list[float]], at: int, count: int) -> None:
    x, y, low, high = points
    width = 0.8 / count
    places = [one - 0.4 + width * (at + 0.5) for one in x]
    axes.bar(places, y, width * 0.92, label=name, color=_COLOURS[slot % len(_COLOURS)], hatch=_HATCHES[slot % len(_HATCHES)], edgecolor="white",
             linewidth=0.3)
    known = [place for place in zip(places, y, low, high) if not any(math.isnan(value) for value in place)]
    if known:
        middle, heights, lower, upper = zip(*known)
        errors = [[max(h - one, 0.0) for h, one in zip(heights, lower)], [max(one - h, 0.0) for h, one in zip(heights, upper)]]
        axes.errorbar(middle, heights, yerr=errors, fmt="none", ecolor="#222222", capsize=2, elinewidth=0.8, capthick=0.8)


def _reference(axes: Axes, reference: dict[str, Any]) -> None:
    if reference["y"] is not None:
        axes.axhline(reference["y"], color="#666666", linewidth=0.8, linestyle=(0, (4, 3)))
        place, text = (1.0, reference["y"]), axes.get_yaxis_transform()
        axes.annotate(reference["label"], place, xycoords=text, xytext=(-2, 2), textcoords="offset points", ha="right", va="bottom",
                      fontsize="small", color="#444444")
    else:
        axes.axvline(reference["x"], color="#666666", linewidth=0.8, linestyle=(0, (4, 3)))
        axes.annotate(reference["label"], (reference["x"], 1.0), xycoords=axes.get_xaxis_transform(), xytext=(2, -2),
                      textcoords="offset points", ha="left", va="top", fontsize="small", color="#444444", rotation=90)


def _rightmost(line: Any) -> float:
    """Returns the greatest x of a line of matplotlib, 0 of an empty one."""
    return float(max(line.get_xydata()[:, 0], default=0.0))


def _axis(axes: Axes, which: Literal["x", "y"], described: dict[str, Any]) -> None:
    getattr(axes, f"set_{which}label")(described["label"])
    if described["log"] is not None:
        getattr(axes, f"set_{which}scale")("log", base=described["log"])
    if described["names"] is not None:
        names = described["names"]
        is_crowded = sum(map(len, names)) > 40
        getattr(axes, f"set_{which}ticks")(range(len(names)), names, **({"rotation": 30, "ha": "right"} if which == "x" and is_crowded else {}))
        axes.grid(visible=False, axis=which)
    elif described["ticks"] is not None:
        values, labels = [value for value, _ in described["ticks"]], [label for _, label in described["ticks"]]
        getattr(axes, f"set_{which}ticks")(values, labels)
        getattr(axes, f"{which}axis").minorticks_off()
    elif described["log"] is None:
        # Without steps of 2.5, which hints and seeds do not have.
        getattr(axes, f"{which}axis").set_major_locator(_library("matplotlib.ticker", "cutline.plot").MaxNLocator(6, steps=[1, 2, 5, 10]))
    bounds = {end: described[end] for end in ("low", "high") if described[end] is not None}
    if which == "x":
        # Markers at the end of the axis are whole.
        if "high" in bounds and described["log"] is None and any(
                line.get_marker() not in ("None", "") and _rightmost(line) > 0.98 * bounds["high"]
                for line in axes.get_lines()):
            bounds["high"] += 0.03 * (bounds["high"] - bounds.get("low", 0.0))
        elif "low" in bounds and "high" not in bounds and described["log"] is None and axes.dataLim.x1 > bounds["low"]:
            bounds["high"] = axes.dataLim.x1 + 0.03 * (axes.dataLim.x1 - bounds["low"])
        axes.set_xlim(left=bounds.get("low"), right=bounds.get("high"))
    else:
        axes.set_ylim(bottom=bounds.get("low"), top=bounds.get("high"))


def _cut(axes: Axes, series: list[dict[str, Any]], cap: float) -> None:
    """Leaves out rare values that would flatten the rest, and marks them at the upper edge."""
    beyond = [(x, y) for one in series for x, y, *_ in one["points"] if x is not None and y is not None and y > cap]
    if beyond:
        axes.set_ylim(top=cap * 1.05)
        axes.plot([x for x, _ in beyond], [1.0] * len(beyond), transform=axes.get_xaxis_transform(), linestyle="none", marker="^", color="#444444",
                  markersize=4, clip_on=False)
        x, y = max(beyond, key=lambda place: place[1])
        axes.annotate(f"{y:,.0f}" if y >= 100 else f"{y:.3g}", (x, 1.0), xycoords=axes.get_xaxis_transform(), xytext=(5, -2),
                      textcoords="offset points", va="top", fontsize="small")


def _legend(figure: Figure | None, axes: list[Axes], style: str) -> None:
    handles: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    if len(handles) < 2:
        return
    if figure is None:
        axes[0].legend(list(handles.values()), list(handles))
        return
    if style == "screen":
        # The title is above the panels.
        figure.legend(list(handles.values()), list(handles), loc="outside right upper")
        return
    longest = max(map(len, handles))
    across = max(1, (64 if style == "one-column" else 140) // (longest + 10))
    figure.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=min(across, len(handles)))


def _list(axes: Axes | Iterable[Axes]) -> list[Axes]:
    found = list(getattr(axes, "flat", axes)) if isinstance(axes, Iterable) else [axes]
    if not found or not all(hasattr(one, "get_xlim") for one in found):
        raise ArgumentError(f"axes: {axes!r} is not allowed: expected axes of matplotlib", "axes")
    return found
