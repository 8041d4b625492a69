package streamgauge.storm

import java.util.{HashMap => JavaMap, List => JavaList, Map => AnyMap, Properties}
import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.ConsumerRecord
import org.apache.kafka.clients.producer.{KafkaProducer, ProducerRecord, RecordMetadata}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.storm.Config
import org.apache.storm.generated.GlobalStreamId
import org.apache.storm.grouping.CustomStreamGrouping
import org.apache.storm.kafka.spout.{KafkaSpout, KafkaSpoutConfig, RecordTranslator}
import org.apache.storm.spout.SpoutOutputCollector
import org.apache.storm.task.{OutputCollector, TopologyContext, WorkerTopologyContext}
import org.apache.storm.topology.OutputFieldsDeclarer
import org.apache.storm.topology.base.BaseRichBolt
import org.apache.storm.tuple.{Fields, Tuple, Values}
import org.apache.storm.utils.TupleUtils

import streamgauge._

/** A tuple of each message, and the latest time of each partition. */
final class Decoding(source: SourcePlan) extends RecordTranslator[Array[Byte], Array[Byte]] {
  @transient private lazy val decode = Decoder.open(source)
  @transient private lazy val latest = new JavaMap[Integer, Long]
  private val time = source.output.indexWhere(_.name == Plan.TIME)

  override def apply(record: ConsumerRecord[Array[Byte], Array[Byte]]): JavaList[Object] = {
    val row = decode(record.value).copy()
    latest.put(record.partition, row.getLong(time))
    new Values(row)
  }
  override def getFieldsFor(stream: String): Fields = Row.FIELD

  /** All earlier events have been given; Long.MinValue while a partition has given none. */
  def watermark(partitions: Int): Long = if (latest.size < partitions) Long.MinValue else latest.values.asScala.min
}

/** Storm's spout for Kafka, which also sends watermarks. */
final class Source(config: KafkaSpoutConfig[Array[Byte], Array[Byte]], decoding: Decoding, partitions: Int, intervalMs: Long)
    extends KafkaSpout[Array[Byte], Array[Byte]](config) {
  @transient private var own = 0
  @transient private var sent = Long.MinValue
  @transient private var next = 0L

  override def open(settings: AnyMap[String, Object], context: TopologyContext, out: SpoutOutputCollector): Unit = Tasks.guarded {
    super.open(settings, context, out)
    val tasks = context.getComponentTasks(context.getThisComponentId).size
    own = (context.getThisTaskIndex until partitions by tasks).size // dealt out in turn
    sent = Long.MinValue
    Tasks.open()
  }

  override def nextTuple(): Unit = Tasks.guarded {
    super.nextTuple()
    if (System.nanoTime >= next) {
      next = System.nanoTime + intervalMs * 1000000
      val watermark = decoding.watermark(own)
      if (watermark > sent) { collector.emit(Watermark.STREAM, new Values(Long.box(watermark))); sent = watermark }
    }
  }

  override def declareOutputFields(declarer: OutputFieldsDeclarer): Unit = {
    super.declareOutputFields(declarer)
    declarer.declareStream(Watermark.STREAM, Watermark.FIELD)
  }
}

/** What an operator of a task does. Rows that it is given are its own; those that it gives are valid until the next. */
trait OperatorTask {
  def add(row: UnsafeRow, out: UnsafeRow => Unit): Unit
  /** Every row before `until` has come. */
  def advance(until: Long, out: UnsafeRow => Unit): Unit
}
trait Operator extends Serializable {
  def open(): OperatorTask
  /** How far before a watermark its later rows may be. */
  def behind: Long = 0
}

final class RowWiseOperator(transform: Transform) extends Operator {
  override def open(): OperatorTask = new OperatorTask {
    private val emitter = transform.open()
    override def add(row: UnsafeRow, out: UnsafeRow => Unit): Unit = emitter(row, out)
    override def advance(until: Long, out: UnsafeRow => Unit): Unit = ()
  }
}

/** Runs an operator. Its watermark is the least of all tasks that send it rows. */
final class OperatorBolt(operator: Operator) extends BaseRichBolt {
  @transient private var out: OutputCollector = _
  @transient private var task: OperatorTask = _
  @transient private var watermarks: JavaMap[Integer, Long] = _
  @transient private var watermark = Long.MinValue

