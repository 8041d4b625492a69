"""Verification of programs of the user's own: updates without batches, results without a time, several outputs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge.config.experiment import build
from streamgauge.core.engine_reports import Guarantee
from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.diff.compare import Counts
from streamgauge.metrics.event_latency import LatencyBySecond, SinkLatencies
from streamgauge.preflight.settings_checks import check
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import Verification
from streamgauge.verification.received_results import ReceivedResults
from streamgauge.verification.sink_comparison import SinkDiff, allowed_by, of_all
from streamgauge.verification.user_job_truth import rule_of
from tests.unit.verification.helpers_user_jobs import LATE_US, Case, faults

HEAD = """
kind = "program"
command = ["{python}", "job.py"]
[inputs.purchases.fields]
user_id = { kind = "key", domain = 100 }
price = { kind = "integer", low = 1, high = 100 }
"""
COUNTS = "SELECT user_id, count(*) AS n, max(event_time) // 1000 AS ts FROM purchases GROUP BY user_id"
UPDATES = f"""
[output]
mode = "update"
keys = ["user_id"]
time = "ts"
reference = "{COUNTS}"
"""
DEAR = "SELECT user_id, price FROM purchases WHERE price > 90"
TIMELESS = f"""
[output]
reference = "{DEAR}"
reach = "0s"
"""
ROWS = "SELECT user_id, price, event_time // 1000 AS ts FROM purchases WHERE price > 90"
FIRSTS = "SELECT user_id, price, min(event_time) // 1000 AS ts FROM purchases WHERE price > 90 GROUP BY user_id, price"
TWO = f"""
[outputs.dear]
time = "ts"
reach = "0s"
reference = "{ROWS}"
[outputs.cheap]
time = "ts"
reach = "0s"
reference = "{ROWS.replace("> 90", "< 10")}"
"""


@pytest.fixture
def job_case(tmp_path: Path, make: Any) -> Callable[..., Case]:
    def made(text: str, user_ids: int = 100, **more: Any) -> Case:
        path = tmp_path / "program.toml"
        path.with_name("job.py").touch()
        path.write_text(HEAD.replace("domain = 100 ", f"domain = {user_ids} ") + text)
        load = {"rate": "1k", "duration": "10s", "warmup": "5s", "generators": 2}
        resolved = check(build({"workload": str(path), "load": load, "out": str(tmp_path)}))
        plan = replace(make.plan(), streams=resolved.streams(1000.0))
        return Case(resolved, make.story(plan=plan).record(**more), tmp_path)

    return made


def with_time(rows: pa.Table) -> pa.Table:
    """Results as the recorder gets them."""
    times = pc.multiply(rows.column("ts"), 1000) if "ts" in rows.schema.names else pa.nulls(len(rows), pa.int64())
    return rows.append_column(EVENT_TIME, times)


def counts(program: Case, before_us: int = FAR_FUTURE_US) -> pa.Table:
    return with_time(program.answer(COUNTS, before_us))


def test_the_last_value_of_each_key_counts(job_case: Callable[..., Case]) -> None:
    """Earlier values are within their bounds."""
    program = job_case(UPDATES)
    found = program.verify(counts(program, program.record.spans.start_us + 3_000_000), counts(program))
    assert faults(found) == {}
    assert (found.expected, found.independent) == (100, True)
    assert "last values of user_id; earlier values are compared with bounds" in found.sentence
    assert found.not_judged == 0


def test_each_fault_of_last_values_is_named(job_case: Callable[..., Case]) -> None:
    """A stale value that comes last is a wrong one."""
    program = job_case(UPDATES)
    right, old = counts(program), counts(program, program.record.spans.start_us + 3_000_000)
    seven = pc.equal(right.column("user_id"), 7)
    other = pc.if_else(seven, pc.add(right.column("n"), 1), right.column("n"))
    stranger = right.slice(0, 1).set_column(0, "user_id", pa.array([500], right.column("user_id").type))
    planted = {
        "lost": ([right.filter(pc.invert(seven))], {"missing": 1}),
        "miscounted": ([right.set_column(1, "n", other)], {"wrong": 1}),
        "stale": ([right, old.filter(pc.equal(old.column("user_id"), 7))], {"wrong": 1}),
        "of no key": ([right, stranger], {"extra": 1}),
    }
    for name, (batches, expected) in planted.items():
        program = job_case(UPDATES)
        assert faults(program.verify(*batches)) == expected, name


def with_count(rows: pa.Table, count: int) -> pa.Table:
    """With another count of user 7."""
    seven = pc.equal(rows.column("user_id"), 7)
    return rows.set_column(1, "n", pc.if_else(seven, pa.scalar(count), rows.column("n")))


def timeless(rows: pa.Table) -> pa.Table:
    """They come a second after their event time, which they do not state."""
    came = rows.append_column(EMISSION_TIME, pc.add(rows.column(EVENT_TIME), LATE_US))
    return came.set_column(came.schema.get_field_index(EVENT_TIME), EVENT_TIME, pa.nulls(len(rows), pa.int64()))


def test_earlier_values_have_bounds(job_case: Callable[..., Case]) -> None:
    """Of what had been sent and, if results have a time, of what their time shows."""
    for text, falls in ((UPDATES, True), (UPDATES.replace('time = "ts"', ""), False)):
        program = job_case(text)
        half, whole = (
            rows if falls else timeless(rows)
            for rows in (counts(program, program.record.spans.start_us + 3_000_000), counts(program))
        )
        total = whole.filter(pc.equal(whole.column("user_id"), 7)).column("n")[0].as_py()
        for count, wrong in ((1, falls), (total, True)):
            program = job_case(text)
            found = program.verify(with_count(half, count), whole)
            assert faults(found) == ({"wrong": 1} if wrong else {}), (text, count)


@pytest.mark.parametrize(
    "reference",
    [
        COUNTS.replace("count(*)", "avg(price)"),
        COUNTS.replace("FROM purchases", "FROM (SELECT * FROM purchases)"),
        COUNTS.replace("GROUP", "WHERE price IN (SELECT price FROM purchases) GROUP"),
        f"WITH counts AS ({COUNTS}) SELECT * FROM counts",
        f"{COUNTS} HAVING count(*) > 0",
    ],
)
def test_earlier_values_without_bounds_are_counted(job_case: Callable[..., Case], reference: str) -> None:
    """Of another aggregate, or of a reference that does more than filter, group and aggregate."""
    program = job_case(UPDATES.replace(COUNTS, reference))
    right = with_time(program.answer(reference))
    stale = right.set_column(1, "n", pc.multiply(right.column("n"), 3))
    found = program.verify(stale, right)
    assert (faults(found), found.matched, found.not_judged) == ({}, 100, 100)
    assert "100 updates are not judged" in found.sentence
    program = job_case(UPDATES.replace(COUNTS, reference))
    assert faults(program.verify(right, stale)) == {"wrong": 100}


def test_windows_tell_the_values_of_a_key_apart(job_case: Callable[..., Case]) -> None:
    """By their end, if the key alone does not, as in the dry run."""
    windows = "SELECT user_id, event_time // 4000000 * 4000 + 4000 AS closed, count(*) AS n FROM purchases GROUP BY ALL"
    program = job_case(UPDATES.replace(COUNTS, windows).replace('time = "ts"', 'window_end = "closed"'))
    right = program.answer(windows)
    ends = pc.multiply(right.column("closed"), 1000)
    right = right.append_column(EVENT_TIME, pc.subtract(ends, 1))
    right = right.append_column("window_end", pc.cast(ends, pa.timestamp("us")))
    old = right.set_column(2, "n", pc.subtract(right.column("n"), 1))
    found = program.verify(old, right)
    assert faults(found) == {}
    assert found.expected == len(right) > 400
    assert faults(program.verify(right, old.slice(0, 1))) == {"wrong": 1}


def test_updates_of_a_trial_that_ended_early_are_not_demanded(job_case: Callable[..., Case]) -> None:
    """How much input they cover is not known then."""
    program = job_case(UPDATES)
    program.receive(counts(program).slice(0, 50))
    program.record.early_stop = "the backlog cannot be worked off"
    found = program.verify()
    assert found.missing == 0
    assert "not compared because not all input was committed" in found.sentence


@pytest.mark.parametrize("wrong_times", [0, 3, None])
@pytest.mark.parametrize("latency_us", [2_000_000, -1000])
def test_only_results_with_the_expected_time_prove_a_wrong_clock(
    job_case: Callable[..., Case], wrong_times: int | None, latency_us: int
) -> None:
    """A result whose own time is five seconds ahead is a wrong answer, with a note on the times."""
    program = job_case(f'[output]\nkeys = ["user_id", "price"]\ntime = "ts"\nreach = "0s"\nreference = "{FIRSTS}"\n')
    right = with_time(program.answer(FIRSTS))
    emitted = right.append_column(EMISSION_TIME, pc.add(right.column(EVENT_TIME), latency_us))
    count = len(right) if wrong_times is None else wrong_times
    moved = emitted.slice(0, count)
    for place, name, by in ((2, "ts", 5000), (3, EVENT_TIME, 5_000_000)):
        moved = moved.set_column(place, name, pc.add(moved.column(name), by))
    found = program.result(moved, emitted.slice(count))
    assert found.verification.wrong == (count if wrong_times is not None else found.verification.expected)
    assert found.negatives == (len(right) - count if latency_us < 0 else 0)
    notes = " ".join(found.sinks[0].latencies.latencies.notes)
    assert (f"{count:,} wrong results came before the time that they carry" in notes) == (count > 0)


def test_results_without_a_time_are_compared(job_case: Callable[..., Case]) -> None:
    """As a multiset; they are in no latency, and the note says why."""
    program = job_case(TIMELESS)
    rows = with_time(program.answer(DEAR))
    found = program.result(rows)
    assert faults(found.verification) == {}
    assert found.verification.matched == len(rows) > 1000
    assert found.sinks[0].latencies.latencies.event_time_us is None or (
        found.sinks[0].latencies.latencies.event_time_us.count == 0
    )
    assert any("no event time" in note for note in found.sinks[0].latencies.latencies.notes)
    program = job_case(TIMELESS)
    assert faults(program.verify(rows.slice(1))) == {"missing": 1}


def test_open_windows_without_a_time_are_missing(job_case: Callable[..., Case]) -> None:
    """Nothing says that their results are not due, as a note says; with the end of the window they are not."""
    windows = "SELECT event_time // 4000000 * 4000 + 4000 AS closed, count(*) AS n FROM purchases GROUP BY ALL"
    for end, missing in (("", 1), ('window_end = "closed"\n', 0)):
        program = job_case(f'[output]\n{end}keys = ["closed"]\nreach = "4s"\nreference = "{windows}"\n')
        rows = program.answer(f"{windows} ORDER BY closed")
        rows = rows.append_column(EVENT_TIME, pc.subtract(pc.multiply(rows.column("closed"), 1000), 1))
        if end:
            stamps = pc.cast(pc.multiply(rows.column("closed"), 1000), pa.timestamp("us"))
            rows = rows.append_column("window_end", stamps)
        else:
            rows = rows.set_column(2, EVENT_TIME, pa.nulls(len(rows), pa.int64()))
        assert faults(program.verify(rows.slice(0, len(rows) - 1))) == ({"missing": missing} if missing else {}), end


def test_each_output_has_its_reference(job_case: Callable[..., Case]) -> None:
    """A fault in one is named with it."""
    program = job_case(TWO)
    log, commits = program.record.trial_log, []
    for sink, query in (("dear", ROWS), ("cheap", ROWS.replace("> 90", "< 10"))):
        rows = with_time(program.answer(query)).slice(1 if sink == "cheap" else 0)
        table = rows.append_column(EMISSION_TIME, pc.add(rows.column(EVENT_TIME), LATE_US))
        path = program.folder / f"{sink}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        commits += [replace(one, sink=sink, rows=0, paths=[]) for one in log.commits]
        commits[-1] = replace(commits[-1], rows=rows.num_rows, paths=[str(path)])
    log.sinks, log.commits = ("dear", "cheap"), commits
    found = program.verify()
    assert faults(found) == {"missing": 1}
    assert found.sentence.startswith("cheap: ")
    assert found.examples[0]["sink"] == "cheap"


def test_nothing_received_is_all_missing(job_case: Callable[..., Case]) -> None:
    """Also where the reference has a sum, which is wider than the numbers that it adds."""
    query = "SELECT user_id, sum(price) AS spent, event_time // 1000 AS ts FROM purchases GROUP BY ALL"
    program = job_case(f'[output]\nkeys = ["user_id", "ts"]\ntime = "ts"\nreach = "0s"\nreference = "{query}"\n')
    assert faults(program.verify()).keys() == {"missing"}


def test_keys_that_several_rows_have_are_named(job_case: Callable[..., Case]) -> None:
    """Which only the whole input shows."""
    late = f"{COUNTS} UNION ALL SELECT 7, 0, max(event_time) // 1000 FROM purchases HAVING count(*) > 6000"
    program = job_case(UPDATES.replace(COUNTS, late))
    found = program.verify(counts(program))
    assert not found.judged
    assert "must identify one row of the reference, and user_id do not" in found.sentence
    assert "1 keys with several rows" in found.sentence


VALUES = "SELECT user_id, price, event_time // 1000 AS ts, price * 2 AS twice FROM purchases WHERE price > 90"
PROMISED = f"""
[output]
keys = ["user_id", "price", "ts"]
time = "ts"
reach = "0s"
GUARANTEE
reference = "{VALUES}"
"""


def promised(delivery: str, loss_max: float = 0.05) -> str:
    """The program's file with a guarantee."""
    loss = f"\nloss_max = {loss_max}" if delivery == "at_most_once" else ""
    return PROMISED.replace("GUARANTEE", f'delivery = "{delivery}"{loss}')


