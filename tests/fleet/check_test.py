#!/usr/bin/python3
"""The checker of fleets (loadtest/fleet/check.py) against logs that are made up: a sound one, and each violation planted in it."""

import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "loadtest", "fleet"))
import check  # noqa: E402

TOPIC, SHARED = "alert/default/cam/pulse/", "topic/staff/default/cam/pulse/"
FIRST, SECOND = "01M8BD2QY2G30ZC08WRMJZ926X", "01M8BD2QY2DQ6F83F19ZNEMW71"


def alert(seq, phase, episode, ordinal, second, topic=TOPIC, **data):
    event = {"id": f"{episode}-{ordinal}", "source": "/site/default/camera/cam", "type": "dev.vigil.alert.v1",
             "data": {"seq": seq, "phase": phase, "episode": episode, "window": {"end": f"2026-08-01T10:00:{second:06.3f}Z"}, **data}}
    return topic, seq, event


# Two episodes on the rule's topic and on a shared one.
STORY = [(1, "new", FIRST, 0, 1), (2, "update", FIRST, 1, 2), (3, "update", FIRST, 2, 3), (4, "end", FIRST, 3, 3), (5, "new", SECOND, 0, 5),
         (6, "update", SECOND, 1, 6)]


def sound(gateways=("g1", "g2"), story=None):
    """Each gateway tells all of it live, and again in a last reading."""
    events = [alert(*each, topic=topic) for each in (story or STORY) for topic in (TOPIC, SHARED)]
    seen = [see(gateway, pos, *event, how=how, t=pos + (1000 if how == "replay" else 0))
            for gateway in gateways for how in ("live", "replay") for pos, event in enumerate(events, 1)]
    journal = [{"t": 0, "what": "fleet", "gateways": True}, {"t": 2000, "what": "final", "gateways": list(gateways), "reading": "end", "began": 900}]
    return check.Log(seen, journal, reads=[(gateway, "end", f"outbox-{gateway}") for gateway in gateways])


def see(gateway, pos, topic, seq, event, how="live", t=0):
    replayed = {"outbox": f"outbox-{gateway}", "reading": "end"} if how == "replay" else {}
    return check.Seen(t, gateway, how, topic, seq, pos, json.dumps(event), event, **replayed)


def kinds(log):
    return {each.kind for each in check.violations(log)}


def changed(log, where, **new):
    """With other values in the sightings that `where` chooses; `data` goes into the event."""
    def change(each):
        if not where(each):
            return each
        data = new.get("data", {})
        event = {**each.event, **new.get("event", {}), "data": {**each.event["data"], **data}}
        return each._replace(event=event, raw=json.dumps(event), **{key: value for key, value in new.items() if key not in ("data", "event")})
    return check.Log([change(each) for each in log.seen], log.journal, log.samples, log.reads)


