"""The life of a broker's process: wrong configurations, starts and stops at bad moments, lost sessions, hostile clients
of the admin listener, a drained broker that nobody stops."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest
from pathlib import Path

import cluster as c
from harness import ClusterCase, Load, connect, is_closed, request


class Notify:
    """Stands for PID 1's end of $NOTIFY_SOCKET."""

    def __init__(self, path):
        self.path, self.lines = str(path), []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                self.lines += self.socket.recv(4096).decode().splitlines()
            except OSError:
                return

    def has(self, pattern):
        return any(re.search(pattern, line) for line in self.lines)

    def close(self):
        self.socket.close()


def admin(broker, method, path, body=None, headers=(), timeout=10):
    """One request, no redirect followed: (status, headers, body)."""
    conn = http.client.HTTPConnection("127.0.0.1", broker.admin_port, timeout=timeout)
    try:
        conn.request(method, path, body=body, headers=dict(headers))
        r = conn.getresponse()
        return r.status, dict(r.getheaders()), r.read()
    finally:
        conn.close()


class Starting(ClusterCase):
    """Brokers of their own beside a running one, whose start fails or is cut short."""

    brokers = 1
    sidecars = False

    def settings(self, name, **changes):
        """A valid configuration of another broker, with these changes; '_' stands for '.'."""
        d = self.dir / name
        d.mkdir(exist_ok=True)
        s = {
            "broker.id": 77,
            "listeners": f"PLAINTEXT://127.0.0.1:{c.free_port()}",
            "admin.listener": f"127.0.0.1:{c.free_port()}",
            "log.dirs": str(d / "data"),
            "zookeeper.connect": self.cluster.zookeeper,
            "zookeeper.session.timeout.ms": 3000,
        }
        s.update({k.replace("_", "."): v for k, v in changes.items()})
        path = d / "broker.yaml"
        path.write_text("".join(f"{k}: {json.dumps(v)}\n" for k, v in s.items()))
        return path, s

    def spawn(self, path, *args, **env):
        keep = {k: v for k, v in os.environ.items() if k not in ("NOTIFY_SOCKET", "JOURNAL_STREAM")}
        return subprocess.Popen(
            [self.cluster.build / "broker" / "stepdown-broker", "--config", path, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"LSAN_OPTIONS": f"suppressions={c.SUPPORT / 'lsan.supp'}", **keep, **env},
        )

    def ends(self, process, timeout=30):
        """(exit status, all it said)."""
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail("it does not end: " + "".join(process.communicate()))
        for word in ("AddressSanitizer", "LeakSanitizer", "runtime error:", "ThreadSanitizer"):
            self.assertNotIn(word, err)
        return process.returncode, out + err

    def test_a_wrong_configuration_is_refused_with_what_to_do(self):
        for changes, expected in (
            ({"listners": "x"}, r"broker.yaml:\d+: unknown key 'listners'; did you mean 'listeners'\?"),
            ({"listeners": "PLAINTEXT://:9092"}, "listens on every address; set advertised.listeners"),
            ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "listens on every address; set advertised.listeners"),
            ({"listeners": "PLAINTEXT://[::]:9092"}, "listens on every address; set advertised.listeners"),
            ({"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "advertised.listeners: .* not an address"),
            ({"listeners": "SSL://h:9092"}, "PLAINTEXT is the only security protocol"),
            ({"listeners": "PLAINTEXT://h:1,PLAINTEXT://h:2"}, "more than one listener"),
            ({"listeners": "PLAINTEXT://::1:9092"}, "not of the form"),
            ({"admin.listener": "nowhere"}, "admin.listener: 'nowhere' is not of the form host:port"),
            ({"admin.advertised": "0.0.0.0:1"}, "admin.advertised: .* not an address"),
            ({"replica.fetch.wait.max.ms": 40000}, "must be below replica.lag.time.max.ms"),
        ):
            with self.subTest(**changes):
                path, _ = self.settings("wrong", **changes)
                status, said = self.ends(self.spawn(path, "--check-config"))
                self.assertEqual(status, 64, said)
                self.assertRegex(said, expected)

    def test_every_address_can_be_listened_on_when_one_is_advertised(self):
        port, admin_port = c.free_port(), c.free_port()
        path, s = self.settings(
            "wildcard",
            listeners=f"PLAINTEXT://:{port}",
            advertised_listeners=f"PLAINTEXT://localhost:{port}",
            admin_listener=f":{admin_port}",
        )
        p = self.spawn(path)
        try:
            found = c.wait_for(
                "it is registered",
                lambda: (v := self.cluster.get("/v1/cluster")) and [b for b in v["brokers"] if b["id"] == 77],
            )
            self.assertEqual((found[0]["host"], found[0]["port"]), ("localhost", port))
            self.assertEqual(found[0]["admin"], f"localhost:{admin_port}")
        finally:
            p.terminate()
            status, said = self.ends(p)
        self.assertEqual(status, 0, said)

    def test_an_admin_listener_that_others_cannot_reach_is_warned_of(self):
        path, _ = self.settings("loopback", advertised_listeners="PLAINTEXT://192.0.2.7:9092")
        p = self.spawn(path)
        c.wait_for("it is registered", lambda: (v := self.cluster.get("/v1/cluster")) and len(v["brokers"]) == 2)
        p.terminate()
        self.assertIn("admin-not-reachable", self.ends(p)[1])

    def test_what_is_taken_or_missing_is_named(self):
        own = self.cluster[1]
        busy = own.address
        file = self.dir / "a-file"
        file.write_text("not a folder")
        for name, changes, expected in (
            ("port", {"listeners": f"PLAINTEXT://{busy}"}, f"cannot listen on PLAINTEXT://{busy}: Address already in use"),
            ("admin", {"admin.listener": f"127.0.0.1:{own.admin_port}"}, "cannot listen on admin.listener .*Address already in use"),
            ("host", {"listeners": "PLAINTEXT://192.0.2.1:9092"}, "cannot listen on PLAINTEXT://192.0.2.1:9092: Cannot assign"),
            ("lock", {"log.dirs": str(own.dir / "data"), "broker.id": 1}, str(own.dir / "data")),
            ("unwritable", {"log.dirs": str(file / "data")}, str(file / "data")),
            ("token", {"admin.token.file": str(self.dir / "no-such-token")}, "admin.token.file .*no-such-token: No such file"),
        ):
            with self.subTest(name):
                path, _ = self.settings("taken-" + name, **changes)
                status, said = self.ends(self.spawn(path))
                self.assertEqual(status, 1, said)
                self.assertRegex(said, expected)

    def test_a_broker_id_in_use_is_named_with_who_has_it(self):
        own = self.cluster[1]
        path, _ = self.settings("twin", broker_id=1)
        start = time.monotonic()
        status, said = self.ends(self.spawn(path), 60)
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"broker id 1 is in use: .*host 127\.0\.0\.1 port " + own.address.rsplit(":", 1)[1])
        self.assertIn("give each broker a broker.id of its own", said)
        self.assertLess(time.monotonic() - start, 20)
        self.assertTrue(own.try_get("/v1/broker"), "the broker that was there first is still well")

    def test_logs_of_another_cluster_are_refused(self):
        path, s = self.settings("foreign")
        data = self.dir / "foreign" / "data"
        data.mkdir()
        (data / "meta.properties").write_text("version=0\nbroker.id=77\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n")
        status, said = self.ends(self.spawn(path))
        self.assertEqual(status, 1, said)
        self.assertIn("belong to cluster AAAAAAAAAAAAAAAAAAAAAA", said)
        self.assertIn("zookeeper.connect", said)

    def test_without_zookeeper_a_start_gives_up_and_a_stop_does_not_wait(self):
        nobody = f"127.0.0.1:{c.free_port()}"
        path, _ = self.settings("alone", zookeeper_connect=nobody, zookeeper_connection_timeout_ms=1000)
        status, said = self.ends(self.spawn(path))
        self.assertEqual(status, 1, said)
        self.assertIn(f"ZooKeeper at {nobody} did not answer", said)

        path, s = self.settings("patient", zookeeper_connect=nobody, zookeeper_connection_timeout_ms=60000)
        p = self.spawn(path)
        port = int(s["admin.listener"].rsplit(":", 1)[1])

        def serves():
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return True
            except OSError:
                return False

        c.wait_for("it waits for ZooKeeper", serves)
        start = time.monotonic()
        p.terminate()
        status, said = self.ends(p)
        self.assertEqual(status, 0, said)
        self.assertLess(time.monotonic() - start, 5)

    def test_a_stop_while_logs_are_loaded_ends_at_once(self):
        """Loading hangs in the open of a checkpoint that is a FIFO; systemd is told that it takes longer."""
        path, _ = self.settings("loading")
        data = self.dir / "loading" / "data"
        data.mkdir()
        os.mkfifo(data / "recovery-point-offset-checkpoint")
        notify = Notify(self.dir / "notify.sock")
        self.addCleanup(notify.close)
        p = self.spawn(path, NOTIFY_SOCKET=notify.path)
        c.wait_for("it loads", lambda: notify.has("^STATUS=Loading logs") and notify.has("^EXTEND_TIMEOUT_USEC="))
        start = time.monotonic()
        p.terminate()
        status, said = self.ends(p)
        self.assertEqual(status, 0, said)
        self.assertIn("loading-cut-short", said)
        self.assertLess(time.monotonic() - start, 3)
        self.assertFalse(notify.has("^READY=1"))

    def test_a_broker_tells_systemd_of_its_stages(self):
        path, _ = self.settings("stages")
        notify = Notify(self.dir / "stages.sock")
        self.addCleanup(notify.close)
        p = self.spawn(path, NOTIFY_SOCKET=notify.path, WATCHDOG_USEC="300000")
        c.wait_for("it is ready", lambda: notify.has("^READY=1"))
        c.wait_for("it feeds the watchdog", lambda: notify.has("^WATCHDOG=1"))
        self.assertFalse(notify.has("^STOPPING=1"))
        p.terminate()
        self.assertEqual(self.ends(p)[0], 0)
        c.wait_for("it said that it stops", lambda: notify.has("^STOPPING=1"))
        order = [i for i, line in enumerate(notify.lines) if re.match("STATUS=Handing over|STOPPING=1|STATUS=Closing logs", line)]
        self.assertEqual(order, sorted(order))
        self.assertTrue(notify.has("^STATUS=Handing over: 0 leader partitions left, attempt 1 of 3"))

    def test_starts_cut_short_at_any_moment_leave_nothing_behind(self):
        """SIGTERM after 0 to 250 ms: while loading, connecting, registering, serving."""
        path, _ = self.settings("cut")
        for i in range(50):
            p = self.spawn(path)
            time.sleep(i * 0.005)  # the moment is what is tested
            p.terminate()
            status, said = self.ends(p)
            # A signal before the handlers are there ends the process as signals do.
            self.assertIn(status, (0, -signal.SIGTERM), said)
        c.wait_for("the cluster has forgotten it", lambda: (v := self.cluster.get("/v1/cluster")) and len(v["brokers"]) == 1)


