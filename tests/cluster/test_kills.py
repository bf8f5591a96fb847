"""Brokers killed with SIGKILL at any moment under load: nothing acknowledged is lost.

One at a time, two and three at once, in the middle of a start, in the middle of a drain, while ZooKeeper is silent. The
seed of a run is printed; STEPDOWN_SEED repeats it, STEPDOWN_KILLS sets the number of kills.
"""

import collections
import os
import random
import signal
import struct
import time
import unittest

import cluster as c
from harness import ClusterCase, Load

KILLS = int(os.environ.get("STEPDOWN_KILLS", "50"))
SEED = int(os.environ.get("STEPDOWN_SEED", "0")) or random.randrange(1 << 30)
PARTITIONS = 6


class Kills(ClusterCase):
    config = {
        **ClusterCase.config,
        "zookeeper.session.timeout.ms": 2000,
        "log.segment.bytes": 262144,  # many rolls, so that kills meet them
        "replica.high.watermark.checkpoint.interval.ms": 500,
    }

    def setUp(self):
        self.rng = random.Random(SEED)
        self.kills = 0

    def pause(self, most):
        time.sleep(self.rng.uniform(0, most))  # the moment is what is random here, not a wait for a result

    def kill(self, *victims):
        for b in victims:
            b.kill()
        self.kills += len(victims)

    def start(self, *brokers):
        for b in brokers:
            b.start(wait=False)
            self.pause(0.1)
        for b in brokers:
            b.wait_running()

    # --- scenarios ---
    def one(self, load):
        victim = self.rng.choice(self.cluster.brokers)
        self.pause(0.3)
        self.kill(victim)
        if self.rng.random() < 0.5:
            load.wait_acked(300)  # the others go on
        self.start(victim)

    def one_while_it_starts(self, load):
        """Recovery, registration and the return into the ISRs are cut short, too."""
        victim = self.rng.choice(self.cluster.brokers)
        self.kill(victim)
        victim.start(wait=False)
        self.pause(0.1 if self.rng.random() < 0.5 else 4.0)
        self.kill(victim)
        self.start(victim)

    def two_at_once(self, load):
        """Below min.insync.replicas nothing is acknowledged; then all that waited is."""
        victims = self.rng.sample(self.cluster.brokers, 2)
        self.kill(*victims)
        if self.rng.random() < 0.5:
            self.start(victims[0])
            load.wait_acked(300)  # two of three are enough
            self.start(victims[1])
        else:
            self.pause(0.5)
            self.start(*victims)
        load.wait_acked(300)

    def all_at_once(self, load):
        self.kill(*self.cluster.brokers)
        self.start(*self.rng.sample(self.cluster.brokers, 3))
        load.wait_acked(300)

    def one_in_a_drain(self, load):
        """The drained broker, the controller or a bystander."""
        drained = self.rng.choice(self.cluster.brokers)
        c.wait_for("the drain has begun", lambda: self.ask("PUT", drained, {"drain_id": f"drain-{self.kills}"}))
        self.pause(0.05)
        victim = self.rng.choice(self.cluster.brokers)
        self.kill(victim)
        if self.rng.random() < 0.5:
            self.pause(0.5)
        self.start(victim)
        c.wait_for("the drain is undone", lambda: self.ask("DELETE", drained))

    def one_while_zookeeper_is_silent(self, load):
        """Writes are lost on their way, or their replies; leases lapse; sessions may end, of all brokers at once."""
        victim = self.rng.choice(self.cluster.brokers)
        os.kill(self.cluster.zookeeper_pid(), signal.SIGSTOP)
        try:
            self.pause(1.0)
            self.kill(victim)
            self.pause(2.0)
        finally:
            os.kill(self.cluster.zookeeper_pid(), signal.SIGCONT)
        self.start(victim)
        load.wait_acked(300)

    def ask(self, method, broker, body=None):
        """Of a drain, while the controller may be anywhere or gone."""
        try:
            return self.cluster.get_any().request(method, f"/v1/brokers/{broker.id}/drain", body)[0] == 200
        except (OSError, c.ClusterError):
            return False

    # --- what must hold ---
    def assert_replicas_are_equal(self, acked):
        """Each replica has the very bytes of the others, however its segments are cut; and all that was acknowledged is
        in them still, not only when it was read."""
        there = 0
        for p in range(PARTITIONS):
            logs = []
            for b in self.cluster.brokers:
                segments = sorted((b.dir / "data" / f"kills-{p}").glob("*.log"))
                logs.append(b"".join(s.read_bytes() for s in segments))
            self.assertGreater(len(logs[0]), 0)
            self.assertTrue(logs[0] == logs[1] == logs[2], (p, [len(x) for x in logs]))
            there += self.count_records(logs[0])
        self.assertEqual(there, acked)

    @staticmethod
    def count_records(log):
        at = n = 0
        while at < len(log):
            (size,) = struct.unpack_from(">i", log, at + 8)
            (records,) = struct.unpack_from(">i", log, at + 57)
            at, n = at + 12 + size, n + records
        return n

    def test_fifty_kills_under_load_lose_nothing(self):
        print(f"seed {SEED}", flush=True)
        often = {
            self.one: 5,
            self.one_while_it_starts: 2,
            self.two_at_once: 2,
            self.all_at_once: 1,
            self.one_in_a_drain: 3,
            self.one_while_zookeeper_is_silent: 2,
        }
        every = list(often)
        plan = self.rng.sample(every, len(every)) + self.rng.choices(every, list(often.values()), k=KILLS)
        self.cluster.create_topic("kills", PARTITIONS, 3, min_insync_replicas=2)
        self.cluster.wait_in_sync()
        took = collections.defaultdict(list)
        with Load(self.cluster, "kills", PARTITIONS, rate=3000) as load:
            while self.kills < KILLS:
                scenario = plan.pop(0)
                began = time.monotonic()
                scenario(load)
                self.cluster.wait_in_sync()
                took[scenario.__name__].append(time.monotonic() - began)
            load.wait_acked(1000)
            totals = load.finish()
            totals["max_latency_ms"] = load.stats()["max_latency_ms"]
        print(", ".join(f"{len(t)} {name} {sum(t) / len(t):.1f} s (at most {max(t):.1f} s)" for name, t in took.items()))
        print(totals, flush=True)
        self.assertEqual((totals["lost"], totals["out_of_order"], totals["failed"]), (0, 0, 0), (SEED, totals))
        self.assertGreater(totals["acked"], KILLS * 100)
        self.assertLess(totals["max_latency_ms"], 30000, "a message waited for something that was lost")
        self.cluster.wait_in_sync()
        self.assert_replicas_are_equal(totals["acked"])


if __name__ == "__main__":
    unittest.main()
