"""The fit finds what was put in, and nothing is fitted on what is held out. Needs numpy alone."""

import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import calibrate  # noqa: E402
from evaluation import calibration  # noqa: E402


def answers(count, slope, bias, first=900_000, own=(1.0, 0.0), seed=3):
    """Records of a model whose log odds are right once they are multiplied by `slope` and moved by `bias`; told through a calibration of its own."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 4, count)
    truth = rng.random(count) < calibration.probability(z, slope, bias)
    told = calibration.probability(z, *own)
    return [dict(window=str(first + k // 4), rule=("car", "bag")[k % 2], truth=bool(t), probability_yes=round(float(p), 7), calibration=own) for k, (t, p) in enumerate(zip(truth, told))]


def run(records, folder, *options):
    """What tools/calibrate.py prints, or the line with which it ends."""
    (folder / "config.json").write_text("{}")
    (folder / "answers.jsonl").write_text("".join(json.dumps(record) + "\n" if isinstance(record, dict) else record + "\n" for record in records))
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            calibrate.main([str(folder / "answers.jsonl"), str(folder), *options])
    except SystemExit as end:
        assert not (folder / calibration.FILE).exists() or "--dry" in options
        return str(end.code)
    return out.getvalue()


def test_the_fit_finds_what_was_put_in():
    records = answers(40_000, 1.3, -.9)
    slope, bias = calibration.fit(calibration.own_log_odds(records), [r["truth"] for r in records])
    assert abs(slope - 1.3) < .05 and abs(bias + .9) < .07, (slope, bias)


def test_the_interval_holds_what_was_put_in_and_a_weight_is_a_repetition():
    records = answers(1200, .8, .5)
    z, truth, scenes = calibration.own_log_odds(records), np.array([r["truth"] for r in records]), [r["window"] for r in records]
    low, high = np.percentile(calibration.spread(z, truth, scenes, 200), [2.5, 97.5], axis=0)
    assert (low < [.8, .5]).all() and (high > [.8, .5]).all() and (high - low < .8).all(), (low, high)
    weight = np.random.default_rng(1).integers(0, 3, len(z))
    assert np.allclose(calibration.fit(z, truth, weight), calibration.fit(np.repeat(z, weight), np.repeat(truth, weight)), atol=1e-6)


def test_a_calibration_that_was_on_is_undone():
    for own in ((1.0, 0.0), (1.4, -1.1), (.6, 2.0)):
        records = answers(4000, 1.2, -.5, own=own)
        slope, bias = calibration.fit(calibration.own_log_odds(records), [r["truth"] for r in records])
        wanted = calibration.fit(calibration.own_log_odds(answers(4000, 1.2, -.5)), [r["truth"] for r in records])
        assert np.allclose((slope, bias), wanted, atol=.02), own
    # The records of one file may come from several.
    mixed = answers(2000, 1.2, -.5) + answers(2000, 1.2, -.5, 950_000, (2.0, 1.0), 4)
    slope, bias = calibration.fit(calibration.own_log_odds(mixed), [r["truth"] for r in mixed])
    assert abs(slope - 1.2) < .15 and abs(bias + .5) < .2


def test_answers_that_fit_no_slope_are_an_error():
    z = np.linspace(-5, 5, 200)
    for truth in (z > 0, z > 9, z < 9, (z < 0) ^ (np.arange(200) % 7 == 0)):
        try:
            found = calibration.fit(z, truth)
        except ValueError:
            continue
        raise AssertionError(found)


def test_sure_answers_stay_finite():
    assert np.isfinite(calibration.log_odds([0, 1, .5])).all()
    records = answers(2000, 1, 0)
    records += [dict(records[0], probability_yes=p, truth=t) for p, t in ((0, False), (1, True), (1.0, True), (0, True))]
    assert np.isfinite(calibration.fit(calibration.own_log_odds(records), [r["truth"] for r in records])).all()


def test_the_file_says_what_was_fitted_and_on_what():
    with tempfile.TemporaryDirectory() as name:
        folder, records = Path(name), answers(2000, 1.2, -.8)
        assert calibration.of_model(folder) == (1.0, 0.0)
        assert "all | 2000" in run(records, folder, "--dry") and not (folder / calibration.FILE).exists()
        run(records, folder)
        written = json.loads((folder / calibration.FILE).read_text())
        fitted = calibration.fit(calibration.own_log_odds(records), [r["truth"] for r in records])
        assert np.allclose(calibration.of_model(folder), fitted, atol=6e-4) and set(written) == {"yes", "fitted_on"}
        assert "2000 answers about 500 scenes of seeds 900000 to 900499" in written["fitted_on"]


def test_what_is_held_out_is_refused():
    good = answers(40, 1, 0)
    for bad, said in ((dict(good[0], window="1000000"), "held out"), (dict(good[0], window="car-detection.mp4"), "held out"), (dict(good[0], window=3), "held out"), (dict(good[0], truth=None), "truth None"),
                      (dict(good[0], probability_yes=1.5), "1.5"), (dict(good[0], probability_yes=float("nan")), "nan"), ("{}", "line 41"), ("[1]", "line 41"), ("", "line 41"), ("{", "line 41")):
        with tempfile.TemporaryDirectory() as name:
            line = run([*good, bad], Path(name))
            assert line.startswith("calibrate: ") and said in line and "\n" not in line, line
    with tempfile.TemporaryDirectory() as name:
        assert "is empty" in run([], Path(name))


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name)
