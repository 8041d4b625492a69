package streamgauge.flink

import java.time.Duration

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.flink.api.common.typeinfo.TypeInformation
import org.apache.flink.api.common.eventtime.{SerializableTimestampAssigner, WatermarkStrategy}
import org.apache.flink.connector.base.DeliveryGuarantee
import org.apache.flink.connector.kafka.sink.{KafkaRecordSerializationSchema, KafkaSink}
import org.apache.flink.connector.kafka.source.KafkaSource
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer
import org.apache.flink.streaming.api.datastream.{DataStream, KeyedStream}
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment
import org.apache.flink.streaming.api.windowing.assigners.{EventTimeSessionWindows, SlidingEventTimeWindows, TumblingEventTimeWindows, WindowAssigner}
import org.apache.flink.streaming.api.windowing.windows.TimeWindow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeRow}

import streamgauge._

/** Rows with their columns, and row-wise operators that are not yet part of the job: neighbours become one. */
case class Relation(base: DataStream[UnsafeRow], in: Seq[Attribute], parts: Seq[Transform] = Nil) {
  def output: Seq[Attribute] = if (parts.isEmpty) in else parts.last.output

  def rows(name: String): DataStream[UnsafeRow] =
    if (parts.isEmpty) base
    else base.flatMap(new Transformed(Chain(parts))).returns(RowType).name(name).setParallelism(base.getParallelism) // in order

  def apply(part: Seq[Attribute] => Transform): Relation = copy(parts = parts :+ part(output))
}

/** Lowers a plan to Flink's own operators. Times are microseconds in Flink's milliseconds. */
final class Lowering(plan: Plan, env: StreamExecutionEnvironment) {
  private val made = mutable.Map[Int, Relation]()

  def run(): Unit = {
    for (source <- plan.sources) made(source.id) = read(source)
    for (node <- plan.nodes) {
      val relation = lower(node)
      made(node.id) = if (plan.isShared(node.id)) Relation(relation.rows(node.name), relation.output) else relation
    }
    for (sink <- plan.sinks) write(sink, made(sink.input))
  }

  private def read(source: SourcePlan): Relation = {
    val kafka = KafkaSource.builder[UnsafeRow]().setProperties(properties(plan.reading)).setTopics(source.topic)
      .setGroupId(plan.group).setStartingOffsets(OffsetsInitializer.earliest()).setDeserializer(new Decoding(source)).build()
    val time = source.output.indexWhere(_.name == Plan.TIME)
    val stamp: SerializableTimestampAssigner[UnsafeRow] = (row, _) => row.getLong(time)
    val watermarks = WatermarkStrategy.forMonotonousTimestamps[UnsafeRow]().withTimestampAssigner(stamp)
    // A task without a partition would hold all watermarks back.
    val rows = env.fromSource(kafka, watermarks, source.name, RowType).setParallelism(source.partitions.min(plan.parallelism))
    Relation(rows, source.output)
  }

  private def write(sink: SinkPlan, rows: Relation): Unit = {
    val encoder = Encoder(Expressions.rowWise(rows.output, Seq(Make(Seq("value" -> sink.value)))))
    val record = KafkaRecordSerializationSchema.builder[UnsafeRow]().setTopic(sink.topic)
      .setKeySerializationSchema(new SinkName(sink.key.getBytes("UTF-8"))).setValueSerializationSchema(new Encoding(encoder)).build()
    val kafka = KafkaSink.builder[UnsafeRow]().setKafkaProducerConfig(properties(plan.writing)).setRecordSerializer(record)
      .setDeliveryGuarantee(DeliveryGuarantee.AT_LEAST_ONCE).build()
    val last = rows.rows(sink.name)
    last.sinkTo(kafka).name(s"sink ${sink.name}").setParallelism(last.getParallelism) // rows stay in their task
  }

  private def properties(own: Map[String, String]): java.util.Properties = {
    val all = new java.util.Properties
    all.putAll((own ++ plan.client).asJava)
    all
  }

