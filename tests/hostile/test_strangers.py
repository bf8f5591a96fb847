"""Znodes that nobody of ours wrote: the cluster says what it ignores, and goes on, also after a restart."""

import json
import unittest

import cluster as c
import kafka_wire as k
from harness import ClusterCase
from kafka_link import Link
from zk_client import ZooKeeperClient, ZooKeeperError

ASSIGNMENTS = {
    "empty": b"",
    "zeros": b"\0" * 100,
    "half": b'{"version":2,"partitions":{"0":[1',
    "list": b"[]",
    "null": b"null",
    "text": b'"x"',
    "none": b"{}",
    "no-partitions": b'{"version":2,"partitions":{}}',
    "huge-number": b'{"version":2,"partitions":{"2000000000":[1]}}',
    "large-number": b'{"version":2,"partitions":{"999999":[1]}}',
    "negative": b'{"version":2,"partitions":{"-1":[1]}}',
    "not-a-number": b'{"version":2,"partitions":{"x":[1]}}',
    "no-replicas": b'{"version":2,"partitions":{"0":[]}}',
    "negative-replica": b'{"version":2,"partitions":{"0":[-5]}}',
    "twice": b'{"version":2,"partitions":{"0":[1,1,1]}}',
    "replicas-are-text": b'{"version":2,"partitions":{"0":"1"}}',
    "unknown-broker": b'{"version":2,"partitions":{"0":[99999]}}',
    "many-replicas": json.dumps({"version": 2, "partitions": {"0": list(range(1, 5000))}}).encode(),
    "same-number": b'{"version":2,"partitions":{"0":[1],"00":[1]}}',
    "bad-id": b'{"version":3,"topic_id":"AAA","partitions":{"0":[1]}}',
    "deep": b'{"version":2,"partitions":' + b'{"0":' * 100000 + b"1" + b"}" * 100001,
    "utf8": b'{"version":2,"partitions":{"0":[1]},"x":"\xff\xfe"}',
    "large": b"x" * 900000,
}
NAMES = ("sp ace", "ünï", "x" * 250, "x" * 40000, "{}", "-", "%s%n")
STATES = (
    b"",
    b"{",
    b"[]",
    b"\xff" * 50,
    b'{"controller_epoch":1,"leader":-2,"version":1,"leader_epoch":-1,"isr":[1]}',
    b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[]}',
    b'{"controller_epoch":2147483647,"leader":1,"version":1,"leader_epoch":2147483647,"isr":[1]}',
    b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":99999999999999,"isr":[1]}',
    json.dumps({"controller_epoch": 1, "leader": 1, "version": 1, "leader_epoch": 0, "isr": list(range(100000))}).encode(),
)
CONFIGS = (
    b"",
    b"{",
    b"[]",
    b'{"version":1,"config":[]}',
    b'{"version":1,"config":{"retention.ms":{}}}',
    b'{"version":1,"config":{"retention.ms":"-99999999999999999999","segment.bytes":"0","min.insync.replicas":"x"}}',
    b'{"version":1,"config":{"max.message.bytes":"\xff"}}',
    b'{"version":1,"config":{"no.such":"' + b"y" * 70000 + b'"}}',
)
BROKERS = {
    "abc": b"{}",
    "-1": b"{}",
    "2147483648": b"{}",
    "77": b"garbage",
    "78": b'{"endpoints":["PLAINTEXT://:0"],"host":null,"port":-1,"version":5,"timestamp":"x"}',
    "79": b'{"endpoints":["' + b"h" * 100000 + b'"],"host":"h","port":1,"version":5}',
    "80": b'{"endpoints":[],"host":"","port":0,"version":5}',
}


