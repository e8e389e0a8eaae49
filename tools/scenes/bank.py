#!/usr/bin/env python3
"""Makes the bank of photographs for training from the FIRST halves of the real clips: frames, and cut-outs of persons and cars, whole or cut off by the border.

    tools/scenes/bank.py VIDEOS LABELS OUT.npz

Frames are scaled to 256x256 and kept as JPEG. Besides each clip as it is, two versions coded anew (H.264 and H.265, few bits) are taken. Needs ffmpeg, numpy, opencv.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import packages  # noqa: E402, F401  says what is not installed
import cv2  # noqa: E402
import numpy as np  # noqa: E402

SIDE = 256
RATES = {"one-by-one-person-detection": 5.0, "car-detection": 12.5, "bottle-detection": 4.0}
VERSIONS = {"": None, "h264": ["-c:v", "libx264", "-crf", "36", "-bf", "3"], "h265": ["-c:v", "libx265", "-crf", "37", "-x265-params", "log-level=none"]}
SPRITE_HEIGHT, SPRITE_WIDTH = 192, 128


def frames_of(path, rate, until, width, height):
    """Frames before `until` seconds at `rate` a second, RGB."""
    command = ["ffmpeg", "-v", "error", "-i", str(path), "-vf", f"fps={rate}:round=down,scale={width}:{height}:flags=bicubic", "-t", str(until - 0.05), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    data = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return np.frombuffer(data, np.uint8).reshape(-1, height, width, 3)


def jpeg(frame, quality=92):
    return cv2.imencode(".jpg", frame[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()


def occupied(label, kinds, margin):
    return [(entry["from"] - margin, entry["to"] + margin) for kind in kinds for entry in label[kind]]


def cut_out(frame, background, least):
    """The greatest thing that differs from the background, or None when it is small: its picture (RGBA), its box (middle and size, shares of the frame), and the borders that it touches."""
    f, b = frame.astype(np.float32), background.astype(np.float32)
    # The exposure drifts: match the background's brightness first.
    b = b * np.median((f.mean(2) + 1) / (b.mean(2) + 1))
    difference = np.abs(f - b).max(2)
    mask = (cv2.GaussianBlur(difference, (5, 5), 0) > 26).astype(np.uint8)
    mask = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8))
    mask = cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((5, 5), np.uint8))
    contours, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    if not contours:
        return None
    contour = max(contours, key=cv2.contourArea)
    x, y, w, h = cv2.boundingRect(contour)
    height, width = mask.shape
    touches = [name for name, there in (("left", x < 3), ("top", y < 3), ("right", x + w > width - 3), ("bottom", y + h > height - 3)) if there]
    # What is cut off by the border may be small; two borders at once are mostly a shadow or a change of light.
    if cv2.contourArea(contour) < (least / 2 if touches else least) or len(touches) > 1:
        return None
    alpha = np.zeros_like(mask)
    cv2.drawContours(alpha, [contour], -1, 255, -1)
    # Softened at its own outline, not where the border cuts it off.
    alpha = cv2.copyMakeBorder(alpha, 8, 8, 8, 8, cv2.BORDER_REPLICATE)
    alpha = cv2.GaussianBlur(cv2.erode(alpha, np.ones((3, 3), np.uint8)), (5, 5), 0)[8:-8, 8:-8]
    piece = np.dstack([frame, alpha])[y:y + h, x:x + w]
    return cv2.resize(piece, (SPRITE_WIDTH, SPRITE_HEIGHT), interpolation=cv2.INTER_AREA), ((x + w / 2) / width, (y + h / 2) / height, w / width, h / height), touches


def main(videos, labels, out):
    blobs, table, sprites, sprite_table = [], [], [], []
    for clip, rate in RATES.items():
        label = json.loads((Path(labels) / f"{clip}.json").read_text())
        source = Path(videos) / label["clip"]
        for version, options in VERSIONS.items():
            with tempfile.TemporaryDirectory() as folder:
                path = source
                if options:
                    path = Path(folder) / "again.mp4"
                    subprocess.run(["ffmpeg", "-v", "error", "-i", str(source), "-t", str(label["half"]), "-an", "-vf", "scale=512:288", *options, str(path)], check=True)
                frames = frames_of(path, rate, label["half"], SIDE, SIDE)
            for index, frame in enumerate(frames):
                blobs.append(jpeg(frame))
                table.append({"clip": clip, "version": version, "time": index / rate})
        full = frames_of(source, 10.0, label["half"], 768, 432)
        times = np.arange(len(full)) / 10.0
        free = [k for k, t in enumerate(times) if not any(a <= t < b for a, b in occupied(label, ("person", "car", "partial_person"), 0.8))]
        background = np.median(full[free[:: max(1, len(free) // 60)]], axis=0)
        for kind in ("person", "car"):
            for number, entry in enumerate(label[kind]):
                for k, t in enumerate(times):
                    if not entry["from"] <= t < min(entry["to"], label["half"]):
                        continue
                    standing = "stands" in entry and entry["stands"][0] + 0.5 < t < entry["stands"][1] - 0.5
                    if standing and k % 12:
                        continue
                    found = cut_out(full[k], background, 4000)
                    # A border that it does not come in at is touched by what is behind it, or its shadow is all that is left.
                    if found is None or found[2] not in ([], [entry["enters"]]):
                        continue
                    sprites.append(cv2.imencode(".png", found[0][..., [2, 1, 0, 3]])[1].tobytes())
                    x, y, width, height = found[1]
                    sprite_table.append({"kind": kind, "who": number, "colour": entry["colour"], "standing": bool(standing), "time": float(t), "x": x, "y": y, "width": width, "height": height, "touches": found[2]})
    np.savez(out, frames=np.frombuffer(b"".join(blobs), np.uint8), frame_sizes=np.array([len(b) for b in blobs]), sprites=np.frombuffer(b"".join(sprites), np.uint8),
             sprite_sizes=np.array([len(b) for b in sprites]), meta=np.array(json.dumps({"frames": table, "sprites": sprite_table, "rates": RATES})))
    print(len(blobs), "frames,", len(sprites), "cut-outs,", sum(map(len, blobs)) >> 10, "+", sum(map(len, sprites)) >> 10, "KiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("videos", help="the folder of the clips")
    parser.add_argument("labels", help="the folder of their labels (tools/labels)")
    parser.add_argument("out", help="an .npz file")
    arguments = parser.parse_args()
    main(arguments.videos, arguments.labels, arguments.out)
