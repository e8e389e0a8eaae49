"""Which answers of service.py are right, which windows were found, and what was read for it.

"Yes" is a probability of YES (log odds of 3) or more, "No" less than one half; nobody is sure between, and is neither right nor falsely sure. A "whether" is right if it says what is so; a "when" if its
moment lies within NEAR seconds of a time that it happened; a "who" if it names the colour of somebody who did it in the window that was found best (of a bag: its owner's). What did not happen is
answered rightly by "No" alone. Seconds are those of the hour.
"""

import re
import statistics

from evaluation.tables import wilson

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


def graded(records, answers):
    """For each method what the tables show, and each answer with what became of it."""
    asked = {question["id"]: (record, question) for record in records for question in record["questions"]}
    methods, all_bytes = {}, {each["id"]: each["bytes"] for each in answers if each["method"] == "exhaustive" and "bytes" in each}
    for method in dict.fromkeys(each["method"] for each in answers):
        mine = [(*asked[each["id"]], each) for each in answers if each["method"] == method]
        happened, not_happened = ([(r, q, a) for r, q, a in mine if q["happened"] is wanted] for wanted in (True, False))
        whole = [(r, q, a) for r, q, a in happened if verdict(a) is not None]
        thirds = [[], [], []]
        for record, question, answer in whole:
            for window in question["windows"] if len(question["windows"]) <= FEW else ():
                thirds[min(2, int(3 * max(0.0, window["age"]) / record["seconds"]))].append(holds(answer["evidence"], window))
        read = [a for _, _, a in mine if "tokens" in a]
        errors = [off(a["moment"], q["windows"]) for _, q, a in happened if q["kind"] == "when" and a.get("moment") is not None]
        methods[method] = dict(
            right=share([right(q, a) for _, q, a in mine]), **{kind: share([right(q, a) for _, q, a in mine if q["kind"] == kind]) for kind in ("whether", "when", "who")},
            yes=share([verdict(a) == "yes" for _, _, a in happened]), false_yes=share([verdict(a) == "yes" for _, _, a in not_happened]),
            unsure=share([verdict(a) == "unsure" for _, _, a in mine]), failed=sum(verdict(a) is None for _, _, a in mine),
            found=share([any(holds(a["evidence"], window) for window in q["windows"]) for _, q, a in whole]), thirds=[share(each) for each in thirds],
            moments=dict(of=len(errors), within_2=sum(abs(each) <= 2 for each in errors), within_5=sum(abs(each) <= NEAR for each in errors)),
            tokens=sum(a["tokens"] for a in read) / max(1, sum(a["all_tokens"] for a in read)) if read and method not in ("recent", "uniform", "random") else None,
            bytes=beside(read, all_bytes), tokens_each=statistics.mean(a["tokens"] for a in read) if read else None, bytes_each=statistics.mean(a["bytes"] for a in read) if read else None,
            seconds=statistics.median(a["seconds"]["total"] for a in read) if read else None, most_seconds=max(a["seconds"]["total"] for a in read) if read else None,
            load=statistics.mean(a["load"] for _, _, a in mine))
    each = [dict(answer, right=right(asked[answer["id"]][1], answer), verdict=verdict(answer), rule=asked[answer["id"]][1]["rule"], kind=asked[answer["id"]][1]["kind"], happened=asked[answer["id"]][1]["happened"])
            for answer in answers]
    return dict(scenes=len({record["seed"] for record, _ in (asked[a["id"]] for a in answers)}), things=things(asked, answers), methods=methods, answers=each)


def beside(read, all_bytes):
    """Bytes that were read as a share of those that `exhaustive` has read for the same questions, and of how many that is; None where it was not asked."""
    both = [answer for answer in read if answer["id"] in all_bytes]
    return dict(share=sum(answer["bytes"] for answer in both) / sum(all_bytes[answer["id"]] for answer in both), of=len(both)) if both else None


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

    lines = [f"{result['scenes']} scenes; things (rules of scenes) that happened: {result['things']['happened']}, that did not: {result['things']['did_not']}", "",
             "| method | questions | right (95 %) | whether | when | who | Yes where it happened | false Yes | unsure | failed |", "|---" * 10 + "|"]
    for name, each in result["methods"].items():
        lines.append(f"| `{name}` | {each['right']['of']} | {told(each['right'])} | " + " | ".join(told(each[kind], True) for kind in ("whether", "when", "who"))
                     + f" | {told(each['yes'])} | {told(each['false_yes'])} of {each['false_yes']['of']} | {told(each['unsure'], True)} | {each['failed']} |")
    lines += ["", "| method | a true window among those read | each time, of what happened up to four times: last third of the hour | middle | first | moments within 2 s | within 5 s |", "|---" * 7 + "|"]
    for name, each in result["methods"].items():
        # The one is given its window; the other's is put together of patches from all over the hour.
        if name in ("oracle", "compose"):
            continue
        lines.append(f"| `{name}` | {told(each['found'])} | " + " | ".join(f"{told(third, True)} of {third['of']}" if third["of"] else "" for third in each["thirds"])
                     + f" | {each['moments']['within_2']} of {each['moments']['of']} | {each['moments']['within_5']} |")
    lines += ["", "| method | tokens beside `exhaustive` | bytes beside it | tokens | bytes from the disk | seconds until the answer, median | most | load meanwhile |", "|---" * 8 + "|"]
    for name, each in result["methods"].items():
        share_of = f"{each['bytes']['share']:.3f} of {each['bytes']['of']} questions" if each["bytes"] else ""
        lines.append(f"| `{name}` | {figure(each['tokens'], '.3f')} | {share_of} | {figure(each['tokens_each'], ',.0f')} | {figure(each['bytes_each'], ',.0f')} | {figure(each['seconds'], '.1f')} | {figure(each['most_seconds'], '.1f')} | {each['load']:.1f} |")
    return "\n".join(lines)
