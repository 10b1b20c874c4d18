"""mypy and pyright, as strict as they are, over the package, the guides' blocks and the notebooks."""

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

REPOSITORY = Path(__file__).parents[2]
PACKAGE = Path(cutline.__file__).parent


def session(blocks):
    """Returns the blocks of a page or notebook as one program."""
    return "\n".join(blocks)


def programs():
    """The examples, by name."""
    found = {}
    for page in ("python", "sweeps"):
        text = (REPOSITORY / f"docs/guide/{page}.md").read_text()
        found[f"guide_{page}"] = session(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    for path in (REPOSITORY / "docs/notebooks").glob("*.ipynb"):
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        found[f"notebook_{path.stem.replace('-', '_')}"] = session("".join(cell["source"]) for cell in cells)
    return found


class Mypy(unittest.TestCase):
    def setUp(self):
        if importlib.util.find_spec("mypy") is None:
            self.skipTest("mypy is not installed")

    def run_mypy(self, *words, cwd=None):
        return subprocess.run([sys.executable, "-m", "mypy", *words], cwd=cwd, env={**os.environ, "MYPYPATH": str(PACKAGE.parent)}, capture_output=True, text=True, timeout=600)

    def test_the_package_is_strict(self):
        with tempfile.TemporaryDirectory() as folder:
            found = self.run_mypy("--strict", "--cache-dir", folder, "-p", "cutline", cwd=PACKAGE.parent)
        self.assertEqual(found.returncode, 0, found.stdout)

    def test_the_examples_pass(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, program in programs().items():
                Path(folder, f"{name}.py").write_text(program)
            # Methods of extensions are written without types there.
            found = self.run_mypy("--check-untyped-defs", "--cache-dir", f"{folder}/cache", *sorted(str(path) for path in Path(folder).glob("*.py")))
        self.assertEqual(found.returncode, 0, found.stdout)


class Pyright(unittest.TestCase):
    """basedpyright is pyright with all that it needs in one package; the rules are those of pyright."""

    def setUp(self):
        if importlib.util.find_spec("basedpyright") is None:
            self.skipTest("basedpyright is not installed")

    def check(self, folder, mode, **rules):
        configuration = {"typeCheckingMode": mode, "pythonVersion": "3.11", "reportMissingModuleSource": False, "extraPaths": [str(PACKAGE.parent)],
                         **rules}
        Path(folder, "pyrightconfig.json").write_text(json.dumps(configuration))
        done = subprocess.run([sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", folder], capture_output=True, text=True, timeout=600)
        found = json.loads(done.stdout)
        problems = [f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']} ({one.get('rule')})"
                    for one in found["generalDiagnostics"] if one["severity"] == "error"]
        return problems, found["summary"]["filesAnalyzed"]

    def test_the_package_passes(self):
        # The types of the sockets are in stubs, which test_every_public_type_is_known reads.
        problems, files = self.check(tempfile.mkdtemp(), "standard", include=[str(PACKAGE)],
                                     exclude=[str(PACKAGE / "socket.py"), str(PACKAGE / "_aio.py")])
        self.assertEqual(problems, [])
        self.assertGreater(files, 15)

    def test_every_public_type_is_known(self):
        done = subprocess.run([sys.executable, "-m", "basedpyright", "--verifytypes", "cutline", "--ignoreexternal", "--outputjson"],
                              capture_output=True, text=True, timeout=600, cwd=PACKAGE.parent)
        found = json.loads(done.stdout)["typeCompleteness"]
        unknown = [symbol["name"] for symbol in found["symbols"] if symbol["isExported"] and not symbol["isTypeKnown"]]
        self.assertEqual(unknown, [])
        self.assertGreater(found["exportedSymbolCounts"]["withKnownType"], 300)

    def test_the_examples_pass(self):
        folder = tempfile.mkdtemp()
        for name, program in programs().items():
            Path(folder, f"{name}.py").write_text(program)
        problems, files = self.check(folder, "standard")
        self.assertEqual(problems, [])
        self.assertEqual(files, len(programs()))


if __name__ == "__main__":
    unittest.main()
