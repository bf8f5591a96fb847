"""The drain slot on real processes: one broker at a time, the others wait and say for whom (D3); the gate (D4); all at once (D8)."""

import json
import os
import signal
import subprocess
import threading
import time
import unittest

import cluster as c
from harness import ClusterCase, Load
from zk_client import ZooKeeperClient

# SIGTERM waits for the slot as long as all attempts and pauses together may take.
CONFIG = {
    "zookeeper.session.timeout.ms": 3000,
    "replica.lag.time.max.ms": 3000,
    "controlled.shutdown.max.retries": 40,
    "controlled.shutdown.retry.backoff.ms": 1000,
}


class Sampler(threading.Thread):
    """Looks at every partition all the time: never two replicas of one out of the ISR, and always a leader in it."""

    def __init__(self, cluster, topic):
        super().__init__(daemon=True)
        self.cluster, self.topic = cluster, topic
        self.samples, self.bad, self.over = 0, [], False

    def run(self):
        while not self.over:
            try:
                parts = self.cluster.partitions(self.topic)
            except (OSError, ValueError, TypeError, AssertionError):
                continue  # brokers come and go; the next one answers
            self.samples += 1
            for p in parts or []:
                if len(p["isr"]) < 2 or (p["leader"] >= 0 and p["leader"] not in p["isr"]):
                    self.bad.append(p)
            time.sleep(0.02)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.join(10)