@pytest.mark.parametrize(
    ("delivery", "allowed"),
    [
        ("exactly_once", {}),
        ("at_least_once", {"repeated": {"duplicate": 3}, "repeated with other values": {"duplicate": 2}}),
        ("at_most_once", {"lost": {"missing": 2}}),
    ],
)
def test_a_guarantee_allows_its_own_differences_only(
    job_case: Callable[..., Case], delivery: str, allowed: dict[str, dict[str, int]]
) -> None:
    """They are counted and stated. Everything else stays a fault, also a repeated result with another value."""
    program = job_case(promised(delivery))
    right = with_time(program.answer(VALUES))
    other = right.slice(0, 1).set_column(3, "twice", pa.array([7], right.column("twice").type))
    planted = {
        "nothing": ([right], {}),
        "repeated": ([right, right.slice(5, 3)], {"duplicate": 3}),
        "repeated with other values": ([right, right.slice(5, 2), other], {"duplicate": 3}),
        "lost": ([right.slice(2)], {"missing": 2}),
        "changed": ([right.slice(1), other], {"wrong": 1}),
    }
    for name, (batches, counted) in planted.items():
        program = job_case(promised(delivery))
        found = program.verify(*batches)
        allows = allowed.get(name, {})
        left = {kind: count - allows.get(kind, 0) for kind, count in counted.items() if count > allows.get(kind, 0)}
        assert faults(found) == counted, name
        assert {kind: count for kind, count in found.faults.items() if count} == left, name
        assert (found.delivery, found.allowed, found.right) == (delivery, allows, not left), name
        assert {example["fault"] for example in found.examples} == left.keys(), name
        assert f"promised: {delivery}" in found.sentence
        assert all(f"which allows {count} {kind}" in found.sentence for kind, count in allows.items())


