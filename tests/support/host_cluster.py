"""A Stepdown cluster on test hosts: three real systemd instances with an address of their own each (see `hosts`)."""

import ctypes
import http.client
import json
import os
import subprocess
import urllib.parse

import cluster as c

HOSTS = str(c.SUPPORT / "hosts")
CLONE_NEWNET = 0x40000000


def run(*args, check=True, **kwargs):
    r = subprocess.run([str(a) for a in args], stdin=subprocess.DEVNULL, capture_output=True, text=True, **kwargs)
    if check and r.returncode != 0:
        raise c.ClusterError(f"{' '.join(map(str, args))} failed ({r.returncode}):\n{r.stdout[-2000:]}{r.stderr[-2000:]}")
    return r


def http_get(host, port, path, redirects=3):
    for _ in range(redirects + 1):
        conn = http.client.HTTPConnection(host, port, timeout=2)
        try:
            conn.request("GET", path)
            r = conn.getresponse()
            text = r.read()
            location = r.getheader("Location")
        except (OSError, http.client.HTTPException):
            return None
        finally:
            conn.close()
        if r.status == 200:
            return json.loads(text)
        if r.status != 307:
            return None
        where = urllib.parse.urlsplit(location)
        host, port = where.hostname, where.port
    return None


class HostsCluster:
    """Three hosts with a systemd and an address of their own each."""

    kind = "three hosts, each a real systemd booted by systemd-nspawn"

    def __init__(self, directory, build, brokers):
        self.dir = directory
        self.build = build
        self.ids = list(range(1, brokers + 1))
        self.zookeeper = None

    def hosts(self, verb, *args, **kwargs):
        return run(HOSTS, verb, "--dir", self.dir / "hosts", *args, **kwargs)

    def address(self, i):
        return f"10.77.0.{10 + i}"

    @property
    def bootstrap(self):
        return ",".join(f"{self.address(i)}:9092" for i in self.ids)

    def root(self, i):
        return self.dir / "hosts" / f"h{i}" / "root"

    def up(self):
        image = self.dir / "image"
        run("meson", "install", "-C", self.build, "--no-rebuild", "--quiet", env={**os.environ, "DESTDIR": str(image)})
        self.hosts("up", "--count", len(self.ids), "--layer", image)
        self._enter_switch()
        r = run(c.SUPPORT / "zookeeper", "start", "--dir", self.dir / "zk", "--host", "10.77.0.1", "--port", 2181)
        self.zookeeper = r.stdout.strip()
        for i in self.ids:
            self._configure(i)
            self.exec(i, "systemd-sysusers")
            self.exec(i, "systemd-tmpfiles", "--create", check=False)
            self.exec(i, "systemctl", "daemon-reload")
        for i in self.ids:
            self.exec(i, "systemctl", "start", "--no-block", "stepdown-broker", "stepdown-sidecar")
        c.wait_for("all brokers are registered", self._all_up, 60, 0.1)

    def _enter_switch(self):
        """From here on this process and its children live in the namespace where the clients run."""
        r = self.hosts("net", "readlink", "/proc/self/ns/net")
        for name in os.listdir("/run/netns"):
            fd = os.open(f"/run/netns/{name}", os.O_RDONLY)
            try:
                if f"net:[{os.fstat(fd).st_ino}]" == r.stdout.strip():
                    if ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWNET) != 0:
                        raise c.ClusterError(f"setns: {os.strerror(ctypes.get_errno())}")
                    return
            finally:
                os.close(fd)
        raise c.ClusterError("the switch's network namespace was not found")

    def _configure(self, i):
        etc = self.root(i) / "etc" / "stepdown"
        etc.mkdir(parents=True, exist_ok=True)
        me = self.address(i)
        (etc / "broker.yaml").write_text(
            f"broker.id: {i}\n"
            f"listeners: PLAINTEXT://{me}:9092\n"
            f"admin.listener: {me}:9644\n"
            f"zookeeper.connect: {self.zookeeper}\n"
            "zookeeper.session.timeout.ms: 6000\n"
            "log.dirs: /var/lib/stepdown-broker/data\n"
        )
        endpoints = ",".join(f"http://{self.address(j)}:9644" for j in [i, *[j for j in self.ids if j != i]])
        (etc / "sidecar.yaml").write_text(f"broker.id: {i}\nadmin.endpoints: {endpoints}\n")

    def _all_up(self):
        v = self.get("/v1/cluster")
        return v and len(v["brokers"]) == len(self.ids)

    def exec(self, i, *args, check=True):
        return self.hosts("exec", f"h{i}", *args, check=check)

    def get(self, path, prefer=None):
        for i in [prefer] if prefer else self.ids:
            body = http_get(self.address(i), 9644, path)
            if body is not None:
                return body
        return None

    def state(self, i):
        r = self.exec(i, "systemctl", "show", "-p", "ActiveState,SubState,StatusText", "stepdown-broker", check=False)
        v = dict(line.split("=", 1) for line in r.stdout.splitlines() if "=" in line)
        return f"{v.get('ActiveState', '?')} ({v.get('SubState', '?')})", v.get("StatusText", "")

    def restart(self, i):
        self.exec(i, "systemctl", "restart", "stepdown-broker")

    def kill(self, i):
        self.exec(i, "systemctl", "kill", "--signal=KILL", "--kill-who=main", "stepdown-broker")

    def result(self, i):
        path = self.root(i) / "var/lib/stepdown-broker/last-stop.json"
        return json.loads(path.read_text()) if path.exists() else None

    def down(self):
        self.hosts("down", check=False)
        run(c.SUPPORT / "zookeeper", "stop", "--dir", self.dir / "zk", check=False)

    def how_to(self):
        h = f"{HOSTS} exec --dir {self.dir}/hosts"
        return [
            f"the client:   {HOSTS} net --dir {self.dir}/hosts {self.build}/broker/cli/stepdown topics list --bootstrap {self.bootstrap}",
            f"kcat:         {HOSTS} net --dir {self.dir}/hosts kcat -b {self.bootstrap} -L",
            f"a host:       {h} h1 systemctl status stepdown-broker",
            f"its journal:  {h} h1 journalctl -u stepdown-broker -u stepdown-sidecar",
            f"end it:       {c.ROOT}/demo --down {self.dir}",
        ]
