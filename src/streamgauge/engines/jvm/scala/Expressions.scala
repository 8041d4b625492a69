package streamgauge

import org.apache.spark.sql.catalyst.{InternalRow, QueryPlanningTracker}
import org.apache.spark.sql.catalyst.analysis.{SimpleAnalyzer, UnresolvedAttribute}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, DeclarativeAggregate}
import org.apache.spark.sql.catalyst.optimizer.{NormalizeNaNAndZero, Optimizer}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.planning.{PhysicalAggregation, PhysicalOperation}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, LeafNode, LocalRelation, LogicalPlan, Project}
import org.apache.spark.sql.types.{DataType, DoubleType, IntegerType}

/** Stands for rows of a known shape. An empty LocalRelation would be folded away. */
case class RowsOf(output: Seq[Attribute]) extends LeafNode

/** Spark's optimizer without a catalog: it replaces functions by what they are made of, folds and fuses. */
object Optimize extends Optimizer(SimpleAnalyzer.catalogManager)

/** One step of a fused chain, as SQL text. */
sealed trait Step
case class Keep(predicate: String) extends Step
case class Make(columns: Seq[(String, String)]) extends Step

/** Compiles SQL text over rows. What it gives is serializable, and compiled to bytecode where it is used. */
object Expressions {
  def attributes(types: Seq[(String, String)]): Seq[Attribute] =
    types.map { case (name, kind) => AttributeReference(name, CatalystSqlParser.parseDataType(kind))() }

  /** One operator of all steps, or as few as possible. */
  def rowWise(in: Seq[Attribute], steps: Seq[Step]): Transform = {
    val plan = steps.foldLeft(RowsOf(in): LogicalPlan) {
      case (below, Keep(predicate)) => Filter(CatalystSqlParser.parseExpression(predicate), below)
      case (below, Make(columns)) => Project(columns.map { case (name, text) => named(name, text) }, below)
    }
    operators(prepared(plan)) match {
      case Nil => RowWise(in, None, in)
      case Seq(one) => one
      case several => Chain(several)
    }
  }

  /** Adds the side of a join as the last column, so that rows of both sides can travel together. */
  def withSide(in: Seq[Attribute], side: Int): Transform =
    rowWise(in, Seq(Make(in.map(each => each.name -> s"`${each.name}`") :+ ("_side" -> side.toString))))

  /** What an expression computes and another one reads several times is an operator before it. */
  private def operators(plan: LogicalPlan): Seq[Transform] = plan match {
    case _: RowsOf => Nil
    case none: LocalRelation => Seq(NoRows(none.output)) // a condition that never holds
    case PhysicalOperation(fields, filters, rows: RowsOf) => Seq(RowWise(rows.output, filters.reduceOption(And), fields))
    case Project(fields, child) => operators(child) :+ RowWise(child.output, None, fields)
    case Filter(condition, child) => operators(child) :+ RowWise(child.output, Some(condition), child.output)
  }

  def aggregates(in: Seq[Attribute], keys: Seq[String], values: Seq[(String, String)]): Aggregates = {
    val grouping = keys.map(key => UnresolvedAttribute.quoted(key))
    val columns = keys.map(key => Alias(UnresolvedAttribute.quoted(key), key)()) ++ values.map { case (name, text) => named(name, text) }
    prepared(Aggregate(grouping, columns, RowsOf(in))) match {
      case PhysicalAggregation(groups, aggregated, results, child) =>
        // The optimizer drops unused columns in between. Rows come whole, so `in` is what everything is bound to.
        assert(child.collect { case p: Project => p.projectList }.flatten.forall(_.isInstanceOf[Attribute]), child)
        Aggregates(in, groups, aggregated.map(_.asInstanceOf[AggregateExpression]), results)
    }
  }

  private def named(name: String, text: String): NamedExpression =
    Alias(CatalystSqlParser.parseExpression(text), name)()

  private def prepared(plan: LogicalPlan): LogicalPlan =
    Optimize.execute(SimpleAnalyzer.executeAndCheck(plan, new QueryPlanningTracker))
}