@pytest.mark.parametrize("late", [0, 1])
def test_a_late_generator_makes_no_clock_wrong(job_case: Callable[..., Case], late: int) -> None:
    """A program reads each partition by itself, so results of another one may come before it has offered its chunk."""
    program = job_case(promised("exactly_once"))
    chunks = program.record.trial_log.chunks
    third = list(chunks[late])[3]
    chunks[late] = [replace(one, published_us=one.published_us + 500_000) for one in chunks[late]]
    rule = rule_of(program.resolved, program.record, ReceivedResults(program.record))
    assert rule.handed_over is not None
    assert rule.handed_over(np.array([third.from_us])) == [third.published_us]


@pytest.mark.parametrize(("loss_max", "allows"), [(0.5, True), (1e-6, False)])
def test_at_most_once_allows_the_stated_loss_only(job_case: Callable[..., Case], loss_max: float, allows: bool) -> None:
    """Lost results are lower bounds of the latency, as missing ones without a guarantee are."""
    program = job_case(promised("at_most_once", loss_max))
    rows = with_time(program.answer(VALUES))
    first = pc.index(pc.greater_equal(rows.column(EVENT_TIME), program.record.spans.measured_from_us), True).as_py()
    found = program.result(pa.concat_tables([rows.slice(0, first), rows.slice(first + 2)]))
    (sink,) = found.sinks
    assert found.verification.allowed == ({"missing": 2} if allows else {})
    assert found.verification.right == allows
    assert sink.latencies.latencies.event_time_us is not None
    assert sink.latencies.latencies.event_time_us.lower_bounds == 2


