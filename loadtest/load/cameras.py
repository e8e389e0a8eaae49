"""The cameras of a load: which is of which kind, the files that some play, and the server of the others."""

import glob
import math
import os
import subprocess

from scenario import KINDS

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
FIRST_PORT = 8554
# Of real clips, parts with and without what the rules ask for: seconds.
CLIPS = (("one-by-one-person-detection.mp4", 20), ("car-detection.mp4", 10), ("bottle-detection.mp4", 4))
LASTS = 10
DRAWN = 4


def kinds_of(weights, count):
    """The kind of each of so many cameras. However many of the first ones are taken, each kind has its share of them, to one camera."""
    given, kinds = dict.fromkeys(weights, 0), []
    total = sum(weights.values())
    for taken in range(1, count + 1):
        kind = max((each for each in KINDS if each in weights), key=lambda each: (weights[each] * taken / total - given[each], -KINDS.index(each)))
        given[kind] += 1
        kinds.append(kind)
    return kinds


def some(names, share):
    """The first ones, so many that they are that share of all; one at least if it is not none."""
    return names[:max(1, round(share * len(names)))] if share and names else []


def source_fps(fps):
    """Frames a second of what cameras show: twice as many as are sampled, so that these are evenly spaced, and each stride has its own."""
    return max(4, 2 * math.ceil(fps))


def render(source, begin, size, fps, path):
    """A file that loops: a key frame a second, small pictures, since decoding is not what is looked at."""
    width, height = size.split("x")
    done = subprocess.run(["ffmpeg", "-v", "error", "-ss", str(begin), "-t", str(LASTS), "-i", source, "-an", "-vf",
                           f"fps={fps},scale={width}:{height}", "-g", str(fps), "-y", path],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"ffmpeg {source}: {done.stderr.strip()}")
    return path


class Cameras:
    """names, in the order in which they join, and where each is found."""

    def __init__(self, settings, count, folder, host=None):
        """host: the one where the RTSP server is to run, if any camera needs it."""
        self.settings, self.host = settings, host
        self.kinds = {f"cam-{i:03}": kind for i, kind in enumerate(kinds_of(settings["kinds"], count))}
        self.names = list(self.kinds)
        self.of = {kind: [name for name in self.names if self.kinds[name] == kind] for kind in KINDS}
        self.server = None
        self.urls = {}
        self._render(folder)
        for i, name in enumerate(self.of["rtsp"]):
            self.urls[name] = f"rtsp://{host.address}:{FIRST_PORT + i}/{name}"

    def _render(self, folder):
        real = [(os.path.join(SOURCE, "tests", "videos", name), begin) for name, begin in CLIPS]
        drawn = [(path, 0) for path in sorted(glob.glob(os.path.join(SOURCE, "tests", "quality", "scenes", "*.mp4")))[:DRAWN]]
        made = {}
        for kind, sources in (("file", real), ("synthetic", drawn)):
            for i, name in enumerate(self.of[kind]):
                source, begin = sources[i % len(sources)]
                if source not in made:
                    made[source] = render(source, begin, self.settings["size"], source_fps(self.settings["fps"]),
                                          os.path.join(folder, f"{kind}-{len(made)}.mp4"))
                self.urls[name] = made[source]

    def start_server(self, log):
        """GStreamer's, with a stream for each RTSP camera."""
        if not self.of["rtsp"]:
            return
        with open(log, "a", encoding="utf-8") as out:
            self.server = subprocess.Popen(
                self.host.command("/usr/bin/python3", os.path.join(HERE, "rtsp_server.py"), self.host.address, str(FIRST_PORT), self.settings["size"],
                                  str(source_fps(self.settings["fps"])), *self.of["rtsp"]),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out, text=True)
        if self.server.stdout.readline() != "ready\n":
            self.server.wait()
            raise RuntimeError(f"rtsp_server.py did not start: {open(log, encoding='utf-8').read().strip()[-400:]}")

    def tell(self, command, name):
        """gone, there, moving or still, of an RTSP camera."""
        self.server.stdin.write(f"{command} {name}\n")
        self.server.stdin.flush()
        if self.server.stdout.readline() != "done\n":
            raise RuntimeError(f"rtsp_server.py ended at `{command} {name}`")

    def stop(self):
        if self.server:
            self.server.kill()
            self.server.wait()
