"""Plays Litestream, as its documentation describes it, for scripts/test.d/litestream. It is not Litestream.

    litestream.py replicate DATABASE REPLICA    until SIGTERM
    litestream.py restore REPLICA FILE

It makes the tables _litestream_seq and _litestream_lock, keeps a read transaction open so that nobody else restarts the
write-ahead log, checkpoints itself in the modes PASSIVE, RESTART and TRUNCATE, and copies each committed frame of the
log. If the log was restarted, it takes a new snapshot. A replica is a folder of numbered snapshots (1.db), each with
the frames that came after it (1.frames).
"""

import contextlib
import json
import os
import signal
import sqlite3
import struct
import sys
import time

HEADER, FRAME = 32, 24
INTERVAL = 0.02
# Frames in the log before a checkpoint.
MOST_FRAMES = 100
# Litestream 0.3 uses PASSIVE and RESTART, 0.5 uses PASSIVE and TRUNCATE.
MODES = ["PASSIVE", "PASSIVE", "RESTART", "PASSIVE", "TRUNCATE"]


def checksum(data, order, sums):
    """The checksum of a log (sqlite.org/fileformat2.html#walformat)."""
    one, two = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for i in range(0, len(words), 2):
        one = (one + words[i] + two) & 0xFFFFFFFF
        two = (two + words[i + 1] + one) & 0xFFFFFFFF
    return one, two


class Log:
    """A reading position in a write-ahead log."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.header = file.read(HEADER)
        self.path, self.offset, self.frames = path, HEADER, 0
        if len(self.header) == HEADER:
            magic, _, self.page = struct.unpack(">3I", self.header[:12])
            self.order = "<" if magic == 0x377F0682 else ">"
            self.sums = checksum(self.header[:24], self.order, (0, 0))
            assert self.sums == struct.unpack(">2I", self.header[24:]), "a log that SQLite would ignore"

    def is_restarted(self):
        with open(self.path, "rb") as file:
            return file.read(HEADER) != self.header

    def read(self):
        """The frames up to the last commit, as pairs of page number, database size in pages, and page."""
        done, open_frames = [], []
        if len(self.header) < HEADER:
            return done
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            offset, sums = self.offset, self.sums
            while len(frame := file.read(FRAME + self.page)) == FRAME + self.page:
                sums = checksum(frame[:8] + frame[FRAME:], self.order, sums)
                if frame[8:16] != self.header[16:24] or sums != struct.unpack(">2I", frame[16:FRAME]):
                    break
                offset += len(frame)
                number, size = struct.unpack(">2I", frame[:8])
                open_frames.append((number, size, frame[FRAME:]))
                if size:
                    done, open_frames = done + open_frames, []
                    self.frames += len(done)
                    self.offset, self.sums = offset, sums
        return done


class Litestream:
    def __init__(self, database, replica):
        self.database, self.replica = database, replica
        os.makedirs(replica, exist_ok=True)
        self.connection, self.reader = self.connect(), self.connect()
        assert self.connection.execute("PRAGMA journal_mode = wal").fetchone() == ("wal",)
        self.connection.execute(
            "CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)"
        )
        self.connection.execute("CREATE TABLE IF NOT EXISTS _litestream_lock (id INTEGER)")
        self.generation = max([0, *generations(replica)])
        self.count = {"snapshots": 0, "frames": 0, "PASSIVE": 0, "RESTART": 0, "TRUNCATE": 0}
        self.hold()
        # Both are tried once, while others write without a pause.
        self.connection.execute("PRAGMA busy_timeout = 60000")
        self.write_something()
        self.snapshot()
        self.connection.execute("PRAGMA busy_timeout = 1000")

    def connect(self):
        connection = sqlite3.connect(self.database, isolation_level=None, timeout=1)
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        return connection

    def hold(self):
        self.reader.execute("BEGIN")
        self.reader.execute("SELECT count(1) FROM _litestream_seq").fetchone()

    def write_something(self):
        self.connection.execute(
            "INSERT INTO _litestream_seq VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET seq = seq + 1"
        )

    @contextlib.contextmanager
    def write_lock(self):
        """Keeps others from writing. Nothing of it is kept."""
        self.connection.execute("BEGIN")
        try:
            self.connection.execute("INSERT INTO _litestream_lock VALUES (1)")
            yield
        finally:
            self.connection.execute("ROLLBACK")

    def snapshot(self):
        """Begins a new generation: the database file, with the frames of the log over it."""
        with self.write_lock():
            self.log = Log(self.database + "-wal")
            frames = self.log.read()
            with open(self.database, "rb") as file:
                content = bytearray(file.read())
            apply(content, frames)
        self.generation += 1
        path = f"{self.replica}/{self.generation}.db"
        with open(path + ".tmp", "wb") as file:
            file.write(content)
            os.fsync(file.fileno())
        self.out = open(f"{self.replica}/{self.generation}.frames", "wb")
        os.rename(path + ".tmp", path)
        self.count["snapshots"] += 1

    def sync(self):
        if self.log.is_restarted():
            self.snapshot()
        self.copy()

    def copy(self):
        """Copies what has come since. A frame that is cut off in the replica does not count."""
        frames = self.log.read()
        for number, size, page in frames:
            self.out.write(struct.pack(">3I", number, size, len(page)) + page)
        self.out.flush()
        self.count["frames"] += len(frames)

    def checkpoint(self):
        mode = MODES[sum(self.count[mode] for mode in set(MODES)) % len(MODES)]
        self.sync()
        other = self.connect()
        # PASSIVE goes with the write lock held, so that the log is complete; the others wait for it themselves.
        with self.write_lock() if mode == "PASSIVE" else contextlib.nullcontext():
            self.copy()
            self.reader.execute("ROLLBACK")
            other.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            self.hold()
        other.close()
        self.write_something()
        self.count[mode] += 1

    def run(self):
        is_ending = []
        signal.signal(signal.SIGTERM, lambda *_: is_ending.append(True))
        while not is_ending:
            # A lock that is not to be had in time is tried again.
            with contextlib.suppress(sqlite3.OperationalError):
                self.sync()
                if self.log.frames >= MOST_FRAMES:
                    self.checkpoint()
            with open(f"{self.replica}/count.tmp", "w") as file:
                json.dump(self.count, file)
            os.rename(f"{self.replica}/count.tmp", f"{self.replica}/count")
            time.sleep(INTERVAL)
        self.sync()
        self.reader.execute("ROLLBACK")
        self.reader.close()
        self.connection.close()


def generations(replica):
    return [int(name[:-3]) for name in os.listdir(replica) if name.endswith(".db")]


def apply(content, frames):
    for number, size, page in frames:
        end = number * len(page)
        content.extend(bytes(max(0, end - len(content))))
        content[end - len(page) : end] = page
        if size:
            del content[size * len(page) :]


def restore(replica, target):
    newest = f"{replica}/{max(generations(replica))}"
    with open(newest + ".db", "rb") as file:
        content = bytearray(file.read())
    frames = []
    with open(newest + ".frames", "rb") as file:
        while len(head := file.read(12)) == 12:
            number, size, length = struct.unpack(">3I", head)
            frames.append((number, size, file.read(length)))
    # What follows the last commit was not synced whole.
    while frames and (not frames[-1][1] or len(frames[-1][2]) < 512):
        frames.pop()
    apply(content, frames)
    with open(target, "xb") as file:
        file.write(content)


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    Litestream(*words).run() if command == "replicate" else restore(*words)
