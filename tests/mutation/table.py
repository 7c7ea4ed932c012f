"""The table of witnesses: which tests answer for which source, and which slips change nothing."""

from __future__ import annotations

import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("witnesses.toml")


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


def witnesses() -> dict[str, list[str]]:
    """Tests by source."""
    return {file: entry["tests"] for file, entry in _table().items()}


def equivalents(file: str) -> dict[str, str]:
    """Why a slip changes nothing that can be seen, by its label."""
    reasons = _table()[file].get("equivalent", {})
    return {label: reason for reason, labels in reasons.items() for label in labels}


def changed_files(root: Path, base: str) -> list[str]:
    """Sources that differ from what `base` and this branch have in common."""
    common = _git(root, "merge-base", base, "HEAD")[0]
    return _git(root, "diff", "--name-only", common, "--", "flexctl")


def _git(root: Path, *words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()
