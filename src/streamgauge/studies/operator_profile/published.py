"""Instances published in Bordin 2017 (table 3.4).

Figures of the thesis, never mixed into our own. It has no instances for Bargain Index, Reinforcement Learner, Smart
Grid and VoIPSTREAM. As a whole, five of its ten rows cannot come from eq. 3.4 as it is printed, with K = 10 shared out
among all operators of the row, each share rounded up: Word Count 15 of at most 13, Log Processing 17 of at most 15,
Fraud Detection 13 of at most 12; Traffic Monitoring 6 and Sentiment Analysis 9 of at least 10.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """An operator of the thesis with its instances, and the operators here that do the same.

    Sources and sinks stand for all sources and sinks, because streams and results have other names here.
    """

    operator: str
    instances: int
    here: tuple[str, ...] = ()

    def is_done_by(self, kind: str, name: str) -> bool:
        """Whether an operator here of that kind and name does the same."""
        ends = ("source", "sink")
        return kind == self.operator if kind in ends or self.operator in ends else name in self.here


def _row(source: int, sink: int, **operators: int | tuple[int, tuple[str, ...]]) -> tuple[Published, ...]:
    """A row of the table; an operator that has another name here, or several, is a pair of instances and names."""
    between = (
        Published(name, *(given if isinstance(given, tuple) else (given, (name,)))) for name, given in operators.items()
    )
    return (Published("source", source), *between, Published("sink", sink))


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
