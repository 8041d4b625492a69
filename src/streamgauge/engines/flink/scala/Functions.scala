package streamgauge.flink

import scala.jdk.CollectionConverters._

import org.apache.flink.api.common.functions.{AggregateFunction, OpenContext, ReduceFunction, RichFlatMapFunction}
import org.apache.flink.api.common.serialization.SerializationSchema
import org.apache.flink.api.common.state.{ListState, ListStateDescriptor, ValueState, ValueStateDescriptor}
import org.apache.flink.api.common.typeinfo.{TypeInformation, Types}
import org.apache.flink.api.java.functions.KeySelector
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema
import org.apache.flink.streaming.api.functions.KeyedProcessFunction
import org.apache.flink.streaming.api.functions.co.ProcessJoinFunction
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction
import org.apache.flink.streaming.api.windowing.windows.TimeWindow
import org.apache.flink.util.Collector
import org.apache.kafka.clients.consumer.ConsumerRecord
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{DataType, IntegerType}

import streamgauge._

/** Objects that are compiled where they are used, and not sent there. */
trait PerTask[T] extends Serializable {
  @transient private var value: T = _
  @transient private var isOpen = false
  protected def make(): T
  protected def opened: T = {
    if (!isOpen) { value = make(); isOpen = true }
    value
  }
}

class Decoding(source: SourcePlan) extends KafkaRecordDeserializationSchema[UnsafeRow] with PerTask[Decoder] {
  override protected def make(): Decoder = Decoder.open(source)
  override def deserialize(record: ConsumerRecord[Array[Byte], Array[Byte]], out: Collector[UnsafeRow]): Unit =
    out.collect(opened(record.value))
  override def getProducedType: TypeInformation[UnsafeRow] = RowType
}

class Encoding(encoder: Encoder) extends SerializationSchema[UnsafeRow] with PerTask[InternalRow => Array[Byte]] {
  override protected def make(): InternalRow => Array[Byte] = encoder.open()
  override def serialize(row: UnsafeRow): Array[Byte] = opened(row)
}

class SinkName(name: Array[Byte]) extends SerializationSchema[UnsafeRow] {
  override def serialize(row: UnsafeRow): Array[Byte] = name
}

class Transformed(transform: Transform) extends RichFlatMapFunction[UnsafeRow, UnsafeRow] {
  @transient private var emitter: Emitter = _
  override def open(context: OpenContext): Unit = emitter = transform.open()
  override def flatMap(row: UnsafeRow, out: Collector[UnsafeRow]): Unit = emitter(row, made => out.collect(made))
}

/** The key of a row. Flink hashes it and compares it many times, so that one int is a number: null is one that no int is. */
class Keyed(key: Key) extends KeySelector[UnsafeRow, Object] with PerTask[UnsafeProjection] {
  private val int = key.int
  override protected def make(): UnsafeProjection = key.open()
  override def getKey(row: UnsafeRow): Object =
    if (int < 0) opened(row).copy() else Long.box(if (row.isNullAt(int)) Long.MinValue else row.getInt(int).toLong)
  def kind: TypeInformation[Object] = (if (int < 0) RowType else Types.LONG).asInstanceOf[TypeInformation[Object]]
}

/** A key as a row, which is valid until the next. */
final class KeyRow {
  private val number = UnsafeProjection.create(Array[DataType](IntegerType)); private val value = new GenericInternalRow(1)
  def apply(key: Object): UnsafeRow = key match {
    case row: UnsafeRow => row
    case int: java.lang.Long => value.update(0, if (int == Long.MinValue) null else int.intValue); number(value)
  }
}

class WindowAggregation(aggregates: Aggregates) extends AggregateFunction[UnsafeRow, InternalRow, InternalRow] with PerTask[Folding] {
  override protected def make(): Folding = aggregates.open()
  override def createAccumulator(): InternalRow = opened.fresh()
  override def add(row: UnsafeRow, buffer: InternalRow): InternalRow = { opened.add(buffer, row); buffer }
  override def merge(buffer: InternalRow, other: InternalRow): InternalRow = { opened.merge(buffer, other); buffer }
  override def getResult(buffer: InternalRow): InternalRow = buffer
}

class WindowResult(aggregates: Aggregates, names: Seq[String])
    extends ProcessWindowFunction[InternalRow, UnsafeRow, Object, TimeWindow] {
  @transient private var make: RowMaker = _
  @transient private var rowOf: KeyRow = _
  override def open(context: OpenContext): Unit = { make = aggregates.result(windowed = true, names); rowOf = new KeyRow }
  override def process(
      key: Object, context: ProcessWindowFunction[InternalRow, UnsafeRow, Object, TimeWindow]#Context,
      buffers: java.lang.Iterable[InternalRow], out: Collector[UnsafeRow]): Unit =
    out.collect(make(rowOf(key), buffers.iterator.next, context.window.getStart, context.window.getEnd))
}

