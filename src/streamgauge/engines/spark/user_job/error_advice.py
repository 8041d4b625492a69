"""What to do about an error of Spark in a user job, by Spark's own error class.

Spark names each refusal by an error class. Refusals of streaming queries share one, and differ by their message.
"""

import re

_STREAMING = "_LEGACY_ERROR_TEMP_3102"
"""The error class of Spark's checker of streaming queries, whose message is the whole reason."""
_NO_ACTION = "leave actions (collect, show, write) and writeStream out, and return the DataFrame before them"
_WATERMARK = 'put withWatermark("{time}", "0 seconds") before that operator, on each stream that it reads'
_APPEND = 'use append mode, which is the default: take mode="update" and its keys out of @job'
_STATE = "transformWithStateInPandas, which keeps any state per key"

ADVICE: dict[str, dict[str, str]] = {
    "CALL_ON_STREAMING_DATASET_UNSUPPORTED": {"": _NO_ACTION},
    "WRITE_STREAM_NOT_ALLOWED": {"": _NO_ACTION},
    "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION": {
        "session window": f"{_APPEND}; Spark gives a session only when it is closed",
        "without watermark": (
            'in @job: mode="update", keys="..."; or withWatermark("{time}", "0 seconds") before the groupBy of a window'
        ),
    },
    "UNSUPPORTED_STREAMING_OPERATOR_WITHOUT_WATERMARK": {"": _WATERMARK},
    "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING": {
        "": (
            'for the best value of each key so far, in @job: mode="update", keys="KEY", and in the function: '
            'groupBy("KEY").agg(F.max("VALUE").alias("VALUE"), F.max("event_time").alias("event_time")); '
            f"for other ranks: {_STATE}"
        )
    },
    "EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE": {
        "": 'withWatermark("{time}", ...): event_time is the same moment as a number'
    },
    "EVENT_TIME_MUST_BE_TOP_LEVEL_COLUMN": {"": 'withWatermark("{time}", ...) on the input, before its columns change'},
    "_LEGACY_ERROR_TEMP_3063": {
        "": 'write each column of the pivot yourself: F.sum(F.when(F.col("kind") == "a", F.col("n"))).alias("a")'
    },
    "_LEGACY_ERROR_TEMP_3067": {"": f"use Spark's own aggregate functions, or {_STATE}"},
    "_LEGACY_ERROR_TEMP_3068": {"": "group by a key too, beside F.session_window"},
    "_LEGACY_ERROR_TEMP_3076": {"": "give each input one withWatermark, before its first groupBy or join"},
    _STREAMING: {
        "must be executed with writeStream": _NO_ACTION,
        "only in Append output mode": f"{_APPEND}; Spark joins two streams that way only",
        "Limits are not supported": f"leave limit out, or {_APPEND}",
        "Sorting is not supported": "leave orderBy and sort out: a stream has no end after which it could be sorted",
        "Distinct aggregations": 'F.approx_count_distinct("x"), or F.size(F.collect_set("x")), which is exact',
        "without a watermark in the join keys": (
            'put withWatermark("{time}", "0 seconds") on both inputs, and bound the times in the condition: '
            'F.expr("a_id = b_id AND b_time BETWEEN a_time AND a_time + INTERVAL 5 SECONDS")'
        ),
        "without watermark": _WATERMARK,
        "Watermark must be specified": _WATERMARK,
        "a streaming DataFrame/Dataset on the right": "put the stream on the left of the join",
        "on the left and a static": "use an inner or a left outer join with the stream on the left",
        "on the right and a static": "use an inner or a left outer join with the stream on the left",
        "Union between streaming and batch": 'make both sides of the union from inputs["..."]',
        "Intersect of": 'a join with how="left_semi", and a bound on the times in its condition',
        "Except on": "a left outer join with a bound on the times, and keep the rows without a match",
        "CoGrouping": f"union both inputs with a column that names the stream, then {_STATE}",
        "Sampling": 'keep rows by a condition on their values: where("pmod(event_id, 10) = 0")',
        "Grouping Sets": "one groupBy in each job, without cube and rollup",
        "WithState in update mode is not supported with": 'give the function the mode of @job: "append" as a rule',
        "WithState in append mode is not supported with": "give the function and @job the same output mode",
        "possible 'correctness' issue": f"leave one of the stateful operators out, or use {_STATE}",
    },
}
"""Error class to a phrase of its message to the advice; an empty phrase is in every message."""

_CLASS = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z][A-Z0-9_]*)?)\]")


def advice_for(error: BaseException, time: str) -> str | None:
    """The way out of an error of Spark; None where the table has none. `time`: the job's name for its time column."""
    text = str(error)
    # Most errors say their class; the checker of streaming queries does so only by its message.
    condition, named = getattr(error, "getCondition", lambda: None)(), _CLASS.match(text)
    classes = filter(None, (condition, named and named[1], _STREAMING))
    phrases = (item for name in classes for item in ADVICE.get(name, {}).items())
    return next((advice.replace("{time}", time) for phrase, advice in phrases if phrase in text), None)
