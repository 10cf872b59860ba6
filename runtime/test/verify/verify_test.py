#!/usr/bin/env python3
"""verify_test.py ACCELERATE-CPP ORIGINAL MIGRATED WORK [NAME...]: `accelerate-cpp verify` says that right
migrations train the same, and names what is wrong with wrong ones. Each case is one run of verify; NAME chooses some."""

import json
import os
import pathlib
import subprocess
import sys

# The program's loss, the mistake, and what may be said: the kind of the first difference, and in which run.
RIGHT = ["mean", "sum", "penalty", "windows", "clip"]
WRONG = [
    ("mean", "model-not-prepared", {"not-reduced"}, "ranks-2"),
    ("mean", "loader-not-shared", {"not-sharded"}, "ranks-2"),
    ("mean", "metric-not-reduced", {"metric-partial"}, "ranks-2"),
    ("mean", "metric-reduced-twice", {"metric-counted-again"}, "ranks-2"),
    ("mean", "equal-noise", {"other-rows-or-draws"}, "ranks-2"),
    ("sum", "sum-averaged", {"divided-by-ranks"}, "ranks-2"),
    ("mean", "mean-summed", {"times-ranks"}, "ranks-2"),
    ("windows", "windows-alike", {"constant-factor"}, "alone"),
    ("penalty", "penalty-on-each-rank", {"penalty"}, "ranks-2"),
    ("clip", "clip-before-averaging", {"gradient-only", "constant-factor"}, "ranks-2"),
    ("mean", "plain-backward", {"plain-backward"}, "ranks-2"),
    ("mean", "epoch-seed", {"other-rows-or-draws"}, "alone"),
    ("mean", "seeded-by-rank", {"other-rows-or-draws"}, "ranks-2"),
    ("mean", "draw-before-model", {"initial-values"}, "alone"),
    ("mean", "barrier-in-branch", {"hang"}, "ranks-2"),
    ("mean", "rank-leaves-loop", {"hang"}, "ranks-2"),
    ("mean", "rank-stalls", {"hang"}, "ranks-2"),
    ("mean", "saved-by-all", {"file-by-several"}, "ranks-2"),
    ("mean", "saved-wrong", {"saved"}, "ranks-2"),
    ("mean", "saved-before-step", {"saved"}, "ranks-2"),
    ("mean", "other-state-saved", {"saved"}, "alone"),
    ("mean", "buffer-of-own-rows", {"buffers-not-synchronised"}, "ranks-2"),
]
# Where the explanation has to name more than its kind.
NAMES = {
    # The head has the second optimizer, and no name, as no prepared model tells it.
    "model-not-prepared": {"rank": 1, "tensor": "weight [1, 16]", "step": 1},
    "buffer-of-own-rows": {"rank": 1, "tensor": "mean_input"},
    "saved-wrong": {"tensor": "0 [2, 8]", "where": "sums.pt"},
    "saved-before-step": {"tensor": "hidden.weight [16, 8]", "where": "net.pt", "step": 36},
    "other-state-saved": {"tensor": "exp_avg_sq [1, 16] of model 2: weight [1, 16]", "where": "optimizer.pt"},
    "windows-alike": {"step": 8},
    "barrier-in-branch": {"rank": 0},
    "rank-leaves-loop": {"rank": 1},
    "rank-stalls": {"rank": 1},
}
# Where the rule is known whose edit was left out, or that would have found the mistake.
RULES = {
    "model-not-prepared": "AM0301 prepare",
    "loader-not-shared": "AM0303 training-loader",
    "metric-not-reduced": "AM0503 metric-reduce",
    "metric-reduced-twice": "AM0503 metric-reduce",
    "equal-noise": "AM0507 row-noise",
    "sum-averaged": "AM0402 backward-sum",
    "plain-backward": "AM0401 backward",
    "barrier-in-branch": "AM0704 divergent-collective",
    "saved-by-all": "AM0601 save",
    "saved-wrong": "AM0503 metric-reduce",
}


def verify(paths, work, name, scenario, mistake, ranks):
    accelerate, original, migrated = paths
    folder = work / name
    folder.mkdir(parents=True, exist_ok=True)
    document, page = folder / "verify.json", folder / "verify.html"
    for file in (document, page):
        file.unlink(missing_ok=True)
    # What ends of itself takes a few seconds; a rank that stalls is stopped by the limit.
    timeout = 20 if mistake == "rank-stalls" else 120
    command = [accelerate, "verify", "--original", original, "--migrated", migrated, "--ranks", ranks, "--cpu",
               "--timeout", str(timeout), "--work", folder / "runs", "--json", document, "--html", page, "--", scenario]
    environment = dict(os.environ, MISTAKE=mistake, OMP_NUM_THREADS="1")
    if mistake == "rank-stalls":
        environment["ACCELERATE_TIMEOUT"] = "300"  # the library would end it
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
    text = done.stdout + done.stderr
    if not document.is_file():
        raise AssertionError(f"no report (exit code {done.returncode})\n{text}")
    html = page.read_text()
    assert html.count("<svg") == 2 and "http" not in html, "the page isn't self-contained"
    return done.returncode, json.loads(document.read_text()), text


