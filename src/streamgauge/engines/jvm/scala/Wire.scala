package streamgauge

import java.util.{Arrays, HashMap => JavaMap}

import com.fasterxml.jackson.core.{JsonFactory, JsonToken}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.unsafe.types.UTF8String

/** Makes rows of messages. A row is valid until the next one. */
trait Decoder { def apply(message: Array[Byte]): UnsafeRow }

object Decoder {
  private val WIDTHS = Map("int" -> 11, "bigint" -> 20, "boolean" -> 5, "timestamp" -> 20)
  private val LENGTH = 7
  private val TEXTS = Set("string", "binary")

  def open(source: SourcePlan): Decoder =
    if (source.fields.exists { case Seq(_, kind) => kind == "double" }) bySql(source)
    else if (source.encoding == "compact") compact(source)
    else if (source.encoding == "json" && source.fields.forall { case Seq(_, kind) => kind != "binary" }) json(source)
    else bySql(source)

  private def bySql(source: SourcePlan): Decoder = {
    val decode = new Single(source.decoded)
    val in = new GenericInternalRow(1)
    message => { in.update(0, message); decode(in) }
  }

  /** The compact encoding by hand, as a job's author would: numbers of fixed width, then texts. */
  private def compact(source: SourcePlan): Decoder = {
    val names = source.output.map(_.name)
    val kinds = source.fields.map(_(1)).toArray
    val widths = kinds.map(WIDTHS.getOrElse(_, LENGTH))
    val texts = kinds.map(TEXTS)
    val begins = widths.scanLeft(0)(_ + _)
    val places = source.fields.map { case Seq(name, _) => names.indexOf(name) }.toArray
    val time = names.indexOf(Plan.TIME)
    val timed = source.fields.indexWhere(_.head == Plan.EVENT_TIME)
    val absent = names.indices.filter(n => n != time && !places.contains(n)).toArray
    val writer = new UnsafeRowWriter(names.size, 64)
    message => {
      writer.reset(); writer.zeroOutNullBytes()
      absent.foreach(writer.setNullAt)
      var n = 0; var text = begins.last
      while (n < kinds.length) {
        val place = places(n); val from = begins(n); val to = begins(n + 1)
        if (texts(n)) {
          val blank = isBlank(message, to)
          val length = if (blank) 0 else number(message, from, to).toInt
          if (place >= 0) { if (blank) writer.setNullAt(place) else writer.write(place, message, text, length) }
          text += length
        } else if (place >= 0 || n == timed) {
          if (isBlank(message, to)) { if (place >= 0) writer.setNullAt(place) }
          else if (kinds(n) == "boolean") writer.write(place, message(to - 2) == 'u')
          else {
            val value = number(message, from, to)
            if (place >= 0) { if (kinds(n) == "int") writer.write(place, value.toInt) else writer.write(place, value) }
            if (n == timed && time >= 0) writer.write(time, value)
          }
        }
        n += 1
      }
      writer.getRow
    }
  }

  private case class Field(kind: String, place: Int, isTime: Boolean)

  /** JSON of one level, token by token. */
  private def json(source: SourcePlan): Decoder = {
    val names = source.output.map(_.name); val time = names.indexOf(Plan.TIME)
    val fields = new JavaMap[String, Field]
    for (Seq(name, kind) <- source.fields) fields.put(name, Field(kind, names.indexOf(name), name == Plan.EVENT_TIME && time >= 0))
    val factory = new JsonFactory; val writer = new UnsafeRowWriter(names.size, 64); val isSet = new Array[Boolean](names.size)
    message => {
      writer.reset(); writer.zeroOutNullBytes(); Arrays.fill(isSet, false)
      val parser = factory.createParser(message)
      parser.nextToken()
      while (parser.nextToken() == JsonToken.FIELD_NAME) {
        val field = fields.get(parser.currentName)
        if (parser.nextToken() != JsonToken.VALUE_NULL && field != null) {
          if (field.place >= 0) {
            isSet(field.place) = true
            field.kind match {
              case "int" => writer.write(field.place, parser.getIntValue)
              case "boolean" => writer.write(field.place, parser.getBooleanValue)
              case "string" => writer.write(field.place, UTF8String.fromString(parser.getText))
              case _ => writer.write(field.place, parser.getLongValue)
            }
          }
          if (field.isTime) { isSet(time) = true; writer.write(time, parser.getLongValue) }
        }
      }
      parser.close()
      var n = 0
      while (n < isSet.length) { if (!isSet(n)) writer.setNullAt(n); n += 1 }
      writer.getRow
    }
  }

  private def isBlank(message: Array[Byte], to: Int): Boolean = message(to - 1) == ' '

  private def number(message: Array[Byte], from: Int, to: Int): Long = {
    var n = from
    while (message(n) == ' ') n += 1
    val negative = message(n) == '-'
    if (negative) n += 1
    var value = 0L
    while (n < to) { value = value * 10 - (message(n) - '0'); n += 1 } // below zero, where the least number is
    if (negative) value else -value
  }
}

/** The message of a row. */
case class Encoder(text: Transform) {
  def open(): InternalRow => Array[Byte] = { val encode = new Single(text); row => encode(row).getUTF8String(0).getBytes }
}
