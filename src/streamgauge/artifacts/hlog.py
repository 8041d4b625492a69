"""The codec of latency.hlog: HdrHistogram's log format, with counts of 1 us to 1 h at three significant digits.

Counts are an array (SLOTS,) with HdrHistogram's own layout. A *slot* is an index into them.
`latency.hlog` has the latencies of the measured span in microseconds, per second or as a whole. The tag of a line is
the kind of latency, followed by `/<sink>` if there are several sinks. A line without a tag is event-time latency.
Readers add intervals of one tag, and never average them.
"""

import io
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

LOWEST_US, HIGHEST_US, DIGITS = 1, 3_600_000_000, 3
HALF = 1024
"""Slots per power of two above the first two, for three significant digits."""
SLOTS = 23 * HALF
"""Length of HdrHistogram's counts for this range; the last slot ends at 2^32 - 1 us, 71 minutes."""

_indices = np.arange(SLOTS, dtype=np.int64)
_octave = np.maximum(_indices // HALF - 1, 0)
LOWEST_OF_SLOT: Counts = (_indices - _octave * HALF) << _octave
HIGHEST_OF_SLOT: Counts = LOWEST_OF_SLOT + (1 << _octave) - 1
MIDDLE_OF_SLOT: Counts = LOWEST_OF_SLOT + ((1 << _octave) >> 1)

_INTERVAL = re.compile(r"^(?:Tag=([^,]+),)?([\d.]+),[\d.]+,[\d.]+,(\S+)$")


class Interval(NamedTuple):
    """One line: its tag (empty without one), `start_s` in seconds, and the histogram as text."""

    tag: str
    start_s: float
    encoded: str

    def counts(self) -> Counts:
        """Its histogram. Raises ValueError if it cannot be decoded, or has another range or precision."""
        from hdrh.histogram import HdrHistogram

        try:
            hdr = HdrHistogram.decode(self.encoded)
        except Exception as error:  # the decoder's own errors are of many kinds
            raise ValueError(f"a histogram cannot be decoded: {error or type(error).__name__}") from None
        if hdr.counts_len != SLOTS or hdr.unit_magnitude != 0:
            raise ValueError(f"expected {SLOTS} slots of 1 us, got {hdr.counts_len} of 2^{hdr.unit_magnitude} us")
        return np.frombuffer(hdr.counts, dtype=np.int64).copy()


def read(text: str) -> Iterator[Interval]:
    """The intervals of a log, in its order. Comments and the legend are skipped. Raises ValueError for half a line."""
    for line in text.splitlines():
        if match := _INTERVAL.match(line.strip()):
            yield Interval(match[1] or "", float(match[2]), match[3])
        elif line.strip() and line[0] not in '#"':
            raise ValueError(f"a line is no interval: {line[:40]}")


def write(intervals: Mapping[tuple[float, float], Counts], tag: str) -> str:
    """A log with one line per interval (key: from and to, seconds since the epoch), with this tag.

    Values are microseconds. The third field, the interval's maximum, is milliseconds, as HdrHistogram defines it.
    Logs of several tags can be concatenated. Raises ValueError if the tag has a comma, a space or a line end.
    """
    from hdrh.log import HistogramLogWriter

    if not tag or any(character in tag for character in ", \n\r"):
        raise ValueError(f"tag must be a word without commas or spaces, got {tag!r}")
    text = io.StringIO()
    writer = HistogramLogWriter(text)
    writer.output_log_format_version()
    if intervals:
        text.write(f"#[StartTime: {float(min(intervals)[0]):f} (seconds since epoch)]\n")
    writer.output_legend()
    for (from_s, to_s), counts in intervals.items():
        text.write(f"Tag={tag},")
        writer.output_interval_histogram(encoder(counts), from_s, to_s, 1000.0)
    return text.getvalue()


def encoder(counts: Counts) -> Any:
    """The same counts as an `hdrh.histogram.HdrHistogram`."""
    from hdrh.histogram import HdrHistogram

    hdr = HdrHistogram(LOWEST_US, HIGHEST_US, DIGITS)
    np.frombuffer(hdr.counts, dtype=np.int64)[:] = counts
    used = np.flatnonzero(counts)
    if used.size:
        hdr.set_internal_tacking_values(int(used[0]), int(used[-1]), int(counts.sum()))
    return hdr