class SlotCase(ClusterCase):
    config = CONFIG

    def setUp(self):
        self.start_stopped()
        c.wait_for("the slot is free", lambda: self.holder() is None)

    def slot(self):
        return json.loads(ZooKeeperClient(self.cluster.zookeeper).get("/stepdown/drain_slot"))

    def holder(self):
        for b in self.cluster.brokers:
            s = b.running() and b.try_get(f"/v1/brokers/{b.id}/drain")
            if s:
                return s["slot"]
        return None

    def start_client(self, broker, *args):
        """`stepdown drain --wait` for that broker, without its sidecar, as on its host."""
        b = self.cluster[broker]
        return subprocess.Popen(
            [self.cluster.build / "broker/cli/stepdown", "drain", "--wait", "--json", "--deadline", "60s", "--socket", "",
             "--config", b.dir / "sidecar.yaml", *args],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Slot(SlotCase):
    def test_of_two_stopped_by_sigterm_at_once_the_second_waits_until_the_first_is_back(self):
        self.cluster.create_topic("two-terms", 12, 3, min_insync_replicas=2)
        self.cluster.wait_in_sync()
        first, second = self.cluster[1], self.cluster[2]
        with Load(self.cluster, "two-terms", 12) as load, Sampler(self.cluster, "two-terms") as sampler:
            for b in (first, second):
                b.signal(signal.SIGTERM)
            c.wait_for("one has ended", lambda: not (first.running() and second.running()))
            if first.running():
                first, second = second, first
            c.wait_for("the other names the holder", lambda: "handover-waits" in second.log)
            self.assertIn(f"broker {first.id} (epoch ", second.log)
            self.assertIn("at most until ", second.log)
            self.assertTrue(second.running())
            self.assertEqual(self.holder()["broker"], first.id)
            first.start()
            c.wait_for("the second has drained and ended", lambda: not second.running())
            self.assertIn("Shutdown status: complete", second.log)
            second.start()
            self.cluster.wait_in_sync()
            totals = load.finish()
        self.assertEqual(sampler.bad, [])
        self.assertGreater(sampler.samples, 20)
        self.assertEqual((totals["lost"], totals["out_of_order"], totals["failed"]), (0, 0, 0), totals)

    def test_of_two_drained_by_the_tool_at_once_the_second_says_for_whom_it_waits(self):
        self.cluster.create_topic("two-tools", 12, 3, min_insync_replicas=2)
        self.cluster.wait_in_sync()
        with Sampler(self.cluster, "two-tools") as sampler:
            clients = {i: self.start_client(i) for i in (1, 3)}
            try:
                c.wait_for("one has ended", lambda: any(p.poll() is not None for p in clients.values()))
                first, second = (1, 3) if clients[1].poll() is not None else (3, 1)
                self.assertEqual(json.loads(clients[first].communicate()[0])["verdict"], "drained")
                # what anybody sees who asks about the second
                r = self.cluster.client("drain", "--status", "--json", "--socket", "", "--broker", second, "--config",
                                        self.cluster[2].dir / "sidecar.yaml")
                s = json.loads(r.stdout)
                self.assertEqual(s["state"], "waiting_for_slot", s)
                self.assertEqual((s["slot"]["broker"], s["slot"]["state"]), (first, "draining"))
                self.assertGreater(s["slot"]["expires_ms"], time.time() * 1000)
                status, body = self.drain(second)
                self.assertEqual((status, body["error"], body["holder"]["broker"]), (429, "slot_held", first))
                self.cluster[first].stop()
                c.wait_for("it is known to be down", lambda: self.holder()["state"] == "down")
                self.assertIsNone(clients[second].poll())
                self.cluster[first].start()
                out, err = clients[second].communicate(timeout=60)
                self.assertEqual(json.loads(out)["verdict"], "drained", out + err)
            finally:
                for p in clients.values():
                    p.kill()
                    p.communicate()
            self.assertEqual(self.leaders(second), [])
        self.assertEqual(sampler.bad, [])
        self.undo(second)
        self.cluster.wait_in_sync()

    def test_the_controller_dies_and_its_successor_keeps_the_slot_and_the_drain(self):
        self.cluster.create_topic("heir", 12, 3, min_insync_replicas=2)
        self.cluster.wait_in_sync()
        controller = self.cluster.controller()
        victim, third = (b for b in self.cluster.brokers if b is not controller)
        self.drain(victim.id, drain_id="heir-1")
        controller.kill()
        s = c.wait_for("a successor", lambda: victim.try_get(f"/v1/brokers/{victim.id}/drain"))
        self.assertEqual(s["drain_id"], "heir-1")
        self.wait_drained(victim.id)
        status, body = third.request("PUT", f"/v1/brokers/{third.id}/drain", {})
        self.assertEqual((status, body["error"], body["holder"]["drain_id"]), (429, "slot_held", "heir-1"), body)
        # R28: it does not get anything back, though the one that led is gone
        self.assertEqual(self.leaders(victim.id), [])
        controller.start()
        self.undo(victim.id)
        self.cluster.wait_in_sync()

    def test_an_operator_takes_the_slot_with_a_reason_that_is_recorded(self):
        self.cluster.create_topic("taken", 6, 3)
        self.cluster.wait_in_sync()
        self.drain(1, drain_id="taken-1")
        self.wait_drained(1)
        r = self.cluster.client("drain", "--force", "--config", self.cluster[2].dir / "sidecar.yaml")
        self.assertEqual(r.returncode, 64, r.stdout + r.stderr)  # not without a reason
        p = self.start_client(2, "--force", "--reason", "disk of 2 is failing")
        out, err = p.communicate(timeout=60)
        self.assertEqual(json.loads(out)["verdict"], "drained", out + err)
        ended = next(e for e in self.slot()["ended"] if e["drain_id"] == "taken-1")
        self.assertEqual(ended["how"], "replaced")
        self.assertIn("disk of 2 is failing", ended["note"])
        self.undo(2)
        self.cluster.wait_in_sync()


class Cancelled(SlotCase):
    def test_a_drain_cancelled_half_way_leaves_nothing_behind(self):
        self.cluster.create_topic("cancelled", 1000, 3, min_insync_replicas=2)
        self.cluster.wait_in_sync()
        before = {p["partition"]: p["replicas"] for p in self.cluster.partitions("cancelled")}
        led = len(self.leaders(1))
        self.drain(1, drain_id="cancelled-1")
        while (s := self.drain_status(1))["leaders_remaining"] > led / 2:
            pass
        self.undo(1)
        self.assertGreaterEqual(led, s["leaders_remaining"])
        self.cluster.wait_in_sync()  # ISR full
        c.wait_for("the slot is free", lambda: self.holder() is None)
        self.assertEqual({p["partition"]: p["replicas"] for p in self.cluster.partitions("cancelled")}, before)
        status, body = self.drain(1, drain_id="cancelled-1")  # a late duplicate
        self.assertEqual((status, body["error"]), (410, "drain_ended"))
        self.assertEqual(self.drain_status(1)["state"], "none")
        status, body = self.drain(2, drain_id="cancelled-2")  # the next one gets it, and leadership goes to broker 1, too
        self.assertEqual(status, 200, body)
        self.wait_drained(2)
        self.assertGreater(len(self.leaders(1, "cancelled")), 0)
        self.undo(2)
        self.cluster.wait_in_sync()


class Lease(SlotCase):
    config = {**CONFIG, "drain.slot.lease.ms": 2000}

    def test_a_holder_that_does_not_come_back_loses_the_slot(self):
        self.cluster.create_topic("lease", 6, 3)
        self.cluster.wait_in_sync()
        self.cluster[3].stop()
        status, body = self.drain(2)
        self.assertEqual((status, body["holder"]["broker"]), (429, 3))
        c.wait_for("its lease has run out", lambda: self.drain(2)[0] == 200)
        self.assertIn("expired", [e["how"] for e in self.slot()["ended"]])
        self.wait_drained(2)
        c.wait_for("nobody renews the second either", lambda: self.drain_status(1)["slot"] is None)
        self.cluster[3].start()
        self.cluster.wait_in_sync()


class All(SlotCase):
    def test_all_stopped_at_once_end_within_one_budget_and_recover_nothing(self):
        self.cluster.create_topic("all", 60, 3, min_insync_replicas=2)
        self.cluster.wait_in_sync()
        with Load(self.cluster, "all", 60) as load:
            load.wait_acked(500)
            began = time.monotonic()
            for b in self.cluster.brokers:
                b.signal(signal.SIGTERM)
            c.wait_for("all have ended", lambda: not any(b.running() for b in self.cluster.brokers), timeout=30)
            took = time.monotonic() - began
            self.assertLess(took, 10, "one budget is 40 s")
            for b in self.cluster.brokers:
                self.assertTrue(list(b.dir.glob("**/.kafka_cleanshutdown")), b.id)
                self.assertIn("Shutdown status: complete", b.log)
                b.start(wait=False)
            for b in self.cluster.brokers:
                b.wait_running()
                self.assertNotIn("log-not-clean", b.log)
            self.cluster.wait_in_sync()
            totals = load.finish()
        self.assertEqual((totals["lost"], totals["out_of_order"]), (0, 0), totals)
        c.wait_for("the slot is free", lambda: self.holder() is None)


if __name__ == "__main__":
    unittest.main()