/** Columns by which rows are put together: all NaN are one key, and both zeros. */
case class Key(in: Seq[Attribute], names: Seq[String]) {
  /** Where the only column of a key stands, if it is an int; else -1. */
  def int: Int = if (names.size == 1) in.indexWhere(each => each.name == names.head && each.dataType == IntegerType) else -1

  def open(): UnsafeProjection = UnsafeProjection.create(
    names.map(name => in.find(_.name == name).get)
      .map(each => if (each.dataType == DoubleType) NormalizeNaNAndZero(each) else each), in)
}

/** Filters and makes columns, row by row. */
case class RowWise(in: Seq[Attribute], filter: Option[Expression], fields: Seq[NamedExpression]) extends Transform {
  val output: Seq[Attribute] = fields.map(_.toAttribute)

  override def open(): Emitter = {
    val project = UnsafeProjection.create(fields, in)
    filter.map(Predicate.create(_, in)) match {
      case None => (row, out) => out(project(row))
      case Some(keeps) => (row, out) => if (keeps.eval(row)) out(project(row))
    }
  }
}

/** Gives no row. */
case class NoRows(output: Seq[Attribute]) extends Transform {
  override def open(): Emitter = (_, _) => ()
}

/** Aggregates by key: a buffer for each key, which rows are added to and other buffers merged into. */
case class Aggregates(
    in: Seq[Attribute], groups: Seq[NamedExpression], expressions: Seq[AggregateExpression], results: Seq[NamedExpression]) {
  private val functions = expressions.map(_.aggregateFunction.asInstanceOf[DeclarativeAggregate])
  private val buffer: Seq[AttributeReference] = functions.flatMap(_.aggBufferAttributes)

  def keys: Seq[Attribute] = groups.map(_.toAttribute)

  def bufferTypes: Seq[DataType] = buffer.map(_.dataType)

  /** Gives `names` of (key, buffer), and of the borders of a window if it has one. */
  def result(windowed: Boolean, names: Seq[String]): RowMaker = {
    val more = if (windowed) Borders.columns else Nil
    val values = expressions.map(_.resultAttribute.exprId).zip(functions.map(_.evaluateExpression)).toMap
    val made = results.map { each =>
      each.name -> each.transform { case a: AttributeReference if values.contains(a.exprId) => values(a.exprId) }
    }.toMap[String, Expression] ++ more.map(each => each.name -> each)
    new RowMaker(UnsafeProjection.create(names.map(made), keys ++ buffer ++ more))
  }

  def open(): Folding = new Folding(
    functions.flatMap(_.initialValues), MutableProjection.create(functions.flatMap(_.updateExpressions), buffer ++ in),
    MutableProjection.create(
      functions.flatMap(_.mergeExpressions), buffer ++ functions.flatMap(_.inputAggBufferAttributes)),
    Buffers(bufferTypes))
}

/** Adds to buffers in place. Not for several threads. */
final class Folding(initial: Seq[Expression], update: MutableProjection, merging: MutableProjection, buffers: Buffers) {
  private val joined = new JoinedRow
  private val start = buffers.fresh(initial)

  def fresh(): InternalRow = start.copy()

  def add(buffer: InternalRow, row: InternalRow): Unit = update.target(buffer)(joined(buffer, row))

  def merge(buffer: InternalRow, other: InternalRow): Unit = merging.target(buffer)(joined(buffer, other))
}

/** Rows whose columns can be set: with fixed width as bytes, else as objects, since texts in bytes cannot grow. */
case class Buffers(types: Seq[DataType]) {
  private val fixed = types.forall(UnsafeRow.isMutable)

  def fresh(values: Seq[Expression]): InternalRow =
    if (fixed) UnsafeProjection.create(values, Nil)(InternalRow.empty).copy()
    else new GenericInternalRow(values.map(_.eval()).toArray[Any])

  /** A row from bytes, as one that can be set. */
  def settable(row: UnsafeRow): InternalRow =
    if (fixed) row else new GenericInternalRow(types.indices.map(n => row.get(n, types(n))).toArray[Any])
}
