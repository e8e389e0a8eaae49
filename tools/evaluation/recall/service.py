#!/usr/bin/env python3
"""Questions about hours of tools/scenes/history.py, put to a running service: what is right, what it read, and how long it took.

    tools/evaluation/recall/service.py --out DIR [--parts 0 1 ...] [--at-once 4] [--methods windows oracle ...] [--pace fast|realtime] [--program build/release/bin/vigil]

The 20 scenes of the set in parts of --at-once. Of a part, the videos are drawn (in pieces of five minutes); `vigil run`, with memory and --at-once cameras, sees them to their ends; it is started again
with these cameras off, so that all that is remembered comes from the disk; and `vigil ask` puts 20 questions a scene to it, a method after the other. With --pace fast the service reads as fast as it
answers and drops nothing: what it remembers has the times of the frames, and an hour takes minutes. A part goes on where it was stopped: piece by piece of a video, answer by answer; an hour that was
not seen to its end is seen again.

    windows, compose, exhaustive    `vigil ask --camera` by this method, from the hour's begin to its end
    oracle                          `vigil ask VIDEO`, which computes the 40 s around the last time that it happened (any 40 s where it did not), from the file
    recent, uniform, random         SIX stretches of 40 s, asked one by one of the service (--method exhaustive): the last ones, evenly, or by chance; the best one answers. The service looks at all windows
                                    of the pages that a stretch touches, so that is more than six

A question is asked as one would: "whether" as it stands; "when" as "When did ...?"; "who" as "What is the person wearing?" or "What colour is the car?", with the yes/no question as --about.

DIR/part-N.answers.jsonl holds each answer; DIR/service.json what the table at the end was made of (tables in service_grade.py). What drawing needs is in tools/requirements.txt.
"""

import argparse
import datetime
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

import service_grade  # noqa: E402

SERVICE = ("windows", "compose", "exhaustive")
CONTROLS = ("recent", "uniform", "random")
METHODS = ("windows", "oracle", *CONTROLS, "compose", "exhaustive")
LENGTH, SIX = 40.0, 6
SCENES = 20
CARS = ("car", "stop")


def said_of(question):
    """How the service is asked: the question, and the yes/no question by which windows are found (None: itself)."""
    gate = question.get("gate", question["question"])
    if question["kind"] == "whether":
        return question["question"], None
    if question["kind"] == "when":
        return "When " + gate[0].lower() + gate[1:], gate
    return ("What colour is the car?" if question["rule"] in CARS else "What is the person wearing?"), gate


