package streamgauge.kafka_streams

import java.util.concurrent.atomic.LongAdder

import org.apache.commons.lang3.SerializationUtils
import org.apache.kafka.common.utils.Bytes
import org.apache.kafka.streams.kstream.{Aggregator, Initializer, Merger, ValueJoiner, Windowed}
import org.apache.kafka.streams.processor.api.{ContextualFixedKeyProcessor, ContextualProcessor, FixedKeyRecord, ProcessorContext, Record}
import org.apache.kafka.streams.state.KeyValueStore
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._

import streamgauge._

/** What the threads of a job may not share: each opens a copy, because some expressions have a state. */
final class PerThread[A <: java.io.Serializable, T](made: A)(open: A => T) {
  private val each = ThreadLocal.withInitial[T](() => open(SerializationUtils.clone(made)))
  def apply(): T = each.get
}

final class Transformed(transform: Transform) extends ContextualFixedKeyProcessor[UnsafeRow, UnsafeRow, UnsafeRow] {
  private val emitter = SerializationUtils.clone(transform).open()
  override def process(record: FixedKeyRecord[UnsafeRow, UnsafeRow]): Unit =
    emitter(record.value, row => context.forward(record.withValue(row)))
}

final class Keyed(key: Key) extends ContextualProcessor[UnsafeRow, UnsafeRow, UnsafeRow, UnsafeRow] {
  private val keyOf = SerializationUtils.clone(key).open()
  override def process(record: Record[UnsafeRow, UnsafeRow]): Unit = context.forward(record.withKey(keyOf(record.value)))
}

/** A result. Its record has the time of the clock, because brokers refuse records of the far future. */
final class Encoding(encoder: Encoder, key: Array[Byte]) extends ContextualProcessor[UnsafeRow, UnsafeRow, Array[Byte], Array[Byte]] {
  private val encode = SerializationUtils.clone(encoder).open()
  override def process(record: Record[UnsafeRow, UnsafeRow]): Unit =
    context.forward(new Record(key, encode(record.value), System.currentTimeMillis))
}

final class EmptyBuffer(aggregates: Aggregates) extends Initializer[InternalRow] {
  private val folding = new PerThread(aggregates)(_.open())
  override def apply(): InternalRow = folding().fresh()
}

final class AddRow(aggregates: Aggregates) extends Aggregator[UnsafeRow, UnsafeRow, InternalRow] {
  private val folding = new PerThread(aggregates)(_.open())
  override def apply(key: UnsafeRow, row: UnsafeRow, buffer: InternalRow): InternalRow = { folding().add(buffer, row); buffer }
}

final class MergeBuffers(aggregates: Aggregates) extends Merger[UnsafeRow, InternalRow] {
  private val folding = new PerThread(aggregates)(_.open())
  override def apply(key: UnsafeRow, one: InternalRow, other: InternalRow): InternalRow = { folding().merge(one, other); one }
}

/** The row of a window that is closed. `after`: how long a window lasts after its last event. */
final class WindowResult(aggregates: Aggregates, names: Seq[String], after: Long)
    extends ContextualProcessor[Windowed[UnsafeRow], InternalRow, UnsafeRow, UnsafeRow] {
  private val make = SerializationUtils.clone(aggregates).result(windowed = true, names)
  override def process(record: Record[Windowed[UnsafeRow], InternalRow]): Unit = if (record.value != null) {
    val window = record.key.window; val end = window.end + after
    context.forward(new Record(null, make(record.key.key, record.value, window.start, end), end - 1))
  }
}

/** The current value of a key. */
final class RunningResult(aggregates: Aggregates, names: Seq[String]) extends ContextualProcessor[UnsafeRow, InternalRow, UnsafeRow, UnsafeRow] {
  private val make = SerializationUtils.clone(aggregates).result(windowed = false, names)
  override def process(record: Record[UnsafeRow, InternalRow]): Unit =
    context.forward(new Record(null, make(record.key, record.value), record.timestamp))
}

final class JoinRows(pairing: Pairing) extends ValueJoiner[UnsafeRow, UnsafeRow, UnsafeRow] {
  private val maker = new PerThread(pairing)(_.open())
  override def apply(left: UnsafeRow, right: UnsafeRow): UnsafeRow = maker()(left, right)
}

case class WindowsOf(
    closing: Closing, range: Long, slide: Long, delay: Long, waiting: String, once: Option[Key], known: String)

/** Rows wait in a store until their window closes by the times of later rows. */
final class WindowsProcessor(of: WindowsOf) extends ContextualProcessor[UnsafeRow, UnsafeRow, UnsafeRow, UnsafeRow] {
  private var windows: Windows = _
  private var known: KeyValueStore[Bytes, Array[Byte]] = _
  private val keyOf = of.once.map(SerializationUtils.clone(_).open()).orNull
  private var latest = Long.MinValue

  override def init(context: ProcessorContext[UnsafeRow, UnsafeRow]): Unit = {
    super.init(context)
    windows = new Windows(of.range, of.slide, new StoredRows(context.getStateStore(of.waiting)), SerializationUtils.clone(of.closing).open())
    if (keyOf != null) known = context.getStateStore(of.known)
  }

  override def process(record: Record[UnsafeRow, UnsafeRow]): Unit = {
    if (record.timestamp > latest) {
      latest = record.timestamp
      windows.advance(latest - of.delay, give)
    }
    if (keyOf == null || known.get(key(record.value)) == null)
      if (!windows.add(record.timestamp, record.value)) WindowsProcessor.late.increment()
  }

  private def give(row: UnsafeRow): Unit =
    if (keyOf == null) forward(row)
    else if (known.putIfAbsent(key(row), Array[Byte](1)) == null) forward(row)

  private def forward(row: UnsafeRow): Unit = context.forward(new Record(null, row, row.getLong(row.numFields - 1)))

  private def key(row: UnsafeRow): Bytes = Bytes.wrap(RowSerde.bytes(keyOf(row)))
}

object WindowsProcessor { val late = new LongAdder }
