"""Corners of the protocol that real clients have stumbled over elsewhere, asked with frames made by hand.

Expected behaviour is Kafka's; the comment of a test names the KIP or the report it comes from.
"""

import os
import time
import unittest

import cluster as c
import kafka_wire as k
from harness import ClusterCase, is_closed
from kafka_link import Link

NONE, OFFSET_OUT_OF_RANGE, CORRUPT, UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE, NOT_LEADER = 0, 1, 2, 3, 5, 6
TOO_LARGE, INVALID_TOPIC, INVALID_ACKS, UNSUPPORTED_VERSION, TOPIC_EXISTS = 10, 17, 21, 35, 36
INVALID_PARTITIONS, INVALID_FACTOR, INVALID_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST = 37, 38, 39, 40, 42
OLD_FORMAT, POLICY, OUT_OF_ORDER, OLD_EPOCH, INVALID_TXN_STATE = 43, 44, 45, 47, 48
SESSION_NOT_FOUND, FENCED_EPOCH, UNKNOWN_EPOCH, BAD_CODEC, INVALID_RECORD, UNKNOWN_ID = 70, 74, 75, 76, 87, 100


class OneBroker(ClusterCase):
    brokers = 1
    sidecars = False
    config = {**ClusterCase.config, "default.replication.factor": 1, "num.partitions": 1, "message.max.bytes": 200000}
    made = 0

    def setUp(self):
        self.broker = self.cluster.brokers[0]
        self.link = Link(self.broker)
        self.addCleanup(self.link.s.close)

    def topic(self, partitions=1, **config):
        OneBroker.made += 1
        name = f"t{OneBroker.made}-{os.getpid()}"
        self.cluster.create_topic(name, partitions, 1, **config)
        return name


