#!/usr/bin/python3
"""Golden tests of topics, partitions and reassign (R57–R62), like those of test_tools_cli.py.

Usage: test_topics_cli.py STEPDOWN FAKE_BROKER ZOOKEEPER [unittest options]
"""

import json
import sys

from tools import FAILED, INCOMPLETE, METADATA, OK, TOPICS, USAGE, ClusterCase, main, metadata, partition, topic
from zk_client import READ_ONLY


class Topics(ClusterCase):
    LINES = ("topic: a\tpartition: 0\tleader: 1\treplicas: 1,2\tisr: 1,2\n",
             "topic: a\tpartition: 1\tleader: 2\treplicas: 2,3\tisr: 2\n",
             "topic: b\tpartition: 0\tleader: none\treplicas: 3,1\tisr: \n",
             "topic: c\tpartition: 0\tleader: 9\treplicas: 9,1\tisr: 9,1\n")

    def both(self, *args):
        """The same answer from a broker and from ZooKeeper."""
        self.broker.script(Metadata=METADATA)
        root = self.zk.cluster(topics=TOPICS)
        a, b = self.kafka("topics", *args), self.zookeeper(root, "topics", *args)
        self.assertEqual((a.status, a.out, a.err), (b.status, b.out, b.err))
        return a

    def test_list(self):
        self.expect(self.both("list"), OK, "".join(self.LINES), "")

    def test_under_replicated_or_unavailable(self):
        """R57, §1.7: a leader that does not live counts as none; both flags together: either."""
        self.expect(self.both("list", "--under-replicated-partitions"), OK, self.LINES[1] + self.LINES[2], "")
        self.expect(self.both("list", "--unavailable-partitions"), OK, self.LINES[2] + self.LINES[3], "")
        self.expect(self.both("list", "--under-replicated-partitions", "--unavailable-partitions"), OK,
                    "".join(self.LINES[1:]), "")

    def test_list_one(self):
        self.broker.script(Metadata=metadata(topic("b", partition(0, -1, [3, 1], []))))
        self.expect(self.kafka("topics", "list", "--topic", "b"), OK, self.LINES[2], "")
        self.assertEqual(self.asked_once("Metadata")["topics"][0]["name"], "b")
        self.assertFalse(self.asked_once("Metadata")["allow_auto_topic_creation"])
        root = self.zk.cluster(topics=TOPICS)
        self.expect(self.zookeeper(root, "topics", "list", "b"), OK, self.LINES[2], "")

    def test_json(self):
        self.broker.script(Metadata=METADATA)
        r = self.kafka("topics", "list", "--json", "--unavailable-partitions")
        self.expect(r, OK, err="")
        self.assertEqual([(t["topic"], [p["partition"] for p in t["partitions"]]) for t in r.json["topics"]],
                         [("a", []), ("b", [0]), ("c", [0])])

    def test_no_topics(self):
        self.broker.script(Metadata=metadata())
        self.expect(self.kafka("topics", "list"), OK, "no topics exist!\n", "")
        self.expect(self.zookeeper(self.zk.cluster(), "topics", "list"), OK, "no topics exist!\n", "")

    def test_a_missing_topic(self):
        self.broker.script(Metadata=metadata(topic("x", error=3)))
        self.expect(self.kafka("topics", "list", "--topic", "x"), FAILED, "",
                    "stepdown topics: topic x doesn't exist!\n")
        self.expect(self.zookeeper(self.zk.cluster(topics=TOPICS), "topics", "list", "--topic", "x"), FAILED, "",
                    "stepdown topics: topic x doesn't exist!\n")

    def test_a_topic_that_may_not_be_described(self):
        self.broker.script(Metadata=metadata(topic("a", partition(0, 1, [1, 2], [1, 2])), topic("x", error=29)))
        self.expect(self.kafka("topics", "list"), FAILED, self.LINES[0],
                    "stepdown topics: topic x cannot be described: TOPIC_AUTHORIZATION_FAILED\n")

    def test_a_partition_without_a_state_has_no_leader(self):
        root = self.zk.cluster(topics={"n": [(1, [1, 2], None)]})
        self.expect(self.zookeeper(root, "topics", "list"), OK,
                    "topic: n\tpartition: 0\tleader: none\treplicas: 1,2\tisr: \n", "")

    def test_a_malformed_znode_is_named(self):
        root = self.zk.cluster(topics=TOPICS)
        self.zk.client.set(root + "/brokers/topics/a/partitions/0/state", b"{")
        self.expect(self.zookeeper(root, "topics", "list"), FAILED, "",
                    ["/brokers/topics/a/partitions/0/state in ZooKeeper is malformed"])

    def test_create(self):
        """R58, by the old names of the options."""
        self.broker.script(Metadata=METADATA, CreateTopics={"topics": [{"name": "t", "error_code": 0}]})
        r = self.kafka("topics", "create", "--topic", "t", "--partition", 4, "--replica", 2, "--config", "k=v,l=w")
        self.expect(r, OK, "creation succeeded!\n", "")
        t = self.asked_once("CreateTopics")["topics"][0]
        self.assertEqual((t["name"], t["num_partitions"], t["replication_factor"], t["assignments"]), ("t", 4, 2, []))
        self.assertEqual(t["configs"], [{"name": "k", "value": "v"}, {"name": "l", "value": "w"}])

    def test_create_by_hand(self):
        self.broker.script(Metadata=METADATA, CreateTopics={"topics": [{"name": "t", "error_code": 0}]})
        r = self.kafka("topics", "create", "--topic", "t", "--replica-assignment-list", "1:2,2:3")
        self.expect(r, OK, "creation succeeded!\n", "")
        t = self.asked_once("CreateTopics")["topics"][0]
        self.assertEqual((t["num_partitions"], t["replication_factor"]), (-1, -1))
        self.assertEqual(t["assignments"], [{"partition_index": 0, "broker_ids": [1, 2]},
                                            {"partition_index": 1, "broker_ids": [2, 3]}])

    def test_a_refused_creation_says_why(self):
        why = "replication factor: 5 larger than available brokers: 3"
        self.broker.script(Metadata=METADATA,
                           CreateTopics={"topics": [{"name": "t", "error_code": 38, "error_message": why}]})
        self.expect(self.kafka("topics", "create", "--topic", "t", "--replica", 5), FAILED, "",
                    f"creation failed because of {why}\n")
        r = self.kafka("topics", "create", "--topic", "t", "--replica", 5, "--json")
        self.assertEqual(r.json, {"topic": "t", "result": "failed", "error": "INVALID_REPLICATION_FACTOR",
                                  "message": why})

    def test_create_through_zookeeper(self):
        root = self.zk.cluster(topics=TOPICS)
        r = self.zookeeper(root, "topics", "create", "--topic", "t", "--partition", 5, "--replica", 2)
        self.expect(r, OK, "creation succeeded!\n", "")
        made = self.zk.read(root + "/brokers/topics/t")
        self.assertEqual(sorted(made["partitions"]), ["0", "1", "2", "3", "4"])
        for replicas in made["partitions"].values():
            self.assertEqual(len(set(replicas)), 2)
            self.assertLessEqual(set(replicas), {1, 2, 3})
        self.assertEqual(self.zk.read(root + "/config/topics/t"), {"version": 1, "config": {}})

    def test_create_by_hand_through_zookeeper(self):
        root = self.zk.cluster(topics=TOPICS)
        r = self.zookeeper(root, "topics", "create", "--topic", "t", "--replica-assignment-list", "3:1,2:3",
                           "--config", "min.insync.replicas=2")
        self.expect(r, OK, "creation succeeded!\n", "")
        self.assertEqual(self.zk.read(root + "/brokers/topics/t")["partitions"], {"0": [3, 1], "1": [2, 3]})
        self.assertEqual(self.zk.read(root + "/config/topics/t")["config"], {"min.insync.replicas": "2"})

    def test_refusals_through_zookeeper(self):
        """§1.7's sentences; nothing is written."""
        root = self.zk.cluster(topics={**TOPICS, "d.e": []})
        for args, why in (
                (("--topic", "a"), "topic a already exists"),
                (("--topic", "x/y"), "topic name x/y is illegal"),
                (("--topic", "d_e"), "topic d_e collides with existing topics: d.e"),
                (("--topic", "t", "--replica", "4"), "replication factor: 4 larger than available brokers: 3"),
                (("--topic", "t", "--replica-assignment-list", "1:1"), "duplicate brokers in replica assignment: 1,1"),
                (("--topic", "t", "--replica-assignment-list", "1:8"), "some specified brokers not available"),
                (("--topic", "t", "--replica-assignment-list", "1:2,3"),
                 "partition 1 has different replication factor: 3")):
            with self.subTest(args=args):
                r = self.zookeeper(root, "topics", "create", *args)
                self.expect(r, FAILED, "", [f"creation failed because of {why}"])
        self.assertEqual(self.zk.client.children(root + "/brokers/topics"), ["a", "b", "c", "d.e"])
        self.assertEqual(self.zk.client.children(root + "/config/topics"), [])

    def test_a_topic_that_is_too_large_for_a_znode(self):
        root = self.zk.cluster(topics=TOPICS)
        r = self.zookeeper(root, "topics", "create", "--topic", "huge", "--partition", 80000, "--replica", 3)
        self.expect(r, FAILED, "", f"stepdown topics: cannot write {root}/brokers/topics/huge in ZooKeeper: "
                                   "more than a znode holds\n")
        self.assertEqual(self.zk.client.children(root + "/config/topics"), [])

    def test_delete(self):
        self.broker.script(Metadata=METADATA, DeleteTopics={"responses": [{"name": "a", "error_code": 0}]})
        self.expect(self.kafka("topics", "delete", "--topic", "a"), OK, "deletion succeeded!\n", "")
        root = self.zk.cluster(topics=TOPICS)
        for _ in range(2):
            self.expect(self.zookeeper(root, "topics", "delete", "--topic", "a"), OK, "deletion succeeded!\n", "")
        self.assertEqual(self.zk.client.children(root + "/admin/delete_topics"), ["a"])
        self.expect(self.zookeeper(root, "topics", "delete", "--topic", "x"), FAILED, "",
                    "deletion failed because of UNKNOWN_TOPIC_OR_PARTITION\n")

    def test_no_permission(self):
        root = self.zk.cluster(topics=TOPICS)
        self.zk.client.set_acl(root + "/brokers/topics", READ_ONLY)
        r = self.zookeeper(root, "topics", "create", "--topic", "t")
        self.expect(r, FAILED, "", [f"no permission to write {root}/brokers/topics/t in ZooKeeper"])
        self.assertEqual(self.zk.client.children(root + "/config/topics"), [])

    def test_usage(self):
        for args, sentence in (((), "say list, describe, create or delete"), (("create",), "create needs --topic"),
                               (("list", "a", "b"), "too many arguments"),
                               (("create", "--topic", "t", "--partition", "0"), "not a valid value: '--partition'")):
            with self.subTest(args=args):
                self.expect(self.run_tool("topics", *args), USAGE, "", [sentence])
        for args, sentence in ((("--replica-assignment-list", "1:x"), "'1:x' is not of the form 1:2,2:3"),
                               (("--config", "k"), "'k' is not of the form"),
                               (("--replica-assignment-list", "1:2", "--partition", "1"), "says the number of")):
            with self.subTest(args=args):
                self.expect(self.kafka("topics", "create", "--topic", "t", *args), USAGE, "", [sentence])


