"""The controller killed, paused past its session, and cut off from ZooKeeper, at any moment of a drain, a reassignment
and a topic deletion, under load.

Each run is decided by a seed of its own, which is printed: STEPDOWN_SEED=N STEPDOWN_RUNS=1 repeats it (the moment of the
fault and what it hits; not the scheduling of processes). Without STEPDOWN_RUNS: each fault with each operation once,
with fixed seeds, and one run with a random one. The whole loop: STEPDOWN_RUNS=200.

What must hold is checked against ZooKeeper's own transaction log, which has every write in order.
"""

import collections
import itertools
import json
import os
import random
import signal
import threading
import time
import unittest

import cluster as c
import tcp_proxy
import zk_txnlog
from harness import ClusterCase, Load
from zk_client import ZooKeeperClient, ZooKeeperError

RUNS = int(os.environ.get("STEPDOWN_RUNS", "0"))
SEED = int(os.environ.get("STEPDOWN_SEED", "0"))
FAULTS, OPERATIONS = ("kill", "pause", "depose", "silence", "refuse"), ("drain", "reassign", "delete")
PARTITIONS = 12


class ProxiedCluster(c.Cluster):
    """Each broker reaches ZooKeeper through a proxy of its own."""

    proxies = None

    def zookeeper_for(self, broker):
        self.proxies = self.proxies or {}
        self.proxies[broker.id] = tcp_proxy.Proxy(lambda: self.zookeeper)
        return self.proxies[broker.id].address

    def down(self):
        super().down()
        for p in (self.proxies or {}).values():
            p.close()


class Watch(threading.Thread):
    """Asks all brokers how the drain stands, all the time, and remembers who said "0 remaining" and when (I16)."""

    def __init__(self, case):
        super().__init__(daemon=True)
        self.case, self.target, self.claims, self.ended = case, None, [], False

    def run(self):
        while not self.ended:
            for b in self.case.cluster.brokers:
                target = self.target
                if target:
                    self.ask(b, *target)
            time.sleep(0.005)

    def ask(self, b, drained, drain_id):
        before = time.time()
        try:
            status, s = b.request("GET", f"/v1/brokers/{drained}/drain", timeout=0.3)
        except (OSError, ValueError, c.ClusterError, c.http.client.HTTPException):
            return
        if status == 200 and s.get("drain_id") == drain_id and s["leaders_remaining"] == 0 and not s.get("error"):
            self.claims.append((before, time.time(), drained, b.id, s["state"]))


class History:
    """What the transaction log says of the controllers and of the partitions' states."""

    def __init__(self):
        self.epochs, self.version, self.highest = [], -1, 0  # of /controller_epoch; of what a state was written with
        self.states, self.led = {}, collections.defaultdict(list)  # led: broker -> [(time, how many)]
        self.n_led, self.wrong, self.n_writes = collections.Counter(), [], 0

    def add(self, txn):
        checked = {op.version for op in txn.ops if op.type == zk_txnlog.CHECK and op.path == "/controller_epoch"}
        for op in txn.ops:
            if op.path == "/controller_epoch" and op.data:
                self.controller(op)
            elif op.path.startswith("/brokers/topics/") and op.path.endswith("/state"):
                self.state(txn, op, checked)

    def controller(self, op):
        if self.epochs and int(op.data) <= self.epochs[-1]:
            self.wrong.append(("controller epoch not above the one before", op))
        self.epochs.append(int(op.data))
        self.version = op.version

    def state(self, txn, op, checked):
        before = self.states.pop(op.path, None)
        if op.type != zk_txnlog.DELETE:
            s = json.loads(op.data)
            self.n_writes += 1
            if self.version + 1 not in checked:
                self.wrong.append(("written without a check of the controller's epoch as it was", txn))
            if s["controller_epoch"] < self.highest or s["controller_epoch"] != self.epochs[-1]:
                self.wrong.append(("written by a controller that was replaced", self.epochs[-1], txn))
            if not s["isr"] or (s["leader"] >= 0 and s["leader"] not in s["isr"]):
                self.wrong.append(("leader outside the ISR, or nobody in it", txn))
            if before and s["leader_epoch"] < before["leader_epoch"]:
                self.wrong.append(("leader epoch goes back", txn))
            self.highest = max(self.highest, s["controller_epoch"])
            self.states[op.path] = s
        old, new = before and before["leader"], self.states.get(op.path, {}).get("leader")
        if old != new:
            for broker, change in ((old, -1), (new, 1)):
                if broker is not None and broker >= 0:
                    self.n_led[broker] += change
                    self.led[broker].append((txn.time_ms / 1000, self.n_led[broker]))

    def led_throughout(self, broker, begin, end):
        """Did @broker lead something at every moment from @begin to @end?"""
        at_begin = 0
        for when, n in self.led[broker]:
            if when <= begin:
                at_begin = n
            elif when <= end and n == 0:
                return False
        return at_begin > 0


