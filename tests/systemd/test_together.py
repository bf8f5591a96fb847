"""Several hosts stopped at once: one drain at a time (D3), and none at all when everybody stops (D8)."""

import re
import time
import unittest

import cluster as c
from test_stop import HostsCase


class Together(HostsCase):
    def active(self, i):
        return self.show(i, "ActiveState")

    def test_of_two_stopped_in_the_same_second_one_waits_for_the_other_to_be_back(self):
        stops = {i: self.in_background(i, "systemctl", "stop", "stepdown-broker") for i in (1, 2)}
        first = c.wait_for(
            "one of them has stopped", lambda: next((i for i in (1, 2) if self.active(i) in ("inactive", "failed")), None), 60, 0.1
        )
        second = 3 - first
        self.assertEqual(self.cluster.result(first)["verdict"], "drained")
        status = c.wait_for(
            "the other says for whom it waits",
            lambda: (s := self.cluster.state(second)) and s[0] == "deactivating (stop)" and f"broker {first}" in s[1] and s[1],
            30,
            0.1,
        )
        self.assertIn("Waiting for the drain slot", status)
        self.assertRegex(status, r"\d\d:\d\d|\d+ ?(s|min)", "until when it is held")
        # Never two replicas of one partition down: while the first is away the second serves what it leads.
        parts = self.cluster.get("/v1/partitions", prefer=3)["partition_list"]
        self.assertTrue(all(not p["offline"] and second in p["isr"] and 3 in p["isr"] for p in parts), parts)

        self.cluster.exec(first, "systemctl", "start", "stepdown-broker")
        stops[second].join(90)
        self.assertFalse(stops[second].is_alive())
        self.assertEqual(self.cluster.result(second)["verdict"], "drained")
        parts = self.cluster.get("/v1/partitions", prefer=3)["partition_list"]
        self.assertTrue(all(first in p["isr"] and not p["offline"] for p in parts), "it was back in sync before")

    def test_all_stopped_at_once_end_within_one_budget_and_recover_nothing(self):
        began = time.monotonic()
        stops = [self.in_background(i, "systemctl", "stop", "stepdown-broker") for i in self.cluster.ids]
        for stop in stops:
            stop.join(60)
            self.assertFalse(stop.is_alive())
        # One drain's own budget is minutes; three in turn, each until the one before is back, would never end.
        self.assertLess(time.monotonic() - began, 45)
        for i in self.cluster.ids:
            self.assertEqual(self.active(i), "inactive")
            self.assertEqual(self.show(i, "Result"), "success")
        for i in self.cluster.ids:
            self.cluster.exec(i, "systemctl", "start", "--no-block", "stepdown-broker")
        self.wait_in_sync()
        for i in self.cluster.ids:
            journal = self.cluster.exec(i, "journalctl", "-u", "stepdown-broker", "-o", "json", "--no-pager", "EVENT=logs-loaded").stdout
            last = journal.strip().splitlines()[-1]
            self.assertEqual(re.search(r'"CLEAN"\s*:\s*"(\w+)"', last).group(1), "yes", last)


if __name__ == "__main__":
    unittest.main()
