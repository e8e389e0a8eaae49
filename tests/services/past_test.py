#!/usr/bin/python3
"""vigil ask --camera and vigil memory, against a service that says what it is told to (cluster/asks/README.md).

  past_test.py VIGIL
"""

import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import threading
import time

import zmq
from zmq.utils import z85

PATIENCE = 60
QUESTION = "When did the red car arrive?"
ANSWER = {"camera": "gate", "tenant": "north", "question": QUESTION, "about": "Is there a red car?", "answer": "Yes", "probability": 0.97,
          "moment": "2026-08-01T10:15:03.000Z", "evidence": [{"from": "2026-08-01T10:14:40.000Z", "to": "2026-08-01T10:15:20.000Z", "score": 0.97}],
          "coverage": {"share": 0.985, "gaps": [{"from": "2026-08-01T10:00:00.000Z", "to": "2026-08-01T10:01:00.000Z", "why": "erased"}]}}
LINE = ("Yes  (probability of yes 0.97); moment 2026-08-01 10:15:03 UTC; best window 2026-08-01 10:14:40 to 2026-08-01 10:15:20 UTC; "
        "98% of the time is remembered, 1 gap\n")


def check(holds, what):
    if not holds:
        sys.exit(f"past_test: {what}")


def read_all(terminal):
    """What was written to the other end, which is closed: in one piece or in several."""
    text = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            return text.decode()
        if not piece:
            return text.decode()
        text += piece


class Service:
    """Answers each request with the next replies that it was given; keeps what it was asked."""

    def __init__(self, endpoint, prepare=lambda socket: None):
        self.endpoint, self.asked, self.replies = endpoint, [], []
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.ROUTER)
        prepare(self.socket)
        self.socket.bind(endpoint)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, tag, text = self.socket.recv_multipart()
            self.asked.append(json.loads(text))
            for header, *body in self.replies:
                self.socket.send_multipart([client, tag, json.dumps({"version": 1, **header}).encode(), *body])

    def will_answer(self, body):
        self.asked.clear()
        self.replies = [({"kind": "answer"}, body if isinstance(body, bytes) else json.dumps(body).encode())]

    def will_refuse(self, kind, message, **more):
        self.asked.clear()
        self.replies = [({"kind": "refused", "type": kind, "message": message, **more},)]

    def request(self):
        check(len(self.asked) == 1, f"asked {self.asked}")
        return self.asked[0]


class Commands:
    def __init__(self, vigil, folder, service):
        self.vigil, self.folder, self.service = vigil, folder, service

    def run(self, *arguments, **more):
        # As where somebody has a model of his own: of no file is asked here.
        environment = {**os.environ, "VIGIL_MODEL": "/nowhere"}
        return subprocess.run([self.vigil, *arguments], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False, text=True,
                              **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more})

    def ask(self, *arguments, question=QUESTION, **more):
        return self.run("ask", "--camera", "gate", "--connect", self.service.endpoint, *arguments, question, **more)

    def memory(self, *arguments):
        return self.run("memory", *arguments, "--connect", self.service.endpoint)

    def succeeds(self, done, stdout):
        check((done.returncode, done.stdout, done.stderr) == (0, stdout, ""), f"{done}, not {stdout!r}")

    def refused(self, done, status, line):
        check((done.returncode, done.stdout) == (status, ""), f"{done}")
        check(re.fullmatch(line + "\n", done.stderr), f"stderr is not {line!r}: {done.stderr!r}")


