"""Settings that change while brokers run (AlterConfigs, IncrementalAlterConfigs, DescribeConfigs) with Kafka's own admin
client, and what they are for first of all: a reassignment that leaves room for everybody else (KIP-73)."""

import json
import time
import unittest
import urllib.request

import cluster as c
from harness import ClusterCase, Load
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.errors import InvalidConfigurationError, KafkaError
from kafka.protocol.admin import CreateTopicsRequest
from zk_client import ZooKeeperClient

TOPIC, BROKER = ConfigResourceType.TOPIC, ConfigResourceType.BROKER
FROM_TOPIC, FROM_BROKER, FROM_ALL, FROM_FILE, FROM_DEFAULT = 1, 2, 3, 4, 5
MIB = 1 << 20


class Configs(ClusterCase):
    sidecars = False
    config = {"zookeeper.session.timeout.ms": 6000, "replica.lag.time.max.ms": 3000, "log.retention.ms": 7200000}

    def setUp(self):
        self.start_stopped()

    @property
    def zk(self):
        """A session of its own for each question: nobody keeps one alive."""
        client = ZooKeeperClient(self.cluster.zookeeper)
        self.addCleanup(client.close)
        return client

    def admin(self, broker_id=None):
        where = self.cluster[broker_id].address if broker_id else self.cluster.bootstrap.split(",")
        admin = KafkaAdminClient(bootstrap_servers=where, client_id="test", request_timeout_ms=30000)
        self.addCleanup(admin.close)
        return admin

    def other(self):
        """The id of a broker that is not the controller."""
        controller = self.cluster.controller().id
        return next(b.id for b in self.cluster.brokers if b.id != controller)

    def described(self, admin, kind, name, keys=None):
        """Name -> (value, source, read-only)."""
        [response] = admin.describe_configs([ConfigResource(kind, name, configs=dict.fromkeys(keys) if keys else None)])
        [(code, message, _, _, configs)] = response.resources
        self.assertEqual(code, 0, message)
        return {e[0]: (e[1], e[3], e[2]) for e in configs}

    def znode(self, path):
        return json.loads(self.zk.get(path))["config"]

    def altered(self, admin, kind, name, **settings):
        """What AlterConfigs answers: code and sentence; the client raises neither."""
        response = admin.alter_configs([ConfigResource(kind, name, configs=settings)])
        [(code, message, _, _)] = response.resources
        return code, message

    def test_a_topic_s_settings_with_kafka_s_admin_client(self):
        """Any broker takes them, the controller writes them as Kafka does, and every broker tells the same."""
        admin = self.admin()
        answer = admin.create_topics([NewTopic("set", 1, 3, topic_configs={"retention.ms": "60000"})])
        self.assertEqual([e[1] for e in answer.topic_errors], [0])
        before = self.described(admin, TOPIC, "set")
        self.assertEqual(before["retention.ms"], ("60000", FROM_TOPIC, False))
        self.assertEqual(before["cleanup.policy"], ("delete", FROM_DEFAULT, False))
        self.assertEqual(len(before), 28)
        notified = len(self.zk.children("/config/changes"))
        for broker in self.cluster.brokers:
            bytes_ = str(1 << 20 | broker.id)
            self.assertEqual(self.altered(self.admin(broker.id), TOPIC, "set", **{"max.message.bytes": bytes_}), (0, None))
            self.assertEqual(self.znode("/config/topics/set"), {"max.message.bytes": bytes_})
            after = self.described(self.admin(self.other()), TOPIC, "set", ["max.message.bytes", "retention.ms"])
            self.assertEqual(after, {"max.message.bytes": (bytes_, FROM_TOPIC, False),
                                     "retention.ms": ("7200000", FROM_FILE, False)})
        self.assertEqual(len(self.zk.children("/config/changes")), notified + 3)
        newest = max(self.zk.children("/config/changes"))
        self.assertEqual(json.loads(self.zk.get(f"/config/changes/{newest}")), {"version": 2, "entity_path": "topics/set"})

    def test_what_is_wrong_is_refused_and_nothing_is_written(self):
        admin = self.admin(self.other())
        admin.create_topics([NewTopic("kept", 1, 1)])
        for name, value, sentence in (
            ("retention.msec", "1", "Unknown topic config name: retention.msec; did you mean retention.ms?"),
            ("retention.ms", "soon", "retention.ms: 'soon' is not a whole number from -1 to 9223372036854775807"),
            ("leader.replication.throttled.replicas", "0-1", "leader.replication.throttled.replicas: '0-1' is not valid; it "
             "must be '*' for all, or replicas as partition:broker,partition:broker such as 0:1,0:2,1:2"),
        ):
            self.assertEqual(self.altered(admin, TOPIC, "kept", **{"segment.ms": "1000", name: value}), (40, sentence))
        self.assertEqual(self.znode("/config/topics/kept"), {})
        self.assertEqual(self.altered(admin, TOPIC, "none", **{"segment.ms": "1"})[0], 3)
        own = str(self.other())
        self.assertEqual(self.altered(admin, BROKER, own, **{"log.segment.bytes": "1000"}), (
            40, "log.segment.bytes cannot be changed while the broker runs: set it in the broker's configuration file and "
            "restart it"))
        self.assertEqual(self.altered(admin, BROKER, "one")[0], 42)

    def test_a_broker_s_settings(self):
        """Read-only what its file says; what is dynamic holds at once, its own before those of all brokers."""
        id_ = self.other()
        admin = self.admin(id_)
        rate = "leader.replication.throttled.rate"
        told = self.described(admin, BROKER, str(id_))
        self.assertEqual(told["broker.id"], (str(id_), FROM_FILE, True))
        self.assertEqual(told["num.partitions"], ("1", FROM_DEFAULT, True))
        self.assertEqual(told[rate], ("9223372036854775807", FROM_DEFAULT, False))
        self.assertEqual(self.limit(id_), -1)
        self.assertEqual(self.altered(admin, BROKER, "", **{rate: "1000"}), (0, None))
        c.wait_for("all brokers have it", lambda: all(self.limit(b.id) == 1000 for b in self.cluster.brokers))
        self.assertEqual(self.altered(admin, BROKER, str(id_), **{rate: "2000"}), (0, None))
        c.wait_for("one has its own", lambda: self.limit(id_) == 2000)
        self.assertEqual(self.znode(f"/config/brokers/{id_}"), {rate: "2000"})
        self.assertEqual(self.znode("/config/brokers/<default>"), {rate: "1000"})
        self.assertEqual(self.described(admin, BROKER, str(id_), [rate]), {rate: ("2000", FROM_BROKER, False)})
        self.cluster[id_].stop()
        self.cluster[id_].start()
        c.wait_for("it holds after a restart", lambda: self.limit(id_) == 2000)
        admin = self.admin(id_)
        self.assertEqual(self.altered(admin, BROKER, str(id_)), (0, None))  # what is not named goes
        c.wait_for("its own is gone", lambda: self.limit(id_) == 1000)
        self.assertEqual(self.described(admin, BROKER, str(id_), [rate]), {rate: ("1000", FROM_ALL, False)})
        self.assertEqual(self.altered(admin, BROKER, ""), (0, None))
        c.wait_for("none is left", lambda: all(self.limit(b.id) == -1 for b in self.cluster.brokers))

    # --- throttles ---

    def fill(self, topic, mib):
        """Records of 50 kB that do not compress, so that batches have a size to be reckoned with."""
        producer = KafkaProducer(bootstrap_servers=self.cluster.bootstrap.split(","), acks=-1, batch_size=200000,
                                 max_request_size=1000000)
        block = bytes(range(250)) * 200
        for _ in range(mib * MIB // len(block)):
            producer.send(topic, block, partition=0)
        producer.flush()
        producer.close()

    def size_on(self, broker_id, topic):
        """Bytes of a replica on disk."""
        return sum(f.stat().st_size for f in (self.cluster[broker_id].dir / "data").glob(f"{topic}-*/*.log"))

    def reassign(self, *args):
        r = self.cluster.client("reassign", "--manual-assignment-json-file", self.dir / "plan.json", *args, "--bootstrap",
                                self.cluster.bootstrap)
        return r.returncode, r.stdout, r.stderr

    def test_a_throttled_move(self):
        """A move at 2 MB/s takes about as long as it should. Who writes with acks=all to the same brokers does not notice,
        although every replica of that topic counts for the throttle: those in sync are never held back. With the throttle
        raised the rest goes at once, and --verify leaves nothing of it."""
        rate = 2_000_000
        self.cluster.create_topic("busy", 6, 3, min_insync_replicas=3)
        self.cluster.client("topics", "create", "--topic", "big", "--replica-assignment-list", "1", "--bootstrap",
                            self.cluster.bootstrap)
        self.fill("big", 16)
        self.cluster.wait_in_sync()
        whole = self.size_on(1, "big")
        self.assertEqual(self.altered(self.admin(), TOPIC, "busy", **{
            "min.insync.replicas": "3", "leader.replication.throttled.replicas": "*",
            "follower.replication.throttled.replicas": "*"}), (0, None))
        for b in (1, 2):  # the tool does the same, but brokers hear of it a moment later, and the disk is fast
            self.assertEqual(self.altered(self.admin(b), BROKER, str(b), **{
                f"{side}.replication.throttled.rate": str(rate) for side in ("leader", "follower")}), (0, None))
        c.wait_for("both know", lambda: self.limit(1) == rate and self.limit(2, "follower") == rate)
        (self.dir / "plan.json").write_text(json.dumps({"partitions": [{"topic": "big", "partition": 0, "replicas": [1, 2]}]}))
        with Load(self.cluster, "busy", 6, rate=500) as load:
            status, out, err = self.reassign("--execute", "--throttle", rate)
            self.assertEqual((status, err), (0, ""), out)
            c.wait_for("it has begun", lambda: self.size_on(2, "big") > MIB)
            since, had, acked = time.monotonic(), self.size_on(2, "big"), load.acked()
            self.assertEqual(self.limit(3), -1)
            self.assertEqual(self.reassign("--verify")[0], 75)
            c.wait_for("it is half through", lambda: self.size_on(2, "big") > whole / 2)
            took, got, acked = time.monotonic() - since, self.size_on(2, "big") - had, load.acked() - acked
            self.assertLess(got / took, rate * 2)
            self.assertGreater(got / took, rate / 2)
            self.assertGreater(acked / took, 500 / 2)
            self.assertTrue(all(len(p["isr"]) == 3 for p in self.cluster.partitions("busy")))
            since, had = time.monotonic(), self.size_on(2, "big")
            self.assertEqual(self.reassign("--execute", "--additional", "--throttle", 10**9)[::2], (0, ""))
            c.wait_for("all is there", lambda: self.size_on(2, "big") >= whole)
            self.assertGreater((whole - had) / (time.monotonic() - since), rate * 2)
            self.cluster.wait_in_sync()
            totals = load.finish()
        self.assertEqual((totals["lost"], totals["failed"]), (0, 0), totals)
        c.wait_for("it is over", lambda: (self.reassign("--verify")[0] == 0))
        c.wait_for("no limit is left", lambda: all(
            self.limit(b.id, side) == -1 for b in self.cluster.brokers for side in ("leader", "follower")))
        self.assertEqual([self.znode(f"/config/{e}") for e in ("topics/big", "brokers/1", "brokers/2")], [{}, {}, {}])

    def metric(self, broker_id, name):
        url = f"http://127.0.0.1:{self.cluster[broker_id].admin_port}/metrics"
        with urllib.request.urlopen(url, timeout=10) as r:
            for line in r.read().decode().splitlines():
                if line.startswith(name + " "):
                    return float(line.rsplit(" ", 1)[1])
        return None

    def limit(self, broker_id, side="leader"):
        return self.metric(broker_id, f'stepdown_replication_throttle_bytes_per_second{{side="{side}"}}')


if __name__ == "__main__":
    unittest.main()