class Strangers(ClusterCase):
    brokers = 2
    sidecars = False
    config = {**ClusterCase.config, "default.replication.factor": 2}
    made = 0

    def setUp(self):
        self.zk = ZooKeeperClient(self.cluster.zookeeper)
        self.addCleanup(self.zk.close)

    def put(self, path, data=b""):
        try:
            self.zk.make(path, data)
        except ZooKeeperError:
            self.zk.set(path, data)

    def assert_works(self):
        """A topic can be made, written and read; everybody is alive."""
        Strangers.made += 1
        name = f"works-{self.made}"
        self.cluster.create_topic(name, 2, 2)
        leader = c.wait_for("it is led", lambda: next((p["leader"] for p in self.cluster.partitions(name) or [] if p["leader"] > 0), None))
        with Link(next(b for b in self.cluster.brokers if b.id == leader)) as link:
            partition = next(p["partition"] for p in self.cluster.partitions(name) if p["leader"] == leader)
            self.assertEqual(link.produce(name, k.batch(), partition=partition)["error"], 0)
            self.assertIn(name, [t["name"] for t in link.metadata(None)["topics"]])
        for b in self.cluster.brokers:
            self.assertTrue(b.running(), f"broker {b.id}")

    def assert_works_now_and_after_a_restart(self):
        self.assert_works()
        for b in self.cluster.brokers:
            b.kill()
        for b in self.cluster.brokers:
            b.start(wait=False)
        for b in self.cluster.brokers:
            b.wait_running()
        c.wait_for("the controller sees both", lambda: {1, 2} <= {b["id"] for b in (self.cluster.get("/v1/cluster") or {"brokers": []})["brokers"]})
        self.assert_works()

    def test_topics(self):
        for name, data in ASSIGNMENTS.items():
            self.put(f"/brokers/topics/a-{name}", data)
        for name in NAMES:
            self.put(f"/brokers/topics/{name}", b'{"version":2,"partitions":{"0":[1,2]}}')
        self.assert_works_now_and_after_a_restart()

    def test_states_of_partitions(self):
        self.cluster.create_topic("stated", len(STATES), 2)
        for i, data in enumerate(STATES):
            self.zk.set(f"/brokers/topics/stated/partitions/{i}/state", data)
        self.assert_works_now_and_after_a_restart()

    def test_configurations(self):
        for i, data in enumerate(CONFIGS):
            self.put(f"/config/topics/configured-{i}", data)
            self.put(f"/config/changes/config_change_{i:010}", data)
            self.put(f"/brokers/topics/configured-{i}", b'{"version":2,"partitions":{"0":[1,2]}}')
        self.put("/config/changes/nonsense", b"\xff")
        self.assert_works_now_and_after_a_restart()

        def led():
            parts = [p for p in self.cluster.partitions() or [] if p["topic"].startswith("configured-")]
            return len(parts) == len(CONFIGS) and all(p["leader"] > 0 for p in parts)

        c.wait_for("topics of a bad configuration are led all the same", led)

    def test_a_topic_without_an_id_gets_one(self):
        # Brokers propose ISR changes by id: without one a replica that was away never came back into the ISR
        self.put("/brokers/topics/without-id", b'{"version":2,"partitions":{"0":[1,2]},"topic_id":null}')

        def in_sync():
            parts = self.cluster.partitions("without-id") or []
            return len(parts) == 1 and sorted(parts[0]["isr"]) == [1, 2]

        c.wait_for("it is led", in_sync)
        self.assertTrue(json.loads(self.zk.get("/brokers/topics/without-id"))["topic_id"])
        away = next(b for b in self.cluster.brokers if b.id != self.cluster.partitions("without-id")[0]["leader"])
        away.kill()
        c.wait_for("it has left the ISR", lambda: len((self.cluster.partitions("without-id") or [{"isr": [1, 2]}])[0]["isr"]) == 1)
        away.start()
        c.wait_for("it is back", in_sync)

    def test_registrations(self):
        for name, data in BROKERS.items():
            self.put(f"/brokers/ids/{name}", data)
        self.assert_works_now_and_after_a_restart()
        ids = [b["id"] for b in self.cluster.get("/v1/cluster")["brokers"]]
        self.assertLessEqual({1, 2}, set(ids))

    def test_requests_of_tools(self):
        for name in ("no-such-topic", "x" * 2000, "ünï", "sp ace"):
            self.put(f"/admin/delete_topics/{name}")
        for data in (b"", b"{", b"[]", b'{"version":1,"partitions":[{"topic":1,"partition":"x"}]}',
                     b'{"version":1,"partitions":[{"topic":"no-such","partition":2147483647,"replicas":[-1,99999]}]}'):
            self.put("/admin/reassign_partitions", data)
            self.put("/admin/preferred_replica_election", data)
            self.assert_works()
        for parent in ("/isr_change_notification", "/log_dir_event_notification"):
            self.put(f"{parent}/x", b"{")
        self.put("/latest_producer_id_block", b"{")
        self.assert_works_now_and_after_a_restart()


if __name__ == "__main__":
    unittest.main()
