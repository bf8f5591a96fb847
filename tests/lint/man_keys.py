#!/usr/bin/env python3
"""The key reference of a manual page is what the program itself says.

    man_keys.py PAGE PROGRAM OPTION           compare; exit 1 and say what differs
    man_keys.py --write PAGE PROGRAM OPTION   write what stands between the two marks of the page anew

PROGRAM OPTION prints a block a key: "key (type, default)" and, indented, its help.
"""
import difflib
import re
import subprocess
import sys
from pathlib import Path

BEGIN, END = '.\\" keys: begin', '.\\" keys: end'
KEY = re.compile(r"^([a-z][a-z0-9.]*) \((.*)\)$")


def roff(text):
    """Plain text as roff: no line of it may be a request, no hyphen or backslash be changed."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    return "\\&" + text if text.startswith((".", "'")) else text


def reference(output):
    lines, found = [], 0
    for line in output.splitlines():
        key = KEY.match(line)
        if key:
            found += 1
            lines += [".TP", f'.BR {roff(key[1])} " ({roff(key[2])})"']
        elif found and line.startswith("    "):
            lines.append(roff(line.strip()))
    if not found:
        sys.exit("man_keys: the program printed no key")
    return lines


def main(argv):
    write = argv[:1] == ["--write"]
    page, program, option = argv[write:]
    text = Path(page).read_text(encoding="utf-8").split("\n")
    begin, end = text.index(BEGIN) + 1, text.index(END)
    want = reference(subprocess.run([program, option], check=True, capture_output=True, text=True).stdout)
    if write:
        Path(page).write_text("\n".join(text[:begin] + want + text[end:]), encoding="utf-8")
        return 0
    if text[begin:end] == want:
        return 0
    print("\n".join(difflib.unified_diff(text[begin:end], want, page, f"{program} {option}", lineterm="")))
    print(f"write it anew: tests/lint/man_keys.py --write {page} {program} {option}")
    return 1


sys.exit(main(sys.argv[1:]))
