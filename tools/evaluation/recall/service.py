#!/usr/bin/env python3
"""Questions about hours of tools/scenes/history.py, put to a running service: what is right, what it read, and how long it took.

    tools/evaluation/recall/service.py --out DIR [--parts 0 1 ...] [--at-once 4] [--methods windows oracle ...] [--pace fast|realtime] [--program build/release/bin/vigil]
                                       [--device cpu|cuda] [--stretches 3] [--jobs 1] [--deadline SECONDS] [--pack FILE] [--draw]

The 20 scenes of the set in parts of --at-once. Of a part, the videos are drawn (in pieces of five minutes); `vigil run`, with memory and --at-once cameras, sees them to their ends; it is started again
with these cameras off, so that all that is remembered comes from the disk; and `vigil ask` puts 20 questions a scene to it, a method after the other. With --pace fast the service reads as fast as it
answers and drops nothing: what it remembers has the times of the frames, and an hour takes minutes. A part goes on where it was stopped: piece by piece of a video, answer by answer; an hour that was
not seen to its end is seen again.

    windows, compose, exhaustive    `vigil ask --camera` by this method, from the hour's begin to its end; clusters and rekv, too, if the program has them (left out else)
    oracle                          `vigil ask VIDEO`, which computes the 40 s around the last time that it happened (any 40 s where it did not), from the file
    recent, uniform, random,        --stretches of 40 s, each asked of the service by itself, up to four at once (--method exhaustive): the last ones, evenly, by chance, or those that change most (changes.py); the best one
    changed                         answers. The service looks at all windows of the pages that a stretch touches. Eight of them read 3.1 times the tokens that `windows` reads of the twenty scenes: three
                                    are the fewest that do not read less, by that

A question is asked as one would: "whether" as it stands; "when" as "When did ...?"; "who" as "What is the person wearing?" or "What colour is the car?", with the yes/no question as --about.

With --jobs, so many scenes are drawn at once, then so many parts are seen and asked at once, each by a process and a service of its own. After --deadline seconds all of them are stopped, and the program
ends with status 75, with the table of what is answered by then; the same command goes on. --pack writes what cannot be had again as one tar: answers, what was watched, the scenes' records and logs, neither
videos nor what is remembered. Unpacked as another --out it goes on from there: what is asked about yet is drawn and seen again, answers stay.

DIR/part-N.answers.jsonl holds each answer, and on which kind of --device; DIR/service.json what the table at the end was made of (tables in service_grade.py). What drawing needs is in
tools/requirements.txt; DIR/scenes/SEED.drawn.json says on what it was drawn.
"""

import argparse
import concurrent.futures
import contextlib
import datetime
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

import changes  # noqa: E402
import service_grade  # noqa: E402
from at_once import at_once  # noqa: E402
from service_grade import CONTROLS  # noqa: E402
from service_process import Service, methods_of, program_of  # noqa: E402

SERVICE = ("windows", "clusters", "compose", "rekv", "exhaustive")
METHODS = ("windows", "oracle", *CONTROLS, "rekv", "clusters", "compose", "exhaustive")
LENGTH, STRETCHES = 40.0, 3
AT_ONCE = 4  # stretches of a question at once: as many as a service answers
SCENES = 20
CARS = ("car", "stop")
GONE_ON = 75  # the status of what is to be started again


class TimeIsOver(Exception):
    """--deadline has passed."""


def said_of(question):
    """How the service is asked: the question, and the yes/no question by which windows are found (None: itself)."""
    gate = question.get("gate", question["question"])
    if question["kind"] == "whether":
        return question["question"], None
    if question["kind"] == "when":
        return "When " + gate[0].lower() + gate[1:], gate
    return ("What colour is the car?" if question["rule"] in CARS else "What is the person wearing?"), gate


