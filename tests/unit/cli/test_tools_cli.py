#!/usr/bin/python3
"""Golden tests of shutdown-broker, preferred-election (R43–R45, R53–R56) and of what all tools share, against a
scripted broker and a real ZooKeeper: what they print, what they send or write, and their exit statuses, in success,
partial failure, and every kind of refusal.

Usage: test_tools_cli.py STEPDOWN FAKE_BROKER ZOOKEEPER [unittest options]
"""

import subprocess
import sys
import time

from tools import (FAILED, INCOMPLETE, METADATA, OK, TOPICS, UNAVAILABLE, UNREACHABLE, USAGE, ClusterCase, ToolCase,
                   main, metadata, topic)
from zk_client import READ_ONLY


class ShutdownBroker(ClusterCase):
    def cluster(self, **options):
        return self.zk.cluster(port=self.broker.port, **options)

    def test_complete(self):
        self.broker.script(ControlledShutdown={"error_code": 0})
        r = self.zookeeper(self.cluster(), "shutdown-broker", "--broker", 2)
        self.expect(r, OK, "Shutdown status: complete\n", "")
        self.assertEqual(self.broker.asked(), [{"api": "ControlledShutdown", "version": 3,
                                               "body": {"broker_id": 2, "broker_epoch": -1, "slot_wait_ms": 1000}}])

    def test_the_controller_is_found_through_a_broker_too(self):
        self.broker.script(Metadata=METADATA, ControlledShutdown={"error_code": 0})
        r = self.kafka("shutdown-broker", "--broker", 2, "--json")
        self.expect(r, OK, err="")
        self.assertEqual(r.json, {"broker": 2, "status": "complete", "attempts": 1, "error": None, "remaining": []})

    def test_incomplete_names_what_remains(self):
        self.broker.script(ControlledShutdown={"remaining_partitions": [
            {"topic_name": "a", "partition_index": 0}, {"topic_name": "b", "partition_index": 7}]})
        r = self.zookeeper(self.cluster(), "shutdown-broker", "--broker", 2)
        self.expect(r, INCOMPLETE, "Shutdown status: incomplete (broker still leads 2 partitions)\n"
                                   "  [a,0]\n  [b,7]\n", "")

    def test_a_long_list_is_cut_for_people_and_whole_as_json(self):
        self.broker.script(ControlledShutdown={"remaining_partitions": [
            {"topic_name": "a", "partition_index": i} for i in range(25)]})
        r = self.zookeeper(self.cluster(), "shutdown-broker", "--broker", 2)
        self.assertEqual(r.out.splitlines()[-1], "  and 5 more")
        r = self.zookeeper(self.cluster(), "shutdown-broker", "--broker", 2, "--json")
        self.assertEqual(len(r.json["remaining"]), 25)
        self.assertEqual(r.status, INCOMPLETE)

    def test_it_tries_again_after_at_least_a_second(self):
        """R44; the old tool floors the interval at 1000 ms (§1.7)."""
        self.broker.script(ControlledShutdown=[{"remaining_partitions": [{"topic_name": "a", "partition_index": 0}]},
                                               {"error_code": 0}])
        begin = time.monotonic()
        r = self.zookeeper(self.cluster(), "shutdown-broker", "--broker", 2, "--num.retries", 3,
                           "--retry.interval.ms", 60)
        self.expect(r, OK, "Shutdown status: incomplete (broker still leads 1 partitions)\n  [a,0]\n"
                           "Shutdown status: complete\n", "")
        self.assertGreaterEqual(time.monotonic() - begin, 1.0)
        self.assertEqual(len(self.broker.asked()), 2)

    def test_the_last_retry_decides(self):
        self.broker.script(ControlledShutdown={"remaining_partitions": [{"topic_name": "a", "partition_index": 0}]})
        r = self.zookeeper(self.cluster(), "shutdown-broker", "--broker", 2, "--num-retries", 1, "--json")
        self.expect(r, INCOMPLETE, err="")
        self.assertEqual((r.json["status"], r.json["attempts"]), ("incomplete", 2))

    def test_a_lost_controller_is_a_failed_attempt(self):
        self.broker.script(ControlledShutdown=["close", {"error_code": 41}, {"error_code": 0}])
        r = self.zookeeper(self.cluster(), "shutdown-broker", "--broker", 2, "--num-retries", 2)
        self.expect(r, OK, "Shutdown status: complete\n", [
            "Operation failed due to controller failure: the controller at " + self.broker.address,
            "Operation failed due to controller failure: the controller moved to another broker"])

    def test_an_unknown_broker_is_not_retried(self):
        self.broker.script(ControlledShutdown={"error_code": 8})
        r = self.zookeeper(self.cluster(), "shutdown-broker", "--broker", 7, "--num-retries", 9)
        self.expect(r, FAILED, "", "stepdown shutdown-broker: broker 7 is not registered\n")
        r = self.zookeeper(self.cluster(), "shutdown-broker", "--broker", 7, "--json")
        self.assertEqual((r.json["status"], r.json["error"]), ("failed", "BROKER_NOT_AVAILABLE"))

    def test_a_silent_controller_is_waited_for_as_long_as_said(self):
        self.broker.script(ControlledShutdown="hold")
        begin = time.monotonic()
        r = self.zookeeper(self.cluster(), "shutdown-broker", "--broker", 2, "--timeout", "1s")
        self.expect(r, UNAVAILABLE, "", ["did not answer: Connection timed out"])
        self.assertLess(time.monotonic() - begin, 5)

    def test_no_controller(self):
        r = self.zookeeper(self.cluster(controller=None), "shutdown-broker", "--broker", 2)
        self.expect(r, UNAVAILABLE, "", "stepdown shutdown-broker: Operation failed due to controller failure: "
                                        "the cluster has no active controller now\n")
        r = self.zookeeper(self.cluster(controller=8), "shutdown-broker", "--broker", 2)
        self.expect(r, UNAVAILABLE, "", ["the controller, broker 8, is not registered now"])

    def test_usage(self):
        self.expect(self.run_tool("shutdown-broker"), USAGE, "", ["--broker N is required"])
        self.expect(self.run_tool("shutdown-broker", "--broker", "x"), USAGE, "", ["not a valid value: '--broker'"])
        self.expect(self.run_tool("shutdown-broker", "--broker", 1, "now"), USAGE, "", ["no argument is expected"])


