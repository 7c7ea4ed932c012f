"""The files that docs/reference/files.md shows are files that flexctl reads."""

import re
from pathlib import Path

import pytest

from flexctl.model.lookup import load_design, load_model

BLOCKS = re.findall(
    r"```toml\n(.*?)```",
    (Path(__file__).parent.parent / "docs" / "reference" / "files.md").read_text(encoding="utf-8"),
    re.DOTALL,
)


@pytest.mark.parametrize(("load", "block"), [(load_model, 0), (load_design, 1), (load_design, 2)])
def test_the_documented_file_is_read(load, block, tmp_path):
    path = tmp_path / "documented.toml"
    text = BLOCKS[block]
    if load is load_model:  # the documented tip load stands before a second joint
        text = text.replace("{ joint2 = 1.57 }", "{}")
    path.write_text(text, encoding="utf-8")

    assert load(str(path)).summary == "..."
