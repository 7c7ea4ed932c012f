"""Files of stiffness ratios, and what is refused of them."""

import pytest

from flexctl.errors import InputError
from flexctl.model.ratios import load_ratios


def test_ratios_by_part(write):
    path = write("part, ratio\nlink1.y.1, 1.5\n\nrotor2,0.9\n", "k.csv")

    assert load_ratios(path) == {"link1.y.1": 1.5, "rotor2": 0.9}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "header: expected part, ratio, got "),
        ("name,ratio\nlink1,2\n", "header: expected part, ratio, got name, ratio"),
        ("part,ratio\n", "rows: expected one ratio K_hat/K at least, got none"),
        (
            "part,ratio\nlink1\n",
            r"line 2: expected a name and a finite number "
            r"above 0, got link1",
        ),
        ("part,ratio\nlink1,x\n", r"line 2: .* got link1,x"),
        ("part,ratio\nlink1,0\n", r"line 2: .* got link1,0"),
        ("part,ratio\nlink1,inf\n", r"line 2: .* got link1,inf"),
        ("part,ratio\nlink1,2,3\n", r"line 2: .* got link1,2,3"),
        ("part,ratio\n\nlink1,x\n", r"line 3: .* got link1,x"),
        ("part,ratio\n,2\n", r"line 2: .* got ,2"),
        ("part,ratio\nlink1,2\nlink1,3\n", r"line 3: expected every part once, got link1"),
    ],
)
def test_files_that_are_no_ratios_are_refused(write, text, said):
    path = write(text, "k.csv")
    with pytest.raises(InputError, match=f"k.csv: {said}"):
        load_ratios(path)