class PreferredElection(ClusterCase):
    MADE = "Successfully started preferred replica election for partitions "

    def results(self, **by_topic):
        return {"replica_election_results": [
            {"topic": t, "partition_result": [{"partition_id": p, "error_code": e, "error_message": m}
                                              for p, e, m in rows]} for t, rows in by_topic.items()]}

    def test_the_published_example_is_understood(self):
        """R55: partition numbers in quotes, a comma after the last element."""
        path = self.file("p.json", '{"partitions":\n [{"topic":"a","partition":"0"},\n'
                                   '  {"topic":"a","partition":"1"},\n ],\n}\n')
        self.broker.script(Metadata=METADATA, ElectLeaders=self.results(a=[(0, 84, None), (1, 0, None)]))
        r = self.kafka("preferred-election", "--path-to-json-file", path)
        self.expect(r, OK, self.MADE + "[a,0], [a,1]\n", "")
        body = self.asked_once("ElectLeaders")
        self.assertEqual(body["election_type"], 0)
        self.assertEqual(body["topic_partitions"], [{"topic": "a", "partitions": [0, 1]}])

    def test_without_a_file_all_partitions_are_asked_for(self):
        self.broker.script(Metadata=METADATA, ElectLeaders=self.results(a=[(1, 0, None)]))
        r = self.kafka("preferred-election")
        self.expect(r, OK, self.MADE + "[a,1]\n", "")
        self.assertIsNone(self.asked_once("ElectLeaders")["topic_partitions"])

    def test_nothing_to_do(self):
        self.broker.script(Metadata=METADATA, ElectLeaders=self.results())
        self.expect(self.kafka("preferred-election"), OK, self.MADE + "(each has its preferred leader)\n", "")

    def test_a_replica_that_is_not_in_sync(self):
        """R56: the others are moved; the status says that it is worth trying again."""
        self.broker.script(Metadata=METADATA, ElectLeaders=self.results(
            a=[(0, 0, None), (1, 80, "the preferred replica is not in sync")]))
        r = self.kafka("preferred-election", "--topic", "a")
        self.expect(r, INCOMPLETE, self.MADE + "[a,0]\n",
                    "stepdown preferred-election: partition [a,1] keeps its leader: "
                    "PREFERRED_LEADER_NOT_AVAILABLE: the preferred replica is not in sync\n")
        r = self.kafka("preferred-election", "--topic", "a", "--json")
        self.assertEqual(r.status, INCOMPLETE)
        self.assertEqual(r.json, {"partitions": [
            {"topic": "a", "partition": 0, "result": "elected"},
            {"topic": "a", "partition": 1, "result": "failed", "error": "PREFERRED_LEADER_NOT_AVAILABLE"}],
            "skipped": 0})

    def test_what_does_not_exist_is_dropped_and_the_rest_is_done(self):
        path = self.file("p.json", {"partitions": [{"topic": "x", "partition": 0}, {"topic": "a", "partition": 9},
                                                   {"topic": "a", "partition": 0}]})
        self.broker.script(Metadata=METADATA, ElectLeaders=self.results(a=[(0, 0, None)]))
        r = self.kafka("preferred-election", "--path-to-json-file", path)
        self.expect(r, FAILED, self.MADE + "[a,0]\n",
                    "Skipping preferred replica leader election of partition [x,0] since topic x doesn't exist\n"
                    "Skipping preferred replica leader election of partition [a,9] since it doesn't exist\n")

    def test_nothing_is_left(self):
        path = self.file("p.json", {"partitions": [{"topic": "x", "partition": 0}]})
        self.broker.script(Metadata=METADATA)
        r = self.kafka("preferred-election", "--path-to-json-file", path)
        self.expect(r, FAILED, "Failed to start preferred replica election\n", ["there is no partition"])

    def test_a_missing_topic(self):
        self.broker.script(Metadata=metadata(topic("x", error=3)))
        self.expect(self.kafka("preferred-election", "--topic", "x"), FAILED, "", ["topic x doesn't exist!"])
        root = self.zk.cluster(topics=TOPICS)
        self.expect(self.zookeeper(root, "preferred-election", "--topic", "x"), FAILED, "",
                    ["topic x doesn't exist!"])

    def test_the_whole_request_is_refused(self):
        self.broker.script(Metadata=METADATA, ElectLeaders={"error_code": 31})
        self.expect(self.kafka("preferred-election"), FAILED, "Failed to start preferred replica election\n",
                    ["CLUSTER_AUTHORIZATION_FAILED"])

    def test_a_controller_that_moves_is_followed(self):
        self.broker.script(Metadata=METADATA, ElectLeaders=[{"error_code": 41}, self.results(a=[(1, 0, None)])])
        self.expect(self.kafka("preferred-election"), OK, self.MADE + "[a,1]\n", "")
        self.assertEqual(len(self.broker.asked("ElectLeaders")), 2)

    def test_an_old_broker_is_asked_in_its_own_version(self):
        self.broker.script(versions={"ElectLeaders": [0, 0]}, Metadata=METADATA,
                           ElectLeaders=self.results(a=[(1, 0, None)]))
        self.expect(self.kafka("preferred-election"), OK, self.MADE + "[a,1]\n", "")
        self.assertEqual(self.broker.asked("ElectLeaders")[0]["version"], 0)

    def test_a_broker_that_does_not_serve_it(self):
        self.broker.script(versions={"ElectLeaders": None}, Metadata=METADATA)
        self.expect(self.kafka("preferred-election"), FAILED, "", [
            f"the controller, broker 1, at {self.broker.address} does not serve ElectLeaders"])

    def test_through_zookeeper_the_list_is_written(self):
        """R54: created for the controller to find, all partitions without a file."""
        root = self.zk.cluster(topics=TOPICS)
        r = self.zookeeper(root, "preferred-election")
        self.expect(r, OK, self.MADE + "[a,0], [a,1], [b,0], [c,0]\n", "")
        self.assertEqual(self.zk.client.get(root + "/admin/preferred_replica_election"),
                         b'{"version":1,"partitions":[{"topic":"a","partition":0},{"topic":"a","partition":1},'
                         b'{"topic":"b","partition":0},{"topic":"c","partition":0}]}')

    def test_the_parent_is_made_when_it_is_missing(self):
        root = self.zk.cluster(topics=TOPICS)
        self.zk.client.delete(root + "/admin/delete_topics")
        self.zk.client.delete(root + "/admin")
        self.expect(self.zookeeper(root, "preferred-election", "--topic", "b"), OK, self.MADE + "[b,0]\n", "")
        self.assertIsNotNone(self.zk.read(root + "/admin/preferred_replica_election"))

    def test_a_second_list_is_not_written_over_the_first(self):
        root = self.zk.cluster(topics=TOPICS)
        self.expect(self.zookeeper(root, "preferred-election", "--topic", "b"), OK, err="")
        r = self.zookeeper(root, "preferred-election", "--topic", "a", "--partition", 1)
        self.expect(r, FAILED, "Failed to start preferred replica election\n",
                    "Preferred replica leader election currently in progress for [b,0]. Aborting operation\n")
        self.assertEqual(self.zk.read(root + "/admin/preferred_replica_election")["partitions"],
                         [{"topic": "b", "partition": 0}])

    def test_no_permission(self):
        root = self.zk.cluster(topics=TOPICS)
        self.zk.client.set_acl(root + "/admin", READ_ONLY)
        r = self.zookeeper(root, "preferred-election")
        self.expect(r, FAILED, "", [f"no permission to create {root}/admin/preferred_replica_election in ZooKeeper "
                                    f"({self.zk.address})"])


