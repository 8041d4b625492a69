package streamgauge.storm

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.ConsumerConfig
import org.apache.kafka.common.serialization.{ByteArrayDeserializer, ByteArraySerializer}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.storm.kafka.spout.{FirstPollOffsetStrategy, KafkaSpoutConfig}
import org.apache.storm.topology.{BoltDeclarer, TopologyBuilder}
import org.apache.storm.topology.base.BaseWindowedBolt.Duration

import streamgauge._

/** Rows that components give, and row-wise operators that are not yet part of the job: neighbours become one. */
case class Relation(from: Seq[String], tasks: Int, in: Seq[Attribute], parts: Seq[Transform] = Nil) {
  def output: Seq[Attribute] = if (parts.isEmpty) in else parts.last.output

  def apply(part: Seq[Attribute] => Transform): Relation = copy(parts = parts :+ part(output))
}

/** Lowers a plan to spouts and bolts. Storm moves, groups and acknowledges tuples; each has one row. Bolts of ours keep
  * state in the heap, and close windows by watermarks, which spouts send on a stream of their own.
  */
final class Lowering(plan: Plan, builder: TopologyBuilder) {
  private val made = mutable.Map[Int, Relation]()
  private var bolts = 0

  def run(): Unit = {
    for (source <- plan.sources) made(source.id) = read(source)
    for (node <- plan.nodes) {
      val relation = lower(node)
      made(node.id) = if (plan.isShared(node.id)) rows(relation) else relation
    }
    for (sink <- plan.sinks) write(sink, rows(made(sink.input)))
    Tasks.expect(tasks)
  }

  private var tasks = 0

  private def read(source: SourcePlan): Relation = {
    val decoding = new Decoding(source)
    val config = new KafkaSpoutConfig.Builder[Array[Byte], Array[Byte]](plan.client("bootstrap.servers"), source.topic)
      .setGroupId(plan.group).setFirstPollOffsetStrategy(FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST)
      .setOffsetCommitPeriodMs(plan.options(Settings.COMMIT).toLong).setRecordTranslator(decoding)
      .setProp(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, classOf[ByteArrayDeserializer])
      .setProp(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, classOf[ByteArrayDeserializer])
    for ((name, value) <- plan.reading ++ plan.client) config.setProp(name, value)
    val name = s"read-${source.id}"; val number = spouts(source)
    builder.setSpout(name, new Source(config.build(), decoding, source.partitions, plan.options(Settings.WATERMARKS).toLong), number)
      .setMaxSpoutPending(Integer.valueOf((plan.options(Settings.PENDING).toInt / plan.sources.map(spouts).sum).max(1)))
    tasks += number
    Relation(Seq(name), number, source.output)
  }

  private def spouts(source: SourcePlan): Int = source.partitions.min(plan.parallelism)

  private def write(sink: SinkPlan, relation: Relation): Unit = {
    val encoder = Encoder(Expressions.rowWise(relation.output, Seq(Make(Seq("value" -> sink.value)))))
    val properties = new java.util.Properties
    properties.putAll((plan.writing ++ plan.client).asJava)
    for (name <- Seq("key.serializer", "value.serializer")) properties.put(name, classOf[ByteArraySerializer].getName)
    val bolt = builder.setBolt(s"write-${sink.name}", new Sink(encoder, sink, properties), relation.tasks)
    relation.from.foreach(bolt.customGrouping(_, new OneToOne))
    tasks += relation.tasks
  }

  /** The relation without pending operators. */
  private def rows(relation: Relation): Relation =
    if (relation.parts.isEmpty) relation
    else bolt("rows", Seq(relation.copy(parts = Nil)), Nil, relation.tasks, relation.output)(ours(new RowWiseOperator(Chain(relation.parts)), relation.tasks))

  private def keyed(node: NodePlan, inputs: Seq[Relation], operator: Operator): Relation =
    keyed(node, inputs, plan.parallelism, watermarks = true)(ours(operator, plan.parallelism))

  private def keyed(node: NodePlan, inputs: Seq[Relation], number: Int, watermarks: Boolean)(add: String => BoltDeclarer): Relation = {
    val keys = inputs.map(input => Key(input.output, node.keys))
    bolt(node.kind, inputs.map(rows), keys, number, Expressions.attributes(node.types), watermarks)(add)
  }

  /** An operator over windows: a bolt of ours, or Storm's own windowed bolt around what a window gives when it closes. */
  private def windowed(node: NodePlan, inputs: Seq[Relation], own: => Operator, closing: => Closing): Relation =
    if (plan.options(Settings.WINDOWS) != "storm") keyed(node, inputs, own)
    else {
      // Storm does not call a task whose window has no rows, which then holds back the watermark of what follows.
      val number = if (isFollowed(node.id)) 1 else plan.parallelism
      keyed(node, inputs, number, watermarks = false)(builder.setBolt(_, storms(node, inputs, closing), number))
    }

  /** Whether operators by key have rows of this node. */
  private def isFollowed(id: Int): Boolean = plan.nodes.exists { each =>
    each.inputs.contains(id) && (each.rowWise.isEmpty && each.kind != "Union" || isFollowed(each.id))
  }

