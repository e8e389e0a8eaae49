"""Which answers of service.py are right, which windows were found, and what was read for it.

"Yes" is a probability of YES (log odds of 3) or more, "No" less than one half; nobody is sure between, and is neither right nor falsely sure. A "whether" is right if it says what is so; a "when" if its
moment lies within NEAR seconds of a time that it happened; a "who" if it names the colour of somebody who did it in the window that was found best (of a bag: its owner's). What did not happen is
answered rightly by "No" alone. Seconds are those of the hour. Intervals are Wilson's, as if questions had nothing to do with each other; those of scenes, whose questions are about the same few things, are
drawn anew by scenes (RESAMPLED times).
"""

import re
import statistics

import numpy as np

from evaluation.tables import wilson

CONTROLS = ("recent", "uniform", "random", "changed")  # of stretches
CONTROLLED = (*CONTROLS, "rekv")
RESAMPLED = 10_000
YES, NEAR, FEW, HELD = 1 / (1 + 2.718281828459045 ** -3), 5.0, 4, 2.0


def verdict(answer):
    return None if "failed" in answer else "yes" if answer["probability"] >= YES else "no" if answer["probability"] < .5 else "unsure"


def off(told, windows):
    """Seconds from a moment to the nearest time that it happened: positive if that is later."""
    return min((max(window["from"] - told, 0.0) or min(window["to"] - told, 0.0) for window in windows), key=abs)


def holds(evidence, window):
    """Whether one of the windows that were read shows HELD seconds of a time that it happened, or all of it."""
    return any(min(end, window["to"]) - max(begin, window["from"]) >= min(HELD, window["to"] - window["from"]) for begin, end in evidence)


def right(question, answer):
    said = verdict(answer)
    if not question["happened"]:
        return said == "no"
    if said != "yes" or question["kind"] == "whether":
        return said == "yes"
    if question["kind"] == "when":
        return answer["moment"] is not None and abs(off(answer["moment"], question["windows"])) <= NEAR
    words = re.findall("[a-z]+", answer["text"].lower())
    shown = [window for window in question["windows"] if holds(answer["evidence"][:1], window)]
    return any(window["colours"] and window["colours"][0] in words for window in shown)


def share(hits):
    """Hits, of how many, and the share with its interval."""
    return dict(hits=sum(hits), of=len(hits), share=sum(hits) / len(hits) if hits else None, interval=wilson(sum(hits), len(hits)))


def resampled(hits):
    """The 95 % interval of a share over scenes; `hits`: of each scene, a list. None of fewer than two scenes."""
    each = np.array([(sum(mine), len(mine)) for mine in hits if mine], float).reshape(-1, 2)
    if len(each) < 2:
        return None
    drawn = each[np.random.default_rng(0).integers(len(each), size=(RESAMPLED, len(each)))].sum(1)
    return [float(edge) for edge in np.quantile(drawn[:, 0] / drawn[:, 1], (.025, .975))]


