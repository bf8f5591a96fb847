"""Run every check of the tree and count what passed and what failed.

A check is a stage below: its output goes to build/check/STAGE.log, one line about it to the terminal, and the end of
the log is shown when it failed. The last line is "N passed, N failed".
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LOGS = ROOT / "build" / "check"
SETUP = str(ROOT / "tests" / "support" / "setup")
PYTHON = "/usr/bin/python3"


SANITIZED = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    # ZooKeeper's client forgets the completions that were waiting at its close (ZOOKEEPER-3868).
    "LSAN_OPTIONS": f"suppressions={ROOT}/tests/support/lsan.supp:print_suppressions=0",
    "TSAN_OPTIONS": f"suppressions={ROOT}/tests/support/tsan.supp:exitcode=66",
}


class Count:
    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def __iadd__(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        return self

    def __str__(self):
        text = f"{self.passed} passed, {self.failed} failed"
        return text + (f", {self.skipped} skipped" if self.skipped else "")


def run(stage, command, env=None, timeout=1800):
    """Exit status of @command; its output is in the stage's log."""
    with open(LOGS / f"{stage}.log", "ab") as log:
        try:
            return subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env={**os.environ, **(env or {})},
                timeout=timeout,
            ).returncode
        except subprocess.TimeoutExpired:
            log.write(f"\ncheck: ended after {timeout} s\n".encode())
            return 124


def log_of(stage):
    return (LOGS / f"{stage}.log").read_text(errors="replace")


def status_as_count(status):
    return Count(1, 0) if status == 0 else Count(0, 1)


def builder(directory, *options, cc="gcc"):
    def stage(name):
        return status_as_count(run(name, [SETUP, "build", directory, *options], {"CC": cc}))

    return stage


def count_cmocka(output):
    passed = sum(int(n) for n in re.findall(r"^\[  PASSED  \] (\d+) test\(s\)", output, re.M))
    failed = sum(int(n) for n in re.findall(r"^\[  FAILED  \] (\d+) test\(s\)", output, re.M))
    skipped = sum(int(n) for n in re.findall(r"^\[  SKIPPED \] (\d+) test\(s\)", output, re.M))
    return Count(passed, failed, skipped)


def meson_tests(directory, *suites):
    """Unit tests, counted as cmocka counts them; a program that died counts as one failure."""

    def stage(name):
        command = ["meson", "test", "-C", directory, "--no-rebuild", "--print-errorlogs", "--num-processes", "1", "--timeout-multiplier", "4"]
        for suite in suites:
            command += ["--suite", suite]
        results = ROOT / directory / "meson-logs" / "testlog.json"
        results.unlink(missing_ok=True)
        run(name, command, SANITIZED)
        total = Count()
        try:
            lines = results.read_text(encoding="utf-8").splitlines()
        except OSError:
            return Count(0, 1)
        for text in lines:
            test = json.loads(text)
            c = count_cmocka(test.get("stdout", "") + test.get("stderr", ""))
            if test["result"] == "SKIP":
                c = Count(0, 0, 1)
            elif test["result"] in ("OK", "EXPECTEDFAIL"):
                c.passed = max(c.passed, 1)
            else:
                c.failed = max(c.failed, 1)
            total += c
        return total

    return stage


def python_tests(folder, build, pattern="test_*.py", env=None):
    """unittest files of @folder against the programs of @build."""

    def stage(name):
        status = run(
            name,
            [PYTHON, "-m", "unittest", "discover", "-v", "-s", f"tests/{folder}", "-p", pattern],
            {"STEPDOWN_BUILD": str(ROOT / build), "PYTHONPATH": str(ROOT / "tests" / "support"),
             "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
        )
        output = log_of(name)
        ran = re.findall(r"^Ran (\d+) tests? in", output, re.M)
        verdict = dict(re.findall(r"(failures|errors|skipped|expected failures|unexpected successes)=(\d+)", output))
        failed = int(verdict.get("failures", 0)) + int(verdict.get("errors", 0)) + int(verdict.get("unexpected successes", 0))
        skipped = int(verdict.get("skipped", 0))
        if not ran or (status != 0 and failed == 0):
            failed = max(failed, 1)
        for why in sorted(set(re.findall(r"skipped ['\"](.*)['\"]$", output, re.M))):
            print(f"{name:<13} skipped: {why}", flush=True)
        return Count(max(sum(map(int, ran)) - failed - skipped, 0), failed, skipped)

    return stage


STAGES = [
    ("build-gcc", "compile with gcc", builder("build", "-Doptimization=2")),
    ("build-clang", "compile with clang", builder("build-clang", cc="clang")),
    ("build-asan", "compile with ASan and UBSan", builder("build-asan", "-Db_sanitize=address,undefined")),
    ("build-tsan", "compile with TSan", builder("build-tsan", "-Db_sanitize=thread", "-Doptimization=1", cc="clang")),
    ("lint", "lint, formats, units, scripts", meson_tests("build", "lint")),
    ("unit", "unit tests", meson_tests("build", "unit")),
    ("unit-asan", "unit tests and fuzz corpora under ASan and UBSan", meson_tests("build-asan", "unit", "fuzz")),
    ("unit-tsan", "unit tests under TSan", meson_tests("build-tsan", "unit")),
    ("model", "the model of a partition, whole and without each guard", python_tests("model", "build")),
    ("cluster", "clusters of real processes", python_tests("cluster", "build")),
    (
        "cluster-asan",
        "a cluster under ASan and UBSan",
        python_tests("cluster", "build-asan", "test_basics.py", SANITIZED),
    ),
    (
        "cluster-tsan",
        "a cluster under TSan",
        python_tests("cluster", "build-tsan", "test_drain.py",
                     {**SANITIZED, "STEPDOWN_LOADGEN": str(ROOT / "build" / "tests" / "support" / "loadgen")}),
    ),
    ("systemd", "real systemd", python_tests("systemd", "build")),
    ("hostile", "floods of clients and foreign znodes", python_tests("hostile", "build")),
    ("peers", "Apache Kafka 3.9 in one cluster with ours", python_tests("peers", "build")),
]
# Run only when named: they need Apache Kafka's jars, which cannot be had everywhere (tests/support/fetch_kafka).
ON_REQUEST = {"peers"}


def main():
    p = argparse.ArgumentParser(prog="./check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("stage", nargs="*", help="only these stages: " + ", ".join(s[0] for s in STAGES))
    o = p.parse_args()
    unknown = set(o.stage) - {s[0] for s in STAGES}
    if unknown:
        p.error("no such stage: " + ", ".join(sorted(unknown)))
    LOGS.mkdir(parents=True, exist_ok=True)
    total = Count()
    for name, title, stage in STAGES:
        if name not in o.stage if o.stage else name in ON_REQUEST:
            continue
        (LOGS / f"{name}.log").write_bytes(b"")
        print(f"{name:<13} {title} …", flush=True)
        start = time.monotonic()
        c = stage(name)
        total += c
        print(f"{name:<13} {c} in {time.monotonic() - start:.0f} s", flush=True)
        if c.failed:
            print("\n".join("    " + text for text in log_of(name).splitlines()[-80:]), flush=True)
            if name.startswith("build"):
                break
    print(total if not total.skipped else f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed or not total.passed + total.skipped else 0


sys.exit(main())
