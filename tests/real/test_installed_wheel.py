"""The wheel in an environment of its own: it has every file that it needs, and nothing of a checkout."""

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from streamgauge import __version__
from streamgauge.core.exit_codes import VERDICT_CODES
from tests.helpers_modules import ROOT

PACKAGE = ROOT / "src" / "streamgauge"
TRIAL = (
    "run", "windowed_aggregation", "--engine", "known", "--rate", "1k", "--set", "range=1s", "--set", "slide=1s",
    "--warmup", "1s", "--duration", "2s", "--generators", "1", "--json",
)  # fmt: skip
BUILT_ONCE = pytest.mark.xdist_group("wheel")


def printed(command: Sequence[object], at: Path, codes: Collection[int] = (0,)) -> str:
    """What a command prints in a folder outside of the checkout, whose code it does not find by PYTHONPATH either.

    `codes`: the exit codes that it may have.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*map(str, command)], cwd=at, env=environment, capture_output=True, text=True, check=False)
    print(done.stderr)  # shown if the test fails
    assert done.returncode in codes
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built with what is installed."""
    at = tmp_path_factory.mktemp("wheel")
    build = ("wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", at, ROOT)
    printed([sys.executable, "-m", "pip", *build], at)
    (wheel,) = at.glob("*.whl")
    return wheel


@pytest.mark.process
@BUILT_ONCE
def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    """Modules, Scala sources, templates and tables; and the version of the package."""
    files = {path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*") if path.is_file()}
    expected = {str(path) for path in files if "__pycache__" not in path.parts}
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    assert expected == {name for name in packed if name.startswith("streamgauge/")}
    assert wheel.name.startswith(f"streamgauge-{__version__}-")


@pytest.mark.process
@BUILT_ONCE
def test_an_installed_wheel_runs_a_trial_outside_of_a_checkout(wheel: Path, tmp_path: Path) -> None:
    """Beside the packages that are installed here, whose .pth files are not read: an editable install is not seen."""
    environment, stand = tmp_path / "environment", tmp_path / "stand"
    stand.mkdir()
    printed([sys.executable, "-m", "venv", "--without-pip", environment], tmp_path)
    python = environment / "bin" / "python"
    install = ("install", "--quiet", "--no-deps", "--no-index", "--no-compile", wheel)
    printed([sys.executable, "-m", "pip", "--python", python, *install], tmp_path)
    scheme = {"base": str(environment), "platbase": str(environment)}
    site_packages = Path(sysconfig.get_path("purelib", "venv", scheme))
    (site_packages / "installed.pth").write_text(sysconfig.get_path("purelib"))
    found = printed([python, "-c", "import streamgauge; print(streamgauge.__file__)"], stand)
    assert Path(found.strip()).is_relative_to(site_packages)
    result = json.loads(printed([environment / "bin" / "streamgauge", *TRIAL], stand, VERDICT_CODES.values()))
    assert result["environment"]["streamgauge"] == __version__, "a commit is only known in a checkout"
    assert result["verification"]["matched"] == result["verification"]["expected"] > 0
    assert (stand / result["folder"] / "report.html").is_file()


def test_the_version_stands_in_one_place() -> None:
    """The package has it; its metadata and the citation follow."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
