#!/usr/bin/env python3
"""vigil run remembers what cameras saw: asked while it runs, after a restart, after kills, after erasures, with keys, and with parts that are damaged.

  memory_test.py VIGIL MODEL OTHER_MODEL PERSON_VIDEO CAR_VIDEO

On a GPU with VIGIL_TEST_DEVICE=cuda in the environment.
"""

import collections
import datetime
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_ports import free_ports  # noqa: E402

PATIENCE = 120
# Of kv::Form, which are those on the disk.
FP8, INT4, EMBEDDINGS, SKETCH = 1, 2, 3, 4

# A value as it lies in a part: where its record begins, its payload, and whose it is.
Record = collections.namedtuple("Record", "part at sealed key payload_at payload page form wall")


def check(holds, what):
    if not holds:
        sys.exit(f"memory_test: {what}")


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def told(time_of):
    return time_of.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(count):
    return datetime.timedelta(seconds=count)


def records(folder):
    """All records of all parts, read as engine/kv/history/record.h has them. Of what is sealed, page, form and wall are nothing."""
    found = []
    for name in sorted(os.listdir(os.path.join(folder, "parts"))):
        with open(os.path.join(folder, "parts", name), "rb") as file:
            data = file.read()
        at, magic = 0, data[:4]
        while data[at:at + 4] == magic and at + 32 <= len(data):
            sealed, key_bytes, payload_bytes = data[at + 5], *struct.unpack_from("<II", data, at + 8)
            key = data[at + 32:at + 32 + key_bytes]
            payload_at = (at + 32 + key_bytes + 96 + 63) // 64 * 64
            form, wall = None, None
            if not sealed:
                header = struct.unpack_from("<10q", data, at + 32 + key_bytes)
                form, wall = header[0], (header[8], header[9])
            page = struct.unpack(">Q", key[-8:])[0] // 8
            found.append(Record(name, at, sealed, key, payload_at, data[payload_at:payload_at + payload_bytes], page, form, wall))
            at = (payload_at + payload_bytes + 16 + 63) // 64 * 64
    return found


def contents(folder):
    """Of each file of the folder, its bytes."""
    files = {}
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                files[os.path.join(path, name)] = file.read()
    return files


