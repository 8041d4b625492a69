"""The answer of a run or a search as a document, from its result alone."""

import re
import textwrap
from collections import defaultdict
from collections.abc import Collection, Sequence

from streamgauge.core.formatting import (
    NONE,
    format_count,
    format_duration,
    format_percent,
    format_quantity,
    format_rate,
    format_us,
)
from streamgauge.core.units import format_cpus
from streamgauge.report.document_blocks import (
    QUICK,
    Cell,
    Column,
    Document,
    Fact,
    Measure,
    Paragraph,
    Row,
    Table,
    cells,
    numbers,
)
from streamgauge.results import labels
from streamgauge.results.latency import STATISTICS, Latencies, Latency
from streamgauge.results.run import Rates, Result, shown_notes
from streamgauge.results.search import TrialSummary
from streamgauge.results.text import narrative, phrases
from streamgauge.results.verdict import Check

RULE_CHARACTERS = 103
"""Characters of a malformed-record rule that are shown beside the answer."""
OF_A_CORE = "of a core"
_SHORT = {"processing_time": "processing", "until_counted": "counted"}
"""Labels that are shortened in the terminal, to fit their column."""
_PRINTED = tuple(name for name in STATISTICS if name not in ("min", "mean", "p95"))
_FIRST_READ = ("p50", "p99")

TRIAL_COLUMNS = (
    Column("trial", width=7),
    Column("purpose", short=""),
    Column("offered", number=True, width=13),
    Column("verdict", width=15),
    Column("event time p50", number=True, width=16),
    Column("p99", number=True, width=9),
    Column("backlog", number=True, width=11),
    Column("took", number=True, short=""),
    Column("why", prose=True),
)
"""Columns of a search's trials, in this document and in the terminal."""


def brief(result: Result) -> Document:
    """The answer with its figures, without the sections."""
    verdict, search = result.verdict, result.search
    lead = [
        Paragraph(verdict.sentence, "unusable" if verdict.value == "invalid" else "because", terminal=True),
        *map(Paragraph, narrative.summary_sentences(result)),
    ]
    remarks = [
        Paragraph(" · ".join(_conditions(result)), "note"),
        *(Paragraph(warning, "warning", "warning", terminal=True) for warning in result.warnings),
        *(Paragraph(note, "note", "note", terminal=True) for note in shown_notes(result.notes)),
        Paragraph(verdict.advice, "advice", "next", terminal=True),
    ]
    return Document(
        name=result.workload,
        on=f"on {result.engine}",
        title=f"{result.workload} on {result.engine}: {narrative.answer(result)}",
        headline=narrative.headline(result),
        meta=(f"{result.start_time} · {result.run_id}",),
        badge=labels.VERDICTS[verdict.value],
        style=verdict.value,
        mark=QUICK if result.quick else "",
        bounds=() if search is None else (f"({phrases.bracket(search)})", format_duration(search.seconds)),
        lead=tuple(one for one in lead if one.text),
        checks=checks_table(result) if verdict.checks else None,
        facts=tuple(_facts(result)),
        remarks=tuple(one for one in remarks if one.text),
    )


def _facts(result: Result) -> list[Fact]:
    """The figures under the verdict: unmeasured ones are left out, unjudged ones are named."""
    return [
        *_rate_facts(result),
        *_latency_facts(result),
        *_search_facts(result),
        *_answer_facts(result),
        *_malformed_facts(result),
        *_cpu_facts(result),
        *(
            [Fact("limit", (result.search.limit,), page=False)]
            if result.search is not None and result.search.limit
            else []
        ),
    ]


def _rate_facts(result: Result) -> list[Fact]:
    if result.rate is None:
        return []
    if narrative.measured_s(result) is None and result.search is None:
        return [Fact("rate", (narrative.nothing_measured(result), *_conditions(result)), page=False)]
    offered, ingested = (
        Measure(name, format_rate(per_s, "events/s"))
        for name, per_s in (("offered", result.rate.offered_per_s), ("ingested", result.rate.ingested_per_s))
    )
    requested = tuple(filter(None, [narrative.requested_events(result)]))
    facts = [Fact("rate", (offered, ingested, *requested, *_conditions(result)))]
    if (most := result.rate.maximum_per_s) is not None:
        facts.append(Fact("maximum", (format_rate(most, "events/s"), "handled under overload, not sustained")))
    return facts


