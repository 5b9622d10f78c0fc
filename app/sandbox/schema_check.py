"""Holds an instance against a JSON Schema, inside the sandbox.

``$schema`` is followed when it names a draft, otherwise 2020-12 applies. References are never fetched. ``format`` is
asserted, leniently where tools are lenient: a date-time may lack its offset or have a blank for its T.
"""

import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any, NoReturn

import jsonschema_rs
from jsonschema_rs import ReferencingError, ValidationError, ValidationErrorKind

from app.sandbox.violations import UnusableError, clean, describe, pointer

MAX_DEPTH = 64
MAX_VIOLATIONS = 50
ALL_ERRORS_BELOW = 64 * 1024
"""Characters of an instance up to which every violation is collected. The library makes all of them (13 microseconds
each) before it gives the first, so a long list of wrong values would take seconds."""

_ERRORS = (ValueError, TypeError, OverflowError, RecursionError, ReferencingError)
_ESCAPE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.", re.DOTALL)


def check(schema_text: str, instance_text: str) -> Mapping[str, Any]:
    """Return ``{violations: [...]}``, or ``{unusable: code, message}`` when the schema cannot judge the instance."""
    try:
        validator, schema = _compile(schema_text)
        errors = _errors(validator, instance_text)
        found = itertools.chain.from_iterable(describe(error, schema) for error in errors)
        return {"violations": list(itertools.islice(found, MAX_VIOLATIONS))}
    except UnusableError as problem:
        return {"unusable": "schema_unusable", "message": clean(str(problem))}


def _compile(text: str) -> tuple[jsonschema_rs.Validator, Any]:
    validator, schema, problem = _compiled(text)
    if validator is None:
        raise UnusableError(problem)
    return validator, schema


@lru_cache(maxsize=32)
def _compiled(text: str) -> tuple[jsonschema_rs.Validator | None, Any, str]:
    """Return a validator and its schema, or what is wrong: one tool is called many times, with a bad schema too."""
    try:
        schema = json.loads(text, parse_constant=_not_json)
        if not isinstance(schema, dict | bool):  # the library would take a string for the text of a schema
            return None, None, "a JSON Schema is an object or a boolean"
        if _deeper_than(schema, MAX_DEPTH):
            return None, None, f"the schema is nested more than {MAX_DEPTH} levels deep"
        return _validator(schema), schema, ""
    except ValidationError as error:
        return None, None, _problem(error)
    except _ERRORS as error:
        return None, None, f"the schema does not compile: {error}"


def _validator(schema: Any) -> jsonschema_rs.Validator:
    try:
        draft = jsonschema_rs.validator_cls_for(schema)
    except _ERRORS:
        draft = jsonschema_rs.Draft202012Validator
    return draft(
        schema,
        retriever=_refuse,
        validate_formats=True,
        formats={"date-time": _is_datetime, "time": _is_time},
        mask="the value",
        # The clock decides, not a count of steps: inside `not`, a count exceeded would read as a match.
        pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=1 << 40),
    )


def _refuse(uri: str) -> NoReturn:
    raise ValueError("references are never fetched")


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _problem(error: ValidationError) -> str:
    if isinstance(error.kind, ValidationErrorKind.Referencing):
        return f"the schema refers to something outside of it: {error.message}"
    value = json.dumps(error.instance, default=str)[:60]
    return f"not a valid JSON Schema at {pointer(error.instance_path) or 'its root'}: {value} ({error.message})"


def _deeper_than(value: Any, limit: int) -> bool:
    """Whether containers are nested more than ``limit`` deep, the outermost counted."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _errors(validator: jsonschema_rs.Validator, text: str) -> Sequence[ValidationError]:
    try:
        return _errors_of(validator, text)
    except UnicodeEncodeError:  # an escaped lone surrogate; the replacement character is as long
        return _errors_of(validator, _ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], text))


def _errors_of(validator: jsonschema_rs.Validator, text: str) -> Sequence[ValidationError]:
    try:
        instance = json.loads(text, parse_float=_number, parse_constant=_not_json)
        if len(text) < ALL_ERRORS_BELOW:
            return list(validator.iter_errors(instance))
        validator.validate(instance)
    except ValidationError as error:
        return [error]
    except UnicodeEncodeError:
        raise
    except _ERRORS as error:
        raise UnusableError(f"the arguments could not be held against the schema: {error}") from error
    return []


def _number(text: str) -> float | Decimal:
    """Read a number; one that no float can hold must not become infinity, which the library takes for null."""
    value = float(text)
    return value if math.isfinite(value) else Decimal(text)


def _is_datetime(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return "T" in text.upper() or " " in text


def _is_time(text: str) -> bool:
    try:
        time.fromisoformat(text)
    except ValueError:
        return False
    return True
