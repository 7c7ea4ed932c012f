"""Files of stiffness ratios, and what is refused of them."""

import pytest

from flexctl.catalogue.ratios import load_ratios
from flexctl.errors import InputError


def test_ratios_by_part(write):
    path = write("part, ratio\nlink1.y.1, 1.5\n\nrotor2,0.9\n", "k.csv")

    assert load_ratios(path) == {"link1.y.1": 1.5, "rotor2": 0.9}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "header: wanted part, ratio, came "),
        ("name,ratio\nlink1,2\n", "header: wanted part, ratio, came name, ratio"),
        ("part,ratio\n", "rows: wanted one ratio K_hat/K at least, came none"),
        ("part,ratio\nlink1\n", r"row\[1\]: wanted a name and a finite number above 0, came link1"),
        ("part,ratio\nlink1,x\n", r"row\[1\]: .* came link1,x"),
        ("part,ratio\nlink1,0\n", r"row\[1\]: .* came link1,0"),
        ("part,ratio\nlink1,inf\n", r"row\[1\]: .* came link1,inf"),
        ("part,ratio\nlink1,2,3\n", r"row\[1\]: .* came link1,2,3"),
        ("part,ratio\n,2\n", r"row\[1\]: .* came ,2"),
        ("part,ratio\nlink1,2\nlink1,3\n", r"row\[2\]: wanted every part once, came link1"),
    ],
)
def test_files_that_are_no_ratios_are_refused(write, text, said):
    path = write(text, "k.csv")
    with pytest.raises(InputError, match=f"k.csv: {said}"):
        load_ratios(path)
