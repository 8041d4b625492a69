package streamgauge

import java.io.File

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.json4s.{DefaultFormats, Formats}
import org.json4s.jackson.JsonMethods

/** What the driver wants to run; `plan.py` writes it. */
case class Plan(
    client: Map[String, String], reading: Map[String, String], writing: Map[String, String], group: String,
    parallelism: Int, scratch: String, restore: Option[String], options: Map[String, String], sources: Seq[SourcePlan],
    nodes: Seq[NodePlan], sinks: Seq[SinkPlan]) {
  private val uses = (nodes.flatMap(_.inputs) ++ sinks.map(_.input)).groupBy(identity).map { case (id, all) => id -> all.size }

  def isShared(id: Int): Boolean = uses.getOrElse(id, 0) > 1
}

/** `fields`: (column, type) of each field of a message. `opened`, `columns` (name, SQL): how SQL reads them.
  * `key`: (column, type) of the messages' key, by which they stand in partitions, if every message has one.
  */
case class SourcePlan(
    id: Int, name: String, topic: String, partitions: Int, encoding: String, fields: Seq[Seq[String]], opened: String,
    columns: Seq[Seq[String]], key: Option[Seq[String]] = None) {
  lazy val decoded: Transform = Plan.decoded(opened, columns)

  def output: Seq[Attribute] = decoded.output
}

/** A node, with the fields that its kind has. `columns`: (name, type); `made`: (name, SQL); `order`: (name, ascending). */
case class NodePlan(
    id: Int, kind: String, name: String, inputs: Seq[Int], columns: Seq[Seq[String]], keys: Seq[String] = Nil,
    made: Seq[Seq[String]] = Nil, predicate: String = "", range_us: Long = 0, slide_us: Long = 0, gap_us: Long = 0,
    earliest_us: Long = 0, latest_us: Long = 0, column: String = "", ordinal: Option[String] = None, how: String = "",
    table: Option[TablePlan] = None, order: Seq[OrderPlan] = Nil, n: Int = 0, latest: Seq[String] = Nil,
    windowed: Boolean = false) {
  def pairs: Seq[(String, String)] = made.map { case Seq(name, text) => name -> text }
  def names: Seq[String] = columns.map(_.head)
  def types: Seq[(String, String)] = columns.map { case Seq(name, kind) => name -> kind }
  def ordered: Seq[(String, Boolean)] = order.map(each => each.column -> each.ascending)

  /** The operator of a node that takes row by row. */
  def rowWise: Option[Seq[Attribute] => Transform] = kind match {
    case "Select" => Some(Expressions.rowWise(_, Seq(Make(pairs))))
    case "Where" => Some(Expressions.rowWise(_, Seq(Keep(predicate))))
    case "Explode" => Some { in =>
      val made = Expressions.rowWise(in, Seq(Make(pairs)))
      Chain(Seq(made, Exploded(made.output, column, ordinal, names)))
    }
    case "Lookup" => table.map(rows => in => LookupJoin(in, rows.decoded, rows.rows, keys, how == "inner", names))
    case _ => None
  }
}

case class OrderPlan(column: String, ascending: Boolean)

/** A static table: `rows` are JSON objects, and `columns` (name, SQL) read them from the column `event`. */
case class TablePlan(rows: Seq[String], opened: String, columns: Seq[Seq[String]]) {
  def decoded: Transform = Plan.decoded(opened, columns)
}

/** A message of a sink has the name of the sink as its key, and the row as JSON. */
case class SinkPlan(input: Int, name: String, topic: String, key: String, value: String)

object Plan {
  val TIME = "_time"
  val EVENT_TIME = "event_time"
  private implicit val formats: Formats = DefaultFormats

  /** Parses a message in the column `value` once, and makes the columns (name, SQL) of what it holds. */
  def decoded(opened: String, columns: Seq[Seq[String]]): Transform = Expressions.rowWise(
    Expressions.attributes(Seq("value" -> "binary")),
    Seq(Make(Seq("event" -> opened)), Make(columns.map { case Seq(name, text) => name -> text })))

  def read(path: String): Plan = JsonMethods.parse(new File(path)).extract[Plan]
}
