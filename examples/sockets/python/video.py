"""Video-like traffic: frames at a rate that adapts to the network's delivery.

    video.py receive 0.0.0.0 5004
    video.py send 192.0.2.1 5004 10        for 10 s
"""

import errno
import sys
import time

from cutline import socket


def send(address, seconds):
    rate, end, report = 100.0, time.monotonic() + seconds, 0.0
    with socket.create_connection(address, "video", type=socket.SOCK_DGRAM, options={"adapt-rate": True}) as call:
        while time.monotonic() < end:
            for event in call.events():
                print(event.text)
                rate = event.rate or rate
            try:
                call.send(bytes(1000))
            except OSError as error:
                # A message is lost if this host has no room for it.
                if error.errno != errno.ENOBUFS:
                    raise
            time.sleep(1 / rate)
            if time.monotonic() - report > 1:
                report = time.monotonic()
                received = call.mib.send.received
                print(f"sent: {received.messages} frames arrived, {received.lost} lost")


def receive(address):
    with socket.create_server(address, "video", type=socket.SOCK_DGRAM) as server:
        print(f"port {server.getsockname()[1]}", flush=True)
        call, _ = server.accept()
    with call:
        call.settimeout(2)
        try:
            while True:
                call.recv(2000)
                for event in call.events():
                    print(event.text)
        except (TimeoutError, ConnectionRefusedError):
            received = call.mib.receive.received
            print(f"received: {received.messages} frames, {received.lost} lost")


def main(words):
    match words:
        case ["send", host, port, seconds]:
            send((host, int(port)), float(seconds))
        case ["receive", host, port]:
            receive((host, int(port)))
        case _:
            sys.exit("video.py send HOST PORT SECONDS | video.py receive HOST PORT")


if __name__ == "__main__":
    main(sys.argv[1:])
