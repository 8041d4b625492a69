"""The allowlist of Spark SQL functions and operators in a flow, and their translation to DuckDB.

It has only what gives the same answer on both, edge rows included.
`tests/engine_conformance/spark_session/test_expressions.py` compares Spark with DuckDB on those rows.
A *rule* takes a node whose arguments are already translated and returns the DuckDB node, or raises `Refused`.
Limit: `upper` and `lower` differ for letters whose other case is not one letter ('ß', dotted 'İ').
"""

from collections.abc import Iterable

import sqlglot
from sqlglot import exp

from streamgauge.dataflow.expressions import regex, rules
from streamgauge.dataflow.expressions.rules import (
    INTEGERS,
    NUMBERS,
    STRING,
    Rule,
    TypeOf,
    duckdb,
    need,
    operands,
    plain_number,
    plain_text,
)
from streamgauge.dataflow.expressions.types import Refused, allow, element_type

BIGINT_MAX = 2**63 - 1

# Checked by name, because sqlglot accepts other dialects' names for the same node.
FUNCTIONS = frozenset({
    "abs", "array", "array_contains", "array_repeat", "avg", "cast", "ceil", "ceiling", "char_length", "coalesce",
    "concat", "contains", "count", "date_trunc", "endswith", "floor", "get_json_object", "greatest", "if", "ifnull",
    "lcase", "least", "length", "lower", "ltrim", "max", "min", "mod", "nullif", "nvl", "regexp_extract",
    "regexp_extract_all", "regexp_like", "regexp_replace", "replace", "rtrim", "size", "split", "sqrt", "startswith",
    "substr", "substring", "sum", "timestamp_micros", "timestamp_millis", "timestamp_seconds", "trim", "try_cast",
    "try_divide", "try_element_at", "try_to_timestamp", "ucase", "unix_micros", "unix_millis", "unix_seconds",
    "upper",
})  # fmt: skip

# Keywords that may precede a parenthesis.
WORDS = frozenset({"and", "between", "case", "else", "in", "is", "like", "not", "or", "rlike", "then", "when"})


def literal(node: exp.Expression, _: TypeOf) -> exp.Expression:
    """Integers and doubles. `1.5` is refused: it is a decimal, whose width differs between engines."""
    if node.is_string:
        return node
    text = str(node.this)
    fits = not text.isdigit() or int(text) <= BIGINT_MAX
    allow(fits, f"number {text} is above the largest bigint", "a smaller number, or a double: 1e20", node)
    is_decimal = not text.isdigit() and "e" not in text.lower()
    allow(not is_decimal, f"number {text} is a decimal", f"write it as a double: {text}e0", node)
    return node


