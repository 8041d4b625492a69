package streamgauge

import java.nio.file.{Files, Paths}

/** Series of the job's own, for the driver: lines of time, name, unit and value in JSON. */
final class Series(folder: String, sample: () => Seq[(String, String, Double)]) {
  private val INTERVAL_MS = 500L

  def start(): Unit = {
    val lines = Files.newBufferedWriter(Paths.get(folder, "series"))
    val each = new Thread(() => while (true) {
      Thread.sleep(INTERVAL_MS)
      val now = System.currentTimeMillis * 1000
      for ((name, unit, value) <- sample()) lines.write(s"""[$now, "$name", "$unit", $value]\n""")
      lines.flush()
    }, "series")
    each.setDaemon(true)
    each.start()
  }
}