class Produce(OneBroker):
    def test_every_version_is_answered_in_its_own_form(self):
        t = self.topic()
        for i, version in enumerate(range(3, 12)):
            self.assertEqual(self.link.produce(t, k.batch(), version=version)["base_offset"], i)

    def test_acks_0_gets_no_answer_and_a_failure_closes(self):
        # kop#1898: a broker that answered acks=0 confused every client
        t = self.topic()
        self.link.send(0, 9, k.produce_body(9, [(t, [(0, k.batch())])], acks=0))
        self.link.send(18, 0, b"")
        correlation, _ = self.link.receive(18, 0)
        self.assertEqual(correlation, 2)  # the next answer is to the next request
        self.assertEqual(self.link.offset(t, -1)[2], 1)
        self.link.send(0, 9, k.produce_body(9, [("no-such-topic", [(0, k.batch())])], acks=0))
        self.assertTrue(is_closed(self.link.s))

    def test_other_acks_are_invalid(self):
        t = self.topic()
        for acks in (2, -2, 127, -32768):
            self.assertEqual(self.link.produce(t, k.batch(), acks=acks)["error"], INVALID_ACKS)
        self.assertEqual(self.link.offset(t, -1)[2], 0)

    def test_null_and_empty_records_are_invalid(self):
        t = self.topic()
        for records in (None, b""):
            self.assertEqual(self.link.produce(t, records)["error"], INVALID_RECORD)

    def test_bad_batches_get_their_code_and_leave_nothing(self):
        t = self.topic()
        good = k.batch()
        one = k.record(b"v")
        cases = [
            (k.batch(crc=1), CORRUPT),
            (good[:-1], CORRUPT),
            (good[:40], CORRUPT),
            (k.batch(magic=1), OLD_FORMAT),
            (k.message_set(magic=0), OLD_FORMAT),
            (k.message_set(magic=1), OLD_FORMAT),
            (good + good, INVALID_RECORD),  # one batch a partition (KIP-98)
            (k.batch(n=2), INVALID_RECORD),
            (k.batch(n=0, records=b"", last_offset_delta=0), INVALID_RECORD),
            (k.batch(last_offset_delta=5), INVALID_RECORD),
            (k.batch(records=one + b"x"), INVALID_RECORD),  # redpanda#29577: records must fill the batch
            (k.batch(records=k.record(b"v", offset_delta=3)), INVALID_RECORD),
            (k.batch(attributes=0x20), INVALID_RECORD),  # control batches are the broker's
            (k.batch(producer=(5, 0, -1)), INVALID_RECORD),
            (k.batch(attributes=5), BAD_CODEC),
            (k.batch(attributes=7), BAD_CODEC),
            (k.batch([b"x" * 200000]), TOO_LARGE),
        ]
        for i, (records, code) in enumerate(cases):
            with self.subTest(case=i):
                self.assertEqual(self.link.produce(t, records)["error"], code)
        self.assertEqual(self.link.offset(t, -1)[2], 0)

    def test_a_compressed_batch_cannot_claim_any_number_of_records(self):
        # Offsets would jump by two thousand million a request, and every such batch needs a segment of its own
        t = self.topic()
        packed = k.batch(attributes=2, n=0x7FFFFFFF, last_offset_delta=0x7FFFFFFE, records=b"\0")
        self.assertEqual(self.link.produce(t, packed)["error"], INVALID_RECORD)

    def test_transactional_records_need_a_transaction(self):
        # Nobody ends transactions here: what would be accepted would be visible to read_committed at once
        t = self.topic()
        r = self.link.produce(t, k.batch(attributes=0x10, producer=(5, 0, 0)), transactional_id="x")
        self.assertNotEqual(r["error"], NONE)
        self.assertEqual(self.link.offset(t, -1)[2], 0)

    def test_zstd_needs_version_7(self):
        t = self.topic()
        packed = k.batch(attributes=4, records=b"\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00")
        self.assertEqual(self.link.produce(t, packed, version=6)["error"], BAD_CODEC)
        self.assertNotEqual(self.link.produce(t, packed, version=7)["error"], BAD_CODEC)

    def test_a_partition_named_twice_is_answered_twice(self):
        t = self.topic()
        body = k.produce_body(9, [(t, [(0, k.batch([b"a"])), (0, k.batch([b"b"]))])])
        answers, _ = k.produce_answer(9, self.link.ask(0, 9, body))
        self.assertEqual([a["base_offset"] for a in answers[(t, 0)]], [0, 1])

    def test_one_bad_partition_leaves_the_others_alone(self):
        t = self.topic(2)
        body = k.produce_body(9, [(t, [(0, k.batch(crc=1)), (1, k.batch()), (7, k.batch())])])
        answers, _ = k.produce_answer(9, self.link.ask(0, 9, body))
        self.assertEqual([answers[(t, p)][0]["error"] for p in (0, 1, 7)], [CORRUPT, NONE, UNKNOWN_TOPIC])

    def settled(self, topic, batch):
        """The answer of a leader that has led for a while: what it may have refused just before explains no gap any more."""
        return c.wait_for("the leader has settled", lambda: (r := self.link.produce(topic, batch))["error"] != NOT_LEADER and r, 10)

    def test_idempotence_by_the_book(self):
        # redpanda#3038, #4854: duplicates give the original offset, gaps 45, old epochs 47
        t = self.topic()

        def send(sequence, epoch=0, values=(b"a", b"b")):
            return self.settled(t, k.batch(values, producer=(4000, epoch, sequence)))

        self.assertEqual(send(0)["base_offset"], 0)
        self.assertEqual(send(2)["base_offset"], 2)
        self.assertEqual(send(0), send(0))
        self.assertEqual((send(0)["error"], send(0)["base_offset"]), (NONE, 0))
        self.assertEqual(send(8)["error"], OUT_OF_ORDER)
        self.assertEqual(send(0, epoch=1)["base_offset"], 4)
        self.assertEqual(send(4, epoch=0)["error"], OLD_EPOCH)
        self.assertEqual(send(7, epoch=2)["error"], OUT_OF_ORDER)  # a new epoch begins at 0
        other = self.settled(t, k.batch(producer=(4001, 0, 77)))  # one we do not know may begin anywhere
        self.assertEqual((other["error"], other["base_offset"]), (NONE, 6))
        self.assertEqual(self.link.offset(t, -1)[2], 7)

    def test_sequences_wrap_to_zero(self):
        t = self.topic()
        last = 0x7FFFFFFF
        for sequence, offset in ((last - 1, 0), (last, 1), (0, 2)):
            r = self.settled(t, k.batch(producer=(4100, 0, sequence)))
            self.assertEqual((r["error"], r["base_offset"]), (NONE, offset), sequence)

    def test_the_last_five_batches_are_known(self):
        t = self.topic()
        for sequence in range(6):
            self.link.produce(t, k.batch(producer=(4200, 0, sequence)))
        for sequence in range(1, 6):
            self.assertEqual(self.link.produce(t, k.batch(producer=(4200, 0, sequence)))["base_offset"], sequence)
        self.assertEqual(self.link.produce(t, k.batch(producer=(4200, 0, 0)))["error"], OUT_OF_ORDER)


