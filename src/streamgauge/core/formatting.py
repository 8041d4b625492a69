"""Formats quantities for people. Unknown values are shown as "-", never as 0."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

NONE = "-"

_TIMES = ((1e6, "s"), (1e3, "ms"), (1.0, "us"))
_RATES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_SIZES = ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))


def resume_command(command: str, folder: object) -> str:
    """The command that continues the study in `folder`, to be pasted into a shell."""
    return shlex.join(["streamgauge", command, "--resume", str(folder)])


def format_digits(value: float | None) -> str:
    """`value` to three significant digits, never in powers of ten: 1234.5 is 1,235, 0.01234 is 0.0123."""
    if value is None:
        return NONE
    if value == 0:
        return "0"
    rounded = float(f"{value:.2e}")
    if abs(rounded) >= 100:
        return format_count(value)
    return f"{rounded:.12f}".rstrip("0").rstrip(".") or "0"


def format_exact(value: float) -> str:
    """A number in full, as the command line accepts it: 1540000.0 is `1540000`."""
    return f"{value:.9f}".rstrip("0").rstrip(".") if abs(value) >= 1e-9 else "0"


def format_count(value: float | None) -> str:
    """An integer with thousands separators: `24,000`."""
    return NONE if value is None else f"{value:,.0f}"


def format_rate(per_s: float | None, unit: str = "/s") -> str:
    """1540000 is `1.54 M/s`, or with another unit `1.54 M events/s`."""
    if per_s is None:
        return NONE
    factor, prefix = next((one for one in _RATES if abs(float(f"{per_s:.2e}")) >= one[0]), (1.0, ""))
    gap = " " if prefix and not unit.startswith("/") else ""
    return f"{format_digits(per_s / factor)} {prefix}{gap}{unit}".rstrip()


def format_us(us: float | None) -> str:
    """A time in microseconds: `87 us`, `185 ms`, `3.1 s`."""
    return NONE if us is None else _scaled(us, _TIMES)


def format_duration(seconds: float) -> str:
    """`12 s`, `6 min 12 s`, `1 h 4 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{format_digits(seconds) if seconds < 10 else whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 // 60 else "")


def format_size(size_bytes: float | None) -> str:
    """`1.5 MiB`."""
    return NONE if size_bytes is None else _scaled(size_bytes, _SIZES)


def format_percent(value: float | None) -> str:
    """A value that is in percent already."""
    return NONE if value is None else f"{format_digits(value)} %"


def format_signed(value: float | None, share: bool, unit: str = "") -> str:
    """A difference: a share as `+4.1 %`, anything else in its unit."""
    if value is None:
        return NONE
    amount = 100 * value if share else value
    sign = "+" if amount > 0 else "-" if amount < 0 else ""
    return f"{sign}{format_digits(abs(amount))} {'%' if share else unit}".rstrip()


def format_quantity(value: float | None, unit: str) -> str:
    """A check's number or limit in its own unit."""
    if value is None:
        return NONE
    return {
        "us": lambda: format_us(value),
        "s": lambda: format_us(1e6 * value),
        "events/s": lambda: format_rate(value, unit),
        "bytes": lambda: format_size(value),
        "s/s": lambda: format_percent(100 * value),
        "share of plan": lambda: f"{format_percent(100 * value)} of plan",
        "share of time": lambda: f"{format_percent(100 * value)} of time",
    }.get(unit, lambda: f"{format_digits(value)} {unit}".rstrip())()


def format_value(value: Any) -> str:
    """A setting's value as text."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return format_exact(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(format_value(item) for item in value) or NONE
    return str(value) or NONE


def format_fact(name: str, value: Any) -> str:
    """A named property of the machine: sizes with a unit, other values unchanged."""
    return format_size(value) if name.endswith("_bytes") and isinstance(value, int | float) else format_value(value)


def flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Flattens nested mappings to dotted names."""
    return dict(leaves(values))


def leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted name and value of everything that is no table, or an empty one."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def leave_out(table: dict[str, Any], name: str) -> None:
    """Takes a dotted setting out of nested tables, whose keys may have dots too."""
    for key, value in list(table.items()):
        if key == name or (name.startswith(f"{key}.") and not isinstance(value, dict)):
            del table[key]
        elif name.startswith(f"{key}."):
            leave_out(value, name.removeprefix(f"{key}."))


def _scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """`value` in the first unit in which it is at least one after rounding, so that 999.96 ms is 1 s."""
    factor, unit = next((one for one in units if abs(float(f"{value / one[0]:.2e}")) >= 1), units[-1])
    return f"{format_digits(value / factor)} {unit}"


def share_beside(share: float, limit: float, digits: int = 0) -> str:
    """A share as a percentage with as many digits, `digits` at least, as show on which side of a limit it lies.

    10.3% beside a limit of 10%, and 12% where that is enough.
    """
    for count in range(digits, digits + 4):
        text = f"{share:.{count}%}"
        shown = float(text[:-1])
        if share == limit or (shown != 100 * limit and (shown > 100 * limit) == (share > limit)):
            return text
    return text
