#!/usr/bin/env python3
"""Questions are put as one would ask them, answers are graded by the hour's seconds, and what was cut off is asked again.    tools/evaluation/recall/test_service.py   (also runs under pytest)"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import types
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

import changes
import service
import service_grade
import service_process

FALL = {"from": 100.0, "to": 103.0, "age": 3497.0, "colours": ["red"]}
BAG = {"from": 3000.0, "to": 3006.0, "age": 594.0, "colours": ["green", "black"]}


def question(kind, *windows, rule="fall", number=0):
    return dict(id=f"7-{number}", kind=kind, rule=rule, question="Did anyone collapse? Explain.", gate="Did anyone collapse?", happened=bool(windows), windows=list(windows))


def answer(probability=.99, **more):
    return dict(dict(id="7-0", method="windows", probability=probability, text="", moment=None, evidence=[[80.0, 120.0]], tokens=100, all_tokens=1000, bytes=50, seconds={"total": 2.0}, load=1.0), **more)


def test_questions_are_put_as_one_would():
    plain = dict(kind="whether", rule="fall", question="Did anyone collapse?")
    assert service.said_of(plain) == ("Did anyone collapse?", None)
    assert service.said_of(question("when")) == ("When did anyone collapse?", "Did anyone collapse?")
    assert service.said_of(question("who")) == ("What is the person wearing?", "Did anyone collapse?")
    assert service.said_of(question("who", rule="stop"))[0] == "What colour is the car?"


def test_controls_read_as_many_windows_within_the_hour():
    busy = np.random.default_rng(1).random(446)
    for control in service.CONTROLS:
        starts = service.starts_of(control, 3600.0, "7-0", 6, busy)
        assert len(set(starts)) == 6 and all(0 <= start <= 3560 for start in starts), control
        apart = sorted(starts)
        assert all(b - a >= 40 for a, b in zip(apart, apart[1:])), control
    assert service.starts_of("recent", 3600.0, "7-0", 3)[0] == 3560
    assert service.starts_of("random", 3600.0, "7-0", 3) == service.starts_of("random", 3600.0, "7-0", 3) != service.starts_of("random", 3600.0, "7-1", 3)
    # Of an hour in which it happened once, the oracle sees that.
    assert service.true_window(question("when", FALL), 3600.0) == 81.5
    assert service.true_window(question("when", {"from": 2.0, "to": 4.0}), 3600.0) == 0 and service.true_window(question("when", {"from": 3590.0, "to": 3599.0}), 3600.0) == 3560
    assert 0 <= service.true_window(question("when"), 3600.0) <= 3560


def test_times_of_the_service_become_seconds_of_the_scene():
    begin = service.when("2026-11-29T10:00:00.500Z")
    assert service_process.told(begin) == "2026-11-29T10:00:00.500Z"
    said = dict(probability=.97, answer="2026-11-29T10:01:42.500Z", moment="2026-11-29T10:01:42.500Z", evidence=[{"from": "2026-11-29T10:01:20.500Z", "to": "2026-11-29T10:02:00.500Z", "score": .97}],
                tokens={"read": 3, "exhaustive": 9}, bytes={"host": 1, "disk": 2}, seconds={"total": 1.5}, coverage={"share": 1.0}, windows_lost=0)
    kept = service.as_record(said, begin)
    assert kept["moment"] == 102 and kept["evidence"] == [[80.0, 120.0]] and kept["scores"] == [.97] and kept["bytes"] == 3 and kept["tokens"] == 3
    assert service.as_record({"failed": "too_late"}, begin) == {"failed": "too_late"}
    assert service.moment_in("Yes. A person in red falls at second 12.", 80.0) == 92 and service.moment_in("No.", 80.0) is None


def test_answers_are_graded():
    grade = service_grade.right
    assert grade(question("whether", FALL), answer()) and not grade(question("whether", FALL), answer(.9)) and not grade(question("whether"), answer())
    # Nobody is sure between: that is neither right nor falsely "Yes".
    assert [service_grade.verdict(answer(p)) for p in (.953, .952, .5, .499)] == ["yes", "unsure", "unsure", "no"]
    assert grade(question("whether"), answer(.2)) and not grade(question("whether"), answer(.7))
    assert grade(question("when", FALL, BAG), answer(moment=107.9)) and grade(question("when", FALL, BAG), answer(moment=2996.0))
    assert not grade(question("when", FALL, BAG), answer(moment=108.1)) and not grade(question("when", FALL), answer(moment=None))
    assert grade(question("who", FALL), answer(text="The person is in red.")) and not grade(question("who", FALL), answer(text="The person is in blue."))
    # Of whom the window shows, not of another time; of a bag, its owner; of whole words.
    assert not grade(question("who", FALL, BAG), answer(text="The person is in green.")) and not grade(question("who", FALL), answer(text="The person is reddish."))
    assert grade(question("who", BAG), answer(text="The person is in green.", evidence=[[2980.0, 3020.0]]))
    assert not grade(question("whether", FALL), dict(id="7-0", method="windows", failed="too_late", load=1.0)) and not grade(question("whether"), dict(id="7-0", method="windows", failed="too_late", load=1.0))
    # Two seconds of it, or all, are seen.
    assert service_grade.holds([[101.0, 141.0]], FALL) and not service_grade.holds([[101.5, 141.5]], FALL) and service_grade.holds([[0, 40], [100.5, 140.0]], {"from": 101.0, "to": 101.5})


def test_tables_count_what_was_asked():
    questions = [question("whether", FALL), question("whether", number=1), question("when", BAG, number=2), question("who", *[dict(FALL)] * 5, number=3)]
    records = [dict(seed=7, seconds=3600.0, questions=questions)]
    answers = [answer(), answer(.99, id="7-1"), answer(id="7-2", moment=3001.0), answer(id="7-3", text="in red"), dict(id="7-0", method="exhaustive", failed="too_late", load=1.0)]
    result = service_grade.graded(records, answers)
    windows = result["methods"]["windows"]
    assert windows["right"]["hits"] == 3 and windows["right"]["of"] == 4 and windows["false_yes"]["hits"] == windows["false_yes"]["of"] == 1 and windows["yes"]["share"] == 1
    # The bag's window was not among those that were read; what happened often does not count by its times.
    assert windows["found"]["hits"] == 2 and windows["found"]["of"] == 3
    assert [(each["hits"], each["of"]) for each in windows["thirds"]] == [(0, 1), (0, 0), (1, 1)]
    assert windows["tokens"] == .1 and windows["moments"] == dict(of=1, within_2=1, within_5=1)
    assert result["methods"]["exhaustive"]["failed"] == 1 and result["methods"]["exhaustive"]["right"]["hits"] == 0
    # Bytes are compared where both were asked.
    assert windows["bytes"] is None
    both = service_grade.graded(records, [*answers, answer(id="7-1", method="exhaustive", bytes=400)])["methods"]
    assert both["windows"]["bytes"] == dict(share=.125, of=1) and both["exhaustive"]["bytes"] == dict(share=1, of=1)
    assert "| `windows` | 4 | 0.750" in service_grade.tables(result) and "| `exhaustive` | 1 | 0.000" in service_grade.tables(result)


def test_ways_and_intervals_over_scenes():
    # Of two scenes, in one of which nobody is ever right: the controls have 1 of 4, the oracle 3 of 4.
    def by(*rights):
        return {1: dict(zip("ab", rights[:2])), 2: dict(zip("cd", rights[2:]))}

    right = {"windows": by(1, 1, 0, 0), "oracle": by(1, 1, 1, 0), "random": by(0, 0, 0, 0), "recent": by(1, 0, 0, 0)}
    found = service_grade.gap(right)
    assert found["share"] == .5 and found["control"] == "recent" and found["of"] == 4 and found["interval"][0] < .5 < found["interval"][1]
    # What one of them was not asked does not count; a way of no length is none; nor is one without an oracle or a control.
    assert service_grade.gap(dict(right, random={1: {"b": 0}}))["of"] == 1
    assert service_grade.gap(dict(right, oracle=right["recent"])) is None and service_grade.gap({"windows": by(1, 1, 1, 1), "random": by(1, 1, 1, 1)}) is None
    assert service_grade.gap({"windows": by(1, 1, 1, 1), "oracle": by(1, 1, 1, 1)}) is None and service_grade.gap({}) is None
    assert service_grade.resampled([[1, 1], [0, 0]]) == [0, 1] and service_grade.resampled([[1, 0]] * 9) == [.5, .5]
    assert service_grade.resampled([[1, 1]]) is None and service_grade.resampled([]) is None and service_grade.resampled([[1], []]) is None


def test_tables_say_what_controls_read():
    questions = [question("whether", FALL), question("whether", number=1)]
    answers = [answer(), answer(method="uniform", tokens=300), answer(id="7-1", method="uniform", tokens=7), answer(method="clusters", evidence=[], device="cuda")]
    result = service_grade.graded([dict(seed=7, seconds=3600.0, questions=questions)], answers)
    methods = result["methods"]
    # Of what both were asked alone. Of what tells of no windows, none is said to be missed.
    assert methods["uniform"]["tokens_beside"] == 3 and methods["uniform"]["tokens"] is None and methods["windows"]["tokens_beside"] == 1
    assert [each["of"] for each in (methods["clusters"]["found"], *methods["clusters"]["thirds"])] == [0] * 4 and methods["uniform"]["found"]["of"] == 1 and methods["uniform"]["thirds"][2]["of"] == 1
    assert methods["clusters"]["devices"] == ["cuda"] and methods["windows"]["devices"] == ["cpu"]
    table = service_grade.tables(result)
    assert "| `uniform` | 1.000 (0.207 to 1.000) |  |  |  | 1.000 (0.207 to 1.000) of 1 |" in table and "| `uniform` |  | 3.00 |" in table
    assert service_grade.tables(service_grade.graded([], []))


def pictures(count, move=(), flicker=False):
    """Grey pictures, in which in these seconds a block stands in a corner; with a place that always flickers."""
    for number in range(count * changes.RATE):
        picture = np.full((changes.HEIGHT, changes.WIDTH, 3), 90, np.uint8)
        if flicker:
            picture[:56, :56] = 255 * (number // 2 % 2)
        if number // changes.RATE in move:
            picture[112:, 224:] = 180
        yield picture


def test_what_changes_most_is_where_something_comes():
    busy = changes.busiest(changes.stands(pictures(240, range(130, 136), flicker=True)))
    # 25 windows of 40 s begin within 200 s, one every 8 s.
    assert len(busy) == 26 and {130 // 8 - 4 <= start / 8 <= 130 // 8 for start in changes.starts(busy, 1)} == {True}
    # Without anything that comes, what flickers is usual, and all are alike.
    calm = changes.busiest(changes.stands(pictures(240, flicker=True)))[4:]
    assert calm.max() < busy.max() / 2 and calm.max() < 1.2 * calm.min()
    # Apart by a length, as many as there is room for; the busiest first.
    assert changes.starts([0, 0, 5, 4, 0, 0, 0, 3, 0], 9) == [16, 56] and changes.starts([1, 2], 3) == [8] and changes.starts([1, 1, 1], 1) == [0]
    # A picture that is one too many is left out.
    odd = [next(pictures(1)) for _ in range(5)]
    assert changes.stands(odd).shape == (2, 60)


def test_ports_are_free_and_apart():
    with socket.socket() as held:
        port, = service_process.ports(1, 333)
        held.bind(("127.0.0.1", port))
        held.listen()
        found = service_process.ports(3, 333)
    assert port not in found and len(set(found)) == 3 and all(each < 32768 for each in found)


@contextlib.contextmanager
def world(methods="windows,compose,exhaustive"):
    """A set of two scenes, 7 and 8, that are drawn, and a program that answers; yields how service.py is run there."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "fake").mkdir()
        (here / "fake" / "methods").write_text(methods)
        scenes = here / "out" / "scenes"
        scenes.mkdir(parents=True)
        (scenes / "scenes.json").write_text(json.dumps(dict(settings=[60, 120, 20], seeds=[7, 8])))
        for seed in (7, 8):
            # Two in the same words.
            asked = [dict(question(kind, FALL), id=f"{seed}-{number}") for number, kind in enumerate(("whether", "whether", "when"))]
            (scenes / f"{seed}.json").write_text(json.dumps(dict(seed=seed, seconds=3600.0, questions=asked)))
            (scenes / f"{seed}.mp4").touch()
            (scenes / f"{seed}.changed.json").write_text(json.dumps([0.0] * 100 + [1.0] + [0.0] * 345))

        def run(*more, out="out"):
            program = f"{sys.executable} {Path(__file__).resolve().parent / 'fake_vigil.py'}"
            command = [sys.executable, service.__file__, "--out", str(here / out), "--program", program, "--at-once", "1", "--stretches", "3", "--pack", str(here / "pack.tar.gz"), "--deadline", "1000", *more]
            # The leader of a group of its own is told when its time is over.
            process = subprocess.Popen(command, env=os.environ | {"FAKE": str(here / "fake")}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
            try:
                out_text, error_text = process.communicate(timeout=60)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            return subprocess.CompletedProcess(command, process.returncode, out_text, error_text)

        yield here, run


def answers_in(out):
    return [each for path in sorted(out.glob("part-*.answers.jsonl")) for each in service.lines_of(path)]


def lines(here, name):
    return service.lines_of(here / "fake" / name)


def test_what_is_stopped_in_time_goes_on():
    with world() as (here, run):
        (here / "fake" / "stop").write_text("exhaustive")
        methods = "--methods", "windows", "oracle", "changed", "uniform"
        done = run(*methods, "--device", "cuda", "--parts", "0")
        assert done.returncode == service.GONE_ON and "--deadline has passed" in done.stdout and "| `oracle` | 3 |" in done.stdout, done
        # No service is left behind, and what there was by then was kept.
        assert not list((here / "fake").glob("up-*")) and [each["method"] for each in answers_in(here / "out")] == ["windows"] * 3 + ["oracle"] * 3
        before = len([each for each in lines(here, "asked") if each.get("method") == "windows"])
        # Stretches are asked at once: of the first question's three, as many as had begun when it was stopped.
        stopped = [each for each in lines(here, "asked") if each.get("method") == "exhaustive"]
        assert 1 <= len(stopped) <= 3
        (here / "fake" / "stop").unlink()
        done = run(*methods, "--device", "cuda", "--parts", "0")
        assert done.returncode == 0, done
        answers, asked = answers_in(here / "out"), lines(here, "asked")
        assert sorted((each["id"], each["method"]) for each in answers) == sorted((f"7-{number}", method) for number in range(3) for method in methods[1:])
        # Two questions in the same words are one: windows are asked twice, and not again; a stretch is looked at once for the same words, and the best one for a moment.
        assert before == 2 == len([each for each in asked if each.get("method") == "windows"])
        since = [each["since"] for each in asked if each.get("method") == "exhaustive"][len(stopped) :]
        assert len(since) == 2 * (3 + 3 + 1) and since.count("2026-11-29T10:13:20.000Z") == 3, since
        assert {each.get("stretches") for each in answers if each["method"] in service.CONTROLS} == {3} and not [each for each in answers if each["method"] == "oracle" and "stretches" in each]
        # On which device, the service, the oracle and the records say.
        assert {each["device"] for each in (*answers, *lines(here, "ran"), *(each for each in asked if "video" in each))} == {"cuda"}
        assert json.loads((here / "out" / "part-0" / "watched.json").read_text())["device"] == "cuda"
        # Nobody mixes controls of other lengths.
        done = run(*methods, "--parts", "0", "--stretches", "6")
        assert done.returncode == 1 and "--stretches" in done.stderr and answers_in(here / "out") == answers


def test_parts_are_asked_at_once():
    with world() as (here, run):
        (here / "fake" / "stop").write_text("compose")
        done = run("--methods", "windows", "compose", "--jobs", "2")
        # Each part had a process and a service, and none is left.
        assert done.returncode == service.GONE_ON and not list((here / "fake").glob("up-*")), done
        (here / "fake" / "stop").unlink()
        done = run("--methods", "windows", "compose", "--jobs", "2")
        assert done.returncode == 0 and "2 scenes" in done.stdout, done
        found = [(each["id"], each["method"]) for each in answers_in(here / "out")]
        assert sorted(found) == sorted((f"{seed}-{number}", method) for seed in (7, 8) for number in range(3) for method in ("windows", "compose"))
        # All is answered: nobody is started, and nothing is drawn.
        ran = lines(here, "ran")
        (here / "out" / "scenes" / "7.mp4").unlink()
        assert run("--methods", "windows", "compose", "--jobs", "2").returncode == 0 and lines(here, "ran") == ran


def test_a_part_that_goes_wrong_does_not_stop_others():
    with world() as (here, run):
        (here / "fake" / "broken").write_text("8")
        done = run("--methods", "windows", "--jobs", "2")
        assert done.returncode == 1 and "went wrong: part 1" in done.stderr and "part 0" not in done.stderr.split("went wrong")[1], done
        assert [each["id"] for each in answers_in(here / "out")] == ["7-0", "7-1", "7-2"] and (here / "pack.tar.gz").exists()


def test_a_pack_goes_on_elsewhere():
    with world() as (here, run):
        assert run("--methods", "windows", "--parts", "0").returncode == 0
        (here / "out" / "part-0" / "outbox").mkdir(exist_ok=True)
        with tarfile.open(here / "pack.tar.gz") as tar:
            assert sorted(tar.getnames()) == ["part-0.answers.jsonl", "part-0/log", "part-0/watched.json", *(f"scenes/{name}.json" for name in ("7.changed", "7", "8.changed", "8", "scenes")), "service.json"]
            tar.extractall(here / "there", filter="data")
        (here / "there" / "scenes" / "7.mp4").touch()
        kept = answers_in(here / "there")
        # Stopped while it sees, with a part of it remembered, it sees again.
        (here / "fake" / "stop").write_text("see")
        assert run("--methods", "windows", "compose", "--parts", "0", out="there").returncode == service.GONE_ON
        (here / "fake" / "stop").unlink()
        assert run("--methods", "windows", "compose", "--parts", "0", out="there").returncode == 0
        assert [each["watches"] for each in lines(here, "ran")].count(True) == 3
        found = answers_in(here / "there")
        assert found[:3] == kept and [each["method"] for each in found] == ["windows"] * 3 + ["compose"] * 3
        assert json.loads((here / "there" / "part-0" / "watched.json").read_text())["times"] == 2
        # What is remembered now is asked, not seen anew.
        assert run("--methods", "windows", "compose", "exhaustive", "--parts", "0", out="there").returncode == 0
        assert [each["watches"] for each in lines(here, "ran")].count(True) == 3


def test_the_oracle_speaks_where_it_is_sure():
    with world() as (here, run):
        assert run("--methods", "oracle").returncode == 0
        asked = lines(here, "asked")
        # Of 7, which it affirms, a sentence for "when"; of 8, none.
        assert [len([each for each in asked if each["video"] == f"{seed}.mp4"]) for seed in (7, 8)] == [4, 3]
        assert [each["moment"] for each in answers_in(here / "out")] == [None, None, 86.5, None, None, None]


def test_methods_are_those_that_the_program_has():
    with world("windows,clusters,compose,rekv,exhaustive") as (here, run):
        assert run("--parts", "0").returncode == 0
        assert list(dict.fromkeys(each["method"] for each in answers_in(here / "out"))) == list(service.METHODS)
    with world() as (here, run):
        assert run("--parts", "0").returncode == 0
        assert "clusters" not in {each["method"] for each in answers_in(here / "out")}
        done = run("--parts", "0", "--methods", "clusters")
        assert done.returncode == 2 and "no method clusters" in done.stderr
        done = run("--program", "no/such/program")
        assert done.returncode == 1 and "no program no/such/program" in done.stderr


def test_a_part_stays_of_its_scenes():
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "watched.json").write_text(json.dumps(dict(cameras={"7": {}, "8": {}})))
        (Path(folder) / "memory").mkdir()
        assert list(service.watch(None, Path(folder), [7, 8])["cameras"]) == ["7", "8"]
        try:
            service.watch(None, Path(folder), [7, 8, 9])
        except SystemExit as error:
            assert "--at-once" in str(error)
        else:
            raise AssertionError("a part of other scenes was taken")


def test_that_nobody_knows_is_an_answer():
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text('import sys\nprint(\'{"answer": null}\')\nprint("why", file=sys.stderr)\nsys.exit(int(sys.argv[1]))\n')
        asked = service_process.Service(types.SimpleNamespace(program=[sys.executable, str(program)]), Path(folder), [])
        asked.asks = 1
        assert asked.run_all([("3",), ("0",), ("1",)]) == [{"answer": None}, {"answer": None}, {"failed": "why"}]


def test_what_was_cut_off_is_not_kept():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonl"
        assert service.lines_of(path) == []
        path.write_text(json.dumps(answer()) + "\n" + json.dumps(answer())[:40])
        assert service.lines_of(path) == [answer()]


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name)