def check_questions(commands, service):
    service.will_answer(ANSWER)
    before = time.time() * 1000
    commands.succeeds(commands.ask("--since", "2h"), LINE)
    asked = service.request()["ask"]
    hour = 3_600_000
    check(abs(asked.pop("from_ms") - (before - 2 * hour)) < 60_000 and abs(asked.pop("to_ms") - before) < 60_000, f"--since 2h is {service.request()}")
    check(asked == {"camera": "gate", "question": QUESTION, "max_tokens": 64, "timeout_ms": 60_000}, f"asked {asked}")

    service.will_answer(ANSWER)
    done = commands.ask("--since", "2026-08-01T10:00:00Z", "--until", "2026-08-01T12:00:00+01:00", "--tenant", "north", "--about", "Is there a red car?",
                        "--method", "exhaustive", "--timeout", "5s", "--max-tokens", "7", "--output", "json")
    check(done.returncode == 0 and json.loads(done.stdout) == ANSWER and done.stdout.startswith('{\n  "'), f"json: {done}")
    check(service.request() == {"version": 1, "ask": {"camera": "gate", "tenant": "north", "question": QUESTION, "about": "Is there a red car?",
                                                      "from_ms": 1785578400000, "to_ms": 1785582000000, "method": "exhaustive", "max_tokens": 7, "timeout_ms": 5000}},
          f"asked {service.request()}")

    # What had come by then, the service knows: of a file that is read ahead of its time, more has.
    service.will_answer(ANSWER)
    commands.succeeds(commands.ask("--since", "2h", "--until", "2200-01-01T00:00:00Z"), LINE)
    check(service.request()["ask"]["to_ms"] == 7258118400000, f"--until then: {service.request()}")
    check("cut off" in commands.run("ask", "--help").stdout, "--help says what becomes of an end that has not come yet")

    # Of "When", each time that it was.
    service.will_answer({**ANSWER, "answer": ANSWER["moment"], "moments": ["2026-08-01T10:02:09.000Z", ANSWER["moment"]]})
    done = commands.ask("--since", "2h")
    check(done.returncode == 0 and done.stdout.startswith("at 2026-08-01 10:02:09 and 10:15:03 UTC  (probability of yes 0.97); moment 2026-08-01 10:15:03 UTC; best window"),
          f"moments: {done}")

    # Where nobody knows, it is said why, and no script takes it for an answer.
    nobody = {**ANSWER, "answer": None, "probability": None, "moment": None, "evidence": [], "from": "2026-08-01T10:00:00.000Z", "to": "2026-08-01T11:00:00.000Z",
              "coverage": {"share": 0, "gaps": [{"from": "2026-08-01T10:00:00.000Z", "to": "2026-08-01T11:00:00.000Z", "why": "evicted"}]}, "windows_lost": 0}
    why = "vigil: nothing of gate (north) is remembered between 2026-08-01 10:00:00 and 2026-08-01 11:00:00 UTC: evicted\n"
    service.will_answer(nobody)
    done = commands.ask("--since", "2h")
    check((done.returncode, done.stdout, done.stderr) == (3, "", why), f"nobody knows: {done}")
    done = commands.ask("--since", "2h", "--output", "json")
    check((done.returncode, json.loads(done.stdout), done.stderr) == (3, nobody, why), f"nobody knows, as JSON: {done}")
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = commands.ask("--since", "2h", "--output", "json", stdout=full)
            check(done.returncode == 1 and "could be written" in done.stderr, f"nobody knows, to a full disk: {done}")

    # How far it has come is for a terminal.
    service.will_answer(ANSWER)
    progress = ({"kind": "progress"}, b'{"windows": 3, "of": 12}')
    service.replies = [progress, *service.replies]
    commands.succeeds(commands.ask("--since", "2h"), LINE)
    terminal, other = pty.openpty()
    done = commands.ask("--since", "2h", stderr=other)
    os.close(other)
    shown = read_all(terminal)
    check((done.returncode, done.stdout) == (0, LINE) and shown == "\r\x1b[K3 of 12 windows\r\x1b[K", f"on a terminal: {done}, {shown!r}")

    for kind, message, more, line in (("bad_request", "there is no camera gate", {}, "vigil: bad_request: there is no camera gate"),
                                      ("forbidden", "this key may not erase", {}, "vigil: forbidden: this key may not erase"),
                                      ("busy", "too much", {"retry_after_ms": 1500}, r"vigil: busy: too much [(]again after 1500ms[)]")):
        service.will_refuse(kind, message, **more)
        commands.refused(commands.ask("--since", "2h"), 1, line)
    for body in b'{}', b'[]', b'"Yes"', b'{"answer"':
        service.will_answer(body)
        for output in "text", "json":
            commands.refused(commands.ask("--since", "2h", "--output", output), 1, f"vigil: {service.endpoint}: what answers there is no `vigil run`"
                             if body != b'{"answer"' else f"vigil: unavailable: what came from {service.endpoint} is no reply")
    service.will_answer(b'{"answer": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    commands.refused(commands.ask("--since", "2h", "--output", "json"), 1, f"vigil: {service.endpoint}: what answers there is no `vigil run`")
    service.replies = []
    commands.refused(commands.ask("--since", "2h", "--timeout", "100ms"), 1, "vigil: too_late: no answer within 2100 ms")


def check_arguments(commands, service):
    service.will_answer(ANSWER)
    when = "expected how long ago, such as 2h [(]ms, s, m, h or d[)], or a time such as 2026-08-01T10:00:00Z, not"
    for arguments, line in (
            (("--since", "1h", "--until", "2h"), "vigil: nothing lies between --since and --until: the one is not before the other"),
            (("--since", "0s"), "vigil: nothing lies between --since and now: the one is not before the other"),
            (("--since", "-1h"), f"vigil: --since: {when} '-1h'"),
            (("--since", "2weeks"), f"vigil: --since: {when} '2weeks'"),
            (("--since", ""), f"vigil: --since: {when} ''"),
            (("--since", "2h", "--until", ""), f"vigil: --until: {when} ''"),
            (("--since", "2h", "--tenant", ""), "vigil: --tenant: expected a name of letters, digits, '[.]', '_' and '-', not ''"),
            (("--since", "2h", "--timeout", ""), "vigil: --timeout: expected a duration above 0, such as 40s, not ''"),
            (("--since", "2h", "--timeout", "5 parsecs"), "vigil: --timeout: expected a duration above 0, such as 40s, not '5 parsecs'"),
            (("--since", "2h", "--about", ""), "--about: expected a question in words, .*\nRun with --help for more information."),
            (("--since", "2h", "--about", "q" * 4097), "vigil: --about: expected a question of at most 4096 bytes, not of 4097"),
            (("--since", "2200-01-01T00:00:00Z"), "vigil: nothing lies between --since and now: the one is not before the other"),
            ((), "vigil: --since: how far back is to be looked, such as 2h, is needed"),
            (("--since", "yesterday"), f"vigil: --since: {when} 'yesterday'"),
            (("--since", "2h", "--until", "2026-02-30T00:00:00Z"), f"vigil: --until: {when} '2026-02-30T00:00:00Z'"),
            (("--since", "2h", "--tenant", "no/rth"), "vigil: --tenant: expected a name of letters, digits, '[.]', '_' and '-', not 'no/rth'"),
            (("--since", "2h", "--timeout", "11m"), "vigil: --timeout: expected 10m at most, not '11m'"),
            (("--since", "2h", "--timeout", "0s"), "vigil: --timeout: expected a duration above 0, such as 40s, not '0s'"),
            (("--since", "2h", "--fps", "2"), "vigil: --fps is of a VIDEO, and --camera asks about none"),
            (("--since", "2h", "--model", "m"), "vigil: --model is of a VIDEO, and --camera asks about none"),
            (("--since", "2h", "--stream"), "vigil: --stream is of a VIDEO, and --camera asks about none"),
            (("--since", "2h", "clip.mp4"), "vigil: --camera takes one QUESTION, in quotes, and no VIDEO; these are 2 words beside the options"),
            (("--since", "2h", "--method", "hours"), "--method: expected windows, compose, exhaustive, clusters or rekv, not 'hours'\nRun with --help for more information."),
            (("--since", "2h", "--about", "<|im_end|>"), "--about: expected a question in words, .*\nRun with --help for more information.")):
        commands.refused(commands.ask(*arguments), 2, line)
    commands.refused(commands.ask("--since", "2h", question="q" * 5000), 2, "vigil: QUESTION: expected a question of at most 4096 bytes, not of 5000")
    commands.refused(commands.ask("--since", "2h", question=" "), 2, "QUESTION: expected a question in words, .*\nRun with --help for more information.")
    commands.refused(commands.ask("--since", "2h", question=""), 2, "QUESTION: what is asked is missing: .*\nRun with --help for more information.")
    for name, shown in ("", ""), ("gate 7", "gate 7"), ("g\x1b[2J", r"g[?]\[2J"), ("gäte", "gäte"), ("../gate", r"\.\./gate"):
        commands.refused(commands.run("ask", "--camera", name, "--since", "2h", QUESTION), 2,
                         f"vigil: --camera: expected a name of letters, digits, '[.]', '_' and '-', not '{shown}'")
    missing = "QUESTION: what is asked is missing: a question in quotes, such as \"{}\"\nRun with --help for more information."
    commands.refused(commands.run("ask", "--camera", "gate", "--since", "2h"), 2, missing.format("When did the red car arrive[?]"))
    commands.refused(commands.run("ask", "clip.mp4"), 2, missing.format("Is there a person in the room[?]"))
    commands.refused(commands.run("ask"), 2, "VIDEO is required\nRun with --help for more information.")
    for option, value in ("--since", "2h"), ("--tenant", "north"), ("--connect", service.endpoint), ("--about", "Is it?"):
        commands.refused(commands.run("ask", "clip.mp4", QUESTION, option, value), 2,
                         f"vigil: {option} is of what a camera saw: it needs --camera, which asks a running service")
    commands.refused(commands.run("ask", "--camera", "gate", "--since", "2h", "--connect", "127.0.0.1:1", QUESTION), 2,
                     r"vigil: --connect: expected an endpoint such as tcp://127\.0\.0\.1:5558, not '127\.0\.0\.1:1'; did you mean tcp://127\.0\.0\.1:1[?]")
    commands.refused(commands.run("ask", "--camera", "gate", "--since", "2h", "--timeout", "300ms", "--connect", "ipc:///nowhere/asks", QUESTION), 1,
                     "vigil: no answer at ipc:///nowhere/asks; is `vigil run`, or a gateway, running there, with memory, and is --connect what its configuration says in asks.bind[?]")
    check(not service.asked, f"what makes no sense was asked: {service.asked}")


def check_memory(commands, service):
    service.will_answer({"cameras": [{"camera": "gate", "tenant": "north", "watched": True, "pages": 12, "bytes": {"host": 1048576, "disk": 0},
                                      "from": "2026-08-01T10:00:00.000Z", "to": "2026-08-01T11:00:00.000Z", "forms": ["fp8"]}]})
    commands.succeeds(commands.memory("list"), "camera  tenant  pages  bytes    from (UTC)           to (UTC)             forms\n"
                                               "gate    north   12     1.0 MiB  2026-08-01 10:00:00  2026-08-01 11:00:00  fp8\n")
    check(service.request() == {"version": 1, "list": {"timeout_ms": 60_000}}, f"asked {service.request()}")
    service.will_answer({"cameras": []})
    done = commands.memory("list", "--camera", "gate", "--tenant", "north", "--output", "json")
    check(json.loads(done.stdout) == {"cameras": []}, f"{done}")
    check(service.request() == {"version": 1, "list": {"camera": "gate", "tenant": "north", "timeout_ms": 60_000}}, f"asked {service.request()}")

    service.will_answer({"cameras": []})
    for part in "list", "verify":
        commands.succeeds(commands.memory(part), "nothing is remembered\n")

    service.will_answer({"cameras": [{"camera": "gate", "tenant": "north", "whole": 12, "damaged": 0}]})
    commands.succeeds(commands.memory("verify", "--camera", "gate"), "camera  tenant  whole  damaged\ngate    north   12     0\n")
    check(service.request() == {"version": 1, "verify": {"camera": "gate", "timeout_ms": 60_000}}, f"asked {service.request()}")
    service.will_answer({"cameras": [{"camera": "gate", "tenant": "north", "whole": 11, "damaged": 1}]})
    for output in "text", "json":
        done = commands.memory("verify", "--output", output)
        check(done.returncode == 1 and "gate" in done.stdout and not done.stderr, f"damage: {done}")
    # A check of fewer nodes than all is none.
    service.will_answer({"cameras": [{"camera": "gate", "tenant": "north", "whole": 11, "damaged": 0}], "silent": ["gpu-2"]})
    done = commands.memory("verify")
    check(done.returncode == 1 and done.stdout.endswith("\ngpu-2 does not answer\n"), f"a node that does not answer: {done}")

    erased = {"camera": "gate", "tenant": "north", "pages": 3, "from": None, "to": "2026-08-01T11:00:00.000Z", "finished": True}
    for arguments, keys in ((("--all",), {}), (("--from", "2026-08-01T10:00:00Z", "--to", "2026-08-01T11:00:00Z"), {"from_ms": 1785578400000, "to_ms": 1785582000000}),
                            (("--from", "2026-08-01T10:00:00Z", "--tenant", "north"), {"from_ms": 1785578400000, "tenant": "north"}),
                            (("--to", "2026-08-01T11:00:00Z"), {"to_ms": 1785582000000}),
                            # The service says what was seen by now.
                            (("--to", "2200-01-01T00:00:00Z"), {}), (("--to", "0s"), {})):
        service.will_answer(erased)
        # The clock of whoever runs this may stand before that.
        if "--to" not in arguments and "--from" in arguments and time.time() * 1000 < 1785578400000:
            continue
        commands.succeeds(commands.memory("erase", "--camera", "gate", *arguments), "gate (north): 3 pages are erased, until 2026-08-01 11:00:00 UTC\n")
        check(service.request() == {"version": 1, "erase": {"camera": "gate", "timeout_ms": 60_000, **keys}}, f"{arguments}: asked {service.request()}")

    service.will_answer(erased)
    what = "vigil: say what is to be erased: --from, --to or both, or --all that the camera saw"
    for arguments, line in (((), what), (("--all", "--from", "2h"), "vigil: --all and --from exclude each other: nothing was erased"),
                            (("--all", "--to", "1h"), "vigil: --all and --to exclude each other: nothing was erased"),
                            (("--all", "--from", "2h", "--to", "1h"), "vigil: --all and --from exclude each other: nothing was erased"),
                            (("--from", "1h", "--to", "2h"), "vigil: nothing lies between --from and --to: the one is not before the other"),
                            (("--from", "2200-01-01T00:00:00Z"), "vigil: --from: '2200-01-01T00:00:00Z' has not come yet"),
                            (("--from", "0s"), "vigil: nothing lies between --from and now: the one is not before the other")):
        commands.refused(commands.memory("erase", "--camera", "gate", *arguments), 2, line)
    commands.refused(commands.memory("erase", "--all"), 2, "--camera is required\nRun with --help for more information.")
    # What a script has not set is not "all of them".
    for part in ("list",), ("verify",), ("erase", "--all"):
        for name in "a b", "":
            named = f"expected a name of letters, digits, '[.]', '_' and '-', not '{name}'"
            commands.refused(commands.memory(*part, "--camera", name), 2, f"vigil: --camera: {named}")
            commands.refused(commands.memory(*part, "--camera", "gate", "--tenant", name), 2, f"vigil: --tenant: {named}")
    when = "expected how long ago, such as 2h [(]ms, s, m, h or d[)], or a time such as 2026-08-01T10:00:00Z, not"
    for option in "--from", "--to":
        commands.refused(commands.memory("erase", "--camera", "gate", option, ""), 2, f"vigil: {option}: {when} ''")
        commands.refused(commands.memory("erase", "--camera", "gate", "--all", option, ""), 2, f"vigil: --all and {option} exclude each other: nothing was erased")
    check(not service.asked, f"what makes no sense was asked: {service.asked}")
    service.will_refuse("forbidden", "this key may not erase")
    commands.refused(commands.memory("erase", "--camera", "gate", "--all"), 1, "vigil: forbidden: this key may not erase")


def check_keys(vigil, folder):
    commands = Commands(vigil, folder, None)
    for name in "server", "north", "stranger":
        check(commands.run("keygen", f"{name}.key").returncode == 0, "keygen")

    def key(name):
        with open(os.path.join(folder, name), encoding="ascii") as file:
            return [line.strip() for line in file if line.strip() and not line.startswith("#")][0].encode()

    def encrypted(socket):
        """Lets one key in (ZAP, https://rfc.zeromq.org/spec/27)."""
        door, known = socket.context.socket(zmq.REP), z85.decode(key("north.key.pub"))
        door.bind("inproc://zeromq.zap.01")

        def answer():
            while True:
                version, request, *_, client = door.recv_multipart()
                door.send_multipart([version, request, b"200" if client == known else b"400", b"", b"", b""])

        threading.Thread(target=answer, daemon=True).start()
        socket.curve_server, socket.curve_secretkey = True, key("server.key")

    commands.service = Service(f"ipc://{folder}/keys", encrypted)
    commands.service.will_answer(ANSWER)
    server = ("--since", "2h", "--server-key", "server.key.pub")
    commands.succeeds(commands.ask(*server, "--key-file", "north.key"), LINE)
    done = commands.ask(*server, "--key-file", "stranger.key", "--timeout", "5s")
    commands.refused(done, 1, f"vigil: {commands.service.endpoint}: does not let this key in")
    done = commands.ask("--since", "2h", "--timeout", "500ms")
    check(done.returncode == 1 and commands.service.endpoint in done.stderr and done.stderr.count("\n") == 1, f"without keys: {done}")
    commands.refused(commands.ask(*server), 2, "--server-key requires --key-file\nRun with --help for more information.")
    commands.refused(commands.ask(*server, "--key-file", "none.key"), 1, "vigil: .*none.key.*")
    check(len(commands.service.asked) == 1, f"strangers ask: {commands.service.asked}")


def check_help(commands):
    for words in ("ask",), ("memory", "list"), ("memory", "verify"), ("memory", "erase"):
        done = commands.run(*words, "--help")
        check(done.returncode == 0 and "Example" in done.stdout and f"vigil {' '.join(words)} " in done.stdout, f"{words} --help: {done}")


def main():
    vigil = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="vigil-past-") as folder:
        service = Service(f"ipc://{folder}/asks")
        commands = Commands(vigil, folder, service)
        check_questions(commands, service)
        check_arguments(commands, service)
        check_memory(commands, service)
        check_keys(vigil, folder)
        check_help(commands)


main()
