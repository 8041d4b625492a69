package controls

import com.fasterxml.jackson.core.{JsonFactory, JsonToken}

/** A message of the input. */
final case class Purchase(pack: Int, price: Long, ts: Long)

/** What every job needs: a parser, the text of a result, the environment and the client's settings. */
object Purchase {
  val RANGE = 8000000L; val SLIDE = 4000000L
  private val json = new JsonFactory

  def parsed(message: Array[Byte]): Purchase = {
    val parser = json.createParser(message)
    var pack = 0; var price = 0L; var ts = 0L
    parser.nextToken()
    while (parser.nextToken() == JsonToken.FIELD_NAME) {
      val name = parser.currentName
      parser.nextToken()
      name match {
        case "gem_pack_id" => pack = parser.getIntValue
        case "price" => price = parser.getLongValue
        case "ts" => ts = parser.getLongValue
        case _ => ()
      }
    }
    parser.close()
    Purchase(pack, price, ts)
  }

  def result(pack: Int, revenue: Long, end: Long): Array[Byte] =
    s"""{"gem_pack_id":$pack,"revenue":$revenue,"closed":$end}""".getBytes("UTF-8")

  def env(name: String): String = System.getenv(s"STREAMGAUGE_$name")

  /** The client's settings, as those of our jobs. */
  val reading: Map[String, String] =
    Map("max.poll.records" -> "10000", "fetch.max.wait.ms" -> "10", "max.partition.fetch.bytes" -> "10485760")
  val writing: Map[String, String] =
    Map("linger.ms" -> "5", "batch.size" -> "262144", "compression.type" -> "lz4", "acks" -> "all")
}
