"""Scenario files: what is watched, by whom, how the load changes with time, and what must hold. README.md documents the fields; others are refused."""

import re

import yaml

KINDS = ("file", "rtsp", "synthetic")
ROLES = ("camera", "vision", "stream", "generate", "gateway")
MOST_CAMERAS = 200
PROCESS = "process"
NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
# Interfaces of the kernel have fifteen characters, two of them are the switch's.
NODE = re.compile(r"[a-z][a-z0-9-]{0,12}")
TAKEN = ("etcd", "cams", "switch")
SIZE = re.compile(r"[1-9]\d{1,3}x[1-9]\d{1,3}")
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)")
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}


class Fault(Exception):
    """What is wrong with a file, in a line."""


class Loader(yaml.SafeLoader):
    """As safe_load, and a key that stands there twice is a fault: one of the two would count for nothing."""

    def construct_mapping(self, node, deep=False):
        found = super().construct_mapping(node, deep)
        if len(found) < len(node.value):
            raise yaml.constructor.ConstructorError(None, None, "a key stands there twice", node.start_mark)
        return found


def duration(text, where, least=0.0):
    match = DURATION.fullmatch(text) if isinstance(text, str) else None
    if not match:
        raise Fault(f"{where}: a duration such as 500ms, 30s or 2m is wanted, not {text!r}")
    seconds = float(match.group(1)) * UNITS[match.group(2)]
    if seconds < least:
        raise Fault(f"{where}: {least:g} s at least, not {text}")
    return seconds


def number(value, where, least, most, whole=False):
    kind = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= most:
        raise Fault(f"{where}: a {'whole ' if whole else ''}number from {least:g} to {most:g} is wanted, not {value!r}")
    return value


def word(value, where, form=NAME):
    if not isinstance(value, str) or not form.fullmatch(value):
        raise Fault(f"{where}: a name in small letters, digits and - is wanted, not {value!r}")
    return value


def fields(value, where, known, needed=()):
    """A map that has no other keys than the known ones."""
    at = f"{where}." if where else ""
    if not isinstance(value, dict):
        raise Fault(f"{where or 'the file'}: fields are wanted ({', '.join(known)}), not {value!r}")
    for key in value:
        if key not in known:
            raise Fault(f"{at}{key}: there is no such field (known: {', '.join(known)})")
    for key in needed:
        if key not in value:
            raise Fault(f"{at}{key} is missing")
    return value


def fleet_of(value):
    if value == PROCESS:
        return {"nodes": {PROCESS: ["camera", "vision", "stream", "generate", "gateway"]}, "process": True, "lease": None, "high_water_mark": 1000}
    fields(value, "fleet", ("nodes", "lease", "high_water_mark", "process"))
    process = value.get("process", False)
    if process is not True and process is not False:
        raise Fault(f"fleet.process: true or false is wanted, not {process!r}")
    mark = number(value.get("high_water_mark", 1000), "fleet.high_water_mark", 1, 1000000, whole=True)
    if process:
        if "nodes" in value or "lease" in value:
            raise Fault("fleet: one process has neither nodes nor a lease")
        return {**fleet_of(PROCESS), "high_water_mark": mark}
    if not isinstance(value.get("nodes"), dict) or not value["nodes"]:
        raise Fault("fleet.nodes: names with their roles are wanted, or `fleet: process`")
    nodes = {}
    for name, roles in value["nodes"].items():
        word(name, "fleet.nodes", NODE)
        if name in TAKEN or name == PROCESS:
            raise Fault(f"fleet.nodes: {name} is not a node's name here")
        nodes[name] = [role.strip() for role in roles.split(",")] if isinstance(roles, str) else roles
        if not isinstance(nodes[name], list) or not nodes[name] or set(nodes[name]) - set(ROLES):
            raise Fault(f"fleet.nodes.{name}: roles are wanted ({', '.join(ROLES)}), not {roles!r}")
    for role in ("camera", "vision", "stream"):
        if not any(role in roles for roles in nodes.values()):
            raise Fault(f"fleet.nodes: no node has the role {role}")
    if not any("gateway" in roles for roles in nodes.values()):
        raise Fault("fleet.nodes: no node has the role gateway, where subscribers are")
    return {"nodes": nodes, "process": False, "lease": duration(value.get("lease", "3s"), "fleet.lease", 1), "high_water_mark": mark}


