"""The root folder of an image out of packages: those that hold what a program and its libraries are linked with, and few others.

apt resolves, fetches and verifies with this machine's sources, but with a state of its own, in which nothing is installed. Packages are unpacked and not
installed: none of their scripts runs, so that nothing is random, nobody has to be root, and no shell has to be in the image for them. What the scripts of
the packages in question would do beyond that is done here: links of alternatives, the bundle of certificates, the time zone.
"""

import hashlib
import os
import re
import subprocess
import tarfile

import packages
from packages import Fault
from tree import Entry

# Besides libraries: /etc/os-release and the texts of licences, whom to trust, and the time in other places.
EXTRAS = ["base-files", "ca-certificates", "tzdata"]

# What nothing reads that is in the image. Licences stay.
LEFT_OUT = re.compile(r"usr/share/(man|info|locale|lintian|bug|doc-base|bash-completion|zsh|gtk-doc|pixmaps|applications|metainfo|base-files|gcc)(/|$)"
                      r"|usr/share/zoneinfo/right(/|$)"
                      r"|usr/share/doc/[^/]+/(?!copyright$)|(usr/lib/[^/]+/(pkgconfig|cmake)|etc/(init\.d|default|profile\.d|update-motd\.d|skel|opt))(/|$)"
                      r"|(boot|home|mnt|srv|media|opt|root|usr/(games|include|local|src)|var/(backups|local|mail|opt|spool))(/|$)|usr/sbin/(update|tz)")


def apt(folder, sources=None):
    """Options of apt for a state of its own in `folder`; everything else, such as sources, keys and proxies, is this machine's."""
    for name in ("lists/partial", "archives/partial"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    if not os.path.exists(f"{folder}/status"):
        with open(f"{folder}/status", "w", encoding="utf-8"):
            pass
    options = {"Dir::State": folder, "Dir::State::status": f"{folder}/status", "Dir::State::lists": f"{folder}/lists",
               "Dir::Cache": folder, "Dir::Cache::archives": f"{folder}/archives", "Dir::Log": folder, "APT::Sandbox::User": "",
               "Acquire::Retries": "3", "Acquire::Languages": "none", "APT::Install-Recommends": "false"}
    if sources:
        options |= {"Dir::Etc::SourceList": os.path.abspath(sources), "Dir::Etc::SourceParts": "/dev/null"}
    return ["apt-get", "-q", "-y", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]


def fetch(names, folder, sources=None, offline=False):
    """{package: its .deb} of the packages and all that they depend on; what is in the folder already is not fetched again."""
    command = apt(folder, sources)
    if offline and not any(name.endswith("Packages") or "Packages." in name for name in os.listdir(f"{folder}/lists")):
        raise Fault(f"{folder} has no lists of packages, and --offline fetches none")
    if not offline:
        # It counts a source that cannot be reached as a warning, and takes what it had before.
        packages.output(*command, "-o", "APT::Update::Error-Mode=any", "update")
    found = re.findall(r"^Inst (\S+) \((\S+) .*\[(\w+)\]\)", packages.output(*command, "--simulate", "install", *names), re.MULTILINE)
    if not offline:
        packages.output(*command, "--download-only", "install", *names)
    debs = {name: f"{folder}/archives/{name}_{version.replace(':', '%3a')}_{architecture}.deb" for name, version, architecture in found}
    for deb in debs.values():
        if not os.path.exists(deb):
            raise Fault(f"{deb} is not there" + (", and --offline fetches nothing" if offline else ", although apt-get fetched it"))
    return debs


def canonical(name):
    """`./lib/x` of a package's archive is `usr/lib/x` in the image: /bin, /lib and so on are links."""
    name = name.removeprefix("./").removeprefix("/").rstrip("/")
    return f"usr/{name}" if re.match(r"(s?bin|lib(32|64|x32)?)/", name) else name


class Package:
    """A .deb that is looked into; its files are unpacked on disk as one archive."""

    def __init__(self, name, deb, scratch):
        self.name = name
        self.control = packages.output("dpkg-deb", "-f", deb).rstrip("\n")
        self.depends = re.findall(r"[a-z0-9][a-z0-9+.-]+", re.sub(r"\([^)]*\)", "", self.field("Depends") + "," + self.field("Pre-Depends")))
        path = os.path.join(scratch, f"{name}.tar")
        with open(path, "wb") as file:
            if subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], stdout=file, check=False).returncode != 0:
                raise Fault(f"{deb} is damaged")
        self.archive = tarfile.open(path)
        self.members = {canonical(member.name): member for member in self.archive if canonical(member.name) not in (".", "")}

    def field(self, name):
        found = re.search(rf"^{name}: *(.*(?:\n .*)*)", self.control, re.MULTILINE)
        return found.group(1) if found else ""

    def read(self, path):
        member = self.members[path]
        if member.islnk():
            return self.read(canonical(member.linkname))
        return self.archive.extractfile(member).read()

    def real(self, path):
        """Where a chain of symbolic links within the package ends."""
        while path in self.members and self.members[path].issym():
            path = os.path.normpath(os.path.join("/", os.path.dirname(path), self.members[path].linkname)).lstrip("/")
            path = canonical(path)
        return path


