"""A TCP proxy before one server, to do what a network can do: cut, refuse, fall silent. One thread each.

Before ZooKeeper it also reads along: the answer to a connect names the session's id and password, which is all that
somebody needs to end that session from outside.
"""

import selectors
import socket
import struct
import threading

PASS, REFUSE, SILENT = "pass", "refuse", "silent"


class _Pair:
    def __init__(self, client, server):
        self.client, self.server = client, server
        self.buffered = {client: b"", server: b""}  # read from that side, not written to the other
        self.greeting = b""

    def other(self, s):
        return self.server if s is self.client else self.client


class Proxy:
    """@target: a function that returns "host:port". Modes:
    PASS; REFUSE: connections are closed as soon as they come; SILENT: nothing is passed in either direction, nothing
    is closed, and what was sent meanwhile arrives when it passes again."""

    def __init__(self, target):
        self.target = target
        self.session = None  # (id, password) of ZooKeeper's last answer to a connect
        self.admit = None  # while passing: so many connections more, then none
        self.hold = False  # the server's closing is not passed on: the client goes on in the belief that it is there
        self._mode, self._lock, self._pairs, self._stop = PASS, threading.RLock(), [], False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._wake, self._woken = socket.socketpair()
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self):
        self._stop = True
        self._wake.send(b"x")
        self._thread.join()
        for s in (self._listener, self._wake, self._woken):
            s.close()

    def set(self, mode):
        with self._lock:
            self._mode = mode
        self._wake.send(b"x")

    def cut(self):
        """Close every connection, and pass no other: until set()."""
        with self._lock:
            self._mode = REFUSE
            for pair in list(self._pairs):
                self._drop(pair)
        self._wake.send(b"x")

    # --- the thread ---
    def _drop(self, pair):
        if pair in self._pairs:
            self._pairs.remove(pair)
        for s in (pair.client, pair.server):
            if s:
                s.close()

    def _accept(self):
        client = self._listener.accept()[0]
        if self._mode == REFUSE or self.admit == 0:
            client.close()
            return
        if self.admit:
            self.admit -= 1
        try:
            host, port = self.target().rsplit(":", 1)
            server = socket.create_connection((host, int(port)), 5)
        except OSError:
            client.close()
            return
        for s in (client, server):
            s.setblocking(False)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pairs.append(_Pair(client, server))

    def _learn(self, pair, data):
        """ConnectResponse: length, protocol version, timeout, session id, password."""
        if len(pair.greeting) >= 40:
            return
        pair.greeting += data
        if len(pair.greeting) >= 40:
            (session,) = struct.unpack_from(">q", pair.greeting, 12)
            if session:
                self.session = (session, pair.greeting[24:40])

    def _read(self, pair, s):
        try:
            data = s.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            pair.buffered[s] += data
            if s is pair.server:
                self._learn(pair, data)
        elif s is pair.server and self.hold:
            pair.server.close()
            pair.server = None
        else:
            self._drop(pair)

    def _write(self, pair, s):
        try:
            n = s.send(pair.buffered[pair.other(s)])
            pair.buffered[pair.other(s)] = pair.buffered[pair.other(s)][n:]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(pair)

    def _wanted(self):
        """[(socket, events, pair)] of this moment."""
        found = []
        for pair in self._pairs:
            for s in (pair.client, pair.server):
                if not s or not pair.server or self._mode == SILENT:
                    continue
                events = selectors.EVENT_READ if len(pair.buffered[s]) < 1 << 20 else 0
                if pair.buffered[pair.other(s)]:
                    events |= selectors.EVENT_WRITE
                if events:
                    found.append((s, events, pair))
        return found

    def _turn(self):
        with self._lock, selectors.DefaultSelector() as waiting:
            wanted = self._wanted()
            waiting.register(self._woken, selectors.EVENT_READ)
            waiting.register(self._listener, selectors.EVENT_READ)
            for s, events, pair in wanted:
                waiting.register(s, events, pair)
            self._lock.release()
            try:
                ready = waiting.select(1.0)
            finally:
                self._lock.acquire()
            for key, events in ready:
                self._handle(key, events)

    def _handle(self, key, events):
        if key.fileobj is self._woken:
            self._woken.recv(64)
        elif key.fileobj is self._listener:
            self._accept()
        elif key.data in self._pairs and self._mode != SILENT:
            if events & selectors.EVENT_WRITE:
                self._write(key.data, key.fileobj)
            if events & selectors.EVENT_READ and key.data in self._pairs and key.data.server:
                self._read(key.data, key.fileobj)

    def _run(self):
        while not self._stop:
            self._turn()
        with self._lock:
            for pair in list(self._pairs):
                self._drop(pair)
