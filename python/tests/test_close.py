"""A stream that is closed, in whatever way, delivers all accepted data to a slow reader that reports often."""

import os
import shutil
import socket as plain
import subprocess
import sys
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from cutline import socket

OPTIONS = {"monitor.interval": "20 ms"}
WAYS = ["close", "idle", "shutdown", "with", "collected", "sys.exit", "end", "asyncio-close", "asyncio-drain", "asyncio-run"]
# The argument with which this file runs over_slow_link.
SLOW = "--over-slow-link"

CLIENT = """
import asyncio, gc, sys, time
from cutline import socket
OPTIONS = {options!r}
how, port, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
OPTIONS["peer"] = sys.argv[4]

def connected():
    stream = socket.create_connection(("127.0.0.1", port), "file", options=OPTIONS)
    stream.sendall(bytes(size))
    return stream

async def aconnected():
    reader, writer = await socket.open_connection(("127.0.0.1", port), "file", options=OPTIONS)
    writer.write(bytes(size))
    if how == "asyncio-close":
        writer.close()
        await writer.wait_closed()
    elif how == "asyncio-drain":
        await writer.drain()
        writer.close()
    elif how == "asyncio-run":
        # Most of it waits in the transport when the program is at its end.
        writer.close()

if how.startswith("asyncio"):
    asyncio.run(aconnected())
else:
    stream = connected()
    if how == "close":
        stream.close()
    elif how == "idle":
        time.sleep(0.3)  # Reports of the peer come, which are not read.
        stream.close()
    elif how == "shutdown":
        stream.shutdown(socket.SHUT_RDWR if hasattr(socket, "SHUT_RDWR") else 2)
        stream.close()
    elif how == "with":
        with stream:
            pass
    elif how == "collected":
        del stream
        gc.collect()
    elif how == "sys.exit":
        sys.exit(0)
"""


def read_slowly(stream):
    """The number of received bytes, read slowly at first."""
    got, reads = 0, 0
    while piece := stream.recv(65536):
        got, reads = got + len(piece), reads + 1
        if reads < 40:
            time.sleep(0.02)
    return got


class Closing(unittest.TestCase):
    def delivered(self, how, size):
        with socket.create_server(("127.0.0.1", 0), "file", options=OPTIONS) as server:
            got = []

            def serve():
                stream, _ = server.accept()
                try:
                    got.append(read_slowly(stream))
                except OSError as error:
                    got.append(error)

            reading = threading.Thread(target=serve, daemon=True)
            reading.start()
            self.run_client(how, server.getsockname()[1], size)
            reading.join(120)
            return got

    def run_client(self, how, port, size, peer="detect"):
        words = [how, str(port), str(size), peer]
        ended = subprocess.run([sys.executable, "-c", CLIENT.format(options=OPTIONS), *words],
                               timeout=120, capture_output=True)
        self.assertEqual((ended.returncode, ended.stderr.decode()), (0, ""), how)

    def test_data_is_delivered_however_the_stream_ends(self):
        tried = [(how, size) for how in WAYS for size in [1, 3_000_000, 8_000_000]]
        tried += [(how, 64_000_000) for how in ["close", "end", "asyncio-close"]]
        self.are_delivered(tried)

    def are_delivered(self, tried):
        """Tries all these ways and sizes. Most of the time is that of slow readers, so several streams are read at once."""
        with ThreadPoolExecutor(4) as pool:
            delivered = [pool.submit(self.delivered, how, size) for how, size in tried]
        for (how, size), future in zip(tried, delivered):
            with self.subTest(how=how, size=size):
                self.assertEqual(future.result(), [size])

    def test_a_plain_peer_receives_all(self):
        """Unread data of the peer arrives before the program ends: it writes 8 MB only once the peer reads."""
        for how in WAYS:
            for size, unread in [(1, 0), (8_000_000, 1000)]:
                with self.subTest(how=how, size=size), plain.create_server(("127.0.0.1", 0)) as server:
                    with ThreadPoolExecutor(1) as pool:
                        running = pool.submit(self.run_client, how, server.getsockname()[1], size, "plain")
                        stream, _ = server.accept()
                        with stream:
                            stream.sendall(bytes(unread))
                            self.assertEqual(read_slowly(stream), size)
                        running.result()

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("tc"), "a slow link needs root and the program tc")
    def test_over_a_slow_link_data_is_delivered_too(self):
        """In a network namespace of a process of its own, which runs over_slow_link."""
        words = ["unshare", "--net", sys.executable, __file__, SLOW]
        ended = subprocess.run(words, timeout=600, capture_output=True, text=True)
        if "Operation not permitted" in ended.stderr:
            self.skipTest(f"no network namespaces: {ended.stderr}")
        self.assertEqual(ended.returncode, 0, ended.stderr)


def over_slow_link():
    """The work of a process whose network is a loopback interface of 8 Mbit/s: streams that end in several ways."""
    for command in ["ip link set lo mtu 1500 up", "tc qdisc add dev lo root tbf rate 8mbit burst 16kb latency 300ms"]:
        subprocess.run(command.split(), check=True)
    Closing().are_delivered([("close", 1), *((how, 3_000_000) for how in WAYS)])


if __name__ == "__main__" and sys.argv[1:] == [SLOW]:
    over_slow_link()
elif __name__ == "__main__":
    unittest.main()
