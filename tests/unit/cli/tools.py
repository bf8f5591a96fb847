"""What the golden tests of the replication tools share: running the client, a scripted broker, a seeded ZooKeeper."""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from zk_client import ZooKeeperClient  # noqa: E402

UNREACHABLE = "127.0.0.1:1"  # tcpmux: nobody serves it
OK, FAILED, USAGE, UNAVAILABLE, INCOMPLETE = 0, 1, 64, 69, 75


class Result:
    def __init__(self, completed):
        self.status, self.out, self.err = completed.returncode, completed.stdout, completed.stderr

    @property
    def json(self):
        return json.loads(self.out)


class ToolCase(unittest.TestCase):
    """Each test has a folder of its own."""

    stepdown = None  # the program; set by the file that runs the tests

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stepdown-tools-")
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)

    def run_tool(self, *args, timeout=60):
        env = {k: v for k, v in os.environ.items() if not k.startswith("STEPDOWN_")}
        return Result(subprocess.run([self.stepdown, *map(str, args)], capture_output=True, text=True,
                                     timeout=timeout, env=env, stdin=subprocess.DEVNULL))

    def file(self, name, content):
        path = self.dir / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def expect(self, r, status, out=None, err=None):
        """Golden: exact output. @err: exact too, or a list of pieces that must be there in this order."""
        where = f"stdout {r.out!r}, stderr {r.err!r}"
        self.assertEqual(r.status, status, where)
        if out is not None:
            self.assertEqual(r.out, out, where)
        if isinstance(err, str):
            self.assertEqual(r.err, err, where)
        at = 0
        for piece in err if isinstance(err, list) else ():
            found = r.err.find(piece, at)
            self.assertGreaterEqual(found, 0, f"{piece!r} is not in {where}")
            at = found + len(piece)


class FakeBroker:
    """See fake_broker.c."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.port = json.loads(self.lines.get(timeout=20))["port"]
        self.requests = []

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def script(self, versions=None, **answers):
        """Each answer: one body, or a list of them."""
        listed = {k: v if isinstance(v, list) else [v] for k, v in answers.items()}
        self.process.stdin.write(json.dumps({"versions": versions or {}, "answers": listed}) + "\n")
        self.process.stdin.flush()
        while "ready" not in json.loads(self.lines.get(timeout=20)):
            pass
        self.requests = []

    def asked(self, api=None):
        """Requests since the script was set (of @api), oldest first. Each was printed before it was answered; the
        line that a mark brings back stands behind them all."""
        self.process.stdin.write(json.dumps({"mark": True}) + "\n")
        self.process.stdin.flush()
        while "mark" not in (line := json.loads(self.lines.get(timeout=20))):
            self.requests.append(line)
        return [r for r in self.requests if api in (None, r["api"])]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)
        self.process.stdout.close()


def partition(index, leader, replicas, isr):
    return {"partition_index": index, "leader_id": leader, "leader_epoch": 3, "replica_nodes": replicas,
            "isr_nodes": isr}


def topic(name, *partitions, error=0):
    return {"error_code": error, "name": name, "topic_id": "gGLuCi1SZfGTWqh4MKJF4A", "partitions": list(partitions)}


def metadata(*topics, brokers=(1, 2, 3), controller=1):
    """All brokers are the same fake one."""
    return {"brokers": [{"node_id": b, "host": "127.0.0.1", "port": "$port"} for b in brokers],
            "controller_id": controller, "topics": list(topics)}


class ZooKeeper:
    """A real server, started once a file."""

    def __init__(self, helper):
        self.helper = helper
        self.dir = tempfile.TemporaryDirectory(prefix="stepdown-tools-zk-")
        started = subprocess.run([helper, "start", "--dir", self.dir.name, "--no-sync"], capture_output=True,
                                 text=True, timeout=60, check=True)
        self.address = started.stdout.strip()
        self.client = ZooKeeperClient(self.address)
        self.count = 0

    def cluster(self, brokers=(1, 2, 3), port=9092, controller=1, topics=None):
        """A cluster in a chroot of its own, as Kafka's znodes tell it. @topics: name -> list of (leader, replicas,
        isr), isr None: no state yet. Returns its chroot."""
        self.count += 1
        root = f"/cluster{self.count}"
        self.client.make(root + "/brokers/ids")
        self.client.make(root + "/brokers/topics")
        self.client.make(root + "/config/topics")
        self.client.make(root + "/admin/delete_topics")
        for b in brokers:
            self.client.make(f"{root}/brokers/ids/{b}", json.dumps(
                {"version": 4, "host": "127.0.0.1", "port": port, "jmx_port": -1, "timestamp": "1700000000000",
                 "endpoints": [f"PLAINTEXT://127.0.0.1:{port}"],
                 "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}}).encode())
        if controller is not None:
            self.client.make(root + "/controller", json.dumps(
                {"version": 1, "brokerid": controller, "timestamp": "1700000000000"}).encode())
        for name, partitions in (topics or {}).items():
            self.add_topic(root, name, partitions)
        return root

    def add_topic(self, root, name, partitions):
        self.client.make(f"{root}/brokers/topics/{name}", json.dumps(
            {"version": 1, "partitions": {str(i): p[1] for i, p in enumerate(partitions)}}).encode())
        for i, (leader, _, isr) in enumerate(partitions):
            if isr is not None:
                self.client.make(f"{root}/brokers/topics/{name}/partitions/{i}/state", json.dumps(
                    {"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": 3, "isr": isr}).encode())

    def read(self, path):
        """The JSON there, None when there is no such node."""
        data = self.client.get(path)
        return None if data is None else json.loads(data)

    def close(self):
        self.client.close()
        subprocess.run([self.helper, "stop", "--dir", self.dir.name], check=False, timeout=60,
                       capture_output=True)
        self.dir.cleanup()


TOPICS = {"a": [(1, [1, 2], [1, 2]), (2, [2, 3], [2])], "b": [(-1, [3, 1], [])], "c": [(9, [9, 1], [9, 1])]}
METADATA = metadata(
    topic("b", partition(0, -1, [3, 1], [])),
    topic("a", partition(1, 2, [2, 3], [2]), partition(0, 1, [1, 2], [1, 2])),
    topic("c", partition(0, 9, [9, 1], [9, 1])))


class ClusterCase(ToolCase):
    """One fake broker and one ZooKeeper a file."""

    broker = zk = None

    def setUp(self):
        super().setUp()
        self.broker.script()

    def kafka(self, *args, **options):
        return self.run_tool(*args, "--bootstrap", self.broker.address, **options)

    def zookeeper(self, root, *args, **options):
        return self.run_tool(*args, "--zookeeper", self.zk.address + root, **options)

    def asked_once(self, api):
        requests = self.broker.asked(api)
        self.assertEqual(len(requests), 1, requests)
        return requests[0]["body"]


def main(argv):
    """Arguments: STEPDOWN FAKE_BROKER ZOOKEEPER [unittest options]"""
    ToolCase.stepdown, fake, helper = argv[1:4]
    ClusterCase.broker, ClusterCase.zk = FakeBroker(fake), ZooKeeper(helper)
    try:
        program = unittest.main(module="__main__", argv=[argv[0], *argv[4:]], exit=False)
    finally:
        ClusterCase.broker.close()
        ClusterCase.zk.close()
    return not program.result.wasSuccessful()