  override def prepare(settings: AnyMap[String, Object], context: TopologyContext, collector: OutputCollector): Unit = Tasks.guarded {
    out = collector; task = operator.open(); watermarks = new JavaMap; watermark = Long.MinValue
    for (source <- context.getThisSources.keySet.asScala; each <- context.getComponentTasks(source.get_componentId).asScala)
      watermarks.put(each, Long.MinValue)
    Tasks.open()
  }

  override def execute(tuple: Tuple): Unit = Tasks.guarded {
    if (tuple.getSourceStreamId == Watermark.STREAM) {
      watermarks.put(tuple.getSourceTask, tuple.getLong(0))
      val least = watermarks.values.asScala.min
      if (least > watermark) {
        watermark = least
        task.advance(least, row => out.emit(new Values(row.copy())))
        out.emit(Watermark.STREAM, new Values(Long.box(least - operator.behind)))
      }
    } else task.add(tuple.getValue(0).asInstanceOf[UnsafeRow], row => out.emit(tuple, new Values(row.copy())))
    out.ack(tuple)
  }

  override def declareOutputFields(declarer: OutputFieldsDeclarer): Unit = {
    declarer.declare(Row.FIELD)
    declarer.declareStream(Watermark.STREAM, Watermark.FIELD)
  }
}

/** Every task sends to one task only, which keeps the order. */
final class OneToOne extends CustomStreamGrouping {
  private var to: Map[Int, JavaList[Integer]] = Map()
  override def prepare(context: WorkerTopologyContext, stream: GlobalStreamId, targets: JavaList[Integer]): Unit =
    to = context.getComponentTasks(stream.get_componentId).asScala.zipWithIndex
      .map { case (task, n) => task.intValue -> java.util.List.of(targets.get(n % targets.size)) }.toMap
  override def chooseTasks(task: Int, values: JavaList[Object]): JavaList[Integer] = to(task)
}

/** Rows with equal keys go to one task. */
final class KeyGrouping(key: Key) extends CustomStreamGrouping {
  @transient private lazy val keyOf = ThreadLocal.withInitial(() => key.open())
  private var to: Array[JavaList[Integer]] = Array()
  override def prepare(context: WorkerTopologyContext, stream: GlobalStreamId, targets: JavaList[Integer]): Unit =
    to = targets.asScala.map(java.util.List.of(_)).toArray
  override def chooseTasks(task: Int, values: JavaList[Object]): JavaList[Integer] =
    if (to.length == 1) to(0) else to(Math.floorMod(keyOf.get()(Row.of(values)).hashCode, to.length))
}

/** Writes results. Storm's own bolt for Kafka acknowledges tuples from the producer's thread, whose batches nobody sends
  * when they are not full; here the task does it, at its next tuple or tick.
  */
final class Sink(encoder: Encoder, sink: SinkPlan, properties: Properties) extends BaseRichBolt {
  @transient private var out: OutputCollector = _
  @transient private var producer: KafkaProducer[Array[Byte], Array[Byte]] = _
  @transient private var encode: InternalRow => Array[Byte] = _
  @transient private var written: ConcurrentLinkedQueue[Tuple] = _
  private val key = sink.key.getBytes("UTF-8")

  override def prepare(settings: AnyMap[String, Object], context: TopologyContext, collector: OutputCollector): Unit = Tasks.guarded {
    out = collector; encode = encoder.open(); written = new ConcurrentLinkedQueue; producer = new KafkaProducer(properties)
    Tasks.open()
  }

  override def execute(tuple: Tuple): Unit = Tasks.guarded {
    if (!TupleUtils.isTick(tuple)) producer.send(new ProducerRecord(sink.topic, key, encode(Row.of(tuple.getValues))), (_: RecordMetadata, error: Exception) =>
      if (error == null) written.add(tuple) else Tasks.guarded(throw error))
    Iterator.continually(written.poll()).takeWhile(_ != null).foreach(out.ack)
  }

  override def getComponentConfiguration: AnyMap[String, Object] =
    java.util.Map.of(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, Integer.valueOf(1))

  override def declareOutputFields(declarer: OutputFieldsDeclarer): Unit = ()
}
