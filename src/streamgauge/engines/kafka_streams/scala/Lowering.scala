package streamgauge.kafka_streams

import java.time.Duration

import scala.collection.mutable

import org.apache.kafka.clients.consumer.ConsumerRecord
import org.apache.kafka.common.serialization.Serdes
import org.apache.kafka.common.utils.Bytes
import org.apache.kafka.streams.StreamsBuilder
import org.apache.kafka.streams.kstream._
import org.apache.kafka.streams.processor.TimestampExtractor
import org.apache.kafka.streams.state.{KeyValueStore, SessionStore, StoreBuilder, Stores, WindowStore}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeRow}

import streamgauge._

/** Rows with their columns, and row-wise operators that are not yet part of the job: neighbours become one.
  * `key`: the columns that are the key of its records and decide their partition, as messages of the input have it.
  */
case class Relation(
    base: KStream[UnsafeRow, UnsafeRow], in: Seq[Attribute], parts: Seq[Transform] = Nil, key: Seq[String] = Nil) {
  def output: Seq[Attribute] = if (parts.isEmpty) in else parts.last.output

  def rows: KStream[UnsafeRow, UnsafeRow] =
    if (parts.isEmpty) base else base.processValues[UnsafeRow](() => new Transformed(Chain(parts)))

  def apply(part: Seq[Attribute] => Transform): Relation = copy(parts = parts :+ part(output))

  /** After a row-wise node, which may rename the key or leave it out. */
  def through(node: NodePlan, part: Seq[Attribute] => Transform): Relation = apply(part).copy(key = key.flatMap { each =>
    if (node.kind == "Select") node.pairs.collectFirst { case (name, text) if text.replace("`", "") == each => name }
    else node.names.find(_ == each)
  })

  def isBy(keys: Seq[String]): Boolean = key.nonEmpty && key == keys
}

/** Lowers a plan to the DSL of Kafka Streams, and to processors where it has no operator. Times are microseconds in its
  * milliseconds. Each change of the key writes rows to a topic and reads them again; the key of the messages is kept.
  */
final class Lowering(plan: Plan, builder: StreamsBuilder) {
  private val made = mutable.Map[Int, Relation]()
  private val delay = us(plan.options(Settings.DELAY).toLong)
  private val inMemory = plan.options(Settings.STORE) == "memory"
  private val logged = plan.options(Settings.CHANGELOG).toBoolean
  /** Event time that may pass between two looks for closed windows, when a job catches up. */
  private val UNSEEN_US = 20000000L

  def run(): Unit = {
    for (source <- plan.sources) made(source.id) = read(source)
    for (node <- plan.nodes) {
      val relation = lower(node)
      made(node.id) = if (plan.isShared(node.id)) Relation(relation.rows, relation.output, key = relation.key) else relation
    }
    for (sink <- plan.sinks) write(sink, made(sink.input))
  }

  private def read(source: SourcePlan): Relation = {
    val time = source.output.indexWhere(_.name == Plan.TIME)
    val stamp: TimestampExtractor = (record: ConsumerRecord[Object, Object], _: Long) => record.value.asInstanceOf[UnsafeRow].getLong(time)
    val keys = source.key.fold(RowSerde.nothing) { case Seq(name, kind) => RowSerde.messageKeys(name, kind) }
    val consumed = Consumed.`with`(keys, RowSerde.events(source)).withTimestampExtractor(stamp).withName(s"read-${source.id}")
    Relation(builder.stream(source.topic, consumed), source.output, key = source.key.map(_.head).toSeq)
  }

  private def write(sink: SinkPlan, rows: Relation): Unit = {
    val encoder = Encoder(Expressions.rowWise(rows.output, Seq(Make(Seq("value" -> sink.value)))))
    rows.rows.process[Array[Byte], Array[Byte]](() => new Encoding(encoder, sink.key.getBytes("UTF-8")))
      .to(sink.topic, Produced.`with`(Serdes.ByteArray, Serdes.ByteArray))
  }

