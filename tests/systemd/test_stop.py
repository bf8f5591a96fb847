"""Stops of brokers by a real systemd, on three booted hosts."""

import re
import shutil
import tempfile
import threading
import time
import unittest
from pathlib import Path

import cluster as c
from host_cluster import HOSTS, HostsCluster, run


@unittest.skipIf(run(HOSTS, "check", check=False).returncode, "no test hosts can be booted here")
class HostsCase(unittest.TestCase):
    """Three hosts for a class of tests; each test begins with all in sync."""

    @classmethod
    def setUpClass(cls):
        cls.dir = Path(tempfile.mkdtemp(prefix="stepdown-test-"))
        cls.cluster = HostsCluster(cls.dir, c.find_build(), 3)
        try:
            cls.cluster.up()
            cls.create("first", 12)
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.cluster.down()
        shutil.rmtree(cls.dir, ignore_errors=True)

    @classmethod
    def create(cls, topic, partitions):
        run(
            *(cls.cluster.build / "broker" / "cli" / "stepdown", "topics", "create", "--topic", topic),
            *("--partitions", partitions, "--replication-factor", 3, "--bootstrap", cls.cluster.bootstrap),
        )

    def setUp(self):
        for i in self.cluster.ids:
            self.cluster.exec(i, "rm", "-rf", "/run/systemd/system/stepdown-broker.service.d")
            self.cluster.exec(i, "systemctl", "daemon-reload")
            self.cluster.exec(i, "systemctl", "reset-failed", "stepdown-broker", check=False)
            self.cluster.exec(i, "systemctl", "start", "stepdown-broker", "stepdown-sidecar")
        self.wait_in_sync()

    def wait_in_sync(self):
        def settled():
            v = self.cluster.get("/v1/cluster")
            return v and len(v["brokers"]) == 3 and not v["under_replicated"] and not v["offline"]

        c.wait_for("all is in sync", settled, 60, 0.1)

    def leaders(self, i):
        v = self.cluster.get("/v1/cluster")
        return next((b["leaders"] for b in v["brokers"] if b["id"] == i), None) if v else None

    def show(self, i, prop, unit="stepdown-broker"):
        return self.cluster.exec(i, "systemctl", "show", "-P", prop, unit).stdout.strip()

    def in_background(self, *args):
        t = threading.Thread(target=lambda: self.cluster.exec(*args, check=False))
        t.start()
        self.addCleanup(self.end_background, args[0], t)
        return t

    def end_background(self, i, t):
        """A test that failed must not leave a stop that waits for its deadline."""
        if t.is_alive():
            self.cluster.exec(i, "systemctl", "kill", "--kill-who=control", "stepdown-broker", check=False)
        t.join()

    def drop_in(self, i, text):
        self.cluster.exec(i, "mkdir", "-p", "/run/systemd/system/stepdown-broker.service.d")
        self.cluster.exec(i, "sh", "-c", f"printf '%s' '{text}' > /run/systemd/system/stepdown-broker.service.d/test.conf")
        self.cluster.exec(i, "systemctl", "daemon-reload")

    def kill_and_keep_down(self, i):
        """SIGKILL without the restart that Restart=on-failure would bring."""
        self.cluster.exec(i, "systemctl", "kill", "--signal=KILL", "--kill-who=main", "stepdown-broker")
        self.cluster.exec(i, "systemctl", "stop", "stepdown-broker", check=False)

    def alone(self):
        """Broker 1 is the only one in sync: its drain cannot end."""
        for i in (2, 3):
            self.kill_and_keep_down(i)
        c.wait_for(
            "broker 1 is the only one",
            lambda: (p := self.cluster.get("/v1/partitions", prefer=1)) and all(x["isr"] == [1] for x in p["partition_list"]),
            90,
            0.2,
        )

    def bring_back(self, *ids):
        for i in ids:
            self.cluster.exec(i, "systemctl", "reset-failed", "stepdown-broker", check=False)
            self.cluster.exec(i, "systemctl", "start", "stepdown-broker")

    def draining(self, i):
        return c.wait_for(
            "the stop drains",
            lambda: (s := self.cluster.state(i)) and s[0] == "deactivating (stop)" and "leader partition" in s[1] and s,
            20,
            0.1,
        )

    def rewrite(self, i, name, text):
        """Another text of a file in /etc/stepdown, for this test."""
        path = self.cluster.root(i) / "etc" / "stepdown" / name
        before = path.read_text()
        self.addCleanup(path.write_text, before)
        path.write_text(text(before))


