"""Brokers killed with SIGKILL at any moment under load: nothing acknowledged is lost."""

import os
import random
import time
import unittest

from harness import ClusterCase, Load

KILLS = int(os.environ.get("STEPDOWN_KILLS", "50"))


class Kills(ClusterCase):
    config = {
        **ClusterCase.config,
        "zookeeper.session.timeout.ms": 2000,
        "log.segment.bytes": 262144,  # many rolls, so that kills meet them
        "replica.high.watermark.checkpoint.interval.ms": 500,
    }

    def test_fifty_kills_under_load_lose_nothing(self):
        seed = int(os.environ.get("STEPDOWN_SEED", "0")) or random.randrange(1 << 30)
        rng = random.Random(seed)
        print(f"seed {seed}", flush=True)
        self.cluster.create_topic("kills", 6, 3, min_insync_replicas=2)
        self.cluster.wait_in_sync()
        with Load(self.cluster, "kills", 6, rate=3000) as load:
            for n in range(KILLS):
                victim = rng.choice(self.cluster.brokers)
                time.sleep(rng.uniform(0, 0.3))  # the moment is what is random here, not a wait for a result
                victim.kill()
                if rng.random() < 0.5:
                    load.wait_acked(300, timeout=60)  # the others go on
                victim.start()
                self.cluster.wait_in_sync(timeout=90)
            load.wait_acked(1000)
            totals = load.finish()
        self.assertEqual((totals["lost"], totals["out_of_order"]), (0, 0), (seed, totals))
        self.assertGreater(totals["acked"], KILLS * 100)


if __name__ == "__main__":
    unittest.main()
