"""Unmodified clients and hostile bytes against three brokers."""

import random
import socket
import struct
import subprocess
import time
import unittest

import cluster as c
from harness import ClusterCase, connect, frame, is_closed, read_frame, request, rss_kib

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def kcat(cluster, *args, stdin=b"", timeout=30):
    r = subprocess.run(
        ["kcat", "-b", cluster.bootstrap, "-X", "broker.address.family=v4", *map(str, args)],
        input=stdin,
        capture_output=True,
        timeout=timeout,
    )
    if r.returncode != 0:
        raise AssertionError(f"kcat {args} failed: {r.stderr.decode()}")
    return r.stdout


def batch_codecs(data):
    """The codec bits of every record batch in a segment file."""
    at, found = 0, []
    while at + 61 <= len(data):
        (length,) = struct.unpack_from(">i", data, at + 8)
        (attributes,) = struct.unpack_from(">h", data, at + 21)
        found.append(attributes & 7)
        at += 12 + length
    return found


class Clients(ClusterCase):
    def test_kcat_produces_and_consumes_with_every_codec(self):
        lines = b"".join(b"message %d of the codec test, long enough to be worth compressing\n" % i for i in range(500))
        for codec, bits in CODECS.items():
            with self.subTest(codec=codec):
                topic = f"codec-{codec}"
                self.cluster.create_topic(topic, 1, 3, min_insync_replicas=2)
                kcat(self.cluster, "-P", "-t", topic, "-p", 0, "-z", codec, "-X", "acks=all", stdin=lines)
                out = kcat(self.cluster, "-C", "-t", topic, "-p", 0, "-o", "beginning", "-e", "-q")
                self.assertEqual(out, lines)
                for b in self.cluster.brokers:  # followers keep the batches as they came
                    segment = b.dir / "data" / f"{topic}-0" / "00000000000000000000.log"
                    codecs = c.wait_for("the replica has the batches", lambda s=segment: s.exists() and batch_codecs(s.read_bytes()))
                    self.assertEqual(set(codecs), {bits}, f"broker {b.id}")

    def test_kafka_python_produces_and_consumes(self):
        from kafka import KafkaConsumer, KafkaProducer, TopicPartition

        self.cluster.create_topic("python", 2, 3)
        producer = KafkaProducer(bootstrap_servers=self.cluster.bootstrap.split(","), acks="all")
        sent = [producer.send("python", b"value %d" % i, partition=i % 2) for i in range(200)]
        for f in sent:
            f.get(timeout=20)
        producer.close()
        consumer = KafkaConsumer(bootstrap_servers=self.cluster.bootstrap.split(","), auto_offset_reset="earliest", consumer_timeout_ms=20000)
        consumer.assign([TopicPartition("python", 0), TopicPartition("python", 1)])
        got = sorted(m.value for m, _ in zip(consumer, range(200)))
        consumer.close()
        self.assertEqual(got, sorted(b"value %d" % i for i in range(200)))

    def test_a_topic_is_created_on_first_use(self):
        kcat(self.cluster, "-P", "-t", "first-use", stdin=b"hello\n")
        self.assertEqual(kcat(self.cluster, "-C", "-t", "first-use", "-o", "beginning", "-e", "-q"), b"hello\n")

    def test_an_idempotent_producer_works(self):
        self.cluster.create_topic("idempotent", 1, 3)
        kcat(self.cluster, "-P", "-t", "idempotent", "-X", "enable.idempotence=true", stdin=b"a\nb\nc\n")
        out = kcat(self.cluster, "-C", "-t", "idempotent", "-o", "beginning", "-e", "-q")
        self.assertEqual(out, b"a\nb\nc\n")

    def test_topics_are_listed_described_and_deleted(self):
        self.cluster.create_topic("described", 3, 2, retention_ms=3600000)
        r = self.cluster.client("topics", "list", "--topic", "described", "--bootstrap", self.cluster.bootstrap)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual(len(r.stdout.splitlines()), 3)
        self.assertRegex(r.stdout.splitlines()[0], r"^topic: described\tpartition: 0\tleader: \d\treplicas: \d,\d\tisr: \d,\d$")
        r = self.cluster.client("topics", "list", "--under-replicated-partitions", "--bootstrap", self.cluster.bootstrap)
        self.assertNotIn("described", r.stdout)
        r = self.cluster.client("topics", "create", "--topic", "described", "--bootstrap", self.cluster.bootstrap)
        self.assertEqual(r.returncode, 1)
        self.assertIn("creation failed because of topic described already exists", r.stdout + r.stderr)
        r = self.cluster.client("topics", "delete", "--topic", "described", "--bootstrap", self.cluster.bootstrap)
        self.assertEqual(r.returncode, 0, r.stderr)
        c.wait_for("its folders are gone", lambda: not any(list(b.dir.glob("data/described-?")) for b in self.cluster.brokers))
        r = self.cluster.client("topics", "list", "--topic", "described", "--bootstrap", self.cluster.bootstrap)
        self.assertIn("doesn't exist", r.stderr + r.stdout)

    def test_the_cluster_is_shown(self):
        r = self.cluster.client("cluster", "--endpoints", self.cluster.endpoints())
        self.assertEqual(r.returncode, 0, r.stderr)
        for b in self.cluster.brokers:
            self.assertIn(b.address, r.stdout)


