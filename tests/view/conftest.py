"""Run the command line as a person does: words in, status and both streams out."""

from typing import NamedTuple

import pytest

from flexctl.view.cli import run

QUICK = ("single-link-hub", "hub-pd", "-m", "1", "--truth-modes", "1")


class Said(NamedTuple):
    """What a command said and how it ended."""

    status: int
    out: str
    err: str


@pytest.fixture
def flexctl(capsys):
    def call(*words):
        status = run([str(word) for word in words])
        streams = capsys.readouterr()
        return Said(status=status, out=streams.out, err=streams.err)

    return call
