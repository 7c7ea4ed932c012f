"""Records to files, without the command line: figures, reports, JSON."""

import html
import json

import control
import pytest

import flexctl
from flexctl.errors import InputError

ARM = "single-link-hub"


@pytest.fixture(scope="module")
def controller():
    lag = control.ss([[-50.0]], [[50.0, 0.0]], [[20.0]], [[0.0, 6.0]])
    measures = ["joint1", "joint1_rate"]
    return flexctl.wrap_controller(lag, ARM, "hub-pd", measures=measures, name="lagging")


@pytest.fixture(scope="module")
def comparison(controller):
    return flexctl.compare(ARM, [controller, "hub-pd"], baseline=False)


@pytest.mark.slow
def test_the_report_has_a_wrapped_controller_beside_a_design(comparison, tmp_path):
    flexctl.save(comparison, tmp_path / "report.html")

    page = (tmp_path / "report.html").read_text("utf-8")
    assert "lagging" in page
    assert "hub-pd" in page
    assert flexctl.explain(comparison).split(".")[0] in page
    assert "Closed-loop eigenvalues" in page
    assert '"gains"' in html.unescape(page)  # what it was made of


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".svg", ".png", ".pdf"])
def test_the_figure_of_a_comparison(comparison, tmp_path, ending):
    path = tmp_path / f"comparison{ending}"
    flexctl.save(comparison, path)

    starts = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}
    assert path.read_bytes().startswith(starts[ending])


def test_eigenvalue_loci_of_a_wrapped_controller(controller, tmp_path):
    loop = flexctl.close_loop(controller, ARM, modes=2)
    loci = flexctl.eigenvalue_loci(loop, over="payload.mass", between=(0.1, 0.5), points=5)
    flexctl.save(loci, tmp_path / "loci.svg")

    assert "payload.mass" in (tmp_path / "loci.svg").read_text("utf-8")


@pytest.mark.slow
def test_margins_have_figures(tmp_path):
    margin = flexctl.stiffness_margin("planar-two-link", "two-link-decoupling", n_path=0)
    flexctl.save(margin, str(tmp_path / "margin.svg"))
    separation = flexctl.time_scale_margin("subudhi-morris-2r", "subudhi-morris-lqr")
    flexctl.save(separation, tmp_path / "separation.svg")

    assert {path.name for path in tmp_path.iterdir()} == {"margin.svg", "separation.svg"}


@pytest.mark.slow
def test_any_record_is_written_as_json(comparison, tmp_path):
    flexctl.save(comparison, tmp_path / "comparison.json")
    flexctl.save(flexctl.load_design("hub-pd"), tmp_path / "design.json")

    kept = json.loads((tmp_path / "comparison.json").read_text("utf-8"))
    assert kept["winner"] == comparison.winner
    assert json.loads((tmp_path / "design.json").read_text("utf-8"))["method"] == "joint-pd"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("report.txt", "a file ending in .svg or .png or .pdf or .json or .html, got "),
        ("nowhere/report.html", "expected a folder to write to, got "),
        (".", "a file ending in"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(comparison, tmp_path, name, says):
    with pytest.raises(InputError, match="file of Comparison: expected") as caught:
        flexctl.save(comparison, tmp_path / name)

    assert says in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_record_without_a_figure_says_which_file_it_has(tmp_path):
    with pytest.raises(InputError, match=r"file of Design: expected a file ending in .json, got"):
        flexctl.save(flexctl.load_design("hub-pd"), tmp_path / "design.png")


def test_what_is_no_record_is_refused(tmp_path):
    with pytest.raises(InputError, match="expected one of Arm"):
        flexctl.save(3, tmp_path / "three.json")
