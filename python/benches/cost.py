"""Cost of Python beside the command: runs, sweeps on this machine and on a cluster, and tables. Run it with the package installed:

    python python/benches/cost.py --cutline target/venv/bin/cutline [run] [sweep] [points] [rows] [--json FILE]

The two sides of a comparison take turns, and which is first changes each time. Times are CPU times (user and system) of whole
processes, which other work on the machine disturbs little; `elapsed` is for the machine as it was. Each line has the median of the
pairs' ratios and their quartiles. `make bench-python` runs all four.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]

# TSQ section 4.1: bulk TCP NewReno, PI, 15 Mbit/s.
FLOWS = """
name = "flows"
seeds = 5
duration = "500 s"
warm-up = "20 s"
[dumbbell]
rate = "15 Mbit/s"
delay = "50 ms"
access-rate = "50 Mbit/s"
access-delay = "50 ms"
queue = { aqm = "pi", limit = "800 packets", a = 1.822e-5, b = 1.816e-5, frequency = "170 Hz", q-ref = "200 packets" }
[[flow]]
name = "bulk"
count = 100
class = "file-transfer"
file-size = "1 MB"
transport = { protocol = "tcp" }
app = { kind = "bulk" }
"""
# Next to nothing is simulated, so that only the rest of the cost is measured.
POINT = """
name = "point"
duration = "20 ms"
warm-up = "0 s"
interval = "10 ms"
[dumbbell]
rate = "10 Mbit/s"
delay = "1 ms"
access-rate = "100 Mbit/s"
access-delay = "1 ms"
queue = { aqm = "drop-tail", limit = "100 packets" }
[[flow]]
name = "one"
class = "none"
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }
"""
# A hundred flows in ten thousand intervals.
ROWS = """
name = "rows"
seeds = 1
duration = "1000 s"
warm-up = "0 s"
interval = "100 ms"
[dumbbell]
rate = "10 Mbit/s"
delay = "1 ms"
access-rate = "100 Mbit/s"
access-delay = "1 ms"
queue = { aqm = "drop-tail", limit = "100 packets" }
[[flow]]
name = "one"
count = 100
class = "none"
series = true
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "16 kbit/s", size = "200 B" }
"""


def process(command, folder):
    """Runs a command in a folder. Returns its CPU time, its elapsed time, and its output."""
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        child = subprocess.Popen(command, stdout=output, cwd=folder)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit(f"{command} ended with {child.returncode}")
        elapsed = time.perf_counter() - began
        output.seek(0)
        return usage.ru_utime + usage.ru_stime, elapsed, output.read()


def quartiles(values):
    """Returns the quartiles."""
    return statistics.quantiles(values, n=4, method="inclusive")


def beside(what, command, scenario, jobs, repetitions):
    """Compares `cutline.run` with the command: both store the results."""
    call = ("import time, cutline; began = time.process_time(); "
            f"cutline.run({str(scenario)!r}, jobs={jobs}, force=True, progress=False); print(time.process_time() - began)")
    python = [sys.executable, "-c", call]
    ours = [command, "run", str(scenario), "--jobs", str(jobs), "--force", "--quiet"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(repetitions):
            found = {}
            for side in ("command", "python") if turn % 2 else ("python", "command"):
                found[side] = process(python if side == "python" else ours, folder)
            rows.append((found["command"][0], found["python"][0], float(found["python"][2]), found["command"][1], found["python"][1]))
    cpu, whole, inside, elapsed, elapsed_python = zip(*rows)
    result = {
        "pairs": repetitions, "command_cpu_s": statistics.median(cpu), "call_cpu_s": statistics.median(inside),
        "process_cpu_s": statistics.median(whole), "command_elapsed_s": statistics.median(elapsed), "process_elapsed_s": statistics.median(elapsed_python),
        "call_ratio": quartiles([one / other for one, other in zip(inside, cpu)]),
        "process_ratio": quartiles([one / other for one, other in zip(whole, cpu)]),
        "elapsed_ratio": quartiles([one / other for one, other in zip(elapsed_python, elapsed)]),
    }
    low, middle, high = result["call_ratio"]
    print(f"{what}: command {result['command_cpu_s']:.2f} s CPU, cutline.run {result['call_cpu_s']:.2f} s: ratio {middle:.3f} ({low:.3f} to {high:.3f})")
    low, middle, high = result["process_ratio"]
    print(f"{what}: with the start of Python {result['process_cpu_s']:.2f} s: ratio {middle:.3f} ({low:.3f} to {high:.3f})", flush=True)
    return result


def points(count):
    """Measures the time of a point that simulates next to nothing, as `run` and as `sweep` on this machine and on a cluster."""
    import cutline

    scenario = cutline.Scenario.from_toml(POINT)
    grid = {"flow.one.start": [f"{number} us" for number in range(count)]}
    found = {}

    def report(what, call):
        began, cpu = time.perf_counter(), time.process_time()
        call()
        elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu
        found[what] = {"points": count, "elapsed_us": elapsed / count * 1e6, "cpu_us": cpu / count * 1e6}
        print(f"{count} points, {what}: {elapsed / count * 1e6:.0f} us a point, {cpu / count * 1e6:.0f} us CPU of this process", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        report("run", lambda: cutline.run(scenario.sweep(grid), results=f"{folder}/run", progress=False))
        report("sweep on this machine", lambda: cutline.sweep(scenario, grid, results=f"{folder}/local", progress=False))
        report("the same call again", lambda: cutline.sweep(scenario, grid, results=f"{folder}/local", progress=False))
        from distributed import Client, LocalCluster

        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            report("sweep on two worker processes", lambda: cutline.sweep(scenario, grid, client=client, results=f"{folder}/cluster", progress=False))
        here, there = (cutline.open_sweep(f"{folder}/{name}/sweeps/point").flows.to_polars() for name in ("local", "cluster"))
        if not here.equals(there) or here.height != count:
            sys.exit("the sweeps have other rows")
    return found


def resident():
    """Returns the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def rows():
    """Measures the cost of passing a table of a million rows to polars."""
    import cutline
    import polars
    import pyarrow

    with tempfile.TemporaryDirectory() as folder:
        cutline.run(cutline.Scenario.from_toml(ROWS), results=folder, progress=False)
        table = cutline.open(f"{folder}/rows").series
        before = resident()
        began = time.perf_counter()
        height = len(table)
        read, loaded = time.perf_counter() - began, resident()
        times = []
        for _ in range(21):
            began = time.perf_counter()
            frame = table.to_polars()
            times.append(time.perf_counter() - began)
        grown = resident() - loaded
        # The buffers of every column of numbers have the same addresses on both sides.
        arrow = pyarrow.table(table)
        shared = 0
        for name in arrow.column_names:
            column = arrow[name]
            if not pyarrow.types.is_primitive(column.type):
                continue
            # A series of several chunks is joined by to_arrow, so each chunk is asked.
            chunks = [chunk.to_arrow() for chunk in frame[name].get_chunks()]
            same = [one.buffers()[1].address for one in column.chunks] == [one.buffers()[1].address for one in chunks]
            if not same:
                sys.exit(f"{name} was copied")
            shared += 1
        low, middle, high = quartiles(times)
        result = {"rows": height, "columns": len(frame.columns), "shared_columns": shared, "read_s": read, "read_bytes": loaded - before, "table_bytes": arrow.nbytes,
                  "to_polars_s": [low, middle, high], "to_polars_bytes": grown, "polars": polars.__version__}
    print(f"{height} rows of {result['columns']} columns: read and checked in {read:.2f} s, {result['table_bytes'] / 1e6:.0f} MB")
    print(f"to_polars: {middle * 1e3:.2f} ms ({low * 1e3:.2f} to {high * 1e3:.2f}), {grown / 1e6:.1f} MB more after 21 frames; {shared} columns of numbers at the same address")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["run", "sweep", "points", "rows"], help="run, sweep, points, rows; all by default")
    parser.add_argument("--cutline", default="cutline", help="the command (default: %(default)s)")
    parser.add_argument("--repetitions", type=int, default=11, help="pairs of each comparison (default: %(default)s)")
    parser.add_argument("--points", type=int, default=10_000, help="(default: %(default)s)")
    parser.add_argument("--json", help="a file for the numbers")
    options = parser.parse_args()
    command = os.path.abspath(options.cutline) if os.sep in options.cutline else options.cutline
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder, "flows.toml")
        scenario.write_text(FLOWS)
        for what in options.what:
            if what == "run":
                found[what] = beside("100 flows", command, scenario, 1, options.repetitions)
            elif what == "sweep":
                found[what] = beside("TSQ sweep", command, ROOT / "experiments/tsq/audio.toml", 2, max(options.repetitions // 2, 3))
            elif what == "points":
                found[what] = points(options.points)
            elif what == "rows":
                found[what] = rows()
            else:
                parser.error(f"{what}: expected run, sweep, points or rows")
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
