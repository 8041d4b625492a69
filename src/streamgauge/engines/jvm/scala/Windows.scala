package streamgauge

import java.util.{HashMap => JavaMap}

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._

/** The columns of a window: its borders and the time of its results, the last microsecond. */
object Borders {
  val columns: Seq[Attribute] =
    Expressions.attributes(Seq("window_start" -> "timestamp", "window_end" -> "timestamp", Plan.TIME -> "bigint"))

  def set(row: GenericInternalRow, start: Long, end: Long): GenericInternalRow = {
    row.update(0, start); row.update(1, end); row.update(2, end - 1)
    row
  }
}

/** Makes a row of one or two, and of the borders of a window if it has one. */
final class RowMaker(project: UnsafeProjection) {
  private val both = new JoinedRow; private val whole = new JoinedRow; private val borders = new GenericInternalRow(3)
  def apply(one: InternalRow, other: InternalRow): UnsafeRow = project(both(one, other))
  def apply(one: InternalRow, start: Long, end: Long): UnsafeRow = project(whole(one, Borders.set(borders, start, end)))
  def apply(one: InternalRow, other: InternalRow, start: Long, end: Long): UnsafeRow = apply(both(one, other), start, end)
}

/** Makes the row of a pair: columns by name, those of the left first; a window's if there is one. */
case class Pairing(left: Seq[Attribute], right: Seq[Attribute], names: Seq[String], windowed: Boolean) {
  def open(): RowMaker = {
    val others = right.map(_.newInstance()) // of a join with itself, both sides have the same columns
    val time = if (windowed) Borders.columns.last else
      Greatest(Seq(left, others).map(side => side.find(_.name == Plan.TIME).get))
    val more = if (windowed) Borders.columns else Nil
    val fields: Seq[Expression] = names.map {
      case Plan.TIME => time
      case name => left.find(_.name == name).orElse(others.find(_.name == name)).orElse(more.find(_.name == name)).get
    }
    new RowMaker(UnsafeProjection.create(fields, left ++ others ++ more))
  }
}

/** Where an engine keeps rows that wait, by time and then by arrival. */
trait WaitingRows {
  def put(time: Long, row: UnsafeRow): Unit
  /** Rows of their own, from `from` to before `until`. */
  def between(from: Long, until: Long): Seq[UnsafeRow]
  /** The first time from `from` on; Long.MaxValue without any. */
  def first(from: Long): Long
  def removeBefore(until: Long): Unit
  /** The end of the last window that was closed, which is kept with the rows. */
  def closed: Long
  def closed_=(end: Long): Unit
}

/** What a window's rows give when it closes, at once for all keys. */
trait Closing extends Serializable { def open(): Closer }
trait Closer { def apply(rows: Seq[UnsafeRow], start: Long, end: Long, out: UnsafeRow => Unit): Unit }

/** Windows whose rows wait until they close, for operators that an engine has not itself. */
final class Windows(range: Long, slide: Long, rows: WaitingRows, closer: Closer) {
  private var next = endOf(rows.first(begin))

  /** Whether a row has a window that is not closed. */
  def add(time: Long, row: UnsafeRow): Boolean = {
    val end = endOf(time); val fits = end <= time + range
    if (fits) { rows.put(time, row); next = next.min(end) }
    fits
  }

  /** Closes the windows whose rows are whole, because every row before `until` has come. */
  def advance(until: Long, out: UnsafeRow => Unit): Unit = while (next <= until) {
    val end = next
    rows.closed = end
    closer(rows.between(end - range, end), end - range, end, out)
    rows.removeBefore(begin)
    next = endOf(rows.first(begin))
  }

  /** The start of the first window that is not closed. */
  private def begin: Long = (rows.closed + slide - range).max(0)

  /** The end of the first window that is not closed and ends behind a time. */
  private def endOf(time: Long): Long =
    if (time == Long.MaxValue) time else Math.floorDiv(time.max(rows.closed) - range, slide) * slide + slide + range
}

/** The pairs of both sides, whose last column says the side. */
case class ClosePairs(pairing: Pairing, sides: Seq[Seq[Attribute]], keys: Seq[String]) extends Closing {
  override def open(): Closer = {
    val make = pairing.open()
    val keyOf = sides.map(Key(_, keys).open())
    (rows, start, end, out) => {
      val found = new JavaMap[UnsafeRow, (ArrayBuffer[UnsafeRow], ArrayBuffer[UnsafeRow])]
      for (row <- rows) {
        val side = row.getInt(row.numFields - 1)
        val (left, right) = ByKey.at(found, keyOf(side)(row), (ArrayBuffer.empty[UnsafeRow], ArrayBuffer.empty[UnsafeRow]))
        (if (side == 0) left else right) += row
      }
      for ((left, right) <- found.values.asScala; one <- left; other <- right) out(make(one, other, start, end))
    }
  }
}

object Earliest {
  /** Makes the row that a window gives: columns by name, its borders and its time. */
  def open(in: Seq[Attribute], names: Seq[String]): RowMaker = {
    val own = in.filter(_.name != Plan.TIME) ++ Borders.columns
    new RowMaker(UnsafeProjection.create(names.map(name => own.find(_.name == name).get), in ++ Borders.columns))
  }
}

/** The aggregates of each key. */
case class CloseAggregates(aggregates: Aggregates, key: Key, names: Seq[String]) extends Closing {
  override def open(): Closer = {
    val folding = aggregates.open(); val keyOf = key.open(); val make = aggregates.result(windowed = true, names)
    (rows, start, end, out) => {
      val buffers = new JavaMap[UnsafeRow, InternalRow]
      for (row <- rows) folding.add(ByKey.at(buffers, keyOf(row), folding.fresh()), row)
      buffers.forEach((of, buffer) => out(make(of, buffer, start, end)))
    }
  }
}

/** The first row of each key in an order, as it is or with the borders of its window. */
case class CloseEarliest(order: Order, keys: Seq[String], names: Seq[String], windowed: Boolean) extends Closing {
  override def open(): Closer = {
    val in = order.in
    val make = if (windowed) Earliest.open(in, names) else new RowMaker(UnsafeProjection.create(in, in ++ Borders.columns))
    val keyOf = Key(in, keys).open(); val ordering = order.open()
    (rows, start, end, out) => {
      val first = new JavaMap[UnsafeRow, UnsafeRow]
      for (row <- rows) {
        val before = ByKey.at(first, keyOf(row), row)
        if (ordering.lt(row, before)) first.replace(keyOf(row), row)
      }
      for (row <- first.values.asScala) out(make(row, start, end))
    }
  }
}

/** The first rows of each group. */
case class CloseTop(ranked: Ranked, groups: Seq[String]) extends Closing {
  override def open(): Closer = {
    val ranking = ranked.open(); val keyOf = Key(ranked.order.in, groups).open()
    (rows, _, _, out) => {
      val found = new JavaMap[UnsafeRow, ArrayBuffer[UnsafeRow]]
      for (row <- rows) ByKey.at(found, keyOf(row), ArrayBuffer.empty[UnsafeRow]) += row
      for (group <- found.values.asScala) ranking(group, out)
    }
  }
}

object ByKey {
  def at[V](found: JavaMap[UnsafeRow, V], key: UnsafeRow, first: => V): V = {
    val value = found.get(key)
    if (value != null) value else { val made = first; found.put(key.copy(), made); made }
  }
}
