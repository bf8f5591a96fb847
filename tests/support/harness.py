"""What the cluster tests share: a cluster in a folder of its own, the load generator, raw Kafka frames."""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

import cluster as c


class ClusterCase(unittest.TestCase):
    """A class of tests that share one cluster. Logs of a failed class are kept and named."""

    brokers = 3
    config = {"zookeeper.session.timeout.ms": 3000, "replica.lag.time.max.ms": 3000}
    sidecar_config = {}
    sidecars = True
    cluster_class = c.Cluster

    @classmethod
    def setUpClass(cls):
        cls.dir = Path(tempfile.mkdtemp(prefix="stepdown-test-"))
        cls.cluster = cls.cluster_class(cls.dir / "c")
        cls.failed = False
        try:
            cls.cluster.up(cls.brokers, cls.sidecars, cls.config, cls.sidecar_config)
        except BaseException:
            cls._show_logs()
            cls.cluster.down()
            shutil.rmtree(cls.dir, ignore_errors=True)
            raise

    @classmethod
    def tearDownClass(cls):
        if cls.failed:
            cls._show_logs()
        cls.cluster.down()
        if os.environ.get("STEPDOWN_KEEP") and cls.failed:
            print(f"kept: {cls.dir}")
        else:
            shutil.rmtree(cls.dir, ignore_errors=True)

    @classmethod
    def _show_logs(cls):
        for b in cls.cluster.brokers:
            path = b.dir / "broker.log"
            if path.exists():
                print(f"--- broker {b.id} (last lines) ---\n" + "\n".join(b.log.splitlines()[-25:]))

    def run(self, result=None):
        before = len(result.failures) + len(result.errors) if result else 0
        super().run(result)
        if result and len(result.failures) + len(result.errors) > before:
            type(self).failed = True

    def tearDown(self):
        """A sanitizer's report in any log fails the test that caused it."""
        for b in self.cluster.brokers:
            for name in ("broker.log", "sidecar.log"):
                path = b.dir / name
                if path.exists():
                    text = path.read_text(errors="replace")
                    self.assertNotIn("ERROR: AddressSanitizer", text)
                    self.assertNotIn("ERROR: LeakSanitizer", text)
                    self.assertNotIn("WARNING: ThreadSanitizer", text)
                    self.assertNotIn("runtime error:", text)

    # --- verbs ---
    def start_stopped(self):
        """Bring every broker back and wait until all is in sync: what a test starts from."""
        for b in self.cluster.brokers:
            if not b.running():
                b.start()
        self.cluster.wait_in_sync()

    def place(self, topic, rows):
        """A topic with one partition a row of broker ids."""
        rows = ",".join(":".join(map(str, row)) for row in rows)
        r = self.cluster.client(
            "topics", "create", "--topic", topic, "--replica-assignment-list", rows, "--config",
            "min.insync.replicas=2", "--bootstrap", self.cluster.bootstrap,
        )
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        c.wait_for(
            "it has leaders",
            lambda: (p := self.cluster.partitions(topic)) and not any(x["offline"] for x in p),
        )

    def drain(self, broker_id, **body):
        return self.cluster.get_any().request("PUT", f"/v1/brokers/{broker_id}/drain", body)

    def drain_status(self, broker_id):
        return self.cluster.get(f"/v1/brokers/{broker_id}/drain")

    def undo(self, broker_id):
        status, body = self.cluster.get_any().request("DELETE", f"/v1/brokers/{broker_id}/drain")
        self.assertEqual(status, 200, body)

    def wait_drained(self, broker_id, timeout=60):
        def drained():
            s = self.drain_status(broker_id)
            return s if s and s["state"] == "drained" and s["leaders_remaining"] == 0 else None

        return c.wait_for(f"broker {broker_id} is drained", drained, timeout)

    def leaders(self, broker_id, topic=None):
        return [p for p in self.cluster.partitions(topic) or [] if p["leader"] == broker_id]

    def assert_leaders_in_isr(self):
        """At every moment it is asked: each partition has a leader, and that is in its ISR (I4)."""
        parts = self.cluster.partitions()
        if parts is None:
            return False  # between two controllers nobody can be asked
        for p in parts:
            self.assertGreaterEqual(p["leader"], 0, p)
            self.assertIn(p["leader"], p["isr"], p)
        return True


