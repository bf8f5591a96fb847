"""A disk that fails under a broker: its replicas go, their leadership moves, the rest goes on."""

import unittest

import cluster as c
from harness import ClusterCase, Load


class FailedDisk(ClusterCase):
    brokers = 3
    sidecars = False

    def setUp(self):
        self.fault = self.dir / "io-fault"
        self.fault.unlink(missing_ok=True)
        self.victim = self.cluster[2]
        shim = self.cluster.build / "tests" / "support" / "libio_fault.so"
        if not shim.exists():
            self.skipTest("this build is sanitized: nothing can be preloaded")
        self.victim.env = {"LD_PRELOAD": str(shim), "IO_FAULT": str(self.fault)}
        if self.victim.running():
            self.victim.stop()
        self.start_stopped()

    def place(self, topic, rows):
        super().place(topic, rows)
        self.cluster.wait_in_sync()

    def without_victim(self, topic):
        parts = self.cluster.partitions(topic)
        if not parts:
            return None
        return all(p["leader"] in (1, 3) and 2 not in p["isr"] for p in parts) and parts

    # KIP-112: what nobody is told of stays leader for ever, for the broker itself lives.
    def test_leadership_leaves_a_disk_that_fails_and_nothing_is_lost(self):
        self.place("bad", [[2, 1, 3], [1, 2, 3], [2, 3, 1], [3, 2, 1]])
        self.place("good", [[2, 1, 3]])
        with Load(self.cluster, "bad", partitions=4, rate=1000) as load:
            self.fault.write_text("/bad-")
            parts = c.wait_for("no partition has its leader or an in-sync replica there", lambda: self.without_victim("bad"))
            self.assertTrue(all(sorted(p["isr"]) == [1, 3] for p in parts), parts)
            load.wait_acked(500)
            totals = load.finish()
        self.assertEqual((totals["lost"], totals["out_of_order"], totals["failed"]), (0, 0, 0), totals)
        self.assertEqual([p["leader"] for p in self.cluster.partitions("good")], [2], "what is on a sound disk stays")
        offline = c.wait_for(
            "the broker counts its offline replicas", lambda: (s := self.victim.try_get("/v1/broker")) and s["offline"]
        )
        self.assertEqual(offline, 4)
        self.assertIn("log-dir-reported", self.victim.log)

        self.fault.unlink()
        self.victim.stop()
        self.victim.start()
        self.cluster.wait_in_sync()
        self.assertTrue(all(sorted(p["isr"]) == [1, 2, 3] for p in self.cluster.partitions("bad")))

    def test_a_report_outlives_the_controller(self):
        self.place("later", [[2, 1, 3], [3, 2, 1]])
        controller = self.cluster.controller()
        if controller is self.victim:
            controller.stop()
            controller.start()
            self.cluster.wait_in_sync()
            controller = self.cluster.controller()
        with Load(self.cluster, "later", partitions=2, rate=500) as load:
            self.fault.write_text("/later-")
            controller.kill()
            c.wait_for("the next controller has moved them", lambda: self.moved("later", controller.id))
            controller.start()
            load.wait_acked(200)
            totals = load.finish()
        self.assertEqual((totals["lost"], totals["out_of_order"], totals["failed"]), (0, 0, 0), totals)

    def moved(self, topic, dead):
        parts = self.cluster.partitions(topic)
        return parts and all(p["leader"] not in (2, dead, -1) for p in parts)


if __name__ == "__main__":
    unittest.main()