class HostileBytes(ClusterCase):
    brokers = 1
    sidecars = False
    config = {**ClusterCase.config, "socket.frame.timeout.ms": 1000, "default.replication.factor": 1}

    def setUp(self):
        self.broker = self.cluster.brokers[0]
        self.before = rss_kib(self.broker.pid())

    def tearDown(self):
        # Whatever came: others are served, and memory stays within its ceiling.
        with connect(self.broker) as s:
            s.sendall(request(18, 0))
            self.assertEqual(struct.unpack(">ih", read_frame(s)[:6]), (1, 0))
        self.assertLess(rss_kib(self.broker.pid()) - self.before, 64 * 1024)
        super().tearDown()

    def test_random_bytes_close_their_connection(self):
        rng = random.Random(20261130)
        for _ in range(200):
            with connect(self.broker, timeout=5) as s:
                try:
                    s.sendall(frame(rng.randbytes(rng.randrange(1, 400))))
                    s.shutdown(socket.SHUT_WR)
                except OSError:
                    pass  # closed meanwhile
                is_closed(s)

    def test_random_bodies_of_known_requests_harm_nobody(self):
        rng = random.Random(7)
        for key in (0, 1, 2, 3, 4, 5, 6, 7, 10, 18, 19, 20, 22, 23, 56):
            for version in range(0, 18):
                with connect(self.broker, timeout=5) as s:
                    try:
                        s.sendall(request(key, version, body=rng.randbytes(rng.randrange(0, 200))))
                        s.shutdown(socket.SHUT_WR)
                    except OSError:
                        pass
                    is_closed(s)

    def test_a_two_gigabyte_length_closes_the_connection(self):
        with connect(self.broker) as s:
            s.sendall(struct.pack(">i", 0x7FFFFFFF))
            self.assertTrue(is_closed(s))

    def test_a_negative_length_closes_the_connection(self):
        with connect(self.broker) as s:
            s.sendall(struct.pack(">i", -5))
            self.assertTrue(is_closed(s))

    def test_a_truncated_frame_is_dropped_with_its_connection(self):
        with connect(self.broker) as s:
            s.sendall(struct.pack(">i", 1000) + b"half of it")
            s.shutdown(socket.SHUT_WR)
            self.assertTrue(is_closed(s))

    def test_a_slow_loris_is_closed_and_holds_nobody_up(self):
        with connect(self.broker, timeout=15) as slow:
            slow.sendall(struct.pack(">i", 100) + b"x")
            with connect(self.broker) as s:
                s.sendall(request(18, 0))
                read_frame(s)
            start = time.monotonic()
            self.assertTrue(is_closed(slow))
            self.assertLess(time.monotonic() - start, 10)

    def test_an_unknown_version_of_api_versions_is_answered_with_version_0(self):
        with connect(self.broker) as s:
            s.sendall(request(18, 99, correlation=77))
            answer = read_frame(s)
            correlation, error, count, key, low, high = struct.unpack(">ihihhh", answer[:16])
            self.assertEqual((correlation, error, count, key, low), (77, 35, 1, 18, 0))
            self.assertGreaterEqual(high, 4)
            s.sendall(request(18, 0, correlation=78))  # the connection is open still
            self.assertEqual(struct.unpack(">ih", read_frame(s)[:6]), (78, 0))

    def test_an_unknown_key_closes_the_connection(self):
        with connect(self.broker) as s:
            s.sendall(request(999, 0))
            self.assertTrue(is_closed(s))

    def test_minimum_versions_that_keep_librdkafka_features_are_advertised(self):
        with connect(self.broker) as s:
            s.sendall(request(18, 0))
            answer = read_frame(s)
        (n,) = struct.unpack(">i", answer[6:10])
        ranges = {k: (low, high) for k, low, high in struct.iter_unpack(">hhh", answer[10 : 10 + 6 * n])}
        self.assertEqual(ranges[0], (0, 11))
        self.assertEqual(ranges[1], (4, 17))
        self.assertEqual(ranges[2], (1, 9))
        self.assertEqual(ranges[3], (0, 12))
        self.assertEqual(ranges[10][0], 0)
        self.assertEqual(ranges[22][0], 0)
        for inter_broker in (4, 5, 6, 7):
            self.assertNotIn(inter_broker, ranges)
        self.assertEqual(ranges[56], (0, 3))  # brokers of Apache Kafka ask whether our controller takes it (K3)

    def test_hostile_http_bodies_get_a_clear_error(self):
        for body, status in ((b"{", 400), (b"[]", 400), (b'{"epoch":"x"}', 400), (b"x" * 100000, 413), (b'{"wat":1}', 400)):
            import http.client

            h = http.client.HTTPConnection("127.0.0.1", self.broker.admin_port, timeout=10)
            h.request("PUT", "/v1/brokers/1/drain", body=body)
            r = h.getresponse()
            self.assertEqual(r.status, status, body[:20])
            self.assertIn(b"message", r.read())
            h.close()
        self.assertEqual(self.broker.request("GET", "/v1/nothing")[0], 404)
        self.assertEqual(self.broker.request("POST", "/v1/cluster")[0], 405)
        self.assertEqual(self.broker.request("PUT", "/v1/brokers/77/drain", {})[0], 404)


if __name__ == "__main__":
    unittest.main()
