"""Pictures of results: latency against load, and what was not answered, as PNG and as a page that needs nothing else."""

import html
import io
import os

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib import ticker  # noqa: E402

STYLES = {"p50": "-", "p95": "--", "p99": ":"}
# Text stays text, and the same result gives the same page.
matplotlib.rcParams["svg.fonttype"] = "none"
matplotlib.rcParams["svg.hashsalt"] = "vigil"


def label_of(result, name):
    changes = "+" if result.get("dirty") else ""
    return f"{name} ({result['commit']}{changes})"


def series_of(result, wanted=None):
    """By phase: (cameras, phase) of each step that has it, by load. wanted: these phases alone."""
    found = {}
    for step in sorted(result["steps"], key=lambda step: step["cameras"]):
        for phase in step["phases"]:
            if not wanted or phase["name"] in wanted:
                found.setdefault(phase["name"], []).append((step["cameras"], phase))
    return found


def curves(results, wanted=None):
    """(label, points) of each phase of each result: points are (cameras, phase)."""
    for name, result in results:
        phases = series_of(result, wanted)
        for phase, points in phases.items():
            yield f"{label_of(result, name)}{f', {phase}' if len(phases) > 1 else ''}", points


def draw(results, wanted=None):
    """The figure. results: (name, result); wanted: phases, or all."""
    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 7.5), sharex=True, gridspec_kw={"height_ratios": (3, 1)}, layout="constrained")
    loads, values = set(), []
    for number, (label, points) in enumerate(curves(results, wanted)):
        color = f"C{number % 10}"
        for key, style in STYLES.items():
            line = [(cameras, 1000 * phase["latency"][key]) for cameras, phase in points if phase["latency"].get(key) is not None]
            if line:
                above.plot(*zip(*line), style, color=color, marker="o", markersize=4, label=f"{label}: {key}")
                values += [y for _, y in line]
        shares = [(cameras, 100 * phase["windows"]["answered_share"]) for cameras, phase in points if phase["windows"]["answered_share"] is not None]
        if shares:
            below.plot(*zip(*shares), "-", color=color, marker="o", markersize=4)
        loads |= {cameras for cameras, _ in points}
    if not values:
        raise ValueError("there is nothing to draw: no phase of these results has a latency")
    if max(values) > 20 * min(values):
        above.set_yscale("log")
        above.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        above.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        above.yaxis.set_minor_formatter(ticker.NullFormatter())
    else:
        above.set_ylim(bottom=0)
    names = sorted({result["scenario"]["content"]["name"] for _, result in results})
    above.set_title(f"{', '.join(names)}: from a window's last frame until a subscriber has its event")
    above.set_ylabel("latency, ms")
    below.set_ylabel("answered, %")
    below.set_xlabel("load, cameras")
    below.set_ylim(top=102)
    below.set_xticks(sorted(loads))
    for each in (above, below):
        each.grid(True, alpha=0.3)
    above.legend(fontsize="small", ncols=2 if len(above.lines) > 6 else 1)
    return figure


def cell(value, factor=1.0, digits=0):
    return "" if value is None else f"{factor * value:.{digits}f}"


def rows(results, wanted=None):
    for label, points in curves(results, wanted):
        for cameras, phase in points:
            latency, windows = phase["latency"], phase["windows"]
            yield (label, str(cameras), phase["name"], *(cell(latency.get(key), 1000) for key in ("p50", "p95", "p99", "max")), str(latency["count"]),
                   cell(windows["answered_share"], 100, 1), str(windows["late"]), str(windows["overtaken"]),
                   cell(phase["machine"].get("others_cores"), digits=2))


HEADINGS = ("result", "cameras", "phase", "p50, ms", "p95, ms", "p99, ms", "most, ms", "windows", "answered, %", "late", "overtaken",
            "cores of others")


def about(name, result):
    machine, extra = result["machine"], " and changes that are not committed" if result.get("dirty") else ""
    return (f"{label_of(result, name)}: {result['scenario']['content']['about'] or result['scenario']['content']['name']}; {result['date']}; commit "
            f"{result['commit']}{extra}; {result['vigil']}; {machine['processor']}, {machine['cores']} cores, {machine['memory_mib']} MiB, Linux {machine['kernel']}; "
            f"seed {result['seed']}; load of the machine before it {result['load_before']}")


def page(figure, results, wanted=None):
    """One file: the figure as SVG within, the numbers, and where they come from."""
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = drawn.getvalue()
    svg = svg[svg.index("<svg"):]
    table = "\n".join(f"<tr>{''.join(f'<td>{html.escape(each)}</td>' for each in row)}</tr>" for row in rows(results, wanted))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{html.escape(', '.join(name for name, _ in results))}: latency against load</title>
<style>body {{ font: 15px sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em }} svg {{ max-width: 100%; height: auto }}
table {{ border-collapse: collapse; font-size: 13px }} td, th {{ border: 1px solid #ccc; padding: 2px 8px; text-align: right }}
td:first-child, th:first-child {{ text-align: left }}</style></head><body>
{svg}
<table><tr>{''.join(f'<th>{html.escape(each)}</th>' for each in HEADINGS)}</tr>
{table}
</table>
{''.join(f'<p>{html.escape(about(name, result))}</p>' for name, result in results)}
<p>p50: half of the windows were with a subscriber within that time; p95, p99: 95 and 99 of 100. No window can be answered before its last frame was captured:
that is zero here. Windows that were not answered are in no latency; their share stands beside.</p>
</body></html>
"""


def write(results, folder, name, wanted=None):
    """Paths of the PNG and the page."""
    figure = draw(results, wanted)
    try:
        paths = [os.path.join(folder, f"{name}.{kind}") for kind in ("png", "html")]
        figure.savefig(paths[0], dpi=110, metadata={"Software": None})
        with open(paths[1], "w", encoding="utf-8") as file:
            file.write(page(figure, results, wanted))
    finally:
        plt.close(figure)
    return paths
