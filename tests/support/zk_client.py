"""A small ZooKeeper client for tests: what a test sets up and looks at, without a library."""

import socket
import struct
import time

OPEN = ((31, "world", "anyone"),)
READ_ONLY = ((1, "world", "anyone"),)

NO_NODE, NO_AUTH, NODE_EXISTS = -101, -102, -110


class ZooKeeperError(Exception):
    def __init__(self, code, path):
        super().__init__(f"error {code} at {path}")
        self.code = code


def _buffer(data):
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def _acl(acl):
    return struct.pack(">i", len(acl)) + b"".join(
        struct.pack(">i", perms) + _buffer(scheme.encode()) + _buffer(who.encode()) for perms, scheme, who in acl)


class ZooKeeperClient:
    """One session; every call blocks. Paths are absolute."""

    def __init__(self, address, timeout=10.0):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout)
        self.xid = 0
        self._send(struct.pack(">iqiq", 0, 0, int(timeout * 1000), 0) + _buffer(bytes(16)))
        self._receive()

    def _send(self, payload):
        self.socket.sendall(struct.pack(">i", len(payload)) + payload)

    def _exactly(self, n):
        data = b""
        while len(data) < n:
            piece = self.socket.recv(n - len(data))
            if not piece:
                raise ConnectionError("ZooKeeper closed the connection")
            data += piece
        return data

    def _receive(self):
        return self._exactly(struct.unpack(">i", self._exactly(4))[0])

    def _call(self, op, path, payload=b""):
        self.xid += 1
        self._send(struct.pack(">ii", self.xid, op) + _buffer(path.encode()) + payload)
        reply = self._receive()
        _, _, error = struct.unpack_from(">iqi", reply)
        if error:
            raise ZooKeeperError(error, path)
        return reply[16:]

    def create(self, path, data=b"", acl=OPEN, ephemeral=False):
        self._call(1, path, _buffer(data) + _acl(acl) + struct.pack(">i", 1 if ephemeral else 0))

    def make(self, path, data=b""):
        """Create @path and what is missing above it."""
        parts = path.strip("/").split("/")
        for i in range(1, len(parts) + 1):
            try:
                self.create("/" + "/".join(parts[:i]), data if i == len(parts) else b"")
            except ZooKeeperError as e:
                if e.code != NODE_EXISTS or i == len(parts):
                    raise

    def delete(self, path):
        self._call(2, path, struct.pack(">i", -1))

    def get(self, path):
        """The data, None when there is no such node."""
        try:
            reply = self._call(4, path, b"\0")
        except ZooKeeperError as e:
            if e.code == NO_NODE:
                return None
            raise
        (n,) = struct.unpack_from(">i", reply)
        return reply[4:4 + max(n, 0)]

    def changed_ms(self, path):
        """(data, wall clock of the last change in milliseconds) of a node that is there."""
        reply = self._call(4, path, b"\0")
        (n,) = struct.unpack_from(">i", reply)
        n = max(n, 0)
        return reply[4:4 + n], struct.unpack_from(">qqqq", reply, 4 + n)[3]

    def set(self, path, data):
        self._call(5, path, _buffer(data) + struct.pack(">i", -1))

    def set_acl(self, path, acl):
        self._call(7, path, _acl(acl) + struct.pack(">i", -1))

    def children(self, path):
        reply = self._call(8, path, b"\0")
        (count,) = struct.unpack_from(">i", reply)
        at, found = 4, []
        for _ in range(count):
            (n,) = struct.unpack_from(">i", reply, at)
            found.append(reply[at + 4:at + 4 + n].decode())
            at += 4 + n
        return sorted(found)

    def session_of(self, path):
        """The session that owns the ephemeral @path; 0 when there is none."""
        try:
            reply = self._call(3, path, b"\0")
        except ZooKeeperError as e:
            if e.code == NO_NODE:
                return 0
            raise
        return struct.unpack_from(">qqqqiiiq", reply)[7]

    def close(self):
        self.xid += 1
        try:
            self._send(struct.pack(">ii", self.xid, -11))
            self._receive()
        except OSError:
            pass
        self.socket.close()


def close_session(address, session, password, deadline=10.0):
    """End somebody else's session from outside: take it over by its id and password, and close it. Repeated until
    the server says that it is gone, for its holder may take it back in between."""
    host, port = address.rsplit(":", 1)
    until = time.monotonic() + deadline
    while time.monotonic() < until:
        with socket.create_connection((host, int(port)), deadline) as s:
            body = struct.pack(">iqiq", 0, 0, 10000, session) + _buffer(password)
            close = struct.pack(">ii", 1, -11)
            try:
                # Both at once: nobody comes in between.
                s.sendall(struct.pack(">i", len(body)) + body + struct.pack(">i", len(close)) + close)
                answer = b""
                while len(answer) < 20:
                    piece = s.recv(64)
                    if not piece:
                        break
                    answer += piece
            except OSError:
                continue
        if len(answer) >= 20 and struct.unpack_from(">q", answer, 12)[0] == 0:
            return
    raise ZooKeeperError(0, f"session {session:#x} cannot be closed")