  private def lower(node: NodePlan): Relation = {
    lazy val input = made(node.inputs.head)
    lazy val columns = Expressions.attributes(node.types)
    lazy val aggregates = Expressions.aggregates(input.output, node.keys, node.pairs)
    lazy val grouped = keyed(Seq(input), node.keys).head.groupByKey(Grouped.`with`(name(node), RowSerde.rows, RowSerde.rows))
    node.rowWise.map(input.through(node, _)).getOrElse(node.kind match {
      case "Union" =>
        val streams = node.inputs.map(id => made(id)(Expressions.rowWise(_, Seq(Make(node.pairs)))).rows)
        Relation(streams.reduce((one, other) => one.merge(other)), columns)
      case "WindowAggregate" =>
        val windows = TimeWindows.ofSizeAndGrace(us(node.range_us), delay).advanceBy(us(node.slide_us))
        val table = grouped.windowedBy(windows).emitStrategy(EmitStrategy.onWindowClose()).aggregate[InternalRow](
          new EmptyBuffer(aggregates), new AddRow(aggregates), kept[WindowStore[Bytes, Array[Byte]]](node, aggregates, 3 * node.range_us + UNSEEN_US))
        Relation(table.toStream.process[UnsafeRow, UnsafeRow](() => new WindowResult(aggregates, node.names, 0)), columns)
      case "SessionAggregate" =>
        val windows = SessionWindows.ofInactivityGapAndGrace(us(node.gap_us), delay)
        val table = grouped.windowedBy(windows).emitStrategy(EmitStrategy.onWindowClose()).aggregate[InternalRow](
          new EmptyBuffer(aggregates), new AddRow(aggregates), new MergeBuffers(aggregates),
          kept[SessionStore[Bytes, Array[Byte]]](node, aggregates, 3 * node.gap_us + UNSEEN_US))
        Relation(table.toStream.process[UnsafeRow, UnsafeRow](() => new WindowResult(aggregates, node.names, node.gap_us)), columns)
      case "RunningAggregate" =>
        val table = grouped.aggregate[InternalRow](
          new EmptyBuffer(aggregates), new AddRow(aggregates), kept[KeyValueStore[Bytes, Array[Byte]]](node, aggregates, 0))
        Relation(table.toStream.process[UnsafeRow, UnsafeRow](() => new RunningResult(aggregates, node.names)), columns)
      case "IntervalJoin" =>
        // A store drops a row that is as old as size and grace together. Grace makes up for bounds that exclude 0.
        val Seq(left, right) = node.inputs.map(id => made(id)(Expressions.rowWise(_, Seq(Keep(node.predicate)))))
        val grace = delay.plus(us(1 + Seq(0, node.earliest_us, -node.latest_us).max))
        val equal = JoinWindows.ofTimeDifferenceAndGrace(us(0), grace); val (before, after) = (us(-node.earliest_us), us(node.latest_us))
        val windows = if (node.latest_us < 0) equal.before(before).after(after) else equal.after(after).before(before)
        val joined = StreamJoined.`with`(RowSerde.rows, RowSerde.rows, RowSerde.rows).withName(name(node)).withStoreName(name(node))
        val pairing = Pairing(left.output, right.output, node.names, windowed = false)
        val settings = if (logged) joined else joined.withLoggingDisabled()
        val Seq(one, other) = keyed(Seq(left, right), node.keys)
        Relation(one.join[UnsafeRow, UnsafeRow](other, new JoinRows(pairing), windows, settings), columns)
      case "WindowJoin" =>
        val sides = node.inputs.zipWithIndex.map { case (id, side) =>
          made(id)(Expressions.rowWise(_, Seq(Keep(node.predicate))))(Expressions.withSide(_, side))
        }
        val pairing = Pairing(sides.head.output, sides.last.output, node.names, windowed = true)
        closing(node, sides, ClosePairs(pairing, sides.map(_.output), node.keys), node.range_us, node.slide_us)
      case "Distinct" =>
        val order = Order(input.output, (Plan.TIME -> true) +: node.ordered)
        if (node.windowed) closing(node, Seq(input), CloseEarliest(order, node.keys, node.names, windowed = true), node.range_us, node.slide_us)
        else {
          val names = input.output.map(_.name)
          val first = closing(node, Seq(input), CloseEarliest(order, node.keys, names, windowed = false), 1, 1, Some(Key(input.output, node.keys)))
          first.copy(in = input.output)
        }
      case "TopN" =>
        val ordered = input(Expressions.rowWise(_, Seq(Make(node.pairs), Keep(node.predicate))))
        val ranked = Ranked(Order(ordered.output, node.ordered), node.n, node.latest, node.names)
        closing(node, Seq(ordered), CloseTop(ranked, node.keys), 1, 1, partitions = Some(1)) // a window is closed by the next
    })
  }

