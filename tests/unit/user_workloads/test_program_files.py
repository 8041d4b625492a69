"""The files that decide what a program is: their digests go into the result."""

import hashlib
from pathlib import Path

from streamgauge.user_workloads.program import program

PROGRAM = """
kind = "program"
command = ["{python}", "src/consumer.py", "--level", "high", "missing.txt", "data"]
reference = "SELECT user_id, price, ts FROM purchases"

[inputs.purchases]
key = "user_id"
time = "ts"
sample = "purchases.json"

[output]
keys = ["user_id", "ts"]
time = "ts"
reach = "0s"
"""
SAMPLE = "".join(f'{{"user_id": {n}, "price": {n % 7}, "ts": {1_700_000_000_000 + n}}}\n' for n in range(20))


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_files_in_the_command_belong_to_the_program(tmp_path: Path) -> None:
    """So that a changed program is not compared with itself. Words, folders and files that do not exist are none."""
    texts = {"program.toml": PROGRAM, "src/consumer.py": "print(1)", "purchases.json": SAMPLE}
    (tmp_path / "src").mkdir()
    (tmp_path / "data").mkdir()
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    files = program(tmp_path / "program.toml").files
    assert dict(files) == {name: sha256(text) for name, text in texts.items()}
    (tmp_path / "src" / "consumer.py").write_text("print(2)")
    assert program(tmp_path / "program.toml").files["src/consumer.py"] == sha256("print(2)")