/** Every row gives the current value of its key. */
class Running(aggregates: Aggregates, names: Seq[String]) extends KeyedProcessFunction[Object, UnsafeRow, UnsafeRow] {
  @transient private var state: ValueState[InternalRow] = _
  @transient private var folding: Folding = _
  @transient private var make: RowMaker = _
  @transient private var rowOf: KeyRow = _
  override def open(context: OpenContext): Unit = {
    rowOf = new KeyRow
    state = getRuntimeContext.getState(new ValueStateDescriptor("buffer", BufferType(aggregates.bufferTypes)))
    folding = aggregates.open(); make = aggregates.result(windowed = false, names)
  }
  override def processElement(
      row: UnsafeRow, context: KeyedProcessFunction[Object, UnsafeRow, UnsafeRow]#Context, out: Collector[UnsafeRow]): Unit = {
    val buffer = Option(state.value).getOrElse(folding.fresh())
    folding.add(buffer, row)
    state.update(buffer)
    out.collect(make(rowOf(context.getCurrentKey), buffer))
  }
}

/** The pairs of rows of both sides of a window. The last column of a row says its side. */
class Pairs(pairing: Pairing) extends ProcessWindowFunction[UnsafeRow, UnsafeRow, Object, TimeWindow] with PerTask[RowMaker] {
  override protected def make(): RowMaker = pairing.open()
  override def process(
      key: Object, context: ProcessWindowFunction[UnsafeRow, UnsafeRow, Object, TimeWindow]#Context,
      rows: java.lang.Iterable[UnsafeRow], out: Collector[UnsafeRow]): Unit = {
    val (left, right) = rows.asScala.partition(row => row.getInt(row.numFields - 1) == 0)
    val others = right.toArray
    for (one <- left; other <- others) out.collect(opened(one, other, context.window.getStart, context.window.getEnd))
  }
}

class IntervalPairs(pairing: Pairing) extends ProcessJoinFunction[UnsafeRow, UnsafeRow, UnsafeRow] with PerTask[RowMaker] {
  override protected def make(): RowMaker = pairing.open()
  override def processElement(
      left: UnsafeRow, right: UnsafeRow, context: ProcessJoinFunction[UnsafeRow, UnsafeRow, UnsafeRow]#Context,
      out: Collector[UnsafeRow]): Unit = out.collect(opened(left, right))
}

class EarlierRow(order: Order) extends ReduceFunction[UnsafeRow] with PerTask[Ordering[InternalRow]] {
  override protected def make(): Ordering[InternalRow] = order.open()
  override def reduce(one: UnsafeRow, other: UnsafeRow): UnsafeRow = if (opened.lteq(one, other)) one else other.copy()
}

class EarliestResult(in: Seq[Attribute], names: Seq[String])
    extends ProcessWindowFunction[UnsafeRow, UnsafeRow, Object, TimeWindow] with PerTask[RowMaker] {
  override protected def make(): RowMaker = streamgauge.Earliest.open(in, names)
  override def process(
      key: Object, context: ProcessWindowFunction[UnsafeRow, UnsafeRow, Object, TimeWindow]#Context,
      rows: java.lang.Iterable[UnsafeRow], out: Collector[UnsafeRow]): Unit =
    out.collect(opened(rows.iterator.next, context.window.getStart, context.window.getEnd))
}

/** The earliest row of each key, when the watermark passes its time: no earlier one can come then. */
class First(order: Order, time: Int) extends KeyedProcessFunction[Object, UnsafeRow, UnsafeRow] {
  @transient private var candidate: ValueState[UnsafeRow] = _
  @transient private var done: ValueState[java.lang.Boolean] = _
  @transient private var ordering: Ordering[InternalRow] = _
  override def open(context: OpenContext): Unit = {
    candidate = getRuntimeContext.getState(new ValueStateDescriptor("candidate", RowType))
    done = getRuntimeContext.getState(new ValueStateDescriptor("done", classOf[java.lang.Boolean]))
    ordering = order.open()
  }
  override def processElement(
      row: UnsafeRow, context: KeyedProcessFunction[Object, UnsafeRow, UnsafeRow]#Context, out: Collector[UnsafeRow]): Unit =
    if (done.value == null) {
      val before = candidate.value
      if (before == null || ordering.lt(row, before)) {
        candidate.update(row.copy())
        context.timerService.registerEventTimeTimer(row.getLong(time))
      }
    }
  override def onTimer(
      at: Long, context: KeyedProcessFunction[Object, UnsafeRow, UnsafeRow]#OnTimerContext, out: Collector[UnsafeRow]): Unit = {
    val row = candidate.value
    if (row != null && row.getLong(time) == at) { out.collect(row); candidate.clear(); done.update(true) }
  }
}

/** The greatest rows of a window and its keys. `latest`: columns of which each row gets the greatest value. */
class TopRows(ranked: Ranked) extends KeyedProcessFunction[Object, UnsafeRow, UnsafeRow] {
  @transient private var rows: ListState[UnsafeRow] = _
  @transient private var ranking: Ranking = _
  override def open(context: OpenContext): Unit = {
    rows = getRuntimeContext.getListState(new ListStateDescriptor("rows", RowType))
    ranking = ranked.open()
  }
  override def processElement(
      row: UnsafeRow, context: KeyedProcessFunction[Object, UnsafeRow, UnsafeRow]#Context, out: Collector[UnsafeRow]): Unit =  {
    rows.add(row.copy())
    context.timerService.registerEventTimeTimer(row.getLong(ranked.time))
  }
  override def onTimer(
      at: Long, context: KeyedProcessFunction[Object, UnsafeRow, UnsafeRow]#OnTimerContext, out: Collector[UnsafeRow]): Unit = {
    ranking(rows.get.asScala, out.collect)
    rows.clear()
  }
}
