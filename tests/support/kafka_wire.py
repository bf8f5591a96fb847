"""Kafka frames by hand: writers and readers of primitives, record batches, and the requests that tests need in every
version, so that a test can send what no client would."""

import struct

# --- CRC-32C ---

_CRC = []
for _i in range(256):
    _c = _i
    for _ in range(8):
        _c = (_c >> 1) ^ (0x82F63B78 if _c & 1 else 0)
    _CRC.append(_c)


def crc32c(data):
    c = 0xFFFFFFFF
    for b in data:
        c = _CRC[(c ^ b) & 0xFF] ^ (c >> 8)
    return c ^ 0xFFFFFFFF


# --- primitives ---


def i8(v):
    return struct.pack(">b", v)


def i16(v):
    return struct.pack(">h", v)


def i32(v):
    return struct.pack(">i", v)


def i64(v):
    return struct.pack(">q", v)


def uvarint(v):
    out = b""
    while v >= 0x80:
        out += bytes([v & 0x7F | 0x80])
        v >>= 7
    return out + bytes([v])


def varint(v):
    return uvarint((v << 1) ^ (v >> 63) if v >= 0 else ((-v) << 1) - 1)


def string(s, flexible=False):
    """A string or null, in either encoding."""
    if isinstance(s, str):
        s = s.encode()
    if flexible:
        return uvarint(0) if s is None else uvarint(len(s) + 1) + s
    return i16(-1) if s is None else i16(len(s)) + s


def data(b, flexible=False):
    """Bytes, records or null."""
    if flexible:
        return uvarint(0) if b is None else uvarint(len(b) + 1) + b
    return i32(-1) if b is None else i32(len(b)) + b


def array(items, flexible=False):
    """Encoded elements or null."""
    if items is None:
        return uvarint(0) if flexible else i32(-1)
    return (uvarint(len(items) + 1) if flexible else i32(len(items))) + b"".join(items)


TAGS = b"\0"  # no tagged fields


def tags(flexible):
    return TAGS if flexible else b""


