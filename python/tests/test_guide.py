"""The Python blocks of docs/guide/python.md, extend.md and sweeps.md are run as a reader would: in order, in one session, in the repository's folder."""

import contextlib
import io
import os
import re
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


class Guide(unittest.TestCase):
    def run_blocks(self, page_name, least, name="guide"):
        """Runs the blocks of a page in one session. Returns the session and the output."""
        for library in ("numpy", "polars", "pandas", "pyarrow", "xarray", "distributed", "duckdb"):
            try:
                __import__(library)
            except ImportError:
                self.skipTest(f"{library} is not installed")
        try:
            import matplotlib
        except ImportError:
            self.skipTest("matplotlib is not installed")
        matplotlib.use("Agg")
        page = (REPOSITORY / "docs/guide" / page_name).read_text()
        blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        self.assertGreaterEqual(len(blocks), least)
        self.addCleanup(os.chdir, os.getcwd())
        # Classes know the module that they are in.
        session, said = {"__name__": name}, io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(REPOSITORY / "examples", Path(folder, "examples"))
            os.chdir(folder)
            for block in blocks:
                with self.subTest(block), contextlib.redirect_stdout(said):
                    exec(compile(block, f"docs/guide/{page_name}", "exec"), session)
            os.chdir(REPOSITORY)
        return session, said.getvalue()

    def test_every_block_works(self):
        session, said = self.run_blocks("python.md", 9)
        self.assertEqual(session["keys"], ["dumbbell.rate", "flow.audio.class"])
        self.assertEqual(session["by_group"].height, 8)
        self.assertEqual((session["order"].index("call"), session["surface"].shape), (7, (3, 61)))
        self.assertEqual(dict(session["data"].sizes)["flow.audio.hint"], 4)
        for part in ("runs    12: 4 points x 3 seeds", "cutline run examples/dumbbell.toml --seeds 3", "goodput_bps"):
            self.assertIn(part, said)

    def test_the_page_of_sweeps(self):
        # Workers import the main file, which is not this page.
        session, said = self.run_blocks("sweeps.md", 5, name="__main__")
        self.assertTrue(session["found"].complete)
        self.assertRegex(said, r"16 +group +audio +q ")

    def test_the_lines_of_the_readme(self):
        if "CUTLINE_FULL" not in os.environ:
            self.skipTest("make test-python-full runs it")
        import matplotlib
        matplotlib.use("Agg")
        section = (REPOSITORY / "README.md").read_text().split("\n## In Python\n")[1].split("\n## ")[0]
        [lines] = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
        self.assertEqual(len(lines.splitlines()), 4)
        self.addCleanup(os.chdir, os.getcwd())
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(REPOSITORY / "examples", Path(folder, "examples"))
            os.chdir(folder)
            exec(compile(lines, "README.md", "exec"), {"__name__": "readme"})
            self.assertIn("<svg", Path("call.svg").read_text()[:1000])
            os.chdir(REPOSITORY)

    def test_the_page_of_extensions(self):
        session, said = self.run_blocks("extend.md", 4)
        self.assertEqual({extension.name for extension in (session["Ramp"], session["Sensor"], session["Gentle"])},
                         {"ramp", "sensor", "gentle"})
        self.assertRegex(said, r"16 +group +audio +q ")


if __name__ == "__main__":
    unittest.main()