class Fetch(OneBroker):
    def test_every_version_is_answered_in_its_own_form(self):
        t = self.topic()
        self.link.produce(t, k.batch([b"one", b"two"]))
        topic_id = self.link.metadata([t], version=12)["topics"][0]["id"]
        for version in range(4, 18):
            with self.subTest(version=version):
                got = self.link.fetch(topic_id if version >= 13 else t, 0, version=version)
                self.assertEqual((got["error"], got["hw"], k.batches(got["records"])), (NONE, 2, [(0, 2)]))

    def test_an_offset_inside_a_batch_gets_that_batch(self):
        t = self.topic()
        self.link.produce(t, k.batch([b"a", b"b", b"c"]))
        self.assertEqual(k.batches(self.link.fetch(t, 2)["records"]), [(0, 3)])

    def test_the_first_batch_comes_whole_whatever_the_limits(self):
        # KIP-74, redpanda#1532
        t = self.topic()
        self.link.produce(t, k.batch([b"x" * 50000]))
        self.link.produce(t, k.batch([b"y" * 50000]))
        for limit, total in ((1, 1), (0, 0), (-1, -1), (60000, 1), (1, 0x7FFFFFFF)):
            got = self.link.fetch(t, 0, limit=limit, max_bytes=total)
            self.assertEqual(k.batches(got["records"]), [(0, 1)], (limit, total))

    def test_offsets_outside_the_log_are_out_of_range(self):
        t = self.topic()
        self.link.produce(t, k.batch())
        start = time.monotonic()
        for offset in (2, -1, -2, 1 << 62, -(1 << 63)):
            got = self.link.fetch(t, offset, max_wait=5000)
            self.assertEqual((got["error"], got["records"]), (OFFSET_OUT_OF_RANGE, b""), offset)
        got = self.link.fetch(t, 1)
        self.assertEqual((got["error"], got["records"]), (NONE, b""))
        self.assertLess(time.monotonic() - start, 4)  # errors do not wait

    def test_read_committed_reads_like_everybody_without_transactions(self):
        # kop#1321, #397: several clients read committed by default
        t = self.topic()
        self.link.produce(t, k.batch())
        got = self.link.fetch(t, 0, isolation=1)
        self.assertEqual((got["error"], got["lso"], got["aborted"] or []), (NONE, 1, []))
        self.assertEqual(k.batches(got["records"]), [(0, 1)])

    def test_limits_of_every_size_are_survived(self):
        t = self.topic()
        self.link.produce(t, k.batch())
        for max_bytes in (-(1 << 31), -1, 0, 1, (1 << 31) - 1):
            for limit in (-(1 << 31), -1, 0, (1 << 31) - 1):
                for min_bytes in (-(1 << 31), 0, 1):
                    got = self.link.fetch(t, 0, limit=limit, max_bytes=max_bytes, min_bytes=min_bytes, max_wait=2000)
                    self.assertEqual(len(k.batches(got["records"])), 1)

    def test_a_wait_ends_when_no_more_would_fit(self):
        # redpanda#28501: min.bytes above what the limits let through must not cost max.wait every time
        t = self.topic()
        for _ in range(3):
            self.link.produce(t, k.batch([b"x" * 1000]))
        for limit, total in ((1500, 1 << 20), (1 << 20, 1500)):
            start = time.monotonic()
            got = self.link.fetch(t, 0, limit=limit, max_bytes=total, min_bytes=(1 << 31) - 1, max_wait=8000)
            self.assertTrue(k.batches(got["records"]))
            self.assertLess(time.monotonic() - start, 5, (limit, total))

    def test_a_partition_named_a_hundred_thousand_times_is_served_once(self):
        t = self.topic()
        self.link.produce(t, k.batch([b"x" * 1000]))
        start = time.monotonic()
        body = k.fetch_body(11, [(t, [(0, 0, 1 << 20)] * 100000)])
        _, parts = k.fetch_answer(11, self.link.ask(1, 11, body))
        self.assertLess(time.monotonic() - start, 10)
        self.assertTrue(all(p[2]["error"] == NONE for p in parts))
        self.assertLess(sum(len(p[2]["records"]) for p in parts), 3 << 20)

    def test_fetch_by_an_unknown_id(self):
        got = self.link.fetch(b"\1" * 16, 0, version=13)
        self.assertEqual(got["error"], UNKNOWN_ID)
        got = self.link.fetch(bytes(16), 0, version=13)
        self.assertEqual(got["error"], UNKNOWN_ID)

    def test_sessions_are_refused_politely(self):
        t = self.topic()
        error, _ = k.fetch_answer(11, self.link.ask(1, 11, k.fetch_body(11, [(t, [(0, 0, 100)])], session=(77, 1))))
        self.assertEqual(error, SESSION_NOT_FOUND)
        error, parts = k.fetch_answer(11, self.link.ask(1, 11, k.fetch_body(11, [(t, [(0, 0, 100)])], session=(0, 0))))
        self.assertEqual((error, parts[0][2]["error"]), (NONE, NONE))

    def test_leader_epochs_are_checked(self):
        t = self.topic()
        epoch = self.link.metadata([t])["topics"][0]["partitions"][0]["epoch"]
        for asked, code in ((epoch, NONE), (epoch + 1, UNKNOWN_EPOCH), (epoch - 1, NONE if epoch == 0 else FENCED_EPOCH)):
            _, parts = k.fetch_answer(11, self.link.ask(1, 11, k.fetch_body(11, [(t, [(0, 0, 100, asked)])])))
            self.assertEqual(parts[0][2]["error"], code)

    def test_a_stranger_cannot_pass_for_a_follower_of_others(self):
        t = self.topic()
        self.assertNotEqual(self.link.fetch(t, 0, replica=999)["error"], NONE)


