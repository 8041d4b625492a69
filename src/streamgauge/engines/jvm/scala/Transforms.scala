package streamgauge

import java.util.{HashMap => JavaMap}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.{ArrayType, IntegerType, LongType}

/** Takes a row and passes on each row that it gives. A given row is valid until the next one. */
trait Emitter { def apply(row: InternalRow, out: UnsafeRow => Unit): Unit }

/** Row by row: each row gives any number of rows. `open` compiles it, once for each thread. */
trait Transform extends Serializable {
  def output: Seq[Attribute]
  def open(): Emitter
}

/** The one row that a transform makes of each. */
final class Single(transform: Transform) {
  private val emitter = transform.open()
  private var made: UnsafeRow = _
  def apply(row: InternalRow): UnsafeRow = { emitter(row, one => made = one); made }
}

/** Several, one after the other. */
case class Chain(parts: Seq[Transform]) extends Transform {
  def output: Seq[Attribute] = parts.last.output
  override def open(): Emitter = parts.map(_.open()).reduceRight { (first, rest) => (row, out) => first(row, made => rest(made, out)) }
}

/** One row for each element of the array in column `array`, which is the last of `in`. `names`: the columns given. */
case class Exploded(in: Seq[Attribute], column: String, ordinal: Option[String], names: Seq[String]) extends Transform {
  private val element = in.last.dataType.asInstanceOf[ArrayType].elementType
  private val added = Seq(AttributeReference("_ordinal", LongType)(), AttributeReference("_element", element)())
  private val fields = names.map {
    case `column` => Alias(added(1), column)()
    case name if ordinal.contains(name) => Alias(added(0), name)()
    case name => in.find(_.name == name).get
  }
  val output: Seq[Attribute] = fields.map(_.toAttribute)

  override def open(): Emitter = {
    val project = UnsafeProjection.create(fields, in ++ added)
    val joined = new JoinedRow; val more = new GenericInternalRow(2); val last = in.size - 1
    (row, out) => if (!row.isNullAt(last)) {
      val array: ArrayData = row.getArray(last)
      var n = 0
      while (n < array.numElements()) {
        more.update(0, n.toLong); more.update(1, if (array.isNullAt(n)) null else array.get(n, element))
        out(project(joined(row, more)))
        n += 1
      }
    }
  }
}

/** Adds the columns of the one row of a table that has the same keys. */
case class LookupJoin(
    in: Seq[Attribute], table: Transform, rows: Seq[String], keys: Seq[String], inner: Boolean, names: Seq[String]) extends Transform {
  private val fields = names.map(name => in.find(_.name == name).getOrElse(table.output.find(_.name == name).get))
  val output: Seq[Attribute] = fields

  override def open(): Emitter = {
    val (byRow, byTable) = (keyOf(in), keyOf(table.output))
    val decode = table.open(); val found = new JavaMap[UnsafeRow, UnsafeRow]
    for (text <- rows) decode(InternalRow(text.getBytes("UTF-8")), row => {
      val key = byTable(row).copy()
      if (!key.anyNull) found.put(key, row.copy())
    })
    val project = UnsafeProjection.create(fields, in ++ table.output)
    val joined = new JoinedRow; val nothing = new GenericInternalRow(table.output.size)
    (row, out) => {
      val added = found.get(byRow(row))
      if (added != null) out(project(joined(row, added))) else if (!inner) out(project(joined(row, nothing)))
    }
  }

  private def keyOf(columns: Seq[Attribute]): UnsafeProjection =
    UnsafeProjection.create(keys.map(key => columns.find(_.name == key).get), columns)
}

/** Orders rows by columns; nulls first, or last if descending. */
case class Order(in: Seq[Attribute], by: Seq[(String, Boolean)]) {
  def open(): Ordering[InternalRow] = {
    val sorts = by.map { case (name, ascending) => SortOrder(in.find(_.name == name).get, if (ascending) Ascending else Descending) }
    RowOrdering.create(sorts, in)
  }
}

/** The first `n` rows in an order, with their rank from 1; each gets the greatest values of all rows in `latest`. */
case class Ranked(order: Order, n: Int, latest: Seq[String], names: Seq[String]) {
  private val in = order.in
  val time: Int = in.indexWhere(_.name == Plan.TIME)

  def open(): Ranking = {
    val rank = AttributeReference("rank", IntegerType)()
    val greatest = latest.map(name => AttributeReference(name, LongType)())
    val fields = names.map {
      case "rank" => rank
      case name => greatest.find(_.name == name).orElse(in.find(_.name == name)).get
    }
    val places = latest.map(name => in.indexWhere(_.name == name)).toArray
    new Ranking(order.open(), n, places, UnsafeProjection.create(fields, in ++ (rank +: greatest)))
  }
}

final class Ranking(ordering: Ordering[InternalRow], n: Int, latest: Array[Int], project: UnsafeProjection) {
  private val joined = new JoinedRow; private val more = new GenericInternalRow(1 + latest.length)

  def apply(rows: Iterable[UnsafeRow], out: UnsafeRow => Unit): Unit = {
    val all = rows.toArray
    for (n <- latest.indices) {
      val values = all.filterNot(_.isNullAt(latest(n))).map(_.getLong(latest(n)))
      more.update(1 + n, if (values.isEmpty) null else values.max)
    }
    for ((row, rank) <- all.sorted[InternalRow](ordering).take(n).zipWithIndex) {
      more.update(0, rank + 1)
      out(project(joined(row, more)))
    }
  }
}