class JsonFiles(ClusterCase):
    """The same reader serves every tool; a file that is wrong is refused before anybody is asked."""

    def refused(self, content, *pieces):
        path = self.file("p.json", content)
        r = self.run_tool("preferred-election", "--path-to-json-file", path, "--bootstrap", UNREACHABLE)
        self.expect(r, USAGE, "", [f"stepdown preferred-election: {path}: ", *pieces])
        r = self.run_tool("reassign", "--manual-assignment-json-file", path, "--zookeeper", UNREACHABLE)
        self.expect(r, USAGE, "", [f"stepdown reassign: {path}: ", *pieces])

    def test_malformed_json_is_refused_with_line_and_column(self):
        self.refused('{"partitions":\n  [{"topic":"a" "partition":0}]}', "malformed JSON at line 2, column 27: ")
        self.refused("", "malformed JSON at line 1, column 0: ")
        self.refused('{"partitions":[,]}', "malformed JSON at line 1, column 16: ")
        self.refused("[1,2]", "malformed JSON", "not an object")
        self.refused('{"partitions":[]} more', "malformed JSON at line 1, column 22: ")

    def test_members_are_refused_with_their_place(self):
        one = {"topic": "a", "partition": 0, "replicas": [1]}
        self.refused({"topics": []}, '"partitions" is missing or no list')
        self.refused({"partitions": [one, {"partition": 0}]}, 'partitions[1]: "topic" must be a topic\'s name')
        self.refused({"partitions": [{**one, "partition": -1}]}, 'partitions[0]: "partition" must be a number from 0')
        self.refused({"partitions": [{**one, "partition": "1x"}]}, 'partitions[0]: "partition" must be')
        self.refused({"partitions": [one, {**one, "partition": 1}, one]}, "partitions[2]: [a,0] stands there twice")

    def test_replicas_are_refused_with_their_place(self):
        for replicas, sentence in (([], '"replicas" must be a list of broker ids'),
                                   ([1, "x"], '"replicas" must be a list of broker ids'),
                                   ([1, 2, 1], "[a,0] has a broker twice among its replicas")):
            path = self.file("p.json", {"partitions": [{"topic": "a", "partition": 0, "replicas": replicas}]})
            r = self.run_tool("reassign", "--manual-assignment-json-file", path, "--bootstrap", UNREACHABLE)
            self.expect(r, USAGE, "", [f"{path}: partitions[0]: {sentence}"])

    def test_a_file_that_is_not_there(self):
        r = self.run_tool("preferred-election", "--path-to-json-file", self.dir / "none.json")
        self.expect(r, USAGE, "", ["none.json: No such file or directory"])