def counted(text):
    """The fleet of `--nodes`: `process`, or how many camera nodes, computing nodes and gateways: 2,1,1."""
    if text == PROCESS:
        return {"process": True}
    if not re.fullmatch(r"[1-9]\d?,[1-9]\d?,[1-9]\d?", text):
        raise Fault(f"--nodes: `process`, or camera nodes, computing nodes and gateways, such as 2,1,1, not {text}")
    cameras, computing, gateways = (int(each) for each in text.split(","))
    return {"nodes": {**{f"c{i + 1}": "camera" for i in range(cameras)}, **{f"v{i + 1}": "vision,stream,generate" for i in range(computing)},
                      **{f"g{i + 1}": "gateway" for i in range(gateways)}}}


def cameras_of(value):
    fields(value, "cameras", ("kinds", "fps", "window", "stride", "size", "pruning", "rules"))
    kinds = value.get("kinds", {"file": 1})
    fields(kinds, "cameras.kinds", KINDS)
    weights = {kind: number(weight, f"cameras.kinds.{kind}", 0, 1000, whole=True) for kind, weight in kinds.items()}
    if not any(weights.values()):
        raise Fault("cameras.kinds: no kind has a share")
    size = value.get("size", "384x216")
    if not isinstance(size, str) or not SIZE.fullmatch(size) or any(int(each) % 2 or int(each) < 64 for each in size.split("x")):
        raise Fault(f"cameras.size: WIDTHxHEIGHT is wanted, both even and 64 at least, not {size!r}")
    pruning = value.get("pruning", "balanced")
    if pruning not in ("exact", "balanced", "cheap"):
        raise Fault(f"cameras.pruning: exact, balanced or cheap is wanted, not {pruning!r}")
    found = {"kinds": {kind: weight for kind, weight in weights.items() if weight}, "fps": number(value.get("fps", 2), "cameras.fps", 0.5, 10),
             "window": duration(value.get("window", "2s"), "cameras.window", 1), "stride": duration(value.get("stride", "1s"), "cameras.stride", 0.5),
             "size": size, "pruning": pruning, "rules": number(value.get("rules", 1), "cameras.rules", 1, 32, whole=True)}
    if found["stride"] > found["window"]:
        raise Fault("cameras.stride: longer than the window")
    return found


def limits_of(value, where):
    times = ("latency_p50", "latency_p95", "latency_p99", "latency_max", "sampled_again", "answered_again", "silence")
    fields(value, where, (*times, "answered", "lost", "violations"))
    found = {key: duration(value[key], f"{where}.{key}") for key in times if key in value}
    if "answered" in value:
        found["answered"] = number(value["answered"], f"{where}.answered", 0, 1)
    for key in ("lost", "violations"):
        if key in value:
            found[key] = number(value[key], f"{where}.{key}", 0, 10**9, whole=True)
    return found


def loss_of(value, where, fleet, lasts):
    fields(value, where, ("node", "at", "back"), ("node", "at", "back"))
    known = [*fleet["nodes"], *([] if fleet["process"] else ("camera", "compute", "gateway"))]
    if value["node"] not in known:
        raise Fault(f"{where}.node: one of {', '.join(known)} is wanted, not {value['node']!r}")
    found = {"node": value["node"], "at": duration(value["at"], f"{where}.at"), "back": duration(value["back"], f"{where}.back")}
    if not found["at"] < found["back"] < lasts:
        raise Fault(f"{where}: `at` has to come before `back`, and that before the phase ends")
    return found


