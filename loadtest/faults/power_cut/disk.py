"""What a power cut leaves of a folder: reads the journal of recorder.cpp and makes one of the disks that may be found afterwards.

What was synced is there. Of all else, a seed decides: nothing of it, all of it, what was done until some moment, or any of it; data are
lost by sectors of 512 bytes. Two models say when a name (a file's, made, renamed or removed) is synced:

  posix   when its folder was: nothing else is promised.
  ext4    when anything was that changed a file's size or name: its journal keeps the order of all names and sizes. A file that is
          renamed over another has its data, too (auto_da_alloc).
"""

import os
import struct

SECTOR = 512
RECORD = struct.Struct("<IIIIQqQ")
(MAKE, MAKE_FOLDER, WRITE, RESIZE, SYNC, SYNC_ALL, REMOVE, REMOVE_FOLDER, RENAME, LINK, MODE, REFUSED, CUT) = range(1, 14)
MODELS = ("posix", "ext4")


class JournalError(Exception):
    """The journal does not say what happened: what is made of it would mean nothing."""


class File:
    def __init__(self, data=b"", mode=0o644):
        self.mode = mode
        self.now = bytearray(data)
        self.synced = bytes(data)
        self.since = []      # (offset, bytes) or (size, None) after the last sync
        self.syncs = 0
        self.resized = False  # or named anew, since its journal was last written (ext4)

    def write(self, offset, data):
        if offset + len(data) > len(self.now):
            self.resized = True
        change(self.now, offset, data)
        self.since.append((offset, data))

    def resize(self, size):
        self.resized = True
        change(self.now, size, None)
        self.since.append((size, None))

    def sync(self):
        self.synced = bytes(self.now)
        self.since = []
        self.syncs += 1


class Folder:
    def __init__(self, mode=0o755):
        self.mode = mode
        self.now = {}        # name: File or Folder
        self.first = {}      # what it had at first

    def at(self, path):
        node = self
        for name in filter(None, path.split("/")):
            node = node.now[name]
        return node


class Naming:
    """One change of names that a power cut keeps as a whole or not at all."""

    def __init__(self, changes, replaces=None):
        self.changes = changes    # (folder, name, node or None)
        self.replaces = replaces  # the file whose data go with it, and these (ext4)
        self.synced = False


def change(data, offset, new):
    if new is None:
        del data[offset:]
        data.extend(bytes(offset - len(data)))
        return
    data.extend(bytes(max(0, offset - len(data))))
    data[offset:offset + len(new)] = new