class Closure:
    """Which packages have the libraries that a program needs, those that these need, and so on, as the dynamic loader looks for them."""

    def __init__(self, debs, scratch):
        self.debs, self.scratch = debs, scratch
        self.opened, self.kept, self.links = {}, {}, {}
        # usr/lib/x86_64-linux-gnu, say
        libc = next((path for path in self.package("libc6").members if re.fullmatch(r"usr/lib/[^/]+/libc\.so\.6", path)), "usr/lib/libc.so.6")
        self.folders = [os.path.dirname(libc), "usr/lib"]

    def package(self, name):
        if name not in self.opened:
            self.opened[name] = Package(name, self.debs[name], self.scratch)
        return self.opened[name]

    def keep(self, name):
        self.kept[name] = self.package(name)

    def library(self, name, near, runpath):
        """(package, path) of a library: first among the packages `near`, where a loader looks, then beside that, as alternatives lie,
        and then in all others."""
        for some in (near, [each for each in self.debs if each not in near]):
            for anywhere in (False, True):
                for each in some:
                    package = self.package(each)
                    for folder in (*runpath, *self.folders):
                        if f"{folder}/{name}" in package.members:
                            return package, f"{folder}/{name}"
                    beside = f"{self.folders[0]}/"
                    found = anywhere and [path for path in package.members if path.startswith(beside) and os.path.basename(path) == name]
                    if found:
                        # What update-alternatives would link.
                        self.links[f"{self.folders[0]}/{name}"] = os.path.relpath(min(found), self.folders[0])
                        return package, min(found)
        raise Fault(f"no package that apt-get chose has {name}")

    def follow(self, program, names):
        """The program is a file of this machine, `names` the packages that it was linked with."""
        done, waiting = set(), [(program, "usr/bin", None)]
        while waiting:
            file, folder, package = waiting.pop()
            needed, runpath = packages.dynamic(file)
            if package:
                os.remove(file)
            else:
                needed = [*needed, *packages.opened(file)]
            runpath = [canonical(os.path.normpath(each.replace("$ORIGIN", f"/{folder}").replace("${ORIGIN}", f"/{folder}"))) for each in runpath]
            own, depends = ([package.name], package.depends) if package else (names, [])
            near = [*dict.fromkeys([*own, *self.kept, *(each for each in depends if each in self.debs)])]
            for name in needed:
                if (name, tuple(runpath)) in done:
                    continue
                done.add((name, tuple(runpath)))
                other, path = self.library(name, near, runpath)
                self.keep(other.name)
                real = other.real(path)
                if real not in other.members:
                    raise Fault(f"{name} of {other.name} is a link to {real}, which it does not have")
                unpacked = os.path.join(self.scratch, f"library-{len(done)}")
                with open(unpacked, "wb") as out:
                    out.write(other.read(real))
                waiting.append((unpacked, os.path.dirname(real), other))

    def keep_licences(self):
        """A package's folder of documentation may be a link to another's."""
        for name in list(self.kept):
            member = self.kept[name].members.get(f"usr/share/doc/{name}")
            if member is not None and member.issym() and os.path.basename(member.linkname) in self.debs:
                self.keep(os.path.basename(member.linkname))