class Partitions(ClusterCase):
    def test_the_controller_places_them(self):
        self.broker.script(Metadata=metadata(topic("a", *(partition(i, 1, [1, 2], [1, 2]) for i in range(3)))),
                           CreatePartitions={"results": [{"name": "a", "error_code": 0}]})
        r = self.kafka("partitions", "add", "--topic", "a", "--partition", 2)
        self.expect(r, OK, "adding partitions succeeded!\n", "")
        self.assertEqual(self.asked_once("CreatePartitions")["topics"], [{"name": "a", "count": 5, "assignments": None}])

    def test_by_hand(self):
        self.broker.script(Metadata=METADATA, CreatePartitions={"results": [{"name": "a", "error_code": 0}]})
        r = self.kafka("partitions", "add", "--topic", "a", "--partition", 2, "--replica-assignment-list", "3:1,2:1",
                       "--json")
        self.expect(r, OK, err="")
        self.assertEqual(r.json, {"topic": "a", "result": "succeeded", "partitions": [
            {"partition": 2, "replicas": [3, 1]}, {"partition": 3, "replicas": [2, 1]}]})
        self.assertEqual(self.asked_once("CreatePartitions")["topics"], [
            {"name": "a", "count": 4, "assignments": [{"broker_ids": [3, 1]}, {"broker_ids": [2, 1]}]}])

    def test_a_refusal_says_why(self):
        self.broker.script(Metadata=METADATA, CreatePartitions={"results": [
            {"name": "a", "error_code": 37, "error_message": "Topic already has 3 partitions."}]})
        self.expect(self.kafka("partitions", "add", "--topic", "a", "--partition", 1), FAILED, "",
                    "adding partitions failed because of Topic already has 3 partitions.\n")

    def test_a_missing_topic(self):
        self.broker.script(Metadata=metadata(topic("x", error=3)))
        r = self.kafka("partitions", "add", "--topic", "x", "--partition", 1)
        self.expect(r, FAILED, "", "adding partitions failed because of The topic x does not exist\n")
        r = self.zookeeper(self.zk.cluster(topics=TOPICS), "partitions", "add", "--topic", "x", "--partition", 1)
        self.expect(r, FAILED, "", "adding partitions failed because of The topic x does not exist\n")

    def test_through_zookeeper_they_go_on_from_partition_0(self):
        """§1.7: start and shift are the place of partition 0's first replica, here 2 at index 1 of [1, 2, 5]."""
        root = self.zk.cluster(brokers=(1, 2, 5), topics={"t": [(2, [2, 5], [2, 5]), (5, [5, 1], [5, 1])]})
        r = self.zookeeper(root, "partitions", "add", "--topic", "t", "--partition", 3)
        self.expect(r, OK, "adding partitions succeeded!\n", "")
        self.assertEqual(self.zk.read(root + "/brokers/topics/t")["partitions"],
                         {"0": [2, 5], "1": [5, 1], "2": [1, 5], "3": [2, 5], "4": [5, 1]})

    def test_by_hand_through_zookeeper(self):
        root = self.zk.cluster(topics=TOPICS)
        r = self.zookeeper(root, "partitions", "add", "--topic", "a", "--partition", 1, "--replica-assignment-list",
                           "3:1")
        self.expect(r, OK, "adding partitions succeeded!\n", "")
        self.assertEqual(self.zk.read(root + "/brokers/topics/a")["partitions"],
                         {"0": [1, 2], "1": [2, 3], "2": [3, 1]})

    def test_lists_that_do_not_fit(self):
        root = self.zk.cluster(topics=TOPICS)
        for text, why in (("1:2", "2 partitions are to be added, but the replica assignment lists 1"),
                          ("1:2:3,3:2:1", "the replication factor of the new partitions is 3, but that of the topic is 2"),
                          ("1:2,3", "partition 3 has different replication factor: 3"),
                          ("1:1,2:3", "duplicate brokers in replica assignment: 1,1"),
                          ("1:2,2:7", "some specified brokers not available. specified brokers: 2,7")):
            with self.subTest(text=text):
                r = self.zookeeper(root, "partitions", "add", "--topic", "a", "--partition", 2,
                                   "--replica-assignment-list", text)
                self.expect(r, FAILED, "", [f"adding partitions failed because of {why}"])
        self.assertEqual(len(self.zk.read(root + "/brokers/topics/a")["partitions"]), 2)

    def test_usage(self):
        self.expect(self.run_tool("partitions"), USAGE, "", ["say add"])
        for args in (("--topic", "t"), ("--partition", "1")):
            self.expect(self.run_tool("partitions", "add", *args), USAGE, "",
                        ["only when the topic's data has no keys", "add needs --topic and --partition"])
        self.expect(self.kafka("partitions", "add", "--topic", "t", "--partition", "-1"), USAGE, "",
                    ["not a valid value: '--partition'"])

    def test_no_permission(self):
        root = self.zk.cluster(topics=TOPICS)
        self.zk.client.set_acl(root + "/brokers/topics/a", READ_ONLY)
        r = self.zookeeper(root, "partitions", "add", "--topic", "a", "--partition", 1)
        self.expect(r, FAILED, "", [f"no permission to write {root}/brokers/topics/a in ZooKeeper"])


