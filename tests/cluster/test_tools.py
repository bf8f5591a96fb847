"""The replication tools on a real cluster: over Kafka's protocol, and through ZooKeeper as the tools of Kafka 0.8."""

import json
import subprocess
import unittest

import cluster as c
from harness import ClusterCase, Load

OK, FAILED, INCOMPLETE = 0, 1, 75


class Tools(ClusterCase):
    sidecars = False

    def setUp(self):
        self.start_stopped()

    def run_tool(self, *args, way):
        where = ("--zookeeper", self.cluster.zookeeper) if way == "zookeeper" else ("--bootstrap", self.cluster.bootstrap)
        r = subprocess.run([str(self.cluster.build / "broker" / "cli" / "stepdown"), *map(str, args), *where],
                           capture_output=True, text=True, timeout=60)
        return r.returncode, r.stdout, r.stderr

    def listed(self, topic, way, *flags):
        """Lines of `topics list`, None while the topic is not there yet."""
        status, out, _ = self.run_tool("topics", "list", "--topic", topic, *flags, way=way)
        return out.splitlines() if status == OK else None

    def wait_listed_alike(self, topic, n):
        """Brokers hear of a change a moment after ZooKeeper has it; then both ways say the same."""
        def alike():
            a, b = self.listed(topic, "kafka"), self.listed(topic, "zookeeper")
            return a if a and a == b and len(a) == n and not any("leader: none" in line for line in a) else None

        return c.wait_for(f"both ways list {topic} alike", alike)

    def test_a_topic_made_through_zookeeper_is_as_good_as_any(self):
        """R58: the controller finds the znode, elects leaders, and the topic can be written to."""
        status, out, err = self.run_tool("topics", "create", "--topic", "by-znode", "--partition", 6, "--replica", 3,
                                         "--config", "min.insync.replicas=2", way="zookeeper")
        self.assertEqual((status, out, err), (OK, "creation succeeded!\n", ""))
        self.wait_listed_alike("by-znode", 6)
        self.cluster.wait_in_sync()
        with Load(self.cluster, "by-znode", 6) as load:
            load.wait_acked(1000)
            totals = load.finish()
        self.assertEqual((totals["lost"], totals["failed"]), (0, 0), totals)

    def test_a_topic_made_and_deleted_over_the_protocol(self):
        status, out, _ = self.run_tool("topics", "create", "--topic", "by-hand", "--replica-assignment-list", "3:1,2:3",
                                       way="kafka")
        self.assertEqual((status, out), (OK, "creation succeeded!\n"))
        lines = self.wait_listed_alike("by-hand", 2)
        self.assertEqual([line.split("\t")[2:4] for line in lines],
                         [["leader: 3", "replicas: 3,1"], ["leader: 2", "replicas: 2,3"]])
        status, _, err = self.run_tool("topics", "create", "--topic", "by-hand", way="kafka")
        self.assertEqual((status, err), (FAILED, "creation failed because of topic by-hand already exists\n"))
        self.assertEqual(self.run_tool("topics", "delete", "--topic", "by-hand", way="kafka"),
                         (OK, "deletion succeeded!\n", ""))
        c.wait_for("the topic is gone", lambda: self.listed("by-hand", "zookeeper") is None)

    def test_shutdown_broker(self):
        """R43–R45: leadership goes, the process stays; the second broker in a row has to wait for the first (D3)."""
        self.cluster.create_topic("moved", 12, 2)
        self.cluster.wait_in_sync()
        self.assertEqual(self.run_tool("shutdown-broker", "--broker", 1, way="zookeeper"),
                         (OK, "Shutdown status: complete\n", ""))
        self.assertEqual(self.leaders(1), [])
        self.assertTrue(self.cluster[1].running())
        under = self.listed("moved", "zookeeper", "--under-replicated-partitions")
        self.assertEqual(len(under), 8)  # of 12 partitions on 2 of 3 brokers, two thirds have one on broker 1
        status, out, err = self.run_tool("shutdown-broker", "--broker", 2, "--json", way="kafka")
        answer = json.loads(out)
        self.assertEqual((status, answer["status"], answer["attempts"]), (INCOMPLETE, "incomplete", 1))
        self.assertEqual((answer["error"], answer["remaining"]), ("OPERATION_NOT_ATTEMPTED", []))
        self.assertIn("the drain slot is held by broker 1 (epoch ", err)
        self.undo(1)
        self.cluster.wait_in_sync()

    def test_an_unknown_broker(self):
        for way in ("kafka", "zookeeper"):
            self.assertEqual(self.run_tool("shutdown-broker", "--broker", 77, way=way),
                             (FAILED, "", "stepdown shutdown-broker: broker 77 is not registered\n"))

    def test_a_dead_broker_shows(self):
        """R57: under-replicated at once; nothing is unavailable, as the leaders moved."""
        self.cluster.create_topic("seen", 3, 3)
        self.cluster.wait_in_sync()
        self.cluster[3].stop()
        for way in ("kafka", "zookeeper"):
            c.wait_for("all three are under-replicated", lambda w=way: len(
                self.listed("seen", w, "--under-replicated-partitions") or ()) == 3)
            self.assertEqual(self.listed("seen", way, "--unavailable-partitions"), [])


if __name__ == "__main__":
    unittest.main()
