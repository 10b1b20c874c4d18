"""The notebooks run, and the reference has every public name. Each notebook is read and run on its own, in an empty folder."""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import cutline
from test_sim import COMMAND

REPOSITORY = Path(__file__).parents[2]
NOTEBOOKS = sorted((REPOSITORY / "docs/notebooks").glob("*.ipynb"))
# Without CUTLINE_FULL=1, which make test-python-full sets, only these run.
QUICK = ("first-run",)
# A cell that draws.
DRAWS = re.compile(r"cutline\.plot\.(overview|sweep|cdf|time|plane|paper)\(|pyplot\.subplots\(")


class Notebooks(unittest.TestCase):
    def test_there_are_six_notebooks_without_outputs(self):
        self.assertEqual(len(NOTEBOOKS), 6)
        for path in NOTEBOOKS:
            with self.subTest(path.stem):
                notebook = json.loads(path.read_text())
                for cell in notebook["cells"]:
                    if cell["cell_type"] == "code":
                        self.assertEqual((cell["outputs"], cell["execution_count"]), ([], None))
                        ast.parse("".join(cell["source"]))
                    for line in "".join(cell["source"]).splitlines():
                        self.assertLessEqual(len(line), 145, line)
                self.assertLess(path.stat().st_size, 20_000)
                first = "".join(notebook["cells"][0]["source"])
                self.assertRegex(first, r"^# .+\n\n.{100}", "a title and an introduction")

    def test_notebooks_run(self):
        for library in ("nbclient", "ipykernel", "matplotlib", "polars", "distributed"):
            if importlib.util.find_spec(library) is None:
                self.skipTest(f"{library} is not installed")
        import nbclient
        import nbformat

        for path in NOTEBOOKS:
            if path.stem not in QUICK and "CUTLINE_FULL" not in os.environ:
                continue
            with self.subTest(path.stem), tempfile.TemporaryDirectory() as folder:
                if "cutline" in path.read_text() and COMMAND is not None:
                    # Some call the command.
                    Path(folder, "bin").mkdir()
                    os.symlink(COMMAND, Path(folder, "bin/cutline"))
                environ = {**os.environ, "PATH": os.pathsep.join([str(Path(folder, "bin")), os.environ["PATH"]])}
                client = nbclient.NotebookClient(
                    nbformat.read(path, 4), timeout=300, resources={"metadata": {"path": folder}})
                done = client.execute(env=environ)
                drawn = 0
                for cell in done.cells:
                    if cell.cell_type == "code" and DRAWS.search(cell.source):
                        pictures = [output for output in cell.outputs if "image/png" in output.get("data", {})]
                        self.assertEqual(len(pictures), 1, f"a figure of: {cell.source}")
                        drawn += 1
                self.assertTrue(drawn, "a notebook has a figure")


class Reference(unittest.TestCase):
    def test_the_reference_is_built_offline_and_has_every_name(self):
        if importlib.util.find_spec("mkdocstrings") is None:
            self.skipTest("mkdocstrings is not installed")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", REPOSITORY / "python/reference/mkdocs.yml", "-d", folder],
                capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            pages = {path.name: path.read_text() for path in Path(folder).glob("*.html")}
        for name, page in pages.items():
            loaded = re.findall(r"<(?:script|img)[^>]*src=\"(https?:[^\"]*)|<link[^>]*href=\"(https?:[^\"]*)", page)
            self.assertEqual(loaded, [], f"{name} loads from the network")
        anchors = {anchor.rsplit(".", 1)[-1] for page in pages.values() for anchor in re.findall(r"id=\"(cutline\.[\w.]+)\"", page)}
        public = {name for module in (cutline, cutline.sim, cutline.results, cutline.plot, cutline.extend, cutline.lab, cutline.aqm, cutline.errors,
                                      cutline.quality, cutline.socket, cutline.tfrc) for name in module.__all__}
        # Types of the native module are described in the class that passes them; modules have pages.
        native = {"Acked", "Acknowledgement", "Backlog", "Packet", "Window", "__version__", "classes"}
        native |= {name for name in cutline.socket.__all__ if name.startswith(("SHUT_", "SOCK_"))}
        modules = {name for name in public if isinstance(getattr(cutline, name, None), type(os))}
        self.assertEqual(sorted(public - anchors - native - modules), [])


if __name__ == "__main__":
    unittest.main()
