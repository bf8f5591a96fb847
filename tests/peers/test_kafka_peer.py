"""K3: Apache Kafka 3.9 brokers in ZooKeeper mode and Stepdown brokers in one cluster, under either one's controller.

Producers write with acks=all throughout, consumers read everything back. What is true of leaders and ISRs is read from
ZooKeeper, so that neither implementation is asked about itself. Needs Apache Kafka's jars (tests/support/fetch_kafka).
"""

import json
import os
import signal
import shutil
import tempfile
import unittest
from pathlib import Path

import cluster as c
import kafka_peer
import kafka_wire as k
from harness import Load, connect, read_frame
from zk_client import ZooKeeperClient

TOPIC, PARTITIONS = "shared", 6
STEPDOWN = {"replica.lag.time.max.ms": 4000, "controlled.shutdown.retry.backoff.ms": 500}
KAFKA = {
    "replica.lag.time.max.ms": 4000,
    "controlled.shutdown.retry.backoff.ms": 500,
    "min.insync.replicas": 2,
    "inter.broker.protocol.version": "3.9",
    "file.delete.delay.ms": 100,
}


class PeerCase(unittest.TestCase):
    """Three brokers of one cluster. @kinds: which of them is of which kind, in the order in which they start: the
    first one becomes controller."""

    kinds = {}
    session_ms = 6000

    @classmethod
    def setUpClass(cls):
        try:
            kafka_peer.jars()
        except kafka_peer.Missing as e:
            raise unittest.SkipTest(str(e)) from e
        cls.dir = Path(tempfile.mkdtemp(prefix="stepdown-peers-"))
        cls.cluster = c.Cluster(cls.dir / "c")
        cls.zk = None
        cls.failed = False
        try:
            cls.cluster.start_zookeeper()
            for number, kind in cls.kinds.items():
                b = kind(cls.cluster, number)
                cls.cluster.brokers.append(b)
                session = {"zookeeper.session.timeout.ms": cls.session_ms}
                b.configure({**(KAFKA if kind is kafka_peer.KafkaBroker else STEPDOWN), **session})
                b.start()
            cls.zk = ZooKeeperClient(cls.cluster.zookeeper)
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        if cls.zk:
            cls.zk.close()
        cls.cluster.down()
        if os.environ.get("STEPDOWN_KEEP") and cls.failed:
            print(f"kept: {cls.dir}")
        else:
            shutil.rmtree(cls.dir, ignore_errors=True)

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before:
            type(self).failed = True
            for b in self.cluster.brokers:
                print(f"--- broker {b.id} ({type(b).__name__}), last lines ---\n" + "\n".join(b.log.splitlines()[-30:]))

    # --- what ZooKeeper says ---
    def znode(self, path):
        try:
            data = self.zk.get(path)
        except OSError:  # the session ended: nobody keeps it alive while a test does something else
            type(self).zk = ZooKeeperClient(self.cluster.zookeeper)
            data = self.zk.get(path)
        return json.loads(data) if data else None

    def controller(self):
        return (self.znode("/controller") or {}).get("brokerid")

    def states(self, topic=TOPIC):
        """[state of each partition], with its replicas; None while one has none."""
        t = self.znode(f"/brokers/topics/{topic}")
        if not t:
            return None
        states = []
        for number, replicas in sorted(t["partitions"].items(), key=lambda x: int(x[0])):
            s = self.znode(f"/brokers/topics/{topic}/partitions/{number}/state")
            if not s:
                return None
            states.append({**s, "partition": int(number), "replicas": replicas})
        return states

    def led(self, broker_id, topic=TOPIC):
        return [s["partition"] for s in self.states(topic) if s["leader"] == broker_id]

    def wait_in_sync(self, topic=TOPIC):
        def full():
            states = self.states(topic)
            return states and all(s["leader"] in s["isr"] and sorted(s["isr"]) == sorted(s["replicas"]) for s in states)

        try:
            c.wait_for(f"all partitions of {topic} are in sync", full, 40)
        except c.ClusterError as e:
            self.fail(f"{e}: {self.states(topic)}")

    def wait_controller(self, broker_id):
        c.wait_for(f"broker {broker_id} is controller", lambda: self.controller() == broker_id, 40)

    def wait_gone(self, broker_id):
        c.wait_for(f"broker {broker_id} is in no ISR", lambda: all(broker_id not in s["isr"] for s in self.states()), 40)

    # --- verbs ---
    def stepdown(self, *args):
        r = self.cluster.client(*args)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        return r.stdout

    def create(self, topic, partitions=PARTITIONS, rf=3):
        """Through ZooKeeper: whichever controller there is finds the znode (R58)."""
        self.stepdown(
            "topics", "create", "--zookeeper", self.cluster.zookeeper, "--topic", topic, "--partition", partitions, "--replica", rf
        )
        self.wait_in_sync(topic)
        for b in self.cluster.brokers:  # the state in ZooKeeper is a moment ahead of what brokers tell clients
            args = ("topics", "list", "--topic", topic, "--bootstrap", b.address)
            c.wait_for(
                f"broker {b.id} knows {topic}",
                lambda args=args: self.cluster.client(*args).stdout.count("leader: ") == partitions,
                20,
            )

    def prefer(self, *broker_ids):
        """Preferred leaders lead again (R54), and each of @broker_ids is one of some partition."""
        self.wait_in_sync()
        self.stepdown("preferred-election", "--zookeeper", self.cluster.zookeeper)
        c.wait_for("preferred leaders lead", lambda: all(s["leader"] == s["replicas"][0] for s in self.states()), 20)
        for broker_id in broker_ids:
            self.assertTrue(self.led(broker_id), f"broker {broker_id} leads none")

    def delete(self, topic, broker):
        """The controller's own metadata may be a moment behind the ISR that ZooKeeper shows."""
        args = ("topics", "delete", "--topic", topic, "--bootstrap", broker.address)
        c.wait_for(f"{topic} may be deleted", lambda: self.cluster.client(*args).returncode == 0, 20)
        c.wait_for(f"{topic} is deleted", lambda: self.znode(f"/brokers/topics/{topic}") is None, 20)

    @staticmethod
    def replicas_of(topic, broker):
        """Those on disk that are not renamed for deletion."""
        return list((broker.dir / "data").glob(f"{topic}-[0-9]"))

    def load(self):
        return Load(self.cluster, TOPIC, PARTITIONS, rate=600)

    def assert_nothing_lost(self, load):
        load.wait_acked(200)
        totals = load.finish()
        for harm in ("lost", "out_of_order", "failed"):
            self.assertEqual(totals[harm], 0, load.log_file.read_text(errors="replace")[-3000:])
        self.assertGreater(totals["acked"], 400)

    def stop_cleanly(self, broker):
        """SIGTERM: ControlledShutdown. All it led is led by others before it is gone from ZooKeeper."""
        number = broker.id
        epochs = {s["partition"]: s["leader_epoch"] for s in self.states()}
        led = self.led(number)
        self.assertTrue(led)
        broker.stop()
        for s in self.states():
            self.assertNotEqual(s["leader"], number)
            self.assertNotIn(number, s["isr"])
            if s["partition"] in led:
                self.assertGreater(s["leader_epoch"], epochs[s["partition"]])

    def restart(self, broker, load):
        broker.start()
        self.wait_in_sync()
        load.wait_acked(200)


