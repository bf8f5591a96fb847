"""Crowds that ask for much and take or send little: the broker stays within its memory, and others are served."""

import resource
import socket
import struct
import time
import unittest

import cluster as c
import kafka_wire as k
from harness import ClusterCase, connect, rss_kib
from kafka_link import Link

MIB = 1024  # KiB
REQUESTS, RESPONSES = 64 * MIB, 64 * MIB
SLACK = 48 * MIB  # one answer being built, allocator, connections


class Floods(ClusterCase):
    brokers = 1
    sidecars = False
    config = {
        **ClusterCase.config,
        "default.replication.factor": 1,
        "socket.request.max.bytes": 20 << 20,
        "queued.max.request.bytes": REQUESTS << 10,
        "queued.max.response.bytes": RESPONSES << 10,
        "socket.frame.timeout.ms": 5000,
        "message.max.bytes": 2000000,
    }

    @classmethod
    def setUpClass(cls):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))  # the broker inherits it
        super().setUpClass()

    def setUp(self):
        self.broker = self.cluster.brokers[0]
        with Link(self.broker) as link:
            link.metadata(None)
        self.base = rss_kib(self.broker.pid())
        self.open = []
        self.addCleanup(lambda: [s.close() for s in self.open])

    def crowd(self, n):
        for _ in range(n):
            self.open.append(connect(self.broker))
        for s in self.open:  # what they send fits into the kernel's buffers
            s.setblocking(False)
        return self.open

    def metric(self, name):
        for line in self.broker.request("GET", "/metrics")[1].splitlines():
            if line.startswith(name + " ") or line.startswith(name + "{"):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError(f"no metric {name}")

    def assert_memory(self, limit, what):
        grown = rss_kib(self.broker.pid()) - self.base
        self.assertLess(grown, limit + SLACK, f"{what}: {grown // 1024} MiB more")

    def assert_served(self, topic, within=10):
        """Somebody who comes now can write what is not small, and read it."""
        start = time.monotonic()
        with Link(self.broker, timeout=within + 20) as link:
            r = link.produce(topic, k.batch([b"x" * 200000]))
            self.assertEqual(r["error"], 0)
            got = b""
            while not got:
                got = link.fetch(topic, r["base_offset"], limit=1 << 20, max_wait=100)["records"]
                self.assertLess(time.monotonic() - start, within)
        self.assertLess(time.monotonic() - start, within)

    def test_half_sent_frames(self):
        self.cluster.create_topic("half", 1, 1)
        piece = b"z" * (1 << 16)
        crowd = self.crowd(2000)
        for s in crowd:
            s.send(struct.pack(">i", 19 << 20))
        left = {s: 10 << 20 for s in crowd}
        until = time.monotonic() + 8
        while left and time.monotonic() < until:  # as much as is taken
            for s in list(left):
                try:
                    left[s] -= s.send(piece)
                except BlockingIOError:
                    continue
                except OSError:
                    del left[s]
                    continue
                if left[s] <= 0:
                    del left[s]
            self.assert_memory(REQUESTS, "half-sent frames")
        self.assert_served("half")
        self.assert_memory(REQUESTS, "half-sent frames")

    def test_consumers_that_never_read(self):
        self.cluster.create_topic("unread", 1, 1)
        with Link(self.broker) as link:
            for _ in range(20):
                link.produce("unread", k.batch([b"r" * 1000000]))
        ask = b"".join(k.frame(1, 11, k.fetch_body(11, [("unread", [(0, 0, 16 << 20)])], max_bytes=16 << 20)) for _ in range(40))
        for s in self.crowd(300):
            s.send(ask)
        until = time.monotonic() + 6
        while time.monotonic() < until:
            self.assert_memory(RESPONSES, "answers nobody takes")
            time.sleep(0.1)
        self.assert_served("unread", within=15)

    def test_descriptions_of_all_partitions_over_http(self):
        self.cluster.create_topic("described", 3000, 1)
        c.wait_for("all is known", lambda: len(self.cluster.partitions("described") or []) == 3000)
        self.base = rss_kib(self.broker.pid())
        crowd = [socket.create_connection(("127.0.0.1", self.broker.admin_port)) for _ in range(150)]
        self.open += crowd
        for s in crowd:
            s.sendall(b"GET /v1/partitions HTTP/1.1\r\nHost: x\r\n\r\n")
        start = time.monotonic()
        status, _ = self.broker.request("GET", "/v1/brokers/1/drain")
        self.assertEqual(status, 200)
        self.assertLess(time.monotonic() - start, 5)
        statuses = []
        for s in crowd:
            s.settimeout(10)
            statuses.append(s.recv(1 << 16).split(b" ")[1])
        self.assertLessEqual(statuses.count(b"200"), 40)
        self.assertEqual(statuses.count(b"200") + statuses.count(b"503"), len(crowd))
        self.assert_memory(0, "descriptions nobody takes")
        for s in crowd:
            s.close()
        c.wait_for("others are told again", lambda: self.broker.request("GET", "/v1/partitions")[0] == 200)

    def test_who_asks_for_a_wait_and_leaves_is_forgotten(self):
        self.cluster.create_topic("waited", 8, 1)
        ask = b"".join(
            k.frame(1, 11, k.fetch_body(11, [("waited", [(i % 8, 0, 1 << 20)])], max_wait=(1 << 31) - 1, min_bytes=(1 << 31) - 1))
            for i in range(70)
        )
        for _ in range(1500):
            s = connect(self.broker)
            s.sendall(ask)
            s.close()
        self.assert_memory(REQUESTS, "waits of those who left")  # what waits counts as what has a handler
        self.assert_served("waited")
        c.wait_for(
            "they are forgotten",
            lambda: self.metric('stepdown_purgatory_waiting{purgatory="fetch"}') == 0 and self.metric("stepdown_net_connections") < 10,
            timeout=20,
        )


if __name__ == "__main__":
    unittest.main()
