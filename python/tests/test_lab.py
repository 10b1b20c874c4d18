"""The laboratory from Python: refused scenarios, and a run with real packets."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

import cutline
from cutline import lab
from test_sim import COMMAND, InFolder, environment, small

AS_NOBODY = """
import os, cutline
os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(cutline.lab.refusal())
try:
    cutline.lab.run(cutline.Scenario.from_toml({text!r}), progress=False)
except cutline.LaboratoryError as why:
    print(type(why).__name__, os.path.exists("results"))
"""


class Refusals(InFolder):
    def test_the_plan_is_that_of_the_command(self):
        plan = lab.check("small.toml")
        self.assertEqual((plan.name, plan.runs), ("small", 1))
        if COMMAND is None:
            self.skipTest("the command is not built: make trial")
        done = subprocess.run([COMMAND, "lab", "check", "small.toml"], capture_output=True, text=True, timeout=60)
        if done.returncode == 2 and "unrecognized" in done.stderr:
            self.skipTest("this command has no laboratory")
        self.assertEqual(done.stdout, str(plan))

    def test_features_that_the_laboratory_lacks_are_refused(self):
        with self.assertRaises(cutline.ScenarioError):
            lab.check(small().with_({"flow.bulk.hnit": 3}))
        for arguments, parameter in (({"tcp": "vegas"}, "tcp"), ({"tcp": 3}, "tcp"), ({"departure_bound": "soon"}, "departure_bound"),
                                     ({"departure_bound": "-1 ms"}, "departure_bound"), ({"programs": {"audio": ""}}, "programs"),
                                     ({"programs": 3}, "programs"), ({"jobs": 0}, "jobs"), ({"seeds": 0}, "seeds")):
            with self.subTest(arguments), self.assertRaises(cutline.ArgumentError) as why:
                lab.run("small.toml", progress=False, **arguments)
            self.assertEqual(why.exception.parameter, parameter)
        self.assertEqual(os.listdir(), ["small.toml"], "nothing is written")

    @unittest.skipUnless(os.geteuid() == 0, "only root becomes another user")
    def test_another_user_is_refused_before_anything_is_set_up(self):
        os.chmod(".", 0o777)
        done = subprocess.run([sys.executable, "-c", AS_NOBODY.format(text=Path("small.toml").read_text())], env=environment(), text=True,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        reason, refused = done.stdout.strip().splitlines()
        self.assertRegex(reason, "root")
        self.assertEqual(refused, "LaboratoryError False")


@unittest.skipIf(lab.refusal(), lab.refusal())
class RealPackets(InFolder):
    def test_a_run_has_the_tables_of_the_simulator_and_leaves_nothing(self):
        scenario = small(duration="3 s", **{"warm-up": "1 s"})
        measured = lab.run(scenario, progress=False)
        self.assertTrue(measured.complete)
        simulated = cutline.run(scenario, results=None, progress=False)
        for name in ("flows", "queues", "series", "queue_series"):
            with self.subTest(name):
                self.assertEqual(getattr(measured, name).columns, getattr(simulated, name).columns)
        self.assertEqual(measured.flows["flow"], simulated.flows["flow"])
        # 64 kbit/s in packets of 160 B, of which a busy machine may lose some.
        audio = next(row for row in measured.flows if row["group"] == "audio")
        self.assertGreater(audio["packets_received"], 0)
        self.assertEqual(len(measured.timing), 1)
        self.assertGreater(len(list(simulated.compare(measured, groups="audio", measures="goodput_bps"))), 0)
        self.assertEqual(list(cutline.open("results/lab/small").flows), list(measured.flows))
        self.assertNotIn(f"cutline-{os.getpid()}", subprocess.run(["ip", "netns"], capture_output=True, text=True).stdout)
        # Measurements are not repeated.
        with self.assertRaises(cutline.ResultsExist):
            lab.run(scenario, progress=False)


if __name__ == "__main__":
    unittest.main()