class ControllerFaults(ClusterCase):
    brokers = 4
    sidecars = False
    cluster_class = ProxiedCluster
    config = {
        **ClusterCase.config,
        "zookeeper.session.timeout.ms": 2000,
        "replica.lag.time.max.ms": 2000,
        "controlled.shutdown.max.retries": 1,
    }

    # --- what ZooKeeper has ---
    def zk(self):
        return ZooKeeperClient(self.cluster.zookeeper)

    def znode(self, path):
        z = self.zk()
        try:
            data = z.get(path)
        finally:
            z.close()
        return json.loads(data) if data else None

    def epoch(self):
        return self.znode("/controller_epoch")

    def make_znode(self, path, data):
        z = self.zk()
        try:
            z.make(path, data)
        except ZooKeeperError:
            pass  # it is there: what was asked for before is under way
        finally:
            z.close()

    # --- operations: each begins something and returns what to wait for ---
    def begin_drain(self, n, rng):
        drained = rng.choice(self.cluster.brokers)
        ids = (f"run-{n}-{i}" for i in itertools.count())
        drain_id = next(ids)
        self.watch.target = (drained.id, drain_id)

        def put():
            nonlocal drain_id
            for b in self.cluster.brokers:
                if b is not self.stopped and b.running():
                    try:
                        status, body = b.request("PUT", f"/v1/brokers/{drained.id}/drain", {"drain_id": drain_id}, timeout=2)
                        # The fault hit who drained: that drain ended with its registration (D2). Nothing else ends one.
                        if status == 410 and drained is self.victim and self.fault != "depose":
                            drain_id = next(ids)
                            self.watch.target = (drained.id, drain_id)
                        return status == 200 and body
                    except (OSError, ValueError, c.ClusterError, c.http.client.HTTPException):
                        continue
            return None

        def ended():
            s = put()
            return s and s["state"] == "drained" and s["leaders_remaining"] == 0

        def undo():
            self.watch.target = None
            c.wait_for("the drain is undone", lambda: self.cluster.get_any().request("DELETE", f"/v1/brokers/{drained.id}/drain")[0] == 200)

        threading.Thread(target=put, daemon=True).start()
        return "drained", ended, undo

    def begin_reassign(self, n, rng):
        del n
        wanted = {str(p): rng.sample([b.id for b in self.cluster.brokers], 3) for p in range(PARTITIONS)}
        request = {"version": 1, "partitions": [{"topic": "moved", "partition": int(p), "replicas": r} for p, r in wanted.items()]}
        threading.Thread(target=self.make_znode, args=("/admin/reassign_partitions", json.dumps(request).encode()), daemon=True).start()

        def ended():
            if self.znode("/admin/reassign_partitions") is not None:
                return False
            t = self.znode("/brokers/topics/moved")
            if t.get("adding_replicas") or t.get("removing_replicas"):
                return False
            if t["partitions"] != wanted:  # refused: the broker the fault hit was not alive when it was read
                self.refused += 1
                self.make_znode("/admin/reassign_partitions", json.dumps(request).encode())
                return False
            return True

        return "reassigned", ended, lambda: None

    def begin_delete(self, n, rng):
        del rng
        topic = f"gone-{n}"
        self.cluster.create_topic(topic, PARTITIONS, 3)
        threading.Thread(target=self.make_znode, args=(f"/admin/delete_topics/{topic}", b""), daemon=True).start()

        def ended():
            return (self.znode(f"/brokers/topics/{topic}") is None
                    and not any(list((b.dir / "data").glob(f"{topic}-{'[0-9]' * d}")) for d in (1, 2) for b in self.cluster.brokers))

        return "deleted", ended, lambda: None

    # --- faults: until another is controller, and a moment longer ---
    def replaced(self, before):
        c.wait_for("another controller is elected", lambda: self.epoch() > before, 30)

    def fenced(self, b):
        """How many of its writes @b has seen refused since it was started."""
        for text in b.request("GET", "/metrics")[1].splitlines():
            if text.startswith("stepdown_controller_fenced_total "):
                return int(float(text.split()[1]))
        raise AssertionError("no metric stepdown_controller_fenced_total")

    def fault_kill(self, victim, before, rng):
        self.n_fenced += self.fenced(victim)
        victim.kill()
        if rng.random() < 0.5:
            self.replaced(before)
        victim.start(wait=False)
        victim.wait_running()

    def fault_pause(self, victim, before, rng):
        victim.signal(signal.SIGSTOP)
        self.stopped = victim
        try:
            self.replaced(before)
            time.sleep(rng.uniform(0, 0.5))
        finally:
            victim.signal(signal.SIGCONT)
            self.stopped = None

    def fault_depose(self, victim, before, rng):
        """Replaced while it is paused, but its session lives on: nothing but the epoch refuses what it has begun."""
        del rng
        victim.signal(signal.SIGSTOP)
        self.stopped = victim
        z = self.zk()
        try:
            z.delete("/controller")
            self.replaced(before)
        finally:
            z.close()
            victim.signal(signal.SIGCONT)
            self.stopped = None

    def cut(self, victim, before, rng, mode):
        proxy = self.cluster.proxies[victim.id]
        if mode == tcp_proxy.REFUSE:
            proxy.cut()
        else:
            proxy.set(mode)
        try:
            self.replaced(before)
            time.sleep(rng.uniform(0, 0.5))
        finally:
            proxy.set(tcp_proxy.PASS)

    def fault_silence(self, victim, before, rng):
        self.cut(victim, before, rng, tcp_proxy.SILENT)

    def fault_refuse(self, victim, before, rng):
        self.cut(victim, before, rng, tcp_proxy.REFUSE)

    # --- a run ---
    def one(self, n, seed, fault=None, operation=None):
        rng = random.Random(seed)
        chosen = rng.choice(FAULTS), rng.choice(OPERATIONS)
        fault, operation = fault or chosen[0], operation or chosen[1]
        moment = rng.choice((0, 0.01, 0.05, 0.2, 0.5)) * rng.random()
        began = time.monotonic()
        victim, before = self.cluster.controller(), self.epoch()
        self.victim, self.fault = victim, fault
        done, ended, undo = getattr(self, "begin_" + operation)(n, rng)
        time.sleep(moment)  # the phase is what is random here, not a wait for a result
        getattr(self, "fault_" + fault)(victim, before, rng)
        c.wait_for(f"it is {done} (seed {seed})", ended, 60, 0.05)
        undo()
        self.cluster.wait_brokers(self.brokers)
        self.cluster.wait_in_sync()
        self.load.wait_acked(20)
        s = self.load.stats()
        self.assertEqual((s["lost_so_far"], s["out_of_order"], s["failed"]), (0, 0, 0), (seed, s))
        print(f"run {n} seed {seed}: {fault} {moment * 1000:.0f} ms into {operation}, {time.monotonic() - began:.1f} s", flush=True)

    def plan(self):
        if RUNS or SEED:
            first = SEED or random.randrange(1 << 30)
            return [(first + i, None, None) for i in range(RUNS or 1)]
        fixed = [(i, f, o) for i, (f, o) in enumerate((f, o) for f in FAULTS for o in OPERATIONS)]
        return [*fixed, (random.randrange(1 << 30), None, None)]

    def test_there_is_one_controller_and_what_it_began_is_ended(self):
        self.stopped, self.refused, self.n_fenced = None, 0, 0
        self.cluster.create_topic("load", PARTITIONS, 3, min_insync_replicas=2)
        self.cluster.create_topic("moved", PARTITIONS, 3)
        self.cluster.wait_in_sync()
        self.watch = Watch(self)
        self.watch.start()
        with Load(self.cluster, "load", PARTITIONS, rate=200) as self.load:
            for n, (seed, fault, operation) in enumerate(self.plan()):
                self.one(n, seed, fault, operation)
            totals = self.load.finish()
        self.watch.ended = True
        self.watch.join()
        self.assertEqual((totals["lost"], totals["out_of_order"], totals["failed"]), (0, 0, 0), totals)
        self.check_history()

    def check_history(self):
        h = History()
        for txn in zk_txnlog.read(self.cluster.dir / "zk" / "log"):
            h.add(txn)
        too_low = [claim for claim in self.watch.claims if h.led_throughout(claim[2], claim[0] - 0.001, claim[1] + 0.02)]
        logs = "".join(b.log for b in self.cluster.brokers)
        print(f"{len(h.epochs)} controllers, {h.n_writes} states written, {len(self.watch.claims)} times 0 remaining; refused: "
              f"{self.n_fenced + sum(map(self.fenced, self.cluster.brokers))} writes of replaced controllers, "
              f"{logs.count('stale-controller-epoch')} of their requests, {self.refused} reassignments to a dead broker", flush=True)
        self.assertEqual(h.wrong[:3], [])
        self.assertEqual(too_low[:3], [])
        self.assertGreater(h.n_writes, 100)


if __name__ == "__main__":
    unittest.main()
