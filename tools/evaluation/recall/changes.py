"""Which windows of a video change most: the measure of `changed` in methods.py, of the video as it is coded. Needs PyAV to read it; numpy alone for the rest.

Pictures are of hour.py's size, two a second; a page is 8 s, a window five pages, one every page.
"""

from pathlib import Path

import numpy as np

WIDTH, HEIGHT, RATE, PAGE, PAGES, MOST = 280, 168, 2, 8, 5, 48
SLOW = 60.0  # seconds over which the mean goes that a picture is held against


def pictures(path: Path):
    """RGB (HEIGHT, WIDTH, 3), RATE a second: those that a player shows then."""
    import av

    wanted = 0
    with av.open(str(path)) as container:
        container.streams.video[0].thread_count = 1
        for frame in container.decode(video=0):
            if frame.pts * frame.time_base >= wanted / RATE - 1e-6:
                yield frame.to_ndarray(format="rgb24", width=WIDTH, height=HEIGHT, interpolation="BICUBIC")
                wanted += 1


def stands(shown):
    """How far each group of 28x28 pixels is from a slow mean of its place, for each two pictures: (pairs, groups)."""
    slow, rows = None, []
    for picture in shown:
        grey = (picture.astype(np.float32).mean(2) / 255).reshape(HEIGHT // 2, 2, WIDTH // 2, 2).mean((1, 3))
        slow = grey.copy() if slow is None else slow
        apart = np.abs(grey - slow).reshape(HEIGHT // 14, 7, WIDTH // 14, 7).mean((1, 3))
        rows.append(apart.reshape(HEIGHT // 28, 2, WIDTH // 28, 2).max((1, 3)).reshape(-1))
        slow += (grey - slow) / (SLOW * RATE)
    return np.stack(rows)[:len(rows) // 2 * 2].reshape(-1, 2, len(rows[0])).max(1)


def busiest(change):
    """How much each window changes, beside what is usual at each place: its busiest page, and by the others where that is the same one; (windows,)."""
    usual = change / (np.median(change, 0, keepdims=True) + .004)
    pages = usual[:len(usual) // PAGE * PAGE].reshape(len(usual) // PAGE, -1)
    page = np.sort(pages, 1)[:, -MOST:].mean(1)
    windows = np.lib.stride_tricks.sliding_window_view(page, PAGES)
    return windows.max(1) + 1e-6 * windows.mean(1)


def starts(busy, count, length=PAGE * PAGES):
    """Where the windows begin, in seconds, that change most and do not overlap; fewer where no more have room."""
    chosen = []
    for start in np.argsort(-np.asarray(busy), kind="stable") * float(PAGE):
        if len(chosen) < count and all(abs(start - other) >= length for other in chosen):
            chosen.append(float(start))
    return chosen