class ListOffsets(OneBroker):
    def test_special_and_ordinary_timestamps(self):
        t = self.topic()
        for i, ts in enumerate((1000, 3000, 2000)):
            self.link.produce(t, k.batch([b"a"], timestamp=ts))
        self.assertEqual(self.link.offset(t, -1), (NONE, -1, 3))
        self.assertEqual(self.link.offset(t, -2), (NONE, -1, 0))
        self.assertEqual(self.link.offset(t, -3), (NONE, 3000, 1))
        self.assertEqual(self.link.offset(t, 1500), (NONE, 3000, 1))
        self.assertEqual(self.link.offset(t, 0), (NONE, 1000, 0))
        self.assertEqual(self.link.offset(t, 3001), (NONE, -1, -1))
        self.assertEqual(self.link.offset(t, -4, version=8), (NONE, -1, 0))
        self.assertEqual(self.link.offset(t, -5, version=9)[::2], (NONE, -1))

    def test_a_time_inside_a_batch_gives_its_record(self):
        # redpanda#6604, kop#1512
        t = self.topic()
        records = b"".join(k.record(b"v", offset_delta=i, timestamp_delta=i * 10) for i in range(5))
        self.link.produce(t, k.batch(records=records, n=5, timestamp=1000, max_timestamp=1040))
        self.assertEqual(self.link.offset(t, 1015), (NONE, 1020, 2))

    def test_an_unset_max_timestamp_is_repaired(self):
        # sarama: redpanda#25200, #27529
        t = self.topic()
        self.link.produce(t, k.batch(timestamp=5000, max_timestamp=-1))
        self.assertEqual(self.link.offset(t, 4000), (NONE, 5000, 0))

    def test_every_version_is_answered_in_its_own_form(self):
        t = self.topic()
        self.link.produce(t, k.batch())
        for version in range(1, 10):
            self.assertEqual(self.link.offset(t, -1, version=version)[2], 1)

    def test_what_a_version_does_not_know_is_unsupported(self):
        t = self.topic()
        self.link.produce(t, k.batch())
        for timestamp, version in ((-3, 6), (-4, 7), (-5, 8), (-6, 9), (-100, 9), (-(1 << 63), 9)):
            self.assertEqual(self.link.offset(t, timestamp, version=version)[0], UNSUPPORTED_VERSION, (timestamp, version))

    def test_a_partition_named_twice_is_refused(self):
        t = self.topic()
        r = self.link.ask(2, 7, k.list_offsets_body(7, [(t, [(0, -1), (0, -2)])]))
        self.assertEqual([a[2] for a in k.list_offsets_answer(7, r)], [INVALID_REQUEST] * 2)

    def test_the_largest_timestamp_a_hundred_thousand_times_holds_nobody_up(self):
        t = self.topic()
        for i in range(20):
            self.link.produce(t, k.batch([b"x" * 1000], timestamp=1000 + i))
        body = k.list_offsets_body(7, [(t, [(0, -3)] * 100000)])
        start = time.monotonic()
        self.link.send(2, 7, body)
        with Link(self.broker) as other:
            other.ask(18, 0, b"")
        self.link.receive(2, 7)
        self.assertLess(time.monotonic() - start, 5)