  /** Whether tuples come to a node from several tasks, of which one may be behind the others; the plugin says the same. */
  private def isApart(node: NodePlan): Boolean =
    plan.sources.exists(_.partitions > 1) || node.inputs.size > 1 ||
      plan.nodes.find(_.id == node.inputs.head).exists(before => before.rowWise.isEmpty || isApart(before))

  private def storms(node: NodePlan, inputs: Seq[Relation], closing: Closing): StormWindows = {
    val skew = if (isApart(node)) plan.options(Settings.SKEW).toLong else 0
    val bolt = new StormWindows(closing, node.range_us)
    bolt.withWindow(us(node.range_us), us(node.slide_us))
      .withTimestampExtractor(new StormTime(inputs.map(each => Rows.time(each.output)))).withLag(us(1 + skew))
      .withWatermarkInterval(Duration.of(plan.options(Settings.WATERMARKS).toInt))
    bolt
  }

  /** Storm has at most 2^31 milliseconds, which are microseconds here. */
  private def us(microseconds: Long): Duration = Duration.of(Math.toIntExact(microseconds))

  private def ours(operator: Operator, number: Int)(name: String): BoltDeclarer = builder.setBolt(name, new OperatorBolt(operator), number)

  /** `keys`: of each input; none keeps rows where they are. */
  private def bolt(
      kind: String, inputs: Seq[Relation], keys: Seq[Key], number: Int, output: Seq[Attribute], watermarks: Boolean = true)(
      add: String => BoltDeclarer): Relation = {
    bolts += 1
    val name = s"$kind-$bolts"
    val bolt = add(name)
    for ((input, n) <- inputs.zipWithIndex; from <- input.from) {
      bolt.customGrouping(from, if (keys.isEmpty) new OneToOne else new KeyGrouping(keys(n)))
      if (watermarks) bolt.allGrouping(from, Watermark.STREAM)
    }
    tasks += number
    Relation(Seq(name), number, output)
  }

  private def lower(node: NodePlan): Relation = {
    lazy val input = made(node.inputs.head)
    lazy val aggregates = Expressions.aggregates(input.output, node.keys, node.pairs)
    lazy val sides = node.inputs.zipWithIndex.map { case (id, side) =>
      made(id)(Expressions.rowWise(_, Seq(Keep(node.predicate))))(Expressions.withSide(_, side))
    }
    lazy val keyOf = Key(input.output, node.keys)
    node.rowWise.map(input(_)).getOrElse(node.kind match {
      case "Union" =>
        val streams = node.inputs.map(id => rows(made(id)(Expressions.rowWise(_, Seq(Make(node.pairs))))))
        Relation(streams.flatMap(_.from), streams.map(_.tasks).max, Expressions.attributes(node.types))
      case "WindowAggregate" =>
        val own = WindowedAggregate(aggregates, keyOf, node.names, node.range_us, node.slide_us)
        windowed(node, Seq(input), own, CloseAggregates(aggregates, keyOf, node.names))
      case "SessionAggregate" => keyed(node, Seq(input), SessionAggregate(aggregates, keyOf, node.names, node.gap_us))
      case "RunningAggregate" => keyed(node, Seq(input), RunningAggregate(aggregates, keyOf, node.names))
      case "IntervalJoin" =>
        val pairing = Pairing(sides.head.output, sides.last.output, node.names, windowed = false)
        keyed(node, sides, IntervalJoin(pairing, sides.map(each => Key(each.output, node.keys)), node.earliest_us, node.latest_us))
      case "WindowJoin" =>
        val pairing = Pairing(sides.head.output, sides.last.output, node.names, windowed = true)
        val pairs = ClosePairs(pairing, sides.map(_.output), node.keys)
        windowed(node, sides, WindowsOperator(pairs, sides.map(_.output), node.range_us, node.slide_us), pairs)
      case "Distinct" =>
        val order = Order(input.output, (Plan.TIME -> true) +: node.ordered)
        if (node.windowed) {
          val earliest = CloseEarliest(order, node.keys, node.names, windowed = true)
          windowed(node, Seq(input), WindowsOperator(earliest, Seq(input.output), node.range_us, node.slide_us), earliest)
        } else {
          val first = CloseEarliest(order, node.keys, input.output.map(_.name), windowed = false)
          keyed(node, Seq(input), WindowsOperator(first, Seq(input.output), 1, 1, Some(keyOf))).copy(in = input.output)
        }
      case "TopN" =>
        val ordered = input(Expressions.rowWise(_, Seq(Make(node.pairs), Keep(node.predicate))))
        val ranked = Ranked(Order(ordered.output, node.ordered), node.n, node.latest, node.names)
        keyed(node, Seq(ordered), WindowsOperator(CloseTop(ranked, node.keys), Seq(ordered.output), 1, 1))
    })
  }
}

/** Settings of ours among those of Storm. */
object Settings {
  val COMMIT = "streamgauge.commit.ms"; val WATERMARKS = "streamgauge.watermark.ms"; val WINDOWS = "streamgauge.windows"
  val PENDING = "streamgauge.pending"; val SKEW = "streamgauge.skew.us"
}
