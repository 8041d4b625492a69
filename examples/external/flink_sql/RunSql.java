import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;

/** Runs the statements of a file on a cluster of Flink in this JVM; ${NAME} is a variable of the environment. */
public class RunSql {
    public static void main(String[] arguments) throws Exception {
        var settings = new Configuration();
        settings.setString("parallelism.default", System.getenv("CORES"));
        settings.setString("table.local-time-zone", "UTC");
        settings.setString("execution.checkpointing.interval", "1 s"); // the group's offsets are committed then
        settings.setString("execution.checkpointing.dir", "file://" + System.getenv("STREAMGAUGE_SCRATCH"));
        settings.setString("execution.buffer-timeout.interval", "5 ms");
        settings.setString("pipeline.auto-watermark-interval", "20 ms");
        settings.setString("restart-strategy.type", "none");
        var tables = TableEnvironment.create(
            EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build());
        String script = Pattern.compile("\\$\\{(\\w+)}").matcher(Files.readString(Path.of(arguments[0])))
            .replaceAll(found -> Matcher.quoteReplacement(System.getenv(found.group(1))));
        for (String statement : script.split(";\\s*\n")) {
            var running = tables.executeSql(statement);
            if (running.getJobClient().isPresent()) {
                System.out.println("job started");
                running.await();
            }
        }
    }
}
