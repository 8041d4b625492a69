"""The types of a user job's results, and which of them cannot be compared."""

from collections.abc import Iterator, Mapping

from pyspark.sql import types as spark
from pyspark.sql.types import DataType, StructType

from streamgauge.core.errors import Problem
from streamgauge.core.value_types import (
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL,
    FLOAT,
    INT,
    INTERVAL,
    MAP,
    STRING,
    STRUCT,
    TIME,
    TIMESTAMP,
    ValueType,
    differences,
    incomparable,
    list_of,
    map_of,
)

_NAMES = {
    **dict.fromkeys((spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType), INT),
    **dict.fromkeys((spark.FloatType, spark.DoubleType), FLOAT),
    **dict.fromkeys((spark.TimestampType, spark.TimestampNTZType), TIMESTAMP),
    **dict.fromkeys((spark.StringType, spark.CharType, spark.VarcharType), STRING),
    spark.DecimalType: DECIMAL,
    spark.DayTimeIntervalType: INTERVAL,
    spark.BinaryType: BINARY,
    spark.BooleanType: BOOLEAN,
    spark.DateType: DATE,
    spark.TimeType: TIME,
}


def value_type(type_: DataType) -> ValueType:
    """The value type of a Spark type. An unsupported type keeps Spark's name."""
    if isinstance(type_, spark.UserDefinedType):
        return value_type(type_.sqlType())
    if isinstance(type_, spark.ArrayType):
        return list_of(value_type(type_.elementType))
    if isinstance(type_, spark.MapType):
        return map_of(value_type(type_.keyType), value_type(type_.valueType))
    if isinstance(type_, StructType):
        return ValueType(STRUCT, tuple((field.name, value_type(field.dataType)) for field in type_))
    return ValueType(_NAMES.get(type(type_), type_.simpleString()))


def problems(
    job: str, schema: StructType, keys: tuple[str, ...], reference: Mapping[str, ValueType]
) -> Iterator[Problem]:
    """Problems that prevent a comparison with the reference, or with a batch run if `reference` is empty."""
    types = {field.name: value_type(field.dataType) for field in schema}
    to_cast = 'cast {0} to a type that can be compared, .cast("string") for example, or .drop("{0}")'
    for name, type_ in types.items():
        for place, found in incomparable(type_, name):
            rule = f"must give columns whose types can be compared, and {place} cannot"
            yield Problem(job, rule, found, to_cast.format(name))
    instead = "name other columns in keys; F.array_sort(F.map_entries(...)) makes a key of a map"
    for name in keys:
        if types[name].has(MAP):
            yield Problem(job, f"must have keys without maps, and {name} has one", str(types[name]), instead)
    for name, wanted in reference.items():
        for place, expected, found in differences(wanted, types[name], name):
            rule = f"must give {place} in a type that can be compared with the reference's, {expected}"
            yield Problem(job, rule, found, f"cast {name} in the reference, or in the job: one type for both")
