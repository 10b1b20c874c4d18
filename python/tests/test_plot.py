"""Figures: the same pictures as those of the command, in each style and format."""

import json
import math
import os
import shutil
import subprocess
import unittest
from pathlib import Path

import cutline
from cutline import plot
from test_sim import COMMAND, InFolder, small

try:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed") from None

# Set to a folder to look at the pictures.
KEPT = os.environ.get("CUTLINE_PICTURES")


class Figures(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        grid = {"flow.audio.hint": [1, 6, 16], "dumbbell.queue.tsq": [True, False]}
        scenario = small(duration="20 s").with_({"name": "two-queues", "title": "Audio beside two transfers"})
        cls.swept = cutline.run(scenario.sweep(grid), seeds=3, results=None, progress=False)
        cls.single = cutline.run(scenario, seeds=3, results=None, progress=False)

    def tearDown(self):
        pyplot.close("all")

    def show(self, axes, name):
        if KEPT:
            plot.save(axes, Path(KEPT, f"{name}.png"))

    def test_each_kind(self):
        for name, axes, panels in (
                ("overview", plot.overview(self.swept), 3), ("overview-single", plot.overview(self.single), 3),
                ("cdf", plot.cdf(self.single), 1), ("cdf-two", plot.cdf(self.single, measures=["queuing_ms", "one_way_ms"], groups="audio"), 2),
                ("time", plot.time(self.single), 3), ("sweep", plot.sweep(self.swept, measures=["q", "queuing_p99_ms"]), 2),
                ("plane", plot.plane(self.swept, by="flow.audio.hint"), 2)):
            with self.subTest(name):
                self.assertGreaterEqual(len(axes), panels)
                self.assertTrue(all(one.has_data() and one.get_xlabel() and (one.get_ylabel() or one.get_title("left")) for one in axes))
                self.show(axes, name)

    def test_the_points_are_means_with_intervals(self):
        [axes] = plot.sweep(self.swept, measures="q", groups="audio")
        means = {(row["flow.audio.hint"], row["dumbbell.queue.tsq"]): row for row in self.swept.summary(groups="audio", measures="q")}
        for line in axes.get_lines():
            label = line.get_label()
            if label.startswith("_"):
                continue
            tsq = "true" if "true" in label else "false"
            for x, y in zip(line.get_xdata(), line.get_ydata()):
                self.assertAlmostEqual(y, means[int(x), tsq]["mean"])
        self.assertEqual(len(axes.containers), 2, "whiskers of two lines")

    def test_several_results_and_own_axes(self):
        without = cutline.run(small(duration="20 s").with_({"name": "without", "dumbbell.queue.tsq": False}), seeds=2, progress=False)
        figure, (left, right) = pyplot.subplots(1, 2)
        [axes] = plot.cdf([self.single, without], groups="audio", axes=left)
        self.assertIs(axes, left)
        self.assertEqual({text.get_text() for text in left.get_legend().get_texts()}, {"two-queues, audio", "without, audio"})
        plot.cdf(["results/without"], axes=right)
        with self.assertRaises(cutline.ArgumentError) as why:
            plot.sweep(self.swept, measures=["q", "qd"], axes=left)
        self.assertEqual(why.exception.parameter, "axes")

    def test_styles_have_the_width_of_a_column(self):
        for style, width in (("one-column", 3.5), ("two-column", 7.16), ("screen", 10.0)):
            axes = plot.sweep(self.swept, measures=["q", "queuing_p99_ms"], style=style)
            self.assertAlmostEqual(axes[0].figure.get_figwidth(), width)
            self.assertEqual(axes[0].figure.get_suptitle(), "Audio beside two transfers" if style == "screen" else "")
            self.show(axes, f"style-{style}")
        described = plot.describe(axes)
        self.assertEqual(described.title, "Audio beside two transfers")
        self.assertIn("95 %", " ".join(described.notes))

    def test_formats(self):
        axes = plot.plane(self.swept, "queuing_p99_ms", "goodput_bps", style="two-column")
        for name, start in (("a.pdf", b"%PDF"), ("a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
            plot.save(axes, name)
            self.assertTrue(Path(name).read_bytes().startswith(start))
        self.assertIn(b"/Type0", Path("a.pdf").read_bytes(), "fonts are embedded as outlines")

    def test_no_file_is_written_through_a_symbolic_link(self):
        axes = plot.cdf(self.single)
        for link in ("a.svg", ".a.svg.unfinished", ".a.svg.unfinished.svg"):
            Path("precious").write_text("precious")
            os.symlink("precious", link)
            plot.save(axes, "a.svg")
            self.assertEqual(Path("precious").read_text(), "precious", link)
            self.assertFalse(Path("a.svg").is_symlink(), link)
            Path(link).unlink(missing_ok=True)

    @unittest.skipIf(shutil.which("pdflatex") is None, "pdflatex is not installed")
    def test_pgf_compiles(self):
        axes = plot.sweep(self.swept, measures=["q", "queuing_p99_ms"], style="one-column")
        plot.save(axes, "figure.pgf")
        Path("paper.tex").write_text("\\documentclass{article}\\usepackage{pgf}\\begin{document}\\input{figure.pgf}\\end{document}")
        done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "paper.tex"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:])
        if KEPT:
            shutil.copy("paper.pdf", Path(KEPT, "pgf.pdf"))

    def test_invalid_figures_are_refused(self):
        for call, parameter in (
                (lambda: plot.sweep(self.swept, style="wide"), "style"), (lambda: plot.sweep(self.swept, measures="quality"), "measures"),
                (lambda: plot.sweep(self.swept, by=3), "by"), (lambda: plot.cdf([]), "results"), (lambda: plot.cdf(self.single, axes=3), "axes"),
                (lambda: plot.sweep(self.swept, groups="videos"), "groups"), (lambda: plot.paper("tsq", -1), "figure"),
                (lambda: plot.paper("tsq", 9999), "figure"), (lambda: plot.paper("qst", 1), "study"), (lambda: plot.paper(1, 1), "study"),
                (lambda: plot.save(plot.cdf(self.single), "figure.gif"), "path")):
            with self.assertRaises(cutline.ArgumentError) as why:
                call()
            self.assertEqual(why.exception.parameter, parameter)
        with self.assertRaises(cutline.NothingFound):
            plot.cdf(self.single, measures="qd_ms")
        with self.assertRaises(cutline.NoResults):
            plot.cdf("results/none")
        with self.assertRaises(cutline.NoResults):
            plot.paper("tsq", 10)
        with self.assertRaises(cutline.StoreError):
            plot.save(plot.cdf(self.single), "no/such/folder.pdf")
        self.assertEqual([file for file in os.listdir() if "unfinished" in file], [])


@unittest.skipIf(COMMAND is None, "the command is not built: make trial")
class SameAsTheCommand(InFolder):
    def test_the_points_are_those_of_plot(self):
        cutline.run(small(duration="10 s").sweep({"flow.audio.hint": [1, 16]}), seeds=2, progress=False)
        for kind, draw in (("sweep", plot.sweep), ("time", plot.time), ("cdf", plot.cdf), ("plane", plot.plane)):
            with self.subTest(kind):
                done = subprocess.run([COMMAND, "plot", "results/small", "--kind", kind, "--json"], capture_output=True, text=True, timeout=60)
                if done.returncode == 2 and "unrecognized" in done.stderr:
                    self.skipTest("this command draws nothing: make release")
                self.assertEqual(done.returncode, 0, done.stderr)
                panels = json.loads(done.stdout)["panels"]
                axes = draw("results/small")
                self.assertEqual([one.get_ylabel() for one in axes], [panel["y"] for panel in panels])
                for panel, one in zip(panels, axes):
                    lines = {line.get_label(): line for line in one.get_lines()}
                    for series in panel["series"]:
                        line = lines.get(series["name"])
                        if line is not None:
                            ours = [(x, y) for x, y in zip(line.get_xdata(), line.get_ydata()) if not math.isnan(y)]
                            self.assertEqual(ours, [(dot["x"], dot["y"]) for dot in series["points"]])
                pyplot.close("all")


class Studies(InFolder):
    def test_styles_are_listed(self):
        studies = plot.studies()
        self.assertLessEqual({"tsq", "redw", "qsock"}, set(studies))
        self.assertTrue(all(heading for figures in studies.values() for heading in figures.values()))

    def test_a_figure_of_a_paper(self):
        folder = os.environ.get("CUTLINE_STUDIES")
        if folder is None:
            self.skipTest("make test-python-full runs it")
        for style in ("screen", "one-column"):
            axes = plot.paper("tsq", 10, results=folder, quick=True, style=style)
            self.assertTrue(all(one.has_data() for one in axes))
            if KEPT:
                plot.save(axes, Path(KEPT, f"tsq-10-{style}.png"))


if __name__ == "__main__":
    unittest.main()
