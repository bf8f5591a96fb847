"""Lost ZooKeeper sessions (R77–R86, F1, F3): ended from outside, by a pause, with ZooKeeper itself; of a plain broker, of
the controller, during a drain; under each policy. Nothing acknowledged is lost, and an epoch has one leader.

Each broker reaches ZooKeeper through a proxy of its own, which also learns the session's id and password: with them the
session is closed from outside, as zk-fencing §4.3 has it, once while the broker is cut off and once while it goes on
in the belief that its session lives.
"""

import collections
import json
import os
import re
import signal
import time
import unittest

import cluster as c
import kafka_wire as k
from harness import ClusterCase, Load, connect, read_frame
from tcp_proxy import PASS, SILENT, Proxy
from zk_client import ZooKeeperClient, close_session

NONE, LEADER_NOT_AVAILABLE, NOT_LEADER = 0, 5, 6
SESSION_LOST = 75  # exit status


class SessionCase(ClusterCase):
    sidecars = False
    settings = {}
    doors_too = False  # brokers and clients reach each broker through a proxy, too

    @classmethod
    def setUpClass(cls):
        cls.proxies, cls.doors, cls.config = {}, {}, cls.settings_of
        super().setUpClass()
        cls.zk = ZooKeeperClient(cls.cluster.zookeeper)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        for p in [*cls.proxies.values(), *cls.doors.values()]:
            p.close()

    @classmethod
    def settings_of(cls, b):
        cls.proxies[b.id] = Proxy(lambda: b.cluster.zookeeper)
        s = {
            "zookeeper.session.timeout.ms": 3000,
            "replica.lag.time.max.ms": 3000,
            "zookeeper.session.reconnect.backoff.ms": 100,
            **cls.settings,
            "zookeeper.connect": cls.proxies[b.id].address,
        }
        if cls.doors_too:
            cls.doors[b.id] = Proxy(lambda: b.address)
            s["advertised.listeners"] = "PLAINTEXT://" + cls.doors[b.id].address
        return s

    def setUp(self):
        for p in [*self.proxies.values(), *self.doors.values()]:
            p.hold, p.admit = False, None
            p.set(PASS)
        self.start_stopped()

    def tearDown(self):
        super().tearDown()
        self.assert_epochs_are_unique()

    # --- verbs ---
    def topic(self, name, rows, **config):
        rows = ",".join(":".join(map(str, row)) for row in rows)
        r = self.cluster.client("topics", "create", "--topic", name, "--replica-assignment-list", rows,
                                "--config", ",".join(f"{key.replace('_', '.')}={v}" for key, v in config.items()) or "min.insync.replicas=1",
                                "--bootstrap", self.cluster.bootstrap)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        c.wait_for("it has leaders", lambda: (p := self.cluster.partitions(name)) and not any(x["offline"] for x in p))

    def epoch(self, b):
        status = b.try_get("/v1/broker")
        return status["epoch"] if status else None

    def close_session_of(self, b):
        close_session(self.cluster.zookeeper, *self.proxies[b.id].session)

    def close_while_cut_off(self, b, admit=None):
        """The broker hears of it as soon as it connects again."""
        self.proxies[b.id].cut()
        self.close_session_of(b)
        self.proxies[b.id].admit = admit
        self.proxies[b.id].set(PASS)

    def close_unheard(self, b):
        """The broker keeps a connection on which nobody answers."""
        self.proxies[b.id].hold = True
        self.close_session_of(b)
        self.proxies[b.id].hold = False

    def wait_registered_anew(self, b, old):
        c.wait_for(f"broker {b.id} is registered anew", lambda: (e := self.epoch(b)) and e > old and e, 30)
        self.assertIn("session-recovered", b.log)

    def registration(self, b):
        """The session that holds the broker's id, 0: nobody's."""
        return self.zk.session_of(f"/brokers/ids/{b.id}")

    def drain_stuck(self, broker, helper):
        """A drain that cannot end: the other replica of a partition is gone. By a kill, for a broker that was stopped in
        order would hold the drain slot until it is back (D3)."""
        helper.kill()
        c.wait_for("it is alone", lambda: [p["isr"] for p in self.cluster.partitions("stuck") or []][:1] == [[broker.id]])

        def begun():  # between two controllers nobody takes it
            status, _ = self.drain(broker.id)
            if status == 429:  # D4: what would become unavailable is known, and accepted
                status, _ = self.drain(broker.id, force=True, reason="a drain that cannot end")
            return status == 200

        c.wait_for("the drain begins", begun, 30)
        s = c.wait_for("it waits", lambda: (s := self.drain_status(broker.id)) and s["state"] == "incomplete" and s)
        self.assertEqual(s["leaders_remaining"], 1)

    def others(self, *those):
        return [b for b in self.cluster.brokers if b not in those]

    def plain_broker(self):
        return self.others(self.cluster.controller())[0]

    def wait_exit(self, b, timeout=30):
        c.wait_for(f"broker {b.id} has ended", lambda: not b.running(), timeout)
        return b.process.wait(10)

    # --- what must hold ---
    def assert_nothing_lost(self, totals):
        self.assertEqual((totals["lost"], totals["out_of_order"], totals["failed"]), (0, 0, 0), totals)

    def assert_epochs_are_unique(self):
        """By the state-change logs of all brokers: a leader epoch has one leader, a controller epoch one controller."""
        leaders, controllers = collections.defaultdict(set), collections.defaultdict(set)
        line = re.compile(r"LeaderAndIsr request \(Leader:(-?\d+),.*?LeaderEpoch:(\d+),.*from controller (\d+) epoch (\d+) for partition \[(.*)\]")
        for b in self.cluster.brokers:
            path = b.dir / "data" / "state-change.log"
            for m in line.finditer(path.read_text() if path.exists() else ""):
                leaders[m[5], m[2]].add(m[1])
                controllers[m[4]].add(m[3])
        self.assertEqual([x for x in leaders.items() if len(x[1]) > 1], [])
        self.assertEqual([x for x in controllers.items() if len(x[1]) > 1], [])

    def assert_closed_clean(self, b):
        """Logs flushed and closed: the marker is there, and the next start recovers nothing."""
        before = len(b.log)
        b.start()
        loaded = [x for x in b.log[before:].splitlines() if "logs-loaded" in x or "all logs" in x]
        self.assertTrue(any("clean=yes" in x or '"clean":"yes"' in x or '"clean": "yes"' in x for x in loaded), loaded)