def add_packages(tree, kept):
    """Files of all packages, and dpkg's notes about them, of what is there. Returns dpkg's status."""
    for name in ("bin", "sbin", "lib", "lib64"):
        tree.folder(f"usr/{name}")
        tree.symlink(name, f"usr/{name}")
    stanzas = []
    for name, package in sorted(kept.items()):
        listed, sums = ["/."], []
        for path, member in package.members.items():
            if LEFT_OUT.match(path) or (path in ("bin", "sbin", "lib", "lib64", "lib32", "libx32") and not member.isfile()):
                continue
            listed.append("/" + member.name.removeprefix("./").rstrip("/"))
            if member.issym():
                tree.add(path, Entry(0o777, member.mtime, link=member.linkname))
            elif member.isdir():
                tree.add(path, Entry(member.mode, member.mtime))
            elif member.isreg() or member.islnk():
                tree.add(path, Entry(member.mode, member.mtime, read=lambda package=package, path=path: package.read(path)))
                sums.append(f"{hashlib.md5(package.read(path), usedforsecurity=False).hexdigest()}  {listed[-1][1:]}")
            else:
                raise Fault(f"{name} has a device or a pipe, /{path}")
        qualified = f"{name}:{package.field('Architecture')}" if package.field("Multi-Arch") == "same" else name
        tree.text(f"var/lib/dpkg/info/{qualified}.list", "\n".join(listed) + "\n")
        tree.text(f"var/lib/dpkg/info/{qualified}.md5sums", "\n".join(sums) + "\n" if sums else "")
        stanzas.append(package.control.replace("\n", "\nStatus: install ok installed\n", 1) + "\n")
    status = "\n".join(stanzas)
    tree.text("var/lib/dpkg/status", status)
    tree.text("var/lib/dpkg/info/format", "1\n")
    return status


def add_what_scripts_do(tree, closure):
    for path, target in sorted(closure.links.items()):
        tree.symlink(path, target)
    bundle = []
    for path, entry in sorted(tree.entries.items()):
        if re.match(r"usr/share/ca-certificates/mozilla/.*\.crt$", path):
            bundle.append(entry.read().decode("ascii").rstrip("\n") + "\n")
    if not bundle:
        raise Fault("ca-certificates has no certificates where they were expected")
    tree.text("etc/ssl/certs/ca-certificates.crt", "".join(bundle))
    # Where OpenSSL looks; the package `openssl`, a program, has these links.
    tree.symlink("usr/lib/ssl/cert.pem", "/etc/ssl/certs/ca-certificates.crt")
    tree.symlink("usr/lib/ssl/certs", "/etc/ssl/certs")
    if "etc/localtime" not in tree.entries:
        tree.symlink("etc/localtime", "/usr/share/zoneinfo/Etc/UTC")
    tree.text("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n")


def add_root(tree, program, folder, scratch, sources=None, offline=False):
    """Everything of the image that is Debian's. Returns dpkg's status."""
    names = packages.of_program(program)
    closure = Closure(fetch([*names, *EXTRAS], folder, sources, offline), scratch)
    closure.follow(program, names)
    for name in EXTRAS:
        closure.keep(name)
    closure.keep_licences()
    status = add_packages(tree, closure.kept)
    add_what_scripts_do(tree, closure)
    return status
