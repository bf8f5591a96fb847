#!/usr/bin/env python3
"""Rules of this code base that a compiler does not check.

    lint.py [--root DIR] [--no-format]   print each finding as file:line: message [check place]; exit 1 if there is one
    lint.py --self-test                  prove on made-up trees that every check fires, and that none fires on good code

Each rule is one function in CHECKS: it takes a Source and yields (line, message[, detail]). To accept one finding,
copy what stands in its brackets into exemptions.txt.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

FILE_WALL = 900
FUNCTION_WALL = 100
CODE_DIRS = ("broker", "sidecar", "tests")
TEXT_SUFFIXES = (".c", ".h", ".py", ".sh", ".build", ".service", ".yaml", ".yml")
INCLUDE_ROOTS = ("broker", "sidecar", "")  # as in meson.build; "" serves tests/support
CLANG_FORMAT_MAJOR = 14  # other versions lay out some constructs differently

# What a module may include besides itself: dependencies point down only, and peers never include each other.
BELOW_LOG = {"base", "wire", "net"}
BELOW_REPLICA = BELOW_LOG | {"log", "client", "zk"}
BELOW_CONTROLLER = BELOW_REPLICA | {"replica"}
BELOW_API = BELOW_CONTROLLER | {"controller", "group"}
OUTSIDE_BROKER = {"base", "wire", "net", "client", "zk"}
MAY_INCLUDE = {
    "base": set(),
    "wire": {"base"},
    "net": {"base"},
    "client": BELOW_LOG,
    "zk": BELOW_LOG,
    "log": BELOW_LOG,
    "replica": BELOW_REPLICA,
    "controller": BELOW_CONTROLLER,
    "group": BELOW_CONTROLLER,
    "api": BELOW_API,
    "admin": BELOW_API,
    "main": BELOW_API | {"api", "admin"},  # the composition root: files directly in broker/
    "sidecar": OUTSIDE_BROKER,
    "cli": OUTSIDE_BROKER | {"sidecar"},
}

BANNED = ("strcpy", "strcat", "sprintf", "vsprintf", "atoi", "atol", "strtok", "gets")

# A *_core.c decides from (state, event, now) alone: that is what lets a seeded simulator drive it.
IMPURE_INCLUDES = {
    "base/clock.h", "base/fs.h", "base/loop.h", "fcntl.h", "pthread.h", "sys/epoll.h", "sys/random.h", "sys/socket.h",
    "sys/stat.h", "sys/time.h", "sys/uio.h", "threads.h", "time.h",
}
IMPURE_CALLS = re.compile(
    r"\b(clock_\w+|time|gettimeofday|sleep|usleep|nanosleep|socket|connect|accept4?|send|sendto|sendmsg|recv|recvfrom|"
    r"recvmsg|open|openat|creat|fopen|read|write|pread|pwrite|unlink|rename|fsync|fs_\w+|loop_\w+|pthread_\w+|thrd_\w+|"
    r"rand|random|srand|srandom|getrandom|arc4random|uuid_random|getenv)\s*\(")


def blank_out(text):
    """Comments, strings and characters replaced by blanks; lines and columns stay where they are."""
    pattern = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


class Source:
    """One file: its raw lines, its lines without comments and strings, and the module it belongs to."""

    def __init__(self, root, path):
        self.root, self.path = root, path
        with open(os.path.join(root, path), encoding="utf-8", errors="replace", newline="") as f:
            text = f.read()
        self.lines = text.split("\n")
        self.is_c = path.endswith((".c", ".h"))
        self.code = blank_out(text).split("\n") if self.is_c else []
        self.module = module_of(path)

    def code_lines(self):
        return enumerate(self.code, 1)

    def includes(self):
        """(line, name, is_quoted) of each #include; read from raw lines, as the names are strings."""
        for number, line in enumerate(self.lines if self.is_c else [], 1):
            m = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if m:
                yield number, m.group(2), m.group(1) == '"'


def module_of(path):
    parts = path.split("/")
    if parts[0] != "broker":
        return parts[0]
    return parts[1] if len(parts) > 2 else "main"


def resolve(source, name):
    """The included file's path from the root, or None."""
    for include_root in INCLUDE_ROOTS:
        candidate = os.path.normpath(os.path.join(include_root, name))
        if os.path.isfile(os.path.join(source.root, candidate)):
            return candidate
    return None