class Check(unittest.TestCase):
    def test_a_sound_log_has_none(self):
        self.assertEqual(check.violations(sound()), [])

    def test_a_resend_is_none(self):
        log = sound()
        again = [each._replace(t=500) for each in log.seen if each.how == "live" and each.seq in (2, 3)]
        self.assertEqual(check.violations(check.Log(log.seen + again, log.journal, reads=log.reads)), [])

    def test_another_content_of_one_number(self):
        self.assertEqual(kinds(changed(sound(), lambda each: (each.gateway, each.topic, each.seq) == ("g2", SHARED, 3), data={"score": 1})), {"two_contents"})

    def test_one_byte_is_another_content(self):
        log = sound()
        spaced = [each._replace(raw=each.raw + " ") if each.how == "live" and (each.gateway, each.topic, each.seq) == ("g1", TOPIC, 2) else each for each in log.seen]
        self.assertEqual(kinds(check.Log(spaced, log.journal, reads=log.reads)), {"two_contents"})

    def test_an_id_of_two_events(self):
        self.assertIn("id_twice", kinds(changed(sound(), lambda each: each.seq == 6, event={"id": f"{SECOND}-0"})))

    def test_copies_that_differ(self):
        self.assertEqual(kinds(changed(sound(), lambda each: (each.topic, each.seq) == (SHARED, 3), data={"score": 1})), {"copies_differ"})

    def test_a_number_that_contradicts(self):
        self.assertEqual(kinds(changed(sound(), lambda each: (each.topic, each.seq) == (SHARED, 3), data={"seq": 4})), {"number"})

    def test_events_in_another_order(self):
        log = sound()
        times = {2: 3, 3: 2}
        late = [each._replace(t=times.get(each.seq, each.seq)) if each.how == "live" and (each.gateway, each.topic) == ("g1", TOPIC) else each for each in log.seen]
        self.assertEqual(kinds(check.Log(late, log.journal, reads=log.reads)), {"order"})

    def test_positions_that_do_not_ascend(self):
        self.assertEqual(kinds(changed(sound(), lambda each: each.how == "replay" and (each.gateway, each.pos) == ("g1", 4), pos=2)), {"position"})

    def test_a_gap(self):
        log = sound()
        seen = [each for each in log.seen if (each.topic, each.seq) != (SHARED, 3)]
        self.assertEqual(kinds(check.Log(seen, log.journal, reads=log.reads)), {"gap"})

    def test_a_gap_at_the_beginning(self):
        log = sound()
        seen = [each for each in log.seen if (each.topic, each.seq) != (SHARED, 1)]
        self.assertEqual(kinds(check.Log(seen, log.journal, reads=log.reads)), {"gap"})

    def test_an_event_that_was_seen_and_is_lost(self):
        log = sound()
        seen = [each for each in log.seen if (each.gateway, each.how, each.seq) != ("g2", "replay", 6)]
        self.assertEqual([each.kind for each in check.violations(check.Log(seen, log.journal, reads=log.reads))], ["lost"])

    def test_a_gateway_that_has_nothing(self):
        log = sound()
        seen = [each for each in log.seen if (each.gateway, each.how) != ("g2", "replay")]
        self.assertEqual(kinds(check.Log(seen, log.journal, reads=log.reads)), {"lost"})

    def test_a_gateway_that_cannot_be_read(self):
        log = sound()
        self.assertEqual(kinds(check.Log(log.seen, log.journal, reads=[("g1", "end", "outbox-g1"), ("g2", "end", None)])), {"silent"})

    def test_a_run_without_an_end(self):
        log = sound()
        self.assertEqual(kinds(check.Log(log.seen, log.journal[:1], reads=log.reads)), {"silent"})

    def test_two_episodes_at_once(self):
        story = STORY[:3] + [(4, "new", SECOND, 0, 5), (5, "update", FIRST, 3, 6), (6, "end", FIRST, 4, 6)]
        self.assertIn("episode", kinds(sound(story=story)))

    def test_an_episode_that_begins_in_the_middle(self):
        self.assertEqual(kinds(sound(story=STORY[:4] + [(5, "update", SECOND, 3, 5), (6, "update", SECOND, 4, 6)])), {"episode"})

    def test_an_episode_that_goes_on_after_its_end(self):
        self.assertEqual(kinds(sound(story=STORY[:4] + [(5, "update", FIRST, 4, 5)])), {"episode"})

    def test_an_ordinal_that_is_left_out(self):
        self.assertEqual(kinds(sound(story=STORY[:4] + [(5, "new", SECOND, 0, 5), (6, "update", SECOND, 2, 6)])), {"episode"})

    def test_evidence_after_the_end_is_none(self):
        log = sound(story=STORY[:4] + [(5, "end", FIRST, 4, 3)])
        self.assertEqual(kinds(log), {"episode"})
        self.assertEqual(kinds(changed(log, lambda each: each.seq == 5, data={"cause": "evidence"})), set())

    def test_a_window_that_is_told_twice(self):
        self.assertEqual(kinds(sound(story=STORY[:5] + [(6, "update", SECOND, 1, 5)])), {"window"})

    def test_a_window_that_is_older(self):
        log = sound(story=STORY[:5] + [(6, "update", SECOND, 1, 4.5)])
        self.assertEqual(kinds(log), {"window"})

    def test_a_window_that_is_older_while_a_clock_is_wrong_is_none(self):
        log = sound(story=STORY[:5] + [(6, "update", SECOND, 1, 4.5)])
        clock = lambda t, seconds: {"t": t, "what": "clock", "node": "c1", "seconds": seconds}  # noqa: E731
        found = lambda *lines: kinds(check.Log(log.seen, [*log.journal, *lines], reads=log.reads))  # noqa: E731
        self.assertEqual(found(clock(3, -5)), set())
        self.assertEqual(found(clock(1, 5), clock(5, 0)), set(), "it was ahead until then")
        self.assertEqual(found(clock(-40, 5), clock(-30, 0)), {"window"}, "it is right again")
        self.assertEqual(found(clock(500, 5)), {"window"}, "it was right then")

    def test_two_owners_at_once_by_their_fences(self):
        def with_fences(*fences):
            log = sound()
            for seq, fence in enumerate(fences, 1):
                log = changed(log, lambda each, seq=seq: each.seq == seq, data={"camera": "cam", "tenant": "default", "fence": fence})
            return log
        self.assertEqual(kinds(with_fences(7, 7, 7, 7, 9, 9)), set())
        self.assertEqual(kinds(with_fences(7, 9, 7, 7, 9, 9)), {"fence"}, "the former one is heard again")
        self.assertEqual(kinds(with_fences(9, 9, 9, 9, 7, 7)), {"fence"}, "they go down")
        self.assertEqual(kinds(with_fences(7, 7, 7, 9, 9, 9)), set(), "an end tells of a window of whoever was there")
        log = with_fences(7, 9, 7, 7, 9, 9)
        self.assertEqual(kinds(check.Log(log.seen, [*log.journal, {"t": 1, "what": "clock", "node": "c1", "seconds": 5}], reads=log.reads)), set())

    def test_a_fence_of_another_topic_counts(self):
        log = changed(sound(), lambda each: True, data={"camera": "cam", "tenant": "default", "fence": 7})
        other = "alert/default/cam/other/"
        more = [see(gateway, 20, *alert(1, "new", FIRST, 0, 4, topic=other, camera="cam", tenant="default", fence=8), how=how, t=1020)
                for gateway in ("g1", "g2") for how in ("live", "replay")]
        more = [each._replace(raw=each.raw.replace(FIRST, "01M8BD2QY2G30ZC08WRMJZ926Z"), event={**each.event, "id": "01M8BD2QY2G30ZC08WRMJZ926Z-0"}) for each in more]
        self.assertEqual(kinds(check.Log([*log.seen, *more], log.journal, reads=log.reads)), {"fence"})

    def test_what_is_seen_after_the_last_reading_began_may_be_in_none(self):
        log = sound()
        late = log.seen[0]._replace(t=1500, topic="alert/default/cam/late/")
        self.assertEqual(kinds(check.Log([*log.seen, late._replace(t=800)], log.journal, reads=log.reads)), {"lost"})
        self.assertEqual(kinds(check.Log([*log.seen, late], log.journal, reads=log.reads)), set())

    def test_without_gateways_numbers_are_each_nodes_own(self):
        log = changed(sound(), lambda each: each.gateway == "g2", data={"score": 1})
        self.assertEqual(kinds(log), {"two_contents"})
        alone = [{"t": 0, "what": "fleet", "gateways": False}, log.journal[1]]
        self.assertEqual(kinds(check.Log(log.seen, alone, reads=log.reads)), set())

    def test_memory_that_grows(self):
        grow = lambda rate: [{"t": t, "node": "c1", "pid": 7, "rss": (200 + max(0, t - 60) * rate) * 2**20} for t in range(600)]  # noqa: E731
        kinds_of = lambda samples: kinds(check.Log(sound().seen, sound().journal, samples, sound().reads))  # noqa: E731
        self.assertEqual(kinds_of(grow(0.05)), set())
        self.assertEqual(kinds_of(grow(0.15)), {"memory"}, "9 MiB a minute, for minutes")
        self.assertEqual(kinds_of(grow(0.15)[:300]), set(), "for too short a time to tell")
        self.assertEqual(kinds_of(grow(1)), {"memory"})
        # Of a run that is over before anything settles, what there is at most counts.
        self.assertEqual(kinds_of(grow(0)[:40]), set())
        self.assertEqual(kinds_of([*grow(0)[:40], {"t": 40, "node": "c1", "pid": 7, "rss": 1100 * 2**20}]), {"memory"})

    def test_the_files_of_a_run(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            log = sound()
            for gateway in ("g1", "g2"):
                with open(os.path.join(folder, f"seen-{gateway}.jsonl"), "w", encoding="utf-8") as file:
                    for each in log.seen:
                        if each.gateway == gateway:
                            more = {"outbox": each.outbox, "reading": each.reading} if each.how == "replay" else {}
                            file.write(json.dumps({"t": each.t, "gateway": gateway, "saw": each.how, "topic": each.topic, "seq": each.seq, "pos": each.pos,
                                                   "event": each.raw, **more}) + "\n")
                    file.write(json.dumps({"t": 2, "gateway": gateway, "saw": "read", "reading": "end", "outbox": "x", "count": 12}) + "\n")
                    file.write('{"t": 3, "gateway": "half a li')
            with open(os.path.join(folder, "journal.jsonl"), "w", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in log.journal)
            read = check.Log.of(folder)
            self.assertEqual(check.violations(read), [])
            self.assertEqual(len(read.seen), len(log.seen))


if __name__ == "__main__":
    unittest.main(verbosity=1)