def check_right(paths, work, scenario):
    code, report, text = verify(paths, work, f"right-{scenario}", scenario, "", "2,3")
    assert code == 0 and report["same"], f"exit code {code}\n{text}"
    assert [run["name"] for run in report["runs"]] == ["alone", "ranks-2", "ranks-3"]
    assert "the same training" in text
    for run in report["runs"]:
        assert len(run["losses"]) == len(report["losses"]) == 18, text
        for check in run["checks"]:
            assert check["outcome"] == "same", check
        # Two epochs of eight batches of 12 rows, and one of 4, in slices that differ by a row at most.
        if run["ranks"] > 1:
            assert run["rows"] == 2 * (8 * [12] + [4]), run["rows"]
            for rows, each in zip(run["rows"], run["rank_rows"]):
                assert len(each) == run["ranks"] and sum(each) == rows and max(each) - min(each) <= 1, each
    assert report["runs"][0]["losses"] == report["losses"]
    # Recorded or not, the program computes and writes the same.
    recorded = work / f"right-{scenario}" / "runs" / "original"
    plain = work / f"plain-{scenario}"
    plain.mkdir(exist_ok=True)
    done = subprocess.run([paths[1], scenario], cwd=plain, capture_output=True, check=True,
                          env=dict(os.environ, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES=""))
    assert done.stdout == (recorded / "stdout/rank0.out").read_bytes(), "the recorder changes the output"
    for file in ("net.pt", "sums.pt"):
        assert (plain / file).read_bytes() == (recorded / "folder" / file).read_bytes(), f"the recorder changes {file}"


def check_wrong(paths, work, scenario, mistake, kinds, where):
    code, report, text = verify(paths, work, mistake, scenario, mistake, "2")
    assert code == 4 and not report["same"], f"exit code {code}\n{text}"
    first = next(run for run in report["runs"] if not run["same"])
    assert first["name"] == where, f"found in {first['name']}\n{text}"
    difference = first["first_difference"]
    assert difference["kind"] in kinds, f"{difference['kind']}, expected {' or '.join(kinds)}\n{text}"
    rules = [f"{rule['code']} {rule['name']}" for rule in difference["rules"]]
    assert RULES.get(mistake, rules[0]) in rules, rules
    assert f"    rules: {', '.join(rules)} (" in text, text
    for key, value in NAMES.get(mistake, {}).items():
        found = difference.get(key)
        same = str(value) in str(found) if key in ("tensor", "where") else found == value
        assert same, f"{key} {found}, expected {value}\n{text}"


def check_usage(paths, work):
    """Bad input: exit code 2, or 3 where the original is at fault, a line that says what to do, and no report."""
    accelerate, original, migrated = map(str, paths)
    both = ["--original", original, "--migrated", migrated]
    report = work / "none.json"
    runs = work / "usage-runs"
    cases = [([], 2, "--original is needed"),
             (["--original", original], 2, "--migrated is needed"),
             (["--original", str(work / "absent"), "--migrated", migrated], 2, "absent"),
             ([*both, "--ranks", "2,x"], 2, "--ranks"),
             ([*both, "--ranks", "0"], 2, "--ranks"),
             ([*both, "--mask", "("], 2, "--mask"),
             ([*both, "--json", str(work / "absent" / "x.json")], 2, "--json"),
             ([*both, "--recorder", str(work / "absent.so")], 2, "--recorder"),
             ([*both, "--link", str(work / "absent")], 2, "--link"),
             (["--original", "/bin/true", "--migrated", migrated, "--json", str(report)], 3, "nothing was recorded"),
             # With the environment below it throws.
             (["--original", migrated, "--migrated", migrated, "--json", str(report)], 3, "exit code")]
    environment = dict(os.environ, ACCELERATE_MIXED_PRECISION="fp8")
    for arguments, expected, message in cases:
        arguments = [*arguments, "--work", str(runs)]
        done = subprocess.run([accelerate, "verify", *arguments], env=environment, capture_output=True, text=True)
        assert done.returncode == expected, f"{arguments}: exit code {done.returncode}\n{done.stderr}"
        assert message in done.stderr, f"{arguments}: {done.stderr}"
        assert not report.exists()


def main():
    *paths, work = (pathlib.Path(word).resolve() for word in sys.argv[1:5])
    work.mkdir(parents=True, exist_ok=True)
    cases = [(f"right-{s}", lambda s=s: check_right(paths, work, s)) for s in RIGHT]
    cases += [(case[1], lambda case=case: check_wrong(paths, work, *case)) for case in WRONG]
    cases.append(("usage", lambda: check_usage(paths, work)))
    chosen = sys.argv[5:]
    assert set(chosen) <= {name for name, _ in cases}, f"cases: {' '.join(name for name, _ in cases)}"
    failed = 0
    for name, run in cases:
        if chosen and name not in chosen:
            continue
        try:
            run()
            print(f"ok      {name}", flush=True)
        except AssertionError as error:
            failed += 1
            print(f"FAILED  {name}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
