#!/usr/bin/env python3
"""vigil run on a clip gives an alert whose evidence FFmpeg's own programs can read, and whose packets are the source's.

  evidence_test.py VIGIL MODEL VIDEO
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_ports import free_ports  # noqa: E402

PATIENCE = 120

CONFIGURATION = """
model: {model}
cameras:
  room:
    url: {video}
    window: {{length: 4s, stride: 2s}}
    rules: [{{name: person, prompt: "Is there a person in the room?", cooldown: 1h}}]
alerts: {{bind: "tcp://127.0.0.1:{port}", replay: "ipc://{folder}/replay", outbox: outbox}}
evidence: {{enabled: true, dir: evidence, pre_roll: 1s, post_roll: 1s}}
metrics: {{listen: ""}}
"""


def packets(path):
    """(hash of the data, presentation time, whether it is a key frame) of each packet, by ffprobe."""
    output = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_packets", "-show_data_hash", "md5", "-of", "json",
                             path], check=True, capture_output=True, text=True).stdout
    return [(each["data_hash"], float(each["pts_time"]), "K" in each["flags"]) for each in json.loads(output)["packets"]]


def check(holds, what):
    if not holds:
        sys.exit(f"evidence_test: {what}")


def check_clip(evidence, folder, video):
    clip = os.path.join(folder, "evidence", evidence["clip"])
    made, source = packets(clip), packets(video)
    check(os.path.getsize(clip) == evidence["bytes"], "the clip has other bytes than told")
    check(made and made[0][2] and abs(made[0][1]) < 0.01, "the clip does not begin with a key frame at 0")
    begins = [at for at in range(len(source)) if [each[0] for each in source[at:at + len(made)]] == [each[0] for each in made]]
    check(begins, "the clip's packets are not a run of the source's")
    seconds = made[-1][1] - made[0][1]
    check(5.5 < seconds < 20, f"the clip has {seconds} s; the window and both rolls have 6 s, or what there was of it")
    decoded = subprocess.run(["ffmpeg", "-v", "error", "-i", clip, "-f", "null", "-"], check=True, capture_output=True, text=True)
    check(not decoded.stderr, f"FFmpeg says of the clip: {decoded.stderr}")
    still = subprocess.run(["ffprobe", "-v", "error", "-show_entries", "stream=codec_name,width,height", "-of", "csv=p=0",
                            os.path.join(folder, "evidence", evidence["thumb"])], check=True, capture_output=True, text=True).stdout
    size = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "stream=width,height", "-of", "csv=p=0",
                           video], check=True, capture_output=True, text=True).stdout
    check(still.strip() == "mjpeg," + size.strip(), f"the still is {still.strip()}, the video {size.strip()}")


def main():
    vigil, model, video = sys.argv[1:]
    port = free_ports(1)[0]
    with tempfile.TemporaryDirectory() as folder:
        configuration = os.path.join(folder, "vigil.yaml")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(model=os.path.abspath(model), video=os.path.abspath(video), port=port, folder=folder))
        subprocess.run([vigil, "check-config", configuration], check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
            run = subprocess.Popen([vigil, "run", "--config", configuration], stdout=log, stderr=log)
        watch = subprocess.Popen([vigil, "watch", "alert/", "--endpoint", f"tcp://127.0.0.1:{port}", "--replay", f"ipc://{folder}/replay",
                                  "--since", "1h", "--output", "json", "--timeout", str(PATIENCE)], stdout=subprocess.PIPE, text=True)
        try:
            states, began = [], time.monotonic()
            for line in watch.stdout:
                data = json.loads(line)["data"]
                states.append((data["phase"], data["evidence"]["clip_state"], data.get("cause")))
                if data["evidence"]["clip_state"] != "pending":
                    break
            check(states and states[0] == ("new", "pending", None), f"what was told first: {states}")
            check(states[-1][1:] == ("ready", "evidence"), f"what was told: {states}, {data.get('evidence')}")
            print(f"told {states} within {time.monotonic() - began:.1f} s: {data['evidence']}")
            check_clip(data["evidence"], folder, video)
            run.send_signal(signal.SIGTERM)
            check(run.wait(timeout=PATIENCE) == 0, "vigil run did not end well")
        finally:
            run.kill()
            watch.kill()
            with open(os.path.join(folder, "log"), encoding="utf-8") as log:
                print(log.read(), file=sys.stderr)


if __name__ == "__main__":
    main()
