"""The main job on real input: a rolling restart of three brokers under load, by systemd where it can be booted.

Clients produce (acks=all, idempotence on) and consume numbered messages throughout; each broker in turn is restarted
by `systemctl restart`, which waits in ExecStop= until the broker leads nothing. At the end every acknowledged message
must have been read, in order.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import cluster as c
from host_cluster import HOSTS, HostsCluster, run

TOPIC = "orders"


# --- what is shown ---


class Display:
    """A block that is redrawn on a terminal; plain lines, a few a second at most, elsewhere."""

    def __init__(self):
        self.tty = sys.stdout.isatty()
        self.drawn = 0
        self.last_plain = 0.0
        self.lock = threading.Lock()

    def line(self, text):
        with self.lock:
            self._erase()
            print(text, flush=True)

    def block(self, lines, plain):
        with self.lock:
            if self.tty:
                self._erase()
                width = shutil.get_terminal_size().columns
                for text in lines:
                    print(text[: width - 1])
                self.drawn = len(lines)
                sys.stdout.flush()
            elif time.monotonic() - self.last_plain >= 2:
                self.last_plain = time.monotonic()
                print(plain, flush=True)

    def _erase(self):
        if self.drawn:
            sys.stdout.write(f"\x1b[{self.drawn}A\x1b[J")
            self.drawn = 0


# --- a cluster where no systemd can be booted ---


class ProcessCluster:
    """Plain processes on loopback, for machines where no systemd can be booted."""

    kind = "plain processes on loopback"

    def __init__(self, directory, build, brokers):
        self.dir = directory
        self.build = build
        self.ids = list(range(1, brokers + 1))
        self.cluster = c.Cluster(directory / "cluster", build)
        self.busy = {}

    @property
    def bootstrap(self):
        return self.cluster.bootstrap

    def up(self):
        self.cluster.up(len(self.ids), config={"zookeeper.session.timeout.ms": 6000})

    def get(self, path, prefer=None):
        return self.cluster[prefer].try_get(path) if prefer else self.cluster.get(path)

    def state(self, i):
        return self.busy.get(i, "active (running)" if self.cluster[i].running() else "inactive (dead)"), ""

    def restart(self, i):
        b = self.cluster[i]
        self.busy[i] = "deactivating (stop)"
        self.cluster.client(
            *("drain", "--wait", "--deadline", "120s", "--socket", b.dir / "sidecar.sock", "--config", b.dir / "sidecar.yaml"),
            *("--result-file", b.dir / "last-stop.json"),
            timeout=180,
        )
        b.stop()
        del self.busy[i]
        b.start()

    def kill(self, i):
        self.cluster[i].kill()
        self.cluster[i].start()

    def result(self, i):
        path = self.cluster[i].dir / "last-stop.json"
        return json.loads(path.read_text()) if path.exists() else None

    def down(self):
        self.cluster.down()

    def how_to(self):
        return [
            f"the client:   {self.build}/broker/cli/stepdown topics list --bootstrap {self.bootstrap}",
            f"kcat:         kcat -b {self.bootstrap} -L",
            f"addresses:    {c.SUPPORT}/cluster status --dir {self.cluster.dir}",
            f"end it:       {c.ROOT}/demo --down {self.dir}",
        ]


# --- the load ---


class Load:
    def __init__(self, build, bootstrap, directory, partitions, rate):
        self.stats_file = directory / "load.json"
        self.log = open(directory / "load.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [
                *(str(build / "tests" / "support" / "loadgen"), "--bootstrap", bootstrap, "--topic", TOPIC),
                *("--partitions", str(partitions), "--rate", str(rate), "--stats-file", str(self.stats_file)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )

    def stats(self):
        try:
            return json.loads(self.stats_file.read_text())
        except (OSError, ValueError):
            return {}

    def wait_flowing(self):
        def flowing():
            if self.process.poll() is not None:
                raise c.ClusterError("the load generator ended:\n" + self.output()[-2000:])
            return self.stats().get("acked", 0) > 1000 and self.stats().get("consumed", 0) > 0

        c.wait_for("messages flow", flowing, 30)

    def output(self):
        self.log.flush()
        return Path(self.log.name).read_text(encoding="utf-8", errors="replace")

    def finish(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=120)
        for text in reversed(self.output().splitlines()):
            if text.startswith("loadgen: "):
                return dict(pair.split("=", 1) for pair in text[len("loadgen: ") :].split())
        raise c.ClusterError("the load generator printed no result:\n" + self.output()[-2000:])

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


# --- the job ---


class Demo:
    def __init__(self, options):
        self.o = options
        self.display = Display()
        self.rows = []
        self.started = time.monotonic()

    def prepare(self):
        build = c.find_build(self.o.build)
        self.dir = Path(tempfile.mkdtemp(prefix="stepdown-demo-"))
        os.chmod(self.dir, 0o755)
        why = "asked for" if self.o.plain else run(HOSTS, "check", check=False).stdout.strip()
        kind = ProcessCluster if why else HostsCluster
        if why:
            self.display.line(f"demo: no test hosts here ({why}): running plain processes")
        self.cluster = kind(self.dir, build, 3)
        self.build = build

    def note(self, text):
        self.display.line(f"[{time.monotonic() - self.started:6.1f} s] {text}")

    def view(self, phase):
        """One look at everything, shown as a block or a line."""
        v = self.cluster.get("/v1/cluster") or {"brokers": [], "controller": "?", "under_replicated": "?"}
        s = self.load.stats()
        by_id = {b["id"]: b for b in v["brokers"]}
        lines = [f"  {phase}", f"  acknowledged {s.get('acked', 0):>9,}   read {s.get('consumed', 0):>9,}   failed {s.get('failed', 0)}"]
        plain = []
        for i in self.cluster.ids:
            b = by_id.get(i)
            state, text = self.cluster.state(i)
            leads = f"leads {b['leaders']:>3}" if b else "leads   -"
            mark = "*" if v["controller"] == i else " "
            lines.append(f"  broker {i}{mark} {state:<26} {leads}   {text}")
            plain.append(f"{i}:{state.split()[0]},{b['leaders'] if b else '-'}")
        self.display.block(
            lines, f"[{time.monotonic() - self.started:6.1f} s] {phase}: acked={s.get('acked', 0)} " + " ".join(plain)
        )
        return v

    def watch(self, phase, work):
        """Run @work in the background and show what happens until it is done."""
        failure = []

        def body():
            try:
                work()
            except BaseException as e:  # handed to the main thread
                failure.append(e)

        t = threading.Thread(target=body, daemon=True)
        t.start()
        while t.is_alive():
            self.view(phase)
            t.join(0.25)
        if failure:
            raise failure[0]

    def wait_in_sync(self, i, phase):
        def settled():
            v = self.view(phase)
            own = self.cluster.get("/v1/broker", prefer=i)
            return (
                len(v["brokers"]) == len(self.cluster.ids)
                and v["under_replicated"] == 0
                and v["offline"] == 0
                and own is not None
                and own["in_sync"]
            )

        c.wait_for(f"broker {i} is back in sync", settled, 60, 0.1)

    def roll(self, i):
        before = self.cluster.get("/v1/cluster")
        leaders = next((b["leaders"] for b in before["brokers"] if b["id"] == i), 0) if before else 0
        start = time.monotonic()
        if self.o.unclean:
            self.note(f"broker {i}: SIGKILL, while it leads {leaders} partitions")
            self.watch(f"broker {i}: killed", lambda: self.cluster.kill(i))
            drained = None
        else:
            self.note(f"broker {i}: restart, while it leads {leaders} partitions")
            self.watch(f"broker {i}: restarting", lambda: self.cluster.restart(i))
            drained = self.cluster.result(i) or {"verdict": "no record", "remaining": -1}
        restarted = time.monotonic()
        if self.o.unclean:
            self.wait_gone_and_back(i)
        self.wait_in_sync(i, f"broker {i}: catching up")
        row = {
            "broker": i,
            "leaders": leaders,
            "restart_s": restarted - start,
            "sync_s": time.monotonic() - restarted,
            "verdict": drained["verdict"] if drained else "killed",
            "remaining": drained["remaining"] if drained else 0,
        }
        self.rows.append(row)
        self.note(
            f"broker {i}: {row['verdict']}, {row['remaining']} leaders left behind, restarted in {row['restart_s']:.1f} s, "
            f"in sync {row['sync_s']:.1f} s later"
        )

    def wait_gone_and_back(self, i):
        """After a SIGKILL: the old registration stands until its session expires, so look for a newer one."""
        old = self.epochs.get(i)

        def back():
            self.view(f"broker {i}: waiting for its return")
            v = self.cluster.get("/v1/cluster")
            return v and any(b["id"] == i and b["epoch"] != old for b in v["brokers"])

        c.wait_for(f"broker {i} has registered again", back, 60, 0.1)

    def run(self):
        self.prepare()
        self.note(f"starting ZooKeeper and {self.cluster.kind}")
        self.cluster.up()
        self.note("creating topic " + TOPIC + ": 12 partitions, 3 replicas, min.insync.replicas 2")
        run(
            *(self.build / "broker" / "cli" / "stepdown", "topics", "create", "--topic", TOPIC, "--partitions", 12),
            *("--replication-factor", 3, "--config", "min.insync.replicas=2", "--bootstrap", self.cluster.bootstrap),
        )
        self.load = Load(self.build, self.cluster.bootstrap, self.dir, 12, self.o.rate)
        self.load.wait_flowing()
        for i in self.cluster.ids:
            self.epochs = {b["id"]: b["epoch"] for b in self.cluster.get("/v1/cluster")["brokers"]}
            self.roll(i)
        self.note("all brokers restarted; reading to the end")
        totals = self.load.finish()
        return self.conclude(totals)

    def conclude(self, t):
        drains = sum(r["verdict"] == "drained" for r in self.rows)
        remaining = sum(max(r["remaining"], 0) for r in self.rows)
        print()
        print("broker  led before  restart   back in sync  verdict      left behind")
        for r in self.rows:
            print(
                f"{r['broker']:>6}  {r['leaders']:>10}  {r['restart_s']:>5.1f} s  {r['sync_s']:>10.1f} s  "
                f"{r['verdict']:<11}  {r['remaining']:>11}"
            )
        print()
        print(
            f"demo: acked={t['acked']} lost={t['lost']} out_of_order={t['out_of_order']} duplicated={t['duplicated']} "
            f"drains={drains} remaining={remaining} max_gap_ms={t['max_gap_ms']}"
        )
        bad = t["lost"] != "0" or t["out_of_order"] != "0" or int(t["acked"]) == 0 or t.get("failed", "0") != "0"
        if not self.o.unclean:
            bad = bad or drains != len(self.rows) or remaining != 0
        return 1 if bad else 0

    def clean_up(self, keep):
        if not hasattr(self, "cluster"):
            return
        if hasattr(self, "load"):
            self.load.kill()
        if keep:
            save = {"kind": type(self.cluster).__name__, "build": str(self.build)}
            (self.dir / "demo.json").write_text(json.dumps(save))
            print("\nThe cluster stays up:")
            for text in self.cluster.how_to():
                print("  " + text)
            return
        self.cluster.down()
        shutil.rmtree(self.dir, ignore_errors=True)


def take_down(directory):
    directory = Path(directory).resolve()
    try:
        saved = json.loads((directory / "demo.json").read_text())
    except OSError:
        print(f"demo: no kept cluster in {directory}", file=sys.stderr)
        return 1
    if saved["kind"] == "HostsCluster":
        HostsCluster(directory, Path(saved["build"]), 3).down()
    else:
        c.Cluster.load(directory / "cluster", saved["build"]).down()
    shutil.rmtree(directory, ignore_errors=True)
    return 0


def main():
    p = argparse.ArgumentParser(prog="./demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--unclean", action="store_true", help="SIGKILL each broker instead, for contrast")
    p.add_argument("--keep", action="store_true", help="leave the cluster up and say how to talk to it and how to end it")
    p.add_argument("--down", metavar="DIR", help="end a cluster that --keep left")
    p.add_argument("--plain", action="store_true", help="plain processes, even where systemd could be booted")
    p.add_argument("--rate", type=int, default=3000, help="messages a second (default %(default)s)")
    p.add_argument("--build", help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.down:
        return take_down(o.down)
    for number in (signal.SIGTERM, signal.SIGHUP):  # a closed terminal must not leave hosts behind
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    demo = Demo(o)
    finished = False
    try:
        status = demo.run()
        finished = True
        return status
    except (c.ClusterError, subprocess.SubprocessError) as e:
        demo.display.line(f"demo: failed: {e}")
        return 1
    finally:
        demo.clean_up(o.keep and finished)


sys.exit(main())
