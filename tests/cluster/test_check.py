"""What a stop would mean (D10), whether a broker is back (rolling upgrades), and the record of drains (D12)."""

import json
import unittest

import cluster as c
from harness import ClusterCase, Load
from zk_client import ZooKeeperClient

SAFE, FAILED, WAIT, RISK = 0, 1, 75, 80


class Base(ClusterCase):
    sidecars = False

    def setUp(self):
        self.start_stopped()

    def check(self, broker_id, *args):
        """(exit status, the controller's answer) of `stepdown check --json`."""
        r = self.cluster.client("check", broker_id, "--json", "--endpoints", self.cluster.endpoints(), *args)
        return r.returncode, json.loads(r.stdout) if r.stdout else r.stderr

    def drain(self, broker_id, **body):
        return self.cluster.get_any().request("PUT", f"/v1/brokers/{broker_id}/drain", body)

    def delete_topic(self, topic):
        self.cluster.client("topics", "delete", "--topic", topic, "--bootstrap", self.cluster.bootstrap)
        c.wait_for(f"{topic} is gone", lambda: self.cluster.partitions(topic) == [])

    def drains(self, broker_id=None):
        path = "/v1/drains" + (f"?broker={broker_id}" if broker_id else "")
        body = self.cluster.get(path)
        return body["drains"] if body else None

    def record(self, drain_id, condition=lambda d: d["verdict"]):
        """The one record of that drain, once @condition holds for it."""

        def found():
            records = [d for d in self.drains() or [] if d["drain_id"] == drain_id]
            self.assertLessEqual(len(records), 1, "exactly one record a drain")
            return records[0] if records and condition(records[0]) else None

        return c.wait_for(f"the record of {drain_id} is complete", found)


class Check(Base):
    def test_what_a_stop_would_mean(self):
        self.cluster.create_topic("safe", 6, 3, min_insync_replicas=2)
        status, v = self.check(1)
        self.assertEqual((status, v["safe"], v["worst"]), (SAFE, True, "safe"), v)
        self.assertEqual(v["leaders"], len(self.leaders(1)))
        self.assertEqual(v["replicas"], sum(1 in p["replicas"] and len(p["replicas"]) > 1 for p in self.cluster.partitions()))

        # acks=all would be rejected as soon as another one is down
        self.cluster[3].kill()
        c.wait_for("broker 3 is out of the ISRs", lambda: all(3 not in p["isr"] for p in self.cluster.partitions("safe")))
        status, v = self.check(1)
        self.assertEqual((status, v["worst"], v["safe"]), (RISK, "below_min_isr", False))
        risk = v["risks"]["below_min_isr"]
        strict = sum(p["topic"] in ("safe", "back") for p in self.cluster.partitions())
        self.assertEqual((risk["partitions"], risk["goes_away"]), (strict, {"offline_return": strict}))
        listed = [p for p in risk["list"] if p["topic"] == "safe"]
        self.assertEqual([p["partition"] for p in listed], list(range(6)))
        self.assertEqual((listed[0]["min_isr"], listed[0]["in_sync_left"], listed[0]["already"]), (2, 1, False))
        text = self.cluster.client("check", 1, "--endpoints", self.cluster.endpoints())
        self.assertEqual(text.returncode, RISK)
        self.assertIn(f"broker 1: stopping it does harm\nbelow_min_isr: {strict} partitions: acks=all would be rejected", text.stdout)
        self.assertEqual(self.check(3)[0], FAILED)  # it is not there: nothing to stop
        self.cluster[3].start()
        self.cluster.wait_in_sync()
        self.assertEqual(self.check(1)[0], SAFE)

    def test_one_replica_and_too_few_replicas_are_told_apart(self):
        self.cluster.create_topic("lonely", 3, 1)
        self.cluster.create_topic("pair", 3, 2, min_insync_replicas=2)
        try:
            lonely = next(p["leader"] for p in self.cluster.partitions("lonely"))
            status, v = self.check(lonely)
            self.assertEqual(status, RISK)
            self.assertEqual(v["risks"]["single_replica"]["goes_away"], {"never": 1})
            pair = sum(lonely in p["replicas"] for p in self.cluster.partitions("pair"))
            self.assertEqual(v["risks"]["below_min_isr"]["goes_away"], {"never": pair})
            self.assertTrue(v["risks"]["below_min_isr"]["list"][0]["never_safe"])
            # waiting for what never comes holds nobody up; but it is no reason to say yes either
            self.assertEqual(self.check(lonely, "--ignore-rf1")[0], RISK)
        finally:
            self.delete_topic("pair")
            self.assertEqual(self.check(lonely, "--ignore-rf1")[0], SAFE)
            self.assertEqual(self.check(lonely, "--ignore-rf1", "--strict")[0], SAFE)
            self.delete_topic("lonely")

    def test_another_drain_is_named_and_the_estimate_is_measured(self):
        self.cluster.create_topic("measured", 60, 3)
        self.drain(2, drain_id="measure-1", reason="measure")
        self.wait_drained(2)
        status, v = self.check(1)
        self.assertEqual(status, WAIT, v)
        self.assertEqual([(d["broker"], d["drain_id"], d["state"]) for d in v["draining"]], [(2, "measure-1", "drained")])
        self.assertEqual((v["estimate"]["source"], v["estimate"]["drains"]), ("measured", self.measured()))
        self.undo(2)
        self.cluster.wait_in_sync()
        status, v = self.check(1, "--deadline", "10min")
        self.assertEqual((status, v["budget"]), (SAFE, {"ms": 600000, "suffices": True, "why": ""}), v)
        self.assertLess(v["estimate"]["ms"], 60000)
        status, v = self.check(1, "--deadline", "1ms")
        self.assertEqual((status, v["budget"]["why"]), (RISK, "too_short"))

    def measured(self):
        return min(sum(bool(d["drained_ms"]) for d in self.drains()), 10)

    def test_a_broker_that_comes_back_is_seen_catching_up(self):
        self.cluster.create_topic("back", 12, 3, min_insync_replicas=2)
        b = self.cluster[3]
        before = self.cluster.get("/v1/brokers/3")
        self.assertTrue(before["registered"] and before["caught_up"], before)
        self.assertEqual((before["replicas"], before["leaders"]), (self.hosted(3), len(self.leaders(3))))
        controller = self.cluster.controller().id
        self.assertEqual([self.cluster.get(f"/v1/brokers/{i}")["is_controller"] for i in (1, 2, 3)], [controller == i for i in (1, 2, 3)])
        b.kill()
        gone = c.wait_for("broker 3 is gone", lambda: (i := self.cluster.get("/v1/brokers/3")) and not i["registered"] and i)
        self.assertEqual((gone["epoch"], gone["caught_up"]), (-1, False))
        out = c.wait_for("broker 3 is out of the ISRs", lambda: (i := self.cluster.get("/v1/brokers/3"))["in_sync"] == 0 and i)
        self.assertEqual(out["catching_up_total"], out["replicas"])
        self.assertEqual(self.cluster.client("broker", 3, "--endpoints", self.cluster.endpoints()).returncode, WAIT)
        b.start()
        back = c.wait_for("broker 3 is in sync", lambda: (i := self.cluster.get("/v1/brokers/3")) and i["caught_up"] and i)
        self.assertGreater(back["epoch"], before["epoch"])
        self.assertEqual(back["catching_up"], [])
        r = self.cluster.client("broker", 3, "--endpoints", self.cluster.endpoints())
        self.assertEqual(r.returncode, SAFE, r.stdout)
        self.assertIn(f"in sync {back['replicas']}, catching up 0", r.stdout)
        self.assertEqual(b.request("GET", "/v1/brokers/77")[0], 404)

    def hosted(self, broker_id):
        return sum(broker_id in p["replicas"] for p in self.cluster.partitions())


