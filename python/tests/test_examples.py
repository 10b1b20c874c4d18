"""The examples, each with both of its ends."""

import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from cutline import socket

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

    def test_a_file_is_served_whole_to_a_slow_reader_that_reports(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "large").write_bytes(bytes(3_000_000))
            server = start("files.py", "serve", "127.0.0.1", "0", folder)
            self.addCleanup(server.__exit__, None, None, None)
            self.addCleanup(server.kill)
            port = int(server.stdout.readline().split()[1])
            options = {"monitor.interval": "20 ms"}
            with socket.create_connection(("127.0.0.1", port), options=options, timeout=60) as stream:
                stream.sendall(b"large\n")
                got, reads = 0, 0
                while piece := stream.recv(65536):
                    got, reads = got + len(piece), reads + 1
                    if reads < 40:
                        time.sleep(0.02)
            self.assertEqual(got, 3_000_000)

    def test_telephone(self):
        first, out, errors = self.run_both(
            "phone.py", ["answer", "127.0.0.1", "0", "1"], ["call", "127.0.0.1", "PORT", "1"], "stderr")
        heard, _ = first.communicate(timeout=60)
        self.assertEqual((len(heard), len(out)), (8000, 8000), errors)
        self.assertEqual((max(out), min(out)), (max(heard), min(heard)))

    def test_cases_of_a_host(self):
        # Without a manager, and with one that is away: then nothing is limited.
        for case, programs, manager in (("robot", 3, "unmanaged"), ("file-server", 5, "/nonexistent/manager.sock")):
            with self.subTest(case=case):
                first, _, errors = self.run_both("cases.py", ["receive", "127.0.0.1", "0"],
                                                 ["send", case, "127.0.0.1", "PORT", "1", manager], "stdout")
                self.assertEqual(errors, "")
                printed, errors = first.communicate(timeout=60)
                self.assertEqual(errors, b"")
                # `readline` has taken the port, and it may have taken the header.
                line = r"^(?:search|copy \d|control|camera|log) +\d+\.\d\d +\d+\.\d\d +(?:-|[\d.]+) +(?:-|[\d.]+)$"
                self.assertEqual(len(re.findall(line, printed.decode(), re.M)), programs, printed)

    def test_ctrl_c_ends_the_programs_of_a_host(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = str(server.getsockname()[1])
            sender = start("cases.py", "send", "file-server", "127.0.0.1", port, "600", "unmanaged")
            self.addCleanup(sender.__exit__, None, None, None)
            self.addCleanup(sender.kill)
            streams = [server.accept()[0] for _ in range(4)]
            sender.send_signal(signal.SIGINT)
            _, errors = sender.communicate(timeout=60)
            self.assertIn(b"KeyboardInterrupt", errors)
            for stream in streams:
                stream.close()


if __name__ == "__main__":
    unittest.main()
