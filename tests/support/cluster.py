"""A Stepdown cluster of plain processes on loopback: one ZooKeeper, N brokers, a sidecar each.

Everything lives in one folder, so that another process can end exactly what was started there. Used by the
`cluster` command, by tests/cluster and by the benches.
"""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
ROOT = SUPPORT.parent.parent


class ClusterError(Exception):
    pass


given_ports = set()


def free_port():
    """A port nobody listens on, and that was not given out before: two that are only going to be bound must differ. Below
    the ephemeral range, so that no outgoing connection takes it meanwhile."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        low = int(f.read().split()[0])
    seed = int.from_bytes(os.urandom(4), "big")
    for i in range(2000):
        port = 10000 + (seed + i * 7) % max(low - 10000, 1000)
        if port in given_ports:
            continue
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        given_ports.add(port)
        return port
    raise ClusterError("no free port found")


def wait_for(what, condition, timeout=90.0, interval=0.02):
    """Poll @condition until it is truthy and return that; never a fixed sleep for a result."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise ClusterError(f"timed out after {timeout:g} s waiting until {what}")
        time.sleep(interval)


def find_build(build=None):
    """The folder with the programs: --build, $STEPDOWN_BUILD, or build/ in the tree."""
    for candidate in (build, os.environ.get("STEPDOWN_BUILD"), ROOT / "build"):
        if candidate and (Path(candidate) / "broker" / "stepdown-broker").exists():
            return Path(candidate)
    raise ClusterError("no build found: run `meson setup build && ninja -C build`, or set STEPDOWN_BUILD")


