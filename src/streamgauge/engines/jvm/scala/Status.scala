package streamgauge

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths, StandardCopyOption}

/** The state of the job, for the driver: a word, and after a space the reason of a failure. */
final class Status(folder: String) {
  private val file = Paths.get(folder, "status")

  def set(text: String): Unit = synchronized {
    val next: Path = file.resolveSibling("status.new")
    Files.write(next, text.getBytes(UTF_8))
    Files.move(next, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
  }

  /** Writes the reason and ends the process. */
  def fail(error: Throwable): Nothing = {
    try { error.printStackTrace(); set(s"failed ${Status.reason(error)}") } finally Runtime.getRuntime.halt(1)
    throw error
  }
}

object Status {
  /** The innermost cause in one line. */
  def reason(error: Throwable): String = {
    val root = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).toSeq.last
    val message = Option(root.getMessage).getOrElse("").linesIterator.map(_.trim).find(_.nonEmpty).getOrElse("")
    s"${root.getClass.getSimpleName}: $message"
  }
}
