"""Windows of video with what is true about them: the second halves of the real clips, and generated scenes."""

import functools
import json
import math
from pathlib import Path

import numpy as np

LABELS = Path(__file__).resolve().parent.parent / "labels"


# Windows come clip by clip, and a set of scenes does not fit into the memory as pictures.
@functools.lru_cache(maxsize=4)
def decoded(path):
    """A video's frames, RGB, with their times."""
    import av

    times, frames = [], []
    with av.open(path) as container:
        for frame in container.decode(video=0):
            times.append(float(frame.pts * frame.time_base))
            frames.append(frame.to_ndarray(format="rgb24"))
    return times, frames


class Clip:
    """A video; decoded when it is asked for frames."""

    def __init__(self, path):
        self.path = Path(path)

    @property
    def end(self):
        """Time of the last frame."""
        import av

        with av.open(str(self.path)) as container:
            return max(float(packet.pts * packet.time_base) for packet in container.demux(video=0) if packet.pts is not None)

    def sample(self, start, count, fps):
        """The frame shown at each of `count` moments from `start` on."""
        times, frames = decoded(str(self.path))
        moments = start + np.arange(count) / fps
        index = np.clip(np.searchsorted(times, moments + 1e-6, side="right") - 1, 0, len(frames) - 1)
        return [frames[i] for i in index]


def real_windows(folder, lengths, fps, half="second"):
    """Windows of the second halves (or the first, which are trained on), one a second, with the labels of what they show.

    True: seen for a second or more and on two sampled frames or more; False: not seen at all; None (left out, and counted): seen for less, or a hand alone.
    """
    for path in sorted(LABELS.glob("*.json")):
        label = json.loads(path.read_text())
        clip = Clip(Path(folder) / label["clip"])
        begin, end = (math.ceil(label["half"]), clip.end) if half == "second" else (0, label["half"])
        for length in lengths:
            start = begin
            while start + length <= end + 1e-6:
                moments = start + np.arange(round(length * fps)) / fps
                truth = {}
                for kind in ("person", "car"):
                    hazy = label["partial_person"] if kind == "person" else []
                    seconds = sum(max(0.0, min(e["to"], start + length) - max(e["from"], start)) for e in label[kind])
                    sampled = sum(any(e["from"] <= t < e["to"] for e in label[kind]) for t in moments)
                    touched = any(e["from"] < start + length and e["to"] > start for e in label[kind] + hazy)
                    truth[kind] = True if seconds >= 1 and sampled >= 2 else (None if touched else False)
                yield dict(clip=clip, path=clip.path, name=label["clip"], start=float(start), count=len(moments), fps=fps, truth=truth, tags=[label["clip"], f"{length:g} s"])
                start += 1


def long_windows(path, shape=None):
    """Windows of a long scene (tools/scenes/long.py); all rules that have an answer are asked.

    Those of 10 s, one after the other, or those of `shape`: (seconds, stride), for which the scene has to be judged already.
    """
    record = json.loads(Path(path).with_suffix(".json").read_text())
    found = record["windows"]
    if shape is not None:
        judged = {(each["seconds"], each["stride"]): each["windows"] for each in record.get("shapes", ())}
        if shape not in judged:
            known = ", ".join(f"{seconds:g}:{stride:g}" for seconds, stride in judged) or "none"
            raise SystemExit(f"evaluate: {path}: no windows of {shape[0]:g} s every {shape[1]:g} s are judged ({known} are); tools/scenes/long.py --told --windows does it")
        found = [dict(window, seconds=shape[0]) for window in judged[shape]]
    for window in found:
        yield dict(clip=Clip(path), path=Path(path), name=Path(path).stem, start=window["start"], count=round(window["seconds"] * 2), fps=2.0, truth=window["rules"],
                   left=window.get("left", {}), light=record["light"], weather=record["weather"], tags=[record["light"], record["weather"], f"{window['seconds']:g} s"])


def parts(record, seconds):
    """The first and the last `seconds` of a scene's window: start, number of frames, facts; what is asked is judged anew for each."""
    from scenes import story

    count = round(seconds * record["fps"])
    for first in (0, record["frames"] - count):
        times = (first + np.arange(count)) / record["fps"]
        for attempt in range(20):
            try:
                told = story.tell(record["seed"], times, record["fps"], record["frames"] / record["fps"], None, (record["size"][0] / record["size"][1],), attempt)
            except story.Crowded:
                continue
            yield float(times[0]), count, told.facts
            break


def scene_windows(folder, limit=None, every=1, seconds=None):
    """Windows of generated videos; their JSON (see tools/scenes/write.py) says what is seen, what is true and what is asked.

    `every`: each so manyth scene alone. `seconds`: instead of the windows their first and their last so many seconds, where they are longer.
    """
    from scenes import questions

    for path in sorted(Path(folder).glob("*.json"))[:limit:every]:
        record = json.loads(path.read_text())
        clip = Clip(path.with_suffix(".mp4"))
        looked = [(0.0, record["frames"], record["facts"])] if seconds is None else list(parts(record, seconds)) if record["frames"] > seconds * record["fps"] else []
        conditions = [record["light"], record["weather"], record["codec"], *record["tags"], f"{seconds or record['frames'] / record['fps']:g} s", f"{record['fps']:g} a second", f"{record['size'][0]}x{record['size'][1]}"]
        conditions.append("100 kbit/s or less" if record["kbps"] <= 100 else "more than 100 kbit/s")
        for start, count, facts in looked:
            truth = {rule: facts["rules"][rule] for rule in record["ask"]}
            near = [rule for rule in record["ask"] if questions.near_miss(rule, facts)]
            yield dict(clip=clip, path=clip.path, name=path.stem, start=start, count=count, fps=record["fps"], truth=truth, near=near, tags=conditions, facts=facts, seed=record["seed"])