  private def lower(node: NodePlan): Relation = {
    lazy val input = made(node.inputs.head)
    node.rowWise.map(input(_)).getOrElse(node.kind match {
      case "Union" =>
        val streams = node.inputs.map(id => made(id)(Expressions.rowWise(_, Seq(Make(node.pairs)))).rows(node.name))
        Relation(streams.head.union(streams.tail: _*), Expressions.attributes(node.types))
      case "WindowAggregate" => aggregated(node, input, windows(node))
      case "SessionAggregate" => aggregated(node, input, EventTimeSessionWindows.withGap(us(node.gap_us)).asInstanceOf[Assigner])
      case "RunningAggregate" =>
        val aggregates = Expressions.aggregates(input.output, node.keys, node.pairs)
        keyed(node, input).process(new Running(aggregates, node.names), RowType).name(node.name).as(node)
      case "WindowJoin" =>
        val Seq(left, right) = node.inputs.zipWithIndex.map { case (id, side) =>
          made(id)(Expressions.rowWise(_, Seq(Keep(node.predicate))))(Expressions.withSide(_, side))
        }
        val rows = left.rows(node.name).union(right.rows(node.name))
        val key = new SidedKey(Seq(left, right).map(side => new Keyed(Key(side.output, node.keys))))
        val pairing = Pairing(left.output, right.output, node.names, windowed = true)
        rows.keyBy(key, key.kind).window(windows(node)).process(new Pairs(pairing), RowType).name(node.name).as(node)
      case "IntervalJoin" =>
        val Seq(left, right) = node.inputs.map(id => made(id)(Expressions.rowWise(_, Seq(Keep(node.predicate)))))
        val Seq(one, other) = Seq(left, right).map(keyed(node, _))
        val pairing = Pairing(left.output, right.output, node.names, windowed = false)
        one.intervalJoin(other).between(us(node.earliest_us), us(node.latest_us)).process(new IntervalPairs(pairing), RowType).name(node.name).as(node)
      case "Distinct" =>
        val order = Order(input.output, (Plan.TIME -> true) +: node.ordered)
        val rows = keyed(node, input)
        if (node.windowed) rows.window(windows(node)).reduce(new EarlierRow(order), new EarliestResult(input.output, node.names), RowType).name(node.name).as(node)
        else Relation(rows.process(new First(order, input.output.indexWhere(_.name == Plan.TIME)), RowType).name(node.name), input.output)
      case "TopN" =>
        val ordered = input(Expressions.rowWise(_, Seq(Make(node.pairs), Keep(node.predicate))))
        val ranked = Ranked(Order(ordered.output, node.ordered), node.n, node.latest, node.names)
        keyed(node, ordered).process(new TopRows(ranked), RowType).name(node.name).as(node)
    })
  }

  private type Assigner = WindowAssigner[Object, TimeWindow]

  private def us(microseconds: Long): Duration = Duration.ofMillis(microseconds)

  private def windows(node: NodePlan): Assigner = (
    if (node.range_us == node.slide_us) TumblingEventTimeWindows.of(us(node.range_us))
    else SlidingEventTimeWindows.of(us(node.range_us), us(node.slide_us))
  ).asInstanceOf[Assigner]

  private def aggregated(node: NodePlan, input: Relation, windows: Assigner): Relation = {
    val aggregates = Expressions.aggregates(input.output, node.keys, node.pairs)
    val buffers = BufferType(aggregates.bufferTypes)
    keyed(node, input).window(windows)
      .aggregate(new WindowAggregation(aggregates), new WindowResult(aggregates, node.names), buffers, buffers, RowType).name(node.name).as(node)
  }

  private def keyed(node: NodePlan, input: Relation): KeyedStream[UnsafeRow, Object] = {
    val key = new Keyed(Key(input.output, node.keys))
    input.rows(node.name).keyBy(key, key.kind)
  }

  private implicit class Named(rows: DataStream[UnsafeRow]) {
    /** A relation with the columns of a node. */
    def as(node: NodePlan): Relation = Relation(rows, Expressions.attributes(node.types))
  }
}

/** The key of a row of either side of a join. */
class SidedKey(sides: Seq[Keyed]) extends org.apache.flink.api.java.functions.KeySelector[UnsafeRow, Object] {
  override def getKey(row: UnsafeRow): Object = sides(row.getInt(row.numFields - 1)).getKey(row)
  def kind: TypeInformation[Object] = sides.head.kind
}