class Metadata(OneBroker):
    def test_null_means_all_and_empty_means_brokers_only(self):
        t = self.topic()
        self.assertIn(t, [x["name"] for x in self.link.metadata(None)["topics"]])
        self.assertEqual(self.link.metadata([])["topics"], [])
        self.assertIn(t, [x["name"] for x in self.link.metadata([], version=0)["topics"]])  # v0: [] is all
        self.assertIn(t, [x["name"] for x in self.link.metadata(None, version=1)["topics"]])
        self.assertEqual(self.link.metadata([], version=1)["topics"], [])

    def test_every_version_is_answered_in_its_own_form(self):
        t = self.topic(2)
        for version in range(0, 13):
            with self.subTest(version=version):
                m = self.link.metadata([t], version=version)
                self.assertEqual([(x["name"], x["error"], len(x["partitions"])) for x in m["topics"]], [(t, NONE, 2)])
                self.assertEqual(list(m["brokers"]), [1])

    def test_topics_are_found_by_id(self):
        t = self.topic()
        topic_id = self.link.metadata([t], version=12)["topics"][0]["id"]
        self.assertNotEqual(topic_id, bytes(16))
        got = self.link.metadata([topic_id], version=12)["topics"][0]
        self.assertEqual((got["error"], got["name"]), (NONE, t))
        got = self.link.metadata([b"\7" * 16], version=12)["topics"][0]
        self.assertEqual((got["error"], got["name"], got["id"]), (UNKNOWN_ID, None, b"\7" * 16))

    def test_ids_before_version_12_are_an_invalid_request(self):
        # The answer of versions 10 and 11 has no null name: Kafka refuses, and the connection lives
        for version in (10, 11):
            got = self.link.metadata([b"\7" * 16], version=version)["topics"]
            self.assertTrue(all(t["error"] != NONE for t in got))
            self.link.ask(18, 0, b"")

    def test_trailing_bytes_are_ignored(self):
        # librdkafka <= 2.15.0 sends three with "all topics"
        body = k.metadata_body(9, None) + b"\1\0\0"
        m = k.metadata_answer(9, self.link.ask(3, 9, body))
        self.assertEqual(list(m["brokers"]), [1])

    def test_unknown_tags_are_skipped_everywhere(self):
        tag = b"\2" + b"\x63\3abc" + b"\xff\x7f\0"  # two: 99 with "abc", 16383 with nothing
        body = k.array(None, True) + b"\0\0\0" + tag
        self.link.s.sendall(k.frame(3, 9, body, correlation=5, header_tags=tag))
        correlation, r = self.link.receive(3, 9)
        self.assertEqual((correlation, list(k.metadata_answer(9, r)["brokers"])), (5, [1]))

    def test_a_null_client_id_is_fine(self):
        # rskafka#169
        self.link.s.sendall(k.frame(18, 3, k.string("x", True) + k.string("1", True) + k.TAGS, correlation=9, client=None))
        self.assertEqual(self.link.receive(18, 3)[0], 9)

    def test_a_topic_named_many_times_is_described_once(self):
        t = self.topic(20)
        body = k.array([k.string(t)] * 200000)
        start = time.monotonic()
        m = k.metadata_answer(1, self.link.ask(3, 1, body))
        self.assertEqual(len(m["topics"]), 1)
        self.assertLess(time.monotonic() - start, 5)

    def test_illegal_names_are_named_and_not_created(self):
        for name in ("", ".", "..", "a/b", "a b", "\0", "x" * 250, "ü", "../../etc/passwd"):
            got = self.link.metadata([name], version=9, create=True)["topics"][0]
            self.assertEqual((got["error"], got["name"]), (INVALID_TOPIC, name))

    def test_a_flood_of_new_names_harms_nobody(self):
        # Each is told to come again; a bounded number is created a request, and nobody waits meanwhile
        names = [k.string(f"flood-{i}") for i in range(300000)]
        start = time.monotonic()
        self.link.send(3, 1, k.array(names))
        with Link(self.broker) as other:
            t = self.topic()
            self.assertEqual(other.produce(t, k.batch())["error"], NONE)
        m = k.metadata_answer(1, self.link.receive(3, 1)[1])
        self.assertEqual(len(m["topics"]), 300000)
        self.assertLessEqual({t["error"] for t in m["topics"]}, {UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE})
        self.assertLess(time.monotonic() - start, 20)
        c.wait_for("some of them are there", lambda: any(x["name"].startswith("flood") for x in self.link.metadata(None)["topics"]))
        made = len([x for x in self.link.metadata(None)["topics"] if x["name"].startswith("flood")])
        self.assertLess(made, 2000)