def test_a_loss_at_its_limit_is_allowed() -> None:
    """0.29 times 100 is below 29 in floating point."""
    lost = Counts(expected=100, matched=71, missing=29)
    assert allowed_by(Guarantee("at_most_once", 0.29), lost) == {"missing": 29}
    assert allowed_by(Guarantee("at_most_once", 0.28), lost) == {}


def test_a_key_of_updates_may_be_a_condition(job_case: Callable[..., Case]) -> None:
    """Its bounds are those of its own rows."""
    query = COUNTS.replace("SELECT user_id,", "SELECT user_id > 2 OR user_id = 0 AS user_id,")
    program = job_case(UPDATES.replace(COUNTS, query.replace("GROUP BY user_id", "GROUP BY ALL")))
    assert program.verify(with_time(program.answer(query.replace("GROUP BY user_id", "GROUP BY ALL")))).judged


def test_results_that_look_the_same_cannot_be_judged_by_a_guarantee(job_case: Callable[..., Case]) -> None:
    """A repeated one could not be told from an extra one."""
    program = job_case(TIMELESS.replace('reach = "0s"', 'reach = "0s"\ndelivery = "at_least_once"'))
    found = program.verify(with_time(program.answer(DEAR)))
    assert not found.judged
    assert "as another one, so at_least_once cannot be judged; name in keys" in found.sentence


