"""Every write that a ZooKeeper server made, in order, read from its transaction log."""

import struct
from collections import namedtuple
from pathlib import Path

CREATE, DELETE, SET_DATA, CHECK, MULTI, CREATE2, CREATE_CONTAINER, CREATE_TTL = 1, 2, 5, 13, 14, 15, 19, 21
CREATES = (CREATE, CREATE2, CREATE_CONTAINER, CREATE_TTL)

# type: one of the above. version: what SET_DATA made of the node; the one after what CHECK asked for.
Op = namedtuple("Op", "type path data version")
# session: who wrote. ops: one, or those of a multi.
Txn = namedtuple("Txn", "zxid time_ms session ops")


def _buffer(raw, at):
    (n,) = struct.unpack_from(">i", raw, at)
    return raw[at + 4:at + 4 + max(n, 0)], at + 4 + max(n, 0)


def _op(kind, raw, at):
    if kind not in (*CREATES, DELETE, SET_DATA, CHECK):
        return None  # sessions, ACLs, errors
    path, at = _buffer(raw, at)
    data, version = None, -1
    if kind in CREATES:
        data, at = _buffer(raw, at)
        version = 0
    elif kind == SET_DATA:
        data, at = _buffer(raw, at)
        (version,) = struct.unpack_from(">i", raw, at)
    elif kind == CHECK:
        (version,) = struct.unpack_from(">i", raw, at)
    return Op(kind, path.decode(), data, version)


def _ops(kind, raw, at):
    if kind != MULTI:
        op = _op(kind, raw, at)
        return [op] if op else []
    (count,) = struct.unpack_from(">i", raw, at)
    at, ops = at + 4, []
    for _ in range(count):
        (part,) = struct.unpack_from(">i", raw, at)
        body, at = _buffer(raw, at + 4)
        op = _op(part, body, 0)
        if op:
            ops.append(op)
    return ops


def _read_file(path):
    raw, at = path.read_bytes(), 16
    if raw[:4] != b"ZKLG":
        return
    while at + 12 <= len(raw):
        (n,) = struct.unpack_from(">i", raw, at + 8)
        if n <= 0 or at + 12 + n + 1 > len(raw):
            return  # allocated ahead, or being written
        body = raw[at + 12:at + 12 + n]
        session, _, zxid, time_ms, kind = struct.unpack_from(">qiqqi", body)
        yield Txn(zxid, time_ms, session, _ops(kind, body, 32))
        at += 12 + n + 1


def read(directory):
    """All transactions under a server's log directory, oldest first."""
    files = sorted(Path(directory).glob("**/log.*"), key=lambda p: int(p.name.split(".")[1], 16))
    for path in files:
        yield from _read_file(path)