def _conditions(result: Result) -> tuple[str, ...]:
    """The conditions under which the figures hold."""
    if result.rate is None:
        return ()
    isolation = f"isolation: {result.isolation}{_cores(result)}"
    return tuple(filter(None, (f"tuning: {result.tuning}", isolation, _generators(result, result.rate))))


def _cores(result: Result) -> str:
    """The cores of both sides, if they are not the same."""
    driver, sut = (result.environment.get(f"{side}_cpus") or () for side in ("driver", "sut"))
    return f" (driver {format_cpus(driver)}, SUT {format_cpus(sut)})" if driver and sut and driver != sut else ""


def _generators(result: Result, rate: Rates) -> str:
    """The numbers of generators and partitions, the requested parallelism, and the ceiling, as far as known."""
    number, ceiling = result.environment.get("generators"), rate.generator_ceiling_per_s
    partitions, parallelism = (result.environment.get(name) for name in ("partitions", "parallelism"))
    parts = (
        f"generators {number}" if number is not None else "",
        f"partitions {partitions}" if partitions not in (None, number) else "",
        f"parallelism {parallelism}" if parallelism is not None else "",
        f"ceiling (making events) {format_rate(ceiling)}" if ceiling is not None else "",
    )
    return ", ".join(filter(None, parts))


def _latency_facts(result: Result) -> list[Fact]:
    """The latencies one under the other, so that their percentiles can be compared, then those of each sink.

    Updates also have the wait of every event. Remarks come before the figures that they limit.
    """
    kinds = ["event_time", "until_counted", "processing_time"]
    if result.latency.event_time_us is None or result.latency.event_time_us.p50 is None:
        kinds.append("match_time")
    found = [
        Fact(
            _SHORT.get(kind, labels.LATENCIES[kind]),
            tuple(filter(None, (*_measures(one), _kind_text(kind, result.latency)))),
        )
        for kind in kinds
        if (one := result.latency.by_kind(kind)) is not None
    ]
    if not found and result.search is None:
        found = [Fact("latency", (note,), page=False) for note in result.latency.notes]
    found += [Fact("", (remark,)) for remark in [narrative.no_p99(result)] if remark]
    said = (narrative.missing_results(result), narrative.unverified(result))
    found += [Fact("", (remark,), page=False) for remark in said if remark]
    return found + _sink_facts(result)


def _measures(one: Latency) -> list[str | Measure]:
    """The percentiles in their order; the page shows the first ones to be read as tiles."""
    return [
        Measure(labels.statistic(name), phrases.latency(one, name))
        if name in _FIRST_READ
        else f"{labels.statistic(name)} {phrases.latency(one, name)}"
        for name in _PRINTED
    ]


def _statistics(one: Latency, names: Sequence[str]) -> list[str]:
    return [f"{labels.statistic(name)} {phrases.latency(one, name)}" for name in names]


def _kind_text(kind: str, among: Latencies) -> str:
    """The events that a latency of updates belongs to."""
    counted = among.until_counted_us
    if counted is None or kind not in ("event_time", "until_counted"):
        return ""
    if kind == "event_time":
        return "(newest event of each update)"
    return f"({counted.note})" if not counted.count and counted.note else "(every event, until counted)"


def _sink_facts(result: Result) -> list[Fact]:
    """Each of several sinks; the slowest is marked, because the figures above are its own."""
    if len(result.sinks) < 2:
        return []
    facts = []
    for sink in result.sinks:
        parts = [sink.name, *_statistics(sink.latency.event_time_us or Latency(), ("p50", "p99"))]
        if (counted := sink.latency.until_counted_us) is not None:
            parts[-1] += f", until counted {_statistics(counted, ('p50',))[0]}"
            parts += _statistics(counted, ("p99",))
        parts += [format_rate(sink.rows_per_s, "results/s")] if sink.rows_per_s is not None else []
        parts.append(f"{format_count(sink.rows)} results with warm-up and tail")
        parts += ["(slowest: the figures above)"] if sink.name == result.slowest_sink else []
        facts.append(Fact("sink", tuple(parts), page=False))
    return facts


