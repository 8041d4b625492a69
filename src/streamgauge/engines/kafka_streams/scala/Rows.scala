package streamgauge.kafka_streams

import java.nio.ByteBuffer
import java.util.TreeMap

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import org.apache.kafka.common.serialization.{Deserializer, Serde, Serdes, Serializer}
import org.apache.kafka.common.utils.Bytes
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