class UnderStepdown(PeerCase):
    """Broker 3 is Apache Kafka; a Stepdown broker is controller."""

    kinds = {1: c.Broker, 2: c.Broker, 3: kafka_peer.KafkaBroker}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.wait_brokers(3)
        cls.kafka = cls.cluster[3]

    def setUp(self):
        self.assertIn(self.controller(), (1, 2))
        if not self.states():
            self.create(TOPIC)
        self.prefer(1, 2, 3)

    def test_apache_kafka_is_drained_by_our_controller_and_leads_again(self):
        """D1, D7: it replicates from ours, leads, and while it drains it is let into no ISR."""
        with self.load() as load:
            ours = ",".join(f"http://127.0.0.1:{self.cluster[i].admin_port}" for i in (1, 2))
            self.stepdown("drain", "--wait", "--broker", 3, "--deadline", "30s", "--socket", "", "--endpoints", ours)
            self.assertEqual(self.led(3), [])
            self.wait_gone(3)
            load.wait_acked(200)
            status, body = self.cluster[1].request("DELETE", "/v1/brokers/3/drain")
            self.assertEqual(status, 200, body)
            self.prefer(1, 2, 3)
            self.assert_nothing_lost(load)

    def test_apache_kafka_hands_over_at_sigterm_and_comes_back(self):
        """R42: ControlledShutdown v3 of Apache Kafka, carried out by our controller."""
        with self.load() as load:
            self.stop_cleanly(self.kafka)
            self.assertIn("Controlled shutdown request returned successfully", self.kafka.log_since_start())
            load.wait_acked(200)
            self.restart(self.kafka, load)
            self.prefer(1, 2, 3)
            self.assert_nothing_lost(load)

    def test_our_followers_return_to_the_isr_of_a_leader_that_is_apache_kafka(self):
        """Kafka's AlterPartition, in both directions, is carried out by our controller."""
        follower = self.cluster[next(i for i in (1, 2) if i != self.controller())]
        with self.load() as load:
            follower.stop()
            self.assertTrue(self.led(3))
            load.wait_acked(200)
            self.restart(follower, load)
            os.kill(follower.pid(), signal.SIGSTOP)
            # Its session lasts longer than the leader lets a silent follower stay.
            c.wait_for(
                "Apache Kafka shrinks the ISR",
                lambda: all(follower.id not in s["isr"] for s in self.states() if s["leader"] == 3),
                20,
            )
            os.kill(follower.pid(), signal.SIGCONT)
            self.prefer(1, 2, 3)
            self.assert_nothing_lost(load)

    def test_apache_kafka_gets_its_producer_ids_from_ours(self):
        """KIP-730: AllocateProducerIds. Ids of all brokers are different."""

        def producer_id(broker):
            with connect(broker) as s:
                s.sendall(k.frame(22, 0, k.string(None) + k.i32(60000)))
                r = k.answer(22, 0, read_frame(s))[1]
                r.i32()
                return (r.i16() == 0, r.i64())  # an error: it has asked for a block, and wants to be asked again

        ids = [c.wait_for("there is an id", lambda b=b: (a := producer_id(b))[0] and a, 20) for b in self.cluster.brokers for _ in range(3)]
        self.assertEqual(len(set(ids)), 9, ids)

    def test_a_topic_is_deleted_on_apache_kafka_too(self):
        """StopReplica with delete; and a new topic of that name is another one (topic ids)."""
        self.create("brief", 3)
        c.wait_for("Apache Kafka has made it", lambda: len(self.replicas_of("brief", self.kafka)) == 3, 20)
        self.delete("brief", self.cluster[1])
        c.wait_for("Apache Kafka has deleted it", lambda: not self.replicas_of("brief", self.kafka), 20)
        self.create("brief", 3)

    def test_z_apache_kafka_becomes_controller_when_ours_ends_and_hands_back(self):
        """One znode layout: each takes over what the other has left, in the middle of the load."""
        with self.load() as load:
            first = self.cluster[self.controller()]
            other = self.cluster[3 - first.id]
            other.stop()
            first.kill()  # nobody but Apache Kafka is left
            self.wait_controller(3)
            first.start()
            other.start()
            self.wait_in_sync()
            load.wait_acked(200)
            self.kafka.kill()
            c.wait_for("ours is controller again", lambda: self.controller() in (1, 2), 40)
            self.restart(self.kafka, load)
            self.prefer(1, 2, 3)
            self.assert_nothing_lost(load)