class Stops(HostsCase):
    def test_a_stop_drains_first_and_succeeds(self):
        self.create("second", 3)  # leaders for all, whatever the tests before have left
        c.wait_for("broker 1 leads", lambda: self.leaders(1), 20, 0.1)
        self.assertGreater(self.leaders(1), 0)
        self.cluster.exec(1, "systemctl", "stop", "stepdown-broker")
        self.assertEqual(self.show(1, "Result"), "success")
        self.assertEqual(self.show(1, "ActiveState"), "inactive")
        last = self.cluster.result(1)
        self.assertEqual((last["verdict"], last["remaining"]), ("drained", 0), last)
        v = self.cluster.get("/v1/cluster")
        self.assertEqual(v["offline"], 0)

    def test_a_restart_comes_back_in_sync(self):
        self.cluster.exec(2, "systemctl", "restart", "stepdown-broker")
        self.assertEqual(self.cluster.result(2)["verdict"], "drained")
        self.wait_in_sync()

    def test_a_drain_of_thirty_seconds_outlives_timeout_stop_sec_of_five(self):
        """The status shows how many leaders are left all the while; it ends by itself when a replica is back."""
        self.drop_in(1, "[Service]\nTimeoutStopSec=5\n")
        for i in (2, 3):
            self.kill_and_keep_down(i)
        c.wait_for(
            "broker 1 is the only one",
            lambda: (p := self.cluster.get("/v1/partitions", prefer=1)) and all(x["isr"] == [1] for x in p["partition_list"]),
            90,
            0.2,
        )
        start = time.monotonic()
        stop = self.in_background(1, "systemctl", "stop", "stepdown-broker")
        status = c.wait_for(
            "the unit's status shows the leaders that are left",
            lambda: (s := self.cluster.state(1)) and re.search(r"\b[1-9]\d* leader partitions? (left|remain)", s[1]) and s,
            20,
            0.1,
        )
        self.assertEqual(status[0], "deactivating (stop)")
        full = self.cluster.exec(1, "systemctl", "status", "stepdown-broker", check=False).stdout
        self.assertRegex(full, r"Active: deactivating \(stop\)")
        self.assertRegex(full, r"Status: \".*[1-9]\d* leader partition")
        while time.monotonic() - start < 30:  # what is tested is that the time passes and nobody ends it
            self.assertTrue(stop.is_alive(), "the stop ended early")
            self.assertEqual(self.cluster.state(1)[0], "deactivating (stop)")
            time.sleep(0.5)
        for i in (2, 3):
            self.cluster.exec(i, "systemctl", "reset-failed", "stepdown-broker", check=False)
            self.cluster.exec(i, "systemctl", "start", "stepdown-broker")
        stop.join(90)
        self.assertFalse(stop.is_alive())
        self.assertEqual(self.show(1, "Result"), "success")
        self.assertEqual(self.cluster.result(1)["verdict"], "drained")

    def test_an_incomplete_drain_is_visible_and_the_broker_stops_well(self):
        for i in (2, 3):
            self.kill_and_keep_down(i)
        c.wait_for(
            "broker 1 is the only one",
            lambda: (p := self.cluster.get("/v1/partitions", prefer=1)) and all(x["isr"] == [1] for x in p["partition_list"]),
            90,
            0.2,
        )
        self.drop_in(1, "[Service]\nExecStop=\nExecStop=/usr/bin/stepdown drain --wait --deadline=4s\n")
        self.cluster.exec(1, "systemctl", "stop", "stepdown-broker")
        self.assertEqual(self.show(1, "Result"), "exit-code")
        last = self.cluster.result(1)
        self.assertEqual(last["verdict"], "incomplete", last)
        self.assertGreater(last["remaining"], 0)
        journal = self.cluster.exec(1, "journalctl", "-u", "stepdown-broker", "-o", "cat", "--no-pager").stdout
        self.assertNotIn("status=9/KILL", journal.splitlines()[-1])
        for i in (1, 2, 3):
            self.cluster.exec(i, "systemctl", "reset-failed", "stepdown-broker", check=False)

    def test_a_dead_sidecar_does_not_keep_a_broker_from_draining(self):
        self.cluster.exec(3, "systemctl", "stop", "stepdown-sidecar")
        self.cluster.exec(3, "systemctl", "mask", "--runtime", "stepdown-sidecar")
        self.addCleanup(lambda: self.cluster.exec(3, "systemctl", "unmask", "--runtime", "stepdown-sidecar"))
        self.cluster.exec(3, "systemctl", "stop", "stepdown-broker")
        self.assertEqual(self.show(3, "Result"), "success")
        self.assertEqual(self.cluster.result(3)["verdict"], "drained")

    def test_a_stop_that_skips_execstop_hands_over_in_the_broker(self):
        """systemctl kill sends SIGTERM without ExecStop=: the broker's own handler drains."""
        self.cluster.exec(2, "systemctl", "kill", "--kill-who=main", "--signal=TERM", "stepdown-broker")
        c.wait_for("it has ended", lambda: self.show(2, "MainPID") == "0", 60, 0.1)
        journal = self.cluster.exec(2, "journalctl", "-u", "stepdown-broker", "-o", "cat", "--no-pager").stdout
        self.assertIn("Shutdown status: complete", journal)

    # --- the failure matrix ---

    def test_sighup_ends_neither_program(self):
        for unit in ("stepdown-broker", "stepdown-sidecar"):
            pid = self.show(1, "MainPID", unit)
            self.cluster.exec(1, "systemctl", "kill", "--kill-who=main", "--signal=HUP", unit)
            journal = lambda u=unit: self.cluster.exec(1, "journalctl", "-u", u, "-o", "cat", "--no-pager").stdout
            c.wait_for(f"{unit} says so", lambda: "can be reloaded" in journal(), 10, 0.1)
            self.assertEqual((self.show(1, "MainPID", unit), self.show(1, "ActiveState", unit)), (pid, "active"))

    def test_a_wrong_configuration_is_said_once_and_not_started_again(self):
        self.cluster.exec(1, "systemctl", "stop", "stepdown-broker")
        for name, unit, status in (("broker.yaml", "stepdown-broker", "64"), ("sidecar.yaml", "stepdown-sidecar", "78")):
            self.cluster.exec(1, "systemctl", "stop", unit)  # the broker's start wants the sidecar
            self.rewrite(1, name, lambda before: before + "no.such.key: 1\n")
            self.cluster.exec(1, "systemctl", "start", unit, check=False)
            c.wait_for(f"{unit} has failed", lambda u=unit: self.show(1, "ActiveState", u) == "failed", 20, 0.1)
            self.assertEqual((self.show(1, "ExecMainStatus", unit), self.show(1, "NRestarts", unit)), (status, "0"))
            said = self.cluster.exec(1, "journalctl", "-u", unit, "-n", "20", "-o", "cat", "--no-pager").stdout
            self.assertRegex(said, r"/etc/stepdown/\S+:\d+: unknown key 'no.such.key'")
            self.cluster.exec(1, "systemctl", "reset-failed", unit)

    def test_a_stop_whose_drain_cannot_be_configured_hands_over_and_says_so(self):
        self.rewrite(2, "sidecar.yaml", lambda before: before + "drain.deadline: soon\n")
        self.cluster.exec(2, "systemctl", "stop", "stepdown-broker")
        last = self.cluster.result(2)
        self.assertEqual((last["verdict"], last["why"]), ("none", "configuration"), last)
        journal = self.cluster.exec(2, "journalctl", "-u", "stepdown-broker", "-n", "40", "-o", "cat", "--no-pager").stdout
        self.assertIn("Shutdown status: complete", journal)

    def test_a_stop_while_starting_is_prompt(self):
        """In `start` there is no ExecStop=: SIGTERM comes at once, while the broker waits for ZooKeeper."""
        self.cluster.exec(3, "systemctl", "stop", "stepdown-broker")
        self.rewrite(3, "broker.yaml", lambda before: re.sub(r"(?m)^zookeeper.connect: .*$", "zookeeper.connect: 10.77.0.1:1", before))
        self.cluster.exec(3, "systemctl", "start", "--no-block", "stepdown-broker")
        c.wait_for("it starts", lambda: self.cluster.state(3) == ("activating (start)", "Connecting to ZooKeeper"), 20, 0.1)
        start = time.monotonic()
        self.cluster.exec(3, "systemctl", "stop", "stepdown-broker")
        self.assertLess(time.monotonic() - start, 10)
        self.assertEqual(self.show(3, "ActiveState"), "inactive")
        self.assertEqual(self.cluster.result(3)["verdict"], "none")

    def test_a_sidecar_killed_in_the_middle_of_a_drain_changes_nothing(self):
        self.alone()
        stop = self.in_background(1, "systemctl", "stop", "stepdown-broker")
        self.draining(1)
        before = self.show(1, "MainPID", "stepdown-sidecar")
        self.cluster.exec(1, "systemctl", "kill", "--kill-who=main", "--signal=KILL", "stepdown-sidecar")
        c.wait_for(
            "there is another sidecar",
            lambda: self.show(1, "ActiveState", "stepdown-sidecar") == "active" and self.show(1, "MainPID", "stepdown-sidecar") not in ("0", before),
            20,
            0.1,
        )
        self.draining(1)
        self.bring_back(2, 3)
        stop.join(90)
        self.assertFalse(stop.is_alive())
        self.assertEqual(self.show(1, "Result"), "success")
        self.assertEqual(self.cluster.result(1)["verdict"], "drained")

    def test_a_broker_killed_in_the_middle_of_a_drain_ends_the_stop(self):
        self.alone()
        stop = self.in_background(1, "systemctl", "stop", "stepdown-broker")
        self.draining(1)
        self.cluster.exec(1, "systemctl", "kill", "--kill-who=main", "--signal=KILL", "stepdown-broker")
        stop.join(20)
        self.assertFalse(stop.is_alive())
        self.assertEqual(self.show(1, "Result"), "signal")
        self.assertEqual(self.cluster.result(1)["verdict"], "broker-gone")
        self.bring_back(1, 2, 3)

    def test_an_impatient_operator_skips_the_drain_and_the_broker_still_stops_well(self):
        self.alone()
        stop = self.in_background(1, "systemctl", "stop", "stepdown-broker")
        self.draining(1)
        second = self.in_background(1, "systemctl", "stop", "stepdown-broker")  # joins; no second ExecStop=
        self.cluster.exec(1, "systemctl", "kill", "--kill-who=control", "--signal=HUP", "stepdown-broker")
        self.draining(1)
        self.cluster.exec(1, "systemctl", "kill", "--kill-who=control", "stepdown-broker")
        stop.join(60)
        second.join(10)
        self.assertFalse(stop.is_alive() or second.is_alive())
        last = self.cluster.result(1)
        self.assertEqual((last["verdict"], last["why"]), ("skipped", "terminated"), last)
        self.assertGreater(last["remaining"], 0)
        journal = self.cluster.exec(1, "journalctl", "-u", "stepdown-broker", "-n", "60", "-o", "cat", "--no-pager").stdout
        self.assertIn("Shutdown status: incomplete", journal)
        self.assertNotIn("status=9/KILL", journal)
        self.bring_back(1, 2, 3)

    def test_the_units_are_verified(self):
        for unit in ("stepdown-broker.service", "stepdown-sidecar.service"):
            r = self.cluster.exec(1, "systemd-analyze", "verify", unit, check=False)
            self.assertEqual((r.returncode, r.stdout + r.stderr), (0, ""))
            text = self.cluster.exec(1, "systemctl", "cat", unit).stdout
            self.assertNotRegex(text, r"(?m)^(After|Before)=.*stepdown-", "ordering between the two units deadlocks")


class Shutdown(HostsCase):
    def test_a_host_that_is_shut_down_drains_its_broker_first(self):
        """The network outlives the drain, and TimeoutStopSec= does not end it; a sidecar that stops as well waits for it."""
        self.drop_in(1, "[Service]\nTimeoutStopSec=5\n")
        self.alone()
        self.in_background(1, "systemctl", "poweroff")
        self.draining(1)
        start = time.monotonic()
        while time.monotonic() - start < 12:  # what is tested is that nobody ends it meanwhile
            self.assertEqual(self.cluster.state(1)[0], "deactivating (stop)")
            time.sleep(0.5)
        self.bring_back(2, 3)
        c.wait_for("the host is off", lambda: self.cluster.exec(1, "true", check=False).returncode != 0, 60, 0.2)
        last = self.cluster.result(1)
        self.assertEqual((last["verdict"], last["service_result"]), ("drained", "success"), last)


if __name__ == "__main__":
    unittest.main()
