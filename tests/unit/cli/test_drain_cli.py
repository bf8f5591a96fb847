#!/usr/bin/python3
"""`stepdown drain` and stepdown-sidecar as processes: exit statuses, the fallback, what systemd is told.

Usage: test_drain_cli.py STEPDOWN SIDECAR FAKE_CONTROLLER
"""

import array
import fcntl
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

STEPDOWN, SIDECAR, FAKE = sys.argv[1:4]

SETTINGS = {
    "POLL_INTERVAL": "10ms", "RETRY_BACKOFF_MIN": "5ms", "RETRY_BACKOFF_MAX": "50ms",
    "ADMIN_CONNECT_TIMEOUT": "500ms", "ADMIN_REQUEST_TIMEOUT": "1s", "DRAIN_DEADLINE": "30s",
    "NO_CONTROLLER_BUDGET": "1500ms", "SETTLE_TIMEOUT": "1s",
}


def wait_until(what, condition, limit=15):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"not within {limit} s: {what}")


class Notify:
    """Stands for PID 1's end of $NOTIFY_SOCKET."""

    def __init__(self, path):
        self.path, self.lines, self.times = path, [], []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            data, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(4 * 4))
            for _, _, fds in ancillary:  # a barrier waits until its descriptor is closed
                got = array.array("i")
                got.frombytes(fds[:len(fds) - len(fds) % got.itemsize])
                for fd in got:
                    os.close(fd)
            for line in data.decode().splitlines():
                self.lines.append(line)
                self.times.append((time.monotonic(), line))

    def with_prefix(self, prefix):
        return [line for line in self.lines if line.startswith(prefix)]


class DrainTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="stepdown-cli-")
        self.dir = self.directory.name
        self.processes = []
        self.env = {k: v for k, v in os.environ.items()
                    if k not in ("NOTIFY_SOCKET", "MAINPID", "SERVICE_RESULT", "INVOCATION_ID", "JOURNAL_STREAM")}
        for key, value in SETTINGS.items():
            self.env["STEPDOWN_SIDECAR_" + key] = value
        self.set("CONTROL_SOCKET", self.dir + "/ctl.sock")
        self.set("STATE_DIR", self.dir + "/state")
        self.set("RESULT_FILE", self.dir + "/last-stop.json")

    def tearDown(self):
        for p in self.processes:
            if p.poll() is None:
                p.kill()
            p.wait()
            for stream in (p.stdin, p.stdout, p.stderr):
                if stream:
                    stream.close()
        self.directory.cleanup()

    def set(self, key, value):
        self.env["STEPDOWN_SIDECAR_" + key] = value

    def spawn(self, *command, env=(), **options):
        p = subprocess.Popen(command, env={**self.env, **dict(env)}, text=True, **options)
        self.processes.append(p)
        return p

    def fake(self, servers=({"role": "controller"},), **state):
        p = self.spawn("/usr/bin/python3", FAKE, json.dumps({"servers": list(servers), **state}),
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ports = json.loads(p.stdout.readline())["ports"]
        self.set("ADMIN_ENDPOINTS", ",".join(f"http://127.0.0.1:{n}" for n in self.ports))
        return p

    def state(self, method="GET", **change):
        c = http.client.HTTPConnection("127.0.0.1", self.ports[0], timeout=5)
        c.request(method, "/_state", json.dumps(change))
        body = json.loads(c.getresponse().read())
        c.close()
        return body

    def sidecar(self, env=()):
        p = self.spawn(SIDECAR, stderr=subprocess.PIPE, env=env)
        wait_until("the control socket", lambda: self.ask({"op": "status"}))
        return p

    def ask(self, request):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(5)
            try:
                s.connect(self.env["STEPDOWN_SIDECAR_CONTROL_SOCKET"])
            except OSError:
                return None
            s.sendall(json.dumps(request).encode() + b"\n")
            with s.makefile() as answer:
                line = answer.readline()
        return json.loads(line) if line else None

    def drain(self, *arguments, env=()):
        return self.spawn(STEPDOWN, "drain", *arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self, p, limit=20):
        out, err = p.communicate(timeout=limit)
        return p.returncode, out, err

    def main_process(self):
        return self.spawn("/bin/sleep", "600")

    def exec_stop(self, main, **more):
        """The environment of an ExecStop= process, with a NOTIFY_SOCKET."""
        self.notify = Notify(self.dir + "/notify")
        env = {"SERVICE_RESULT": "success", "INVOCATION_ID": "0123", "NOTIFY_SOCKET": self.notify.path, **more}
        if main:
            env["MAINPID"] = str(main.pid)
        return env

    def record(self):
        with open(self.dir + "/last-stop.json", encoding="utf-8") as f:
            return json.load(f)

    # --- by the sidecar ---

    def test_the_sidecar_does_the_work_and_the_client_reports_it(self):
        self.fake(leaders=6)
        self.sidecar()
        status, out, err = self.finish(self.drain("--wait", "--reason", "test"))
        self.assertEqual(status, 0, err)
        self.assertTrue(out.startswith("Drained: "), out)
        self.assertNotIn("drain-direct", err)
        self.assertEqual({r["method"] for r in self.state()["requests"] if r["path"].endswith("/drain")},
                         {"PUT", "GET"})
        put = [r for r in self.state()["requests"] if r["method"] == "PUT" and r["path"] != "/_state"][0]
        self.assertEqual(put["body"]["epoch"], 41)
        self.assertEqual(put["body"]["reason"], "test")

    def test_without_wait_it_returns_when_the_drain_is_accepted_and_the_sidecar_goes_on(self):
        self.fake(leaders=500, step=1)
        self.sidecar()
        status, _, err = self.finish(self.drain())
        self.assertEqual(status, 0, err)
        self.assertEqual(self.ask({"op": "status"})["status"]["state"], "draining")
        self.state("PUT", leaders=0)
        wait_until("drained", lambda: self.ask({"op": "status"})["status"]["state"] == "drained")

    def test_L10_a_second_client_joins_the_drain_of_the_first(self):
        self.fake(leaders=100, step=0)
        self.sidecar()
        first, second = self.drain("--wait", "--json"), self.drain("--wait", "--json")
        wait_until("a request", lambda: self.state()["drain_id"])
        self.state("PUT", step=50)
        (status1, out1, _), (status2, out2, _) = self.finish(first), self.finish(second)
        self.assertEqual((status1, status2), (0, 0))
        self.assertEqual(json.loads(out1)["drain_id"], json.loads(out2)["drain_id"])

    def test_status_and_undo_go_through_the_sidecar(self):
        self.fake(leaders=4, step=0)
        self.sidecar()
        waiting = self.drain("--wait")
        wait_until("draining", lambda: self.ask({"op": "status"})["status"]["state"] == "draining")
        status, out, _ = self.finish(self.drain("--status"))
        self.assertEqual(status, 0)
        self.assertIn("4 leader partitions remain", out)
        self.assertIn("[t,3] no_other_in_sync_replica", out)
        status, out, err = self.finish(self.drain("--undo"))
        self.assertEqual(status, 0, out + err)
        self.assertEqual(self.state()["drain_id"], "")
        self.assertEqual(self.finish(waiting)[0], 75)

    def test_status_of_an_ended_drain_is_what_the_controller_says_now(self):
        fake = self.fake(leaders=4)
        self.sidecar()
        self.assertEqual(self.finish(self.drain("--wait"))[0], 0)
        self.assertIn("Drained: ", self.finish(self.drain("--status"))[1])
        self.state("PUT", drain_id="", leaders=4)  # the broker has restarted since
        self.assertEqual(self.finish(self.drain("--status"))[1], "No drain\n")
        fake.kill()
        fake.wait()
        status, out, _ = self.finish(self.drain("--status"))  # nobody to ask: what the sidecar knows is better than nothing
        self.assertEqual(status, 0)
        self.assertIn("Drained: ", out)

    def test_status_with_nobody_to_ask_is_69(self):
        self.fake(servers=[{"role": "closed"}])
        self.assertEqual(self.finish(self.drain("--status"))[0], 69)

    def test_another_broker_than_the_sidecars_is_drained_directly(self):
        self.fake(leaders=4)
        self.set("BROKER_ID", "7")
        self.sidecar()
        status, _, err = self.finish(self.drain("--wait", "--broker", "1"))
        self.assertEqual(status, 0, err)
        self.assertIn("wrong_broker", err)

    # --- when the sidecar is not there ---

    def test_L6_without_a_sidecar_the_client_does_the_work(self):
        self.fake(leaders=6)
        status, out, err = self.finish(self.drain("--wait"))
        self.assertEqual(status, 0, err)
        self.assertIn("drain-direct", err)
        self.assertTrue(out.startswith("Drained: "), out)

    def test_L6_a_sidecar_killed_in_the_middle_is_replaced_by_the_client_under_the_same_id(self):
        self.fake(leaders=50, step=0)
        sidecar = self.sidecar()
        client = self.drain("--wait", "--json")
        wait_until("a request", lambda: self.state()["drain_id"])
        drain_id = self.state()["drain_id"]
        sidecar.kill()
        self.state("PUT", step=10)
        status, out, err = self.finish(client)
        self.assertEqual(status, 0, err)
        self.assertIn("the sidecar has gone", err)
        self.assertEqual(json.loads(out)["drain_id"], drain_id)
        self.assertEqual(json.loads(out)["moved"], 50)

    def test_L6_a_sidecar_that_is_stopped_by_a_signal_is_not_waited_for(self):
        self.fake(leaders=50, step=0)
        sidecar = self.sidecar()
        client = self.drain("--wait")
        wait_until("a request", lambda: self.state()["drain_id"])
        sidecar.send_signal(signal.SIGSTOP)
        self.state("PUT", step=10)
        status, _, err = self.finish(client)
        self.assertEqual(status, 0, err)
        self.assertIn("does not answer", err)

    def test_L10_a_sidecar_takes_up_the_drain_of_its_predecessor(self):
        self.fake(leaders=50, step=0)
        sidecar = self.sidecar()
        self.assertEqual(self.finish(self.drain())[0], 0)
        before = self.ask({"op": "status"})["status"]
        sidecar.kill()
        sidecar.wait()
        self.sidecar()
        after = wait_until("draining again", lambda: (s := self.ask({"op": "status"})["status"])["state"] ==
                           "draining" and s)
        self.assertEqual(after["drain_id"], before["drain_id"])
        self.assertEqual(after["started_at"], before["started_at"])
        self.assertLessEqual(after["deadline_in_seconds"], before["deadline_in_seconds"])
        self.state("PUT", step=50)
        wait_until("drained", lambda: self.ask({"op": "status"})["status"]["state"] == "drained")
        self.assertFalse(os.path.exists(self.dir + "/state/active-drain.json"))
        with open(self.dir + "/state/last-drain.json", encoding="utf-8") as f:
            self.assertEqual(json.load(f)["verdict"], "drained")

    def test_L6_the_sidecar_puts_its_exit_off_while_a_drain_is_active(self):
        self.fake(leaders=50, step=0)
        notify = Notify(self.dir + "/notify-sidecar")
        sidecar = self.sidecar(env={"NOTIFY_SOCKET": notify.path})
        wait_until("READY=1", lambda: "READY=1" in notify.lines)
        self.assertEqual(self.finish(self.drain())[0], 0)
        sidecar.send_signal(signal.SIGTERM)
        wait_until("an extension", lambda: notify.with_prefix("EXTEND_TIMEOUT_USEC=15000000"))
        self.assertIsNone(sidecar.poll())
        self.state("PUT", step=50)
        self.assertEqual(sidecar.wait(10), 0)
        self.assertNotIn("STOPPING=1", notify.lines)

    def test_a_second_signal_ends_the_sidecar_at_once(self):
        self.fake(leaders=50, step=0)
        sidecar = self.sidecar()
        self.assertEqual(self.finish(self.drain())[0], 0)
        sidecar.send_signal(signal.SIGTERM)
        wait_until("deferred", lambda: "exit-deferred" in sidecar.stderr.readline())
        sidecar.send_signal(signal.SIGTERM)
        self.assertEqual(sidecar.wait(10), 0)
        self.assertTrue(os.path.exists(self.dir + "/state/active-drain.json"))

    # --- as ExecStop= ---

    def test_exec_stop_extends_the_timer_and_shows_what_remains(self):
        self.fake(leaders=12, step=0)
        self.sidecar()
        began = time.monotonic()
        client = self.drain("--wait", env=self.exec_stop(self.main_process()))
        wait_until("a status line", lambda: any(" 12 leader partitions remain (deadline in " in s
                                                for s in self.notify.with_prefix("STATUS=")))
        wait_until("three extensions", lambda: len(self.notify.with_prefix("EXTEND_TIMEOUT_USEC=15000000")) >= 3)
        first = [t for t, line in self.notify.times if line.startswith("EXTEND")]
        self.assertLess(first[0] - began, 3)
        self.assertTrue(all(b - a <= 4 for a, b in zip(first, first[1:])), first)
        self.state("PUT", step=12)
        status, _, err = self.finish(client)
        self.assertEqual(status, 0, err)
        self.assertTrue(self.notify.with_prefix("STATUS=Drained: "), self.notify.lines)
        self.assertNotIn("STOPPING=1", self.notify.lines)
        record = self.record()
        self.assertEqual((record["verdict"], record["remaining"], record["moved"]), ("drained", 0, 12))
        self.assertEqual(record["invocation_id"], "0123")
        self.assertEqual(record["reason"], "systemd stop")

    def test_exec_stop_leaves_when_the_main_process_ends(self):
        self.fake(leaders=12, step=0)
        for with_sidecar in (False, True):
            if with_sidecar:
                self.sidecar()
                os.unlink(self.dir + "/notify")
            main = self.main_process()
            client = self.drain("--wait", env=self.exec_stop(main))
            wait_until("draining", lambda: any("12 leader" in s for s in self.notify.with_prefix("STATUS=")))
            main.kill()
            main.wait()
            status, _, err = self.finish(client, 5)
            self.assertEqual(status, 76, err)
            self.assertEqual(self.record()["verdict"], "broker-gone")

    def test_exec_stop_without_a_main_process_has_nothing_to_do(self):
        self.fake(leaders=12)
        self.assertEqual(self.finish(self.drain("--wait", env=self.exec_stop(None)))[0], 0)
        self.assertEqual(self.state()["requests"], [])

    def test_exec_stop_with_a_main_process_that_is_gone_already(self):
        self.fake(leaders=12)
        main = self.main_process()
        main.kill()
        main.wait()
        self.assertEqual(self.finish(self.drain("--wait", env=self.exec_stop(main)))[0], 76)

    def test_sigterm_skips_the_drain_promptly(self):
        self.fake(leaders=12, step=0)
        client = self.drain("--wait", env=self.exec_stop(self.main_process()))
        wait_until("draining", lambda: any("12 leader" in s for s in self.notify.with_prefix("STATUS=")))
        began = time.monotonic()
        client.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(client)[0], 75)
        self.assertLess(time.monotonic() - began, 3)
        record = self.record()
        self.assertEqual((record["verdict"], record["why"], record["remaining"]), ("skipped", "terminated", 12))
        self.assertFalse([r for r in self.state()["requests"] if r["method"] == "DELETE"])

    def test_record_exit_adds_the_services_end(self):
        self.fake(leaders=4)
        env = self.exec_stop(self.main_process())
        self.assertEqual(self.finish(self.drain("--wait", env=env))[0], 0)
        env = {**env, "EXIT_CODE": "exited", "EXIT_STATUS": "0"}
        self.assertEqual(self.finish(self.drain("--record-exit", env=env))[0], 0)
        record = self.record()
        self.assertEqual((record["verdict"], record["service_result"], record["exit_status"]),
                         ("drained", "success", "0"))

    # --- verdicts ---

    def test_no_controller_is_69(self):
        self.fake(servers=[{"role": "closed"}])
        self.set("BROKER_ID", "1")
        status, _, err = self.finish(self.drain("--wait"))
        self.assertEqual(status, 69, err)

    def test_what_cannot_be_moved_is_75_and_named(self):
        self.fake(leaders=3, step=0)
        status, out, _ = self.finish(self.drain("--wait", "--deadline", "1s"))
        self.assertEqual(status, 75)
        self.assertIn("3 leader partitions not moved", out)
        self.assertIn("[t,2] no_other_in_sync_replica", out)

    def test_our_deadline_holds_though_the_joined_drain_has_a_later_one(self):
        self.fake(leaders=3, step=0)
        self.sidecar()
        self.assertEqual(self.finish(self.drain())[0], 0)
        began = time.monotonic()
        self.assertEqual(self.finish(self.drain("--wait", "--deadline", "1s"))[0], 75)
        self.assertLess(time.monotonic() - began, 8)
        self.assertEqual(self.ask({"op": "status"})["status"]["state"], "draining")

    def test_zookeeper_down_is_75_and_never_drained(self):
        self.fake(leaders=0, zookeeper_down=True)
        for with_sidecar in (False, True):
            if with_sidecar:
                self.sidecar()
            status, out, _ = self.finish(self.drain("--wait", "--json"))
            self.assertEqual(status, 75)
            self.assertEqual(json.loads(out)["why"], "zookeeper_unavailable")

    def test_a_stopped_broker_ends_incomplete_though_the_controller_counts_zero(self):
        self.set("BROKER_SILENT_BUDGET", "1s")
        self.set("BROKER_ID", "1")
        self.fake(servers=[{"role": "controller", "mute": True}], leaders=4)
        status, out, _ = self.finish(self.drain("--wait", "--json"))
        self.assertEqual(status, 75)
        self.assertEqual(json.loads(out)["why"], "broker_silent")

    def test_a_broker_without_an_admin_listener_has_said_zero_when_it_acknowledged_it(self):
        """K3: Apache Kafka answers no HTTP; the controller's "drained" rests on the broker's own acknowledgement."""
        self.set("BROKER_SILENT_BUDGET", "3s")
        self.set("BROKER_ID", "7")
        self.fake(servers=[{"role": "controller", "without_admin": [7], "is_broker": 1}], leaders=4, broker=7)
        status, out, _ = self.finish(self.drain("--wait", "--json"))
        self.assertEqual(status, 0, out)

    def test_a_broker_that_the_controller_does_not_list_has_said_nothing(self):
        self.set("BROKER_SILENT_BUDGET", "1s")
        self.set("BROKER_ID", "7")
        self.fake(servers=[{"role": "controller", "without_admin": [8], "is_broker": 1}], leaders=4, broker=7)
        status, out, _ = self.finish(self.drain("--wait", "--json"))
        self.assertEqual((status, json.loads(out)["why"]), (75, "broker_silent"))

    def test_the_token_is_sent(self):
        self.fake(leaders=2)
        with open(self.dir + "/token", "w", encoding="utf-8") as f:
            f.write("sesame\n")
        self.set("ADMIN_TOKEN_FILE", self.dir + "/token")
        self.assertEqual(self.finish(self.drain("--wait"))[0], 0)
        self.assertEqual({r["token"] for r in self.state()["requests"]}, {"Bearer sesame"})

    def test_proxies_of_the_environment_are_not_used(self):
        self.fake(leaders=2)
        env = {"http_proxy": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1"}
        self.assertEqual(self.finish(self.drain("--wait", env=env))[0], 0)

    # --- a sidecar among odd neighbours ---

    def test_sighup_ends_no_sidecar(self):
        self.fake(leaders=50, step=0)
        sidecar = self.sidecar()
        self.assertEqual(self.finish(self.drain())[0], 0)
        sidecar.send_signal(signal.SIGHUP)
        wait_until("it said so", lambda: "reload-ignored" in sidecar.stderr.readline())
        self.assertEqual(self.ask({"op": "status"})["status"]["state"], "draining")
        self.state("PUT", step=50)
        wait_until("drained", lambda: self.ask({"op": "status"})["status"]["state"] == "drained")

    def test_a_file_at_the_sockets_path_is_not_deleted(self):
        path = self.dir + "/precious"
        with open(path, "w", encoding="utf-8") as f:
            f.write("data")
        self.set("CONTROL_SOCKET", path)
        status, _, err = self.finish(self.spawn(SIDECAR, stderr=subprocess.PIPE))
        self.assertEqual(status, 1, err)
        with open(path, encoding="utf-8") as f:
            self.assertEqual(f.read(), "data")

    def test_a_question_about_another_broker_does_not_tell_a_sidecar_which_it_is(self):
        self.fake(leaders=4)
        self.sidecar()
        self.assertEqual(self.ask({"op": "status", "broker": 5}), {"ok": False, "error": "broker_not_known"})
        self.assertEqual(self.ask({"op": "undo", "broker": 5}), {"ok": False, "error": "broker_not_known"})
        status, out, err = self.finish(self.drain("--wait", "--json"))
        self.assertEqual((status, json.loads(out)["broker"]), (0, 1), err)

    def test_D2_a_recorded_drain_of_an_unknown_incarnation_is_not_taken_up(self):
        """The host was rebooted between the request and the broker's answer: this one is another."""
        self.fake(leaders=4)
        self.set("BROKER_ID", "1")
        os.mkdir(self.dir + "/state")
        active = {"drain_id": "old", "reason": "", "requested_by": "", "broker": 1, "epoch": -1,
                  "started_ms": int(time.time() * 1000) - 1000, "deadline_ms": int(time.time() * 1000) + 60000}
        with open(self.dir + "/state/active-drain.json", "w", encoding="utf-8") as f:
            json.dump(active, f)
        self.sidecar()
        wait_until("it asked for the cluster", lambda: self.state()["requests"])
        self.assertEqual(self.ask({"op": "status"})["status"]["state"], "idle")
        self.assertFalse([r for r in self.state()["requests"] if r["path"].endswith("/drain")])
        self.assertFalse(os.path.exists(self.dir + "/state/active-drain.json"))

    def test_a_drain_asked_for_while_one_is_being_undone_comes_after_the_undo(self):
        self.fake(leaders=4, step=0)
        self.sidecar()
        self.assertEqual(self.finish(self.drain())[0], 0)
        wait_until("draining", lambda: self.ask({"op": "status"})["status"]["state"] == "draining")
        self.state("PUT", refuse_first=1000000)
        undo = self.drain("--undo")
        wait_until("undoing", lambda: self.ask({"op": "status"})["status"]["state"] == "undoing")
        client = self.drain("--wait", "--json")
        wait_until("refused tries", lambda: self.state()["refuse_first"] < 999990)
        self.assertIsNone(client.poll())
        self.state("PUT", refuse_first=0, step=4)
        self.assertEqual(self.finish(undo)[0], 0)
        status, out, err = self.finish(client)
        self.assertEqual(status, 0, err)
        self.assertNotIn("drain-direct", err)
        methods = [r["method"] for r in self.state()["requests"] if r["path"].endswith("/drain")]
        self.assertLess(max(i for i, m in enumerate(methods) if m == "DELETE"),
                        max(i for i, m in enumerate(methods) if m == "PUT"))

    # --- the record, whatever happens ---

    def test_L6_a_record_that_cannot_be_written_leaves_none_of_an_earlier_stop(self):
        self.fake(leaders=4)
        with open(self.dir + "/last-stop.json", "w", encoding="utf-8") as f:
            json.dump({"verdict": "drained", "invocation_id": "earlier"}, f)
        os.mkdir(self.dir + "/last-stop.json.tmp")  # where the new one would be written first
        status, _, err = self.finish(self.drain("--wait", env=self.exec_stop(self.main_process())))
        self.assertEqual(status, 0, err)
        self.assertIn("result-not-written", err)
        self.assertFalse(os.path.exists(self.dir + "/last-stop.json"))

    def test_L6_a_stop_with_a_wrong_configuration_has_a_record(self):
        self.fake(leaders=4)
        path = self.dir + "/last-stop.json"
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"verdict": "drained", "invocation_id": "earlier"}, f)
        self.set("DRAIN_DEADLINE", "soon")
        env = self.exec_stop(self.main_process())
        self.assertEqual(self.finish(self.drain("--wait", "--result-file", path, env=env))[0], 64)
        record = self.record()
        self.assertEqual((record["verdict"], record["why"], record["invocation_id"]), ("none", "configuration", "0123"))
        self.assertEqual(self.finish(self.drain("--record-exit", "--result-file", path, env={**env, "EXIT_STATUS": "0"}))[0], 64)
        record = self.record()
        self.assertEqual((record["verdict"], record["why"], record["exit_status"]), ("none", "configuration", "0"))

    # --- signals and terminals ---

    def test_sighup_skips_a_drain_by_hand_but_not_a_stop(self):
        """`systemctl kill --signal=HUP` reaches ExecStop=, too."""
        self.fake(leaders=12, step=0)
        client = self.drain("--wait", env=self.exec_stop(self.main_process()))
        wait_until("draining", lambda: any("12 leader" in s for s in self.notify.with_prefix("STATUS=")))
        client.send_signal(signal.SIGHUP)
        n = len(self.notify.with_prefix("STATUS="))
        wait_until("it goes on", lambda: len(self.notify.with_prefix("STATUS=")) >= n + 2)
        self.assertIsNone(client.poll())
        client.terminate()
        self.assertEqual(self.finish(client)[0], 75)
        before = len(self.state()["requests"])
        by_hand = self.drain("--wait")
        wait_until("it drains", lambda: len(self.state()["requests"]) > before + 2)
        by_hand.send_signal(signal.SIGHUP)
        self.assertEqual(self.finish(by_hand)[0], 75)

    def test_the_live_line_keeps_to_the_terminals_width(self):
        self.fake(leaders=12, step=0)
        ours, theirs = os.openpty()
        self.addCleanup(os.close, ours)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
        client = self.spawn(STEPDOWN, "drain", "--wait", stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        text = ""
        while "Draining: 12 leader partitions" not in text:
            text += os.read(ours, 4096).decode()
        client.terminate()
        self.assertEqual(self.finish(client)[0], 75)
        for line in re.split(r"\r\n?|\n", text.replace("\033[K", "")):
            self.assertLess(len(line), 40, line)

    # --- usage ---

    def test_wrong_usage_is_64_and_names_the_option(self):
        for arguments in (["--nonsense"], ["--broker", "x"], ["--broker", "-2"], ["--deadline", "soon"], ["extra"],
                          ["--status", "--undo"], ["--status", "--wait"], ["--wait=yes"], ["--reason"],
                          ["--config", "/nonexistent.yaml"], ["--endpoints", "nowhere"]):
            status, out, err = self.finish(self.drain(*arguments))
            self.assertEqual(status, 64, arguments)
            self.assertEqual(out, "")
            self.assertTrue(err.startswith("stepdown drain: "), err)

    def test_help_lists_options_and_exit_statuses(self):
        status, out, _ = self.finish(self.drain("--help"))
        self.assertEqual(status, 0)
        for word in ("--deadline TIME", "--record-exit", "exit status:", " 75  ", " 76  ", " 69  ", " 64  "):
            self.assertIn(word, out)
        p = self.spawn(STEPDOWN, "--version", stdout=subprocess.PIPE)
        self.assertRegex(self.finish(p)[1], r"^stepdown \d+\.\d+\.\d+\n$")
        p = self.spawn(STEPDOWN, "frobnicate", stderr=subprocess.PIPE)
        self.assertEqual(self.finish(p)[0], 64)

    def test_check_config(self):
        p = self.spawn(SIDECAR, "--check-config", stdout=subprocess.PIPE)
        self.assertEqual(self.finish(p)[0], 0)
        p = self.spawn(SIDECAR, "--check-config", "--set=drain.deadline=2h", stderr=subprocess.PIPE)
        status, _, err = self.finish(p)
        self.assertEqual(status, 78)
        self.assertIn("7200 s", err)
        self.assertIn("1800 s", err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
