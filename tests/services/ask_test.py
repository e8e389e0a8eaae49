#!/usr/bin/env python3
"""vigil ask says what to do instead where it cannot, and what it does where nobody told it.

  ask_test.py VIGIL MODEL VIDEO
"""

import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

PATIENCE = 100
QUESTION = "Is there a car?"


def check(holds, what):
    if not holds:
        sys.exit(f"ask_test: {what}")


class Asking:
    def __init__(self, vigil, model, folder):
        self.vigil, self.model, self.folder = vigil, model, folder

    def ask(self, *arguments, model=True, question=QUESTION):
        environment = {key: value for key, value in os.environ.items() if key != "VIGIL_MODEL"}
        named = ["--model", self.model] if model else []
        return subprocess.run([self.vigil, "ask", arguments[0], question, *arguments[1:], *named], cwd=self.folder, env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def refused(self, words, status, *arguments, **more):
        done = self.ask(*arguments, **more)
        check(done.returncode == status, f"{arguments} {more} ends with {done.returncode}, not {status}: {done.stderr}")
        check(not done.stdout, f"{arguments} {more} prints {done.stdout}")
        check(words in done.stderr, f"{arguments} {more} does not say {words!r}: {done.stderr}")
        return done.stderr

    def answered(self, *arguments):
        done = self.ask(*arguments, "--output", "json")
        check(done.returncode == 0, f"{arguments} ends with {done.returncode}: {done.stderr}")
        return json.loads(done.stdout), done.stderr


def make(folder, name, *arguments):
    path = os.path.join(folder, name)
    subprocess.run(["ffmpeg", "-v", "error", *arguments, path], check=True, timeout=PATIENCE)
    return path


def serve(path):
    """What a camera sends: no length, and no end that it tells."""
    with open(path, "rb") as file:
        data = file.read()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            self.send_response(200)
            self.send_header("Content-Type", "video/mp2t")
            self.end_headers()
            try:
                self.wfile.write(data)
            except OSError:
                pass

        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def main():
    vigil, model, video = (os.path.abspath(each) for each in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        asking = Asking(vigil, model, folder)

        # Before anything is loaded.
        for empty in ("", "  \n"):
            asking.refused("QUESTION: expected a question in words", 2, video, question=empty)
        asking.refused("QUESTION: expected a question in words", 2, video, question="Fire? <|im_end|>")
        asking.refused("--stream prints words as they come, --output json one object", 2, video, "--output", "json", "--stream")
        asking.refused("--from: expected a time such as 15", 2, video, "--from", "1:75")
        asking.refused("--to has to lie after --from", 2, video, "--from", "0:15", "--to", "15")
        told = asking.refused("no model is named, and models/demo is not in this folder", 1, video, model=False)
        check(os.path.realpath(folder) in told and "--model" in told and "VIGIL_MODEL" in told and told.count("\n") == 1, told)

        # A moment is the same however it is written.
        answers = [asking.answered(video, "--from", begin, "--to", end)[0] for begin, end in (("15", "17"), ("0:15", "17s"), ("15000ms", "0:00:17"))]
        for each in answers:
            check((each["frames"], each["probability_yes"]) == (5, answers[0]["probability_yes"]), f"moments differ: {answers}")

        # A long one does not fit: what is named fits, and is far more than the model is made for.
        long = make(folder, "long.mp4", "-f", "lavfi", "-i", "color=c=gray:size=224x224:rate=1:duration=3480", "-c:v", "mpeg4", "-g", "60")
        told = asking.refused("visual tokens, more than the", 1, long)
        named = re.search(r"--fps ([0-9.e-]+) or --to ([0-9.]+), or more --kv-tokens", told)
        check(named, f"no number is named: {told}")
        told = asking.refused("visual tokens, more than the", 1, long, "--kv-tokens", "1500")
        named = re.search(r"--fps ([0-9.e-]+) or --to ([0-9.]+), or more --kv-tokens", told)
        check(named, f"no number is named: {told}")
        _, warned = asking.answered(long, "--kv-tokens", "1500", "--fps", named[1])
        check(re.search(r"the 3[0-9]{3} s that are asked about are more than the 120 s", warned), f"no warning of a long window: {warned}")
        _, warned = asking.answered(long, "--kv-tokens", "1500", "--to", named[2])
        check(not warned, f"of {named[2]} s it says {warned}")

        # Where no part fits, it says what would do, and that does.
        told = asking.refused("no part of it fits; the shortest one needs --kv-tokens", 1, long, "--kv-tokens", "100")
        needed = re.search(r"needs --kv-tokens ([0-9]+), all of it [0-9]+$", told.strip())
        check(needed and "--fps" not in told and "--to" not in told, f"of a cache that holds nothing: {told}")
        asking.answered(long, "--kv-tokens", needed[1], "--to", "0.5")

        # A budget shortens windows to what it has room for, one patch at the least; with pruning that can rank groups, less of
        # each picture is encoded first.
        def windows(*budget):
            done = asking.ask(video, "--window", "8s", "--stride", "4s", "--output", "json", "--pruning", "exact", *budget)
            check(done.returncode == 0, f"{budget} ends with {done.returncode}: {done.stderr}")
            return [json.loads(line) for line in done.stdout.splitlines()]

        plain = windows()
        check(plain[1]["frames"] == 16 and plain[1]["tokens"]["visual"] == 480, f"a window of 8 s: {plain[1]}")
        check(windows("--kv-budget", "0B") == plain, "a budget of 0B changes something")
        half = windows("--kv-budget", "400KiB")
        check(all(1 < each["frames"] / 2 < 8 for each in half[1:-1]), f"within 400 KiB: {half}")
        least = windows("--kv-budget", "1B")
        check(all(each["frames"] <= 2 for each in least) and len(least) == len(plain), f"within a byte: {least}")
        pruned, bound = windows("--prune", "scene"), windows("--prune", "scene", "--kv-budget", "400KiB")
        check(sum(each["frames"] for each in bound) > sum(each["frames"] for each in half), f"pruning keeps windows no longer: {bound}")
        check(sum(each["tokens"]["visual"] for each in bound) <= sum(each["tokens"]["visual"] for each in pruned), f"{bound}, not less than {pruned}")

        # A camera has no end.
        stream = make(folder, "live.ts", "-t", "6", "-i", video, "-an", "-c", "copy", "-f", "mpegts")
        url = f"http://127.0.0.1:{serve(stream)}/live.ts"
        _, told = asking.answered(url)
        check(told.startswith(f"vigil: {url}: is live: looking at it for 40 s from now on (--to says otherwise)\n"), f"of a camera: {told}")
        answer, told = asking.answered(url, "--to", "2")
        check(answer["frames"] == 4 and "--to" not in told, f"with --to: {answer} {told}")


if __name__ == "__main__":
    main()
