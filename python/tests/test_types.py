"""mypy and pyright, as strict as they are, over the package, the guides' blocks, the notebooks, and programs that are right and wrong.

Each reads everything in one run, since most of its time goes into the libraries that all have in common. With MYPY_CACHE_DIR, as `make`
sets it, a later run reads the changed parts alone.
"""

import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from collections import defaultdict
from pathlib import Path

import cutline

REPOSITORY = Path(__file__).parents[2]
PACKAGE = Path(cutline.__file__).parent
# Programs that pass, and lines that do not, each with the kind of its error.
SOCKETS = '''
import asyncio
import array
import types
from cutline import Refused, socket
from cutline.socket import SOCK_DGRAM, SOCK_STREAM, AsyncServer, Connection, DatagramReader, DatagramWriter


def blocking() -> int:
    with socket.create_server(("", 0), types.MappingProxyType({"class": "web"})) as server:
        server.settimeout(1.5)
        host: str = server.getsockname()[0]
        connection, peer = server.accept()
    with connection, socket.protected_thread("real-time") as priority:
        print("real-time" if priority == "real-time" else priority.upper())
        sent: int = connection.send(bytearray(b"x")) + connection.send(memoryview(b"y")) + connection.send(array.array("B"))
        connection.sendall(b"z")
        line: bytes = connection.makefile("rb").readline()
        text: str = connection.makefile(encoding="utf-8").readline()
        count: int = connection.recv_into(bytearray(10), 5)
        connection.on_event(lambda event: print(event.text, host, line, text, peer))
        for event in connection.events(timeout=5):
            if event.rate is not None:
                count += int(event.rate)
    try:
        with socket.create_connection(("fe80::1", 80, 0, 2), "video", type=SOCK_DGRAM, timeout=1) as call:
            call.send(b"x")
    except Refused as why:
        print(why)
    return sent + count


class Echo(asyncio.DatagramProtocol):
    def datagram_received(self, data: bytes, addr: tuple[str | int, int]) -> None:
        print(len(data))


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.read(10))
    connection: Connection = writer.get_extra_info("connection")
    print(connection.mib.send.last)


async def answer(reader: DatagramReader, writer: DatagramWriter) -> None:
    async for datagram in reader:
        writer.write(datagram)


async def main() -> None:
    server: AsyncServer = await socket.start_server(serve, ("127.0.0.1", 0), "file", limit=100)
    print(server.sockets[0].getsockname())
    async with server:
        reader, writer = await socket.open_connection(server.getsockname(), type=SOCK_STREAM)
        line: bytes = await reader.readline()
        writer.writelines([line])
        await server.serve_forever()
    datagrams = await socket.start_server(answer, ("127.0.0.1", 0), type=SOCK_DGRAM)
    receives, sends = await socket.open_connection(datagrams.getsockname(), type=SOCK_DGRAM)
    sends.write(await receives.read())
    transport, protocol = await socket.create_endpoint(Echo, ("127.0.0.1", 9), type=SOCK_DGRAM)
    transport.sendto(b"x")
    protocol.datagram_received(b"y", ("127.0.0.1", 9))
    protocols = await socket.create_server_endpoint(Echo, ("127.0.0.1", 0), type=SOCK_DGRAM)
    protocols.close()
    await protocols.wait_closed()
'''
WRONG_SOCKETS = {
    'socket.create_connection("host", "web")': "arg-type",
    'socket.create_connection(("host", 1)).send("text")': "arg-type",
    'socket.create_connection(("host", 1)).events().text': "attr-defined",
    'socket.create_server(("host", 1)).recv(5)': "attr-defined",
    'socket.protected_thread("fifo")': "arg-type",
}
SIMULATOR = """
import cutline
from cutline.sim import Scenario
scenario: Scenario = Scenario.from_dict({"name": "x"}).with_({"flow.a.hint": 3}).sweep({("a", "b"): [(1, 2)]})
results: cutline.Results = cutline.run(scenario, seeds=range(1, 3), jobs=2, results=None)
rows: int = len(results.flows)
mean: list[float] = results.summary("hint", measures=["q"])["mean"]
results.compare("results/other", groups="audio").to_polars()
queue = cutline.aqm.Pi("10 Mbit/s", q_ref="150 ms", tsq=True)
verdict: str = queue.enqueue(0.0, object(), size=100).kind
hint: int | None = cutline.translate("audio", rtt=0.3).hint
try:
    scenario.check().points[0].settings["a"].upper()
except cutline.ScenarioError as error:
    print(error.problems[0].line)
"""
WRONG_SIMULATOR = {
    "cutline.run(3)": "arg-type",
    "cutline.run('x', seeds='3')": "arg-type",
    "cutline.sim.Scenario.from_toml(3)": "arg-type",
    "cutline.open('x').flows.rows": "attr-defined",
    "cutline.open('x').summary(confidence='x')": "arg-type",
    "cutline.aqm.Pi('1 Mbit/s', qref=3)": "call-arg",
    "cutline.aqm.CoDel('1 Mbit/s', tsq=True)": "call-arg",
}


def examples():
    """The blocks of each guide and the cells of each notebook as one program, by name."""
    found = {}
    for page in ("python", "sweeps"):
        text = (REPOSITORY / f"docs/guide/{page}.md").read_text()
        found[f"guide_{page}"] = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    for path in (REPOSITORY / "docs/notebooks").glob("*.ipynb"):
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        found[f"notebook_{path.stem.replace('-', '_')}"] = "\n".join("".join(cell["source"]) for cell in cells)
    return found


def ignored(library):
    """Returns the section of mypy's settings that has it read nothing of a library."""
    return f"[mypy-{library}.*]\nfollow_imports = skip\nfollow_imports_for_stubs = True"


