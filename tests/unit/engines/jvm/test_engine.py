"""What the driver's side reads of a job on the JVM."""

from pathlib import Path

from streamgauge.core.engine_reports import SeriesSample
from streamgauge.engines.kafka_streams.engine import KafkaStreamsEngine


def test_series_are_those_of_whole_lines(tmp_path: Path) -> None:
    """The job may be in the middle of a line, or have written none."""
    engine = KafkaStreamsEngine()
    engine._folder = tmp_path
    assert engine.series() == []
    (tmp_path / "series").write_text('[1, "late rows", "rows", 2.0]\n[2, "late ro')
    assert engine.series() == [SeriesSample(1, "late rows", "rows", 2.0)]
