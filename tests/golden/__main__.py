"""Every command on every arm, from two checkouts: what a rewrite must not change.

    python -m tests.golden run TREE FOLDER [--only WORD] [--jobs 2]
    python -m tests.golden compare BEFORE AFTER [--rtol 1e-6]

`run` keeps the JSON, the table and the messages of each command in FOLDER, computed by the package
in TREE.  `compare` prints what differs, times and provenance apart; poles are compared as sets.
Without --rtol numbers must agree bit by bit.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

APART = {"provenance", "wall_seconds", "seconds"}
POLES = {"slow_poles", "fast_poles", "full_poles"}
TOO_LONG = 900  # seconds for one command
VARIATIONS = (  # options that the plain commands do not reach
    "margin planar-two-link two-link-decoupling --errors links --time-limit 600 --path 3",
    "margin planar-two-link two-link-decoupling --need 0.3 --no-structured --path 5",
    "margin planar-two-link two-link-decoupling --orders --no-structured --path 0",
    "margin planar-two-link two-link-decoupling --chart gains --no-structured --path 0",
    "margin planar-two-link two-link-decoupling --chart damping --no-structured --path 0",
    "margin planar-two-link two-link-decoupling --run --no-structured --path 3",
    "margin planar-two-link two-link-decoupling --unknown-damping --no-structured --path 3",
    "margin vertical-2r vertical-2r-decoupling --errors payload --time-limit 600 --path 3",
    "margin theodore-ghosal-rrp rrp-stiff --errors damping=0.5 --errors modes --time-limit 600"
    " --path 0",
    "track single-link-hub hub-pd --over payload.mass=0.1:2 --points 21",
    "track planar-two-link two-link-decoupling --over link2.EI=*0.5:*2 --points 21",
    "track theodore-ghosal-rrp rrp-gentle --motion reference --points 21",
    "track theodore-ghosal-rrp rrp-gentle --beside e2 --points 21",
    "compare theodore-ghosal-rrp rrp-gentle rrp-stiff rrp-stiff-decoupling",
    "compare theodore-ghosal-rrp rrp-gentle rrp-stiff --truth-set payload.mass=+40%",
    "simulate theodore-ghosal-rrp rrp-gentle --integrator midpoint --step 1e-4 --duration 0.2",
    "simulate theodore-ghosal-rrp rrp-gentle --integrator bdf --duration 0.3",
    "inspect theodore-ghosal-rrp -e 4 --pose joint1=0.5,joint3=0.7",
    "count theodore-ghosal-rrp rrp-stiff --engine lagrange",
    "list",
)


def cases(tree: Path) -> list[str]:
    """All commands: each arm inspected and counted, each design with its own arm judged."""
    fixed = sorted((tree / "tests" / "battery" / "cases").glob("*.arm.toml"))
    arms = sorted(path.stem for path in (tree / "models").glob("*.toml"))
    commands = [f"{word} {arm}" for arm in [*arms, *fixed] for word in ("inspect", "count")]
    pairs = [(_model(path), path.stem) for path in sorted((tree / "designs").glob("*.toml"))]
    pairs += [(arm, str(arm).replace(".arm.toml", ".toml")) for arm in fixed]
    for arm, design in pairs:
        commands += [
            f"simulate {arm} {design}",
            f"compare {arm} {design}",
            f"margin {arm} {design} --no-structured --path 5",
            f"track {arm} {design} --motion rest --points 21",
            f"separation {arm} {design}",
        ]
    return [*commands, *VARIATIONS]


def _model(design: Path) -> str:
    return tomllib.loads(design.read_text("utf-8"))["model"]


def run(tree: Path, folder: Path, only: str, jobs: int) -> None:
    """Run every command with the package of a checkout; what is there already is not run again."""
    folder.mkdir(parents=True, exist_ok=True)
    commands = [command for command in cases(tree) if only in command]
    with ThreadPoolExecutor(jobs) as pool:
        for command in pool.map(lambda words: _run_one(tree, folder, words), commands):
            print(command, flush=True)


def _run_one(tree: Path, folder: Path, command: str) -> str:
    name = command.replace(str(tree), "").replace("/", "_").replace(" ", "+")
    done = folder / f"{name}.txt"
    if done.exists():
        return command
    answer = folder / f"{name}.json"
    env = os.environ | {
        "PYTHONPATH": str(tree),
        "FLEXCTL_CACHE": str(folder / "cache"),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "140",
    }
    words = [sys.executable, "-m", "flexctl", *shlex.split(command), "--out", str(answer)]
    try:
        result = subprocess.run(
            words,
            env=env,
            capture_output=True,
            text=True,
            timeout=TOO_LONG,
            cwd=folder,
            check=False,
        )
        text = f"{result.returncode}\n{result.stderr}{result.stdout}"
    except subprocess.TimeoutExpired:
        text = f"not finished after {TOO_LONG} s\n"
    done.write_text(_without_places(text, tree, folder), "utf-8")
    if answer.exists():
        answer.write_text(_without_places(answer.read_text("utf-8"), tree, folder), "utf-8")
    return command


def _without_places(text: str, tree: Path, folder: Path) -> str:
    """Leave out where checkout and results lie, and how long a run took."""
    text = text.replace(str(tree), "").replace(str(folder), "")
    return re.sub(r"steps in [0-9.e+-]+ s\b", "steps", text)


def compare(before: Path, after: Path, rtol: float, *, words: bool) -> int:
    """Print what differs between two folders; return how many commands differ."""
    differing = 0
    for path in sorted(before.glob("*.txt")):
        other = after / path.name
        found = ["missing"] if not other.exists() else [*_differences(path, other, rtol, words)]
        if found:
            differing += 1
            print(path.stem.replace("+", " "), *found[:8], sep="\n    ")
    print(f"{differing} commands differ")
    return differing


def _differences(path: Path, other: Path, rtol: float, words: bool) -> Any:
    texts = [file.read_text("utf-8").split("\n", 1) for file in (path, other)]
    if texts[0][0] != texts[1][0]:
        yield f"status {texts[0][0]} -> {texts[1][0]}: {texts[1][1][:200]}"
    elif words:
        spoken = [re.sub(r"\s+", " ", text[1]).split(". ") for text in texts]  # however wrapped
        for old, new in zip_longest(*spoken, fillvalue=""):
            if old != new:
                yield f"- {old}"
                yield f"+ {new}"
    files = [file.with_name(file.name[:-4] + ".json") for file in (path, other)]
    answers = [json.loads(file.read_text("utf-8")) if file.exists() else None for file in files]
    yield from _differ("", *answers, rtol)


def _differ(key: str, old: Any, new: Any, rtol: float) -> Any:
    """Every place where two answers differ; keys that are new are no difference."""
    name = key.rsplit(".", 1)[-1]
    if isinstance(old, dict) and isinstance(new, dict):
        for word in old.keys() - APART:
            if word not in new:
                yield f"{key}.{word} is gone"
            else:
                yield from _differ(f"{key}.{word}", old[word], new[word], rtol)
    elif name in POLES and rtol and isinstance(old, list) and isinstance(new, list):
        yield from _differ_as_sets(key, old, new, rtol)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{key}: {len(old)} -> {len(new)} entries"
        else:
            for place, (one, other) in enumerate(zip(old, new, strict=True)):
                yield from _differ(f"{key}[{place}]", one, other, rtol)
    elif isinstance(old, float) and isinstance(new, (float, int)) and rtol:
        if not np.isclose(old, new, rtol=rtol, atol=1e-12):
            yield f"{key}: {old} -> {new}"
    elif old != new and not (rtol and isinstance(old, str)):
        yield f"{key}: {str(old)[:120]} -> {str(new)[:120]}"


def _differ_as_sets(key: str, old: list, new: list, rtol: float) -> Any:
    one, other = (np.array([complex(*np.ravel(pole)) for pole in poles]) for poles in (old, new))
    if len(one) != len(other):
        yield f"{key}: {len(one)} -> {len(other)} poles"
        return
    distance = np.abs(one[:, None] - other)
    rows, columns = linear_sum_assignment(distance)
    worst = (distance[rows, columns] / np.maximum(np.abs(one[rows]), 1e-9)).max(initial=0.0)
    if worst > rtol:
        yield f"{key}: poles differ by {worst:.2e} of themselves"


def main() -> int:
    """Run a checkout, or compare what two gave."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words = parser.add_subparsers(dest="word", required=True)
    runs = words.add_parser("run")
    runs.add_argument("tree", type=lambda text: Path(text).resolve())
    runs.add_argument("folder", type=lambda text: Path(text).resolve())
    runs.add_argument("--only", default="")
    runs.add_argument("--jobs", type=int, default=2)
    compares = words.add_parser("compare")
    compares.add_argument("before", type=Path)
    compares.add_argument("after", type=Path)
    compares.add_argument("--rtol", type=float, default=0.0)
    compares.add_argument("--words", action="store_true", help="tables and messages too")
    given = parser.parse_args()
    if given.word == "run":
        run(given.tree, given.folder, given.only, given.jobs)
        return 0
    return min(compare(given.before, given.after, given.rtol, words=given.words), 1)


if __name__ == "__main__":
    sys.exit(main())
