"""The program's answers about a few held-out scenes are those of expected.json, and explanations are told word by word.

    tests/quality/held_out_test.py VIGIL [--write]       --write: keep what VIGIL says as the expected figures
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected.json"
# Of a probability: decoders and processors differ in the last bits of a pixel and of a sum.
TOLERANCE = 0.03


def ask(program, model, case, tokens):
    command = [program, "ask", str(HERE / "scenes" / case["video"]), case["question"], "--model", str(HERE.parent.parent / "models" / model), "--fps", str(case["fps"]), "--to", str(case["seconds"]), "--max-tokens", str(tokens),
               "--dtype", "f32", "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"held_out: {' '.join(command)} failed: {done.stderr}")
    return json.loads(done.stdout)


def main(program, write):
    expected = json.loads(EXPECTED.read_text())
    wrong, right = [], 0
    for case in expected["answers"]:
        said = ask(program, "demo", case, 1)["probability_yes"]
        right += (said > .5) == case["truth"]
        if write:
            case["probability_yes"] = round(said, 4)
        elif abs(said - case["probability_yes"]) > TOLERANCE:
            wrong.append(f"{case['video']} \"{case['question']}\": probability of yes {said:.4f}, expected {case['probability_yes']:.4f}")
    for case in expected["sentences"]:
        said = ask(program, case["model"], case, 48)["answer"]
        if write:
            case["answer"] = said
        elif said != case["answer"]:
            wrong.append(f"{case['video']} \"{case['question']}\" ({case['model']}): \"{said}\", expected \"{case['answer']}\"")
    if write:
        expected["right"] = right
        EXPECTED.write_text(json.dumps(expected, indent=1) + "\n")
    elif right != expected["right"]:
        wrong.append(f"{right} of {len(expected['answers'])} answers are right, expected {expected['right']}")
    print("\n".join(wrong) or f"{right} of {len(expected['answers'])} answers are right, as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--write" in sys.argv[2:]))
