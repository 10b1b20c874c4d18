"""The examples, each with both of its ends."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "examples/sockets/python"


def start(name, *words, **options):
    path = FOLDER / name
    assert len(path.read_text().splitlines()) < 100, f"{name}: an example has less than 100 lines"
    return subprocess.Popen([sys.executable, path, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


class Examples(unittest.TestCase):
    def run_both(self, name, listen, ask, where):
        first = start(name, *listen)
        self.addCleanup(first.__exit__, None, None, None)
        self.addCleanup(first.kill)
        line = getattr(first, where).readline().decode()
        self.assertRegex(line, r"^port \d+$")
        words = [line.split()[1] if word == "PORT" else word for word in ask]
        out, errors = start(name, *words).communicate(timeout=60)
        return first, out, errors.decode()

    def test_video(self):
        first, out, errors = self.run_both(
            "video.py", ["receive", "127.0.0.1", "0"], ["send", "127.0.0.1", "PORT", "1.5"], "stdout")
        self.assertIn("both ends agree", out.decode(), errors)
        received, errors = first.communicate(timeout=60)
        self.assertRegex(received.decode(), r"received: \d+ frames, 0 lost", errors)

    def test_files(self):
        content = b"".join(b"line %d\n" % number for number in range(50_000))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "lines.txt").write_bytes(content)
            _, out, errors = self.run_both("files.py", ["serve", "127.0.0.1", "0", folder],
                                           ["get", "127.0.0.1", "PORT", "lines.txt"], "stdout")
            self.assertTrue(out == content, errors)

    def test_telephone(self):
        first, out, errors = self.run_both(
            "phone.py", ["answer", "127.0.0.1", "0", "1"], ["call", "127.0.0.1", "PORT", "1"], "stderr")
        heard, _ = first.communicate(timeout=60)
        self.assertEqual((len(heard), len(out)), (8000, 8000), errors)
        self.assertEqual((max(out), min(out)), (max(heard), min(heard)))


if __name__ == "__main__":
    unittest.main()
