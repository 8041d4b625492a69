"""PYTHONPATH with a PySpark of another Spark: set aside where the installed one is found without it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from streamgauge.system import python_path
from streamgauge.system.python_path import drop_foreign_pyspark


@pytest.fixture(autouse=True)
def nothing_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins as a process does."""
    monkeypatch.setattr(python_path, "removed_entries", [])


@pytest.fixture
def foreign(tmp_path: Path) -> list[str]:
    """The `python` folder of a Spark distribution, and its zip with py4j."""
    package = tmp_path / "spark" / "python" / "pyspark"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    archive = tmp_path / "spark" / "python" / "lib" / "py4j-0.10-src.zip"
    archive.parent.mkdir()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("py4j/__init__.py", "")
    return [str(package.parent), str(archive)]


def test_entries_with_another_pyspark_are_set_aside(tmp_path: Path, foreign: list[str]) -> None:
    """The user's own entries stay, in order; the result can name what went."""
    own = str(tmp_path / "own")
    environment = {"PYTHONPATH": os.pathsep.join([foreign[0], own, foreign[1]])}
    search = ["/script", foreign[0], own, foreign[1], *sys.path]
    drop_foreign_pyspark(search, environment)
    assert environment == {"PYTHONPATH": own}
    assert search == ["/script", own, *sys.path]
    assert python_path.removed_entries == foreign


@pytest.mark.parametrize("others", [True, False])
@pytest.mark.parametrize("ours", [True, False])
def test_the_only_pyspark_and_where_streamgauge_lies_stay(foreign: list[str], others: bool, ours: bool) -> None:
    """Some have no other PySpark; without a folder that pip installed everything into, none of our processes starts."""
    if ours:
        (Path(foreign[0]) / "streamgauge").mkdir()
        (Path(foreign[0]) / "streamgauge" / "__init__.py").write_text("")
    environment = {"PYTHONPATH": foreign[0]}
    drop_foreign_pyspark([foreign[0], *(sys.path if others else [])], environment)
    assert environment == {"PYTHONPATH": "" if others and not ours else foreign[0]}


def test_the_installed_one_and_folders_without_code_stay(tmp_path: Path) -> None:
    """Site packages may be named there too; a folder called pyspark may hold notes."""
    (tmp_path / "pyspark").mkdir()
    import pyspark

    installed = str(Path(pyspark.__file__).parents[1])
    drop_foreign_pyspark(list(sys.path), {"PYTHONPATH": os.pathsep.join([installed, str(tmp_path)])})
    assert python_path.removed_entries == []


def test_the_command_line_imports_the_installed_one(tmp_path: Path, foreign: list[str]) -> None:
    """It is the first thing that it does: the planted package has no `pyspark.sql`."""
    code = (
        "import sys\nsys.argv = ['streamgauge', 'engines', '--json']\nfrom streamgauge.cli import app\n"
        "try:\n    app.main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "import pyspark.sql.types\nprint(pyspark.__file__, file=sys.stderr)"
    )
    path = os.pathsep.join([*foreign, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) not in done.stderr
