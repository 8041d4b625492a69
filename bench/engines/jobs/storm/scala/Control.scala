package controls

import java.util.{HashMap, List => JavaList, Map => AnyMap, Properties, TreeMap}
import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.{ConsumerConfig, ConsumerRecord}
import org.apache.kafka.clients.producer.{KafkaProducer, ProducerRecord, RecordMetadata}
import org.apache.kafka.common.serialization.{ByteArrayDeserializer, ByteArraySerializer}
import org.apache.storm.{Config, LocalCluster}
import org.apache.storm.kafka.spout.{FirstPollOffsetStrategy, KafkaSpout, KafkaSpoutConfig, RecordTranslator}
import org.apache.storm.task.{OutputCollector, TopologyContext}
import org.apache.storm.topology.{OutputFieldsDeclarer, TopologyBuilder}
import org.apache.storm.topology.base.BaseRichBolt
import org.apache.storm.tuple.{Fields, Tuple, Values}
import org.apache.storm.utils.TupleUtils

class Parsing extends RecordTranslator[Array[Byte], Array[Byte]] {
  override def apply(record: ConsumerRecord[Array[Byte], Array[Byte]]): JavaList[Object] = {
    val found = Purchase.parsed(record.value)
    new Values(Int.box(found.pack), Long.box(found.price), Long.box(found.ts))
  }
  override def getFieldsFor(stream: String): Fields = new Fields("pack", "price", "ts")
}

/** One partition has its events in order, so a window is closed when the task has seen a later event, at the latest one tick
  * after it.
  */
class Windows extends BaseRichBolt {
  @transient private var out: OutputCollector = _
  @transient private var windows: TreeMap[Long, HashMap[Int, Array[Long]]] = _
  @transient private var latest = Long.MinValue

  override def prepare(settings: AnyMap[String, Object], context: TopologyContext, collector: OutputCollector): Unit = {
    out = collector; windows = new TreeMap; latest = Long.MinValue
  }

  override def execute(tuple: Tuple): Unit = {
    val pack = tuple.getInteger(0).intValue; val price = tuple.getLong(1).longValue; val ts = tuple.getLong(2).longValue
    latest = latest.max(ts)
    var start = Math.floorDiv(ts, Purchase.SLIDE) * Purchase.SLIDE
    while (start > ts - Purchase.RANGE) {
      windows.computeIfAbsent(start + Purchase.RANGE, _ => new HashMap).computeIfAbsent(pack, _ => new Array[Long](1))(0) += price
      start -= Purchase.SLIDE
    }
    while (!windows.isEmpty && windows.firstKey <= latest) {
      val end = windows.firstKey
      windows.remove(end).forEach((pack, sum) => { val _ = out.emit(new Values(Purchase.result(pack, sum(0), end))) })
    }
    out.ack(tuple)
  }

  override def declareOutputFields(declarer: OutputFieldsDeclarer): Unit = declarer.declare(new Fields("result"))
}

class Sink extends BaseRichBolt {
  @transient private var out: OutputCollector = _
  @transient private var producer: KafkaProducer[Array[Byte], Array[Byte]] = _
  @transient private var written: ConcurrentLinkedQueue[Tuple] = _

  override def prepare(settings: AnyMap[String, Object], context: TopologyContext, collector: OutputCollector): Unit = {
    val all = new Properties
    all.putAll((Purchase.writing + ("bootstrap.servers" -> Purchase.env("BROKERS"))).asJava)
    for (name <- Seq("key.serializer", "value.serializer")) all.put(name, classOf[ByteArraySerializer].getName)
    out = collector; written = new ConcurrentLinkedQueue; producer = new KafkaProducer(all)
  }

  override def execute(tuple: Tuple): Unit = {
    if (!TupleUtils.isTick(tuple)) {
      val record = new ProducerRecord[Array[Byte], Array[Byte]](Purchase.env("OUTPUT"), tuple.getBinary(0))
      val _ = producer.send(record, (_: RecordMetadata, error: Exception) => if (error == null) { val _ = written.add(tuple) } else throw error)
    }
    Iterator.continually(written.poll()).takeWhile(_ != null).foreach(out.ack)
  }

  override def getComponentConfiguration: AnyMap[String, Object] =
    java.util.Map.of(Config.TOPOLOGY_TICK_TUPLE_FREQ_SECS, Integer.valueOf(1))

  override def declareOutputFields(declarer: OutputFieldsDeclarer): Unit = ()
}

/** The windowed aggregation as one writes it with spouts and bolts. */
object Control {
  def main(settings: Array[String]): Unit = {
    val config = new KafkaSpoutConfig.Builder[Array[Byte], Array[Byte]](Purchase.env("BROKERS"), Purchase.env("INPUT"))
      .setGroupId(Purchase.env("GROUP")).setFirstPollOffsetStrategy(FirstPollOffsetStrategy.UNCOMMITTED_EARLIEST)
      .setOffsetCommitPeriodMs(1000).setRecordTranslator(new Parsing)
      .setProp(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, classOf[ByteArrayDeserializer])
      .setProp(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, classOf[ByteArrayDeserializer])
    for ((name, value) <- Purchase.reading) config.setProp(name, value)
    val cores = System.getenv("CORES").toInt; val builder = new TopologyBuilder
    builder.setSpout("purchases", new KafkaSpout(config.build()), 1).setMaxSpoutPending(20000)
    builder.setBolt("windows", new Windows, cores).fieldsGrouping("purchases", new Fields("pack"))
    builder.setBolt("results", new Sink, cores).localOrShuffleGrouping("windows")
    val all = new Config
    for (Array(name, value) <- settings.map(_.split("=", 2))) all.put(name, value.toIntOption.map(Integer.valueOf).getOrElse(value))
    new LocalCluster.Builder().withSupervisors(1).withPortsPerSupervisor(1).build().submitTopology("control", all, builder.createTopology())
    println("running")
    Thread.currentThread.join()
  }
}