# --- the checks ---


def check_file_length(source):
    n = len(source.lines) - (source.lines[-1] == "")
    if source.is_c and n > FILE_WALL:
        yield FILE_WALL + 1, f"file has {n} lines, the wall is {FILE_WALL}"


def check_function_length(source):
    """The formatter puts a function's braces, and only those, into column 0."""
    start = None
    for number, line in source.code_lines():
        if line.rstrip() == "{":
            start = number
        elif line.rstrip() == "}" and start:
            n = number - start + 1
            if n > FUNCTION_WALL:
                name = function_name(source, start)
                yield start, f"function {name} has {n} lines, the wall is {FUNCTION_WALL}", name
            start = None


def function_name(source, brace):
    """The word before the first '(' of the declaration that ends above line @brace."""
    head = ""
    for line in reversed(source.code[max(0, brace - 12):brace - 1]):
        if not line.strip() or line.rstrip().endswith((";", "}")):
            break
        head = line + " " + head
    m = re.search(r"(\w+)\s*\(", head)
    return m.group(1) if m else "?"


def check_layering(source):
    allowed = MAY_INCLUDE.get(source.module)
    if allowed is None:  # tests may look into everything
        return
    for number, name, is_quoted in source.includes():
        target = resolve(source, name) if is_quoted else None
        if not target:
            continue
        module = module_of(target)
        if module != source.module and module not in allowed:
            yield number, f"{source.module} may not include {name}: {module} is not below it"


def check_includes(source):
    for number, name, is_quoted in source.includes():
        if name.endswith(".c"):
            yield number, f"{name} is a source file; include its header and link it"
        elif is_quoted and not resolve(source, name):
            own = os.path.join(source.root, os.path.dirname(source.path), name)
            if os.path.isfile(own) and source.module == "tests":
                continue  # helpers beside a test
            if os.path.isfile(own):
                yield number, f'write "{os.path.basename(os.path.dirname(source.path))}/{name}": from the root'
            else:
                yield number, f'"{name}" is not in this tree'


def check_banned_calls(source):
    pattern = re.compile(r"\b(" + "|".join(BANNED) + r")\s*\(")
    for number, line in source.code_lines():
        for m in pattern.finditer(line):
            yield number, f"{m.group(1)}() is banned"


def check_blanks(source):
    for number, line in enumerate(source.lines, 1):
        if "\t" in line:
            yield number, "tab"
        if line != line.rstrip():
            yield number, "blanks (or a carriage return) at the end of the line"


def check_purity(source):
    if not source.path.endswith("_core.c"):
        return
    for number, name, _ in source.includes():
        if name in IMPURE_INCLUDES:
            yield number, f"a pure core may not include {name}"
    for number, line in source.code_lines():
        for m in IMPURE_CALLS.finditer(line):
            yield number, f"a pure core may not call {m.group(1)}()"


def check_pragma_once(source):
    if not source.path.endswith(".h"):
        return
    first = next(((n, line) for n, line in source.code_lines() if line.strip()), (1, ""))
    if first[1].strip() != "#pragma once":
        yield first[0], "a header begins with #pragma once (comments may precede it)"


UNSET_CLEANUP = re.compile(r"\bcleanup_with\(\w+\)[^=;(]*\b\w+;")


def check_cleanup(source):
    """An early return before the first assignment would hand the destructor whatever is on the stack."""
    if source.path.startswith("tests/"):
        return
    for number, line in source.code_lines():
        if UNSET_CLEANUP.search(line):
            yield number, "a variable with a cleanup must be initialised where it is declared"


CHECKS = {
    "file-length": check_file_length,
    "function-length": check_function_length,
    "layering": check_layering,
    "include": check_includes,
    "banned-call": check_banned_calls,
    "blanks": check_blanks,
    "purity": check_purity,
    "pragma-once": check_pragma_once,
    "cleanup": check_cleanup,
}


# --- running them ---


class Finding:
    def __init__(self, check, path, line, message, detail=None):
        self.path, self.line, self.message = path, line, message
        self.place = f"{check} {path}" + (f":{detail}" if detail else "")

    def __str__(self):
        return f"{self.path}:{self.line}: {self.message} [{self.place}]"