def starts_of(control, seconds, name, count, busy=None):
    """Where the `count` stretches begin that a control reads; `busy`: how much each window changes, for `changed`."""
    last = seconds - LENGTH
    if control == "recent":
        return [last - LENGTH * number for number in range(count)]
    if control == "uniform":
        return [last * (2 * number + 1) / (2 * count) for number in range(count)]
    if control == "changed":
        return changes.starts(busy, count)
    # One in each of as many slots of the length of a window, none twice.
    return [slot * LENGTH for slot in sorted(random.Random(name).sample(range(int(seconds // LENGTH)), count))]


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


def lines_of(path):
    """The records of a file of which the last line may have been cut off."""
    records = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return records


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


def draw_one(args, drawn, seed):
    """Draws a scene's video, and tells on what."""
    import torch

    from scenes import history

    torch.set_num_threads(1)
    begin = time.time()
    history.write(history.History(seed, args.minutes * 60, args.every, history.SIZE[0] / history.SIZE[1]), drawn / f"{seed}.mp4")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if "changed" in args.methods:
        busy_of(drawn, seed)
    (drawn / f"{seed}.drawn.json").write_text(json.dumps(dict(device=device, torch=torch.__version__, seconds=time.time() - begin)) + "\n")
    print(f"{seed}: drawn on {device} in {time.time() - begin:.0f} s", flush=True)


def draw(args, drawn, records):
    """Draws the videos that are not there, --jobs at once; see history.py."""
    missing = [(args, drawn, record["seed"]) for record in records if not (drawn / f"{record['seed']}.mp4").exists()]
    if args.jobs > 1 and len(missing) > 1:
        failed = at_once(draw_one, missing, args.jobs)
        if failed:
            raise SystemExit(f"service: not drawn: {', '.join(str(seed) for _, _, seed in failed)}")
        return
    for each in missing:
        draw_one(*each)


def busy_of(drawn, seed):
    """How much each window of a scene's video changes; kept beside it."""
    path = drawn / f"{seed}.changed.json"
    if not path.exists():
        busy = changes.busiest(changes.stands(changes.pictures(drawn / f"{seed}.mp4")))
        path.write_text(json.dumps([round(float(each), 6) for each in busy]) + "\n")
    return json.loads(path.read_text())


def watch(args, folder, scenes):
    """Has the service see the scenes to their ends; what it took is kept in watched.json."""
    path, under_way, times = folder / "watched.json", folder / "under_way", 0
    if path.exists():
        record = json.loads(path.read_text())
        if sorted(record["cameras"]) != sorted(map(str, scenes)):
            raise SystemExit(f"service: {folder} is of other scenes ({', '.join(record['cameras'])}): --at-once has to stay as it was, or another --out is needed")
        if (folder / "memory").exists() and not under_way.exists():
            return record
        # Of a pack. Answers are of the scenes' own seconds, and stay.
        times = record.get("times", 1)
    else:
        # They were about what is forgotten now.
        (folder.parent / f"{folder.name}.answers.jsonl").unlink(missing_ok=True)
    for name in ("memory", "outbox"):
        shutil.rmtree(folder / name, ignore_errors=True)
    under_way.touch()
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
    record = dict(seconds=took, pace=args.pace, device=args.device, times=times + 1, load=sum(load) / max(1, len(load)), figures=last, cameras={str(seed): cameras[str(seed)] for seed in scenes})
    path.write_text(json.dumps(record, indent=1) + "\n")
    under_way.unlink()
    print(f"{folder.name}: {len(scenes)} cameras were seen in {took:.0f} s (load {record['load']:.1f}); {last.get('vigil_frames_total', 0):.0f} frames, "
          f"{last.get('vigil_frames_dropped_total', 0):.0f} dropped, {last.get('vigil_windows_total', 0):.0f} windows (a second before the end)", flush=True)
    return record


def ask_file(args, video, text, begin, tokens):
    """`vigil ask` of a stretch of a file: full computation."""
    command = [*args.program, "ask", str(video), text, "--model", args.model, "--device", args.device, "--from", str(begin), "--to", str(begin + LENGTH), "--max-tokens", str(tokens), "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"OMP_WAIT_POLICY": "passive"})
    if done.returncode:
        raise SystemExit(f"service: {shlex.join(command)} failed: {done.stderr}")
    return json.loads(done.stdout)


def by_oracle(args, record, question):
    seconds, video = record["seconds"], args.out / "scenes" / f"{record['seed']}.mp4"
    begin, (text, about) = true_window(question, seconds), said_of(question)
    answer = dict(probability=ask_file(args, video, about or text, begin, 1)["probability_yes"], evidence=[[begin, begin + LENGTH]], text="", moment=None)
    if answer["probability"] <= .5:
        return answer
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
                evidence=[[when(each["from"]) - begin, when(each["to"]) - begin] for each in told_of["evidence"]], scores=[each["score"] for each in told_of["evidence"]],
                tokens=told_of["tokens"]["read"], all_tokens=told_of["tokens"]["exhaustive"], bytes=sum(told_of["bytes"].values()), seconds=told_of["seconds"], share=told_of["coverage"]["share"], gaps=gaps_of(told_of["coverage"]), lost=told_of["windows_lost"])


def processors_of(args):
    return (os.cpu_count() or 1) // args.jobs


def gaps_of(coverage):
    """Seconds that are not remembered, by why."""
    gaps = {}
    for each in coverage.get("gaps", ()):
        gaps[each["why"]] = gaps.get(each["why"], 0.0) + when(each["to"]) - when(each["from"])
    return gaps


def by_control(args, service, record, question, control, begin, same):
    """The best of some stretches, each asked whole; `same` holds what has been asked already."""
    camera, seconds, (text, about) = str(record["seed"]), record["seconds"], said_of(question)

    def asked(words, starts):
        new, most = [start for start in starts if (camera, words, start) not in same], max(1, min(AT_ONCE, processors_of(args)))
        for first in range(0, len(new), most):
            some = new[first:first + most]
            # The end of a stretch is another one's begin.
            told_of = service.ask_spans(camera, words, None, [(begin + start, begin + start + LENGTH - .05) for start in some], "exhaustive")
            same.update({(camera, words, start): as_record(each, begin) for start, each in zip(some, told_of)})
        return [same[camera, words, start] for start in starts]

    busy = busy_of(args.out / "scenes", record["seed"]) if control == "changed" else None
    starts = starts_of(control, seconds, question["id"], args.stretches, busy)
    answers = asked(about or text, starts)
    for answer in answers:
        if "failed" in answer:
            return answer
    best = max(zip(answers, starts), key=lambda pair: pair[0]["probability"])
    answer = dict(best[0])
    answers.sort(key=lambda each: -each["probability"])
    if about and answer["probability"] > .5:
        words = asked(text, [best[1]])[0]
        answer.update({key: words.get(key) for key in ("text", "moment", "failed") if key in words})
    answer.update(evidence=[window for each in answers for window in each["evidence"]], tokens=sum(each["tokens"] for each in answers), bytes=sum(each["bytes"] for each in answers),
                  seconds={"total": sum(each["seconds"]["total"] for each in answers)})
    return answer


def answered(args, service, watched, method, asked):
    """The answers by a method to pairs of a record and a question, one by one."""
    if method == "oracle":
        # Each is a program that reads the model first; as many at once as this part has processors.
        with concurrent.futures.ThreadPoolExecutor(max(1, processors_of(args))) as pool:
            try:
                yield from pool.map(lambda pair: by_oracle(args, *pair), asked)
            finally:
                pool.shutdown(cancel_futures=True)
        return
    # The same words about the same hour, or stretch of it, are answered alike.
    same = {}
    for record, question in asked:
        camera, (text, about) = str(record["seed"]), said_of(question)
        begin = when(watched["cameras"][camera]["from"])
        if method in CONTROLS:
            yield by_control(args, service, record, question, method, begin, same)
            continue
        if (camera, text, about) not in same:
            same[camera, text, about] = as_record(service.ask(camera, text, about, begin, begin + record["seconds"], method), begin)
        yield same[camera, text, about]


def left_of(args, records, answers):
    """For each method, what is not answered yet: pairs of a record and a question."""
    others = {each.get("stretches", 6) for each in answers if each["method"] in CONTROLS} - {args.stretches}
    if others:
        raise SystemExit(f"service: answers of controls are of {', '.join(map(str, sorted(others)))} stretches: --stretches has to stay as it was, or another --out is needed")
    known = {(each["id"], each["method"]) for each in answers}
    left = {method: [(record, question) for record in records for question in record["questions"] if (question["id"], method) not in known] for method in METHODS if method in args.methods}
    return {method: asked for method, asked in left.items() if asked}


def ask(args, folder, records, watched):
    """Puts what is not answered yet."""
    path = folder.parent / f"{folder.name}.answers.jsonl"
    answers = lines_of(path)
    left = left_of(args, records, answers)
    service = Service(args, folder, [record["seed"] for record in records])
    service.start(False)
    try:
        service.await_cameras()
        # What was cut off is written anew, on a line of its own.
        path.write_text("".join(json.dumps(each) + "\n" for each in answers))
        with open(path, "a", encoding="utf-8") as kept:
            for method, asked in left.items():
                stretches = dict(stretches=args.stretches) if method in CONTROLS else {}
                with contextlib.closing(answered(args, service, watched, method, asked)) as found:
                    for (_, question), answer in zip(asked, found):
                        kept.write(json.dumps(dict(id=question["id"], method=method, device=args.device, **stretches, load=os.getloadavg()[0], **answer)) + "\n")
                        kept.flush()
                        service.check()
    finally:
        service.stop()


def folder_of(args, part):
    return args.out / f"part-{part}"


def answers_of(args, part):
    return lines_of(args.out / f"part-{part}.answers.jsonl")


def do_part(args, part, mine):
    """Draws, sees and asks what is left of a part; `mine`: the records of its scenes."""
    if not left_of(args, mine, answers_of(args, part)):
        return
    begin, folder = time.time(), folder_of(args, part)
    folder.mkdir(exist_ok=True)
    draw(args, args.out / "scenes", mine)
    ask(args, folder, mine, watch(args, folder, [record["seed"] for record in mine]))
    print(f"{folder.name}: {len(answers_of(args, part))} answers, {(time.time() - begin) / 3600:.2f} h", flush=True)


def do_parts(args, parts):
    """All parts, --jobs at once; `parts`: number and records of each. Those that went wrong."""
    if args.draw or args.jobs > 1:
        # Of what is all answered, nothing is drawn.
        draw(args, args.out / "scenes", [record for part, mine in parts if left_of(args, mine, answers_of(args, part)) for record in mine])
    if args.draw:
        return []
    if args.jobs > 1:
        return [part for _, part, _ in at_once(do_part, [(args, part, mine) for part, mine in parts], args.jobs)]
    for part, mine in parts:
        do_part(args, part, mine)
    return []


def pack(out, path):
    """What cannot be had again, or not soon, as a tar; never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [*out.glob("part-*.answers.jsonl"), *out.glob("part-*/watched.json"), *out.glob("part-*/log"), *(out / "scenes").glob("*.json"), *out.glob("service.json")]
    half = path.with_suffix(".half")
    with tarfile.open(half, "w:gz") as tar:
        for name in sorted(names):
            tar.add(name, name.relative_to(out))
    half.replace(path)


def over(*_):
    raise TimeIsOver


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--program", default="build/release/bin/vigil", help="a command; it may have several words")
    parser.add_argument("--model", default="models/demo")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="what the service and the oracle compute on; drawing takes a GPU that is there")
    parser.add_argument("--at-once", type=int, default=4, help="cameras of a part")
    parser.add_argument("--parts", type=int, nargs="+", help="these alone; all if left out")
    parser.add_argument("--jobs", type=int, default=1, help="parts that are asked, and scenes that are drawn, at once")
    parser.add_argument("--deadline", type=float, metavar="SECONDS", help="stop by then; the same command goes on")
    parser.add_argument("--pack", type=Path, metavar="FILE", help="write answers and what they are about as one .tar.gz")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="all that the program has if left out")
    parser.add_argument("--stretches", type=int, default=STRETCHES, help="that a control reads")
    parser.add_argument("--pace", choices=("fast", "realtime"), default="fast")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--every", type=float, default=120, help="seconds between two events, about")
    parser.add_argument("--questions", type=int, default=20, help="of each scene")
    parser.add_argument("--draw", action="store_true", help="the videos alone")
    parser.add_argument("--table", action="store_true", help="the table alone, of what is answered already")
    args = parser.parse_args()
    if args.jobs < 1 or args.at_once < 1 or args.stretches < 1:
        parser.error("--jobs, --at-once and --stretches are at least 1")
    if not args.table and not args.draw:
        args.program = program_of(args.program)
        known = methods_of(args.program)
        missing = [method for method in SERVICE if method not in known]
        args.methods = args.methods or [method for method in METHODS if method not in missing]
        if set(missing) & set(args.methods):
            parser.error(f"{shlex.join(args.program)} has no method {', '.join(sorted(set(missing) & set(args.methods)))}")
    args.methods = args.methods or METHODS
    return args


def main():
    args = arguments()
    # Whoever stops this stops the services, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("service: stopped"))
    signal.signal(signal.SIGALRM, over)
    begin, drawn, failed, in_time = time.time(), args.out / "scenes", [], True
    drawn.mkdir(parents=True, exist_ok=True)
    records = records_of(args, drawn)
    parts = [(part, records[part * args.at_once:(part + 1) * args.at_once]) for part in (args.parts if args.parts is not None else range(-(-len(records) // args.at_once)))]
    try:
        if args.deadline:
            signal.setitimer(signal.ITIMER_REAL, max(.001, begin + args.deadline - time.time()))
        if not args.table:
            failed = do_parts(args, parts)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except TimeIsOver:
        in_time = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if not args.draw:
            tell(args, records, [part for part, _ in parts])
        if args.pack:
            pack(args.out, args.pack)
    print(f"\n{shlex.join(sys.argv)}: {(time.time() - begin) / 3600:.2f} h{'' if in_time else '; not all: --deadline has passed'}", flush=True)
    if failed:
        raise SystemExit(f"service: went wrong: {', '.join(f'part {part}' for part in failed)}")
    return 0 if in_time else GONE_ON


def tell(args, records, parts):
    """The table of what is answered of some parts, and what it is made of."""
    answers, watched = [], {}
    for part in parts:
        answers += answers_of(args, part)
        path = folder_of(args, part) / "watched.json"
        watched |= {folder_of(args, part).name: json.loads(path.read_text())} if path.exists() else {}
    asked = {question["id"] for record in records for question in record["questions"]}
    result = service_grade.graded(records, [each for each in answers if each["id"] in asked])
    (args.out / "service.json").write_text(json.dumps(dict(watched=watched, **result), indent=1) + "\n")
    print(service_grade.tables(result), flush=True)


if __name__ == "__main__":
    sys.exit(main())
