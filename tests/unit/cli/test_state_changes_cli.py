#!/usr/bin/python3
"""Golden tests of state-changes (R63).

Usage: test_state_changes_cli.py STEPDOWN [unittest options]
"""

import json
import os
import random
import sys
import unittest
from pathlib import Path

from tools import FAILED, OK, USAGE, ToolCase

B1 = """[2026-11-30 10:00:00,001] TRACE Broker 1 received LeaderAndIsr for partition [a,0] (state.change.logger)
[2026-11-30 10:00:02,000] ERROR Broker 1 failed for partition [a,1] (state.change.logger)
java.lang.RuntimeException: in [a,1]
\tat somewhere
[2026-11-30 10:00:05,000] TRACE Broker 1 says nothing of a partition
[2026-11-30 10:00:06,500] TRACE Broker 1 completed partition [b-x.y_z, 7] (state.change.logger)
"""
B2 = """[2026-11-30 10:00:00,000] TRACE Broker 2 received partition [a,0] (state.change.logger)
[2026-11-30 10:00:02,000] TRACE Broker 2 received partition [a,1] (state.change.logger)
[2026-11-30 10:00:06,499] TRACE Broker 2 received partition [a,10] and not [b,0] (state.change.logger)"""


class StateChanges(ToolCase):
    def setUp(self):
        super().setUp()
        self.b1, self.b2 = self.file("b1.log", B1), self.file("b2.log", B2)

    def merge(self, *args):
        return self.run_tool("state-changes", *args)

    def logs(self, *args):
        return self.merge("--logs", f"{self.b1},{self.b2}", *args)

    def limited(self, limit, *args):
        stepdown, self.stepdown = self.stepdown, "bash"
        try:
            return self.run_tool("-c", f'{limit}; exec "$0" "$@"', stepdown, "state-changes", *args)
        finally:
            self.stepdown = stepdown

    @staticmethod
    def lines(*wanted):
        """(log, number) from 0."""
        return "".join((B1, B2)[log - 1].split("\n")[n] + "\n" for log, n in wanted)

    def test_merged_in_order_of_time(self):
        """What has no time (a stack trace) or no partition is dropped; equal times stay in the order of the files."""
        self.expect(self.logs(), OK, self.lines((2, 0), (1, 0), (1, 1), (2, 1), (2, 2), (1, 5)), "")

    def test_one_topic(self):
        """The first [topic,partition] of a line is what it is about."""
        self.expect(self.logs("--topic", "b"), OK, "", "")
        self.expect(self.logs("--topic", "b-x.y_z"), OK, self.lines((1, 5)), "")

    def test_some_partitions(self):
        self.expect(self.logs("--topic", "a", "--partitions", "1,10"), OK, self.lines((1, 1), (2, 1), (2, 2)), "")

    def test_a_span_of_time_includes_its_ends(self):
        r = self.logs("--start-time", "2026-11-30 10:00:00,001", "--end-time", "2026-11-30 10:00:06,499")
        self.expect(r, OK, self.lines((1, 0), (1, 1), (2, 1), (2, 2)), "")
        self.expect(self.logs("--start-time", "2026-11-30 10:00:06", "--end-time", "2026-11-30 10:00"), OK,
                    self.lines((2, 2), (1, 5)), "")
        self.expect(self.logs("--start-time", "2027"), OK, "", "")

    def test_files_by_a_regular_expression_on_their_whole_names(self):
        self.file("b3.log.old", B1)
        self.file("xb1.log", B1)
        r = self.merge("--logs-regex", f"{self.dir}/b[0-9].log")
        self.expect(r, OK, self.lines((2, 0), (1, 0), (1, 1), (2, 1), (2, 2), (1, 5)), "")

    def test_json_lines(self):
        r = self.logs("--json", "--topic", "b-x.y_z")
        self.expect(r, OK, err="")
        self.assertEqual([json.loads(line) for line in r.out.splitlines()], [
            {"time": "2026-11-30 10:00:06,500", "topic": "b-x.y_z", "partition": 7, "file": str(self.b1),
             "line": B1.split("\n")[5]}])

    def test_exactly_one_way_to_name_the_files(self):
        sentence = ('Provide arguments to exactly one of the two options "[logs]" or "[logs-regex]"\n'
                    "usage: stepdown state-changes ")
        for args in ((), ("--logs", "x", "--logs-regex", "y")):
            r = self.merge(*args)
            self.expect(r, USAGE, "")
            self.assertTrue(r.err.startswith(sentence), r.err)

    def test_usage(self):
        for args, piece in ((("--partitions", "1"), 'The option "[topic]" is needed when partitions are given'),
                            (("--topic", "a", "--partitions", "1,x"), "--partitions '1,x' is not of the form 0,1,2"),
                            (("--start-time", "yesterday"), "--start-time 'yesterday' is not of the form 0000-00-00 "),
                            (("--end-time", "2026-11-30T10"), "--end-time '2026-11-30T10' is not of the form 9999")):
            with self.subTest(args=args):
                self.expect(self.logs(*args), USAGE, "", [piece])
        self.expect(self.merge("--logs-regex", f"{self.dir}/b("), USAGE, "", ["--logs-regex 'b(': "])

    def test_files_that_cannot_be_read(self):
        r = self.merge("--logs", f"{self.b1},{self.dir}/none")
        self.expect(r, FAILED, "", f"stepdown state-changes: {self.dir}/none: No such file or directory\n")
        self.expect(self.merge("--logs", self.dir), FAILED, "", ["Is a directory"])
        self.expect(self.merge("--logs-regex", f"{self.dir}/z.*"), FAILED, "", ["no file in", "matches 'z.*'"])
        self.expect(self.merge("--logs-regex", f"{self.dir}/none/z.*"), FAILED, "", ["No such file or directory"])
        if os.geteuid() != 0:
            self.b2.chmod(0)
            self.expect(self.logs(), FAILED, "", ["Permission denied"])

    def test_many_files_are_as_one_that_was_sorted(self):
        """Also when they are more than a process may open unless it asks."""
        seed = int.from_bytes(os.urandom(4), "big")
        rng = random.Random(seed)
        files, everything = [], []
        for i in range(300):
            t, lines = 0, []
            for _ in range(rng.randrange(4)):
                t += rng.randrange(3_600_000)
                h, rest = divmod(t, 3_600_000)
                m, rest = divmod(rest, 60_000)
                s, ms = divmod(rest, 1000)
                lines.append(f"[2026-11-30 {h:02}:{m:02}:{s:02},{ms:03}] [t,{i}] line {len(lines)}")
            everything += [(line[1:24], i, line) for line in lines]
            files.append(self.file(f"many{i:04}", "\n".join(lines) + "\n" * rng.randrange(2)))
        r = self.limited("ulimit -Sn 100", "--logs-regex", f"{self.dir}/many[0-9]+")
        everything.sort(key=lambda e: e[:2])
        self.expect(r, OK, "".join(line + "\n" for _, _, line in everything), "")

    def test_memory_is_bounded_whatever_a_file_holds(self):
        """A line without an end is dropped, not gathered; what comes after it is found again."""
        path = self.dir / "huge.log"
        with open(path, "w") as f:
            f.write("[2026-11-30 10:00:00,000] [t,0] before\n[2026-11-30 10:00:01,000] [t,1] ")
            for _ in range(64):
                f.write("x" * (1 << 20))
            f.write(" [2026-11-30 10:00:01,500] [t,9] its end\n[2026-11-30 10:00:02,000] [t,2] after\n")
        program = Path(self.stepdown).read_bytes()
        sanitized = any(name in program for name in (b"__asan_init", b"__tsan_init"))  # their shadows need more
        r = self.limited("ulimit -n 100" if sanitized else f"ulimit -v {200 * 1024}", "--logs", path)
        self.expect(r, OK, "[2026-11-30 10:00:00,000] [t,0] before\n[2026-11-30 10:00:02,000] [t,2] after\n", "")


if __name__ == "__main__":
    ToolCase.stepdown = sys.argv[1]
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