class Unreachable(ClusterCase):
    """Bounded, and every address is named."""

    TOOLS = (("shutdown-broker", "--broker", "1"), ("preferred-election",), ("topics", "list"),
             ("topics", "create", "--topic", "t"), ("topics", "delete", "--topic", "t"),
             ("partitions", "add", "--topic", "t", "--partition", "1"), ("reassign", "--manual"))

    def tools(self):
        path = self.file("m.json", {"partitions": [{"topic": "a", "partition": 0, "replicas": [1]}]})
        for tool in self.TOOLS:
            yield [x if x != "--manual" else f"--manual-assignment-json-file={path}" for x in tool]

    def test_zookeeper(self):
        for tool in self.tools():
            with self.subTest(tool=tool):
                begin = time.monotonic()
                r = self.run_tool(*tool, "--zookeeper", "127.0.0.1:1,127.0.0.1:2/kafka", "--timeout", "500ms")
                self.expect(r, UNAVAILABLE, "", f"stepdown {tool[0]}: no ZooKeeper server of "
                                                "127.0.0.1:1,127.0.0.1:2 answered within 0.5 s\n")
                self.assertLess(time.monotonic() - begin, 5)

    def test_brokers(self):
        for tool in self.tools():
            with self.subTest(tool=tool):
                r = self.run_tool(*tool, "--bootstrap", "127.0.0.1:1,127.0.0.1:2")
                self.expect(r, UNAVAILABLE, "", ["no broker of 127.0.0.1:1,127.0.0.1:2 answered"])

    def test_a_wrong_chroot_is_told_and_not_created(self):
        root = self.zk.cluster(topics=TOPICS)
        for tool in self.tools():
            if tool[0] == "shutdown-broker":
                continue
            with self.subTest(tool=tool):
                r = self.zookeeper(root + "/typo", *tool)
                self.expect(r, FAILED, "", ["no Kafka cluster lives there: ZooKeeper has no /brokers/ids"])
        self.assertIsNone(self.zk.client.get(root + "/typo"))

    def test_addresses_that_are_none(self):
        for tool in self.tools():
            with self.subTest(tool=tool):
                self.expect(self.run_tool(*tool, "--zookeeper", "h:99999"), USAGE, "", ["'h:99999' is not a list of"])
                self.expect(self.run_tool(*tool, "--bootstrap", "nowhere"), USAGE, "", ["'nowhere' in --bootstrap"])
                self.expect(self.run_tool(*tool, "--bootstrap", "h:1", "--zookeeper", "h:1"), USAGE, "",
                            ["either --zookeeper or --bootstrap, not both"])


