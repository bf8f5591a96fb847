"""An Apache Kafka 3.9 broker in ZooKeeper mode as a member of a test cluster, beside Stepdown's brokers or alone.

The jars are what tests/support/fetch_kafka has put into its folder. A KafkaBroker stands where a cluster.Broker does,
but it has no admin listener: what is asked over HTTP is answered by Stepdown's brokers only.
"""

import os
import subprocess
from pathlib import Path

import cluster as c

SUPPORT = Path(__file__).resolve().parent
HEAP = "384m"

LOG4J = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.state.change.logger=WARN
log4j.logger.org.apache.zookeeper=WARN
"""


class Missing(Exception):
    """There is no Apache Kafka here; says why."""


def jars(fetch=True):
    """The folder with Apache Kafka's jars. Raises Missing when it is not there and cannot be had."""
    r = subprocess.run(
        [str(SUPPORT / "fetch_kafka"), *([] if fetch else ["--check"])], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if r.returncode != 0:
        raise Missing("no Apache Kafka to compare with: " + r.stderr.strip()[-500:])
    return Path(r.stdout.strip())


class KafkaBroker(c.Broker):
    """One process of kafka.Kafka. Kafka's own stop is SIGTERM: ControlledShutdown, then exit with 143 or 0."""

    heap = HEAP
    jvm = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # quick to start; a bench wants another one
    log4j = LOG4J

    @property
    def config(self):
        return self.dir / "broker.properties"

    def configure(self, extra, port=None):
        self.dir.mkdir(parents=True, exist_ok=True)
        (self.dir / "ports.json").write_text(f'{{"kafka": {port or c.free_port()}}}')
        settings = {
            "broker.id": self.id,
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": self.dir / "data",
            "zookeeper.connect": self.cluster.zookeeper,
            "offsets.topic.replication.factor": 1,
            "auto.create.topics.enable": "false",
            "auto.leader.rebalance.enable": "false",
            "num.network.threads": 2,
            "num.io.threads": 4,
            "background.threads": 2,
            "log.cleaner.enable": "false",
            **extra,
        }
        self.config.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
        (self.dir / "log4j.properties").write_text(self.log4j)

    def start(self, wait=True):
        command = [
            "java", f"-Xmx{self.heap}", "-Xshare:auto", *self.jvm, "-XX:-UsePerfData", f"-Dlog4j.configuration=file:{self.dir / 'log4j.properties'}",
            f"-Dkafka.logs.dir={self.dir}", "-cp", f"{jars(fetch=False)}/*", "kafka.Kafka", str(self.config),
        ]  # fmt: skip
        with open(self.dir / "broker.log", "ab") as log:
            self.log_start = log.tell()
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        (self.dir / "broker.pid").write_text(str(self.process.pid))
        if wait:
            self.wait_running()

    def pid(self, name="broker"):
        try:
            pid = int((self.dir / f"{name}.pid").read_text())
        except (OSError, ValueError):
            return None
        self._reap()
        return pid if c.alive(pid, self.config) else None

    def log_since_start(self):
        return (self.dir / "broker.log").read_bytes()[self.log_start :].decode(errors="replace")

    def wait_running(self, timeout=90):
        def started():
            if not self.running():
                raise c.ClusterError(f"Apache Kafka's broker {self.id} ended while starting:\n{self.log[-3000:]}")
            return "started (kafka.server.KafkaServer)" in self.log_since_start()

        c.wait_for(f"Apache Kafka's broker {self.id} has started", started, timeout, interval=0.05)

    def try_get(self, path):
        return None

    def request(self, method, path, body=None, timeout=10, redirects=3):
        raise c.ClusterError("Apache Kafka has no admin listener")
