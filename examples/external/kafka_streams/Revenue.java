import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * The revenue of each gem pack in windows of 2 s.
 *
 * It reads lines "gem_pack_id,price,ts" and writes lines "gem_pack_id,revenue,closed". It knows nothing of streamgauge
 * but the addresses in its environment.
 */
public class Revenue {
    public static void main(String[] arguments) {
        var strings = Serdes.String();
        var builder = new StreamsBuilder();
        // The key of a message is its gem pack, so no other partitioning is needed.
        builder.stream(
                System.getenv("STREAMGAUGE_INPUT"),
                Consumed.with(strings, strings)
                    .withTimestampExtractor((record, before) -> Long.parseLong(field(record.value(), 2))))
            .mapValues(line -> Long.parseLong(field(line, 1)))
            .groupByKey(Grouped.with(strings, Serdes.Long()))
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(2)))
            .reduce(Long::sum, Materialized.with(strings, Serdes.Long()))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
            .toStream()
            .map((window, revenue) -> KeyValue.pair(
                window.key(), window.key() + "," + revenue + "," + window.window().end()))
            .to(System.getenv("STREAMGAUGE_OUTPUT"), Produced.with(strings, strings));

        var settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, System.getenv("STREAMGAUGE_GROUP"));
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, System.getenv("STREAMGAUGE_BROKERS"));
        settings.put(StreamsConfig.STATE_DIR_CONFIG, System.getenv("STREAMGAUGE_SCRATCH") + "/state");
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, System.getenv("CORES"));
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, "500");
        settings.put("linger.ms", "5");
        var streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(1))));
        streams.start();
    }

    private static String field(Object line, int number) {
        return ((String) line).split(",")[number];
    }
}