def alive(pid, marker):
    """Is @pid still the process we started? A recycled pid has another command line."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        cmdline = Path(f"/proc/{pid}/cmdline").read_bytes()
        state, threads = stat[0], int(stat[17])
    except (OSError, IndexError):
        return False
    # The first thread is a zombie as soon as it is dead, while others may still hold the files and their locks.
    if state == "Z" and threads > 1:
        return True
    # Between exec and the new image's arguments the command line is empty for a moment.
    return state not in "ZX" and (not cmdline or str(marker).encode() in cmdline)


class Broker:
    def __init__(self, cluster, number):
        self.cluster = cluster
        self.id = number
        self.dir = cluster.dir / f"b{number}"
        self.process = None
        self.env = {}

    # --- files ---
    @property
    def settings(self):
        return json.loads((self.dir / "ports.json").read_text())

    @property
    def address(self):
        return f"127.0.0.1:{self.settings['kafka']}"

    @property
    def admin_port(self):
        return self.settings["admin"]

    @property
    def log(self):
        return (self.dir / "broker.log").read_text(errors="replace")

    def configure(self, extra):
        self.dir.mkdir(parents=True, exist_ok=True)
        (self.dir / "ports.json").write_text(json.dumps({"kafka": free_port(), "admin": free_port()}))
        c = {
            "broker.id": self.id,
            "listeners": f"PLAINTEXT://{self.address}",
            "admin.listener": f"127.0.0.1:{self.admin_port}",
            "log.dirs": str(self.dir / "data"),
            "zookeeper.connect": self.cluster.zookeeper_for(self),
            **extra,
        }
        (self.dir / "broker.yaml").write_text("".join(f"{k}: {json.dumps(v)}\n" for k, v in c.items()))

    def configure_sidecar(self, extra):
        own = f"http://127.0.0.1:{self.admin_port}"
        others = [f"http://127.0.0.1:{b.admin_port}" for b in self.cluster.brokers if b is not self]
        c = {
            "broker.id": self.id,
            "admin.endpoints": ",".join([own, *others]),
            "control.socket": str(self.dir / "sidecar.sock"),
            "state.dir": str(self.dir / "sidecar"),
            **extra,
        }
        (self.dir / "sidecar").mkdir(exist_ok=True)
        (self.dir / "sidecar.yaml").write_text("".join(f"{k}: {json.dumps(v)}\n" for k, v in c.items()))

    # --- processes ---
    def _spawn(self, name, program, config):
        log = open(self.dir / f"{name}.log", "ab")
        env = {k: v for k, v in os.environ.items() if k not in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "JOURNAL_STREAM")}
        if name == "broker":
            env |= self.env
        with log:
            p = subprocess.Popen(
                [str(program), "--config", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                start_new_session=True,
            )
        (self.dir / f"{name}.pid").write_text(str(p.pid))
        return p

    def start(self, wait=True):
        self.process = self._spawn("broker", self.cluster.build / "broker" / "stepdown-broker", self.dir / "broker.yaml")
        if wait:
            self.wait_running()

    def start_sidecar(self):
        return self._spawn("sidecar", self.cluster.build / "sidecar" / "stepdown-sidecar", self.dir / "sidecar.yaml")

    def pid(self, name="broker"):
        try:
            pid = int((self.dir / f"{name}.pid").read_text())
        except (OSError, ValueError):
            return None
        self._reap()
        return pid if alive(pid, self.dir / f"{name}.yaml") else None

    def _reap(self):
        if self.process:
            self.process.poll()

    def running(self):
        return self.pid() is not None

    def wait_running(self, timeout=60):
        def ready():
            if not self.running():
                raise ClusterError(f"broker {self.id} ended while starting:\n{self.log[-3000:]}")
            status = self.try_get("/v1/broker")
            return status and status["state"] == "running"

        wait_for(f"broker {self.id} is registered", ready, timeout)

    def signal(self, number):
        pid = self.pid()
        if pid is None:
            raise ClusterError(f"broker {self.id} does not run")
        os.kill(pid, number)

    def kill(self):
        """SIGKILL, and wait until the process is gone."""
        self.signal(signal.SIGKILL)
        wait_for(f"broker {self.id} is gone", lambda: not self.running(), 10)

    def stop(self, timeout=60):
        """SIGTERM: controlled shutdown. Returns the exit status when this object started the process."""
        self.signal(signal.SIGTERM)
        wait_for(f"broker {self.id} has stopped", lambda: not self.running(), timeout)
        return self.process.wait(10) if self.process else None

    # --- admin ---
    def request(self, method, path, body=None, timeout=10, redirects=3):
        """(status, parsed body) of an admin request; follows the 307 to the controller."""
        port = self.admin_port
        for _ in range(redirects + 1):
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
            try:
                c.request(method, path, body=None if body is None else json.dumps(body))
                r = c.getresponse()
                text = r.read()
                location = r.getheader("Location")
            finally:
                c.close()
            if r.status != 307:
                is_json = (r.getheader("Content-Type") or "").startswith("application/json")
                return r.status, json.loads(text) if is_json else text.decode()
            port = urllib.parse.urlsplit(location).port
        raise ClusterError(f"too many redirects for {method} {path}")

    def try_get(self, path):
        """The parsed body of a 200, else None."""
        try:
            status, body = self.request("GET", path, timeout=5)
        except (OSError, http.client.HTTPException, ValueError):
            return None
        return body if status == 200 else None


class Cluster:
    def __init__(self, directory, build=None):
        self.dir = Path(directory).resolve()
        self.build = find_build(build)
        self.brokers = []
        self.zookeeper = None

    @classmethod
    def load(cls, directory, build=None):
        c = cls(directory, build)
        try:
            saved = json.loads((c.dir / "cluster.json").read_text())
        except OSError as e:
            raise ClusterError(f"no cluster in {c.dir}: {e.strerror}") from e
        c.zookeeper = saved["zookeeper"]
        c.brokers = [Broker(c, i) for i in saved["brokers"]]
        return c

    def _zk(self, verb, *args):
        r = subprocess.run(
            [str(SUPPORT / "zookeeper"), verb, "--dir", str(self.dir / "zk"), *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        return r.stdout.strip()

    def start_zookeeper(self):
        port = ["--port", self.zookeeper.rsplit(":", 1)[1]] if self.zookeeper else []
        self.zookeeper = self._zk("start", "--no-sync", *port)

    def stop_zookeeper(self):
        self._zk("stop")

    def zookeeper_pid(self):
        return int((self.dir / "zk" / "zookeeper.pid").read_text())

    def zookeeper_for(self, broker):
        """Where @broker finds ZooKeeper: a test may put something in between."""
        del broker
        return self.zookeeper

    def up(self, brokers=3, sidecars=True, config=None, sidecar_config=None):
        """@config: the settings of all brokers, or a function that returns those of one."""
        self.dir.mkdir(parents=True, exist_ok=True)
        if (self.dir / "cluster.json").exists():
            raise ClusterError(f"there is a cluster in {self.dir} already; end it with `down` first")
        self.start_zookeeper()
        self.brokers = [Broker(self, i) for i in range(1, brokers + 1)]
        (self.dir / "cluster.json").write_text(
            json.dumps({"zookeeper": self.zookeeper, "brokers": [b.id for b in self.brokers]})
        )
        for b in self.brokers:
            b.configure(config(b) if callable(config) else config or {})
        for b in self.brokers:
            b.configure_sidecar(sidecar_config or {})
            b.start(wait=False)
        for b in self.brokers:
            b.wait_running()
            if sidecars:
                b.start_sidecar()
        self.wait_brokers(brokers)

    def down(self):
        """End exactly what `up` started here. Brokers first and at once: nobody waits for a hand-over."""
        for b in self.brokers:
            for name in ("sidecar", "broker"):
                pid = b.pid(name)
                if pid:
                    os.kill(pid, signal.SIGCONT)
                    os.kill(pid, signal.SIGKILL)
        for b in self.brokers:
            for name in ("sidecar", "broker"):
                wait_for(f"{name} {b.id} is gone", lambda b=b, name=name: b.pid(name) is None, 10)
        if self.zookeeper:
            self.stop_zookeeper()
        (self.dir / "cluster.json").unlink(missing_ok=True)

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    # --- asking ---
    @property
    def bootstrap(self):
        return ",".join(b.address for b in self.brokers)

    def __getitem__(self, broker_id):
        return next(b for b in self.brokers if b.id == broker_id)

    def get_any(self):
        """A running broker."""
        for b in self.brokers:
            if b.running():
                return b
        raise ClusterError("no broker runs")

    def get(self, path):
        """From whichever broker answers; None while none does."""
        for b in self.brokers:
            if b.running():
                body = b.try_get(path)
                if body is not None:
                    return body
        return None

    def wait_brokers(self, n, timeout=60):
        def registered():
            c = self.get("/v1/cluster")
            return c if c and len(c["brokers"]) == n else None

        return wait_for(f"the controller sees {n} brokers", registered, timeout)

    def wait_in_sync(self, timeout=60):
        """Every partition has a leader and a full ISR, and every running broker says it is in sync."""

        def settled():
            c = self.get("/v1/cluster")
            up = sum(b.running() for b in self.brokers)
            return c if c and len(c["brokers"]) == up and c["under_replicated"] == 0 and c["offline"] == 0 else None

        return wait_for("all partitions are in sync", settled, timeout)

    def partitions(self, topic=None):
        body = self.get("/v1/partitions" + (f"?topic={topic}" if topic else ""))
        return body["partition_list"] if body else None

    def controller(self):
        """The active controller's Broker."""
        c = wait_for("there is a controller", lambda: self.get("/v1/cluster"))
        return self[c["controller"]]

    def client(self, *args, **kwargs):
        """Run the `stepdown` command line; returns the CompletedProcess."""
        return subprocess.run(
            [str(self.build / "broker" / "cli" / "stepdown"), *map(str, args)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=kwargs.pop("timeout", 60),
            **kwargs,
        )

    def endpoints(self):
        return ",".join(f"http://127.0.0.1:{b.admin_port}" for b in self.brokers)

    def create_topic(self, topic, partitions, rf, **config):
        args = ["topics", "create", "--topic", topic, "--partitions", partitions, "--replication-factor", rf]
        if config:
            args += ["--config", ",".join(f"{key.replace('_', '.')}={value}" for key, value in config.items())]
        r = self.client(*args, "--bootstrap", self.bootstrap)
        if r.returncode != 0:
            raise ClusterError(f"creating {topic} failed: {r.stdout}{r.stderr}")
        wait_for(
            f"all partitions of {topic} have a leader",
            lambda: (p := self.partitions(topic)) and len(p) == partitions and not any(x["offline"] for x in p),
        )
