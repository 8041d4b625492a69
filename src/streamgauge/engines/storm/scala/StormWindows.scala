package streamgauge.storm

import java.util.{Collections, List => JavaList, Map => AnyMap}

import scala.jdk.CollectionConverters._

import org.apache.storm.task.{OutputCollector, TopologyContext}
import org.apache.storm.topology.OutputFieldsDeclarer
import org.apache.storm.topology.base.BaseWindowedBolt
import org.apache.storm.tuple.{Tuple, Values}
import org.apache.storm.utils.Utils
import org.apache.storm.windowing.{TimestampExtractor, TupleWindow}

import streamgauge._

/** Storm's own windowed bolt: it keeps each tuple and looks at all of a window when that closes. A tuple is acknowledged
  * when it leaves its last window. Results are anchored to none, because Storm would anchor each to all tuples.
  */
final class StormWindows(closing: Closing, range: Long) extends BaseWindowedBolt {
  @transient private var out: OutputCollector = _
  @transient private var closer: Closer = _
  private val unanchored: JavaList[Tuple] = Collections.emptyList[Tuple]

  override def prepare(settings: AnyMap[String, Object], context: TopologyContext, collector: OutputCollector): Unit = Tasks.guarded {
    out = collector; closer = closing.open()
    Tasks.open()
  }

  override def execute(window: TupleWindow): Unit = Tasks.guarded {
    val end = window.getEndTimestamp.longValue
    val rows = window.get.asScala.iterator.map(tuple => Row.of(tuple.getValues)).toSeq
    closer(rows, end - range, end, row => { val _ = out.emit(Utils.DEFAULT_STREAM_ID, unanchored, new Values(row.copy())) })
    val _ = out.emit(Watermark.STREAM, unanchored, new Values(Long.box(end)))
  }

  override def declareOutputFields(declarer: OutputFieldsDeclarer): Unit = {
    declarer.declare(Row.FIELD)
    declarer.declareStream(Watermark.STREAM, Watermark.FIELD)
  }
}

/** The time of a row, one microsecond later: Storm's windows have their end and not their start. `times`: of each side. */
final class StormTime(times: Seq[Int]) extends TimestampExtractor {
  override def extractTimestamp(tuple: Tuple): Long = {
    val row = Row.of(tuple.getValues)
    row.getLong(if (times.size == 1) times.head else times(row.getInt(row.numFields - 1))) + 1
  }
}