class Help(ToolCase):
    VERBS = ("drain", "shutdown-broker", "preferred-election", "topics", "partitions", "reassign", "state-changes",
             "cluster", "completion")

    def test_every_verb_has_help_with_its_exit_statuses(self):
        listed = self.run_tool("--help")
        for verb in self.VERBS:
            with self.subTest(verb=verb):
                self.assertIn(f"\n  {verb} ", listed.out)
                r = self.run_tool(verb, "--help")
                self.expect(r, OK, err="")
                self.assertTrue(r.out.startswith(f"usage: stepdown {verb} "))
                self.assertIn("exit status:", r.out)

    def test_completion_knows_verbs_options_and_actions(self):
        script = self.run_tool("completion", "bash")
        self.expect(script, OK, err="")
        path = self.file("completion.bash", script.out)
        for words, expected in ((("stepdown", "re"), {"reassign"}),
                                (("stepdown", "topics", ""), {"list", "describe", "create", "delete"}),
                                (("stepdown", "shutdown-broker", "--num"), {"--num-retries"}),
                                (("stepdown", "reassign", "--e"), {"--execute"}),
                                (("stepdown", "topics", "list", "--topic", ""), set()),
                                (("stepdown", "reassign", "--manual-assignment-json-file", str(path)[:-4]),
                                 {str(path)})):
            with self.subTest(words=words):
                line = (f"source {path}; COMP_WORDS=({' '.join(repr(w) for w in words)}); "
                        f"COMP_CWORD={len(words) - 1}; _stepdown; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
                out = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, timeout=20)
                self.assertEqual({w.strip() for w in out.stdout.splitlines() if w.strip()}, expected)
        self.expect(self.run_tool("completion", "fish"), USAGE, "", ["say bash"])


if __name__ == "__main__":
    sys.exit(main(sys.argv))
