package streamgauge.storm

import java.util.{List => JavaList, TreeMap}

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeRow}
import org.apache.storm.tuple.Fields

import streamgauge._

/** A tuple has one row. */
object Row {
  val FIELD = new Fields("row")
  def of(values: JavaList[Object]): UnsafeRow = values.get(0).asInstanceOf[UnsafeRow]
}

/** Tuples of a stream of their own: every row before `time` has been sent. */
object Watermark {
  val STREAM = "watermark"
  val FIELD = new Fields("time")
}

object Rows {
  def time(in: Seq[Attribute]): Int = in.indexWhere(_.name == Plan.TIME)
}

final class HeapRows extends WaitingRows {
  private val rows = new TreeMap[Long, ArrayBuffer[UnsafeRow]]
  private var end = 0L

  override def put(time: Long, row: UnsafeRow): Unit = rows.computeIfAbsent(time, _ => ArrayBuffer()) += row
  override def between(from: Long, until: Long): Seq[UnsafeRow] = rows.subMap(from, until).values.asScala.flatten.toSeq
  override def first(from: Long): Long = Option(rows.ceilingEntry(from)).map(_.getKey).getOrElse(Long.MaxValue)
  override def removeBefore(until: Long): Unit = rows.headMap(until).clear()
  override def closed: Long = end
  override def closed_=(to: Long): Unit = end = to
}
