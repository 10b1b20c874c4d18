"""A telephone: 50 messages of 160 samples a second each way. It sends a tone, and writes the received sound.

    phone.py answer 0.0.0.0 5006 10 | aplay -f U8 -r 8000
    phone.py call 192.0.2.1 5006 10 | aplay -f U8 -r 8000        for 10 s
"""

import errno
import math
import sys
import threading
import time

from cutline import socket

SAMPLES, RATE = 160, 8000


def hear(call):
    """Writes the received sound until no message arrives for a second."""
    try:
        while True:
            sys.stdout.buffer.write(call.recv(2 * SAMPLES))
            sys.stdout.buffer.flush()
    except (TimeoutError, ConnectionRefusedError):
        pass


def talk(call, seconds):
    call.settimeout(1)
    ear = threading.Thread(target=hear, args=[call])
    ear.start()
    begin = time.monotonic()
    for message in range(int(seconds * RATE / SAMPLES)):
        places = range(message * SAMPLES, (message + 1) * SAMPLES)
        try:
            call.send(bytes(int(128 + 60 * math.sin(440 * math.tau * place / RATE)) for place in places))
        except OSError as error:
            # A message is lost if this host has no room for it.
            if error.errno != errno.ENOBUFS:
                raise
        for event in call.events():
            print(event.text, file=sys.stderr)
        time.sleep(max(0, begin + (message + 1) * SAMPLES / RATE - time.monotonic()))
    ear.join()
    mib = call.mib
    print(f"heard {mib.receive.received.messages} messages, {mib.receive.received.lost} lost, "
          f"violations {mib.receive.violations}", file=sys.stderr)


def main(words):
    match words:
        case ["call", host, port, seconds]:
            with socket.create_connection((host, int(port)), "audio", type=socket.SOCK_DGRAM) as call:
                talk(call, float(seconds))
        case ["answer", host, port, seconds]:
            with socket.create_server((host, int(port)), "audio", type=socket.SOCK_DGRAM) as server:
                print(f"port {server.getsockname()[1]}", file=sys.stderr, flush=True)
                call, _ = server.accept()
            with call:
                talk(call, float(seconds))
        case _:
            sys.exit("phone.py call HOST PORT SECONDS | phone.py answer HOST PORT SECONDS")


if __name__ == "__main__":
    main(sys.argv[1:])