def phase_of(value, where, scenario):
    fields(value, where, ("name", "lasts", "cameras", "moving", "flapping", "slow_subscribers", "lose"), ("name", "lasts"))
    found = {"name": word(value["name"], f"{where}.name"), "lasts": duration(value["lasts"], f"{where}.lasts", 1),
             "cameras": number(value.get("cameras", 1), f"{where}.cameras", 0.01, 1), "moving": None, "flapping": None, "slow_subscribers": None,
             "lose": None}
    rtsp = "rtsp" in scenario["cameras"]["kinds"]
    if "moving" in value:
        found["moving"] = number(value["moving"], f"{where}.moving", 0, 1)
    if "flapping" in value:
        at = f"{where}.flapping"
        fields(value["flapping"], at, ("share", "gone", "there"), ("share", "gone", "there"))
        found["flapping"] = {"share": number(value["flapping"]["share"], f"{at}.share", 0.01, 1),
                             "gone": duration(value["flapping"]["gone"], f"{at}.gone", 0.5),
                             "there": duration(value["flapping"]["there"], f"{at}.there", 0.5)}
    for key in ("moving", "flapping"):
        if found[key] is not None and not rtsp:
            raise Fault(f"{where}.{key}: only RTSP cameras can, and cameras.kinds has none")
    if "slow_subscribers" in value:
        at = f"{where}.slow_subscribers"
        fields(value["slow_subscribers"], at, ("count", "events_per_second"), ("count", "events_per_second"))
        found["slow_subscribers"] = {"count": number(value["slow_subscribers"]["count"], f"{at}.count", 1, 32, whole=True),
                                     "events_per_second": number(value["slow_subscribers"]["events_per_second"], f"{at}.events_per_second", 0, 1000)}
    if "lose" in value:
        found["lose"] = loss_of(value["lose"], f"{where}.lose", scenario["fleet"], found["lasts"])
    return found


def loads_of(value, where="loads"):
    if not isinstance(value, list) or not value:
        raise Fault(f"{where}: numbers of cameras are wanted, such as [2, 4, 8], not {value!r}")
    found = [number(each, where, 1, MOST_CAMERAS, whole=True) for each in value]
    if len(set(found)) != len(found):
        raise Fault(f"{where}: a number stands there twice")
    return sorted(found)


def checked(value):
    """The scenario with all that was left out filled in; durations are seconds."""
    fields(value, "", ("name", "about", "seed", "fleet", "cameras", "loads", "warmup", "phases", "limits"), ("name", "fleet", "loads", "phases"))
    if not isinstance(value.get("about", ""), str):
        raise Fault("about: a text is wanted")
    scenario = {"name": word(value["name"], "name"), "about": value.get("about", ""),
                "seed": number(value.get("seed", 1), "seed", 0, 2**31, whole=True),
                "fleet": fleet_of(value["fleet"]), "cameras": cameras_of(value.get("cameras", {})), "loads": loads_of(value["loads"]),
                "warmup": duration(value.get("warmup", "10s"), "warmup")}
    if not isinstance(value["phases"], list) or not value["phases"]:
        raise Fault("phases: a list of one phase at least is wanted")
    scenario["phases"] = [phase_of(phase, f"phases[{i}]", scenario) for i, phase in enumerate(value["phases"])]
    names = [phase["name"] for phase in scenario["phases"]]
    if len(set(names)) != len(names):
        raise Fault("phases: two have the same name")
    scenario["limits"] = limits_of(value.get("limits", {}), "limits")
    return scenario


def lasting(scenario, minutes):
    """The same with phases, and the times in them, so much longer or shorter that they last so many minutes together."""
    if not 0 < minutes <= 24 * 60:
        raise Fault(f"--minutes: more than 0 and 1440 at most, not {minutes:g}")
    factor = 60 * minutes / sum(phase["lasts"] for phase in scenario["phases"])
    phases = []
    for phase in scenario["phases"]:
        lose = phase["lose"] and {**phase["lose"], "at": phase["lose"]["at"] * factor, "back": phase["lose"]["back"] * factor}
        phases.append({**phase, "lasts": phase["lasts"] * factor, "lose": lose})
    if min(phase["lasts"] for phase in phases) < 1:
        raise Fault("--minutes: a phase would last less than a second")
    return {**scenario, "phases": phases}


def read(path, nodes=None, loads=None, minutes=None):
    """The scenario of a file, with what the command line says instead."""
    try:
        with open(path, encoding="utf-8") as file:
            value = yaml.load(file, Loader)
    except OSError as error:
        raise Fault(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Fault(f"{path}: is no UTF-8") from error
    except yaml.YAMLError as error:
        raise Fault(f"{path}: {' '.join(str(error).split())}") from error
    try:
        if nodes is not None and isinstance(value, dict):
            kept = {key: each for key, each in value["fleet"].items() if key == "high_water_mark"} if isinstance(value.get("fleet"), dict) else {}
            value["fleet"] = {**counted(nodes), **kept}
        if loads is not None and isinstance(value, dict):
            value["loads"] = loads
        scenario = checked(value)
        return scenario if minutes is None else lasting(scenario, minutes)
    except Fault as fault:
        raise Fault(f"{path}: {fault}") from fault