class Reconnects(SessionCase):
    """The policy `reconnect`."""

    ROWS = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2], [2, 1, 3], [3, 2, 1]]

    def setUp(self):
        super().setUp()
        name = f"t-{self.id().rsplit('.', 1)[1].replace('_', '-')[:60]}"
        self.topic(name, self.ROWS, min_insync_replicas=2)
        self.load = Load(self.cluster, name, len(self.ROWS))
        self.load.__enter__()
        self.addCleanup(self.load.__exit__)

    def finish(self):
        self.cluster.wait_in_sync()
        self.load.wait_acked(500)
        self.assert_nothing_lost(self.load.finish())
        self.assertTrue(all(b.running() for b in self.cluster.brokers))

    def lose(self, b, close):
        old, controller_before = self.epoch(b), self.cluster.get("/v1/cluster")
        close(b)
        self.wait_registered_anew(b, old)
        self.load.wait_acked(300)
        now = c.wait_for("there is a controller", lambda: self.cluster.get("/v1/cluster"))
        if controller_before["controller"] == b.id:
            self.assertGreater(now["controller_epoch"], controller_before["controller_epoch"])
            self.assertIn("controller-resigned", b.log)

    def test_closed_from_outside_while_cut_off(self):
        self.lose(self.plain_broker(), self.close_while_cut_off)
        self.lose(self.cluster.controller(), self.close_while_cut_off)
        self.finish()

    def test_closed_from_outside_unheard(self):
        """The broker is sure of its lease for up to 2/3 of the timeout, while others lead already: epochs decide."""

        def close(b):
            self.close_unheard(b)
            self.assertEqual(self.registration(b), 0)
            others = self.others(b)

            def replaced():
                views = [x.try_get("/v1/partitions") for x in others]
                return any(v and all(p["leader"] != b.id for p in v["partition_list"]) for v in views)

            c.wait_for("others lead", replaced)

        self.lose(self.plain_broker(), close)
        self.lose(self.cluster.controller(), close)
        self.finish()

    def test_paused_past_the_session(self):
        def pause(b):
            b.signal(signal.SIGSTOP)
            try:
                c.wait_for("its session is gone", lambda: self.registration(b) == 0, 30)
            finally:
                b.signal(signal.SIGCONT)

        self.lose(self.cluster.controller(), pause)
        self.finish()

    def test_every_session_is_gone_when_zookeeper_comes_back(self):
        """R81: no mass shutdown."""
        old = {b: self.epoch(b) for b in self.cluster.brokers}
        self.cluster.stop_zookeeper()
        for p in self.proxies.values():
            p.cut()
        self.cluster.start_zookeeper()
        type(self).zk = ZooKeeperClient(self.cluster.zookeeper)
        for b in self.cluster.brokers:
            c.wait_for("its session is gone", lambda b=b: self.registration(b) == 0, 30)
            self.assertTrue(b.running())
            self.assertEqual(b.request("GET", "/readyz")[0], 503)
        for p in self.proxies.values():
            p.set(PASS)
        for b, epoch in old.items():
            self.wait_registered_anew(b, epoch)
        self.finish()

    def test_during_a_drain_that_cannot_end_and_during_the_hand_over(self):
        broker, helper = self.cluster[1], self.cluster[2]
        self.topic("stuck", [[1, 2]])
        self.drain_stuck(broker, helper)
        leader_epoch = self.cluster.partitions("stuck")[0]["leader_epoch"]

        self.lose(broker, self.close_while_cut_off)

        # The drain was the old registration's; what only this broker has is led by it again, in a newer epoch.
        c.wait_for("the drain is over", lambda: (s := self.drain_status(1)) and s["state"] == "none")
        c.wait_for("it leads", lambda: [p["leader_epoch"] > leader_epoch for p in self.leaders(1, "stuck")] == [True])

        broker.signal(signal.SIGTERM)
        c.wait_for("it hands over", lambda: "handover-attempt-failed" in broker.log)
        started = time.monotonic()
        self.close_while_cut_off(broker)
        self.assertEqual(self.wait_exit(broker), 0)
        self.assertLess(time.monotonic() - started, 10)
        self.assertIn("handover-session-lost", broker.log)
        self.assert_closed_clean(broker)
        helper.start()
        self.finish()


