"""Says what is wrong with an instance: briefly, at a place of its own, safe to show and fair to the agent judged.

* A missing property is reported where it should be, an unexpected one where it is.
* Of ``anyOf`` and ``oneOf`` the alternative that was meant is reported, when there is only one it can have been.
* ``nullable: true`` (OpenAPI) admits null, since whoever writes it means that.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jsonschema_rs import ValidationError, ValidationErrorKind

Violations = Iterator[dict[str, str]]
_Context = Sequence[Sequence[ValidationError]]

_LONGEST_POINTER = 2_000
_LONGEST_MESSAGE = 300
_LONGEST_OPTION = 60
_OPTIONS_SHOWN = 8
_JSON_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null", int: "integer"}


class UnusableError(Exception):
    """The schema cannot judge this instance; the message says why."""


def describe(error: ValidationError, schema: Any) -> Violations:
    """Yield an error of the library as violations: instance_pointer, schema_pointer, keyword, message.

    Raises:
        UnusableError: the error is not about the instance: a pattern could not be evaluated.
    """
    describer = _DESCRIBERS.get(type(error.kind))
    if describer is not None:
        yield from describer(error, error.kind, schema)
    elif not _is_admitted_null(error, schema):
        yield _violation(error, message=error.message)


def clean(text: str) -> str:
    """Clip a message with foreign words in it, its control characters escaped."""
    shown = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text[: _LONGEST_MESSAGE + 1]
    )
    return shown if len(shown) <= _LONGEST_MESSAGE else f"{shown[: _LONGEST_MESSAGE - 1]}…"


def pointer(path: Sequence[str | int]) -> str:
    """Return the RFC 6901 pointer of ``path``, or of the closest ancestor short enough to be worth showing."""
    short = ""
    for token in path:
        longer = f"{short}/{str(token).replace('~', '~0').replace('/', '~1')}"
        if len(longer) > _LONGEST_POINTER:
            break
        short = longer
    return short


def _missing(error: ValidationError, kind: Any, _: Any) -> Violations:
    yield _violation(error, kind.property, message=f"required property {kind.property!r} is missing")


def _unexpected(error: ValidationError, kind: Any, _: Any) -> Violations:
    for name in kind.unexpected:
        yield _violation(error, name, message=f"{name!r} is not among the properties that the schema allows")


def _name(error: ValidationError, kind: Any, _: Any) -> Violations:
    yield _violation(error, str(kind.error.instance), message=f"property name: {kind.error.message}")


def _type(error: ValidationError, kind: Any, schema: Any) -> Violations:
    if not _is_admitted_null(error, schema):
        yield _violation(error, message=_type_message(kind.types, error.instance))


def _option(error: ValidationError, kind: Any, schema: Any) -> Violations:
    if not _is_admitted_null(error, schema):
        options = kind.options
        shown = [json.dumps(option, ensure_ascii=False, default=str) for option in options[:_OPTIONS_SHOWN]]
        more = f" and {len(options) - _OPTIONS_SHOWN} more" if len(options) > _OPTIONS_SHOWN else ""
        clipped = ", ".join(text[:_LONGEST_OPTION] for text in shown)
        yield _violation(error, message=f"the value is not one of {clipped}{more}")


def _never(error: ValidationError, *_: Any) -> Violations:
    yield _violation(error, message="the schema allows no value here")


def _unevaluated(*_: Any) -> Violations:
    raise UnusableError("a pattern of the schema could not be evaluated")


def _alternatives(error: ValidationError, kind: Any, schema: Any) -> Violations:
    context: _Context = kind.context
    problems = list(itertools.chain.from_iterable(context))
    if any(type(problem.kind) in _UNEVALUATED for problem in problems):
        _unevaluated()
    depth = len(error.instance_path)
    meant = [branch for branch in context if not any(_rules_out(problem, depth) for problem in branch)]
    if len(meant) == 1:
        for problem in meant[0]:
            yield from describe(problem, schema)
        return
    here = [problem.kind for problem in problems if len(problem.instance_path) == depth]
    types = [kind.types for kind in here if isinstance(kind, ValidationErrorKind.Type)]
    if len(types) == len(context):
        names = dict.fromkeys(itertools.chain.from_iterable(types))
        yield _violation(error, keyword="type", message=_type_message(list(names), error.instance))
    else:
        yield _violation(error, message=f"the value matches none of the {len(context)} alternatives allowed here")


def _rules_out(problem: ValidationError, depth: int) -> bool:
    """Whether a branch with this problem was not meant: it is of another type, or another tag stands just below."""
    below = len(problem.instance_path) - depth
    if problem.kind.name == "type":
        return below == 0
    return problem.kind.name in ("const", "enum") and below <= 1


def _is_admitted_null(error: ValidationError, schema: Any) -> bool:
    if error.instance is not None:
        return False
    place = schema
    for token in error.schema_path[:-1]:
        try:
            place = place[token]
        except (KeyError, IndexError, TypeError):
            return False
    return isinstance(place, dict) and place.get("nullable") is True


def _type_message(expected: Sequence[str], value: Any) -> str:
    return f"expected {' or '.join(sorted(expected))}, found {_JSON_TYPES.get(type(value), 'number')}"


def _violation(error: ValidationError, *below: str, message: str, keyword: str | None = None) -> dict[str, str]:
    # A path below an `$id` is counted from there, so it would name another place of the whole schema.
    schema_path = [] if error.absolute_keyword_location else error.schema_path
    return {
        "instance_pointer": pointer([*error.instance_path, *below]),
        "schema_pointer": pointer(schema_path),
        "keyword": keyword or (str(error.schema_path[-1]) if error.schema_path else error.kind.name),
        "message": clean(message),
    }


_UNEVALUATED = (ValidationErrorKind.BacktrackLimitExceeded, ValidationErrorKind.RegexEngineFailure)
_DESCRIBERS: Mapping[type[ValidationErrorKind], Callable[[ValidationError, Any, Any], Violations]] = {
    ValidationErrorKind.Required: _missing,
    ValidationErrorKind.AdditionalProperties: _unexpected,
    ValidationErrorKind.UnevaluatedProperties: _unexpected,
    ValidationErrorKind.PropertyNames: _name,
    ValidationErrorKind.Type: _type,
    ValidationErrorKind.Enum: _option,
    ValidationErrorKind.FalseSchema: _never,
    ValidationErrorKind.AnyOf: _alternatives,
    ValidationErrorKind.OneOfNotValid: _alternatives,
    **dict.fromkeys(_UNEVALUATED, _unevaluated),
}
