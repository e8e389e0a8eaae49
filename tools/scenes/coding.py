"""Real video coding of drawn scenes, by FFmpeg's libraries (PyAV): H.264 and H.265 with B-frames at the camera's rate."""

import io

import numpy as np
import torch

from . import render

RATE = 25  # frames a second of a coded video
CODECS = {"h264": "libx264", "h265": "libx265"}


def frames_of(story, seed, height, width, device, chunk=None, number=0):
    """The story's frames as uint8 RGB (n, H, W, 3), a chunk at a time; it has been told at RATE. `number`: which frame of the video its first one is."""
    # Few enough for a processor's cache: twice as quick there, the same pixels.
    chunk = chunk or (8 if torch.device(device).type == "cpu" else 50)
    batch = render.collate([story], [seed], device)
    # The imitated coder is for training; here a real one follows.
    batch["scalars"][:, 6] = 0
    for first in range(0, batch["moving"].shape[1], chunk):
        part = {key: value[:, first:first + chunk] if key in ("moving", "gain", "grey", "jitter") else value for key, value in batch.items()}
        frames = render.render(part, height, width, first=number + first)[0]
        yield (frames.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()


def encode(chunks, target, codec, kbps, size, preset="medium", group=50, rate=RATE):
    """Writes chunks of RGB frames (n, H, W, 3) as an MP4 to `target` (a path or a binary file)."""
    import av

    width, height = size
    with av.open(target, "w", format="mp4") as container:
        stream = container.add_stream(CODECS[codec], rate=rate)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = width, height, "yuv420p", kbps * 1000
        stream.codec_context.max_b_frames = 3
        stream.codec_context.gop_size = group
        stream.codec_context.thread_count = 1
        stream.options = {"preset": preset} | ({"x265-params": "log-level=none:pools=1:frame-threads=1"} if codec == "h265" else {"threads": "1"})
        if codec == "h265":
            stream.codec_context.codec_tag = "hvc1"
        for frames in chunks:
            for frame in frames:
                for packet in stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")):
                    container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


def join(parts, target, seconds):
    """Puts MP4s of so many seconds each (the last may be shorter) behind one another in the MP4 `target`, as they are coded."""
    import av

    with av.open(target, "w", format="mp4") as container:
        stream = None
        for number, path in enumerate(parts):
            with av.open(str(path)) as part:
                source = part.streams.video[0]
                stream = stream or container.add_stream_from_template(source)
                moved = round(number * seconds / source.time_base)
                for packet in part.demux(source):
                    if packet.dts is not None:
                        packet.pts, packet.dts, packet.stream = packet.pts + moved, packet.dts + moved, stream
                        container.mux(packet)


def sampled(source, fps, count):
    """The `count` frames (H, W, 3) that a player shows at the moments k / fps."""
    import av

    out, shown, wanted = [], None, 0
    with av.open(source) as container:
        container.streams.video[0].thread_count = 1
        for frame in container.decode(video=0):
            while wanted < count and wanted / fps < float(frame.pts * frame.time_base) - 1e-6:
                out.append(shown.to_ndarray(format="rgb24"))
                wanted += 1
            shown = frame
    while wanted < count:
        out.append(shown.to_ndarray(format="rgb24"))
        wanted += 1
    return out


def through_codec(story, seed, size, codec, kbps, fps, count, device, preset="veryfast", group=50):
    """The frames that a model samples from the scene once it has been coded and decoded again."""
    buffer = io.BytesIO()
    encode(frames_of(story, seed, size[1], size[0], device), buffer, codec, kbps, size, preset, group)
    buffer.seek(0)
    return sampled(buffer, fps, count)
