"""The instances that the thesis gives each operator of its applications [B table 3.4], beside the operators here.

Figures of the thesis, never mixed into our own. It has none for Bargain Index, Reinforcement Learner, Smart Grid and
VoIPSTREAM. As a whole, five of its ten rows cannot come from eq. 3.4 as it is printed, with K = 10 shared out among all
operators of the row (`stats.instances.sums_possible`): Word Count 15 of at most 13, Log Processing 17 of at most 15,
Fraud Detection 13 of at most 12; Traffic Monitoring 6 and Sentiment Analysis 9 of at least 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["source", "operator", "sink"]


@dataclass(frozen=True)
class Published:
    """An operator of the thesis with its instances, and the operators here that do what it does.

    Sources and sinks stand for all of theirs: streams and results have other names here.
    """

    operator: str
    instances: int
    here: tuple[str, ...] = ()

    @property
    def role(self) -> Role:
        return "source" if self.operator == "source" else "sink" if self.operator == "sink" else "operator"


def _row(source: int, sink: int, **operators: int | tuple[int, tuple[str, ...]]) -> tuple[Published, ...]:
    """A row of the table; an operator that has another name here, or several, is a pair of instances and names."""
    between = [_published(name, given) for name, given in operators.items()]
    return (Published("source", source), *between, Published("sink", sink))


def _published(name: str, given: int | tuple[int, tuple[str, ...]]) -> Published:
    instances, here = given if isinstance(given, tuple) else (given, (name,))
    return Published(name, instances, here)


INSTANCES: dict[str, tuple[Published, ...]] = {
    "word_count": _row(1, 3, splitter=5, counter=6),
    "log_processing": _row(
        4, 4,
        status=(1, ("status_counter",)), volume=(2, ("volume_counter",)), geo_locator=(4, ("geo_finder",)),
        geo_summary=(2, ("country_stats", "city_stats")),
    ),
    "traffic_monitoring": _row(1, 1, map_matcher=2, speed_calculator=2),
    "machine_outlier": _row(6, 1, scorer=1, anomaly_scorer=1, alert_trigger=4),
    "sentiment_analysis": _row(
        1, 1,
        tweet_filter=1, text_filter=1, stemmer=1, positive_scorer=1, negative_scorer=1, joiner=1, sentiment_scorer=1,
    ),
    "spam_filter": _row(1, 1, tokenizer=10, word_probability=1, bayes_rule=1),
    "trending_topics": _row(
        9, 1,
        topic_extractor=2, rolling_counter=1, intermediate_ranker=(1, ("ranker",)), total_ranker=(1, ("ranker",)),
    ),
    "click_analytics": _row(
        2, 1,
        repeat_visit=2, visit_total=(2, ("visit_stats", "unique_stats")), geo_locator=(5, ("geo_finder",)),
        geo_summary=(1, ("country_stats", "city_stats")),
    ),
    "fraud_detection": _row(8, 2, predictor=3),
    "spike_detection": _row(7, 1, moving_average=3, spike_detector=2),
}  # fmt: skip
"""Workload to the thesis's row, in the thesis's order."""


def of_operator(workload: str, name: str, role: Role) -> tuple[Published, ...]:
    """What the thesis has for an operator of a workload: nothing, one, or several that are one here."""
    rows = INSTANCES.get(workload, ())
    return tuple(each for each in rows if each.role == role and (role != "operator" or name in each.here))
