"""Sockets of every kind, used as programs use them, that know nothing of marks. Every exchange is with itself.

Each line of the script's argument list is an exchange; the script fails if one does.
"""

import asyncio
import ctypes
import http.server
import os
import socket
import struct
import subprocess
import sys
import threading
import urllib.request

HOSTS = {"v4": (socket.AF_INET, "127.0.0.1"), "v6": (socket.AF_INET6, "::1")}


def tcp(family, listen, connect):
    """Two connections, one after the other, with data in both directions."""
    server = socket.socket(family, socket.SOCK_STREAM)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.bind((listen, 0))
    server.listen()
    for _ in range(2):
        client = socket.socket(socket.AF_INET6 if ":" in connect else socket.AF_INET)
        client.connect((connect, server.getsockname()[1]))
        # A program's own mark.
        if client.family == socket.AF_INET:
            client.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0xB8)
        else:
            client.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 0xB8)
        accepted, _ = server.accept()
        client.sendall(b"x" * 100_000)
        client.shutdown(socket.SHUT_WR)
        while accepted.recv(65536):
            pass
        accepted.sendall(b"y" * 50_000)
        accepted.close()
        while client.recv(65536):
            pass
        client.close()
    server.close()


def udp(family, host):
    receiver = socket.socket(family, socket.SOCK_DGRAM)
    receiver.bind((host, 0))
    receiver.settimeout(60)
    to = receiver.getsockname()
    v4 = family == socket.AF_INET
    level, name = (socket.IPPROTO_IP, socket.IP_TOS) if v4 else (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)
    # Not connected, each datagram from a new socket.
    for _ in range(3):
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"plain", to)
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(level, name, 0xB9)
        sender.connect(to)
        sender.send(b"connected")
        os.write(sender.fileno(), b"written")
        os.writev(sender.fileno(), [b"in ", b"parts"])
        for ecn in (0, 1, 2):
            sender.sendmsg([b"with control"], [(level, name, struct.pack("i", ecn))])
        batch(sender, level, name)
        copy = sender.dup()
        copy.send(b"of a copy")
        copy.close()
    for _ in range(3 + 3 + 3 + 12 + 1):
        receiver.recv(2000)
    receiver.close()


class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class Message(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("parts", ctypes.POINTER(Part)),
        ("count", ctypes.c_size_t),
        ("control", ctypes.c_char_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("padding", ctypes.c_int),
        ("sent", ctypes.c_uint),
    ]


def batch(sender, level, name):
    """Twelve datagrams by one sendmmsg, as QUIC libraries send them: with an ECN bit for each."""
    part = Part(b"in a batch", 10)
    control = struct.pack("@Niii4x", 20, level, name, 2)
    messages = (Message * 12)()
    for message in messages:
        message.parts, message.count = ctypes.pointer(part), 1
        message.control, message.control_length = control, len(control)
    sent = ctypes.CDLL(None, use_errno=True).sendmmsg(sender.fileno(), messages, 12, 0)
    assert sent == 12, (sent, ctypes.get_errno())
    assert all(message.sent == 10 for message in messages)


def web(family, host):
    """urllib, and curl if there is one, from http.server: threads, keep-alive off."""

    class Server(http.server.ThreadingHTTPServer):
        address_family = family

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"z" * 30_000)

        def log_message(self, *_):
            pass

    server = Server((host, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"[{host}]" if family == socket.AF_INET6 else host
    url = f"http://{address}:{server.server_address[1]}/"
    assert len(urllib.request.urlopen(url).read()) == 30_000
    subprocess.run(["curl", "-gsSf", "-o", "/dev/null", url], check=True)
    server.shutdown()
    server.server_close()


async def asynchronous(host):
    """Sockets of an event loop, which are non-blocking."""
    received = asyncio.get_running_loop().create_future()

    class Receiver(asyncio.DatagramProtocol):
        def datagram_received(self, data, _):
            received.done() or received.set_result(data)

    loop = asyncio.get_running_loop()
    receiver, _ = await loop.create_datagram_endpoint(Receiver, local_addr=(host, 0))
    to = receiver.get_extra_info("sockname")[:2]
    sender, _ = await loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=to)
    sender.sendto(b"asynchronous")
    await asyncio.wait_for(received, 60)
    sender.close()
    receiver.close()


def children(exchange):
    """The same in a forked child, and in a program that it starts."""
    child = os.fork()
    if child == 0:
        exchange()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def main(what):
    if what == "tcp":
        for family, host in HOSTS.values():
            tcp(family, host, host)
        tcp(socket.AF_INET6, "::", "127.0.0.1")
    elif what == "udp":
        for family, host in HOSTS.values():
            udp(family, host)
        udp(socket.AF_INET6, "::ffff:127.0.0.1")
    elif what == "web":
        for family, host in HOSTS.values():
            web(family, host)
    elif what == "async":
        for _, host in HOSTS.values():
            asyncio.run(asynchronous(host))
    elif what == "children":
        children(lambda: main("udp"))
        subprocess.run([sys.executable, __file__, "tcp"], check=True)
    else:
        sys.exit(f"unknown exchange {what}")


if __name__ == "__main__":
    for exchange in sys.argv[1:]:
        main(exchange)
