"""Tables in other libraries: data sets of xarray, lazy frames, and the memory that they share."""

import math
import os
import tempfile
import unittest
from pathlib import Path

import cutline
from test_sim import InFolder, small

try:
    import numpy
    import polars
    import pyarrow
    import xarray
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed") from None


class DataSets(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        sweep = small().sweep({"flow.audio.hint": [1, 16], ("dumbbell.rate", "dumbbell.delay"): [("4 Mbit/s", "5 ms"), ("8 Mbit/s", "10 ms"),
                                                                                                 ("9 Mbit/s", "15 ms")]})
        cls.results = cutline.run(sweep, seeds=range(4, 6), results=None, progress=False)

    def test_swept_keys_seeds_and_flows_are_dimensions(self):
        data = self.results.to_xarray()
        self.assertEqual(dict(data.sizes), {"flow.audio.hint": 2, "dumbbell.rate": 3, "seed": 2, "flow": 3})
        self.assertEqual(data["flow.audio.hint"].values.tolist(), [1, 16])
        self.assertEqual(data["dumbbell.rate"].values.tolist(), ["4 Mbit/s", "8 Mbit/s", "9 Mbit/s"])
        self.assertEqual(data["dumbbell.delay"].dims, ("dumbbell.rate",))
        self.assertEqual(data["seed"].values.tolist(), [4, 5])
        self.assertEqual(data["group"].dims, ("flow",))
        self.assertEqual(set(data["group"].values), {"bulk", "audio"})
        self.assertEqual(data["goodput_bps"].attrs["units"], "bit/s")
        self.assertEqual(data.attrs["command"], self.results.command)

    def test_every_cell_is_that_of_the_table(self):
        data = self.results.to_xarray()
        for row in self.results.flows:
            keys = dict(pair.split("=") for pair in row["point"].split(","))
            place = {"flow.audio.hint": int(keys["flow.audio.hint"]), "dumbbell.rate": keys["dumbbell.rate"], "seed": row["seed"],
                     "flow": row["flow"]}
            cell = data.sel(place)
            for column in ("goodput_bps", "packets_sent", "q", "queuing_p99_ms", "retransmissions"):
                found = float(cell[column])
                self.assertTrue(found == row[column] if row[column] is not None else math.isnan(found), (place, column, found, row[column]))
        self.assertEqual(data["packets_sent"].dtype, numpy.int64)

    def test_courses_have_the_time(self):
        data = self.results.to_xarray("series")
        self.assertEqual(data.sizes["start_s"], 4)
        self.assertEqual(data["end_s"].values.tolist(), [0.5, 1.0, 1.5, 2.0])
        queues = self.results.to_xarray("queue_series")
        self.assertEqual(queues["backlog_packets"].dims, ("flow.audio.hint", "dumbbell.rate", "seed", "link", "start_s"))
        self.assertGreater(float(self.results.to_xarray("queues")["utilisation"].max()), 0.5)

    def test_missing_runs_are_nan(self):
        cutline.run("small.toml", seeds=2, progress=False)
        whole = cutline.open("results/small").to_xarray()
        self.assertEqual(dict(whole.sizes), {"seed": 2, "flow": 3})
        self.assertFalse(bool(whole["goodput_bps"].isnull().any()))

    def test_a_table_that_is_no_grid_is_refused(self):
        for table in ("distributions", "points", 3):
            with self.assertRaises(cutline.ArgumentError) as why:
                self.results.to_xarray(table)
            self.assertEqual(why.exception.parameter, "table")


class Lazy(InFolder):
    def test_a_query_reads_the_file(self):
        cutline.run("small.toml", seeds=2, progress=False)
        stored = cutline.open("results/small")
        self.assertEqual(Path(stored.flows.file), Path(os.path.abspath("results/small/flows.parquet")).relative_to(os.getcwd())
                         if not os.path.isabs(stored.flows.file) else Path(stored.flows.file))
        query = stored.flows.lazy().filter(polars.col("group") == "audio").select("seed", "q")
        self.assertEqual(query.collect().sort("seed").rows(),
                         [(row["seed"], row["q"]) for row in stored.flows if row["group"] == "audio"])
        self.assertIn("PROJECT 3", query.explain().upper())

    def test_a_lazy_table_is_not_read(self):
        cutline.run("small.toml", seeds=1, progress=False)
        stored = cutline.open("results/small")
        table = stored.series
        self.assertIsNone(table._found)
        table.lazy().collect()
        self.assertIsNone(table._found)
        self.assertEqual(len(table), table.lazy().collect().height)

    def test_tables_in_memory_are_lazy_frames_too(self):
        results = cutline.run(small(), seeds=1, results=None, progress=False)
        self.assertIsNone(results.flows.file)
        self.assertEqual(results.flows.lazy().collect().height, 3)


class Memory(unittest.TestCase):
    def test_libraries_share_the_memory_of_a_table(self):
        results = cutline.run(small(), seeds=2, results=None, progress=False)
        numbers = pyarrow.table(results.series)["goodput_bps"].chunk(0)
        frame = results.series.to_polars()
        address = frame["goodput_bps"].to_arrow().buffers()[1].address
        self.assertEqual(address, numbers.buffers()[1].address)


if __name__ == "__main__":
    unittest.main()
