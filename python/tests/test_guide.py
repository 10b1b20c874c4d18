"""The Python blocks of docs/guide/python.md are run as a reader would: in order, in one session, in the repository's folder."""

import contextlib
import io
import os
import re
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


class Guide(unittest.TestCase):
    def test_every_block_works(self):
        for library in ("numpy", "polars", "pandas", "pyarrow"):
            try:
                __import__(library)
            except ImportError:
                self.skipTest(f"{library} is not installed")
        page = (REPOSITORY / "docs/guide/python.md").read_text()
        blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        self.assertGreater(len(blocks), 8)
        self.addCleanup(os.chdir, os.getcwd())
        session, said = {}, io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(REPOSITORY / "examples", Path(folder, "examples"))
            os.chdir(folder)
            for block in blocks:
                with self.subTest(block), contextlib.redirect_stdout(said):
                    exec(compile(block, "docs/guide/python.md", "exec"), session)
            os.chdir(REPOSITORY)
        self.assertEqual(session["keys"], ["dumbbell.rate", "flow.audio.class"])
        self.assertEqual(session["by_group"].height, 8)
        self.assertEqual((session["order"].index("call"), session["surface"].shape), (7, (3, 61)))
        for part in ("runs    12: 4 points x 3 seeds", "cutline run examples/dumbbell.toml --seeds 3", "goodput_bps"):
            self.assertIn(part, said.getvalue())


if __name__ == "__main__":
    unittest.main()
