package streamgauge.kafka_streams

import java.nio.ByteBuffer
import java.util.TreeMap
import java.util.concurrent.atomic.LongAdder

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import org.apache.commons.lang3.SerializationUtils
import org.apache.kafka.common.serialization.{Deserializer, Serde, Serdes, Serializer}
import org.apache.kafka.common.utils.Bytes
import org.apache.kafka.streams.kstream.{Aggregator, Initializer, Merger, ValueJoiner, Windowed}
import org.apache.kafka.streams.processor.api.{ContextualFixedKeyProcessor, ContextualProcessor, FixedKeyRecord, ProcessorContext, Record}
import org.apache.kafka.streams.state.KeyValueStore
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.unsafe.Platform

import streamgauge._

/** Bytes of rows in topics and stores: those of the row, and two for the number of its fields. Threads share a serde. */
object RowSerde {
  private def of[T](write: T => Array[Byte], read: Array[Byte] => T): Serde[T] = {
    val serializer: Serializer[T] = (_: String, value: T) => if (value == null) null else write(value)
    val deserializer: Deserializer[T] = (_: String, bytes: Array[Byte]) => if (bytes == null) null.asInstanceOf[T] else read(bytes)
    Serdes.serdeFrom(serializer, deserializer)
  }

  def bytes(row: UnsafeRow): Array[Byte] = {
    val size = row.getSizeInBytes; val made = new Array[Byte](size + 2)
    row.writeToMemory(made, Platform.BYTE_ARRAY_OFFSET)
    made(size) = row.numFields.toByte; made(size + 1) = (row.numFields >> 8).toByte
    made
  }

  def row(bytes: Array[Byte]): UnsafeRow = {
    val size = bytes.length - 2
    val made = new UnsafeRow((bytes(size) & 0xff) | (bytes(size + 1) << 8))
    made.pointTo(bytes, size)
    made
  }

  val rows: Serde[UnsafeRow] = of(bytes, row)

  val nothing: Serde[UnsafeRow] = of(bytes, _ => null)

  /** The key of messages of the input, which is the text of a value. */
  def messageKeys(name: String, kind: String): Serde[UnsafeRow] = {
    val text = Expressions.attributes(Seq("text" -> "binary"))
    val reader = new PerThread(Expressions.rowWise(text, Seq(Make(Seq(name -> s"CAST(CAST(text AS STRING) AS $kind)")))))(new Single(_))
    of(bytes, text => reader()(InternalRow(text)).copy())
  }

  def events(source: SourcePlan): Serde[UnsafeRow] = {
    val decoder = new PerThread(source)(Decoder.open)
    of(bytes, message => decoder()(message).copy())
  }

  def buffers(buffers: Buffers): Serde[InternalRow] = {
    val project = new PerThread(buffers)(each => UnsafeProjection.create(each.types.toArray))
    of(
      { case bytes: UnsafeRow => this.bytes(bytes); case row => bytes(project()(row)) },
      bytes => buffers.settable(row(bytes)))
  }
}

/** What the threads of a job may not share: each opens a copy, because some expressions have a state. */
final class PerThread[A <: java.io.Serializable, T](made: A)(open: A => T) {
  private val each = ThreadLocal.withInitial[T](() => open(Copy.of(made)))
  def apply(): T = each.get
}

object Copy {
  def of[A <: java.io.Serializable](made: A): A = SerializationUtils.clone(made)
}

final class Transformed(transform: Transform) extends ContextualFixedKeyProcessor[UnsafeRow, UnsafeRow, UnsafeRow] {
  private val emitter = Copy.of(transform).open()
  override def process(record: FixedKeyRecord[UnsafeRow, UnsafeRow]): Unit =
    emitter(record.value, row => context.forward(record.withValue(row)))
}

final class Keyed(key: Key) extends ContextualProcessor[UnsafeRow, UnsafeRow, UnsafeRow, UnsafeRow] {
  private val keyOf = Copy.of(key).open()
  override def process(record: Record[UnsafeRow, UnsafeRow]): Unit = context.forward(record.withKey(keyOf(record.value)))
}

/** A result. Its record has the time of the clock, because brokers refuse records of the far future. */
final class Encoding(encoder: Encoder, key: Array[Byte]) extends ContextualProcessor[UnsafeRow, UnsafeRow, Array[Byte], Array[Byte]] {
  private val encode = Copy.of(encoder).open()
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
  private val make = Copy.of(aggregates).result(windowed = true, names)
  override def process(record: Record[Windowed[UnsafeRow], InternalRow]): Unit = if (record.value != null) {
    val window = record.key.window; val end = window.end + after
    context.forward(new Record(null, make(record.key.key, record.value, window.start, end), end - 1))
  }
}

/** The current value of a key. */
final class RunningResult(aggregates: Aggregates, names: Seq[String]) extends ContextualProcessor[UnsafeRow, InternalRow, UnsafeRow, UnsafeRow] {
  private val make = Copy.of(aggregates).result(windowed = false, names)
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
  private val keyOf = of.once.map(Copy.of(_).open()).orNull
  private var latest = Long.MinValue

  override def init(context: ProcessorContext[UnsafeRow, UnsafeRow]): Unit = {
    super.init(context)
    windows = new Windows(of.range, of.slide, new StoredRows(context.getStateStore(of.waiting)), Copy.of(of.closing).open())
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

/** Rows by time and then by a number that rises, in a store. The times are in the heap too, because a store may copy all
  * keys of a range before it gives the first.
  */
final class StoredRows(store: KeyValueStore[Bytes, Array[Byte]]) extends WaitingRows {
  private val CLOSED = Bytes.wrap(Array[Byte](0))
  private var number = System.currentTimeMillis << 20
  private var end = Option(store.get(CLOSED)).map(ByteBuffer.wrap(_).getLong).getOrElse(0L)
  private val times = new TreeMap[Long, ArrayBuffer[Bytes]]
  scan()

  private def scan(): Unit = {
    val found = store.all()
    try while (found.hasNext) { val key = found.next().key; if (key != CLOSED) note(ByteBuffer.wrap(key.get).getLong, key) } finally found.close()
  }

  private def note(time: Long, key: Bytes): Unit = times.computeIfAbsent(time, _ => ArrayBuffer()) += key

  override def put(time: Long, row: UnsafeRow): Unit = {
    number += 1
    val key = Bytes.wrap(ByteBuffer.allocate(16).putLong(time).putLong(number).array)
    store.put(key, RowSerde.bytes(row))
    note(time, key)
  }

  override def between(from: Long, until: Long): Seq[UnsafeRow] =
    for (keys <- times.subMap(from, until).values.asScala.toSeq; key <- keys) yield RowSerde.row(store.get(key))

  override def first(from: Long): Long = Option(times.ceilingEntry(from)).map(_.getKey).getOrElse(Long.MaxValue)

  override def removeBefore(until: Long): Unit = {
    val old = times.headMap(until)
    for (keys <- old.values.asScala; key <- keys) store.delete(key)
    old.clear()
  }

  override def closed: Long = end

  override def closed_=(to: Long): Unit = { end = to; store.put(CLOSED, ByteBuffer.allocate(8).putLong(to).array) }
}