class Reader:
    def __init__(self, data, flexible=False):
        self.data, self.at, self.flexible = data, 0, flexible

    def take(self, n):
        if n < 0 or self.at + n > len(self.data):
            raise EOFError(f"{n} bytes wanted at {self.at} of {len(self.data)}")
        self.at += n
        return self.data[self.at - n : self.at]

    def _unpack(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def i8(self):
        return self._unpack(">b")

    def i16(self):
        return self._unpack(">h")

    def i32(self):
        return self._unpack(">i")

    def i64(self):
        return self._unpack(">q")

    def uvarint(self):
        v, shift = 0, 0
        while True:
            b = self.take(1)[0]
            v |= (b & 0x7F) << shift
            shift += 7
            if b < 0x80:
                return v

    def length(self):
        return self.uvarint() - 1 if self.flexible else self.i32()

    def string(self):
        n = self.uvarint() - 1 if self.flexible else self.i16()
        return None if n < 0 else self.take(n).decode()

    def bytes(self):
        n = self.length()
        return None if n < 0 else self.take(n)

    def array(self, element):
        n = self.length()
        return None if n < 0 else [element() for _ in range(n)]

    def tags(self):
        """{tag: bytes}; empty in versions without tags."""
        if not self.flexible:
            return {}
        return {self.uvarint(): self.take(self.uvarint()) for _ in range(self.uvarint())}

    def rest(self):
        return len(self.data) - self.at


# --- record batches ---


def record(value, key=None, offset_delta=0, timestamp_delta=0, headers=b"\0"):
    def blob(b):
        return varint(-1) if b is None else varint(len(b)) + b

    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + blob(key) + blob(value) + headers
    return varint(len(body)) + body


def batch(
    values=(b"v",),
    records=None,
    n=None,
    base_offset=0,
    leader_epoch=-1,
    magic=2,
    attributes=0,
    timestamp=1000,
    max_timestamp=None,
    producer=(-1, -1, -1),
    last_offset_delta=None,
    crc=None,
):
    """One record batch of format v2; every field can be made wrong."""
    if records is None:
        records = b"".join(record(v, offset_delta=i) for i, v in enumerate(values))
    n = len(values) if n is None else n
    tail = struct.pack(
        ">hiqqqhii",
        attributes,
        n - 1 if last_offset_delta is None else last_offset_delta,
        timestamp,
        timestamp if max_timestamp is None else max_timestamp,
        *producer,
        n,
    )
    tail += records
    crc = crc32c(tail) if crc is None else crc
    return struct.pack(">qiibI", base_offset, 9 + len(tail), leader_epoch, magic, crc) + tail


def message_set(value=b"old", magic=1):
    """One message of the formats before v2."""
    import zlib

    body = struct.pack(">bb", magic, 0) + (i64(1000) if magic == 1 else b"") + data(None) + data(value)
    body = struct.pack(">I", zlib.crc32(body)) + body
    return i64(0) + data(body)


def batches(records):
    """(base offset, number of records) of each batch in what a Fetch returned."""
    at, found = 0, []
    while at + 61 <= len(records):
        base, length = struct.unpack_from(">qi", records, at)
        (n,) = struct.unpack_from(">i", records, at + 57)
        found.append((base, n))
        at += 12 + length
    return found


# --- requests ---

FLEXIBLE = {0: 9, 1: 12, 2: 6, 3: 9, 7: 3, 10: 3, 18: 3, 19: 5, 20: 4, 22: 2, 23: 4, 37: 2, 43: 2, 45: 0, 46: 0, 56: 0}


def is_flexible(key, version):
    return version >= FLEXIBLE.get(key, 99)


def frame(key, version, body, correlation=1, client=b"test", header_tags=TAGS):
    head = i16(key) + i16(version) + i32(correlation) + string(client)
    if is_flexible(key, version):
        head += header_tags
    return data(head + body)


def answer(key, version, payload):
    """(correlation id, reader of the body) of a response frame."""
    r = Reader(payload, is_flexible(key, version))
    correlation = r.i32()
    if key != 18:
        r.tags()
    return correlation, r


def produce_body(version, topics, acks=-1, timeout_ms=10000, transactional_id=None):
    """@topics: [(name, [(partition, records)])]"""
    f = is_flexible(0, version)
    return (
        (string(transactional_id, f) if version >= 3 else b"")
        + i16(acks)
        + i32(timeout_ms)
        + array([string(t, f) + array([i32(p) + data(r, f) + tags(f) for p, r in parts], f) + tags(f) for t, parts in topics], f)
        + tags(f)
    )


def produce_answer(version, r):
    """{(topic, partition): {error, base_offset, log_start, leader}} and the endpoints named."""
    out = {}

    def partition(topic):
        p, error, base = r.i32(), r.i16(), r.i64()
        r.i64()
        start = r.i64() if version >= 5 else None
        message = None
        if version >= 8:
            r.array(lambda: (r.i32(), r.string(), r.tags()))
            message = r.string()
        leader = None
        for tag, raw in r.tags().items():
            if tag == 0:
                leader = struct.unpack(">ii", raw[:8])
        out.setdefault((topic, p), []).append(
            {"error": error, "base_offset": base, "log_start": start, "message": message, "leader": leader}
        )

    def topic():
        name = r.string()
        r.array(lambda: partition(name))
        r.tags()

    r.array(topic)
    r.i32()
    endpoints = []
    for tag, raw in r.tags().items():
        if tag == 0:
            e = Reader(raw, True)
            endpoints = e.array(lambda: (e.i32(), e.string(), e.i32(), e.string(), e.tags())[:3])
    return out, endpoints


def fetch_body(
    version, topics, max_wait=0, min_bytes=1, max_bytes=1 << 20, replica=-1, isolation=0, session=(0, -1), cluster=None
):
    """@topics: [(name or id, [(partition, offset, max bytes[, leader epoch])])]"""
    f = is_flexible(1, version)

    def partition(p, offset, limit, epoch=-1):
        return (
            i32(p)
            + (i32(epoch) if version >= 9 else b"")
            + i64(offset)
            + (i32(-1) if version >= 12 else b"")
            + (i64(-1) if version >= 5 else b"")
            + i32(limit)
            + tags(f)
        )

    return (
        (i32(replica) if version < 15 else b"")
        + i32(max_wait)
        + i32(min_bytes)
        + (i32(max_bytes) if version >= 3 else b"")
        + (i8(isolation) if version >= 4 else b"")
        + (i32(session[0]) + i32(session[1]) if version >= 7 else b"")
        + array(
            [(t if version >= 13 else string(t, f)) + array([partition(*p) for p in parts], f) + tags(f) for t, parts in topics], f
        )
        + (array([], f) if version >= 7 else b"")
        + (string("", f) if version >= 11 else b"")
        + tags(f)
    )


def fetch_answer(version, r):
    """(error of all, [(topic, partition, {error, hw, lso, aborted, records, tags})])"""
    out = []
    r.i32()
    error = r.i16() if version >= 7 else 0
    if version >= 7:
        r.i32()

    def partition(topic):
        p, e, hw, lso = r.i32(), r.i16(), r.i64(), r.i64()
        if version >= 5:
            r.i64()
        aborted = r.array(lambda: (r.i64(), r.i64(), r.tags()))
        if version >= 11:
            r.i32()
        records = r.bytes()
        t = r.tags()
        out.append((topic, p, {"error": e, "hw": hw, "lso": lso, "aborted": aborted, "records": records, "tags": t}))

    def topic():
        name = r.take(16) if version >= 13 else r.string()
        r.array(lambda: partition(name))
        r.tags()

    r.array(topic)
    r.tags()
    return error, out


def list_offsets_body(version, topics, replica=-1, isolation=0):
    """@topics: [(name, [(partition, timestamp)])]"""
    f = is_flexible(2, version)
    return (
        i32(replica)
        + (i8(isolation) if version >= 2 else b"")
        + array(
            [
                string(t, f)
                + array([i32(p) + (i32(-1) if version >= 4 else b"") + i64(ts) + tags(f) for p, ts in parts], f)
                + tags(f)
                for t, parts in topics
            ],
            f,
        )
        + tags(f)
    )


def list_offsets_answer(version, r):
    """[(topic, partition, error, timestamp, offset)]"""
    out = []
    if version >= 2:
        r.i32()

    def partition(topic):
        out.append((topic, r.i32(), r.i16(), r.i64(), r.i64()))
        if version >= 4:
            r.i32()
        r.tags()

    def topic():
        name = r.string()
        r.array(lambda: partition(name))
        r.tags()

    r.array(topic)
    return out


def metadata_body(version, topics, create=False):
    """@topics: None (all), or names, or from version 10 on 16-byte ids."""
    f = is_flexible(3, version)

    def topic(t):
        by_id = isinstance(t, bytes) and len(t) == 16
        return (
            (t if by_id else bytes(16)) if version >= 10 else b""
        ) + string(None if by_id else t, f) + tags(f)

    return (
        array(None if topics is None else [topic(t) for t in topics], f)
        + (i8(create) if version >= 4 else b"")
        + (i8(0) if 8 <= version <= 10 else b"")
        + (i8(0) if version >= 8 else b"")
        + tags(f)
    )


def metadata_answer(version, r):
    """{brokers: {id: (host, port)}, controller, topics: [{error, name, id, partitions: [(error, p, leader, replicas, isr)]}]}"""
    out = {"topics": []}
    if version >= 3:
        r.i32()

    def broker():
        b = r.i32(), r.string(), r.i32()
        if version >= 1:
            r.string()
        r.tags()
        return b

    out["brokers"] = {b[0]: b[1:] for b in r.array(broker)}
    if version >= 2:
        out["cluster"] = r.string()
    out["controller"] = r.i32() if version >= 1 else None

    def partition():
        error, p, leader = r.i16(), r.i32(), r.i32()
        epoch = r.i32() if version >= 7 else None
        replicas, isr = r.array(r.i32), r.array(r.i32)
        if version >= 5:
            r.array(r.i32)
        r.tags()
        return {"error": error, "partition": p, "leader": leader, "epoch": epoch, "replicas": replicas, "isr": isr}

    def topic():
        t = {"error": r.i16(), "name": r.string(), "id": r.take(16) if version >= 10 else None}
        if version >= 1:
            r.i8()
        t["partitions"] = r.array(partition)
        if version >= 8:
            r.i32()
        r.tags()
        out["topics"].append(t)

    r.array(topic)
    if 8 <= version <= 10:
        r.i32()
    r.tags()
    return out


def create_topics_body(version, topics, timeout_ms=10000, validate_only=False):
    """@topics: [(name, partitions, factor, [(partition, [brokers])], [(config, value)])]"""
    f = is_flexible(19, version)
    return (
        array(
            [
                string(t, f)
                + i32(n)
                + i16(rf)
                + array([i32(p) + array([i32(b) for b in ids], f) + tags(f) for p, ids in manual], f)
                + array([string(k, f) + string(v, f) + tags(f) for k, v in configs], f)
                + tags(f)
                for t, n, rf, manual, configs in topics
            ],
            f,
        )
        + i32(timeout_ms)
        + i8(validate_only)
        + tags(f)
    )


def create_topics_answer(version, r):
    """[(name, error, message)]"""
    out = []
    if version >= 2:
        r.i32()

    def topic():
        name = r.string()
        if version >= 7:
            r.take(16)
        error, message = r.i16(), r.string()
        if version >= 5:
            r.i32(), r.i16()
            r.array(lambda: (r.string(), r.string(), r.i8(), r.i8(), r.i8(), r.tags()))
        r.tags()
        out.append((name, error, message))

    r.array(topic)
    return out
