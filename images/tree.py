"""What a layer of an image holds, in memory until it is written: the same entries give the same bytes."""

import dataclasses
import io
import os
import tarfile
from typing import Callable

from packages import Fault


@dataclasses.dataclass
class Entry:
    """`read` gives a file's bytes; `link` is where a symbolic link points to; a folder has neither."""

    mode: int
    mtime: int
    read: Callable[[], bytes] | None = None
    link: str | None = None
    owner: int = 0


class Tree:
    """Paths are relative to the root, without a slash at the beginning: `usr/bin/vigil`."""

    def __init__(self, epoch):
        self.epoch = epoch
        self.entries = {}

    def add(self, path, entry):
        """Nothing is younger than the epoch, nobody's bits of set-uid are kept, and two may name the same folder, but not the same file."""
        known = self.entries.get(path)
        if known:
            folders = not (entry.read or entry.link or known.read or known.link)
            if not folders and (entry.link is None or entry.link != known.link):
                raise Fault(f"/{path} is there twice")
            return
        parent = os.path.dirname(path)
        if parent and parent not in self.entries:
            self.folder(parent)
        entry.mtime = min(entry.mtime, self.epoch)
        entry.mode &= 0o1777 if not entry.read else 0o777
        self.entries[path] = entry

    def folder(self, path, mode=0o755, owner=0):
        self.add(path, Entry(mode, self.epoch, owner=owner))

    def text(self, path, text, mode=0o644):
        data = text.encode()
        self.add(path, Entry(mode, self.epoch, read=lambda: data))

    def symlink(self, path, target):
        self.add(path, Entry(0o777, self.epoch, link=target))

    def copy(self, path, source, mode=0o644):
        """A file of this machine; its mode and time there do not matter."""

        def read():
            with open(source, "rb") as file:
                return file.read()

        self.add(path, Entry(mode, self.epoch, read=read))

    def copy_all(self, path, source, skip=()):
        """A folder of this machine, without files whose names `skip` has."""
        for name in sorted(os.listdir(source)):
            below = os.path.join(source, name)
            if name in skip:
                continue
            if os.path.isdir(below):
                self.copy_all(f"{path}/{name}", below, skip)
            elif os.path.isfile(below):
                self.copy(f"{path}/{name}", below)

    def write(self, file):
        """As a tar archive: sorted, so that a folder comes before what is in it."""
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT, copybufsize=1 << 20) as archive:
            for path, entry in sorted(self.entries.items()):
                info = tarfile.TarInfo(path)
                info.mode, info.mtime, info.uid, info.gid = entry.mode, entry.mtime, entry.owner, entry.owner
                data = b""
                if entry.link is not None:
                    info.type, info.linkname = tarfile.SYMTYPE, entry.link
                elif entry.read is not None:
                    data = entry.read()
                    info.size = len(data)
                else:
                    info.type = tarfile.DIRTYPE
                archive.addfile(info, io.BytesIO(data))
