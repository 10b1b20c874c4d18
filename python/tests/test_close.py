"""A stream that is closed, in whatever way, delivers all accepted data to a slow reader that reports often."""

import subprocess
import sys
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from cutline import socket

OPTIONS = {"monitor.interval": "20 ms"}

CLIENT = """
import asyncio, gc, sys, time
from cutline import socket
OPTIONS = {options!r}
how, port, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

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
            words = [how, str(server.getsockname()[1]), str(size)]
            ended = subprocess.run([sys.executable, "-c", CLIENT.format(options=OPTIONS), *words],
                                   timeout=120, capture_output=True)
            self.assertEqual((ended.returncode, ended.stderr.decode()), (0, ""), how)
            reading.join(120)
            return got

    def test_data_is_delivered_however_the_stream_ends(self):
        """Most of the time is that of slow readers, so several streams are read at once."""
        ways = ["close", "idle", "shutdown", "with", "collected", "sys.exit", "end", "asyncio-close", "asyncio-drain", "asyncio-run"]
        tried = [(how, size) for how in ways for size in [1, 3_000_000, 8_000_000]]
        tried += [(how, 64_000_000) for how in ["close", "end", "asyncio-close"]]
        with ThreadPoolExecutor(4) as pool:
            delivered = [pool.submit(self.delivered, how, size) for how, size in tried]
        for (how, size), future in zip(tried, delivered):
            with self.subTest(how=how, size=size):
                self.assertEqual(future.result(), [size])


if __name__ == "__main__":
    unittest.main()