class Topics(OneBroker):
    def test_absurd_numbers_are_refused_with_their_code(self):
        cases = [
            (("n1", 0, 1, [], []), INVALID_PARTITIONS),
            (("n2", -5, 1, [], []), INVALID_PARTITIONS),
            (("n3", 0x7FFFFFFF, 1, [], []), INVALID_PARTITIONS),
            (("n4", 1, 0, [], []), INVALID_FACTOR),
            (("n5", 1, -7, [], []), INVALID_FACTOR),
            (("n6", 1, 0x7FFF, [], []), INVALID_FACTOR),
            (("n7", -1, -1, [(0, [])], []), INVALID_ASSIGNMENT),
            (("n8", -1, -1, [(0, [1, 1])], []), INVALID_ASSIGNMENT),
            (("n9", -1, -1, [(0, [99])], []), INVALID_ASSIGNMENT),
            (("n10", -1, -1, [(0, [-1])], []), INVALID_ASSIGNMENT),
            (("n11", -1, -1, [(1, [1])], []), INVALID_ASSIGNMENT),
            (("n12", -1, -1, [(0, [1]), (0, [1])], []), INVALID_ASSIGNMENT),
            (("n13", -1, -1, [(0x7FFFFFFF, [1])], []), INVALID_ASSIGNMENT),
            (("n14", -1, -1, [(-1, [1])], []), INVALID_ASSIGNMENT),
            (("n15", 3, -1, [(0, [1])], []), INVALID_REQUEST),
            (("n16", 1, 1, [], [("no.such", "1")]), INVALID_CONFIG),
            (("n17", 1, 1, [], [("retention.ms", "soon")]), INVALID_CONFIG),
            (("n18", 1, 1, [], [("retention.ms", "99999999999999999999")]), INVALID_CONFIG),
            (("n19", 1, 1, [], [("retention.ms\0x", "1")]), INVALID_CONFIG),
            (("n20", 1, 1, [], [("compression.type", b"\xff\xfe")]), INVALID_CONFIG),
            (("n21", 1, 1, [], [("min.insync.replicas", "0")]), INVALID_CONFIG),
            (("n22", 1, 1, [], [("", "")]), INVALID_CONFIG),
            (("a/b", 1, 1, [], []), INVALID_TOPIC),
            (("", 1, 1, [], []), INVALID_TOPIC),
            (("..", 1, 1, [], []), INVALID_TOPIC),
            (("x" * 250, 1, 1, [], []), INVALID_TOPIC),
            (("nul\0nul", 1, 1, [], []), INVALID_TOPIC),
        ]
        for topic, code in cases:
            with self.subTest(topic=topic[0][:10]):
                got = self.link.create([topic])
                self.assertEqual(got[0][1], code, got)

    def test_names_that_collide_are_refused(self):
        # "a.b" and "a_b" would be one metric; also within one request and while the first is being made
        name = f"c{os.getpid()}"
        got = self.link.create([(f"{name}.b", 1, 1, [], []), (f"{name}_b", 1, 1, [], [])])
        self.assertEqual([x[1] for x in got], [NONE, INVALID_TOPIC])
        self.assertEqual(self.link.create([(f"{name}_b", 1, 1, [], [])])[0][1], INVALID_TOPIC)
        with Link(self.broker) as other:
            self.link.send(19, 5, k.create_topics_body(5, [(f"{name}.d", 1, 1, [], [])]))
            other.send(19, 5, k.create_topics_body(5, [(f"{name}_d", 1, 1, [], [])]))
            codes = [k.create_topics_answer(5, x.receive(19, 5)[1])[0][1] for x in (self.link, other)]
        self.assertEqual(sorted(codes), [NONE, INVALID_TOPIC])

    def test_one_request_cannot_make_any_number_of_partitions(self):
        # A few hundred bytes must not become gigabytes
        got = self.link.create([(f"many{i}", 50000, 1, [], []) for i in range(1000)], validate_only=True)
        self.assertEqual(len(got), 1000)
        self.assertTrue(all(x[1] in (POLICY, INVALID_PARTITIONS) for x in got[2:]), {x[1] for x in got})

    def test_many_topics_in_one_request_hold_nobody_up(self):
        topics = [(f"dup.{i % 1000}", 1, 1, [], []) for i in range(200000)]
        start = time.monotonic()
        self.link.send(19, 5, k.create_topics_body(5, topics, validate_only=True))
        with Link(self.broker) as other:
            self.assertEqual(other.create([(f"quick{os.getpid()}", 1, 1, [], [])])[0][1], NONE)
        got = k.create_topics_answer(5, self.link.receive(19, 5)[1])
        self.assertEqual({x[1] for x in got}, {INVALID_REQUEST})
        self.assertLess(time.monotonic() - start, 10)

    def test_nonsense_is_not_deleted(self):
        def delete(version, items):
            f = k.is_flexible(20, version)
            body = k.array(items, f) + k.i32(5000) + k.tags(f)
            r = self.link.ask(20, version, body)
            r.i32()

            def one():
                name, topic_id = r.string(), r.take(16) if version >= 6 else None
                error = r.i16()
                if version >= 5:
                    r.string()
                r.tags()
                return name, topic_id, error

            return [x[2] for x in r.array(one)]

        t = self.topic()
        self.assertEqual(delete(1, [k.string(x) for x in ("no-such", "", "../x", "x" * 300)]), [UNKNOWN_TOPIC] * 4)
        by = lambda name, i: k.string(name, True) + i + k.TAGS  # noqa: E731
        self.assertEqual(delete(6, [by(None, b"\5" * 16), by(None, bytes(16))]), [UNKNOWN_ID, UNKNOWN_ID])
        codes = delete(6, [by(t, bytes(16))] * 3)
        self.assertIn(NONE, codes)
        self.assertLessEqual(set(codes), {NONE, INVALID_REQUEST, UNKNOWN_TOPIC})
        c.wait_for("it is gone", lambda: self.link.metadata([t])["topics"][0]["error"] == UNKNOWN_TOPIC)


