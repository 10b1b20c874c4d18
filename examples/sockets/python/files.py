"""A file server in asyncio: a client sends a name and a newline, the server answers with the file and closes.

    files.py serve 0.0.0.0 5005 /srv/files
    files.py get 192.0.2.1 5005 NAME > copy
"""

import asyncio
import sys
from pathlib import Path

from cutline import socket


async def serve(address, folder):
    async def answer(reader, writer):
        name = (await reader.readline()).decode(errors="replace").strip()
        path = folder / name
        # A name with a slash could lead out of the folder.
        if "/" in name or name.startswith(".") or not path.is_file():
            writer.write(b"no such file\n")
        else:
            with path.open("rb") as file:
                while data := file.read(65536):
                    writer.write(data)
                    await writer.drain()
        writer.close()

    async with await socket.start_server(answer, address, "file") as server:
        print(f"port {server.getsockname()[1]}", flush=True)
        await asyncio.Event().wait()


async def get(address, name):
    reader, writer = await socket.open_connection(address, "file")
    writer.write(name.encode() + b"\n")
    while data := await reader.read(65536):
        sys.stdout.buffer.write(data)
    mib = writer.get_extra_info("connection").mib
    print(f"{mib.receive.received.bytes} bytes, round-trip time {mib.tcp.rtt * 1000:.3f} ms", file=sys.stderr)
    writer.close()


def main(words):
    match words:
        case ["serve", host, port, folder]:
            asyncio.run(serve((host, int(port)), Path(folder)))
        case ["get", host, port, name]:
            asyncio.run(get((host, int(port)), name))
        case _:
            sys.exit("files.py serve HOST PORT FOLDER | files.py get HOST PORT NAME")


if __name__ == "__main__":
    main(sys.argv[1:])