def find_files(root):
    found = []
    for top in CODE_DIRS:
        for directory, subdirs, names in os.walk(os.path.join(root, top)):
            subdirs[:] = sorted(d for d in subdirs if not d.startswith((".", "__")) and d != "corpus")
            for name in sorted(names):
                if name.endswith(TEXT_SUFFIXES):
                    found.append(os.path.relpath(os.path.join(directory, name), root))
    return found


def check_tree(root):
    findings = []
    for path in find_files(root):
        source = Source(root, path)
        for check, function in CHECKS.items():
            findings += [Finding(check, path, *found) for found in function(source)]
    return findings


def apply_exemptions(findings, path, skipped=()):
    """Drop exempted findings; report each exemption that exempts nothing, unless its check was not run."""
    exempted = {}
    try:
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                if line.strip() and not line.startswith("#"):
                    exempted[line.strip()] = number
    except FileNotFoundError:
        pass
    left = [f for f in findings if f.place not in exempted]
    used = {f.place for f in findings}
    name = os.path.basename(path)
    left += [Finding("exemption", name, number, f"'{place}' matches nothing any more; remove the line")
             for place, number in exempted.items() if place not in used and place.split()[0] not in skipped]
    return left


def find_clang_format():
    for name in (f"clang-format-{CLANG_FORMAT_MAJOR}", "clang-format"):
        tool = shutil.which(name)
        if not tool:
            continue
        version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout
        if f"version {CLANG_FORMAT_MAJOR}." in version:
            return tool
    return None


def check_format(tool, root):
    files = [path for path in find_files(root) if path.endswith((".c", ".h"))]
    run = subprocess.run([tool, "--dry-run", "-Werror", *files], cwd=root, capture_output=True, text=True, check=False)
    places = dict.fromkeys(re.findall(r"^(\S+?):(\d+):\d+: error:", run.stderr, re.M))
    found = [Finding("format", path, int(line), "clang-format would lay this out differently")
             for path, line in places]
    if run.returncode != 0 and not found:
        found.append(Finding("format", ".clang-format", 1, run.stderr.strip() or "clang-format failed"))
    return found


# --- self-test ---

GOOD_TREE = {
    "broker/base/good.h": "/* Contract. */\n#pragma once\nint good(void);\n",
    "broker/base/good.c": '#include "base/good.h"\n\n/* not strcpy(a, b) */\nint good(void)\n{\n'
                          '        return puts("sprintf(x)");\n}\n',
    "broker/log/up.c": '#include <time.h>\n#include "base/good.h"\n',
    "broker/replica/leader_core.c": '#include "log/log.h"\nint x(int time)\n{\n        return time;\n}\n',
    "broker/log/log.h": "#pragma once\n",
    "broker/server.h": "#pragma once\n",
    "broker/server.c": '#include "server.h"\n#include "log/log.h"\n',
    "broker/cli/main.c": '#include "drain.h"\n',
    "sidecar/drain.h": '#pragma once\n#include "base/good.h"\n',
    "tests/unit/helper.h": "#pragma once\n",
    "tests/unit/test_good.c": '#include "helper.h"\n#include "log/log.h"\n',
}

