#!/usr/bin/env python3
"""The packages of this system that have the libraries which a program was linked with, one a line: what has to be installed for it to run.

  images/packages.py PROGRAM [--others FOLDER]     (--others: libraries of no package are copied there; without it they are an error)
"""

import argparse
import os
import re
import shutil
import subprocess
import sys


class Fault(Exception):
    """What is wrong, in words for whoever started this."""


def output(*command, **options):
    """What a command prints; a Fault with its last words if it fails or is not there."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env={**os.environ, "LC_ALL": "C.UTF-8"}, **options)
    except FileNotFoundError:
        raise Fault(f"there is no {command[0]} here (scripts/dependencies installs what is needed)") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or f"it ended with {done.returncode}").splitlines()
        raise Fault(f"{command[0]} failed: {'; '.join(said[-3:])}")
    return done.stdout


def dynamic(path):
    """(names of the libraries that a file needs, folders in which it looks for them first)"""
    text = output("readelf", "-dW", path)
    runpath = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text)
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text), [each for line in runpath for each in line.split(":") if each]


def owner(path):
    """The package that has a file, or None. /lib is a link to /usr/lib, and packages name either."""
    real = os.path.realpath(path)
    for name in dict.fromkeys((real, real.removeprefix("/usr"), path)):
        done = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return re.split(r"[:,]", done.stdout, maxsplit=1)[0]
    return None


# Libraries that are opened by name where they are needed, as the names stand in a program: FFmpeg's devices.
OPENED = re.compile(rb"\0(libavdevice\.so\.\d+)\0")


def opened(program):
    """{name: path} of the libraries that a program opens by itself."""
    with open(program, "rb") as file:
        names = {name.decode() for name in OPENED.findall(file.read())}
    if not names:
        return {}
    known = dict(re.findall(r"^\s*(\S+) \(.*\) => (/\S+)", output("/sbin/ldconfig", "-p"), re.MULTILINE))
    return {name: known.get(name) for name in sorted(names)}


def of_program(program, others=None):
    """Names of packages, sorted, those of libraries that it opens by itself among them. What belongs to none is copied to the folder `others`; without one it is a Fault."""
    if not os.path.isfile(program):
        raise Fault(f"there is no file {program}")
    needed, _ = dynamic(program)
    if not needed:
        raise Fault(f"{program} is no program with shared libraries")
    for tool in ("ldd", "dpkg-query"):
        if not shutil.which(tool):
            raise Fault(f"there is no {tool} here, hence no package to name")
    found = dict(re.findall(r"^\s*(\S+) => (/\S+)", output("ldd", program), re.MULTILINE))
    by_itself = opened(program)
    found.update((name, path) for name, path in by_itself.items() if path)
    packages, orphans = set(), {}
    for library in [*needed, *by_itself]:
        if library not in found and library.startswith("ld-linux"):
            continue
        if library not in found:
            raise Fault(f"{program} needs {library}, which is not on this machine")
        package = owner(found[library])
        if package:
            packages.add(package)
        else:
            orphans[library] = found[library]
    if orphans and others is None:
        raise Fault(f"{program} needs {', '.join(sorted(orphans))}, which no package of this system has (images/Dockerfile.cuda is for builds with CUDA)")
    for library, path in orphans.items():
        os.makedirs(others, exist_ok=True)
        shutil.copyfile(path, os.path.join(others, library))
    return sorted(packages)


def compiled_in(program, scratch):
    """Packages of this system with headers and static libraries that went into a program which lies in its build folder, as dictionaries like dpkg's stanzas;
    None if it lies elsewhere."""
    build = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    if not all(os.path.exists(os.path.join(build, name)) for name in ("build.ninja", ".ninja_deps")):
        return None
    # A copy: ninja may tidy up its notes when it reads them.
    copy = os.path.join(scratch, "build")
    for name in ("build.ninja", "CMakeFiles/rules.ninja", ".ninja_deps", ".ninja_log"):
        os.makedirs(os.path.dirname(os.path.join(copy, name)), exist_ok=True)
        shutil.copyfile(os.path.join(build, name), os.path.join(copy, name))
    inputs = output("ninja", "-C", copy, "-t", "inputs", os.path.relpath(os.path.realpath(program), build)).splitlines()
    files = {each for each in inputs if each.startswith("/usr/") and each.endswith(".a")}
    objects = [each for each in inputs if each.endswith((".o", ".gch"))]
    files |= set(re.findall(r"^ +(/usr/\S+)$", output("ninja", "-C", copy, "-t", "deps", *objects), re.MULTILINE))
    if not files:
        raise Fault(f"ninja does not know what {program} was built from")
    # It fails if one of the files belongs to nobody, and names the packages of the others.
    done = subprocess.run(["dpkg-query", "-S", *sorted(files)], capture_output=True, text=True, check=False)
    names = sorted({each for line in done.stdout.splitlines() for each in re.split(r", ", line.rpartition(": ")[0])})
    keys = ("Package", "Version", "Architecture", "Maintainer", "Source")
    text = output("dpkg-query", "-W", "-f", "${Package}\\t${Version}\\t${Architecture}\\t${Maintainer}\\t${source:Package}\\n", *names)
    return [dict(zip(keys, line.split("\t"))) for line in text.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--others")
    arguments = parser.parse_args()
    try:
        print("\n".join(of_program(arguments.program, arguments.others)))
    except Fault as fault:
        print(f"images/packages.py: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
