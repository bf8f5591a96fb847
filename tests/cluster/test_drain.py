"""Drains of real brokers: whole, blocked, cut short, through the death of controllers and of ZooKeeper."""

import os
import signal
import time
import unittest

import cluster as c
from harness import ClusterCase, Load


class Drain(ClusterCase):
    def setUp(self):
        self.start_stopped()

    def test_a_drained_broker_leads_nothing_and_is_in_no_isr(self):
        self.cluster.create_topic("whole", 30, 3, min_insync_replicas=2)
        with Load(self.cluster, "whole", 30) as load:
            status, body = self.drain(1, reason="test", requested_by="test", drain_id="whole-1")
            self.assertEqual(status, 200, body)
            s = self.wait_drained(1)
            self.assertEqual(s["drain_id"], "whole-1")
            self.assertEqual(self.leaders(1), [])
            for p in self.cluster.partitions("whole"):
                self.assertNotIn(1, p["isr"], p)
            load.wait_acked(1000)
            for p in self.cluster.partitions("whole"):  # D7: it fetches no more, and is let in by nobody
                self.assertNotIn(1, p["isr"], p)
            spread = [len(self.leaders(i, "whole")) for i in (2, 3)]
            self.assertLessEqual(max(spread) - min(spread), 2, "new leaders are spread over the others (D6)")
            totals = load.finish()
        self.assertEqual((totals["lost"], totals["out_of_order"], totals["failed"]), (0, 0, 0), totals)
        self.undo(1)
        self.cluster.wait_in_sync()

    def test_draining_twice_is_the_same_drain(self):
        self.cluster.create_topic("twice", 6, 3)
        self.drain(2, drain_id="same")
        self.drain(2, drain_id="same")
        s = self.wait_drained(2)
        self.assertEqual(s["drain_id"], "same")
        self.undo(2)
        self.assertEqual(self.drain_status(2)["state"], "none")
        self.cluster.wait_in_sync()

    def test_an_older_epoch_is_stale(self):
        epoch = self.cluster[3].try_get("/v1/broker")["epoch"]
        self.cluster.create_topic("stale", 3, 3)
        status, body = self.drain(3, epoch=epoch - 1)
        self.assertEqual((status, body["state"]), (410, "stale"))
        self.assertEqual(self.drain_status(3)["state"], "none")

    def test_a_restart_clears_the_drain(self):
        self.cluster.create_topic("cleared", 6, 3)
        self.drain(2)
        self.wait_drained(2)
        self.cluster[2].stop()
        self.cluster[2].start()
        self.cluster.wait_in_sync()
        self.assertEqual(self.drain_status(2)["state"], "none")

    def test_sigterm_hands_over_by_itself(self):
        self.cluster.create_topic("sigterm", 12, 3, min_insync_replicas=2)
        with Load(self.cluster, "sigterm", 12) as load:
            self.assertEqual(self.cluster[1].stop(), 0)
            self.assertIn("Shutdown status: complete", self.cluster[1].log)
            load.wait_acked(1000)
            self.cluster[1].start()
            self.cluster.wait_in_sync()
            totals = load.finish()
        self.assertEqual((totals["lost"], totals["out_of_order"], totals["failed"]), (0, 0, 0), totals)

    def test_the_controller_drains_itself(self):
        self.cluster.create_topic("self", 12, 3, min_insync_replicas=2)
        controller = self.cluster.controller()
        with Load(self.cluster, "self", 12) as load:
            self.drain(controller.id)
            self.wait_drained(controller.id)
            self.assertEqual(controller.stop(), 0)
            load.wait_acked(1000)
            controller.start()
            self.cluster.wait_in_sync()
            totals = load.finish()
        self.assertEqual((totals["lost"], totals["out_of_order"]), (0, 0), totals)

    def test_the_client_drains_through_the_sidecar_and_without_it(self):
        self.cluster.create_topic("client", 6, 3)
        b = self.cluster[2]
        result = self.dir / "last-stop.json"
        for with_sidecar in (True, False):
            if not with_sidecar:
                os.kill(b.pid("sidecar"), signal.SIGKILL)
                c.wait_for("the sidecar is gone", lambda: b.pid("sidecar") is None)
            r = self.cluster.client(
                *("drain", "--wait", "--deadline", "60s", "--config", b.dir / "sidecar.yaml"),
                *("--socket", b.dir / "sidecar.sock", "--result-file", result),
                timeout=90,
            )
            self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
            self.assertEqual(self.leaders(2), [])
            self.assertIn('"drained"', result.read_text())
            self.undo(2)
            self.cluster.wait_in_sync()
        b.start_sidecar()