class Disk:
    """A folder as it was when the recorder began (all of it synced), and what happened to it."""

    def __init__(self, folder, model):
        if model not in MODELS:
            raise ValueError(model)
        self.model = model
        self.nodes = {}
        self.namings = []
        self.root = self._load(folder)
        self.cut = False
        self.records = 0

    def _load(self, path):
        status = os.stat(path)
        if os.path.isdir(path):
            node = Folder(status.st_mode & 0o7777)
            for name in os.listdir(path):
                inner = os.path.join(path, name)
                if os.path.isdir(inner) or os.path.isfile(inner):
                    node.now[name] = node.first[name] = self._load(inner)
        else:
            with open(path, "rb") as file:
                node = File(file.read(), status.st_mode & 0o7777)
        self.nodes[status.st_ino] = node
        return node

    def replay(self, journal):
        """Everything that happened. Throws JournalError if the recorder could not see some of it."""
        with open(journal, "rb") as file:
            data = file.read()
        at = 0
        while at + RECORD.size <= len(data):
            kind, first, second, _, number, value, size = RECORD.unpack_from(data, at)
            at += RECORD.size
            if at + first + second + size > len(data):
                break  # the process was killed while it wrote this
            path, other = data[at:at + first].decode(), data[at + first:at + first + second].decode()
            body = data[at + first + second:at + first + second + size]
            at += first + second + size
            self.records += 1
            self._apply(kind, path, other, number, value, body)

    def _apply(self, kind, path, other, number, value, body):
        if kind in (MAKE, MAKE_FOLDER):
            node = File(mode=value) if kind == MAKE else Folder(value)
            self.nodes[number] = node
            self._name([(path, node)])
        elif kind == WRITE:
            self.nodes[number].write(value, body)
        elif kind == RESIZE:
            self.nodes[number].resize(value)
        elif kind == SYNC:
            self._sync(self.nodes[number], data_only=bool(value))
        elif kind == SYNC_ALL:
            for node in self.nodes.values():
                self._sync(node, data_only=False)
        elif kind in (REMOVE, REMOVE_FOLDER):
            self._name([(path, None)])
        elif kind == RENAME:
            node = self.root.at(path)
            self._name([(path, None), (other, node)])
        elif kind == LINK:
            self._name([(other, self.root.at(path))])
        elif kind == MODE:
            self.nodes[number].mode = value
        elif kind == REFUSED:
            raise JournalError(f"the program did what the recorder cannot follow: {path}")
        elif kind == CUT:
            self.cut = True
        else:
            raise JournalError(f"a record of kind {kind}")

    def _name(self, changes):
        resolved = []
        replaced = None
        for path, node in changes:
            folder, name = self.root.at(os.path.dirname(path)), os.path.basename(path)
            resolved.append((folder, name, node))
            if node is None:
                folder.now.pop(name, None)
                continue
            if isinstance(node, File):
                node.resized = True
                if isinstance(folder.now.get(name), File):
                    replaced = (node, bytes(node.now), node.syncs)
            folder.now[name] = node
        self.namings.append(Naming(resolved, replaced))

    def _sync(self, node, data_only):
        if isinstance(node, File):
            node.sync()
            if self.model == "posix" or not node.resized:
                return
        elif self.model == "posix":
            for naming in self.namings:
                naming.synced = naming.synced or any(folder is node for folder, _, _ in naming.changes)
            return
        for naming in self.namings:
            if not naming.synced and naming.replaces:
                self._flush(naming)
            naming.synced = True
        for other in self.nodes.values():
            other.resized = False

    @staticmethod
    def _flush(naming):
        node, data, syncs = naming.replaces
        # What was synced later is newer than that.
        if node.syncs == syncs:
            node.synced = data
            node.since = [(0, bytes(node.now)), (len(node.now), None)] if node.now != data else []

    def unsynced(self):
        """The paths that a cut may take: names without their folder's sync, data without their file's."""
        names = {id(node): path for path, node in walk(self.root)}
        lost = [f"{name} (its name)" for naming in self.namings if not naming.synced for _, name, _ in naming.changes]
        lost += [f"{names[id(node)]} (its data)" for node in self.nodes.values()
                 if isinstance(node, File) and node.since and id(node) in names]
        return sorted(set(lost))

    def check(self, folder):
        """Throws JournalError unless the folder is what the journal makes of it."""
        def compare(node, path):
            if isinstance(node, File):
                with open(path, "rb") as file:
                    if file.read() != bytes(node.now):
                        raise JournalError(f"{path}: has other data than the recorder saw written")
                return
            names = set(os.listdir(path))
            if names != set(node.now):
                raise JournalError(f"{path}: has other names than the recorder saw: {sorted(names ^ set(node.now))}")
            for name, inner in node.now.items():
                compare(inner, os.path.join(path, name))
        compare(self.root, folder)

    def leave(self, folder, random):
        """Writes one disk that may be found after the cut into a folder that does not exist yet."""
        for node in self.nodes.values():
            if isinstance(node, Folder):
                node.after = dict(node.first)
        kept = pick(self.namings, random, ordered=self.model == "ext4")
        for naming in self.namings:
            if not naming.synced and naming not in kept:
                continue
            if self.model == "ext4" and naming.replaces and not naming.synced:
                self._flush(naming)
            for place, name, node in naming.changes:
                if node is None:
                    place.after.pop(name, None)
                else:
                    place.after[name] = node
        data = {}
        self._write(self.root, folder, random, data, set())

    def _write(self, node, path, random, data, above):
        if isinstance(node, File):
            if id(node) not in data:
                data[id(node)] = left_of(node, random)
            with open(path, "wb") as file:
                file.write(data[id(node)])
            os.chmod(path, node.mode)
            return
        os.mkdir(path)
        for name, inner in sorted(node.after.items()):
            if id(inner) not in above:
                self._write(inner, os.path.join(path, name), random, data, above | {id(node)})
        os.chmod(path, node.mode | 0o700)


def walk(node, path=""):
    yield path, node
    if isinstance(node, Folder):
        for name, inner in node.now.items():
            yield from walk(inner, os.path.join(path, name))


def pick(namings, random, ordered):
    """Those of the changes that were not synced which are kept all the same."""
    unsynced = [each for each in namings if not each.synced]
    style = random.choices(("none", "all", "until", "any"), (9, 3, 4, 4))[0]
    if style == "none":
        return set()
    if style == "all":
        return set(unsynced)
    if style == "until" or ordered:
        return set(unsynced[:random.randrange(len(unsynced) + 1)])
    return {each for each in unsynced if random.random() < 0.5}


def left_of(file, random):
    """The data of a file after the cut."""
    style = random.choices(("none", "all", "until", "any"), (7, 3, 6, 4))[0]
    if style == "none" or not file.since:
        return file.synced
    if style == "all":
        return bytes(file.now)
    left = bytearray(file.synced)
    last = random.randrange(len(file.since)) if style == "until" else len(file.since)
    for number, (offset, new) in enumerate(file.since[:last + 1]):
        if new is None:
            if style == "until" or random.random() < 0.5:
                change(left, offset, None)
        elif style == "until" and number < last:
            change(left, offset, new)
        else:
            torn = random.randrange(len(new) // SECTOR + 2)
            for index, (begin, end) in enumerate(sectors(offset, len(new))):
                if index < torn if style == "until" else random.random() < 0.5:
                    change(left, begin, new[begin - offset:end - offset])
    return bytes(left)


def sectors(offset, size):
    begin = offset
    while begin < offset + size:
        end = min(offset + size, (begin // SECTOR + 1) * SECTOR)
        yield begin, end
        begin = end