class Reassign(ClusterCase):
    MANUAL = {"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [2, 3]},
                                           {"topic": "a", "partition": 1, "replicas": [3, 1]}]}
    BEFORE = ('{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1,2]},'
              '{"topic":"a","partition":1,"replicas":[2,3]}]}')
    DRY = ("This is a dry run (Use --execute to do the actual reassignment. The following is the replica assignment. "
           "Save it for the status check option.\n")
    CURRENT = "Current replica assignment. Save it to go back with --manual-assignment-json-file.\n"

    def manual(self, content=None):
        return ("--manual-assignment-json-file", self.file("m.json", content or self.MANUAL))

    def altered(self, *errors):
        return {"responses": [{"name": "a", "partitions": [
            {"partition_index": p, "error_code": e, "error_message": m} for p, e, m in errors]}]}

    def ongoing(self, *partitions):
        return {"topics": [{"name": "a", "partitions": [
            {"partition_index": p, "replicas": [1, 2, 3], "adding_replicas": [3], "removing_replicas": [1]}
            for p in partitions]}]}

    # --- dry run ---

    def test_dry_run_by_hand(self):
        self.broker.script(Metadata=METADATA)
        r = self.kafka("reassign", *self.manual())
        self.expect(r, OK, self.DRY + json.dumps(self.MANUAL, separators=(",", ":")) + "\n", "")
        self.assertEqual({x["api"] for x in self.broker.asked()}, {"Metadata"})

    def test_dry_run_over_brokers(self):
        """R61; what it prints can be given back to it."""
        self.broker.script(Metadata=METADATA)
        path = self.file("t.json", {"topics": [{"topic": "a"}, {"topic": "b"}], "version": 1})
        r = self.kafka("reassign", "--topics-to-move-json-file", path, "--broker-list", "3,2", "--json")
        self.expect(r, OK, err="")
        self.assertEqual([(p["topic"], p["partition"], sorted(p["replicas"])) for p in r.json["partitions"]],
                         [("a", 0, [2, 3]), ("a", 1, [2, 3]), ("b", 0, [2, 3])])
        leaders = [p["replicas"][0] for p in r.json["partitions"] if p["topic"] == "a"]
        self.assertEqual(sorted(leaders), [2, 3])
        again = self.kafka("reassign", *self.manual(r.json), "--json")
        self.assertEqual(again.json, r.json)

    def test_the_same_through_zookeeper(self):
        root = self.zk.cluster(topics=TOPICS)
        path = self.file("t.json", {"topics": [{"topic": "a"}]})
        r = self.zookeeper(root, "reassign", "--topics-to-move-json-file", path, "--broker-list", "1,2", "--json")
        self.expect(r, OK, err="")
        self.assertEqual([sorted(p["replicas"]) for p in r.json["partitions"]], [[1, 2], [1, 2]])
        self.assertIsNone(self.zk.client.get(root + "/admin/reassign_partitions"))

    def test_too_few_brokers(self):
        self.broker.script(Metadata=METADATA)
        path = self.file("t.json", {"topics": [{"topic": "a"}]})
        r = self.kafka("reassign", "--topics-to-move-json-file", path, "--broker-list", "1")
        self.expect(r, FAILED, "", ["topic a: replication factor: 2 larger than available brokers: 1"])

    def test_what_does_not_exist_is_skipped(self):
        self.broker.script(Metadata=METADATA)
        path = self.file("t.json", {"topics": [{"topic": "x"}, {"topic": "b"}]})
        r = self.kafka("reassign", "--topics-to-move-json-file", path, "--broker-list", "1,2", "--json")
        self.expect(r, FAILED, err="Skipping reassignment of topic x since it doesn't exist\n")
        self.assertEqual(len(r.json["partitions"]), 1)
        r = self.kafka("reassign", *self.manual({"partitions": [{"topic": "a", "partition": 7, "replicas": [1]},
                                                                {"topic": "x", "partition": 0, "replicas": [1]}]}))
        self.expect(r, FAILED, "", "Skipping reassignment of partition [a,7] since it doesn't exist\n"
                                   "Skipping reassignment of partition [x,0] since topic x doesn't exist\n"
                                   "stepdown reassign: there is no partition to reassign\n")

    # --- execute ---

    def test_execute(self):
        self.broker.script(Metadata=METADATA, ListPartitionReassignments={},
                           AlterPartitionReassignments=self.altered((0, 0, None), (1, 0, None)))
        r = self.kafka("reassign", *self.manual(), "--execute")
        self.expect(r, OK, self.CURRENT + self.BEFORE + "\n"
                    "Successfully started reassignment of partitions [a,0], [a,1]\n", "")
        self.assertEqual(self.asked_once("AlterPartitionReassignments")["topics"], [{"name": "a", "partitions": [
            {"partition_index": 0, "replicas": [2, 3]}, {"partition_index": 1, "replicas": [3, 1]}]}])
        self.assertIsNone(self.asked_once("ListPartitionReassignments")["topics"])

    def test_execute_takes_the_old_tools_argument(self):
        self.broker.script(Metadata=METADATA, ListPartitionReassignments={},
                           AlterPartitionReassignments=self.altered((0, 0, None), (1, 0, None)))
        self.expect(self.kafka("reassign", "--execute", "true", *self.manual()), OK, err="")
        self.broker.script(Metadata=METADATA)
        r = self.kafka("reassign", "--execute", "false", *self.manual())
        self.expect(r, OK, self.DRY + json.dumps(self.MANUAL, separators=(",", ":")) + "\n", "")

    def test_a_part_is_refused(self):
        self.broker.script(Metadata=METADATA, ListPartitionReassignments={},
                           AlterPartitionReassignments=self.altered((0, 0, None), (1, 39, "no such broker")))
        r = self.kafka("reassign", *self.manual(), "--execute")
        self.expect(r, FAILED, self.CURRENT + self.BEFORE + "\n"
                    "Successfully started reassignment of partitions [a,0]\nFailed to reassign partitions [a,1]\n",
                    "stepdown reassign: [a,1]: INVALID_REPLICA_ASSIGNMENT: no such broker\n")
        r = self.kafka("reassign", *self.manual(), "--execute", "--json")
        self.assertEqual(r.status, FAILED)
        self.assertEqual(r.json["partitions"], [
            {"topic": "a", "partition": 0, "replicas": [2, 3], "result": "started"},
            {"topic": "a", "partition": 1, "replicas": [3, 1], "result": "failed",
             "error": "INVALID_REPLICA_ASSIGNMENT", "message": "no such broker"}])
        self.assertEqual(r.json["before"], json.loads(self.BEFORE)["partitions"])

    def test_a_partition_that_is_not_answered_for_counts_as_failed(self):
        self.broker.script(Metadata=METADATA, ListPartitionReassignments={},
                           AlterPartitionReassignments=self.altered((0, 0, None)))
        self.expect(self.kafka("reassign", *self.manual(), "--execute"), FAILED,
                    err=["[a,1]: UNKNOWN_SERVER_ERROR: the controller did not answer for it"])

    def test_the_whole_request_is_refused(self):
        self.broker.script(Metadata=METADATA, ListPartitionReassignments={},
                           AlterPartitionReassignments={"error_code": 31, "error_message": "no"})
        self.expect(self.kafka("reassign", *self.manual(), "--execute"), FAILED,
                    err=["the controller refuses: CLUSTER_AUTHORIZATION_FAILED: no"])

    def test_a_dead_broker_gets_nothing(self):
        self.broker.script(Metadata=METADATA)
        r = self.kafka("reassign", *self.manual({"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 8]}]}),
                       "--execute")
        self.expect(r, FAILED, "", ["some specified brokers not available: broker 8 of partition [a,0]"])

    def test_one_at_a_time(self):
        self.broker.script(Metadata=METADATA, ListPartitionReassignments=self.ongoing(1, 0),
                           AlterPartitionReassignments=self.altered((0, 0, None), (1, 0, None)))
        r = self.kafka("reassign", *self.manual(), "--execute")
        self.expect(r, FAILED, "", "Partition reassignment currently in progress for [a,0], [a,1]. "
                                   "Aborting operation\n")
        self.assertEqual(self.broker.asked("AlterPartitionReassignments"), [])
        self.expect(self.kafka("reassign", *self.manual(), "--execute", "--additional"), OK, err="")

    def test_execute_through_zookeeper(self):
        """R60: written for the controller to find; never over what it has not finished."""
        root = self.zk.cluster(topics=TOPICS)
        r = self.zookeeper(root, "reassign", *self.manual(), "--execute")
        self.expect(r, OK, self.CURRENT + self.BEFORE + "\n"
                    "Successfully started reassignment of partitions [a,0], [a,1]\n", "")
        written = self.zk.client.get(root + "/admin/reassign_partitions")
        self.assertEqual(written, json.dumps(self.MANUAL, separators=(",", ":")).encode())
        r = self.zookeeper(root, "reassign", *self.manual(), "--execute", "--json")
        self.expect(r, FAILED, "", "Partition reassignment currently in progress for [a,0], [a,1]. "
                                   "Aborting operation\n")
        self.assertEqual(self.zk.client.get(root + "/admin/reassign_partitions"), written)

    def test_no_permission(self):
        root = self.zk.cluster(topics=TOPICS)
        self.zk.client.set_acl(root + "/admin", READ_ONLY)
        r = self.zookeeper(root, "reassign", *self.manual(), "--execute")
        self.expect(r, FAILED, err=[f"no permission to create {root}/admin/reassign_partitions"])

    # --- verify ---

    STATES = ("Status of partition reassignment:\n"
              "Reassignment of partition [a,0] completed successfully\n"
              "Reassignment of partition [a,1] {}\n"
              "Reassignment of partition [b,0] {}\n")
    WANTED = {"partitions": [{"topic": "b", "partition": 0, "replicas": [3, 1]},
                             {"topic": "a", "partition": 0, "replicas": [1, 2]},
                             {"topic": "a", "partition": 1, "replicas": [3, 2]}]}

    def test_verify(self):
        """An order of replicas is part of an assignment: the first is preferred."""
        self.broker.script(Metadata=METADATA, ListPartitionReassignments={}, DescribeConfigs={})
        done = self.STATES.format("failed", "completed successfully")
        self.expect(self.kafka("reassign", *self.manual(self.WANTED), "--verify"), FAILED, done, "")
        path = self.file("s.json", self.WANTED)
        self.expect(self.kafka("reassign", "--status-check-json-file", path), FAILED, done, "")
        self.broker.script(Metadata=METADATA, ListPartitionReassignments=self.ongoing(1), DescribeConfigs={})
        r = self.kafka("reassign", "--status-check-json-file", path)
        self.expect(r, INCOMPLETE, self.STATES.format("is still in progress", "completed successfully"), "")
        r = self.kafka("reassign", "--status-check-json-file", path, "--json")
        self.assertEqual([p["result"] for p in r.json["partitions"]], ["completed", "in-progress", "completed"])

    def test_verify_all_done(self):
        self.broker.script(versions={"DescribeConfigs": None}, Metadata=METADATA, ListPartitionReassignments={})
        r = self.kafka("reassign", *self.manual(json.loads(self.BEFORE)), "--verify")
        self.expect(r, OK, "Status of partition reassignment:\n"
                           "Reassignment of partition [a,0] completed successfully\n"
                           "Reassignment of partition [a,1] completed successfully\n", "")

    def test_verify_through_zookeeper(self):
        root = self.zk.cluster(topics=TOPICS)
        path = self.file("s.json", self.WANTED)
        self.zk.client.make(root + "/admin/reassign_partitions", json.dumps(
            {"version": 1, "partitions": [{"topic": "a", "partition": 1, "replicas": [3, 2]}]}).encode())
        r = self.zookeeper(root, "reassign", "--status-check-json-file", path)
        self.expect(r, INCOMPLETE, self.STATES.format("is still in progress", "completed successfully"), "")
        self.zk.client.delete(root + "/admin/reassign_partitions")
        r = self.zookeeper(root, "reassign", "--status-check-json-file", path)
        self.expect(r, FAILED, self.STATES.format("failed", "completed successfully"), "")

    def test_what_was_asked_over_the_protocol_shows_in_the_topics_znode(self):
        root = self.zk.cluster(topics=TOPICS)
        self.zk.client.set(root + "/brokers/topics/a", json.dumps(
            {"version": 2, "partitions": {"0": [1, 2], "1": [3, 2]}, "adding_replicas": {"1": [3]},
             "removing_replicas": {}}).encode())
        r = self.zookeeper(root, "reassign", "--status-check-json-file", self.file("s.json", self.WANTED))
        self.expect(r, INCOMPLETE, self.STATES.format("is still in progress", "completed successfully"), "")

    # --- cancel ---

    def test_cancel(self):
        self.broker.script(Metadata=METADATA, DescribeConfigs={},
                           AlterPartitionReassignments=self.altered((0, 0, None), (1, 85, "none")))
        r = self.kafka("reassign", *self.manual(), "--cancel")
        self.expect(r, OK, "Successfully cancelled reassignment of partitions [a,0], [a,1]\n",
                    "No reassignment of partition [a,1] is in progress\n")
        self.assertEqual(self.asked_once("AlterPartitionReassignments")["topics"], [{"name": "a", "partitions": [
            {"partition_index": 0, "replicas": None}, {"partition_index": 1, "replicas": None}]}])

    def test_cancel_all(self):
        self.broker.script(Metadata=METADATA, ListPartitionReassignments=self.ongoing(1), DescribeConfigs={},
                           AlterPartitionReassignments=self.altered((1, 0, None)))
        self.expect(self.kafka("reassign", "--cancel"), OK,
                    "Successfully cancelled reassignment of partitions [a,1]\n", "")
        self.broker.script(Metadata=METADATA, ListPartitionReassignments={})
        self.expect(self.kafka("reassign", "--cancel"), OK, "No reassignment is in progress\n", "")

    # --- usage ---

    def test_usage(self):
        m = self.manual()
        t = ("--topics-to-move-json-file", self.file("t.json", {"topics": [{"topic": "a"}]}))
        for args, sentence in (
                ((), "Missing json file. One of the files needs to be specified"),
                ((*m, *t, "--broker-list", "1"), "Only one of the json files should be specified"),
                (t, "--topics-to-move-json-file and --broker-list belong together"),
                ((*t, "--broker-list", "1,x"), "--broker-list '1,x' is not of the form 0,1,2"),
                ((*t, "--broker-list", "1,1"), "--broker-list '1,1' is not of the form 0,1,2"),
                ((*m, "--execute", "--verify"), "only one of --execute, --verify and --cancel"),
                ((*m, "--execute", "maybe"), "--execute takes no value but true or false"),
                ((*m, "--cancel", "--zookeeper", "h:1"), "--cancel and --additional need the brokers"),
                (("--manual-assignment-json-file", self.file("e.json", {"partitions": []})), "e.json is empty"),
                ((*t, "--broker-list", "1", "--verify"), "need the partitions"),
                ((*m, "--execute", "--throttle", "0"), "--throttle '0' is not a number of bytes a second"),
                ((*m, "--execute", "--throttle", "1MB"), "--throttle '1MB' is not a number of bytes a second"),
                ((*m, "--throttle", "1"), "--throttle belongs to --execute"),
                ((*m, "--verify", "--throttle", "1"), "--throttle belongs to --execute"),
                ((*m, "--execute", "--preserve-throttles"), "--preserve-throttles belongs to --verify and --cancel"),
                (("now", *m), "no argument is expected")):
            with self.subTest(args=args):
                self.expect(self.run_tool("reassign", *args), USAGE, "", [sentence])


if __name__ == "__main__":
    sys.exit(main(sys.argv))