class Stopping(ClusterCase):
    config = {
        "zookeeper.session.timeout.ms": 3000,
        "replica.lag.time.max.ms": 3000,
        "controlled.shutdown.max.retries": 50,
        "controlled.shutdown.retry.backoff.ms": 200,
    }

    def setUp(self):
        self.start_stopped()

    def alone(self, topic):
        """Broker 1 is the only one in sync."""
        self.cluster.create_topic(topic, 4, 3)
        self.cluster.wait_in_sync()
        for b in (2, 3):
            self.cluster[b].kill()
        c.wait_for(
            "broker 1 is alone in the ISR",
            lambda: (p := self.cluster.partitions(topic)) and all(x["isr"] == [1] for x in p),
        )

    def freeze(self, pid):
        """SIGSTOP, and wait for it: on a busy machine some threads run on for a while."""

        def all_stopped():
            tasks = Path(f"/proc/{pid}/task").glob("*/stat")
            return all(t.read_text().rsplit(")", 1)[1].split()[0] == "T" for t in tasks)

        os.kill(pid, signal.SIGSTOP)
        c.wait_for("every thread has stopped", all_stopped)

    def test_a_second_sigterm_ends_the_hand_over(self):
        self.alone("twice")
        b = self.cluster[1]
        mark = len(b.log)
        b.signal(signal.SIGTERM)
        c.wait_for("attempts fail", lambda: b.log[mark:].count("handover-attempt-failed") >= 3)
        self.assertTrue(b.running())
        self.assertEqual(b.try_get("/v1/broker")["state"], "draining")
        start = time.monotonic()
        self.assertEqual(b.stop(), 0)
        self.assertLess(time.monotonic() - start, 5)
        self.assertIn("handover-cut-short", b.log[mark:])

    def test_a_session_lost_while_handing_over_ends_the_stop(self):
        self.alone("lost")
        b = self.cluster[1]
        mark = len(b.log)
        b.signal(signal.SIGTERM)
        c.wait_for("an attempt failed", lambda: "handover-attempt-failed" in b.log[mark:])
        b.signal(signal.SIGSTOP)
        time.sleep(5)  # longer than its session: what is tested
        b.signal(signal.SIGCONT)
        c.wait_for("it has stopped", lambda: not b.running(), 20)
        self.assertEqual(b.process.returncode, 0)
        self.assertIn("handover-session-lost", b.log[mark:])
        self.assertNotIn("Shutdown status: complete", b.log[mark:])

    def test_a_stop_without_zookeeper_is_bounded(self):
        self.cluster.create_topic("nozk", 6, 3)
        self.cluster.wait_in_sync()
        b = self.cluster[2]
        mark = len(b.log)
        self.freeze(self.cluster.zookeeper_pid())
        try:
            start = time.monotonic()
            self.assertEqual(b.stop(timeout=60), 0)
            self.assertLess(time.monotonic() - start, 25)
            self.assertIn("Shutdown status: incomplete", b.log[mark:])
        finally:
            os.kill(self.cluster.zookeeper_pid(), signal.SIGCONT)
        b.start()
        self.cluster.wait_in_sync()

    def test_a_stop_right_after_the_controllers_death_completes(self):
        self.cluster.create_topic("orphan", 12, 3, min_insync_replicas=2)
        self.cluster.wait_in_sync()
        controller = self.cluster.controller()
        b = next(x for x in self.cluster.brokers if x is not controller)
        with Load(self.cluster, "orphan", 12, rate=500) as load:
            mark = len(b.log)
            controller.kill()
            start = time.monotonic()
            self.assertEqual(b.stop(), 0)
            # The session of the dead one, not the time-out of the request that it was asked.
            self.assertLess(time.monotonic() - start, 15)
            self.assertIn("Shutdown status: complete", b.log[mark:])
            self.start_stopped()
            totals = load.finish()
        self.assertEqual((totals["lost"], totals["out_of_order"]), (0, 0), totals)

    def test_a_session_lost_while_draining_clears_the_drain(self):
        """D2: a newer registration is another incarnation; it serves and leads again."""
        self.cluster.create_topic("expired", 12, 3, min_insync_replicas=2)
        self.cluster.wait_in_sync()
        victim = next(x for x in self.cluster.brokers if x is not self.cluster.controller())
        epoch = victim.try_get("/v1/broker")["epoch"]
        with Load(self.cluster, "expired", 12, rate=500) as load:
            self.drain(victim.id, drain_id="expires")
            self.wait_drained(victim.id)
            victim.signal(signal.SIGSTOP)
            other = next(x for x in self.cluster.brokers if x is not victim)
            c.wait_for("it is gone", lambda: (v := other.try_get("/v1/cluster")) and len(v["brokers"]) == 2, 20)
            victim.signal(signal.SIGCONT)
            c.wait_for("it is registered anew", lambda: (s := victim.try_get("/v1/broker")) and s["epoch"] > epoch, 20)
            self.cluster.wait_in_sync()
            self.assertEqual(self.drain_status(victim.id)["state"], "none")
            totals = load.finish()
        self.assertEqual((totals["lost"], totals["out_of_order"]), (0, 0), totals)

    def test_topics_that_come_while_a_broker_stops_do_not_hurt_it(self):
        """The controller's requests are on the control loop when the modules they need are taken down."""
        for i in range(6):
            b = self.cluster[i % 3 + 1]
            mark = len(b.log)
            create = threading.Thread(target=lambda n=i: self.cluster.client(
                *("topics", "create", "--topic", f"flood-{n}", "--partitions", 60, "--replication-factor", 3),
                *("--bootstrap", self.cluster.bootstrap),
            ))
            create.start()
            c.wait_for("it comes", lambda m=mark, x=b: "flood-" in (x.dir / "data" / "state-change.log").read_text() or not create.is_alive())
            self.assertEqual(b.stop(), 0, b.log[mark:])
            create.join()
            b.start()
        self.cluster.wait_in_sync()