class Tools(OneBroker):
    """CreatePartitions, ElectLeaders and reassignments with numbers that no tool would send."""

    def grow(self, topics, validate_only=True):
        body = k.array(
            [
                k.string(t, True) + k.i32(n) + k.array(None if ids is None else [k.array([k.i32(i) for i in x], True) + k.TAGS for x in ids], True) + k.TAGS
                for t, n, ids in topics
            ],
            True,
        )
        r = self.link.ask(37, 2, body + k.i32(5000) + k.i8(validate_only) + k.TAGS)
        r.i32()

        def one():
            x = r.string(), r.i16(), r.string()
            r.tags()
            return x

        return [x[1] for x in r.array(one)]

    def test_absurd_growth_is_refused(self):
        t = self.topic()
        for n in (1, 0, -1, -(1 << 31), (1 << 31) - 1):
            self.assertEqual(self.grow([(t, n, None)]), [INVALID_PARTITIONS])
        self.assertEqual(self.grow([("no-such", 3, None), ("", 3, None)]), [UNKNOWN_TOPIC] * 2)
        self.assertEqual(self.grow([(t + "\0x", 3, None)]), [UNKNOWN_TOPIC])
        self.assertEqual(self.grow([(t, 2, [[1, 1]])]), [INVALID_ASSIGNMENT])
        self.assertEqual(self.grow([(t, 2, [[-1]])]), [INVALID_ASSIGNMENT])
        self.assertEqual(self.grow([(t, 2, [])]), [INVALID_ASSIGNMENT])
        self.assertEqual(self.grow([(t, 2, [list(range(100000))])]), [INVALID_ASSIGNMENT])
        self.assertEqual(self.grow([(t, 2, None), (t, 3, None)]), [INVALID_REQUEST] * 2)
        self.assertEqual(self.grow([(t, 2, None)]), [NONE])

    def test_a_crowd_of_names_holds_nobody_up(self):
        start = time.monotonic()
        self.assertEqual(set(self.grow([(f"g{i}", 2, None) for i in range(100000)])), {INVALID_REQUEST})
        many = k.array([k.string("x", True) + k.array([k.i32(i) for i in range(500000)], True) + k.TAGS], True)
        r = self.link.ask(43, 2, k.i8(0) + many + k.i32(5000) + k.TAGS)
        r.i32()
        self.assertEqual(r.i16(), INVALID_REQUEST)
        r = self.link.ask(46, 0, k.i32(5000) + many + k.TAGS)
        r.i32()
        self.assertEqual(r.i16(), INVALID_REQUEST)
        moves = k.array([k.i32(i) + k.array([k.i32(1)], True) + k.TAGS for i in range(300000)], True)
        r = self.link.ask(45, 0, k.i32(5000) + k.array([k.string("x", True) + moves + k.TAGS], True) + k.TAGS)
        r.i32()
        self.assertEqual(r.i16(), INVALID_REQUEST)
        self.assertLess(time.monotonic() - start, 15)


class Coordinators(OneBroker):
    def test_producer_ids_differ(self):
        ids = set()
        for version in range(0, 6):
            f = k.is_flexible(22, version)
            body = k.string(None, f) + k.i32(60000) + (k.i64(-1) + k.i16(-1) if version >= 3 else b"") + k.tags(f)
            r = self.link.ask(22, version, body)
            r.i32()
            self.assertEqual(r.i16(), NONE)
            ids.add(r.i64())
        self.assertEqual(len(ids), 6)

    def test_groups_and_transactions_have_no_coordinator_yet(self):
        for version in range(0, 7):
            f = k.is_flexible(10, version)
            if version < 4:
                body = k.string("g", f) + (k.i8(0) if version >= 1 else b"") + k.tags(f)
            else:
                body = k.i8(0) + k.array([k.string("g", True)], True) + k.TAGS
            self.link.ask(10, version, body)
        r = self.link.ask(22, 4, k.string("txn", True) + k.i32(1000) + k.i64(-1) + k.i16(-1) + k.TAGS)
        r.i32()
        self.assertNotEqual(r.i16(), NONE)

    def test_epochs_of_the_future_and_the_past(self):
        t = self.topic()
        self.link.produce(t, k.batch())
        epoch = self.link.metadata([t])["topics"][0]["partitions"][0]["epoch"]

        def end_offset(asked):
            r = self.link.ask(
                23, 3, k.i32(-1) + k.array([k.string(t) + k.array([k.i32(0) + k.i32(-1) + k.i32(asked)])])
            )
            r.i32()
            return r.array(lambda: (r.string(), r.array(lambda: (r.i16(), r.i32(), r.i32(), r.i64()))))[0][1][0]

        self.assertEqual(end_offset(epoch), (NONE, 0, epoch, 1))
        self.assertEqual(end_offset(epoch + 5), (NONE, 0, -1, -1))
        self.assertEqual(end_offset(-1)[3], -1)
        self.assertEqual(end_offset(-(1 << 31))[3], -1)