def gap(by_scene):
    """How much of the way from the best control to the oracle `windows` goes, and its interval over scenes; of the questions that all of these were asked. None where there is no way.

    `by_scene`: of each method, of each scene, whether each question was answered rightly ({question: right}).
    """
    controls = [name for name in CONTROLLED if name in by_scene]
    if not controls or not {"windows", "oracle"} <= by_scene.keys():
        return None
    names, sums = ["windows", "oracle", *controls], []
    for scene in set.intersection(*(set(by_scene[name]) for name in names)):
        both = set.intersection(*(set(by_scene[name][scene]) for name in names))
        sums.append([sum(by_scene[name][scene][question] for question in both) for name in names] + [len(both)])
    sums = np.array(sums, float).reshape(-1, len(names) + 1)
    if not sums[:, -1].sum():
        return None

    def way(of):
        best = of[..., 2:-1].max(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return (of[..., 0] - best) / (of[..., 1] - best)

    closed = float(way(sums.sum(0)))
    if not np.isfinite(closed):
        return None
    drawn = way(sums[np.random.default_rng(0).integers(len(sums), size=(RESAMPLED, len(sums)))].sum(1))
    # Where the oracle is no better than a control, there is no way.
    drawn = drawn[np.isfinite(drawn)]
    interval = [float(edge) for edge in np.quantile(drawn, (.025, .975))] if len(sums) > 1 and len(drawn) else None
    return dict(share=closed, interval=interval, of=int(sums[:, -1].sum()), control=controls[int(sums.sum(0)[2:-1].argmax())])


def graded(records, answers):
    """For each method what the tables show, and each answer with what became of it."""
    asked = {question["id"]: (record, question) for record in records for question in record["questions"]}
    windows_tokens = {each["id"]: each["tokens"] for each in answers if each["method"] == "windows" and "tokens" in each}
    by_scene = {}
    for each in answers:
        record, question = asked[each["id"]]
        by_scene.setdefault(each["method"], {}).setdefault(record["seed"], {})[each["id"]] = right(question, each)
    methods, all_bytes = {}, {each["id"]: each["bytes"] for each in answers if each["method"] == "exhaustive" and "bytes" in each}
    for method in dict.fromkeys(each["method"] for each in answers):
        mine = [(*asked[each["id"]], each) for each in answers if each["method"] == method]
        happened, not_happened = ([(r, q, a) for r, q, a in mine if q["happened"] is wanted] for wanted in (True, False))
        whole = [(r, q, a) for r, q, a in happened if verdict(a) is not None]
        thirds = [[], [], []]
        for record, question, answer in whole:
            for window in question["windows"] if len(question["windows"]) <= FEW else ():
                thirds[min(2, int(3 * max(0.0, window["age"]) / record["seconds"]))].append(holds(answer["evidence"], window))
        found = [(record["seed"], any(holds(a["evidence"], window) for window in q["windows"])) for record, q, a in whole]
        shows = any(a["evidence"] for _, _, a in whole)
        read = [a for _, _, a in mine if "tokens" in a]
        errors = [off(a["moment"], q["windows"]) for _, q, a in happened if q["kind"] == "when" and a.get("moment") is not None]
        methods[method] = dict(
            right=dict(share([right(q, a) for _, q, a in mine]), scenes=resampled([list(each.values()) for each in by_scene[method].values()])), **{kind: share([right(q, a) for _, q, a in mine if q["kind"] == kind]) for kind in ("whether", "when", "who")},
            yes=share([verdict(a) == "yes" for _, _, a in happened]), false_yes=share([verdict(a) == "yes" for _, _, a in not_happened]),
            unsure=share([verdict(a) == "unsure" for _, _, a in mine]), failed=sum(verdict(a) is None for _, _, a in mine),
            # Of what reads no windows, none can be found.
            found=dict(share([hit for _, hit in found]), scenes=resampled([[hit for at, hit in found if at == seed] for seed in dict.fromkeys(seed for seed, _ in found)])) if shows else share([]),
            thirds=[share(each) for each in thirds] if shows else [share([])] * 3,
            moments=dict(of=len(errors), within_2=sum(abs(each) <= 2 for each in errors), within_5=sum(abs(each) <= NEAR for each in errors)),
            tokens=sum(a["tokens"] for a in read) / max(1, sum(a["all_tokens"] for a in read)) if read and method not in CONTROLS else None,
            tokens_beside=beside_windows(read, windows_tokens), devices=sorted({a.get("device", "cpu") for _, _, a in mine}),
            bytes=beside(read, all_bytes), tokens_each=statistics.mean(a["tokens"] for a in read) if read else None, bytes_each=statistics.mean(a["bytes"] for a in read) if read else None,
            seconds=statistics.median(a["seconds"]["total"] for a in read) if read else None, most_seconds=max(a["seconds"]["total"] for a in read) if read else None,
            load=statistics.mean(a["load"] for _, _, a in mine))
    each = [dict(answer, right=right(asked[answer["id"]][1], answer), verdict=verdict(answer), rule=asked[answer["id"]][1]["rule"], kind=asked[answer["id"]][1]["kind"], happened=asked[answer["id"]][1]["happened"])
            for answer in answers]
    return dict(scenes=len({record["seed"] for record, _ in (asked[a["id"]] for a in answers)}), gap=gap(by_scene), things=things(asked, answers), methods=methods, answers=each)


def beside(read, all_bytes):
    """Bytes that were read as a share of those that `exhaustive` has read for the same questions, and of how many that is; None where it was not asked."""
    both = [answer for answer in read if answer["id"] in all_bytes]
    return dict(share=sum(answer["bytes"] for answer in both) / sum(all_bytes[answer["id"]] for answer in both), of=len(both)) if both else None


def beside_windows(read, tokens):
    """Tokens that were read as a share of those that `windows` has read for the same questions; None where it was not asked."""
    both = [answer for answer in read if answer["id"] in tokens]
    return sum(answer["tokens"] for answer in both) / max(1, sum(tokens[answer["id"]] for answer in both)) if both else None


def things(asked, answers):
    """How many things were asked about: rules of scenes, of those that happened and of those that did not."""
    of = {(record["seed"], question["rule"], question["happened"]) for record, question in (asked[answer["id"]] for answer in answers)}
    return dict(happened=sum(each[2] for each in of), did_not=sum(not each[2] for each in of))


def tables(result):
    """Markdown."""
    def told(one, plain=False):
        if not one["of"]:
            return ""
        return f"{one['share']:.3f}" + ("" if plain else f" ({one['interval'][0]:.3f} to {one['interval'][1]:.3f})")

    def figure(value, form):
        return "" if value is None else format(value, form)

    def scenes(one):
        return f"{one['scenes'][0]:.3f} to {one['scenes'][1]:.3f}" if one.get("scenes") else ""

    lines = [f"{result['scenes']} scenes; things (rules of scenes) that happened: {result['things']['happened']}, that did not: {result['things']['did_not']}", ""]
    if result["gap"]:
        way = result["gap"]
        interval = f" ({way['interval'][0]:.2f} to {way['interval'][1]:.2f} over scenes)" if way["interval"] else ""
        lines += [f"Of the way from the best control (`{way['control']}`) to the oracle, `windows` goes {way['share']:.2f}{interval}; {way['of']} questions that all were asked", ""]
    lines += ["| method | questions | right (95 %) | over scenes | whether | when | who | Yes where it happened | false Yes | unsure | failed | on |", "|---" * 12 + "|"]
    for name, each in result["methods"].items():
        lines.append(f"| `{name}` | {each['right']['of']} | {told(each['right'])} | {scenes(each['right'])} | " + " | ".join(told(each[kind], True) for kind in ("whether", "when", "who"))
                     + f" | {told(each['yes'])} | {told(each['false_yes'])} of {each['false_yes']['of']} | {told(each['unsure'], True)} | {each['failed']} | {', '.join(each['devices'])} |")
    lines += ["", "| method | a true window among those read (95 %) | over scenes | each time, of what happened up to four times: last third of the hour | middle | first | moments within 2 s | within 5 s |", "|---" * 8 + "|"]
    for name, each in result["methods"].items():
        # The one is given its window; the other's is put together of patches from all over the hour.
        if name in ("oracle", "compose"):
            continue
        lines.append(f"| `{name}` | {told(each['found'])} | {scenes(each['found'])} | " + " | ".join(f"{told(third)} of {third['of']}" if third["of"] else "" for third in each["thirds"])
                     + f" | {each['moments']['within_2']} of {each['moments']['of']} | {each['moments']['within_5']} |")
    lines += ["", "| method | tokens beside `exhaustive` | beside `windows` | bytes beside `exhaustive` | tokens | bytes from the disk | seconds until the answer, median | most | load meanwhile |", "|---" * 9 + "|"]
    for name, each in result["methods"].items():
        share_of = f"{each['bytes']['share']:.3f} of {each['bytes']['of']} questions" if each["bytes"] else ""
        lines.append(f"| `{name}` | {figure(each['tokens'], '.3f')} | {figure(each['tokens_beside'], '.2f')} | {share_of} | {figure(each['tokens_each'], ',.0f')} | {figure(each['bytes_each'], ',.0f')} | {figure(each['seconds'], '.1f')} | {figure(each['most_seconds'], '.1f')} | {each['load']:.1f} |")
    return "\n".join(lines)