class DrainedAndLeft(ClusterCase):
    """Who asked for a drain has vanished before anybody stopped the broker (peers.md, P23-P25)."""

    def test_undo_and_restart_both_end_it(self):
        self.cluster.create_topic("left", 12, 3)
        self.cluster.wait_in_sync()
        b = self.cluster[2]
        config = ("--config", b.dir / "sidecar.yaml", "--socket", b.dir / "sidecar.sock")
        r = self.cluster.client("drain", "--wait", *config)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        os.kill(b.pid("sidecar"), signal.SIGKILL)
        c.wait_for("the sidecar is gone", lambda: b.pid("sidecar") is None)

        r = self.cluster.client("drain", "--status", *config)
        self.assertEqual(r.returncode, 0)
        self.assertIn("Drained", r.stdout)
        r = self.cluster.client("drain", "--undo", *config)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.cluster.wait_in_sync()
        self.assertEqual(self.drain_status(2)["state"], "none")

        self.drain(2, drain_id="vanished")
        self.wait_drained(2)
        b.stop()
        b.start()
        self.cluster.wait_in_sync()
        self.assertEqual(self.drain_status(2)["state"], "none")


class Admin(ClusterCase):
    def setUp(self):
        self.start_stopped()

    def not_the_controller(self):
        controller = self.cluster.controller()
        return next(b for b in self.cluster.brokers if b is not controller)

    def test_idle_and_slow_clients_do_not_keep_the_drain_api_from_answering(self):
        """256 connections are the most; 600 that say nothing, or half a request, are there."""
        b = self.cluster.controller()
        crowd = []
        try:
            for i in range(600):
                s = socket.create_connection(("127.0.0.1", b.admin_port), timeout=10)
                s.sendall(b"" if i % 2 else b"PUT /v1/brokers/1/drain HTTP/1.1\r\nHost: x\r\nContent-Le")
                crowd.append(s)
                if i % 100 == 99:
                    self.assertEqual(admin(b, "GET", "/v1/cluster", timeout=5)[0], 200)
            for _ in range(20):
                self.assertEqual(admin(b, "GET", f"/v1/brokers/{b.id}/drain", timeout=5)[0], 200)
        finally:
            for s in crowd:
                s.close()
        self.assertIn("admin-connections-crowded", b.log)

    def test_a_redirect_keeps_the_query(self):
        self.cluster.create_topic("asked-for", 3, 3)
        self.cluster.create_topic("other", 3, 3)
        b = self.not_the_controller()
        status, headers, _ = admin(b, "GET", "/v1/partitions?topic=asked-for&filter=under-replicated")
        self.assertEqual(status, 307)
        self.assertRegex(headers["Location"], r"^http://127\.0\.0\.1:\d+/v1/partitions\?topic=asked-for&filter=under-replicated$")
        v = b.request("GET", "/v1/partitions?topic=asked-for")[1]
        self.assertEqual({p["topic"] for p in v["partition_list"]}, {"asked-for"})

    def test_odd_requests_are_answered_for_what_they_are(self):
        b = self.cluster.controller()
        for method, path, body, expected in (
            ("HEAD", "/livez", None, 200),
            ("HEAD", "/v1/cluster", None, 200),
            ("POST", "/v1/brokers/1/drain", "{}", 405),
            ("OPTIONS", "/v1/cluster", None, 405),
            ("GET", "/v1/brokers/1/drain/", None, 404),
            ("GET", "/v1/brokers//drain", None, 404),
            ("GET", "/v1/brokers/99999999999/drain", None, 404),
            ("GET", "/v1/brokers/-1/drain", None, 404),
            ("GET", "/v1/brokers/1%00/drain", None, 404),
            ("GET", "/v1/brokers/1?x=%00", None, 200),
            ("GET", "/v1/brokers/1/check?budget_ms=0", None, 400),
            ("GET", "/v1/brokers/1/check?budget_ms=1s", None, 400),
            ("GET", "/v1/brokers/4711/check", None, 404),
            ("GET", "/v1/brokers/4711", None, 404),
            ("GET", "/v1/drains?broker=-1", None, 400),
            ("GET", "/../../etc/passwd", None, 404),
            ("PUT", "/v1/brokers/1/drain", "{", 400),
            ("PUT", "/v1/brokers/1/drain", "[]", 400),
            ("PUT", "/v1/brokers/1/drain", '{"epoch": "1"}', 400),
            ("PUT", "/v1/brokers/1/drain", '{"deadline_ms": -1}', 400),
            ("PUT", "/v1/brokers/1/drain", '{"reason": "a", "reason": "b"}', 400),
            ("PUT", "/v1/brokers/1/drain", "[" * 60000, 400),
            ("PUT", "/v1/brokers/1/drain", " " * 70000, 413),
            ("PUT", "/v1/brokers/4711/drain", "{}", 404),
        ):
            with self.subTest(f"{method} {path} {(body or '')[:20]}"):
                status, headers, answer = admin(b, method, path, body)
                self.assertEqual(status, expected, answer)
                if method == "HEAD":
                    self.assertEqual(answer, b"")
                    self.assertGreater(int(headers["Content-Length"]), 0)
                if status == 405:
                    self.assertIn("GET", headers["Allow"])
        self.assertEqual(self.drain_status(1)["state"], "none")

    def test_a_body_without_end_is_cut_off(self):
        b = self.cluster.controller()
        with socket.create_connection(("127.0.0.1", b.admin_port), timeout=10) as s:
            s.sendall(b"PUT /v1/brokers/1/drain HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
            with self.assertRaises(OSError):
                for _ in range(1000):
                    s.sendall(chunk)
        self.assertEqual(admin(b, "GET", "/livez")[0], 200)

    def test_pipelined_and_kept_connections_are_served_in_order(self):
        b = self.cluster.controller()
        with socket.create_connection(("127.0.0.1", b.admin_port), timeout=10) as s:
            s.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/cluster HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/broker HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            text = b""
            while chunk := s.recv(65536):
                text += chunk
        self.assertEqual(text.count(b"HTTP/1.1 200"), 3)
        self.assertLess(text.index(b'"alive"'), text.index(b'"cluster_id"'))
        self.assertLess(text.index(b'"cluster_id"'), text.index(b'"lease_valid"'))

    def test_a_hostile_peer_does_not_fill_the_log(self):
        b = self.cluster[1]
        mark = len(b.log)
        start = time.monotonic()
        for i in range(300):
            with connect(b) as s:
                s.sendall(request(9999, 0))
                self.assertTrue(is_closed(s))
        seconds = time.monotonic() - start
        lines = b.log[mark:].count("request-refused")
        self.assertGreater(lines, 0)
        self.assertLessEqual(lines, seconds + 2)
        self.assertIn('"suppressed":', b.log[mark:])


class Token(ClusterCase):
    brokers = 1
    sidecars = False

    @classmethod
    def setUpClass(cls):
        token = Path("/tmp") / f"stepdown-token-{os.getpid()}"
        token.write_text("a-secret\n")
        cls.token = token
        cls.config = {**ClusterCase.config, "admin.token.file": str(token)}
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.token.unlink()

    def test_changes_need_the_token_and_looking_does_not(self):
        b = self.cluster[1]
        path = "/v1/brokers/1/drain"
        for header in (None, "Bearer", "Bearer ", "Bearer a-secre", "Bearer a-secret2", "bearer a-secret", "Basic a-secret", "a-secret"):
            with self.subTest(header):
                status, headers, _ = admin(b, "PUT", path, "{}", {"Authorization": header} if header else {})
                self.assertEqual(status, 401)
                self.assertEqual(headers["WWW-Authenticate"], "Bearer")
        self.assertEqual(admin(b, "DELETE", path)[0], 401)
        self.assertEqual(admin(b, "GET", path)[0], 200)
        self.assertEqual(admin(b, "PUT", path, "{}", {"Authorization": "Bearer a-secret"})[0], 200)
        self.assertEqual(admin(b, "DELETE", path, None, {"Authorization": "Bearer a-secret"})[0], 200)


class SixthVersion(ClusterCase):
    """A cluster whose brokers know each other by IPv6 addresses only."""

    sidecars = False

    @classmethod
    def setUpClass(cls):
        real = c.Broker.configure

        def configure(broker, extra):
            real(broker, extra)
            kafka, admin_port = broker.settings["kafka"], broker.settings["admin"]
            real_text = (broker.dir / "broker.yaml").read_text()
            kept = [x for x in real_text.splitlines() if not x.startswith(("listeners:", "admin.listener:"))]
            (broker.dir / "broker.yaml").write_text(
                "\n".join(
                    kept
                    + [
                        f"listeners: 'PLAINTEXT://[::]:{kafka}'",
                        f"advertised.listeners: 'PLAINTEXT://[::1]:{kafka}'",
                        f"admin.listener: '[::]:{admin_port}'",
                        "",
                    ]
                )
            )

        c.Broker.configure = configure
        try:
            super().setUpClass()
        finally:
            c.Broker.configure = real

    def test_brokers_replicate_redirect_and_stop_over_ipv6(self):
        endpoints = ",".join(f"http://[::1]:{b.admin_port}" for b in self.cluster.brokers)
        bootstrap = ",".join(f"[::1]:{b.settings['kafka']}" for b in self.cluster.brokers)
        r = self.cluster.client("topics", "create", "--topic", "six", "--partitions", 6, "--replication-factor", 3, "--bootstrap", bootstrap)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.cluster.wait_in_sync()
        b = next(x for x in self.cluster.brokers if x is not self.cluster.controller())
        _, headers, _ = admin(b, "GET", "/v1/cluster")
        self.assertRegex(headers["Location"], r"^http://\[::1\]:\d+/v1/cluster$")
        r = self.cluster.client("drain", "--wait", "--broker", b.id, "--endpoints", endpoints, "--socket", "")
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        mark = len(b.log)
        self.assertEqual(b.stop(), 0)
        self.assertIn("Shutdown status: complete", b.log[mark:])


if __name__ == "__main__":
    unittest.main()
