"""A disk that forgets what was not flushed, played from the system calls of a traced run.

What it assumes, which is less than ext4, XFS or Btrfs promise:

- fsync and fdatasync of a file keep what was written to it before they began, and its length; nothing else.
- fsync of a folder keeps the names in it that were changed before it began; nothing else.
- Of the rest, any may survive: each sector of 512 bytes, the length of each file, and each change of a name (a rename
  is one change), in any order, unless it needs an earlier one. A sector is never torn.
- A flush that fails loses all that it was to keep, and no later flush brings it back: Linux marks such pages as clean.
- A call that a kill cuts short has done as much as the file then shows. A flush that is cut short keeps nothing.

The index of the write-ahead log (-shm) is not part of it. SQLite makes it again.
"""

import os
import re

SECTOR = 512
# Calls that this file cannot play are traced so that they are noticed.
UNKNOWN = "creat,pwritev,pwritev2,truncate,fallocate,renameat,link,sendfile,splice,sync_file_range"
CALLS = (
    "open,openat,pwrite64,write,writev,sendto,sendmsg,copy_file_range,ftruncate,fsync,fdatasync,rename,renameat2,"
    "unlink,unlinkat,linkat," + UNKNOWN
)


def put(content, at, data):
    """Writes data, or with None cuts or lengthens the content to `at`."""
    content.extend(bytes(max(0, at - len(content))))
    if data is None:
        del content[at:]
    else:
        content[at : at + len(data)] = data


class File:
    def __init__(self, content=b""):
        self.now, self.flushed = bytearray(content), bytearray(content)
        self.pending, self.changes = [], 0

    def change(self, at, data):
        put(self.now, at, data)
        self.pending.append((self.changes, at, data))
        self.changes += 1

    def flush(self, changes, is_done):
        """Ends a flush that began after so many changes."""
        while self.pending and self.pending[0][0] < changes:
            _, at, data = self.pending.pop(0)
            if is_done:
                put(self.flushed, at, data)

    def after_cut(self, random):
        content, last, odds = bytearray(self.flushed), {}, random.choice([0, 0.05, 0.5, 0.95, 1])
        survivors = lambda: len(self.pending) if random.random() < odds else random.randint(0, len(self.pending))
        for i, (_, at, data) in enumerate(self.pending if odds else []):
            is_kept = lambda part: last.setdefault(part, survivors()) > i if odds < 1 else True
            if data is None:
                if is_kept("length"):
                    put(content, at, None)
                continue
            for sector in range(at - at % SECTOR, at + len(data), SECTOR):
                if is_kept(sector):
                    begin = max(sector, at)
                    put(content, begin, data[begin - at : sector + SECTOR - at])
        return content


