package streamgauge.kafka_streams

import java.util.Properties
import java.util.concurrent.atomic.AtomicLong

import scala.jdk.CollectionConverters._

import org.apache.kafka.streams.{KafkaStreams, StreamsBuilder, StreamsConfig, Topology}
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler

import streamgauge._

object Main {
  private val STABLE_NS = 2000000000L
  private val BETWEEN = "-repartition"; private val KEPT = "-changelog"

  def main(arguments: Array[String]): Unit = {
    val plan = Plan.read(arguments(0))
    val status = new Status(plan.scratch)
    try {
      val settings = properties(plan)
      val streams = new KafkaStreams(topology(plan, settings), settings)
      streams.setUncaughtExceptionHandler((error: Throwable) => {
        status.fail(error)
        StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT
      })
      val since = new AtomicLong(System.nanoTime)
      streams.setStateListener { (now, _) =>
        since.set(System.nanoTime)
        if (now == KafkaStreams.State.ERROR || now == KafkaStreams.State.NOT_RUNNING) status.fail(new IllegalStateException(s"its state is $now"))
      }
      streams.start()
      // Threads join their group one after the other, and each time some tasks stand still.
      while (streams.state != KafkaStreams.State.RUNNING || System.nanoTime - since.get < STABLE_NS) Thread.sleep(20)
      new Series(plan.scratch, () => ("late rows", "rows", dropped(streams)) +: new OwnTopics(streams).series).start()
      status.set("running")
    } catch { case error: Throwable => status.fail(error) }
  }

  /** Rows that came after their windows were closed. */
  private def dropped(streams: KafkaStreams): Double = WindowsProcessor.late.sum + streams.metrics.values.asScala.iterator
    .filter(_.metricName.name == "dropped-records-total").map(_.metricValue.asInstanceOf[Double]).sum

  /** Bytes of the topics between its parts and of those that keep state, as its clients count them on the wire. */
  private final class OwnTopics(streams: KafkaStreams) {
    private val metrics = streams.metrics.values.asScala.filter(_.metricName.tags.containsKey("topic")).toSeq
    private def sum(name: String, group: String, ending: String): Double = metrics.iterator.filter { each =>
      each.metricName.name == name && each.metricName.group == group && each.metricName.tags.get("topic").endsWith(ending)
    }.map(_.metricValue.asInstanceOf[Double]).sum
    private def written(ending: String) = sum("byte-total", "producer-topic-metrics", ending)
    private def read(ending: String) = sum("bytes-consumed-total", "consumer-fetch-manager-metrics", ending)

    def series: Seq[(String, String, Double)] = {
      val between = written(BETWEEN) + read(BETWEEN)
      val own = between + written(KEPT) + read(KEPT)
      // The broker has taken each event from the driver before, and gives the driver each result.
      val rest = 2 * (written("") + read("") - own)
      Seq(("repartition topics", "bytes", between), ("changelog topics", "bytes", own - between),
        ("broker's work for these topics, estimated by bytes", "%", 100 * own / math.max(1.0, own + rest)))
    }
  }

  private def topology(plan: Plan, settings: Properties): Topology = {
    val builder = new StreamsBuilder
    new Lowering(plan, builder).run()
    val topology = builder.build(settings)
    println(topology.describe())
    topology
  }

  private def properties(plan: Plan): Properties = {
    val all = new Properties
    val own = plan.options.filterNot { case (name, _) => name.startsWith("streamgauge.") }
    all.putAll((plan.reading ++ plan.writing ++ own ++ plan.client).asJava)
    all.put(StreamsConfig.APPLICATION_ID_CONFIG, plan.group)
    all.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, plan.parallelism.toString)
    all.put(StreamsConfig.STATE_DIR_CONFIG, s"${plan.scratch}/state")
    all
  }
}