def samples(record):
    """Some stretches of a payload that are like nothing else."""
    step = max(1, len(record.payload) // 8)
    stretches = [record.payload[at:at + 32] for at in range(0, len(record.payload) - 31, step)]
    return [each for each in stretches if len(set(each)) > 12]


class Service:
    """vigil run with a memory in `folder`."""

    def __init__(self, vigil, folder, ports):
        self.vigil, self.folder = vigil, folder
        self.alerts, self.asks, self.metrics = ports
        self.process = None
        # Other sections of its configuration.
        self.more = {}

    def configure(self, model, cameras, memory):
        text = json.dumps({
            "model": os.path.abspath(model), "cameras": cameras, "engine": {"device": os.environ.get("VIGIL_TEST_DEVICE", "cpu")},
            "memory": {"enabled": True, "host": {"budget": "64MiB"}, **memory},
            "asks": {"bind": f"tcp://127.0.0.1:{self.asks}"},
            "alerts": {"bind": f"tcp://127.0.0.1:{self.alerts}", "replay": f"ipc://{self.folder}/replay", "outbox": "outbox"},
            "metrics": {"listen": f"127.0.0.1:{self.metrics}"}, **self.more})
        path = os.path.join(self.folder, "vigil.yaml")
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)
        return path

    def start(self, *configuration):
        path = self.configure(*configuration)
        with open(os.path.join(self.folder, "log"), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([self.vigil, "run", "--config", path], stdout=log, stderr=log)
        self.await_cameras(lambda cameras: True, "an answer")

    def reload(self, *configuration):
        self.configure(*configuration)
        self.process.send_signal(signal.SIGHUP)

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8") as file:
            return file.read()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        check(self.process.wait(timeout=PATIENCE) == 0, f"vigil run did not end well: {self.log()}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def run(self, *arguments):
        return subprocess.run([self.vigil, *arguments, "--connect", f"tcp://127.0.0.1:{self.asks}", "--output", "json"], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)

    def answer(self, *arguments):
        done = self.run(*arguments)
        check(done.returncode == 0 and not done.stderr, f"{arguments}: {done}")
        return json.loads(done.stdout)

    def ask_in_words(self, camera, question, since, until, *more):
        """What is told of a question, and why nobody knows."""
        done = self.run("ask", "--camera", camera, question, "--since", told(since), "--until", told(until), *more)
        check(done.returncode in (0, 3), f"{camera}: {question}: {done}")
        answer, is_known = json.loads(done.stdout), done.returncode == 0
        check((answer["answer"] is not None) == is_known and done.stderr.count("\n") == (0 if is_known else 1), f"status {done.returncode}: {done}")
        return answer, done.stderr

    def ask(self, camera, question, since, until, *more):
        return self.ask_in_words(camera, question, since, until, *more)[0]

    def cameras(self):
        done = self.run("memory", "list")
        return {each["camera"]: each for each in json.loads(done.stdout)["cameras"]} if done.returncode == 0 else None

    def await_cameras(self, is_so, what):
        end = time.monotonic() + PATIENCE
        while True:
            check(self.process.poll() is None, f"vigil run ended: {self.log()}")
            cameras = self.cameras()
            if cameras is not None and is_so(cameras):
                return cameras
            check(time.monotonic() < end, f"no {what}: {cameras}")
            time.sleep(0.05)

    def windows(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=5) as answer:
            page = answer.read().decode()
        return sum(float(each) for each in re.findall(r'^vigil_windows_total\{outcome="answered"\} (\S+)$', page, re.MULTILINE))

    def verify(self, camera, is_whole=True):
        done = self.run("memory", "verify", "--camera", camera)
        check(done.returncode == (0 if is_whole else 1), f"verify: {done}")
        return json.loads(done.stdout)["cameras"][0]


def camera(video, *, live, **more):
    """A clip at its own pace for ever, or once, as fast as it is answered; its times are those of its frames either way."""
    question = "Is there a person in the room?" if "person" in video else "Is there a car?"
    return {"url": os.path.abspath(video), "window": {"length": "4s", "stride": "2s"}, "labels": {"tenant": "north"}, "pace": "realtime" if live else "fast",
            "loop": live, "rules": [{"name": "rule", "prompt": question}], **more}


def await_time(moment):
    """What has not been seen yet cannot be erased; a clip that is read as fast as it is answered is ahead of time."""
    while datetime.datetime.now(datetime.timezone.utc) <= moment:
        time.sleep(0.1)


def gaps(answer):
    return {each["why"] for each in answer["coverage"]["gaps"]}


def check_present(service):
    """The last seconds of a camera that goes on are there, though its windows still show them."""
    end = time.monotonic() + PATIENCE
    while True:
        now = datetime.datetime.now(datetime.timezone.utc)
        answer = service.ask("gate", "Is there a car?", now - seconds(10), now)
        if not answer["coverage"]["gaps"]:
            break
        # A machine that is slow is behind its cameras; of what lies farther back than a window, a page has come before.
        check(time.monotonic() < end, f"the last seconds are not there: {answer}, at {now}")
    check(answer["answer"] is not None and answer["coverage"]["share"] == 1, f"the last seconds: {answer}")
    check(when(answer["evidence"][0]["to"]) > now - seconds(4), f"the window still shows what came last: {answer}, at {now}")


def check_running(service, cameras):
    """What was seen a moment ago is asked about, from the host's memory."""
    gate = cameras["gate"]
    begin, end = when(gate["from"]), when(gate["to"])
    answer = service.ask("gate", "Is there a car?", begin - seconds(60), end)
    check(answer["answer"] == "Yes" and answer["bytes"]["host"] > 0 and answer["bytes"]["disk"] == 0, f"what a live camera saw: {answer}")
    check(answer["coverage"]["share"] < 0.9 and gaps(answer) == {"down"}, f"coverage of what was before the camera: {answer['coverage']}")

    check_present(service)

    room = cameras["room"]
    begin, end = when(room["from"]), when(room["to"])
    for question, verdict in (("Is there a person in the room?", "Yes"), ("Is there a car?", "No")):
        answer = service.ask("room", question, begin, end)
        check(answer["answer"] == verdict and answer["bytes"]["disk"] == 0 and answer["evidence"], f"{question}: {answer}")
        # But for what is shorter than a time can tell.
        check(answer["coverage"]["share"] == 1, f"coverage: {answer['coverage']}")
    # Somebody comes into the picture in the clip's sixth second.
    answer = service.ask("room", "When is there a person in the room?", begin, begin + seconds(20))
    check(5 <= (when(answer["moment"]) - begin).total_seconds() <= 8 and answer["answer"] == answer["moment"], f"when: {answer}, from {begin}")
    answer = service.ask("room", "What happens in the room?", begin, begin + seconds(40), "--about", "Is there a person in the room?")
    times = [when(each) for each in re.findall(r"\d{4}-\d\d-\d\dT[0-9:.]+Z", answer["answer"])]
    check("person" in answer["answer"] and times and all(begin <= each <= begin + seconds(40) for each in times), f"words: {answer}")
    check(answer["about"] == "Is there a person in the room?", f"about: {answer}")

    done = service.run("ask", "--camera", "private", "Is there a car?", "--since", "1h")
    check(done.returncode == 1 and done.stderr == "vigil: bad_request: nothing is remembered of a camera private\n", f"keep: off: {done}")
    for part in "list", "verify":
        done = service.run("memory", part, "--tenant", "nort")
        check((done.returncode, done.stdout) == (1, "") and done.stderr == "vigil: bad_request: nothing is remembered of a tenant nort\n", f"{part}: {done}")


def check_restart(service, before, begin):
    """The same window, from the disk."""
    answer = service.ask("room", "Is there a person in the room?", begin, begin + seconds(40))
    check(answer["bytes"]["host"] == 0 and answer["bytes"]["disk"] > 0 and answer["windows_lost"] == 0, f"from the disk: {answer}")
    check(answer["answer"] == before["answer"] and abs(answer["probability"] - before["probability"]) < 0.1, f"from the disk: {answer}, before {before}")
    other = service.ask("room", "Is there a car?", begin, begin + seconds(40))
    check(other["answer"] == "No" and other["bytes"]["disk"] > 0, f"from the disk: {other}")
    answer = service.ask("room", "When is there a person in the room?", begin, begin + seconds(20))
    check(5 <= (when(answer["moment"]) - begin).total_seconds() <= 8, f"when, from the disk: {answer}")


def check_erased(service, room, begin, middle):
    """Until `middle` nothing is told any more."""
    answer, why = service.ask_in_words("room", "Is there a person in the room?", begin, middle)
    check(why.startswith("vigil: nothing of room (north) is remembered between ") and why.endswith(" UTC: erased\n"), f"why: {why}")
    check(answer["answer"] is None and answer["bytes"] == {"host": 0, "disk": 0} and answer["coverage"]["share"] == 0, f"what was erased: {answer}")
    check(gaps(answer) == {"erased"}, f"what was erased: {answer['coverage']}")
    answer = service.ask("room", "Is there a person in the room?", begin, when(room["to"]))
    check(answer["answer"] == "Yes" and gaps(answer) >= {"erased"}, f"what is left: {answer}")
    check(all(when(each["from"]) > middle for each in answer["evidence"]), f"what is left: {answer}")
    check(service.verify("room")["whole"] > 0, "nothing is left")


def check_no_byte(memory, gone, left):
    """Of records that are gone nothing is in a file, of those that are left all is."""
    files = contents(memory)
    probes = [(each, sample) for each in gone for sample in samples(each)]
    check(len(probes) > 20, f"nothing to look for: {len(gone)} records")
    for record, sample in probes:
        for name, data in files.items():
            check(sample not in data, f"{name} has bytes of page {record.page}, form {record.form}, which was erased")
    for record in gone:
        at = [name for name, data in files.items() if record.key in data]
        check(not at, f"{at} name page {record.page}, which was erased")
    payloads = {each.payload for each in records(memory)}
    check(all(each.payload in payloads for each in left), "what was not erased is gone, too")
    return sum(len(data) for data in files.values())


def check_erasure(service, configuration, memory, room):
    begin = when(room["from"])
    middle = begin + seconds(20)
    await_time(middle)
    before = [each for each in records(memory) if b"room" in each.key]
    nanoseconds = int(middle.timestamp() * 1000) * 1_000_000
    gone = [each for each in before if each.wall[0] <= nanoseconds]
    left = [each for each in before if each.wall[0] > nanoseconds]
    check(gone and left, f"{len(gone)} records are to be erased, {len(left)} to stay")
    size = sum(len(data) for data in contents(memory).values())
    erased = service.answer("memory", "erase", "--camera", "room", "--from", told(begin - seconds(1)), "--to", told(middle))
    check(erased["finished"] and erased["pages"] == len({each.page for each in gone}), f"erased: {erased}, of {sorted({each.page for each in gone})}")
    service.kill()
    after = check_no_byte(memory, gone, left)
    check(after <= size - sum(len(each.payload) for each in gone) + 65536, f"{size} bytes before, {after} after {sum(len(each.payload) for each in gone)} went")
    service.start(*configuration)
    check_erased(service, room, begin, middle)
    service.stop()
    check_no_byte(memory, gone, left)
    service.start(*configuration)
    check_erased(service, room, begin, middle)


def check_damage(service, configuration, memory, room):
    """Bits turn in a form of a page, then in all its forms."""
    begin, end = when(room["from"]), when(room["to"])
    service.stop()
    page = [each for each in records(memory) if b"room" in each.key and each.form == INT4][0]
    all_forms = [each for each in records(memory) if b"room" in each.key and each.page == page.page]
    check({each.form for each in all_forms} == {INT4, EMBEDDINGS, SKETCH}, f"the page's forms: {all_forms}")
    # Times are told, and asked about, in milliseconds.
    seen = [datetime.datetime.fromtimestamp(each, datetime.timezone.utc) for each in (page.wall[0] / 1e9 + 0.001, page.wall[1] / 1e9 - 0.001)]

    def turn(record):
        with open(os.path.join(memory, "parts", record.part), "r+b") as file:
            file.seek(record.payload_at + len(record.payload) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 0x10]))

    turn(page)
    service.start(*configuration)
    undamaged = service.ask("room", "Is there a person in the room?", seen[1] + seconds(1), end)
    answer = service.ask("room", "Is there a person in the room?", begin, end, "--method", "exhaustive")
    check(answer["answer"] == undamaged["answer"] == "Yes" and "damaged" not in {each["why"] for each in undamaged["coverage"]["gaps"]}, f"one form: {answer}")
    report = service.verify("room", is_whole=False)
    pages = {each.page for each in records(memory) if b"room" in each.key}
    check(report["damaged"] == 1 and report["whole"] == len(pages) - 1, f"one form is damaged: {report} of {len(pages)} pages")
    # Another form of that time is whole.
    answer = service.ask("room", "Is there a person in the room?", seen[0], seen[1])
    check(answer["answer"] in ("Yes", "No", "unsure") and answer["bytes"]["disk"] > 0, f"one form is damaged: {answer}")
    service.stop()
    for each in all_forms:
        if each.form != INT4:
            turn(each)
    service.start(*configuration)
    answer = service.ask("room", "Is there a person in the room?", seen[0], seen[1], "--method", "exhaustive")
    check(answer["answer"] is None and gaps(answer) == {"damaged"} and answer["coverage"]["share"] < 0.5, f"all forms are damaged: {answer}")
    report = service.verify("room", is_whole=False)
    check(report["damaged"] == 1, f"all forms of a page are damaged: {report}")