def test_sinks_may_promise_different_guarantees(job_case: Callable[..., Case]) -> None:
    """Their sum allows what each allows."""
    found = of_all(
        [
            SinkDiff(name, "", verification, SinkLatencies(Latencies(), LatencyBySecond(), 0, 0, {}, None), 0)
            for name, verification in (
                ("dear", Verification(
                    **JUDGED, independent=True, duplicate=3, delivery="at_least_once", allowed={"duplicate": 3})),
                ("cheap", Verification(
                    **JUDGED, independent=False, duplicate=2, missing=1, delivery="at_most_once",
                    allowed={"missing": 1})),
            )
        ],
        job_case(TWO).record,
    )  # fmt: skip
    assert (found.delivery, found.allowed, found.independent) == (None, {"duplicate": 3, "missing": 1}, False)
    assert {kind: count for kind, count in found.faults.items() if count} == {"duplicate": 2}


JUDGED: dict[str, Any] = {"judged": True, "reference": ""}


KEYED = f"""
[output]
latency_key = ["user_id"]
reach = "0s"
reference = "{DEAR}"
"""


def keyed_results(program: Case) -> tuple[pa.Table, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Results without a time in any order, their true event times and their latencies."""
    right = program.answer(f"{DEAR.replace('price FROM', 'price, event_time FROM')} ORDER BY hash(user_id)")
    times = right.column(EVENT_TIME).to_numpy()
    latencies = np.random.default_rng(7).integers(200_000, 900_000, len(times))
    rows = with_time(right.drop_columns([EVENT_TIME]))
    return rows.append_column(EMISSION_TIME, pa.array(times + latencies)), times, latencies


def latencies_of(program: Case, *batches: pa.Table) -> tuple[Latency, tuple[str, ...]]:
    found = program.result(*batches)
    assert found.sinks[0].latencies.latencies.event_time_us is not None
    return found.sinks[0].latencies.latencies.event_time_us, found.notes


def test_results_without_a_time_have_that_of_their_record(job_case: Callable[..., Case]) -> None:
    """By the fields that identify it, in whatever order results come. A missing one is a lower bound."""
    program = job_case(KEYED, user_ids=1_000_000_000)
    rows, times, latencies = keyed_results(program)
    spans = program.record.spans
    inside = (times >= spans.measured_from_us) & (times < spans.measured_to_us)
    found, notes = latencies_of(program, rows.slice(0, 700), rows.slice(700))
    assert (found.count, found.lower_bounds) == (inside.sum(), 0)
    assert (found.min, found.max) == pytest.approx((latencies[inside].min(), latencies[inside].max()), rel=0.01)
    assert found.mean == pytest.approx(latencies[inside].mean(), rel=0.01)
    assert not [note for note in notes if note.startswith("latency")]
    assert "; event_time by latency_key user_id" in program.verify().sentence

    program = job_case(KEYED, user_ids=1_000_000_000)
    lost = int(np.flatnonzero(inside)[0])
    stranger = rows.slice(0, 1).set_column(0, "user_id", pa.array([-1], rows.column("user_id").type))
    found, _ = latencies_of(program, pa.concat_tables([rows.slice(0, lost), rows.slice(lost + 1), stranger]))
    assert faults(program.verify()) == {"missing": 1, "extra": 1}
    assert (found.count, found.lower_bounds) == (inside.sum(), 1)


@pytest.mark.parametrize("user_ids", [100, 200_000])
def test_keys_of_several_records_give_no_latency(job_case: Callable[..., Case], user_ids: int) -> None:
    """Of all of them, or of some in a hundred. The note says why, and results are compared all the same."""
    program = job_case(KEYED, user_ids=user_ids)
    rows, _, _ = keyed_results(program)
    found, notes = latencies_of(program, rows)
    assert (found.count, found.p50) == (0, None)
    (note,) = [note for note in notes if note.startswith("latency")]
    assert "latency_key user_id does not tell one record of purchases for" in note
    assert faults(program.verify()) == {}


def test_a_few_shared_keys_are_left_out(job_case: Callable[..., Case]) -> None:
    """They are said to be in no figure."""
    program = job_case(KEYED, user_ids=5_000_000)
    rows, _, _ = keyed_results(program)
    found, notes = latencies_of(program, rows)
    (note,) = [note for note in notes if note.startswith("latency")]
    assert "expected results are in no figure, as several records or none have their key" in note
    assert found.min is not None
    assert found.min >= 199_000
    assert faults(program.verify()) == {}
