"""How long events of a running aggregate waited until a result included them: `until_counted`.

The latency of an update counts from its newest event. Of a frequent key, that event came just before its batch was
read, so the waiting of all other events is in no update's latency. Here every event of a batch counts, until the
batch's results had come.

The delivery log knows which batch took which events, and the plan when each was due; the system is not consulted.
Events are counted in blocks, all of them. No row waits inside the system: a running aggregate reads rows as they come
(`dataflow.schema`), and a user job with updates gives in each batch what the batch has changed.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import product

import numpy as np

from streamgauge.core.arrays import Int64s
from streamgauge.metrics.delivery_times import NO_READS, ends_and_stamps, reads_by_place, stamps_of
from streamgauge.metrics.event_latency import SinkLatencies, summary
from streamgauge.metrics.histogram import Histogram
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.results.latency import Latency
from streamgauge.transports.spi import Delivery, StreamPartition

BLOCK_EVENTS = 1 << 20
"""Looked at together: a few arrays of 8 MiB."""
ONE_BY_ONE = "until_counted: not given, since every event gives an update of its own, which counts from it"
NO_BATCHES = "not known: no batch of the engine names the events that it took in"


def with_inclusion_latency(
    found: SinkLatencies, record: TrialRecord, streams: Collection[str], in_batches: bool = True
) -> SinkLatencies:
    """The latencies of a flow's only sink, whose results are updates, with that of all events until they were counted.

    It is of these streams' events that were due in the measured span and offered. Null if not known, with the reason.
    An event that no committed batch had taken by the deadline counts as a lower bound, like a missing result.
    `in_batches`: the engine gives results batch by batch, not one for each event.
    """
    if not in_batches:
        return found.with_notes(ONE_BY_ONE)
    reads = _reads(record.trial_log)
    if not any(stamps.any() for of_place in reads.values() for _, stamps in of_place):
        return found.with_until_counted(Latency(note=NO_BATCHES))
    whole, missing, batches_us = Histogram(), 0, set[int]()
    for place, event_times_us in _events(record, streams):
        by_reader = [stamps_of(*of_reader, event_times_us) for of_reader in reads.get(place) or [NO_READS]]
        # If a query reads a stream at several places, an event is included once the last of them has read it; 0 if
        # never.
        included_us = np.where(np.all(by_reader, axis=0), np.max(by_reader, axis=0), 0)
        came = included_us > 0
        whole.add(np.where(came, included_us, record.deadline_us) - event_times_us)
        missing += int(np.count_nonzero(~came))
        # The time at which results had come identifies their batch.
        batches_us |= set(included_us[np.flatnonzero(np.diff(included_us, prepend=-1))].tolist()) - {0}
    return found.with_until_counted(summary(whole, len(batches_us), missing))._replace(
        negatives=found.negatives + whole.n_negative, histograms={**found.histograms, "until_counted": whole}
    )


def _reads(trial_log: TrialLog) -> dict[StreamPartition, list[tuple[Int64s, Int64s]]]:
    """For each reader of the sink's queries at a place: the ends of its reads, and when each was in results.

    All results of a batch had come with the last row, or with the commit of a batch that changed nothing.
    """
    came_us = {(one.query, one.batch): one.emitted_us if one.rows else one.committed_us for one in trial_log.commits}
    queries, reads = {query for query, _ in came_us}, {}
    for place, parts in reads_by_place(trial_log).items():
        by_reader: dict[int, list[Delivery]] = defaultdict(list)
        for part in parts:
            if part.query in queries and not part.again:
                by_reader[part.reader].append(part)
        reads[place] = [
            ends_and_stamps(of_reader, lambda part: came_us.get((part.query, part.batch), 0))
            for of_reader in by_reader.values()
        ]
    return reads


def _events(record: TrialRecord, streams: Collection[str]) -> Iterator[tuple[StreamPartition, Int64s]]:
    """Event times of the span's events, block by block."""
    plan, low_us = record.trial_log.plan, record.spans.measured_from_us
    high_us = max(low_us, min(record.spans.measured_to_us, record.offered_until()))
    wanted = [(number, stream.name) for number, stream in enumerate(plan.streams) if stream.name in streams]
    for (number, name), partition in product(wanted, range(plan.partitions)):
        first, last = (plan.count_before(number, partition, when_us) for when_us in (low_us, high_us))
        for start in range(first, last, BLOCK_EVENTS):
            yield (name, partition), plan.event_times(number, partition, start, min(start + BLOCK_EVENTS, last))