def check_forgotten(service, name):
    done = service.run("ask", "--camera", name, "Is there a car?", "--since", "1h")
    check(done.returncode == 3 and json.loads(done.stdout)["coverage"]["share"] == 0 and done.stderr.startswith(f"vigil: nothing of {name} (north) is remembered") and "evicted" in done.stderr, f"keep: off: {done}")


def check_reload(service, model, video, memory):
    """keep: of a camera changes while it runs."""
    def configuration(keep):
        return (model, {"gate": camera(video, live=True, keep=keep, fps=4, window={"length": "4s", "stride": "1s"})}, memory)

    service.reload(*configuration("24h"))
    before = service.await_cameras(lambda each: each["gate"]["watched"], "camera that is remembered")["gate"]
    service.await_cameras(lambda each: each["gate"]["pages"] > before["pages"], "page of a camera that is remembered now")
    service.reload(*configuration("off"))
    service.await_cameras(lambda each: "gate" not in each, "camera that is remembered no more")
    # Nothing of it is found any more; and of windows that end now, none is to be remembered: as many as made more than a page before.
    check("gate" not in service.cameras(), f"what was remembered is still there: {service.cameras()}")
    check_forgotten(service, "gate")
    end = service.windows() + 6
    service.await_cameras(lambda _: service.windows() >= end, "windows")
    check("gate" not in service.cameras(), f"a camera is remembered with keep: off: {service.cameras()}")