@functools.cache
def errors():
    """The errors that mypy finds in all programs and in the package, by the name of the file."""
    programs = {
        **examples(), "right_sockets": SOCKETS, "right_simulator": SIMULATOR,
        "wrong_sockets": "\n".join(["from cutline import socket", *WRONG_SOCKETS]),
        "wrong_simulator": "\n".join(["import cutline", *WRONG_SIMULATOR]),
    }
    # Methods of extensions are written without types in the examples; their bodies are checked.
    relaxed = ("disallow_untyped_defs", "disallow_incomplete_defs", "disallow_untyped_calls")
    # matplotlib imports IPython for its own backends.
    settings = ["[mypy]", "strict = True", ignored("IPython"), f"[mypy-{','.join(examples())}]", *(f"{name} = False" for name in relaxed)]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "mypy.ini").write_text("\n".join(settings) + "\n")
        for name, program in programs.items():
            Path(folder, f"{name}.py").write_text(program + "\n")
        words = ["--config-file", "mypy.ini", "--no-error-summary", "--no-pretty", PACKAGE]
        done = subprocess.run([sys.executable, "-m", "mypy", *words, *(f"{name}.py" for name in programs)], cwd=folder,
                              env={**os.environ, "MYPYPATH": str(PACKAGE.parent)}, capture_output=True, text=True, timeout=600)
    if done.returncode != 1:
        raise AssertionError(f"mypy ended with {done.returncode} and should find the wrong lines: {done.stdout}{done.stderr}")
    found = defaultdict(list)
    for line in done.stdout.splitlines():
        if ": error: " in line:
            found[Path(line.split(":")[0]).name].append(line)
    return found


@unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
class Mypy(unittest.TestCase):
    def test_the_package_is_strict(self):
        files = [path.name for pattern in ("*.py", "*.pyi") for path in PACKAGE.glob(pattern)]
        self.assertGreater(len(files), 15)
        self.assertEqual([line for file in files for line in errors()[file]], [])

    def test_the_examples_pass(self):
        self.assertGreater(len(examples()), 7)
        self.assertEqual([line for name in examples() for line in errors()[f"{name}.py"]], [])

    def test_right_programs_pass_strict_checks(self):
        self.assertEqual(errors()["right_sockets.py"] + errors()["right_simulator.py"], [])

    def test_wrong_programs_do_not(self):
        for name, wrong in (("wrong_sockets.py", WRONG_SOCKETS), ("wrong_simulator.py", WRONG_SIMULATOR)):
            found = "\n".join(errors()[name])
            for line, (program, kind) in enumerate(wrong.items(), 2):
                with self.subTest(program):
                    self.assertRegex(found, rf"(?m)^{name}:{line}: error: .*\[{kind}\]$")

    def test_the_types_are_those_of_the_code(self):
        # Types of other libraries, which a simulator's tables become, are not compared.
        libraries = ("polars", "pandas", "pyarrow", "xarray", "matplotlib", "numpy", "distributed", "IPython")
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "mypy.ini").write_text("\n".join(["[mypy]", *(ignored(name) for name in libraries)]))
            found = subprocess.run(
                [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", f"{folder}/mypy.ini", "cutline.socket", "cutline._aio",
                 "cutline._native"], capture_output=True, text=True, timeout=600)
        self.assertEqual(found.returncode, 0, found.stdout)


@functools.cache
def problems():
    """The errors that pyright finds in the package and in the examples, each after the name of its file without `.py`, and the number of files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, program in examples().items():
            Path(folder, f"{name}.py").write_text(program)
        # The types of the sockets are in stubs, which test_every_public_type_is_known reads.
        configuration = {"typeCheckingMode": "standard", "pythonVersion": "3.11", "reportMissingModuleSource": False,
                         "extraPaths": [str(PACKAGE.parent)], "include": [str(PACKAGE), folder],
                         "exclude": [str(PACKAGE / "socket.py"), str(PACKAGE / "_aio.py")]}
        Path(folder, "pyrightconfig.json").write_text(json.dumps(configuration))
        done = subprocess.run([sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", folder],
                              capture_output=True, text=True, timeout=600)
    found = json.loads(done.stdout)
    said = [(Path(one["file"]).stem, f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']} ({one.get('rule')})")
            for one in found["generalDiagnostics"] if one["severity"] == "error"]
    return said, found["summary"]["filesAnalyzed"]


@unittest.skipUnless(importlib.util.find_spec("basedpyright"), "basedpyright is not installed")
class Pyright(unittest.TestCase):
    """basedpyright is pyright with all that it needs in one package; the rules are those of pyright."""

    def test_the_package_passes(self):
        found, files = problems()
        self.assertEqual([problem for file, problem in found if file not in examples()], [])
        self.assertGreater(files, 15 + len(examples()))

    def test_every_public_type_is_known(self):
        done = subprocess.run([sys.executable, "-m", "basedpyright", "--verifytypes", "cutline", "--ignoreexternal", "--outputjson"],
                              capture_output=True, text=True, timeout=600, cwd=PACKAGE.parent)
        found = json.loads(done.stdout)["typeCompleteness"]
        unknown = [symbol["name"] for symbol in found["symbols"] if symbol["isExported"] and not symbol["isTypeKnown"]]
        self.assertEqual(unknown, [])
        self.assertGreater(found["exportedSymbolCounts"]["withKnownType"], 300)

    def test_the_examples_pass(self):
        self.assertGreater(len(examples()), 7)
        self.assertEqual([problem for file, problem in problems()[0] if file in examples()], [])


if __name__ == "__main__":
    unittest.main()
