package streamgauge.storm

import java.util.{HashMap => JavaMap, HashSet => JavaSet, PriorityQueue, TreeMap}

import scala.collection.mutable.ArrayBuffer
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._

import streamgauge._

/** Windows whose buffers are open at once, each with its keys. */
case class WindowedAggregate(aggregates: Aggregates, key: Key, names: Seq[String], range: Long, slide: Long) extends Operator {
  override def open(): OperatorTask = new OperatorTask {
    private val folding = aggregates.open(); private val keyOf = key.open()
    private val make = aggregates.result(windowed = true, names); private val time = Rows.time(aggregates.in)
    private val windows = new TreeMap[Long, JavaMap[UnsafeRow, InternalRow]]
    private var closed = Long.MinValue

    override def add(row: UnsafeRow, out: UnsafeRow => Unit): Unit = {
      val at = row.getLong(time); val of = keyOf(row)
      var start = Math.floorDiv(at, slide) * slide
      while (start > at - range) {
        if (start + range > closed)
          folding.add(ByKey.at(windows.computeIfAbsent(start + range, _ => new JavaMap[UnsafeRow, InternalRow]), of, folding.fresh()), row)
        start -= slide
      }
    }

    override def advance(until: Long, out: UnsafeRow => Unit): Unit = {
      closed = until
      while (!windows.isEmpty && windows.firstKey <= until) {
        val end = windows.firstKey
        windows.remove(end).forEach((of, buffer) => out(make(of, buffer, end - range, end)))
      }
    }
  }
}

case class SessionAggregate(aggregates: Aggregates, key: Key, names: Seq[String], gap: Long) extends Operator {
  /** A session is open at its end, for a row at that time, and its result is of the microsecond before. */
  override val behind: Long = 1

  override def open(): OperatorTask = new OperatorTask {
    private final class Session(val of: UnsafeRow, var start: Long, var last: Long, var buffer: InternalRow)
    private val folding = aggregates.open(); private val keyOf = key.open()
    private val make = aggregates.result(windowed = true, names); private val time = Rows.time(aggregates.in)
    private val sessions = new JavaMap[UnsafeRow, ArrayBuffer[Session]]
    private val due = new PriorityQueue[(Long, Session)](Ordering.by((each: (Long, Session)) => each._1))

    override def add(row: UnsafeRow, out: UnsafeRow => Unit): Unit = {
      val at = row.getLong(time); val of = keyOf(row)
      val open = ByKey.at(sessions, of, ArrayBuffer.empty[Session])
      val near = open.filter(each => each.last + gap >= at && each.start - gap <= at)
      val session = near.headOption.getOrElse { val made = new Session(of.copy(), at, at, folding.fresh()); open += made; made }
      for (other <- near.drop(1)) {
        folding.merge(session.buffer, other.buffer)
        session.start = session.start.min(other.start); session.last = session.last.max(other.last)
        open -= other; other.buffer = null
      }
      session.start = session.start.min(at); session.last = session.last.max(at)
      folding.add(session.buffer, row)
      if (near.isEmpty) due.add((at + gap, session))
    }

    override def advance(until: Long, out: UnsafeRow => Unit): Unit = while (!due.isEmpty && due.peek._1 < until) {
      val (_, session) = due.poll()
      val end = session.last + gap
      if (session.buffer != null && end >= until) due.add((end, session)) // it has grown
      else if (session.buffer != null) {
        out(make(session.of, session.buffer, session.start, end))
        val open = sessions.get(session.of)
        open -= session
        if (open.isEmpty) sessions.remove(session.of)
      }
    }
  }
}

/** Every row gives the current value of its key. */
case class RunningAggregate(aggregates: Aggregates, key: Key, names: Seq[String]) extends Operator {
  override def open(): OperatorTask = new OperatorTask {
    private val folding = aggregates.open(); private val keyOf = key.open()
    private val make = aggregates.result(windowed = false, names)
    private val buffers = new JavaMap[UnsafeRow, InternalRow]

    override def add(row: UnsafeRow, out: UnsafeRow => Unit): Unit = {
      val of = keyOf(row)
      val buffer = ByKey.at(buffers, of, folding.fresh())
      folding.add(buffer, row)
      out(make(of, buffer))
    }
    override def advance(until: Long, out: UnsafeRow => Unit): Unit = ()
  }
}

/** Rows of both sides whose times are `earliest` to `latest` apart, the right's from the left's. */
case class IntervalJoin(pairing: Pairing, keys: Seq[Key], earliest: Long, latest: Long) extends Operator {
  override def open(): OperatorTask = new OperatorTask {
    private type Side = TreeMap[Long, ArrayBuffer[UnsafeRow]]
    private final class Both(val of: UnsafeRow) { val sides: Seq[Side] = Seq(new Side, new Side) }
    private val make = pairing.open(); private val keyOf = keys.map(_.open())
    private val time = keys.map(each => Rows.time(each.in))
    private val kept = new JavaMap[UnsafeRow, Both]
    private val expiring = new PriorityQueue[(Long, Both, Int, Long)](Ordering.by((each: (Long, Both, Int, Long)) => each._1))

    override def add(row: UnsafeRow, out: UnsafeRow => Unit): Unit = {
      val side = row.getInt(row.numFields - 1); val at = row.getLong(time(side)); val of = keyOf(side)(row)
      val both = ByKey.at(kept, of, new Both(of.copy()))
      val own = both.sides(side)
      var rows = own.get(at)
      if (rows == null) {
        rows = ArrayBuffer(); own.put(at, rows)
        expiring.add((at + (if (side == 0) latest else -earliest), both, side, at))
      }
      rows += row
      val (from, to) = if (side == 0) (at + earliest, at + latest) else (at - latest, at - earliest)
      for (others <- both.sides(1 - side).subMap(from, true, to, true).values.asScala; other <- others)
        out(if (side == 0) make(row, other) else make(other, row))
    }

    override def advance(until: Long, out: UnsafeRow => Unit): Unit = while (!expiring.isEmpty && expiring.peek._1 < until) {
      val (_, both, side, at) = expiring.poll()
      both.sides(side).remove(at)
      if (both.sides.forall(_.isEmpty)) kept.remove(both.of)
    }
  }
}

/** Windows whose rows wait in the heap. `once`: the key of which only the first row is given, ever. */
case class WindowsOperator(closing: Closing, sides: Seq[Seq[Attribute]], range: Long, slide: Long, once: Option[Key] = None) extends Operator {
  override def open(): OperatorTask = new OperatorTask {
    private val windows = new Windows(range, slide, new HeapRows, closing.open())
    private val time = sides.map(Rows.time); private val known = new JavaSet[UnsafeRow]
    private val keyOf = once.map(_.open()).orNull

    override def add(row: UnsafeRow, out: UnsafeRow => Unit): Unit = {
      if (keyOf == null || !known.contains(keyOf(row))) {
        val side = if (time.size == 1) 0 else row.getInt(row.numFields - 1)
        windows.add(row.getLong(time(side)), row)
      }
    }

    override def advance(until: Long, out: UnsafeRow => Unit): Unit =
      windows.advance(until, row => if (keyOf == null || known.add(keyOf(row).copy())) out(row))
  }
}