class Disk:
    def __init__(self, folder):
        """Begins with the files that a folder and the folders in it have now, as flushed."""
        self.folder, self.deleted, self.killed = folder, {}, {}
        self.pending = {path: [] for path, _, _ in os.walk(folder)}
        self.names = {path: File(content) for path, content in contents(folder)}
        self.kept = dict(self.names)

    def kill(self):
        """Notes the files as a kill has left them."""
        self.killed = dict(contents(self.folder))

    def rename(self, *changes):
        """Changes names, as (path, old file, new file), all or none."""
        for path, old, new in changes:
            assert self.names.get(path) is old, path
            set_name(self.names, path, new)
            if not new:
                self.deleted[path] = old
        self.pending[os.path.dirname(changes[0][0])].append(changes)

    def begin(self, call):
        """Notes what a flush will keep."""
        if call.name in ("fsync", "fdatasync") and (target := self.find(call)) is not None:
            call.covers = len(target) if isinstance(target, list) else target.changes

    def end(self, call):
        """Plays a call. Returns whether it was a flush of this disk."""
        if call.result is None:
            call.result = self.done_before_kill(call)
            if not call.result:
                return False
        if call.name in ("fsync", "fdatasync"):
            target = self.find(call)
            if isinstance(target, list):
                if call.result == 0:
                    for changes in target[: call.covers]:
                        for path, _, new in changes:
                            set_name(self.kept, path, new)
                del target[: call.covers]
            elif target:
                target.flush(call.covers, call.result == 0)
            return target is not None
        if call.result < 0:
            return False
        if call.name in ("open", "openat"):
            path = call.strings[0].decode()
            if "O_CREAT" in call.text and self.is_here(path) and path not in self.names:
                self.rename((path, None, File()))
            elif "O_TRUNC" in call.text and path in self.names:
                self.names[path].change(0, None)
        elif call.name in ("unlink", "unlinkat", "linkat", "rename", "renameat2"):
            self.play_names(call, [path.decode() for path in call.strings])
        elif isinstance(file := self.find(call), File):
            assert call.name not in UNKNOWN.split(","), call.text
            if call.name == "pwrite64":
                file.change(call.last_number(), call.strings[0][: call.result])
            elif call.name == "ftruncate":
                file.change(call.last_number(), None)
            elif call.name == "copy_file_range":
                # Files are only copied whole.
                target = self.find(call, 1)
                target.change(len(target.now), file.now[len(target.now) :][: call.result])
            else:
                # Files that are written in another way are written from the beginning to the end.
                file.change(len(file.now), call.strings[0][: call.result])
        return False

    def done_before_kill(self, call):
        """How many bytes a call has written that a kill cut short."""
        if call.name != "pwrite64" or not isinstance(self.find(call), File):
            return 0
        left = self.killed.get(call.files[0][0], b"")[call.last_number() :]
        return len(os.path.commonprefix([left, call.strings[0]]))

    def play_names(self, call, paths):
        if not self.is_here(paths[0]):
            return
        files = [self.names.get(path) for path in paths]
        if call.name.startswith("unlink"):
            self.rename((paths[0], files[0], None))
        elif call.name == "linkat":
            self.rename((paths[1], files[1], files[0]))
        else:
            self.rename((paths[0], files[0], None), (paths[1], files[1], files[0]))

    def is_here(self, path):
        return os.path.dirname(path) in self.pending and not path.endswith("-shm")

    def find(self, call, number=0):
        """The file, or the list of changed names of the folder, of the call's descriptor; None if it is elsewhere."""
        if len(call.files) <= number:
            return None
        path, is_deleted = call.files[number]
        return self.pending.get(path) if path in self.pending else (self.deleted if is_deleted else self.names).get(path)

    def after_cut(self, random):
        """The files that a power cut at this moment may leave: a content for each path."""
        names = dict(self.kept)
        for changes in self.pending.values():
            odds = random.choice([0, 0.5, 1])
            for change in changes:
                if random.random() < odds and all(names.get(path) is old for path, old, _ in change):
                    for path, _, new in change:
                        set_name(names, path, new)
        return {path: file.after_cut(random) for path, file in names.items()}

    def check(self):
        """Compares what was played with the files as they are."""
        found = set(files_in(self.folder))
        assert found == set(self.names), found ^ set(self.names)
        for path, content in contents(self.folder):
            assert content == self.names[path].now, f"{path} was not played as it was written"


def set_name(names, path, file):
    if file:
        names[path] = file
    else:
        names.pop(path, None)


def files_in(folder):
    paths = [os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names]
    return [path for path in paths if not path.endswith("-shm")]


def contents(folder):
    for path in files_in(folder):
        with open(path, "rb") as file:
            yield path, file.read()


class Call:
    """A system call: its name, its arguments as strace shows them, and in them all strings and descriptors."""

    def __init__(self, name, text):
        self.name, self.text, self.covers = name, text, 0
        self.strings = [unhex(string) for string in re.findall(r'"([^"]*)"', text)]
        paths = re.findall(r"\d+<([^>]*)>(\(deleted\))?", text)
        self.files = [(unhex(path).decode(errors="replace"), bool(is_deleted)) for path, is_deleted in paths]

    def last_number(self):
        return int(self.text.rsplit(",", 1)[1])


def unhex(text):
    return bytes.fromhex(text.replace("\\x", "")) if text.startswith("\\x") else text.encode()


def events(trace):
    """The calls of a trace, each twice: when it began and when it had ended, as `("begin" or "end", call)`.

    `call.result` is None if a kill cut the call short: strace shows a `?`, `<detached ...>` or an error without a name.
    """
    open_calls = {}
    with open(trace) as lines:
        for line in lines:
            process, _, rest = line.partition(" ")
            rest = rest.strip()
            if rest.startswith("<... "):
                call, done = open_calls.pop(process, None), rest.partition(" resumed>")[2]
                if call is None:
                    continue
                call.text += done.rpartition(") ")[0]
            elif match := re.match(r"(\w+)\((.*?)(?: <\w+ \.\.\.>)?(?:\) += .*)?$", rest):
                call, done = Call(*match.groups()), rest
                yield "begin", call
                if rest.endswith("<unfinished ...>"):
                    open_calls[process] = call
                    continue
            else:
                continue
            # Of a call that was cut short, strace may show an error that no system has: "-1 (errno 18446744073709551598)".
            result = None if ") = -1 (errno " in re.sub(" +", " ", done) else re.search(r"\) += (-?\d+)", done)
            call.result = int(result.group(1)) if result else None
            yield "end", call


def strace(trace, *options):
    """The words that record the calls of a command that follows them."""
    words = ["strace", "-f", "--seccomp-bpf", "-y", "-xx", "-s", "2000000", "-o", trace, "-e", f"trace={CALLS}", "-e", "signal=none"]
    return [*words, *options]
