package streamgauge.flink

import org.apache.flink.api.common.serialization.SerializerConfig
import org.apache.flink.api.common.typeinfo.TypeInformation
import org.apache.flink.api.common.typeutils.{SimpleTypeSerializerSnapshot, TypeSerializer, TypeSerializerSnapshot}
import org.apache.flink.core.memory.{DataInputView, DataOutputView}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform

import streamgauge.Buffers

/** Bytes of rows between tasks and in checkpoints: number of fields, length, bytes. */
private object Bytes {
  def write(row: UnsafeRow, to: DataOutputView): Unit = {
    to.writeShort(row.numFields); to.writeInt(row.getSizeInBytes)
    row.getBaseObject match {
      case bytes: Array[Byte] => to.write(bytes, (row.getBaseOffset - Platform.BYTE_ARRAY_OFFSET).toInt, row.getSizeInBytes)
      case _ => to.write(row.getBytes)
    }
  }

  def read(from: DataInputView): UnsafeRow = {
    val row = new UnsafeRow(from.readShort()); val bytes = new Array[Byte](from.readInt())
    from.readFully(bytes); row.pointTo(bytes, bytes.length)
    row
  }
}

abstract class RowsSerializer[T] extends TypeSerializer[T] {
  override def isImmutableType = false
  override def getLength: Int = -1
  override def deserialize(reuse: T, from: DataInputView): T = deserialize(from)
  override def copy(from: DataInputView, to: DataOutputView): Unit = Bytes.write(Bytes.read(from), to)
}

class RowSerializer extends RowsSerializer[UnsafeRow] {
  override def duplicate(): TypeSerializer[UnsafeRow] = this
  override def createInstance() = new UnsafeRow(0)
  override def copy(from: UnsafeRow): UnsafeRow = from.copy()
  override def copy(from: UnsafeRow, reuse: UnsafeRow): UnsafeRow = from.copy()
  override def serialize(row: UnsafeRow, to: DataOutputView): Unit = Bytes.write(row, to)
  override def deserialize(from: DataInputView): UnsafeRow = Bytes.read(from)
  override def equals(other: Any): Boolean = other.isInstanceOf[RowSerializer]
  override def hashCode: Int = 1
  override def snapshotConfiguration(): TypeSerializerSnapshot[UnsafeRow] = new RowSnapshot
}
class RowSnapshot extends SimpleTypeSerializerSnapshot[UnsafeRow](() => new RowSerializer)

/** Buffers of aggregates, which can be set again after they come from bytes. */
class BufferSerializer(buffers: Buffers) extends RowsSerializer[InternalRow] {
  @transient private lazy val project = UnsafeProjection.create(buffers.types.toArray[DataType])
  override def duplicate(): TypeSerializer[InternalRow] = new BufferSerializer(buffers)
  override def createInstance(): InternalRow = null
  override def copy(from: InternalRow): InternalRow = from.copy()
  override def copy(from: InternalRow, reuse: InternalRow): InternalRow = from.copy()
  override def serialize(row: InternalRow, to: DataOutputView): Unit = row match {
    case bytes: UnsafeRow => Bytes.write(bytes, to)
    case _ => Bytes.write(project(row), to)
  }
  override def deserialize(from: DataInputView): InternalRow = buffers.settable(Bytes.read(from))
  override def equals(other: Any): Boolean = other match { case one: BufferSerializer => one.types == types; case _ => false }
  override def hashCode: Int = types.hashCode
  def types: Seq[DataType] = buffers.types
  override def snapshotConfiguration(): TypeSerializerSnapshot[InternalRow] = new BufferSnapshot(types)
}

/** Its types are written as JSON. */
class BufferSnapshot(private var types: Seq[DataType]) extends TypeSerializerSnapshot[InternalRow] {
  def this() = this(Nil)
  override def getCurrentVersion = 1
  override def writeSnapshot(out: DataOutputView): Unit = { out.writeInt(types.size); types.foreach(each => out.writeUTF(each.json)) }
  override def readSnapshot(version: Int, in: DataInputView, loader: ClassLoader): Unit =
    types = Seq.fill(in.readInt())(DataType.fromJson(in.readUTF()))
  override def restoreSerializer(): TypeSerializer[InternalRow] = new BufferSerializer(Buffers(types))
  override def resolveSchemaCompatibility(old: TypeSerializerSnapshot[InternalRow]) =
    org.apache.flink.api.common.typeutils.TypeSerializerSchemaCompatibility.compatibleAsIs()
}

abstract class RowsType[T] extends TypeInformation[T] {
  override def isBasicType = false
  override def isTupleType = false
  override def getArity = 1
  override def getTotalFields = 1
  override def isKeyType = true
  override def toString: String = getClass.getSimpleName
  override def canEqual(other: Any): Boolean = other.getClass == getClass
}

object RowType extends RowsType[UnsafeRow] {
  override def getTypeClass: Class[UnsafeRow] = classOf[UnsafeRow]
  override def createSerializer(config: SerializerConfig): TypeSerializer[UnsafeRow] = new RowSerializer
  override def equals(other: Any): Boolean = other.getClass == getClass
  override def hashCode: Int = 2
  private def readResolve(): AnyRef = RowType
}

case class BufferType(types: Seq[DataType]) extends RowsType[InternalRow] {
  override def getTypeClass: Class[InternalRow] = classOf[InternalRow]
  override def createSerializer(config: SerializerConfig): TypeSerializer[InternalRow] = new BufferSerializer(Buffers(types))
}