class ThreeBrokers(ClusterCase):
    def leader_of(self, topic):
        return c.wait_for("there is a leader", lambda: next((p["leader"] for p in self.cluster.partitions(topic) or [] if p["leader"] > 0), None))

    def broker(self, number):
        return next(b for b in self.cluster.brokers if b.id == number)

    def test_who_asks_the_wrong_broker_hears_the_right_one(self):
        # KIP-951
        self.cluster.create_topic("led", 1, 3)
        leader = self.leader_of("led")
        follower = next(b for b in self.cluster.brokers if b.id != leader)
        with Link(follower) as link:
            r = c.wait_for(
                "the follower knows its leader",
                lambda: (x := k.produce_answer(10, link.ask(0, 10, k.produce_body(10, [("led", [(0, k.batch())])]))))[0][("led", 0)][0]["leader"] and x,
            )
            answers, endpoints = r
            got = answers[("led", 0)][0]
            host, port = self.broker(leader).address.rsplit(":", 1)
            self.assertEqual((got["error"], got["leader"][0]), (NOT_LEADER, leader))
            self.assertEqual([e[:3] for e in endpoints], [(leader, host, int(port))])
            answers, endpoints = k.produce_answer(9, link.ask(0, 9, k.produce_body(9, [("led", [(0, k.batch())])])))
            self.assertEqual((answers[("led", 0)][0]["leader"], endpoints), (None, []))
            self.assertEqual(link.fetch("led", 0)["error"], NOT_LEADER)
            self.assertEqual(link.offset("led", -1)[0], NOT_LEADER)

    def test_answers_leave_in_the_order_of_requests(self):
        # A produce that waits for followers holds back what was asked after it, and only on its connection
        self.cluster.create_topic("ordered", 1, 3, min_insync_replicas=2)
        leader = self.broker(self.leader_of("ordered"))
        others = [b for b in self.cluster.brokers if b is not leader]
        with Link(leader) as link, Link(leader) as other:
            self.assertEqual(link.produce("ordered", k.batch())["error"], NONE)
            for b in others:
                os.kill(b.pid(), 19)
            try:
                first = link.send(0, 9, k.produce_body(9, [("ordered", [(0, k.batch())])], timeout_ms=1500))
                second = link.send(18, 0, b"")
                third = link.send(0, 9, k.produce_body(9, [("ordered", [(0, k.batch())])], acks=1))
                other.ask(18, 0, b"")
                self.assertEqual([link.receive(key, v)[0] for key, v in ((0, 9), (18, 0), (0, 9))], [first, second, third])
            finally:
                for b in others:
                    os.kill(b.pid(), 18)
        self.cluster.wait_in_sync()

    def test_consumers_read_up_to_the_high_watermark_only(self):
        self.cluster.create_topic("marked", 1, 3, min_insync_replicas=1)
        leader = self.broker(self.leader_of("marked"))
        others = [b for b in self.cluster.brokers if b is not leader]
        with Link(leader) as link:
            self.assertEqual(link.produce("marked", k.batch())["error"], NONE)
            for b in others:
                os.kill(b.pid(), 19)
            try:
                self.assertEqual(link.produce("marked", k.batch(), acks=1)["base_offset"], 1)
                got = link.fetch("marked", 0)
                self.assertEqual((got["hw"], k.batches(got["records"])), (1, [(0, 1)]))
                got = link.fetch("marked", 1)  # between the high watermark and the log end: nothing, and no error
                self.assertEqual((got["error"], got["records"]), (NONE, b""))
                self.assertEqual(link.offset("marked", -1)[2], 1)
            finally:
                for b in others:
                    os.kill(b.pid(), 18)
        self.cluster.wait_in_sync()

    def test_only_the_controller_creates_topics(self):
        controller = self.cluster.get("/v1/cluster")["controller"]
        for b in self.cluster.brokers:
            with Link(b) as link:
                code = link.create([(f"by{b.id}", 1, 1, [], [])])[0][1]
                self.assertEqual(code, NONE if b.id == controller else 41)


if __name__ == "__main__":
    unittest.main()