class Records(Base):
    """D12: exactly one record a drain, whatever ended it."""

    def restart(self, b):
        b.stop()
        b.start()

    def test_a_drain_that_is_undone_or_replaced_leaves_its_record(self):
        self.cluster.create_topic("undone", 12, 3)
        led = len(self.leaders(2))
        self.drain(2, drain_id="u-1", reason="it \u00e4\"rgert\n", requested_by="someone", deadline_ms=600000)
        self.wait_drained(2)
        r = self.record("u-1", lambda d: d["drained_ms"])
        self.assertEqual((r["verdict"], r["ended_ms"], r["broker"], r["leaders"], r["moved"]), (None, None, 2, led, led))
        self.assertEqual((r["reason"], r["requested_by"]), ("it \u00e4\"rgert\n", "someone"))
        self.assertGreater(r["deadline_ms"], r["started_ms"])
        self.assertEqual(r["epoch"], self.cluster[2].try_get("/v1/broker")["epoch"])

        status, _ = self.drain(2, drain_id="u-2", reason="other\nwise", replace=True)
        self.assertEqual(status, 200)
        self.assertEqual(self.record("u-1")["verdict"], "replaced")
        self.undo(2)
        self.assertEqual(self.record("u-2")["verdict"], "undone")
        self.cluster.wait_in_sync()
        # asked for again, it is over; the next one has a name of its own
        status, body = self.drain(2, drain_id="u-2")
        self.assertEqual((status, body["error"]), (410, "drain_ended"))
        self.drain(2, drain_id="u-3", reason="other\nwise", requested_by="someone")
        self.wait_drained(2)
        self.record("u-3", lambda d: not d["verdict"])
        self.undo(2)
        self.assertEqual(self.record("u-3")["verdict"], "undone")
        self.cluster.wait_in_sync()

        c.wait_for("it is saved", lambda: self.cluster.get("/v1/drains")["saved"])
        zk = ZooKeeperClient(self.cluster.zookeeper)
        try:
            stored = json.loads(zk.get("/stepdown/drains"))
        finally:
            zk.close()
        mine = [(d["drain_id"], d["verdict"]) for d in stored["drains"] if d["drain_id"].startswith("u-")]
        self.assertEqual(mine, [("u-1", "replaced"), ("u-2", "undone"), ("u-3", "undone")])
        controller = self.cluster.controller()
        metrics = controller.request("GET", "/metrics")[1]
        self.assertRegex(metrics, r'stepdown_controller_drains_ended_total\{verdict="undone"\} [2-9]')
        self.assertRegex(metrics, r"stepdown_controller_drain_seconds_count [2-9]")
        events = [e for line in controller.log.splitlines() if line.startswith("{") and (e := json.loads(line)).get("event") == "drain-ended"]
        self.assertIn(("u-1", "replaced"), [(e["drain_id"], e["verdict"]) for e in events])
        r = self.cluster.client("drains", "--broker", 2, "--endpoints", self.cluster.endpoints())
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertRegex(r.stdout, r"broker 2  undone  moved \d+ of \d+, 0 remained, in .*\n  drain u-2 by someone: other wise\n")

    def test_a_broker_that_leaves_before_it_is_drained_leaves_what_remained(self):
        self.cluster.create_topic("stuck", 3, 2)
        victim = next(p["leader"] for p in self.cluster.partitions("stuck"))
        other = next(i for p in self.cluster.partitions("stuck") for i in p["replicas"] if p["leader"] == victim and i != victim)
        self.cluster[other].kill()
        c.wait_for("the other one is out", lambda: (p := self.cluster.partitions("stuck")) and all(other not in x["isr"] for x in p))
        stuck = len([p for p in self.leaders(victim, "stuck") if p["isr"] == [victim]])
        self.assertGreater(stuck, 0)
        status, body = self.drain(victim, drain_id="gone-1")
        self.assertEqual((status, body["error"], body["risks"]["waiting_for"]), (429, "unsafe", stuck), body)
        self.drain(victim, drain_id="gone-1", force=True, reason="test")
        c.wait_for("only what is stuck is left", lambda: (s := self.drain_status(victim)) and s["state"] == "incomplete")
        self.cluster[victim].kill()
        r = self.record("gone-1")
        self.assertEqual((r["verdict"], r["remaining"], r["drained_ms"]), ("broker-gone", stuck, None), r)
        self.assertEqual(sum(r["by_reason"].values()), stuck + r["isr_remaining"], r)
        self.assertIn("stuck", [p["topic"] for p in r["left"]])
        self.start_stopped()
        self.delete_topic("stuck")

    def test_a_record_survives_its_controller_and_is_closed_by_the_next(self):
        self.cluster.create_topic("survives", 30, 3, min_insync_replicas=2)
        controller = self.cluster.controller()
        victim = next(b for b in self.cluster.brokers if b is not controller)
        with Load(self.cluster, "survives", 30) as load:
            led = len(self.leaders(victim.id))
            self.drain(victim.id, drain_id="s-1", reason="survive")
            self.record("s-1", lambda d: True)
            c.wait_for("it is saved", lambda: self.cluster.get("/v1/drains")["saved"])
            controller.kill()
            c.wait_for("another controller", lambda: (v := victim.try_get("/v1/cluster")) and v["controller"] != controller.id)
            self.assertEqual(victim.request("PUT", f"/v1/brokers/{victim.id}/drain", {"drain_id": "s-1"})[0], 200)
            self.wait_drained(victim.id)
            controller.start()
            self.restart(victim)
            r = self.record("s-1")
            self.assertEqual((r["verdict"], r["reason"], r["remaining"]), ("drained", "survive", 0), r)
            self.assertEqual((r["leaders"] >= led, r["moved"]), (True, r["leaders"]), r)
            self.cluster.wait_in_sync()
            self.assertEqual(load.finish()["lost"], 0)

        # the controller drains and stops itself: its successor closes the record
        controller = self.cluster.controller()
        self.drain(controller.id, drain_id="s-2")
        self.wait_drained(controller.id)
        controller.stop()
        r = self.record("s-2")
        self.assertEqual((r["verdict"], r["remaining"]), ("drained", 0), r)
        self.assertNotEqual(self.cluster.controller(), controller)
        controller.start()
        self.cluster.wait_in_sync()

    def test_a_stop_by_signal_has_a_record_too(self):
        b = self.cluster[3]
        self.cluster.create_topic("signal", 6, 3)
        epoch, led = b.try_get("/v1/broker")["epoch"], len(self.leaders(3))
        self.restart(b)

        def closed():
            return [d for d in self.drains(3) or [] if d["epoch"] == epoch and d["verdict"]]

        (r,) = c.wait_for("the record is there", closed)
        self.assertEqual((r["verdict"], r["requested_by"]), ("drained", "controlled-shutdown"), r)
        # and on the disk of its own host
        own = json.loads((b.dir / "data" / "last-handover.json").read_text())
        self.assertEqual((own["broker"], own["epoch"], own["verdict"], own["remaining"]), (3, epoch, "drained", 0), own)
        self.assertEqual((own["initial"], own["moved"], own["reason"], own["why"]), (led, led, "Terminated", ""), own)
        self.assertLess(own["started_at"], own["ended_at"])


if __name__ == "__main__":
    unittest.main()