class Thousand(ClusterCase):
    def test_a_thousand_partitions_drain_and_always_have_a_leader_in_sync(self):
        self.cluster.create_topic("thousand", 1000, 3, min_insync_replicas=2)
        self.cluster.wait_in_sync()
        with Load(self.cluster, "thousand", 1000, rate=2000) as load:
            led = len(self.leaders(1))
            self.assertGreater(led, 250)
            self.drain(1)
            asked = 0
            deadline = time.monotonic() + 60
            while self.drain_status(1)["state"] != "drained":
                asked += self.assert_leaders_in_isr()
                self.assertLess(time.monotonic(), deadline)
            self.assert_leaders_in_isr()
            self.assertEqual(self.leaders(1), [])
            totals = load.finish()
        self.undo(1)
        self.cluster.wait_in_sync()
        self.assertEqual((totals["lost"], totals["out_of_order"], totals["failed"]), (0, 0, 0), totals)

    def test_killing_the_controller_in_the_middle_of_a_drain_ends_at_zero(self):
        self.cluster.create_topic("failover", 300, 3, min_insync_replicas=2)
        self.cluster.wait_in_sync()
        controller = self.cluster.controller()
        victim = next(b for b in self.cluster.brokers if b is not controller)
        with Load(self.cluster, "failover", 300) as load:
            r = self.drain(victim.id, drain_id="through-failover")
            self.assertEqual(r[0], 200)
            controller.kill()
            # The drain's client asks the next controller again, as the sidecar does.
            deadline = time.monotonic() + 60
            while True:
                self.assertLess(time.monotonic(), deadline)
                try:
                    status, body = victim.request("PUT", f"/v1/brokers/{victim.id}/drain", {"drain_id": "through-failover"})
                except OSError:
                    continue
                if status == 200 and body["state"] == "drained":
                    break
                time.sleep(0.05)
            self.assertEqual(body["leaders_remaining"], 0)
            self.assertEqual(self.leaders(victim.id), [])
            victim.stop()
            controller.start()
            victim.start()
            self.cluster.wait_in_sync()
            totals = load.finish()
        self.assertEqual((totals["lost"], totals["out_of_order"]), (0, 0), totals)


class Blocked(ClusterCase):
    def test_a_partition_without_another_in_sync_replica_stays_led_and_is_named(self):
        self.cluster.create_topic("blocked", 4, 2)
        self.cluster.wait_in_sync()
        for b in (2, 3):
            self.cluster[b].kill()
        c.wait_for("broker 1 is alone in the ISR", lambda: all(p["isr"] == [1] or 1 not in p["replicas"] for p in self.cluster.partitions("blocked") or [{"isr": [], "replicas": [1]}]))
        alone = sorted(p["partition"] for p in self.cluster.partitions("blocked") if p["leader"] == 1)
        self.assertTrue(alone)
        status, body = self.drain(1)  # D4: nothing moves, and what is waited for is named
        self.assertEqual((status, body["error"], body["state"]), (429, "unsafe", "waiting_for_in_sync"), body)
        self.assertEqual(sorted(p["partition"] for p in body["risks"]["list"] if p["risk"] == "unavailable"), alone)
        status, body = self.drain(1, force=True)
        self.assertEqual((status, body["error"]), (400, "bad_request"))  # not without a reason
        status, body = self.drain(1, force=True, reason="test")
        self.assertEqual(status, 200, body)
        s = c.wait_for("the pass has ended", lambda: (x := self.drain_status(1)) and x["state"] == "incomplete" and x)
        self.assertEqual(s["leaders_remaining"], len(alone))
        self.assertEqual(sorted(b["partition"] for b in s["blocked"] if b["leads"]), alone)
        self.assertEqual({b["reason"] for b in s["blocked"] if b["leads"]}, {"no_other_in_sync_replica"})
        b = self.cluster[1]
        start = time.monotonic()
        r = self.cluster.client(
            *("drain", "--wait", "--deadline", "3s", "--config", b.dir / "sidecar.yaml", "--socket", b.dir / "sidecar.sock"),
            *("--result-file", self.dir / "blocked.json"),
        )
        self.assertEqual(r.returncode, 75, r.stdout + r.stderr)
        self.assertLess(time.monotonic() - start, 15)
        self.assertIn("incomplete", (self.dir / "blocked.json").read_text())
        for p in self.cluster.partitions("blocked"):
            if p["partition"] in alone:
                self.assertEqual((p["leader"], p["isr"]), (1, [1]))
        for i in (2, 3):  # when the others are back the drain goes on by itself
            self.cluster[i].start()
        self.wait_drained(1)
        self.undo(1)
        self.cluster.wait_in_sync()


class NoZooKeeper(ClusterCase):
    def test_a_stop_without_zookeeper_ends_within_its_budget_and_is_never_called_drained(self):
        self.cluster.create_topic("nozk", 12, 3)
        self.cluster.wait_in_sync()
        os.kill(self.cluster.zookeeper_pid(), signal.SIGSTOP)
        try:
            b = self.cluster[1]
            start = time.monotonic()
            r = self.cluster.client(
                *("drain", "--wait", "--deadline", "8s", "--config", b.dir / "sidecar.yaml"),
                *("--socket", b.dir / "sidecar.sock", "--result-file", self.dir / "nozk.json"),
            )
            self.assertNotEqual(r.returncode, 0, r.stdout + r.stderr)
            self.assertLess(time.monotonic() - start, 20)
            self.assertNotIn('"drained"', (self.dir / "nozk.json").read_text())
        finally:
            os.kill(self.cluster.zookeeper_pid(), signal.SIGCONT)


if __name__ == "__main__":
    unittest.main()
