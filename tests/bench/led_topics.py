"""Topics whose partitions one broker leads, all of them, and what ZooKeeper knows of when that changed."""

import json
import re

import cluster as c
from zk_client import ZooKeeperClient

PER_TOPIC = 100


class LedTopics:
    """@partitions partitions with @rf replicas that broker @leader is to lead, in topics of @per_topic: a large topic
    costs a client more for each partition that moves than the brokers need for it, and clusters have many topics."""

    def __init__(self, cluster, leader, partitions, rf, per_topic=PER_TOPIC):
        self.cluster, self.leader, self.rf = cluster, leader, rf
        self.sizes = {}
        while partitions > 0:
            self.sizes[f"bench-{len(self.sizes)}"] = min(partitions, per_topic)
            partitions -= per_topic
        self.others = [b.id for b in cluster.brokers if b.id != leader]

    def _assignment(self, n):
        """The leader first; the others in turn, so that leadership spreads evenly over them afterwards."""
        k = len(self.others)
        followers = ([self.others[(i + j) % k] for j in range(self.rf - 1)] for i in range(n))
        return ",".join(":".join(map(str, [self.leader, *f])) for f in followers)

    def create(self, **config):
        for topic, n in self.sizes.items():
            args = ["topics", "create", "--zookeeper", self.cluster.zookeeper, "--topic", topic]
            args += ["--replica-assignment-list", self._assignment(n)]
            if config:
                args += ["--config", ",".join(f"{k}={v}" for k, v in config.items())]
            r = self.cluster.client(*args)
            if r.returncode != 0:
                raise c.ClusterError(f"creating {topic} failed: {r.stdout}{r.stderr}")

    def states(self):
        """(leader, ISR, when it changed last in milliseconds) of each partition; fewer than there are while some have
        no state yet."""
        zk, states = ZooKeeperClient(self.cluster.zookeeper), []
        try:
            for topic, n in self.sizes.items():
                if not zk.get(f"/brokers/topics/{topic}/partitions/{n - 1}/state"):
                    break
                for p in range(n):
                    data, changed_ms = zk.changed_ms(f"/brokers/topics/{topic}/partitions/{p}/state")
                    s = json.loads(data)
                    states.append((s["leader"], s["isr"], changed_ms))
        finally:
            zk.close()
        return states

    def wait(self, what, condition, timeout=600):
        """Until @condition(leader, isr) holds for every partition."""
        n = sum(self.sizes.values())
        c.wait_for(what, lambda: len(s := self.states()) == n and all(condition(x[0], x[1]) for x in s), timeout, 0.2)

    def wait_led(self):
        self.wait(f"broker {self.leader} leads everything, in sync", lambda leader, isr: leader == self.leader and len(isr) == self.rf)

    def lead_again(self):
        """Bring leadership back to the preferred replicas, when they are in sync."""
        self.wait("all partitions are in sync", lambda leader, isr: len(isr) == self.rf)
        r = self.cluster.client("preferred-election", "--zookeeper", self.cluster.zookeeper)
        if r.returncode != 0:
            raise c.ClusterError(f"the election failed: {r.stdout}{r.stderr}")
        self.wait_led()

    def written(self, k):
        """{topic: partitions}: about @k of them, in the first topic, one in the middle, and the last."""
        names = list(self.sizes)
        chosen = sorted({0, len(names) // 2, len(names) - 1})
        each = max(1, k // len(chosen))
        return {names[i]: spread(range(self.sizes[names[i]]), min(each, self.sizes[names[i]])) for i in chosen}

    def moves(self, since_ms):
        """[(milliseconds after @since_ms, leaders left)], as ZooKeeper has it."""
        states = self.states()
        left = len(states)
        points = [(0, left)]
        for at in sorted(s[2] - since_ms for s in states if s[0] != self.leader):
            left -= 1
            points.append((at, left))
        return points


def spread(numbers, k):
    """@k of @numbers, evenly spread."""
    return sorted({numbers[i * len(numbers) // k] for i in range(k)})


def percentile(values, percent):
    ordered = sorted(values)
    return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)] if ordered else 0


def zk_requests(broker):
    """(number, total seconds) of the broker's ZooKeeper requests so far."""
    text = broker.request("GET", "/metrics")[1]

    def value(suffix):
        return sum(float(v) for v in re.findall(rf"^stepdown_zk_request_seconds_{suffix}(?:{{.*}})? (\S+)$", text, re.M))

    return value("count"), value("sum")
