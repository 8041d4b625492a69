package controls

import java.time.Duration
import java.util.Properties

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.ConsumerRecord
import org.apache.kafka.common.serialization.{Deserializer, Serde, Serdes, Serializer}
import org.apache.kafka.common.utils.Bytes
import org.apache.kafka.streams.{KafkaStreams, KeyValue, StreamsBuilder, StreamsConfig}
import org.apache.kafka.streams.kstream._
import org.apache.kafka.streams.processor.TimestampExtractor
import org.apache.kafka.streams.state.WindowStore

/** The windowed aggregation as one writes it with the DSL of Kafka Streams. Times are microseconds in its milliseconds. */
object Control {
  private val json: Serde[Purchase] = {
    val write: Serializer[Purchase] = (_: String, _: Purchase) => throw new UnsupportedOperationException
    val read: Deserializer[Purchase] = (_: String, message: Array[Byte]) => Purchase.parsed(message)
    Serdes.serdeFrom(write, read)
  }

  def main(settings: Array[String]): Unit = {
    val builder = new StreamsBuilder
    val stamp: TimestampExtractor = (record: ConsumerRecord[Object, Object], _: Long) => record.value.asInstanceOf[Purchase].ts
    val windows = TimeWindows.ofSizeWithNoGrace(Duration.ofMillis(Purchase.RANGE)).advanceBy(Duration.ofMillis(Purchase.SLIDE))
    // The key of a message is its gem pack, so nothing need be moved.
    builder.stream(Purchase.env("INPUT"), Consumed.`with`(Serdes.String, json).withTimestampExtractor(stamp))
      .groupByKey(Grouped.`with`(Serdes.String, json))
      .windowedBy(windows).emitStrategy(EmitStrategy.onWindowClose())
      .aggregate[java.lang.Long](
        () => Long.box(0), (_: String, row: Purchase, sum: java.lang.Long) => Long.box(sum + row.price),
        Materialized.as[String, java.lang.Long, WindowStore[Bytes, Array[Byte]]]("revenue").withKeySerde(Serdes.String)
          .withValueSerde(Serdes.Long).withCachingDisabled().withRetention(Duration.ofMillis(3 * Purchase.RANGE + 20000000L)))
      .toStream
      .map[Array[Byte], Array[Byte]]((window: Windowed[String], sum: java.lang.Long) =>
        KeyValue.pair(null, Purchase.result(window.key.toInt, sum, window.window.end)))
      .process[Array[Byte], Array[Byte]](() => new Now)
      .to(Purchase.env("OUTPUT"), Produced.`with`(Serdes.ByteArray, Serdes.ByteArray))
    val all = new Properties
    all.putAll((Purchase.reading ++ Purchase.writing ++ settings.map(_.split("=", 2)).map(each => each(0) -> each(1))).asJava)
    all.put(StreamsConfig.APPLICATION_ID_CONFIG, Purchase.env("GROUP"))
    all.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, Purchase.env("BROKERS"))
    all.put(StreamsConfig.STATE_DIR_CONFIG, s"${Purchase.env("SCRATCH")}/state")
    all.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, System.getenv("CORES"))
    val streams = new KafkaStreams(builder.build(all), all)
    streams.setStateListener((now, _) => if (now == KafkaStreams.State.RUNNING) println("running"))
    streams.start()
  }
}

/** Brokers refuse records of the far future. */
final class Now extends org.apache.kafka.streams.processor.api.ContextualProcessor[Array[Byte], Array[Byte], Array[Byte], Array[Byte]] {
  override def process(record: org.apache.kafka.streams.processor.api.Record[Array[Byte], Array[Byte]]): Unit =
    context.forward(record.withTimestamp(System.currentTimeMillis))
}
