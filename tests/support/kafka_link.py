"""A connection to a broker that speaks in frames made by hand."""

import kafka_wire as k
from harness import connect, read_frame


class Link:
    """One connection: send requests of any kind, read answers in order."""

    def __init__(self, broker, timeout=15):
        self.s = connect(broker, timeout)
        self.next = 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.close()

    def send(self, key, version, body):
        self.s.sendall(k.frame(key, version, body, correlation=self.next))
        self.next += 1
        return self.next - 1

    def receive(self, key, version):
        return k.answer(key, version, read_frame(self.s))

    def ask(self, key, version, body):
        sent = self.send(key, version, body)
        got, reader = self.receive(key, version)
        assert got == sent, f"answer {got} to request {sent}"
        return reader

    def produce(self, topic, records, version=9, acks=-1, partition=0, **more):
        body = k.produce_body(version, [(topic, [(partition, records)])], acks=acks, **more)
        answers, _ = k.produce_answer(version, self.ask(0, version, body))
        return answers[(topic, partition)][0]

    def fetch(self, topic, offset, version=11, limit=1 << 20, partition=0, **more):
        _, parts = k.fetch_answer(version, self.ask(1, version, k.fetch_body(version, [(topic, [(partition, offset, limit)])], **more)))
        return parts[0][2]

    def offset(self, topic, timestamp, version=7, partition=0):
        answers = k.list_offsets_answer(version, self.ask(2, version, k.list_offsets_body(version, [(topic, [(partition, timestamp)])])))
        return answers[0][2:]

    def metadata(self, topics, version=9, create=False):
        return k.metadata_answer(version, self.ask(3, version, k.metadata_body(version, topics, create)))

    def create(self, topics, version=5, **more):
        return k.create_topics_answer(version, self.ask(19, version, k.create_topics_body(version, topics, **more)))