class Shuts(SessionCase):
    """The policy `shutdown`."""

    settings = {"zookeeper.session.expired.policy": "shutdown"}

    def lose(self, b, load):
        self.close_while_cut_off(b)
        self.assertEqual(self.wait_exit(b), SESSION_LOST)
        self.assertIn("zookeeper.session.expired.policy is shutdown", b.log)
        load.wait_acked(300)
        self.assert_closed_clean(b)
        self.cluster.wait_in_sync()

    def test_a_plain_broker_and_the_controller_stop_and_the_others_go_on(self):
        self.topic("shuts", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], min_insync_replicas=2)
        with Load(self.cluster, "shuts", 3) as load:
            self.lose(self.plain_broker(), load)
            self.lose(self.cluster.controller(), load)
            self.assert_nothing_lost(load.finish())

    def test_a_broker_that_drains_stops(self):
        self.topic("stuck", [[1, 2], [1, 3]])
        with Load(self.cluster, "stuck", 2) as load:
            self.drain_stuck(self.cluster[1], self.cluster[2])
            self.close_while_cut_off(self.cluster[1])
            self.assertEqual(self.wait_exit(self.cluster[1]), SESSION_LOST)
            self.assert_closed_clean(self.cluster[1])
            self.cluster[2].start()
            self.cluster.wait_in_sync()
            load.wait_acked(300)
            self.assert_nothing_lost(load.finish())


