#!/usr/bin/python3
"""Golden tests of `stepdown check`, `broker`, `drains` and `cluster`: what they print and how they end.

Usage: test_inspect_cli.py STEPDOWN
"""

import copy
import http.server
import json
import sys
import threading
import unittest

from tools import FAILED, INCOMPLETE, OK, UNAVAILABLE, UNREACHABLE, USAGE, ToolCase

RISK = 80


class Admin(http.server.ThreadingHTTPServer):
    """Answers each path with what `answers` says: (status, body)."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.asked = {}, []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        status, body = self.server.answers.get(self.path, (404, {"error": "no_such_path", "message": "no such path"}))
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


SAFE = {
    "broker": 2, "epoch": 7, "safe": True, "worst": "safe", "partitions": 30, "replicas": 28, "leaders": 10, "stuck": 0,
    "delays": 0, "drain_state": "none", "risks": {}, "unclean": 0, "never_safe": 0, "draining": [],
    "estimate": {"ms": 1234, "source": "measured", "drains": 3, "replicas_per_second": 4000.0},
    "controller": 1, "controller_epoch": 4, "zookeeper_available": True,
}


def risk(n, waits, *items, already=0):
    return {"partitions": n, "already": already, "explanation": "because", "goes_away": waits, "list": list(items)}


def item(partition, already=False):
    return {"topic": "t", "partition": partition, "leader": 2, "min_isr": 2, "in_sync_left": 1, "goes_away": "catch_up",
            "already": already, "never_safe": False, "isr": [2, 3], "replicas": [2, 3, 1]}


class InspectTest(ToolCase):
    def setUp(self):
        super().setUp()
        self.admin = Admin()
        self.addCleanup(self.admin.server_close)
        self.addCleanup(self.admin.shutdown)

    def ask(self, *args):
        return self.run_tool(*args, "--endpoints", self.admin.url)

    def check(self, answer, *args, path="/v1/brokers/2/check"):
        self.admin.answers[path] = (200, answer)
        return self.ask("check", 2, *args)

    def with_risks(self, **risks):
        v = copy.deepcopy(SAFE)
        v["risks"] = risks
        return v

    # --- check ---

    def test_a_safe_stop(self):
        self.expect(self.check(SAFE), OK, "broker 2: it can be stopped\n"
                    "drain: 10 leaders to move, 28 replicas to leave, about 1.2 s (measured: 4000 replicas a second in "
                    "the last 3 drains)\n", "")
        v = copy.deepcopy(SAFE)
        v["estimate"] = {"ms": 5140, "source": "default", "drains": 0, "replicas_per_second": 200.0}
        self.expect(self.check(v), OK, "broker 2: it can be stopped\n"
                    "drain: 10 leaders to move, 28 replicas to leave, about 5.1 s (assumed: no drain of this cluster has "
                    "been measured)\n", "")

    def test_a_risk_that_goes_away_by_itself(self):
        v = self.with_risks(below_min_isr=risk(12, {"catch_up": 12}, *map(item, range(11)), already=1))
        v["risks"]["below_min_isr"]["list"][0]["already"] = True
        lines = "".join(f"    [t,{i}] leader 2 isr 2,3 replicas 2,3,1 min.insync.replicas 2{', so already' if i == 0 else ''}\n"
                        for i in range(10))
        self.expect(self.check(v), INCOMPLETE, "broker 2: not now; waiting helps\n"
                    "below_min_isr: 12 partitions: because\n  12 until live replicas are in sync\n" + lines +
                    "    and 2 more\n"
                    "drain: 10 leaders to move, 28 replicas to leave, about 1.2 s (measured: 4000 replicas a second in "
                    "the last 3 drains)\n", "")

    def test_which_risks_count(self):
        cases = [
            ({"unavailable": risk(2, {"catch_up": 1, "drained_return": 1})}, (), INCOMPLETE),
            ({"unavailable": risk(2, {"catch_up": 1, "offline_return": 1})}, (), RISK),
            ({"below_min_isr": risk(1, {"never": 1})}, (), RISK),
            ({"single_replica": risk(1, {"never": 1})}, (), RISK),
            ({"single_replica": risk(1, {"never": 1})}, ("--ignore-rf1",), OK),
            ({"one_copy_left": risk(1, {"catch_up": 1})}, (), OK),
            ({"one_copy_left": risk(1, {"catch_up": 1})}, ("--strict",), INCOMPLETE),
            ({"one_copy_left": risk(1, {"never": 1})}, ("--strict",), RISK),
            ({"unavailable": risk(1, {"never": 1}), "below_min_isr": risk(1, {"catch_up": 1})}, (), RISK),
        ]
        for risks, options, status in cases:
            with self.subTest(risks=risks, options=options):
                self.assertEqual(self.check(self.with_risks(**risks), *options).status, status)

    def test_another_drain_a_stuck_leader_and_a_silent_zookeeper(self):
        v = copy.deepcopy(SAFE)
        v.update(stuck=1, delays=2, unclean=1, zookeeper_available=False, drain_state="draining",
                 draining=[{"broker": 3, "state": "drained", "drain_id": "roll", "since_ms": 1, "deadline_ms": 0}],
                 budget={"ms": 1500000, "suffices": False, "why": "stuck"})
        r = self.check(v, "--deadline", "25min", path="/v1/brokers/2/check?budget_ms=1500000")
        self.expect(r, INCOMPLETE, "broker 2: not now; waiting helps\n"
                    "unclean.leader.election.enable would lose messages of 1 of these\n"
                    "2 partitions wait for its replicas to catch up\n"
                    "drain: 10 leaders to move, 28 replicas to leave, about 1.2 s (measured: 4000 replicas a second in "
                    "the last 3 drains)\n"
                    "  1 of them cannot move before other replicas are in sync\n"
                    "budget: 25 min; not known to suffice: some leaderships cannot move now\n"
                    "broker 3 is drained (drain roll); brokers go one at a time\n"
                    "its own drain is under way: draining\n"
                    "ZooKeeper does not answer the controller: this is what was last known\n", "")

    def test_the_budget_is_the_sidecars_on_its_own_host(self):
        config = self.file("sidecar.yaml", "broker.id: 2\ndrain.deadline: 10s\nstop.timeout: 2min\n")
        v = copy.deepcopy(SAFE)
        v["budget"] = {"ms": 10000, "suffices": True, "why": ""}
        r = self.check(v, "--config", config, path="/v1/brokers/2/check?budget_ms=10000")
        self.assertEqual((r.status, r.out.splitlines()[-1]), (OK, "budget: 10.0 s; it suffices"))
        # a longer one is cut to what the platform's limit leaves (L2)
        self.check(v, "--config", config, "--deadline", "1h", path="/v1/brokers/2/check?budget_ms=90000")
        v["budget"]["why"] = "too_short"
        r = self.check(v, "--config", config, path="/v1/brokers/2/check?budget_ms=10000")
        self.assertEqual((r.status, r.out.splitlines()[-1]), (RISK, "budget: 10.0 s; it is too short"))
        self.admin.asked.clear()
        other = self.file("other.yaml", "broker.id: 3\n")
        self.assertEqual(self.check(SAFE, "--config", other).status, OK)
        self.assertEqual(self.admin.asked, ["/v1/brokers/2/check"])
        self.expect(self.ask("check", 2, "--config", self.file("bad.yaml", "drain.deadlin: 1\n")), USAGE, "",
                    ["stepdown check: ", "drain.deadlin"])

    def test_json_is_the_answer_as_it_came(self):
        text = json.dumps(self.with_risks(below_min_isr=risk(1, {"never": 1})), indent=1).encode() + b"\n"
        self.admin.answers["/v1/brokers/2/check"] = (200, text)
        self.expect(self.ask("check", 2, "--json"), RISK, text.decode(), "")

    def test_check_without_an_answer(self):
        self.admin.answers["/v1/brokers/2/check"] = (404, {"error": "unknown_broker", "message": "no such broker"})
        self.expect(self.ask("check", 2), FAILED, "", "stepdown check: no such broker\n")
        self.admin.answers["/v1/brokers/2/check"] = (503, {"error": "no_controller", "message": "no controller now"})
        self.expect(self.ask("check", 2), UNAVAILABLE, "",
                    f"stepdown check: no answer from a controller (last: {self.admin.url}/v1/brokers/2/check: HTTP 503 no "
                    "controller now)\n")
        for strange in (b"not json", {"broker": 2}, []):
            self.admin.answers["/v1/brokers/2/check"] = (200, strange)
            self.expect(self.ask("check", 2, "--json"), UNAVAILABLE, "", ["the answer is not what was asked for"])
        self.expect(self.run_tool("check", 2, "--endpoints", f"http://{UNREACHABLE}"), UNAVAILABLE, "",
                    ["stepdown check: no answer from a controller"])
        # the next endpoint is asked
        self.admin.answers["/v1/brokers/2/check"] = (200, SAFE)
        self.assertEqual(self.run_tool("check", 2, "--endpoints", f"http://{UNREACHABLE},{self.admin.url}").status, OK)

    def test_wrong_usage(self):
        for args in (("check",), ("check", "x"), ("check", -1), ("check", 1, 2), ("check", 1, "--deadline", "soon"),
                     ("broker",), ("broker", "b"), ("drains", 1), ("drains", "--broker", "b"),
                     ("check", 1, "--endpoints", "ftp://x")):
            with self.subTest(args=args):
                r = self.run_tool(*args)
                self.assertEqual((r.status, r.out), (USAGE, ""), r.err)
                self.assertEqual(r.err.count("\n"), 1)

    # --- broker ---

    BROKER = {
        "broker": 2, "registered": True, "epoch": 34, "since_ms": 1, "address": "h:9092", "admin": "h:9644",
        "is_controller": True, "controller": 2, "controller_epoch": 4, "leaders": 10, "leaders_rf1": 1, "preferred": 9,
        "preferred_elsewhere": 2, "replicas": 30, "in_sync": 30, "under_replicated": 0, "offline": 0, "caught_up": True,
        "catching_up_total": 0, "catching_up": [], "zookeeper_available": True,
        "drain": {"state": "none", "drain_id": "", "since_ms": 0, "deadline_ms": 0, "moved": 0},
    }

    def broker(self, **changes):
        self.admin.answers["/v1/brokers/2"] = (200, {**self.BROKER, **changes})
        return self.ask("broker", 2)

    def test_a_broker_that_is_back(self):
        r = self.broker()
        self.assertEqual(r.status, OK, r.err)
        self.assertRegex(r.out, r"\Abroker 2: registered \d+ min ago at h:9092, epoch 34, the controller\n"
                         r"  leads 10, first replica of 9, of them 2 led by others\n"
                         r"  replicas 30, in sync 30, catching up 0\n\Z")

    def test_a_broker_that_catches_up_or_is_gone(self):
        r = self.broker(is_controller=False, controller=1, in_sync=18, caught_up=False, catching_up_total=12,
                        catching_up=[{"topic": "t", "partition": i, "leader": 1, "isr": [1], "replicas": [1, 2]} for i in range(11)],
                        drain={"state": "draining", "drain_id": "d", "moved": 3})
        self.assertEqual(r.status, INCOMPLETE)
        self.assertEqual(r.out.splitlines()[1:5],
                         ["  controller 1", "  leads 10, first replica of 9, of them 2 led by others",
                          "  replicas 30, in sync 18, catching up 12", "    [t,0] leader 1 isr 1"])
        self.assertEqual(r.out.splitlines()[-2:], ["    and 2 more", "  drain d: draining, 3 moved"])
        r = self.broker(registered=False, epoch=-1, is_controller=False, caught_up=False)
        self.assertEqual((r.status, r.out.splitlines()[0]), (INCOMPLETE, "broker 2: not registered"))

    # --- drains ---

    def test_the_record_of_drains(self):
        drain = {"drain_id": "roll-7", "broker": 2, "epoch": 7, "reason": "kernel", "requested_by": "ops",
                 "verdict": "drained", "started_ms": 1700000000000, "deadline_ms": None, "drained_ms": 1700000001500,
                 "ended_ms": 1700000003000, "leaders": 10, "replicas": 30, "moved": 10, "remaining": 0,
                 "isr_remaining": 0, "rf1_led": 0, "by_reason": {}, "left": [], "controller": 1}
        gone = {**drain, "drain_id": "d-6", "reason": "", "requested_by": "", "verdict": "broker-gone", "drained_ms": None,
                "moved": 7, "remaining": 3, "by_reason": {"no_other_in_sync_replica": 3}}
        going = {**drain, "drain_id": "d-5", "reason": "", "verdict": None, "drained_ms": None, "ended_ms": None,
                 "remaining": None, "moved": 1}
        self.admin.answers["/v1/drains"] = (200, {"drains": [drain, gone, going]})
        self.expect(self.ask("drains"), OK,
                    "2023-11-14T22:13:20.000Z  broker 2  drained  moved 10 of 10, 0 remained, in 1.5 s\n"
                    "  drain roll-7 by ops: kernel\n"
                    "2023-11-14T22:13:20.000Z  broker 2  broker-gone  moved 7 of 10, 3 remained, in 3.0 s\n"
                    "  drain d-6\n  left: 3 no_other_in_sync_replica\n"
                    "2023-11-14T22:13:20.000Z  broker 2  under way  moved 1 of 10\n  drain d-5 by ops\n", "")
        self.admin.answers["/v1/drains?broker=9"] = (200, {"drains": []})
        self.expect(self.ask("drains", "--broker", 9), OK, "no drain is on record\n", "")
        self.admin.answers["/v1/drains"] = (200, {"drains": [{"broker": 1}]})
        self.assertEqual(self.ask("drains").status, UNAVAILABLE)

    # --- cluster ---

    def test_the_cluster(self):
        broker = {"id": 1, "host": "h", "port": 9092, "admin": "h:9644", "leaders": 3, "replicas": 9, "drain_state": "none"}
        self.admin.answers["/v1/cluster"] = (200, {
            "cluster_id": "c", "controller": 1, "topics": 1, "partitions": 3, "under_replicated": 0, "offline": 0,
            "brokers": [broker, {**broker, "id": 2, "drain_state": "drained"}]})
        r = self.ask("cluster")
        self.assertEqual(r.status, OK, r.err)
        lines = r.out.splitlines()
        self.assertEqual(lines[0], "cluster c: 1 topics, 3 partitions, 0 under-replicated, 0 offline")
        self.assertEqual([line.split() for line in lines[2:]],
                         [["1*", "h:9092", "h:9644", "3", "9", "serving"], ["2", "h:9092", "h:9644", "3", "9", "drained"]])


if __name__ == "__main__":
    ToolCase.stepdown = sys.argv[1]
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
