package controls

import java.time.Duration
import java.util.Properties

import scala.jdk.CollectionConverters._

import org.apache.flink.api.common.eventtime.{SerializableTimestampAssigner, WatermarkStrategy}
import org.apache.flink.api.common.functions.AggregateFunction
import org.apache.flink.api.common.serialization.SerializationSchema
import org.apache.flink.api.common.typeinfo.{TypeInformation, Types}
import org.apache.flink.api.java.functions.KeySelector
import org.apache.flink.configuration.Configuration
import org.apache.flink.connector.base.DeliveryGuarantee
import org.apache.flink.connector.kafka.sink.{KafkaRecordSerializationSchema, KafkaSink}
import org.apache.flink.connector.kafka.source.KafkaSource
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows
import org.apache.flink.streaming.api.windowing.windows.TimeWindow
import org.apache.flink.util.Collector
import org.apache.kafka.clients.consumer.ConsumerRecord

/** A plain object, as Flink's own serializer takes it. */
class Bought(var pack: Int, var price: Long, var ts: Long) { def this() = this(0, 0L, 0L) }

class Parsing extends KafkaRecordDeserializationSchema[Bought] {
  override def deserialize(record: ConsumerRecord[Array[Byte], Array[Byte]], out: Collector[Bought]): Unit = {
    val found = Purchase.parsed(record.value)
    out.collect(new Bought(found.pack, found.price, found.ts))
  }
  override def getProducedType: TypeInformation[Bought] = Control.BOUGHT
}

class Pack extends KeySelector[Bought, Integer] { override def getKey(row: Bought): Integer = row.pack }

class Revenue extends AggregateFunction[Bought, java.lang.Long, java.lang.Long] {
  override def createAccumulator(): java.lang.Long = 0L
  override def add(row: Bought, sum: java.lang.Long): java.lang.Long = sum + row.price
  override def merge(one: java.lang.Long, other: java.lang.Long): java.lang.Long = one + other
  override def getResult(sum: java.lang.Long): java.lang.Long = sum
}

class Closed extends ProcessWindowFunction[java.lang.Long, Array[Byte], Integer, TimeWindow] {
  override def process(
      pack: Integer, context: ProcessWindowFunction[java.lang.Long, Array[Byte], Integer, TimeWindow]#Context,
      sums: java.lang.Iterable[java.lang.Long], out: Collector[Array[Byte]]): Unit =
    out.collect(Purchase.result(pack, sums.iterator.next, context.window.getEnd))
}

class AsIs extends SerializationSchema[Array[Byte]] { override def serialize(row: Array[Byte]): Array[Byte] = row }

/** The windowed aggregation as one writes it with Flink's DataStream API. Times are microseconds in its milliseconds. */
object Control {
  lazy val BOUGHT: TypeInformation[Bought] = Types.POJO(
    classOf[Bought],
    Map[String, TypeInformation[_]]("pack" -> Types.INT, "price" -> Types.LONG, "ts" -> Types.LONG).asJava)

  def main(settings: Array[String]): Unit = {
    val all = new Configuration
    settings.map(_.split("=", 2)).foreach { case Array(name, value) => all.setString(name, value) }
    val env = StreamExecutionEnvironment.createLocalEnvironment(System.getenv("CORES").toInt, all)
    val source = KafkaSource.builder[Bought]().setBootstrapServers(Purchase.env("BROKERS")).setTopics(Purchase.env("INPUT"))
      .setGroupId(Purchase.env("GROUP")).setStartingOffsets(OffsetsInitializer.earliest()).setDeserializer(new Parsing)
      .setProperties(properties(Purchase.reading)).build()
    val stamp: SerializableTimestampAssigner[Bought] = (row, _) => row.ts
    val times = WatermarkStrategy.forMonotonousTimestamps[Bought]().withTimestampAssigner(stamp)
    val record = KafkaRecordSerializationSchema.builder[Array[Byte]]().setTopic(Purchase.env("OUTPUT")).setValueSerializationSchema(new AsIs).build()
    val sink = KafkaSink.builder[Array[Byte]]().setBootstrapServers(Purchase.env("BROKERS")).setRecordSerializer(record)
      .setKafkaProducerConfig(properties(Purchase.writing)).setDeliveryGuarantee(DeliveryGuarantee.AT_LEAST_ONCE).build()
    env.fromSource(source, times, "purchases", BOUGHT).setParallelism(1)
      .keyBy(new Pack, Types.INT)
      .window(SlidingEventTimeWindows.of(Duration.ofMillis(Purchase.RANGE), Duration.ofMillis(Purchase.SLIDE)))
      .aggregate(new Revenue, new Closed, Types.LONG, Types.LONG, Types.PRIMITIVE_ARRAY(Types.BYTE).asInstanceOf[TypeInformation[Array[Byte]]])
      .sinkTo(sink)
    val job = env.executeAsync("control")
    println("running")
    val _ = job.getJobExecutionResult.get
  }

  private def properties(of: Map[String, String]): Properties = { val all = new Properties; all.putAll(of.asJava); all }
}
