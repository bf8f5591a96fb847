"""D9: a client is told the new leader in the refusal itself (KIP-951), and Metadata names it already."""

import struct
import unittest

import kafka_wire as k
from harness import ClusterCase, connect, read_frame

PRODUCE, FETCH, METADATA, VERSIONS = 0, 1, 3, 18
NOT_LEADER = 6
PARTITIONS = 40


class Redirect(ClusterCase):
    sidecars = False

    def setUp(self):
        self.start_stopped()
        self.broker = self.cluster[1]
        self.link = connect(self.broker)
        self.addCleanup(self.link.close)

    def ask(self, key, version, body):
        self.link.sendall(k.frame(key, version, body))
        return k.answer(key, version, read_frame(self.link))[1]

    def advertised(self):
        r = self.ask(VERSIONS, 0, b"")
        self.assertEqual(r.i16(), 0)
        return {key: high for key, _, high in r.array(lambda: (r.i16(), r.i16(), r.i16()))}

    def produce(self, version, topic, partition):
        body = k.produce_body(version, [(topic, [(partition, k.batch())])], acks=1)
        answers, endpoints = k.produce_answer(version, self.ask(PRODUCE, version, body))
        (a,) = answers[(topic, partition)]
        return a["error"], a["leader"], endpoints

    def fetch(self, version, topic_id, partition):
        r = self.ask(FETCH, version, k.fetch_body(version, [(topic_id, [(partition, 0, 1000)])]))
        answer, tags = self.fetch_answer(version, r)
        leader = answer["tags"].get(1)
        endpoints = []
        if 0 in tags:
            e = k.Reader(tags[0], True)
            endpoints = e.array(lambda: (e.i32(), e.string(), e.i32(), e.string(), e.tags())[:3])
        return answer["error"], struct.unpack(">ii", leader[:8]) if leader else None, endpoints

    @staticmethod
    def fetch_answer(version, r):
        seen = []
        real = r.tags
        r.tags = lambda: seen.append(real()) or seen[-1]
        _, parts = k.fetch_answer(version, r)
        return parts[0][2], seen[-1]

    def metadata(self, topic):
        m = k.metadata_answer(12, self.ask(METADATA, 12, k.metadata_body(12, [topic])))
        return m["topics"][0]

    def test_the_refusal_names_the_new_leader_and_metadata_agrees(self):
        versions = self.advertised()
        self.assertGreaterEqual(versions[PRODUCE], 10)
        self.assertGreaterEqual(versions[FETCH], 16)
        self.cluster.create_topic("moved", PARTITIONS, 3)
        self.cluster.wait_in_sync()
        topic_id = self.metadata("moved")["id"]
        led = [p["partition"] for p in self.leaders(1, "moved")]
        self.assertGreater(len(led), 5)
        addresses = {b.id: ("127.0.0.1", b.settings["kafka"]) for b in self.cluster.brokers}
        for p in led:
            self.assertEqual(self.produce(10, "moved", p)[0], 0)
        self.drain(1)

        refused = {}
        while len(refused) < len(led):
            for p in led:
                if p in refused:
                    continue
                error, leader, endpoints = self.produce(10, "moved", p)
                if error == 0:
                    continue
                # The very first refusal has it, and so does what the client asks next.
                self.assertEqual(error, NOT_LEADER)
                self.assertIsNotNone(leader, f"partition {p}")
                self.assertIn(leader[0], (2, 3))
                self.assertEqual(endpoints, [(leader[0], *addresses[leader[0]])])
                shown = next(x for x in self.metadata("moved")["partitions"] if x["partition"] == p)
                self.assertEqual((shown["error"], shown["leader"], shown["epoch"]), (0, *leader), f"partition {p}")
                refused[p] = leader
        self.wait_drained(1)
        for p in led:
            self.assertEqual(self.cluster.partitions("moved")[p]["leader"], refused[p][0])
            expected = (NOT_LEADER, refused[p], [(refused[p][0], *addresses[refused[p][0]])])
            for version in range(10, versions[PRODUCE] + 1):
                self.assertEqual(self.produce(version, "moved", p), expected, version)
            for version in range(16, versions[FETCH] + 1):
                self.assertEqual(self.fetch(version, topic_id, p), expected, version)
            # Fetch has the leader since 12, the endpoint since 16; older ones say nothing that would be in the way
            self.assertEqual(self.fetch(13, topic_id, p), (NOT_LEADER, refused[p], []))
            self.assertEqual(self.produce(9, "moved", p), (NOT_LEADER, None, []))
        self.undo(1)
        self.cluster.wait_in_sync()


if __name__ == "__main__":
    unittest.main()
