"""The examples of docstrings, run in a folder that has the scenarios of the repository."""

import doctest
import importlib
import os
import pkgutil
import tempfile
import unittest
from pathlib import Path

import cutline

REPOSITORY = Path(__file__).parents[2]


def modules():
    """The modules of the package in Python."""
    names = [module.name for module in pkgutil.iter_modules(cutline.__path__)]
    return [cutline, *(importlib.import_module(f"cutline.{name}") for name in names if name != "_native")]


class Docstrings(unittest.TestCase):
    def setUp(self):
        self.addCleanup(os.chdir, os.getcwd())
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.symlink(REPOSITORY / "examples", Path(folder.name, "examples"))
        os.chdir(folder.name)

    def test_every_example_has_its_stated_output(self):
        tried = {}
        for module in modules():
            with self.subTest(module.__name__):
                said = []
                runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
                for test in doctest.DocTestFinder().find(module, module.__name__):
                    runner.run(test, out=said.append)
                tried[module.__name__] = runner.tries
                self.assertEqual(runner.failures, 0, "".join(said))
        for name in ("cutline.aqm", "cutline.quality", "cutline.sim", "cutline._translation"):
            self.assertGreaterEqual(tried[name], 3, name)


if __name__ == "__main__":
    unittest.main()