def total(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`sum`: bigint for integers as on Spark (DuckDB's is wider), double for doubles."""
    need(node.this, type_of, NUMBERS, "sum", "sum a number")
    return node if type_of(node.this) == "double" else exp.Cast(this=node, to=exp.DataType.build("BIGINT"))


def count(node: exp.Expression, _: TypeOf) -> exp.Expression:
    allow(not node.expressions, "count takes one argument", "count(*) or count(column)", node)
    return node


def _same_family(nodes: Iterable[exp.Expression], type_of: TypeOf, operation: str) -> None:
    """Refuses mixed types, because engines differ in implicit casts. NULL fits every type."""
    types = [type_of(node) for node in nodes if not isinstance(node, exp.Null)]
    way_out = "explode it, or take try_element_at(array, 1)"
    allow(not any(map(element_type, types)), f"{operation} of arrays differs between engines", way_out)
    families = {"number" if type_ in NUMBERS else type_ for type_ in types}
    rule = f"{operation} mixes {' and '.join(sorted(set(types)))}"
    allow(len(families) <= 1, rule, "try_cast one of them to the other's type")


def alike(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """Comparisons and choices between values, which must all be numbers, all strings, ..."""
    _same_family(node.iter_expressions(), type_of, "a comparison or choice")
    return node


def choice(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`case` and `if`: the results must be of one family; the binder checks the conditions."""
    branches = node.args.get("ifs") or [node]
    results = [branch.args.get("true") for branch in branches] + [node.args.get("default"), node.args.get("false")]
    _same_family([result for result in results if result is not None], type_of, "case")
    return node


arithmetic = operands(NUMBERS, "numbers on both sides")
mean = operands(NUMBERS, "take the average of a number")
logic = operands(frozenset({"boolean"}), "a comparison, such as x > 0")
text = operands(STRING, "use it on strings, or try_cast(x as string)")


def modulo(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """Integers only. Modulo zero is an error on both; minimum % -1 is 0 on Spark and an error on DuckDB."""
    for side in (node.this, node.expression):
        need(side, type_of, INTEGERS, "%", "% of whole numbers")
    if isinstance(node.expression, exp.Literal):
        return node
    return duckdb("CASE WHEN ({b}) = -1 THEN ({a}) - ({a}) ELSE ({a}) % ({b}) END", a=node.this, b=node.expression)


def try_divide(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """Always a double; null if the divisor is zero."""
    for side in (node.this, node.expression):
        need(side, type_of, NUMBERS, "try_divide", "try_divide of numbers")
    return duckdb(
        "(CAST({a} AS DOUBLE) / NULLIF(CAST({b} AS DOUBLE), CAST(0 AS DOUBLE)))", a=node.this, b=node.expression
    )


def whole(function: str) -> Rule:
    """`ceil`, `floor`: a bigint. NaN gives 0 as on Spark; overflow is an error on both."""

    def rule(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
        need(node.this, type_of, frozenset({"double"}), function, f"leave {function} away: it is whole already")
        is_alone = not (node.args.get("decimals") or node.args.get("to"))
        allow(is_alone, f"{function} takes one argument", f"{function}(x)", node)
        return duckdb(f"CASE WHEN isnan({{x}}) THEN 0 ELSE CAST({function}({{x}}) AS BIGINT) END", x=node.this)

    return rule


def replaced(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`replace`: every occurrence of a non-empty literal string."""
    text(node, type_of)
    is_literal = plain_text(node.expression) and node.args.get("replacement") is not None
    allow(is_literal, "replace takes two literal strings", "replace(x, 'a', 'b')", node)
    return node


def root(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`sqrt`: NaN for negative numbers."""
    need(node.this, type_of, NUMBERS, "sqrt", "take the root of a number")
    return duckdb("CASE WHEN ({x}) < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt(CAST({x} AS DOUBLE)) END", x=node.this)


def called(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """Functions for which sqlglot has no node class."""
    rule = _BY_NAME.get(str(node.this).lower())
    if rule is None:
        raise Refused(f"function {node.this} is not allowed", f"one of {', '.join(sorted(FUNCTIONS))}", node)
    return rule(node, type_of)


_BY_NAME: dict[str, Rule] = {
    "array_repeat": rules.array_repeat,
    "timestamp_micros": rules.from_unix(1),
    "timestamp_millis": rules.from_unix(1_000),
    "timestamp_seconds": rules.from_unix(1_000_000),
    "try_to_timestamp": rules.parsed_time,
}


def length(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    return duckdb("CAST(length({x}) AS INTEGER)", x=text(node, type_of).this)


def joined(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`concat` and `||`: null if any part is null (DuckDB's `concat` skips nulls)."""
    parts = [part.sql("duckdb") for part in text(node, type_of).iter_expressions()]
    return sqlglot.parse_one("(" + " || ".join(f"({part})" for part in parts) + ")", dialect="duckdb")


def trim(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """Trims spaces only, as on Spark."""
    allow(node.args.get("expression") is None, "trim takes one argument", "trim(x)", node)
    function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "trim")
    need(node.this, type_of, STRING, function, "trim a string")
    return duckdb(f"{function}({{x}}, ' ')", x=node.this)


def substring(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """Literal start >= 1 and length: engines differ for other starts."""
    need(node.this, type_of, STRING, "substring", "take a substring of a string")
    start, size = node.args.get("start"), node.args.get("length")
    is_literal = plain_number(start) and (size is None or plain_number(size) is not None)
    allow(is_literal, "substring takes a literal start of 1 or more, and a literal length", "substring(x, 1, 3)", node)
    return node


def like(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """A literal pattern without backslash, which escapes on Spark and not on DuckDB."""
    need(node.this, type_of, STRING, "like", "use like on a string")
    pattern = node.expression
    is_literal = pattern.is_string and "\\" not in str(pattern.this)
    allow(is_literal, "like takes a literal pattern without backslash", "x like 'abc%', or contains(x, 'abc')", node)
    return node


# Text that Spark accepts as a number; DuckDB accepts more (1_000, 2.5 for an int).
_WHOLE = r"[+-]?[0-9]+"
_REAL = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"


def _parsed_as(pattern: str, type_: str) -> str:
    return f"CASE WHEN regexp_full_match(trim({{x}}), '{pattern}') THEN TRY_CAST(trim({{x}}) AS {type_}) END"


_CASTS = {
    ("string", "int"): _parsed_as(_WHOLE, "INTEGER"),
    ("string", "bigint"): _parsed_as(_WHOLE, "BIGINT"),
    ("string", "double"): _parsed_as(_REAL, "DOUBLE"),
    ("double", "int"): "TRY_CAST(trunc({x}) AS INTEGER)",
    ("double", "bigint"): "TRY_CAST(trunc({x}) AS BIGINT)",
    ("bigint", "int"): "TRY_CAST({x} AS INTEGER)",
    ("int", "bigint"): "CAST({x} AS BIGINT)",
    ("int", "double"): "CAST({x} AS DOUBLE)",
    ("bigint", "double"): "CAST({x} AS DOUBLE)",
    ("boolean", "int"): "CAST({x} AS INTEGER)",
    ("int", "string"): "CAST({x} AS VARCHAR)",
    ("bigint", "string"): "CAST({x} AS VARCHAR)",
    ("boolean", "string"): "CAST({x} AS VARCHAR)",
}
_TARGETS = {"INT": "int", "BIGINT": "bigint", "DOUBLE": "double", "TEXT": "string", "VARCHAR": "string"}


def try_cast(node: exp.Expression, type_of: TypeOf) -> exp.Expression:
    """`try_cast`, and the literals `10L` and `1.5D`, which sqlglot reads as casts. A plain cast is refused."""
    target = _TARGETS.get(node.args["to"].sql("duckdb").upper(), node.args["to"].sql("duckdb").lower())
    if not node.args.get("safe"):
        return _suffixed(node, target)
    source = type_of(node.this)
    if source == target:
        return node.this
    way_out = "one of " + ", ".join(f"{a} to {b}" for a, b in _CASTS)
    allow((source, target) in _CASTS, f"try_cast from {source} to {target} differs between engines", way_out, node)
    return duckdb(_CASTS[source, target], x=node.this)


def _suffixed(node: exp.Expression, target: str) -> exp.Expression:
    number = node.this
    is_number = isinstance(number, exp.Literal) and not number.is_string and target in ("bigint", "double")
    allow(is_number, "cast stops the job on bad input on one engine and not on the other", "try_cast(x as type)", node)
    return duckdb(f"CAST({{x}} AS {target.upper()})", x=number)


def refuse(rule: str, way_out: str) -> Rule:
    def rule_(node: exp.Expression, _: TypeOf) -> exp.Expression:
        raise Refused(rule, way_out, node)

    return rule_


_PLAIN = (exp.Boolean, exp.Column, exp.Identifier, exp.Is, exp.Max, exp.Min, exp.Null, exp.Paren)
_ALIKE = (
    exp.Between, exp.Coalesce, exp.EQ, exp.GT, exp.GTE, exp.Greatest, exp.In, exp.LT, exp.LTE, exp.Least, exp.NEQ,
    exp.NullSafeEQ, exp.Nullif,
)  # fmt: skip

_DIVIDE = refuse("division by zero stops the job on one engine and not on the other", "try_divide(a, b)")

RULES: dict[type[exp.Expression], Rule] = {
    **dict.fromkeys(_PLAIN, lambda node, _: node),
    **dict.fromkeys(_ALIKE, alike),
    **dict.fromkeys((exp.Abs, exp.Add, exp.Mul, exp.Neg, exp.Sub), arithmetic),
    **dict.fromkeys((exp.And, exp.Not, exp.Or), logic),
    exp.Anonymous: called,
    exp.Array: rules.array,
    exp.ArrayContains: rules.array_contains,
    exp.ArraySize: rules.array_size,
    exp.Avg: mean,
    exp.Bracket: rules.array_element,
    exp.Case: choice,
    exp.Ceil: whole("ceil"),
    exp.Concat: joined,
    exp.Contains: text,
    exp.Count: count,
    exp.DPipe: joined,
    exp.Distinct: refuse("aggregates of distinct values are not supported by streaming engines", "count(*), or max(x)"),
    exp.Div: _DIVIDE,
    exp.EndsWith: text,
    exp.Floor: whole("floor"),
    exp.If: choice,
    exp.IntDiv: _DIVIDE,
    exp.JSONExtractScalar: regex.json_value,
    exp.Length: length,
    exp.Like: like,
    exp.Literal: literal,
    exp.Lower: text,
    exp.Mod: modulo,
    exp.RawString: lambda node, _: exp.Literal.string(str(node.this)),
    exp.RegexpExtract: regex.extract,
    exp.RegexpExtractAll: regex.extract_all,
    exp.RegexpLike: regex.matches,
    exp.RegexpReplace: regex.replace,
    exp.RegexpSplit: regex.split,
    exp.Replace: replaced,
    exp.SafeDivide: try_divide,
    exp.Star: refuse("* is not a value", "name a column"),
    exp.Sqrt: root,
    exp.StartsWith: text,
    exp.Substring: substring,
    exp.Sum: total,
    exp.TimestampTrunc: rules.truncated_time,
    exp.Trim: trim,
    exp.TryCast: try_cast,
    exp.UnixMicros: rules.to_unix(1),
    exp.UnixMillis: rules.to_unix(1_000),
    exp.UnixSeconds: rules.to_unix(1_000_000),
    exp.Upper: text,
}
"""The allowed nodes and their translation to DuckDB."""