class GivesUp(SessionCase):
    """The end of the attempts."""

    settings = {
        "zookeeper.session.reconnect.max.attempts": 2,
        "zookeeper.connection.timeout.ms": 1000,
        "zookeeper.session.reconnect.backoff.ms": 300,
    }

    @classmethod
    def settings_of(cls, b):
        # The third may take its time: it is stopped while it tries.
        more = {"zookeeper.session.reconnect.max.attempts": 1000} if b.id == 3 else {}
        return {**super().settings_of(b), **more}

    def lose_for_good(self, b):
        """It is told that its session is gone, and finds nobody to open another with."""
        before = b.log.count("session-attempt")
        self.close_while_cut_off(b, admit=1)
        c.wait_for("it tries", lambda: b.log.count("session-attempt") > before)

    def test_after_the_last_attempt_it_stops_and_says_why(self):
        b = self.cluster[1]
        self.lose_for_good(b)
        self.assertEqual(self.wait_exit(b), SESSION_LOST)
        self.assertRegex(b.log, r"no new ZooKeeper session in 2 attempts.*max\.attempts.*no connection within.*start it again")
        self.proxies[1].admit = None
        self.assert_closed_clean(b)

    def test_told_to_stop_while_it_tries_it_stops_at_once(self):
        b = self.cluster[3]
        self.lose_for_good(b)
        started = time.monotonic()
        self.assertEqual(b.stop(), 0)
        self.assertLess(time.monotonic() - started, 5)
        self.proxies[3].admit = None
        self.assert_closed_clean(b)

    def test_who_has_taken_the_id_meanwhile_is_named_and_left_alone(self):
        b = self.cluster[2]
        other = ZooKeeperClient(self.cluster.zookeeper)
        self.proxies[2].cut()
        self.close_session_of(b)
        other.create("/brokers/ids/2", json.dumps({
            "version": 4, "host": "other.example", "port": 1234, "timestamp": "1700000000000", "jmx_port": -1,
            "endpoints": ["PLAINTEXT://other.example:1234"], "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        }).encode(), ephemeral=True)
        owner = self.registration(b)
        self.proxies[2].set(PASS)
        self.assertEqual(self.wait_exit(b), 1)
        self.assertRegex(b.log, rf"broker id 2 is in use: .*session 0x{owner:x}, host other\.example port 1234, since 2023-11-14T22:13:20Z")
        self.assertEqual(self.registration(b), owner)
        other.close()
        self.assert_closed_clean(b)


class History(SessionCase):
    """R86: B1 loses its connection, keeps its process, and its session expires; B2 leads and loses; B3 leads, B4 leads and
    crashes; B1 comes back to find nobody who owns what it led. It must not go on as if nothing had happened."""

    brokers = 4
    doors_too = True

    def ask(self, b, key, version, body):
        """Past the door: who is alone can still be reached by a client."""
        with connect(b) as s:
            s.sendall(k.frame(key, version, body))
            return k.answer(key, version, read_frame(s))[1]

    def produce(self, b, value, acks):
        body = k.produce_body(9, [("past", [(0, k.batch([value]))])], acks=acks, timeout_ms=5000)
        return k.produce_answer(9, self.ask(b, 0, 9, body))[0]["past", 0][0]["error"]

    def fetch(self, b):
        body = k.fetch_body(11, [("past", [(0, 0, 1 << 20)])])
        _, parts = k.fetch_answer(11, self.ask(b, 1, 11, body))
        return parts[0][2]

    def values(self, b):
        return re.findall(rb"<[^>]*>", self.fetch(b)["records"] or b"")

    def state(self):
        return json.loads(self.zk.get("/brokers/topics/past/partitions/0/state"))

    def alone(self, b):
        self.doors[b.id].set(SILENT)
        self.proxies[b.id].set(SILENT)

    def leads_now(self, *not_these):
        """The broker that ZooKeeper names and that serves as leader."""

        def serving():
            b = next((b for b in self.cluster.brokers if b.id == self.state()["leader"]), None)
            return b if b and b not in not_these and self.fetch(b)["error"] == NONE else None

        return c.wait_for("somebody else leads", serving, 30)

    def test_b1_b2_b3_b4_b1(self):
        self.topic("past", [[1, 2, 3, 4]])
        b1 = self.leads_now()
        self.assertEqual(self.produce(b1, b"<0: all>", -1), NONE)
        first_epoch = self.state()["leader_epoch"]
        acked = [b"<0: all>"]

        # B1 is alone; within its lease it takes what nobody else will ever have.
        self.alone(b1)
        self.assertEqual(self.produce(b1, b"<B1 alone>", 1), NONE)
        past, owners = [b1], []
        while len(past) < 4:
            b = self.leads_now(*past)
            value = b"<%d: all>" % len(past)
            self.assertEqual(self.produce(b, value, -1), NONE)
            acked.append(value)
            past.append(b)
            owners.append(self.state()["leader_epoch"])
            if len(past) == 4:
                break
            self.alone(b)
            self.close_session_of(b)
        b4 = past[3]
        self.assertEqual(owners, sorted(set(owners)))
        self.assertGreater(owners[0], first_epoch)
        # All the while B1 has kept its process, and neither serves nor acknowledges.
        self.assertEqual(self.produce(b1, b"<B1 too late>", 1), NOT_LEADER)
        self.assertEqual(self.fetch(b1)["error"], NOT_LEADER)
        self.assertEqual(self.state()["isr"], [b4.id])
        b4.kill()
        c.wait_for("B4's session is gone", lambda: self.registration(b4) == 0, 30)

        # Its lock is free, the node it makes is its own: by these alone it would be the owner again.
        old = self.epoch(b1)
        self.assertEqual(self.registration(b1), 0)
        self.proxies[b1.id].set(PASS)
        self.doors[b1.id].set(PASS)
        answers = collections.Counter()

        def settled():
            answers.update(self.produce(b1, b"<B1 as if nothing occurred>", 1) for _ in range(20))
            view = b1.try_get("/v1/partitions") if self.epoch(b1) > old else None
            return view and view["partition_list"][0]["offline"]

        c.wait_for("B1 is the controller and has looked at everything", settled, interval=0)
        self.assertIn("session-recovered", b1.log)
        self.assertEqual(set(answers) - {NOT_LEADER, LEADER_NOT_AVAILABLE}, set(), answers)
        self.assertNotEqual(self.fetch(b1)["error"], NONE)
        self.assertNotEqual(self.state()["leader"], b1.id)

        b4.start()
        self.assertEqual(self.leads_now(b1), b4)
        self.assertGreater(self.state()["leader_epoch"], owners[-1])
        for b in past[1:3]:
            self.proxies[b.id].set(PASS)
            self.doors[b.id].set(PASS)
        self.cluster.wait_in_sync()
        self.assertIn("log-truncated", b1.log)

        # B1 leads in the end, in an epoch it was told of, with the others' history and without what it took alone.
        r = self.cluster.client("preferred-election", "--topic", "past", "--bootstrap", self.cluster.bootstrap)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.assertEqual(self.leads_now(), b1)
        self.assertEqual(self.values(b1), acked)
        served = [int(e) for e in re.findall(rf"LeaderAndIsr request \(Leader:{b1.id},.*?LeaderEpoch:(\d+)", (b1.dir / "data" / "state-change.log").read_text())]
        self.assertFalse([e for e in served if first_epoch < e <= owners[-1]], served)


if __name__ == "__main__":
    unittest.main(verbosity=2 if os.environ.get("VERBOSE") else 1)