class UnderApacheKafka(PeerCase):
    """Brokers 2 and 3 are ours; Apache Kafka is controller."""

    kinds = {1: kafka_peer.KafkaBroker, 2: c.Broker, 3: c.Broker}
    session_ms = 18000  # nobody is killed here, and a busy machine must not make another one controller

    def setUp(self):
        self.wait_controller(1)
        if not self.states():
            self.create(TOPIC)
        self.prefer(1, 2, 3)

    def test_ours_hand_over_at_sigterm_and_come_back(self):
        """Our ControlledShutdown, Kafka's LeaderAndIsr, UpdateMetadata and StopReplica; our AlterPartition when the
        other one of ours returns."""
        with self.load() as load:
            for number in (2, 3):
                b = self.cluster[number]
                seen = len(b.log)
                self.stop_cleanly(b)
                self.assertIn('"handover-complete"', b.log[seen:])
                load.wait_acked(200)
                self.restart(b, load)
                self.prefer(1, 2, 3)
            self.assert_nothing_lost(load)

    def test_a_drain_from_outside_goes_over_kafkas_protocol(self):
        """The HTTP API says that it has no controller of its own kind; the old tool's way works (R43)."""
        status, body = self.cluster[2].request("PUT", "/v1/brokers/2/drain", {"reason": "test"})
        self.assertEqual((status, body["error"]), (503, "no_controller"), body)
        with self.load() as load:
            self.stepdown("shutdown-broker", "--broker", 2, "--zookeeper", self.cluster.zookeeper, "--num-retries", 10)
            self.assertEqual(self.led(2), [])
            load.wait_acked(200)
            self.cluster[2].stop()
            self.restart(self.cluster[2], load)
            self.prefer(1, 2, 3)
            self.assert_nothing_lost(load)

    def test_our_leaders_shrink_and_expand_isrs_through_apache_kafka(self):
        with self.load() as load:
            b = self.cluster[3]
            os.kill(b.pid(), signal.SIGSTOP)
            c.wait_for("broker 2 shrinks its ISRs", lambda: all(3 not in s["isr"] for s in self.states() if s["leader"] == 2), 20)
            os.kill(b.pid(), signal.SIGCONT)
            self.prefer(1, 2, 3)
            self.assert_nothing_lost(load)

    def test_a_topic_is_deleted_on_ours_too(self):
        self.create("brief", 3)
        self.delete("brief", self.cluster[2])
        for number in (2, 3):
            b = self.cluster[number]
            c.wait_for(f"broker {number} has deleted it", lambda b=b: not self.replicas_of("brief", b), 20)
        self.create("brief", 3)

    def test_z_ours_is_controller_while_apache_kafka_restarts(self):
        with self.load() as load:
            self.stop_cleanly(self.cluster[1])
            c.wait_for("one of ours is controller", lambda: self.controller() in (2, 3), 40)
            load.wait_acked(200)
            self.restart(self.cluster[1], load)
            self.prefer(1, 2, 3)
            self.assert_nothing_lost(load)


if __name__ == "__main__":
    unittest.main()