# (what is added to the good tree, what must be found, as "path:line check")
BAD_TREES = [
    ({"broker/base/long.c": "int a;\n" * (FILE_WALL + 1)}, ["broker/base/long.c:901 file-length"]),
    ({"broker/base/wide.c": "int\nf(int a,\n  int b)\n{\n" + "        a++;\n" * 99 + "}\n"},
     ["broker/base/wide.c:4 function-length"]),
    ({"broker/base/up.c": '#include "log/log.h"\n'}, ["broker/base/up.c:1 layering"]),
    ({"broker/wire/w.h": "#pragma once\n", "broker/net/n.c": '#include "wire/w.h"\n'}, ["broker/net/n.c:1 layering"]),
    ({"broker/group/g.h": "#pragma once\n", "broker/controller/c.c": '#include "group/g.h"\n'},
     ["broker/controller/c.c:1 layering"]),
    ({"sidecar/s.c": '#include "log/log.h"\n'}, ["sidecar/s.c:1 layering"]),
    ({"broker/cli/c.c": '#include "log/log.h"\n'}, ["broker/cli/c.c:1 layering"]),
    ({"broker/log/l.c": '#include "drain.h"\n'}, ["broker/log/l.c:1 layering"]),
    ({"broker/log/l.c": '#include "server.h"\n'}, ["broker/log/l.c:1 layering"]),
    ({"broker/base/i.c": '#include "good.h"\n'}, ["broker/base/i.c:1 include"]),
    ({"broker/base/i.c": '#include "base/missing.h"\n'}, ["broker/base/i.c:1 include"]),
    ({"tests/unit/t.c": '#include "base/good.c"\n'}, ["tests/unit/t.c:1 include"]),
    ({"broker/base/p.h": "#ifndef P\n#pragma once\n#endif\n"}, ["broker/base/p.h:1 pragma-once"]),
    ({"broker/base/t.c": "int a; \nint\tb;\nint c;\r\n"},
     ["broker/base/t.c:1 blanks", "broker/base/t.c:2 blanks", "broker/base/t.c:3 blanks"]),
    ({"broker/base/u.c": "        cleanup_with(freep) char *p;\n        cleanup_with(freep) char *q = NULL;\n"},
     ["broker/base/u.c:1 cleanup"]),
    ({"broker/meson.build": "\tfiles()\n"}, ["broker/meson.build:1 blanks"]),
    ({"broker/log/a_core.c": '#include <time.h>\n#include "base/good.h"\n'}, ["broker/log/a_core.c:1 purity"]),
] + [
    ({"broker/base/b.c": f"void f(void)\n{{\n        {name}(x);\n}}\n"}, ["broker/base/b.c:3 banned-call"])
    for name in BANNED
] + [
    ({"broker/log/a_core.c": f"void f(void)\n{{\n        {name}(x);\n}}\n"}, ["broker/log/a_core.c:3 purity"])
    for name in ("clock_mono_ms", "clock_gettime", "time", "socket", "open", "pthread_mutex_lock", "random", "getrandom")
]


def findings_of(files, exemptions=""):
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**GOOD_TREE, **files}.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8", newline="") as f:
                f.write(text)
        listed = os.path.join(root, "exemptions.txt")
        with open(listed, "w", encoding="utf-8") as f:
            f.write(exemptions)
        return [f"{f.path}:{f.line} {f.place.split()[0]}" for f in apply_exemptions(check_tree(root), listed)]


def format_self_test():
    tool = find_clang_format()
    if not tool:
        return True
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "broker"))
        for name, text in ((".clang-format", "BasedOnStyle: LLVM\n"), ("broker/a.c", "int a;\nint  b;\n")):
            with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                f.write(text)
        return [f"{f.path}:{f.line}" for f in check_format(tool, root)] == ["broker/a.c:2"]


def self_test():
    failures = 0
    fired = set()
    cases = [({}, "", [])] + [(files, "", wanted) for files, wanted in BAD_TREES] + [
        ({"broker/base/b.c": "x = atoi(y);\n"}, "banned-call broker/base/b.c\n", []),
        ({"broker/base/wide.c": BAD_TREES[1][0]["broker/base/wide.c"]}, "function-length broker/base/wide.c:f\n", []),
        ({}, "# nothing left\nblanks broker/x.c\n", ["exemptions.txt:2 exemption"]),
    ]
    for files, exemptions, wanted in cases:
        got = findings_of(files, exemptions)
        fired.update(f.split()[1] for f in got)
        if got != wanted:
            failures += 1
            print(f"self-test: {files or exemptions or 'good tree'}\n  wanted {wanted}\n  got    {got}")
    for check in set(CHECKS) - fired:
        failures += 1
        print(f"self-test: no case makes {check} fire")
    if not format_self_test():
        failures += 1
        print("self-test: the layout check does not fire")
    print(f"lint self-test: {len(cases)} cases, {len(CHECKS)} checks, {failures} failures")
    return failures == 0


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(here)))
    parser.add_argument("--no-format", action="store_true", help="leave clang-format out")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return 0 if self_test() else 1
    findings = check_tree(args.root)
    tool = None if args.no_format else find_clang_format()
    if tool:
        findings += check_format(tool, args.root)
    elif not args.no_format:
        print(f"lint: clang-format {CLANG_FORMAT_MAJOR} is not installed; layout not checked", file=sys.stderr)
    findings = apply_exemptions(findings, os.path.join(here, "exemptions.txt"), () if tool else ("format",))
    for finding in findings:
        print(finding)
    print(f"lint: {len(find_files(args.root))} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