  private def us(microseconds: Long): Duration = Duration.ofMillis(microseconds)

  private def name(node: NodePlan): String = s"${node.kind}-${node.id}"

  /** Rows by these keys. Sides of a join are alike: the partition of a message is not that of a row with the same key. */
  private def keyed(inputs: Seq[Relation], keys: Seq[String]): Seq[KStream[UnsafeRow, UnsafeRow]] =
    if (inputs.forall(_.isBy(keys))) inputs.map(_.rows)
    else inputs.map(input => input.rows.process[UnsafeRow, UnsafeRow](() => new Keyed(Key(input.output, keys))))

  /** State of the DSL's own. Windows that are given once need theirs longer than they are, or they expire before. */
  private def kept[S <: org.apache.kafka.streams.processor.StateStore](
      node: NodePlan, aggregates: Aggregates, retention: Long): Materialized[UnsafeRow, InternalRow, S] = {
    val state = Materialized.as[UnsafeRow, InternalRow, S](name(node)).withKeySerde(RowSerde.rows)
      .withValueSerde(RowSerde.buffers(Buffers(aggregates.bufferTypes))).withCachingDisabled()
    if (!logged) state.withLoggingDisabled()
    if (retention > 0) state.withRetention(us(retention).plus(delay)) else state
  }

  /** Windows of a processor of ours. `once`: the key of which only the first row is given, ever. */
  private def closing(
      node: NodePlan, inputs: Seq[Relation], closes: Closing, range: Long, slide: Long,
      once: Option[Key] = None, partitions: Option[Int] = None): Relation = {
    val waiting = s"${name(node)}-waiting"; val known = s"${name(node)}-known"
    for (store <- waiting +: once.map(_ => known).toSeq) builder.addStateStore(bytes(store))
    val rows = keyed(inputs, node.keys).reduce((one, other) => one.merge(other))
    val moved =
      if (inputs.forall(_.isBy(node.keys))) rows
      else {
        val topic = Repartitioned.`with`(RowSerde.rows, RowSerde.rows).withName(name(node))
        rows.repartition(partitions.fold(topic)(topic.withNumberOfPartitions(_)))
      }
    val windows = WindowsOf(closes, range, slide, delay.toMillis, waiting, once, known)
    val results = moved.process[UnsafeRow, UnsafeRow](() => new WindowsProcessor(windows), waiting +: once.map(_ => known).toSeq: _*)
    Relation(results, Expressions.attributes(node.types))
  }

  private def bytes(store: String): StoreBuilder[KeyValueStore[Bytes, Array[Byte]]] = {
    val supplier = if (inMemory) Stores.inMemoryKeyValueStore(store) else Stores.persistentKeyValueStore(store)
    val made = Stores.keyValueStoreBuilder(supplier, Serdes.Bytes, Serdes.ByteArray).withCachingDisabled()
    if (logged) made else made.withLoggingDisabled()
  }
}

/** Settings of ours among those of Kafka Streams. */
object Settings {
  val DELAY = "streamgauge.delay.us"; val STORE = "streamgauge.store"; val CHANGELOG = "streamgauge.changelog"
}