def _search_facts(result: Result) -> list[Fact]:
    if result.search is None or (at_90 := result.search.at_90_percent) is None:
        return []
    parts = (
        phrases.trial_verdict(at_90),
        Measure("p50", format_us(at_90.event_time_p50_us)),
        Measure("p99", format_us(at_90.event_time_p99_us)),
        f"event time{phrases.until_counted(at_90)}",
        f"(trial {at_90.number}, {format_rate(at_90.offered_per_s)})",
    )
    return [Fact(f"at {labels.share_of(at_90.offered_per_s, result.search.sustained_per_s)}", parts)]


def _answer_facts(result: Result) -> list[Fact]:
    """The outcome of the verification, for each of several sinks; the page has a section for it."""
    each = [(f"{sink.name}: ", sink.verification) for sink in result.sinks]
    if len(each) < 2:
        each = [("", result.verification)]
    return [
        Fact("answers", (f"{name}{phrases.verified(v).removeprefix('answers: ')}",), page=False) for name, v in each
    ]


def _malformed_facts(result: Result) -> list[Fact]:
    """The malformed records of each stream that has a rule. The page shows long rules whole."""
    found = result.verification.malformed if result.verification is not None else {}
    return [
        Fact(
            "malformed",
            (
                f"{stream} {format_count(one.malformed)} of {format_count(one.records)} kept out of the answer"
                f" (rule: {_short_rule(one.rule)})",
            ),
            page=False,
        )
        for stream, one in found.items()
    ]


def _short_rule(rule: str) -> str:
    """A rule, shortened if it is long: without text literals such as patterns, and cut after a word."""
    if len(rule) <= RULE_CHARACTERS:
        return rule
    plain = re.sub(r"'[^']*'", "'...'", rule)
    return f"{textwrap.shorten(plain, RULE_CHARACTERS, placeholder=' ...')}; whole in the report"


def _cpu_facts(result: Result) -> list[Fact]:
    """CPU of system, driver and broker; the system's figure includes its parts."""
    if not result.processes:
        return []
    used: defaultdict[str, float] = defaultdict(float)
    for use in result.processes:
        used[use.role] += use.cpu_percent_mean
    # Of a program that ran already, and of a broker, nothing may be known.
    others = result.others_cpu_percent
    sides = {
        "system under test": used.get("sut"),
        "driver": used["driver"],
        **({"broker": used["broker"]} if "broker" in used else {}),
        **({"others": others} if others is not None else {}),
    }
    each = (Measure(name, format_percent(percent), OF_A_CORE) for name, percent in sides.items())
    work = result.reference_work_us
    return [Fact("cpu", (*each, OF_A_CORE, *([f"(reference work {format_us(work)})"] if work is not None else [])))]


def trial_row(trial: TrialSummary, link: str = "") -> Row:
    """One trial under `TRIAL_COLUMNS`."""
    return Row(
        cells(
            (
                Cell(str(trial.number), link=link),
                trial.purpose,
                phrases.trial_rate(trial),
                Cell(phrases.trial_verdict(trial), style=trial.verdict or ""),
                format_us(trial.event_time_p50_us),
                format_us(trial.event_time_p99_us),
                phrases.slope(trial.backlog_slope_share),
                format_duration(trial.seconds),
                phrases.trial_reason(trial) or NONE,
            )
        )
    )


def checks_table(result: Result) -> Table:
    """Each check with its number and limit; those that failed and the first that decided are marked to matter.

    Checks that could not be judged matter only if something was measured. The verdict's sentence has that of the first
    check that decided, so it does not stand here again; results older than the codes may lack it there.
    """
    decided = result.verdict.decided_by
    nothing_measured = result.search is None and narrative.measured_s(result) is None
    without_content = ("ok", "undecided", "not_judged") if nothing_measured else ("ok",)
    columns = (
        Column("check"),
        Column("outcome"),
        *numbers("number", "interval", "limit"),
        Column("in words", prose=True),
    )
    rows = tuple(_check_row(check, decided, without_content) for check in result.verdict.checks)
    return Table("Every check that the verdict rests on", columns, rows)


def _check_row(check: Check, decided: Sequence[str], without_content: Collection[str]) -> Row:
    decides, first = check.name in decided, check.name in decided[:1]
    row = (
        check.name,
        Cell(phrases.state(check), "decided" if decides else "", f"state-{check.state}"),
        format_quantity(check.value, check.unit),
        phrases.interval(check),
        format_quantity(check.limit, check.unit),
        "see above" if first and check.code is not None else check.sentence,
    )
    return Row(cells(row), strong=decides, matters=first or check.state not in without_content)
