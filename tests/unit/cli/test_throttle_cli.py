#!/usr/bin/python3
"""Golden tests of the throttle of reassign (KIP-73), like those of test_topics_cli.py.

Usage: test_throttle_cli.py STEPDOWN FAKE_BROKER ZOOKEEPER [unittest options]
"""

import json
import sys

from tools import FAILED, INCOMPLETE, METADATA, OK, TOPICS, ClusterCase, main, metadata, partition, topic
from zk_client import READ_ONLY

LEADER, FOLLOWER = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
WARNING = ("Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is "
           "removed.\n")
CLEARED = ("Clearing broker-level throttles on brokers 1,2,3\n"
           "Clearing topic-level throttles on topics a\n")
STATES = ("Status of partition reassignment:\n"
          "Reassignment of partition [a,0] {}\n"
          "Reassignment of partition [a,1] {}\n")
THROTTLED = {"results": [{"resource_type": 2, "resource_name": "a", "configs": [
    {"name": LEADER, "value": "0:1", "config_source": 1}, {"name": FOLLOWER, "value": "", "config_source": 5}]}]}


class Throttle(ClusterCase):
    MANUAL = {"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [2, 3]},
                                           {"topic": "a", "partition": 1, "replicas": [3, 2]}]}
    NOW = {"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2]},
                                        {"topic": "a", "partition": 1, "replicas": [2, 3]}]}

    def manual(self, content=None):
        return ("--manual-assignment-json-file", self.file("m.json", content or self.MANUAL))

    def answers(self, **others):
        return {"Metadata": METADATA, "ListPartitionReassignments": {},
                "AlterPartitionReassignments": {"responses": [{"name": "a", "partitions": [
                    {"partition_index": 0}, {"partition_index": 1}]}]}, **others}

    def changed(self, *resources, error=0, message=None):
        return {"responses": [{"resource_type": t, "resource_name": n, "error_code": error, "error_message": message}
                              for t, n in resources]}

    def edits(self, n):
        """What the @n-th request for changes asks for: (type, name) -> {key: value}, None to delete."""
        request = self.broker.asked("IncrementalAlterConfigs")[n]["body"]
        return {(r["resource_type"], r["resource_name"]): {
            k["name"]: k["value"] if k.get("config_operation", 0) == 0 else None for k in r["configs"]}
            for r in request["resources"]}

    def apis(self):
        return [x["api"] for x in self.broker.asked() if x["api"] != "Metadata"]

    BROKERS = tuple((4, str(b)) for b in (1, 2, 3))

    def test_execute(self):
        """It is set before the move begins; only where something is copied: [a,1] changes its order alone."""
        self.broker.script(**self.answers(IncrementalAlterConfigs=[
            self.changed(*self.BROKERS), self.changed((2, "a")), self.changed(*self.BROKERS), self.changed((2, "a"))]))
        r = self.kafka("reassign", *self.manual(), "--execute", "--throttle", 2000000)
        self.expect(r, OK, err="")
        self.assertEqual(r.out.splitlines(keepends=True)[2:], [
            WARNING, "The inter-broker throttle limit was set to 2000000 B/s\n",
            "Successfully started reassignment of partitions [a,0], [a,1]\n"])
        self.assertEqual(self.edits(0), {b: dict.fromkeys(RATES, "2000000") for b in self.BROKERS})
        self.assertEqual(self.edits(1), {(2, "a"): {LEADER: "0:1,0:2", FOLLOWER: "0:3"}})
        self.assertEqual(self.apis()[-3:], [*["IncrementalAlterConfigs"] * 2, "AlterPartitionReassignments"])
        r = self.kafka("reassign", *self.manual(), "--execute", "--throttle", 7, "--json")
        self.expect(r, OK, err="")
        self.assertEqual(r.json["throttle"], 7)

    def test_additional_takes_what_is_in_progress_along(self):
        """[a,1] is on its way from 2,3 to 1 already, and [b,0] belongs to somebody else."""
        moving = {"topics": [
            {"name": "b", "partitions": [
                {"partition_index": 0, "replicas": [2, 3, 1], "adding_replicas": [2], "removing_replicas": [3]}]},
            {"name": "a", "partitions": [
                {"partition_index": 1, "replicas": [1, 2, 3], "adding_replicas": [1], "removing_replicas": [2]}]}]}
        self.broker.script(**self.answers(
            ListPartitionReassignments=moving,
            IncrementalAlterConfigs=[self.changed(*self.BROKERS), self.changed((2, "a"), (2, "b"))]))
        wanted = {"partitions": [{"topic": "a", "partition": 1, "replicas": [1, 3]}]}
        r = self.kafka("reassign", *self.manual(wanted), "--execute", "--additional", "--throttle", 5)
        self.expect(r, OK, err="")
        self.assertEqual(self.edits(0), {b: dict.fromkeys(RATES, "5") for b in self.BROKERS})
        self.assertEqual(self.edits(1), {(2, "a"): {LEADER: "1:2,1:3", FOLLOWER: "1:1"},
                                         (2, "b"): {LEADER: "0:3,0:1", FOLLOWER: "0:2"}})

    def test_a_list_that_no_string_holds_becomes_a_star(self):
        many = [partition(i, 1, [10001, 10002], [10001, 10002]) for i in range(2000)]
        self.broker.script(**self.answers(
            Metadata=metadata(topic("a", *many), brokers=(1, 10001, 10002, 10003)),
            IncrementalAlterConfigs=[self.changed(*((4, str(b)) for b in (10001, 10002, 10003))),
                                     self.changed((2, "a"))]))
        wanted = {"partitions": [{"topic": "a", "partition": i, "replicas": [10003, 10002]} for i in range(2000)]}
        self.kafka("reassign", *self.manual(wanted), "--execute", "--throttle", 5)
        lists = self.edits(1)[(2, "a")]
        self.assertEqual(lists[LEADER], "*")
        self.assertEqual(len(lists[FOLLOWER].split(",")), 2000)

    def test_no_throttle_no_move(self):
        """What cannot be held back is not begun."""
        self.broker.script(**self.answers(IncrementalAlterConfigs=[
            self.changed(*self.BROKERS), self.changed((2, "a"), error=40, message="no good")]))
        r = self.kafka("reassign", *self.manual(), "--execute", "--throttle", 5)
        self.expect(r, FAILED, err="stepdown reassign: the configuration of topic a was not changed: INVALID_CONFIG: no good\n")
        self.assertNotIn("AlterPartitionReassignments", self.apis())
        self.broker.script(versions={"IncrementalAlterConfigs": None}, **self.answers())
        r = self.kafka("reassign", *self.manual(), "--execute", "--throttle", 5)
        self.expect(r, FAILED, err=["does not serve IncrementalAlterConfigs"])
        self.assertNotIn("AlterPartitionReassignments", self.apis())

    def test_a_broker_that_wants_to_be_asked_itself(self):
        """A Kafka broker takes nobody's settings but its own; a controller that moved is looked for again."""
        self.broker.script(**self.answers(IncrementalAlterConfigs=[
            self.changed((4, "1"), error=41),
            {"responses": [{"resource_type": 4, "resource_name": "1"},
                           {"resource_type": 4, "resource_name": "2", "error_code": 42},
                           {"resource_type": 4, "resource_name": "3"}]},
            self.changed((4, "2")), self.changed((2, "a"))]))
        r = self.kafka("reassign", *self.manual(), "--execute", "--throttle", 5)
        self.expect(r, OK, err="")
        self.assertEqual(self.edits(2), {(4, "2"): dict.fromkeys(RATES, "5")})

    def test_verify_removes_it_when_nothing_moves(self):
        self.broker.script(**self.answers(DescribeConfigs=THROTTLED, IncrementalAlterConfigs=[
            self.changed(*self.BROKERS), self.changed((2, "a"))]))
        r = self.kafka("reassign", *self.manual(self.NOW), "--verify")
        self.expect(r, OK, STATES.format(*["completed successfully"] * 2) + CLEARED, "")
        self.assertEqual(self.edits(0), {b: dict.fromkeys(RATES) for b in self.BROKERS})
        self.assertEqual(self.edits(1), {(2, "a"): {LEADER: None, FOLLOWER: None}})
        asked = self.asked_once("DescribeConfigs")["resources"]
        self.assertEqual([(x["resource_type"], x["resource_name"], x["configuration_keys"]) for x in asked],
                         [(2, "a", [LEADER, FOLLOWER])])

    def test_verify_keeps_it_while_something_moves_or_when_told_to(self):
        moving = {"topics": [{"name": "a", "partitions": [
            {"partition_index": 1, "replicas": [1, 2, 3], "adding_replicas": [1], "removing_replicas": []}]}]}
        self.broker.script(**self.answers(DescribeConfigs=THROTTLED, ListPartitionReassignments=moving))
        r = self.kafka("reassign", *self.manual(self.NOW), "--verify")
        self.expect(r, INCOMPLETE, STATES.format("completed successfully", "is still in progress"), "")
        self.broker.script(**self.answers(DescribeConfigs=THROTTLED))
        r = self.kafka("reassign", *self.manual(self.NOW), "--verify", "--preserve-throttles", "--json")
        self.expect(r, OK, err="")
        self.assertEqual(r.json["throttle"], "kept")
        self.broker.script(**self.answers(DescribeConfigs=THROTTLED, IncrementalAlterConfigs=[
            self.changed(*self.BROKERS), self.changed((2, "a"))]))
        r = self.kafka("reassign", *self.manual(self.NOW), "--verify", "--json")
        self.expect(r, OK, err="")
        self.assertEqual(r.json["throttle"], "removed")

    def test_what_cannot_be_removed_shows(self):
        self.broker.script(**self.answers(DescribeConfigs=THROTTLED, IncrementalAlterConfigs=self.changed(
            *self.BROKERS, error=31)))
        r = self.kafka("reassign", *self.manual(self.NOW), "--verify")
        self.expect(r, FAILED, STATES.format(*["completed successfully"] * 2) + CLEARED,
                    "stepdown reassign: the configuration of broker 1 was not changed: CLUSTER_AUTHORIZATION_FAILED\n")

    def test_cancel_removes_it(self):
        done = "Successfully cancelled reassignment of partitions [a,0], [a,1]\n"
        self.broker.script(**self.answers(DescribeConfigs=THROTTLED, IncrementalAlterConfigs=[
            self.changed(*self.BROKERS), self.changed((2, "a"))]))
        self.expect(self.kafka("reassign", *self.manual(), "--cancel"), OK, CLEARED + done, "")
        self.broker.script(**self.answers(DescribeConfigs=THROTTLED))
        self.expect(self.kafka("reassign", *self.manual(), "--cancel", "--preserve-throttles"), OK, done, "")
        others = {"topics": [{"name": "b", "partitions": [
            {"partition_index": 0, "replicas": [1, 3], "adding_replicas": [1], "removing_replicas": []}]}]}
        self.broker.script(**self.answers(DescribeConfigs=THROTTLED, ListPartitionReassignments=others))
        r = self.kafka("reassign", *self.manual(), "--cancel", "--json")
        self.expect(r, OK, err="")
        self.assertEqual(r.json["throttle"], "kept")

    # --- through ZooKeeper ---

    def config(self, root, entity):
        found = self.zk.read(f"{root}/config/{entity}")
        return found and found["config"]

    def changes(self, root):
        names = sorted(self.zk.client.children(root + "/config/changes") or ())
        return [self.zk.read(f"{root}/config/changes/{name}") for name in names]

    def test_through_zookeeper(self):
        root = self.zk.cluster(topics=TOPICS)
        self.zk.client.make(root + "/config/topics/a", b'{"version":1,"config":{"retention.ms":"5"}}')
        r = self.zookeeper(root, "reassign", *self.manual(), "--execute", "--throttle", 2000000)
        self.expect(r, OK, err="")
        self.assertEqual(r.out.splitlines(keepends=True)[2:], [
            WARNING, "The inter-broker throttle limit was set to 2000000 B/s\n",
            "Successfully started reassignment of partitions [a,0], [a,1]\n"])
        self.assertEqual(self.config(root, "topics/a"), {"retention.ms": "5", LEADER: "0:1,0:2", FOLLOWER: "0:3"})
        for broker in (1, 2, 3):
            self.assertEqual(self.config(root, f"brokers/{broker}"), dict.fromkeys(RATES, "2000000"))
        self.assertEqual(self.changes(root), [{"version": 2, "entity_path": e} for e in (
            "brokers/1", "brokers/2", "brokers/3", "topics/a")])

        before = self.config(root, "brokers/1")
        r = self.zookeeper(root, "reassign", *self.manual(), "--execute", "--throttle", 9)
        self.expect(r, FAILED, err="Partition reassignment currently in progress for [a,0], [a,1]. Aborting operation\n")
        self.assertEqual(self.config(root, "brokers/1"), before)
        r = self.zookeeper(root, "reassign", *self.manual(self.NOW), "--verify")
        self.assertEqual((r.status, r.out.count("Clearing")), (INCOMPLETE, 0))

        self.zk.client.delete(root + "/admin/reassign_partitions")
        r = self.zookeeper(root, "reassign", *self.manual(self.NOW), "--verify")
        self.expect(r, OK, STATES.format(*["completed successfully"] * 2) + CLEARED, "")
        self.assertEqual(self.config(root, "topics/a"), {"retention.ms": "5"})
        self.assertEqual([self.config(root, f"brokers/{b}") for b in (1, 2, 3)], [{}, {}, {}])
        r = self.zookeeper(root, "reassign", *self.manual(self.NOW), "--verify")
        self.expect(r, OK, STATES.format(*["completed successfully"] * 2), "")

    def test_no_permission(self):
        root = self.zk.cluster(topics=TOPICS)
        self.zk.client.make(root + "/config/topics/a", json.dumps({"version": 1, "config": {}}).encode())
        self.zk.client.make(root + "/config/changes")
        self.zk.client.set_acl(root + "/config/topics/a", READ_ONLY)
        r = self.zookeeper(root, "reassign", *self.manual(), "--execute", "--throttle", 5)
        self.expect(r, FAILED, err=["no permission to write"])
        self.assertIsNone(self.zk.read(root + "/admin/reassign_partitions"))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