def check_other_model(service, other_model, configuration, room):
    service.stop()
    service.start(other_model, *configuration[1:])
    answer = service.ask("room", "Is there a person in the room?", when(room["from"]), when(room["to"]))
    check(answer["answer"] is None and "other_model" in gaps(answer) and answer["coverage"]["share"] == 0, f"of another model: {answer}")
    check(answer["bytes"] == {"host": 0, "disk": 0}, f"of another model: {answer}")
    service.stop()


def check_keys(service, model, cameras, plain, folder):
    """With a key, nothing of what a run without one writes is in the folder."""
    for name in "memory.key", "other.key":
        with open(os.path.join(folder, name), "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(os.urandom(32).hex() + "\n")
    configuration = (model, cameras, {"dir": "sealed", "key_file": "memory.key"})
    service.start(*configuration)
    room = service.await_cameras(lambda each: each["room"]["bytes"]["disk"] > 0 and not each["room"]["watched"], "pages on the disk")["room"]
    begin = when(room["from"])
    service.stop()
    sealed = os.path.join(folder, "sealed")
    found = records(sealed)
    check(found and all(each.sealed for each in found), f"{len(found)} records, of which some are not sealed")
    for each in found:
        if len(each.payload) >= 4096:
            share = len(zlib.compress(each.payload, 9)) / len(each.payload)
            check(share > 0.995, f"a sealed value of {len(each.payload)} bytes can be pressed to {share:.3f} of them")
    shares = [len(zlib.compress(each.payload, 9)) / len(each.payload) for each in plain if len(each.payload) >= 4096]
    check(shares and min(shares) < 0.97, f"values that are not sealed: {sorted(shares)}")
    # The same clip gives the same embeddings, with a key or without.
    everything = b"".join(contents(sealed).values())
    for each in plain:
        for sample in samples(each):
            check(sample not in everything, f"page {each.page}, form {each.form}, is not encrypted")

    path = service.configure(model, cameras, {"dir": "sealed", "key_file": "other.key"})
    done = subprocess.run([service.vigil, "run", "--config", path], capture_output=True, text=True, timeout=PATIENCE, check=False)
    check(done.returncode != 0 and not done.stdout and len(done.stderr.splitlines()) == 1 and "key" in done.stderr, f"with another key: {done}")
    check("sealed" in done.stderr or "memory" in done.stderr, f"with another key: {done.stderr}")
    del cameras["room"]
    service.start(*configuration)
    answer = service.ask("room", "Is there a person in the room?", begin, begin + seconds(40))
    check(answer["answer"] == "Yes" and answer["bytes"]["disk"] > 0, f"with the key: {answer}")
    await_time(begin + seconds(5))
    erased = service.answer("memory", "erase", "--camera", "room", "--from", told(begin - seconds(1)), "--to", told(begin + seconds(5)))
    check(erased["finished"] and erased["pages"] > 0, f"with a key: {erased}")
    service.kill()
    left = {each.page for each in records(sealed) if b"room" in each.key}
    check(left and 1 not in left, f"pages that are left: {left}")
    everything = b"".join(contents(sealed).values())
    for each in found:
        # What stays of that hour is sealed by another key. Where nothing stands out, a sketch is a byte.
        if b"room" in each.key and len(each.payload) >= 32:
            check(each.payload[:64] not in everything, f"{each.key} is left as it was")


def check_way(service, cameras):
    """What is on its way to the disk is erased, too."""
    gate = cameras["gate"]
    begin, end = when(gate["from"]), when(gate["to"])
    erased = service.answer("memory", "erase", "--camera", "gate", "--from", told(begin), "--to", told(end))
    check(erased["finished"] and erased["pages"] > 0, f"erased: {erased}")
    answer = service.ask("gate", "Is there a car?", begin, end)
    check(answer["answer"] is None and gaps(answer) == {"erased"}, f"what was erased on its way: {answer}")


def main():
    vigil, model, other_model, person, car = sys.argv[1:]
    began = time.monotonic()

    def done(what):
        print(f"{time.monotonic() - began:5.1f} s: {what}")

    with tempfile.TemporaryDirectory() as folder:
        service = Service(vigil, folder, free_ports(3))
        memory = os.path.join(folder, "memory")
        # Above two frames a second its patches share times.
        gate = {"gate": camera(car, live=True, fps=4)}
        room = {"room": camera(person, live=False)}
        tiers = {"dir": "memory"}
        try:
            service.start(model, {**gate, **room, "private": camera(car, live=True, keep="off")}, tiers)
            cameras = service.await_cameras(lambda each: each["gate"]["pages"] > 0 and each["room"]["bytes"]["disk"] > 0 and not each["room"]["watched"], "pages")
            check(set(cameras) == {"gate", "room"}, f"remembered: {cameras}")
            check({"int4", "embeddings", "sketch"} == set(cameras["room"]["forms"]), f"forms: {cameras['room']}")
            check_running(service, cameras)
            begin = when(cameras["room"]["from"])
            before = service.ask("room", "Is there a person in the room?", begin, begin + seconds(40))
            done("asked while it runs")
            check_way(service, cameras)
            service.stop()
            check(not [each for each in records(memory) if b"gate" in each.key and each.wall[0] <= when(cameras["gate"]["to"]).timestamp() * 1e9],
                  "what was erased on its way was written")

            quiet = (model, {"gate": camera(car, live=True, keep="off")}, tiers)
            service.start(*quiet)
            check_forgotten(service, "gate")
            check_restart(service, before, begin)
            done("asked after a restart")
            service.kill()
            service.start(*quiet)
            check(service.verify("room")["damaged"] == 0, "damaged by a kill")
            answer = service.ask("room", "Is there a person in the room?", begin, begin + seconds(40))
            check(answer["answer"] == "Yes" and answer["bytes"]["disk"] > 0, f"after a kill: {answer}")
            done("asked after a kill")
            plain = [each for each in records(memory) if b"room" in each.key]
            check_erasure(service, quiet, memory, cameras["room"])
            done("asked after an erasure, a kill and a restart")
            check_reload(service, model, car, tiers)
            done("reloaded")
            check_damage(service, quiet, memory, service.cameras()["room"])
            done("damaged")
            check_other_model(service, other_model, quiet, cameras["room"])
            done("asked with another model")
            check_keys(service, model, {**room, "gate": camera(car, live=True, keep="off")}, plain, folder)
            done("encrypted")
            service.kill()
        finally:
            if service.process:
                service.process.kill()
            if os.environ.get("KEEP"):
                shutil.copytree(folder, os.environ["KEEP"], dirs_exist_ok=True)


if __name__ == "__main__":
    main()
