"""The model of one partition (partition.pml), checked by spin: what must hold holds within the bound, and with any one
guard taken away the checker finds a violation (R87, F4). And docs/correctness.md names guards, functions and tests that
exist.

The bound here keeps the run short; STEPDOWN_MODEL="RECORDS=2 EPOCHS=4 FAULTS=3" tries another one on the whole model.
"""

import concurrent.futures
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MODEL = Path(__file__).resolve().parent / "partition.pml"
DOCUMENT = ROOT / "docs" / "correctness.md"

BOUND = os.environ.get("STEPDOWN_MODEL", "RECORDS=1 EPOCHS=3 FAULTS=2").split()
SHORT = ["RECORDS=1", "EPOCHS=3", "FAULTS=2"]
# Which invariant breaks without the guard; the shortest way to it is found breadth first.
BREAKS = {
    "NO_VERSION": "I1 or I2",
    "NO_FENCE": "I1 or I2",
    "NO_ISR_FIRST": "I1",
    "NO_FETCH_EPOCH": "I1",
    "NO_STEP_DOWN": "I1 or I2",
    "NO_BROKER_EPOCH": "I1",
    "NO_EPOCH_START": "I1",
    "NO_EPOCH_CUT": "I1",
    "NO_ISR_ELECTION": "I1",
    "NO_LEASE": "I3",
}
SHALLOW = {"NO_LEASE"}  # a few steps deep: depth first it would be passed by


def check(name, defines, breadth_first=False):
    """(errors, states, the checker's words) of one run."""
    with tempfile.TemporaryDirectory(prefix="stepdown-model-") as d:
        options = [f"-D{x}" for x in defines]

        def run(*command, timeout=600):
            r = subprocess.run(command, cwd=d, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
            return r.stdout + r.stderr

        said = run("spin", "-a", *options, str(MODEL))
        if not (Path(d) / "pan.c").exists():
            raise AssertionError(f"{name}: spin does not take the model: {said}")
        memory = "-DMEMLIM=8000" if "STEPDOWN_MODEL" in os.environ else "-DMEMLIM=2000"
        said = run("gcc", "-O1", "-w", "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=2048", memory,
                   *(["-DBFS"] if breadth_first else []), "-o", "pan", "pan.c")
        if not (Path(d) / "pan").exists():
            raise AssertionError(f"{name}: gcc does not take the checker: {said}")
        said = run("./pan", "-m20000", timeout=7200)
        errors, states = re.search(r"errors: (\d+)", said), re.search(r"(\d+) states, stored", said)
        incomplete = "not completed" in said or "max search depth too small" in said  # the first also after an error
        if not errors or not states or (incomplete and errors[1] == "0"):
            raise AssertionError(f"{name}: the search did not come to its end: {said}")
        if int(errors[1]) and (Path(d) / "partition.pml.trail").exists():
            said += run("spin", "-t", *options, "-k", "partition.pml.trail", str(MODEL))
        return int(errors[1]), int(states[1]), said


@unittest.skipUnless(shutil.which("spin") and shutil.which("gcc"), "spin is not installed")
class Model(unittest.TestCase):
    def test_every_invariant_holds_and_every_guard_is_needed(self):
        runs = {"whole": (BOUND, False), "a session closed by somebody else": ([*SHORT, "KILL"], False)}
        runs.update({guard: ([*SHORT, guard], guard in SHALLOW) for guard in BREAKS})
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = {name: pool.submit(check, name, *run) for name, run in runs.items()}
        for name, result in results.items():
            with self.subTest(name):
                errors, states, said = result.result()
                print(f"model: {name}: {states} states, {errors} errors", flush=True)
                if name in BREAKS:
                    self.assertEqual(errors, 1, f"without this guard {BREAKS[name]} should break; is the model too lax?")
                    self.assertIn("assertion violated", said)
                else:
                    self.assertEqual(errors, 0, said)

    def test_the_model_and_this_file_know_the_same_guards(self):
        self.assertEqual(set(re.findall(r"#\s*(?:ifdef|if defined\() ?\(?(NO_\w+)", MODEL.read_text())), set(BREAKS))


class Document(unittest.TestCase):
    def test_what_the_document_names_exists(self):
        text = DOCUMENT.read_text()
        for guard in BREAKS:
            self.assertIn(f"`{guard}`", text)
        named = re.findall(r"`([\w./]+\.(?:c|h|py|pml|md))`((?: `\w+(?:\(\))?`)*)", text)
        self.assertGreater(len(named), 30)
        for path, names in named:
            file = ROOT / path
            self.assertTrue(file.exists(), path)
            for name in re.findall(r"`(\w+)(?:\(\))?`", names):
                self.assertRegex(file.read_text(), rf"\b{name}\b", f"{name} in {path}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
