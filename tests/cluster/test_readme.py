"""Every command that the README shows works."""

import os
import re
import subprocess
import unittest

import cluster as c


class Readme(unittest.TestCase):
    def test_every_command_of_the_readme_runs(self):
        text = (c.ROOT / "README.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
        self.assertGreater(len(blocks), 4)
        commands = "".join(blocks)
        # What runs this test is ./check itself.
        commands = re.sub(r"^\./check$", "test -x ./check", commands, flags=re.M)
        # The README's build is build/; the programs under test may be elsewhere.
        commands = commands.replace("build/broker/cli/", str(c.find_build() / "broker/cli") + "/")
        if os.environ.get("STEPDOWN_SKIP_DEMO"):
            commands = re.sub(r"^\./demo.*$", "true", commands, flags=re.M)
        self.addCleanup(subprocess.run, ["tests/support/cluster", "down", "--dir", "/tmp/stepdown-try"], cwd=c.ROOT, capture_output=True)
        r = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=c.ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        self.assertEqual(r.returncode, 0, r.stdout[-3000:] + r.stderr[-3000:])
        self.assertIn("lost=0", r.stdout) if not os.environ.get("STEPDOWN_SKIP_DEMO") else None
        self.assertRegex(r.stdout, r"(?m)^1000$")

    def test_the_readme_names_only_files_that_exist(self):
        text = (c.ROOT / "README.md").read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            self.assertTrue((c.ROOT / link).exists(), link)


if __name__ == "__main__":
    unittest.main()
