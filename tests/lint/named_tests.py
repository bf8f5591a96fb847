#!/usr/bin/python3
"""Every test that docs/controller-cases.md names exists: a table of cases that is no longer tested is worse than none.

A name is a word in backquotes with three underscores or more.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = ("docs/controller-cases.md",)
NAME = re.compile(r"`([a-z0-9_]+(?:_[a-z0-9]+){3,})`")


def defined():
    """All functions of the tests."""
    names = set()
    for path in (ROOT / "tests").rglob("*"):
        if path.suffix == ".c":
            names |= set(re.findall(r"^static void ([a-z0-9_]+)\(void \*\*state\)", path.read_text(), re.M))
        elif path.suffix == ".py":
            names |= set(re.findall(r"^    def (test_[A-Za-z0-9_]+)\(self\)", path.read_text(), re.M))
    return names


def main():
    known, named, missing = defined(), 0, 0
    for document in DOCUMENTS:
        for number, line in enumerate((ROOT / document).read_text(encoding="utf-8").splitlines(), 1):
            for name in NAME.findall(line):
                named += 1
                if name not in known:
                    missing += 1
                    print(f"{document}:{number}: there is no test {name}")
    print(f"named tests: {named} named, {missing} missing")
    return 1 if missing or not named else 0


sys.exit(main())
