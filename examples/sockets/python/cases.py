"""Programs of one host on a slow line, with and without shares of the host's resource manager.

    cases.py receive 0.0.0.0 5010
    cases.py send robot 192.0.2.1 5010 20            for 20 s; also file-server and video-wall
    cases.py send robot 192.0.2.1 5010 20 unmanaged  without shares; or the manager's socket

Streams use the port, datagrams the next one. For the printed delays of datagrams both clocks have to agree.
"""

import errno
import struct
import sys
import threading
import time

from cutline import socket
from cutline.socket import SOCK_DGRAM, SOCK_STREAM


def program(name, type, allocation, size, every=0, **limits):
    """A program that sends a message every so many seconds, or as fast as its socket lets it."""
    spec = {"send": {"size": f"{size} B"} | {key.replace("_", "-"): value for key, value in limits.items()}}
    return name.encode(), size, every, type, {"allocation": allocation, "if-refused": "fail"}, spec


CASES = {
    "file-server": [
        program("search", SOCK_DGRAM, "real-time", 200, 0.02, min_rate=40, max_rate=60, max_delay="50 ms"),
        *(program(f"copy {number}", SOCK_STREAM, "time-shared", 1250, min_rate=100) for number in range(1, 5)),
    ],
    "video-wall": [program(f"screen {number}", SOCK_DGRAM, "time-shared", 1200, min_rate=250, max_rate=625, max_delay="40 ms",
                           loss=0.5) for number in range(1, 5)],
    "robot": [
        program("control", SOCK_DGRAM, "real-time", 100, 0.01, min_rate=80, max_rate=120, max_delay="20 ms", loss=0.1),
        program("camera", SOCK_DGRAM, "time-shared", 1200, min_rate=250, max_rate=1500, max_delay="100 ms", loss=1),
        program("log", SOCK_STREAM, "time-shared", 1250, min_rate=20),
    ],
}


def run(name, size, every, type, options, spec, host, port, seconds):
    with socket.create_connection((host, port + (type == SOCK_DGRAM)), spec, type=type, options=options) as connection:
        due, end = time.monotonic(), time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                connection.send(struct.pack("!16sd", name, time.time()) + bytes(size - 24))
            except OSError as error:
                if error.errno != errno.ENOBUFS:  # A message for which this host has no room is lost.
                    raise
            due += every
            time.sleep(max(0, due - time.monotonic()))


def send(case, host, port, seconds, manager):
    for name, size, every, type, options, spec in CASES[case]:
        options = {} if manager == "unmanaged" else options | ({"allocation-socket": manager} if manager else {})
        threading.Thread(target=run, args=[name, size, every, type, options, spec, host, port, seconds], daemon=True).start()
    time.sleep(seconds + 1)  # Ctrl-C ends it.


def take(connection):
    name, begin, delays, last = None, time.monotonic(), [], time.monotonic()
    connection.settimeout(2)
    try:
        while data := connection.recv(65536):
            name, last = name or data[:16].decode().rstrip("\0"), time.monotonic()
            if connection.type == SOCK_DGRAM:
                delays.append(time.time() - struct.unpack_from("!d", data, 16)[0])
    except (TimeoutError, ConnectionError):
        pass
    it = connection.mib.receive.received
    rate, lost = it.bytes * 8e-6 / max(last - begin, 1e-6), it.lost / max(it.messages + it.lost, 1)
    p50, p99 = (f"{sorted(delays)[len(delays) * part // 100] * 1000:.1f}" if delays else "-" for part in (50, 99))
    print(f"{name or '-':12} {rate:7.2f} {100 * lost:7.2f} {p50:>9} {p99:>9}\n", end="", flush=True)


def receive(host, port):
    ears, streams = [], socket.create_server((host, port), type=SOCK_STREAM)
    datagrams = socket.create_server((host, streams.getsockname()[1] + 1), type=SOCK_DGRAM)

    def accept(server):
        while True:
            ear = threading.Thread(target=take, args=server.accept()[:1])
            ear.start()
            ears.append(ear)
    for server in (streams, datagrams):
        threading.Thread(target=accept, args=[server], daemon=True).start()
    print(f"port {streams.getsockname()[1]}\nprogram       Mbit/s  lost %  p50 (ms)  p99 (ms)", flush=True)
    while not ears or any(ear.is_alive() for ear in ears):
        time.sleep(0.1)


match sys.argv[1:]:
    case ["send", case, host, port, seconds, *manager] if case in CASES and len(manager) < 2:
        send(case, host, int(port), float(seconds), *manager or [None])
    case ["receive", host, port]:
        receive(host, int(port))
    case _:
        sys.exit("cases.py send CASE HOST PORT SECONDS [unmanaged | SOCKET] | cases.py receive HOST PORT")