def starts_of(control, seconds, name):
    """Where the windows begin that a control reads."""
    last = seconds - LENGTH
    if control == "recent":
        return [last - LENGTH * number for number in range(SIX)]
    if control == "uniform":
        return [last * (2 * number + 1) / (2 * SIX) for number in range(SIX)]
    # One in each of as many slots of the length of a window, none twice.
    return [slot * LENGTH for slot in sorted(random.Random(name).sample(range(int(seconds // LENGTH)), SIX))]


def true_window(question, seconds):
    """Where the window of the oracle begins: the last time that it happened in its middle, else anywhere."""
    if not question["windows"]:
        return float(random.Random(question["id"]).randrange(int(seconds - LENGTH)))
    last = question["windows"][-1]
    return min(max((last["from"] + last["to"]) / 2 - LENGTH / 2, 0.0), seconds - LENGTH)


def moment_in(text, begin):
    """The second of the hour that a sentence about a window names first, or None."""
    found = re.search(r"second (\d+)", text)
    return begin + int(found.group(1)) if found else None


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def told(moment):
    return datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lines_of(path):
    """The records of a file of which the last line may have been cut off."""
    records = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return records


def ports(count):
    """Ports of this machine that nobody listens on."""
    held = [socket.socket() for _ in range(count)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    found = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return found


class Service:
    """`vigil run` over some scenes, whose cameras are named after their seeds."""

    def __init__(self, args, folder, scenes):
        self.args, self.folder, self.scenes, self.process = args, folder, scenes, None
        self.alerts, self.replay, self.asks, self.metrics = ports(4)

    def configure(self, watches):
        one = {"name": "person", "prompt": "Is a person present?"}
        cameras = {str(seed): {"url": str((self.args.out / "scenes" / f"{seed}.mp4").resolve()), "enabled": watches, "rules": [one]} for seed in self.scenes}
        if not watches:
            # A service watches at least one camera; this one never comes.
            cameras["nobody"] = {"url": "rtsp://127.0.0.1:9/nobody", "keep": "off", "rules": [one]}
        loopback = "tcp://127.0.0.1:"
        (self.folder / "vigil.yaml").write_text(json.dumps({
            "model": str(Path(self.args.model).resolve()), "engine": {"kv_tokens": 8192 * (len(self.scenes) + 1)}, "cameras": cameras,
            "defaults": {"fps": 2, "window": {"length": "40s", "stride": "8s"}, "pace": self.args.pace, "loop": False, "keep": "168h"},
            "memory": {"enabled": True, "dir": "memory"}, "asks": {"bind": f"{loopback}{self.asks}"}, "metrics": {"listen": f"127.0.0.1:{self.metrics}"},
            "alerts": {"bind": f"{loopback}{self.alerts}", "replay": f"{loopback}{self.replay}", "outbox": "outbox"}, "log": {"level": "warn"}}, indent=1) + "\n")
        return self.folder / "vigil.yaml"

    def start(self, watches):
        path = self.configure(watches)
        # Threads that spin while they wait take the processor from whoever has work on a machine of two cores.
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([self.args.program, "run", "--config", str(path)], stdout=log, stderr=log, env=os.environ | {"OMP_WAIT_POLICY": "passive"})

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()

    def check(self):
        if self.process.poll() is not None:
            raise SystemExit(f"service: vigil run ended: {(self.folder / 'log').read_text()[-2000:]}")

    def figures(self):
        """Sums over all series of some metrics; None while none are told."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=5) as answer:
                page = answer.read().decode()
        except OSError:
            return None
        sums = {}
        for name, figure in re.findall(r"^(vigil_(?:frames_total|frames_dropped_total|windows_total|memory_pages_total))(?:\{[^}]*\})? (\S+)$", page, re.MULTILINE):
            sums[name] = sums.get(name, 0.0) + float(figure)
        return sums

    def run(self, *arguments, timeout="600s"):
        done = subprocess.run([self.args.program, *arguments, "--connect", f"tcp://127.0.0.1:{self.asks}", "--timeout", timeout, "--output", "json"], capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr.strip()}

    def await_cameras(self):
        while True:
            self.check()
            found = self.run("memory", "list", timeout="10s")
            if "failed" not in found:
                return {each["camera"]: each for each in found["cameras"]}
            time.sleep(.2)

    def ask(self, camera, text, about, since, until, method):
        return self.run("ask", "--camera", camera, text, *(("--about", about) if about else ()), "--since", told(since), "--until", told(until), "--method", method)


def records_of(args, drawn):
    """What is true about the scenes, and their questions; written where it is not there."""
    names = drawn / "scenes.json"
    settings = [args.minutes, args.every, args.questions]
    if names.exists():
        kept = json.loads(names.read_text())
        if kept["settings"] != settings:
            raise SystemExit(f"service: {drawn} is of other --minutes, --every or --questions; another --out is needed")
        return [json.loads((drawn / f"{seed}.json").read_text()) for seed in kept["seeds"]]
    from scenes import history  # needs torch

    scenes = list(history.choose(SCENES, args.minutes * 60, args.every))
    for scene in scenes:
        (drawn / f"{scene.seed}.json").write_text(json.dumps(scene.record() | dict(size=history.SIZE, codec=history.CODEC, kbps=history.KBPS, rate=history.RATE, questions=scene.questions(args.questions)), indent=1) + "\n")
    names.write_text(json.dumps(dict(settings=settings, seeds=[scene.seed for scene in scenes])) + "\n")
    return records_of(args, drawn)


def draw(args, drawn, records):
    """Draws the videos that are not there; see history.py."""
    missing = [record["seed"] for record in records if not (drawn / f"{record['seed']}.mp4").exists()]
    if not missing:
        return
    import torch

    from scenes import history

    torch.set_num_threads(1)
    aspect = history.SIZE[0] / history.SIZE[1]
    for seed in missing:
        history.write(history.History(seed, args.minutes * 60, args.every, aspect), drawn / f"{seed}.mp4")


def watch(args, folder, scenes):
    """Has the service see the scenes to their ends; what it took is kept in watched.json."""
    path = folder / "watched.json"
    if path.exists():
        record = json.loads(path.read_text())
        if sorted(record["cameras"]) != sorted(map(str, scenes)):
            raise SystemExit(f"service: {folder} is of other scenes ({', '.join(record['cameras'])}): --at-once has to stay as it was, or another --out is needed")
        return record
    for name in ("memory", "outbox"):
        shutil.rmtree(folder / name, ignore_errors=True)
    # They were about what is forgotten now.
    (folder.parent / f"{folder.name}.answers.jsonl").unlink(missing_ok=True)
    service, begin, load, last = Service(args, folder, scenes), time.time(), [], {}
    service.start(True)
    try:
        # With the files' ends it ends itself.
        while service.process.poll() is None:
            last = service.figures() or last
            load.append(os.getloadavg()[0])
            time.sleep(1)
    except BaseException:
        service.process.kill()
        raise
    if service.process.returncode != 0:
        service.check()
    took = time.time() - begin
    service.start(False)
    try:
        cameras = service.await_cameras()
    finally:
        service.stop()
    lost = [seed for seed in scenes if str(seed) not in cameras]
    if lost:
        raise SystemExit(f"service: nothing is remembered of {lost}: {(folder / 'log').read_text()[-2000:]}")
    record = dict(seconds=took, pace=args.pace, load=sum(load) / max(1, len(load)), figures=last, cameras={str(seed): cameras[str(seed)] for seed in scenes})
    path.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{folder.name}: {len(scenes)} cameras were seen in {took:.0f} s (load {record['load']:.1f}); {last.get('vigil_frames_total', 0):.0f} frames, "
          f"{last.get('vigil_frames_dropped_total', 0):.0f} dropped, {last.get('vigil_windows_total', 0):.0f} windows (a second before the end)", flush=True)
    return record


def ask_file(args, video, text, begin, tokens):
    """`vigil ask` of a stretch of a file: full computation."""
    command = [args.program, "ask", str(video), text, "--model", args.model, "--from", str(begin), "--to", str(begin + LENGTH), "--max-tokens", str(tokens), "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_WAIT_POLICY": "passive"})
    if done.returncode:
        raise SystemExit(f"service: {' '.join(command)} failed: {done.stderr}")
    return json.loads(done.stdout)


def by_oracle(args, record, question):
    seconds, video = record["seconds"], args.out / "scenes" / f"{record['seed']}.mp4"
    begin, (text, about) = true_window(question, seconds), said_of(question)
    answer = dict(probability=ask_file(args, video, about or text, begin, 1)["probability_yes"], evidence=[[begin, begin + LENGTH]], text="", moment=None)
    if question["kind"] == "when":
        # In the words that were trained: the file's answers name seconds, not times of day.
        answer["text"] = ask_file(args, video, question["question"], begin, 48)["answer"]
        answer["moment"] = moment_in(answer["text"], begin)
    elif question["kind"] == "who":
        answer["text"] = ask_file(args, video, text, begin, 48)["answer"]
    return answer


def as_record(told_of, begin):
    """What is kept of an answer of the service; its times are seconds of the scene."""
    if "failed" in told_of:
        return dict(failed=told_of["failed"])
    return dict(probability=told_of["probability"] or 0.0, text=told_of["answer"] or "", moment=when(told_of["moment"]) - begin if told_of["moment"] else None,
                evidence=[[when(each["from"]) - begin, when(each["to"]) - begin] for each in told_of["evidence"]], tokens=told_of["tokens"]["read"], all_tokens=told_of["tokens"]["exhaustive"],
                bytes=sum(told_of["bytes"].values()), seconds=told_of["seconds"], share=told_of["coverage"]["share"], lost=told_of["windows_lost"])


def by_control(service, camera, question, control, begin, end):
    """The best of SIX stretches, each asked whole."""
    text, about = said_of(question)
    answers, best = [], None
    for start in starts_of(control, end - begin, question["id"]):
        # The end of a stretch is another one's begin.
        span = begin + start, begin + start + LENGTH - .05
        answers.append(as_record(service.ask(camera, about or text, None, *span, "exhaustive"), begin))
        if "failed" in answers[-1]:
            return answers[-1]
        if best is None or answers[-1]["probability"] > best[0]["probability"]:
            best = answers[-1], span
    answer = dict(best[0])
    answers.sort(key=lambda each: -each["probability"])
    if about and answer["probability"] > .5:
        words = as_record(service.ask(camera, text, about, *best[1], "exhaustive"), begin)
        answer.update({key: words.get(key) for key in ("text", "moment", "failed") if key in words})
    answer.update(evidence=[window for each in answers for window in each["evidence"]], tokens=sum(each["tokens"] for each in answers), bytes=sum(each["bytes"] for each in answers),
                  seconds={"total": sum(each["seconds"]["total"] for each in answers)})
    return answer


def ask(args, folder, records, watched):
    """Puts what is not answered yet; the records of all answers of the part."""
    path = folder.parent / f"{folder.name}.answers.jsonl"
    answers = lines_of(path)
    known = {(each["id"], each["method"]): each for each in answers}
    left = [(method, record, question) for method in METHODS if method in args.methods for record in records for question in record["questions"] if (question["id"], method) not in known]
    if not left:
        return answers
    service, same = Service(args, folder, [record["seed"] for record in records]), {}
    service.start(False)
    try:
        service.await_cameras()
        # What was cut off is written anew, on a line of its own.
        path.write_text("".join(json.dumps(each) + "\n" for each in answers))
        with open(path, "a", encoding="utf-8") as kept:
            for method, record, question in left:
                camera = str(record["seed"])
                begin = when(watched["cameras"][camera]["from"])
                text, about = said_of(question)
                # The same words about the same hour are answered alike.
                key = (method, camera, text, about) if method in SERVICE else (method, question["id"])
                if key not in same and method in SERVICE:
                    same[key] = as_record(service.ask(camera, text, about, begin, begin + record["seconds"], method), begin)
                elif key not in same:
                    same[key] = by_oracle(args, record, question) if method == "oracle" else by_control(service, camera, question, method, begin, begin + record["seconds"])
                answers.append(dict(id=question["id"], method=method, load=os.getloadavg()[0], **same[key]))
                kept.write(json.dumps(answers[-1]) + "\n")
                kept.flush()
                service.check()
    finally:
        service.stop()
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--program", default="build/release/bin/vigil")
    parser.add_argument("--model", default="models/demo")
    parser.add_argument("--at-once", type=int, default=4, help="cameras of a part")
    parser.add_argument("--parts", type=int, nargs="+", help="these alone; all if left out")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--pace", choices=("fast", "realtime"), default="fast")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--every", type=float, default=120, help="seconds between two events, about")
    parser.add_argument("--questions", type=int, default=20, help="of each scene")
    parser.add_argument("--table", action="store_true", help="the table alone, of what is answered already")
    args = parser.parse_args()
    # Whoever stops this stops the service, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("service: stopped"))
    args.program = str(Path(args.program).resolve())
    begin, drawn = time.time(), args.out / "scenes"
    drawn.mkdir(parents=True, exist_ok=True)
    records, answers, watched = records_of(args, drawn), [], {}
    for part in args.parts if args.parts is not None else range(-(-SCENES // args.at_once)):
        mine, folder = records[part * args.at_once:(part + 1) * args.at_once], args.out / f"part-{part}"
        if args.table:
            answers += lines_of(args.out / f"part-{part}.answers.jsonl")
            watched |= {folder.name: json.loads((folder / "watched.json").read_text())} if (folder / "watched.json").exists() else {}
            continue
        folder.mkdir(exist_ok=True)
        draw(args, drawn, mine)
        watched[folder.name] = watch(args, folder, [record["seed"] for record in mine])
        answers += ask(args, folder, mine, watched[folder.name])
        print(f"{folder.name}: {len(answers)} answers, {(time.time() - begin) / 3600:.2f} h", flush=True)
    asked = {question["id"] for record in records for question in record["questions"]}
    found = [each for each in answers if each["id"] in asked]
    result = service_grade.graded(records, found)
    (args.out / "service.json").write_text(json.dumps(dict(watched=watched, **result), indent=1) + "\n")
    print(service_grade.tables(result))
    print(f"\n{' '.join(sys.argv)}: {(time.time() - begin) / 3600:.2f} h")


if __name__ == "__main__":
    main()
