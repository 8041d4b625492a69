"""One DStream of `pyspark.streaming`: batches are created at every batch interval and processed in order.

Spark calls a transformation when it creates a batch, and the output function when it processes it. The transformation
fixes the batch's data, so a waiting batch does not grow.
"""

import warnings
from collections import deque
from collections.abc import Callable
from datetime import datetime
from threading import Lock
from typing import Any

from pyspark.streaming import StreamingContext
from pyspark.streaming.listener import StreamingListener

from streamgauge.core.errors import is_full
from streamgauge.engines.spark.dstream.lowering import Batch
from streamgauge.engines.spark.dstream.receivers import QueueReceiver, SocketReceiver
from streamgauge.engines.spark.session.reports import BATCH_ID, DStreamProgress, progress_of
from streamgauge.engines.spark.session.session import error_message

PROGRESS_MAX = 100_000
"""The number of batches whose progress is kept: a day of one-second batches."""


class DStreamBatches(StreamingListener):
    """A stream that processes its batches after its start. `work` gets each batch with Spark's RDD.

    As Spark's listener, it is called at each batch's end.
    """

    def __init__(
        self,
        session: Any,
        query: str,
        interval_s: float,
        receiver: QueueReceiver | SocketReceiver,
        work: Callable[[Batch, Any], None],
    ) -> None:
        super().__init__()
        self._context, self._query, self._interval_ms = session.sparkContext, query, round(1000 * interval_s)
        self._receiver, self._work = receiver, work
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # DStreams are deprecated
            self._streaming = StreamingContext(self._context, interval_s)
        self._lock = Lock()
        self._made: dict[int, Any] = {}
        self._unreported: dict[int, Any] = {}
        self._progress: deque[DStreamProgress] = deque(maxlen=PROGRESS_MAX)
        self._first_ms: int | None = None
        self._failed, self.disk_full = "", False

    def start(self) -> None:
        """Starts the receiver. The first batch is created at most one interval later."""
        # Lambdas, because Spark inspects the number of arguments.
        made = self._receiver.stream(self._streaming).transform(lambda when, rdd: self._on_made(_ms(when), rdd))
        made.foreachRDD(lambda when, rdd: self._on_batch(_ms(when), rdd))
        self._streaming.addStreamingListener(self)
        self._streaming.start()

    @property
    def failed(self) -> str:
        """Why a batch or the stream failed; empty if it did not."""
        if not self._failed:
            try:
                if self._streaming.awaitTerminationOrTimeout(0):
                    self._failed = "the stream ended"
            except Exception as error:
                self._fail(error)
        return self._failed

    @property
    def working(self) -> bool:
        """Whether a non-empty batch was created and is not finished."""
        return bool(self._made)

    def progress(self) -> list[DStreamProgress]:
        """The progress of non-empty batches."""
        return list(self._progress)

    def _on_made(self, when_ms: int, rdd: Any) -> Any:
        """Never raises, because Spark would continue with the next batch."""
        try:
            made = None if self._failed else self._receiver.next(when_ms, self._number(when_ms))
            if made is not None:
                with self._lock:
                    self._made[when_ms] = made
                    self._unreported[when_ms] = made
        except Exception as error:
            self._fail(error)
        return rdd

    def _on_batch(self, when_ms: int, rdd: Any) -> None:
        made, number = self._made.get(when_ms), self._number(when_ms)
        if made is None or self._failed:
            return
        try:
            self._context.setLocalProperty(BATCH_ID, str(number))
            self._work(self._receiver.begin(number, made, rdd), rdd)
        except Exception as error:
            self._fail(error)
            raise
        finally:
            with self._lock:
                del self._made[when_ms]

    def onBatchCompleted(self, batchCompleted: Any) -> None:
        """Stores the progress of a finished non-empty batch."""
        info = batchCompleted.batchInfo()
        when_ms = info.batchTime().milliseconds()
        if when_ms not in self._unreported:
            return
        blocks = self._receiver.received_blocks(self._unreported.pop(when_ms))
        self._progress.append(progress_of(self._query, self._number(when_ms), info, blocks))

    def _number(self, when_ms: int) -> int:
        """The number of a batch; empty batches are counted too."""
        if self._first_ms is None:
            self._first_ms = when_ms
        return (when_ms - self._first_ms) // self._interval_ms

    def _fail(self, error: Exception) -> None:
        if not self._failed:
            self._failed, self.disk_full = error_message(str(error)), is_full(error)


def _ms(when: datetime) -> int:
    """Milliseconds since the epoch of a batch's time, which Spark gives in the local time zone."""
    return round(when.timestamp() * 1000)