class Load:
    """The load generator as a context: writes and reads until it is stopped, then says what it saw."""

    def __init__(self, cluster, topic, partitions=0, rate=2000, **options):
        self.stats_file = cluster.dir / f"load-{topic}.json"
        self.log_file = cluster.dir / f"load-{topic}.log"
        self.log = open(self.log_file, "wb")
        args = ["--bootstrap", cluster.bootstrap, "--topic", topic, "--partitions", partitions, "--rate", rate]
        for key, value in options.items():
            args += ["--" + key.replace("_", "-"), value]
        self.process = subprocess.Popen(
            # Its library's threads are none that ThreadSanitizer knows: it comes from another build then.
            [os.environ.get("STEPDOWN_LOADGEN") or str(cluster.build / "tests" / "support" / "loadgen"), *map(str, args), "--stats-file", str(self.stats_file)],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self):
        self.wait_acked(200)
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def stats(self):
        try:
            return json.loads(self.stats_file.read_text())
        except (OSError, ValueError):
            return {}

    def acked(self):
        return self.stats().get("acked", 0)

    def wait_acked(self, n, timeout=60):
        """Until @n more messages have been acknowledged."""
        goal = self.acked() + n

        def reached():
            if self.process.poll() is not None:
                raise c.ClusterError("the load generator ended:\n" + self.log_file.read_text(errors="replace")[-2000:])
            return self.acked() >= goal

        c.wait_for(f"{n} more messages are acknowledged", reached, timeout)

    def _signal(self, number):
        """Send @number, and return the statistics of a report that was begun after it was handled."""
        before = self.stats()["elapsed_ms"]
        self.process.send_signal(number)
        # The first new report may have been under way when the signal came; the second one was not.
        for _ in range(2):
            seen = before
            s = c.wait_for("the load generator reports", lambda: (s := self.stats()) and s["elapsed_ms"] > seen and s, interval=0.002)
            before = s["elapsed_ms"]
        return s

    def reset_gaps(self):
        """Forget the gaps so far."""
        self._signal(signal.SIGUSR1)

    def freeze_gaps(self):
        """Count no gap from here on; the statistics as they are then."""
        return self._signal(signal.SIGUSR2)

    def finish(self):
        """Stop writing, read to the end, and return the totals as numbers."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=180)
        for text in reversed(self.log_file.read_text(errors="replace").splitlines()):
            if text.startswith("loadgen: "):
                pairs = (pair.split("=", 1) for pair in text[len("loadgen: ") :].split())
                return {k: float(v) if "." in v else int(v) for k, v in pairs}
        raise c.ClusterError("the load generator printed no result:\n" + self.log_file.read_text(errors="replace")[-2000:])


# --- raw frames ---


def connect(broker, timeout=10):
    host, port = broker.address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=timeout)


def frame(body):
    return struct.pack(">i", len(body)) + body


def request(key, version, correlation=1, body=b"", client=b"test"):
    return frame(struct.pack(">hhih", key, version, correlation, len(client)) + client + body)


def read_exact(s, n):
    data = b""
    while len(data) < n:
        chunk = s.recv(n - len(data))
        if not chunk:
            raise EOFError(f"closed after {len(data)} of {n} bytes")
        data += chunk
    return data


def read_frame(s):
    (n,) = struct.unpack(">i", read_exact(s, 4))
    return read_exact(s, n)


def is_closed(s):
    """Does the peer close the connection within the socket's timeout?"""
    try:
        while s.recv(65536):
            pass
        return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def rss_kib(pid):
    for text in Path(f"/proc/{pid}/status").read_text().splitlines():
        if text.startswith("VmRSS:"):
            return int(text.split()[1])
    return 0
