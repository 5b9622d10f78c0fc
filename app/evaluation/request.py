"""The request around the conversations: what to call it, what to judge it by, and whom to tell.

Unknown keys are refused here, because they are typing errors that would change what is judged; null is the same as
leaving a member out. Every member has a size limit that is checked before it is decoded.
"""

import base64
import binascii
import contextlib
import json
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from app.evaluation.model import Options, WebhookRequest
from app.evaluation.request_values import EnoughError, Place, array, in_document_order, kind_of, members, text, whole
from app.judges.contract import Document, Principle, Target
from app.transcripts.admission.wording import quoted
from app.transcripts.model import Violation

LARGEST_TARGET = 1 << 20
"""Bytes of ``target`` as JSON. Every judging of every conversation reads it."""
LARGEST_MEMBER = 64 * 1024
"""Bytes of every other member but ``conversations``, as JSON."""
LONGEST_NAME = 256
LONGEST_URL = 2048
MOST_METADATA = 16
LONGEST_METADATA_KEY = 64
LONGEST_METADATA_VALUE = 512
LARGEST_BUDGET = 10**15

_VOTES = (1, 3, 5)
_SCOPES = ("all_turns", "last_turn")
_IMPORTANCE = (1, 5)
_SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of every secret
_SECRET_BYTES = range(24, 65)


class RequestRules(Protocol):
    """What a request may ask for on this installation."""

    @property
    def judges(self) -> Mapping[str, bool]:
        """Name → whether it is in the default set, in catalogue order."""
        ...

    @property
    def models(self) -> Collection[str]:
        """Judge models a client may choose."""
        ...

    @property
    def webhook_http_hosts(self) -> bool:
        """Whether http:// webhooks are acceptable at all."""
        ...


def read_member(name: str, raw: bytes, rules: RequestRules) -> tuple[Any, list[Violation]]:
    """Return the value of one of ``MEMBERS`` as ``EvaluationRequest`` takes it, and what is wrong with it.

    Args:
        name: a key of ``MEMBERS``.
        raw: its value, valid JSON without NUL and lone surrogate escapes; ``null`` when it is not there.
        rules: what may be asked for.
    """
    place = Place((name,))
    largest = LARGEST_TARGET if name == "target" else LARGEST_MEMBER
    if len(raw) > largest:
        place.refuse("too_long", f"has {len(raw)} bytes; at most {largest} are possible")
        return None, place.found
    decoded = json.loads(raw)
    value = None
    with contextlib.suppress(EnoughError):
        value = MEMBERS[name](place, decoded, rules)
    return value, in_document_order({name: decoded}, place.found)


def _name(place: Place, value: Any, _: RequestRules) -> str | None:
    return None if value is None else text(place, value, longest=LONGEST_NAME)


def _metadata(place: Place, value: Any, _: RequestRules) -> Mapping[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        place.refuse("wrong_type", f"must be an object, not {kind_of(value)}")
        return None
    if len(value) > MOST_METADATA:
        place.refuse("too_many", f"has {len(value)} keys; at most {MOST_METADATA} are possible")
    for key, item in value.items():
        if len(key) > LONGEST_METADATA_KEY:
            message = f"has the key {quoted(key)}; at most {LONGEST_METADATA_KEY} characters are possible"
            place.refuse("too_long", message)
        else:
            text(place.at(key), item, longest=LONGEST_METADATA_VALUE)
    return cast(Mapping[str, str], value)


def _target(place: Place, value: Any, _: RequestRules) -> Target | None:
    if value is None:
        return None
    given = members(place, value, ("description", "principles", "documents"))
    description = _optional(place, given, "description", LARGEST_TARGET)
    principles = [
        _principle(place.at("principles").at(index), item)
        for index, item in enumerate(array(place.at("principles"), given.get("principles", [])))
    ]
    documents = [
        _document(place.at("documents").at(index), item)
        for index, item in enumerate(array(place.at("documents"), given.get("documents", [])))
    ]
    return Target(description, tuple(principles), tuple(documents))


def _principle(place: Place, value: Any) -> Principle:
    given = members(place, value, ("name", "description", "importance", "tags"), ("name", "description"))
    name = _optional(place, given, "name", LARGEST_TARGET, may_be_empty=False)
    description = _optional(place, given, "description", LARGEST_TARGET, may_be_empty=False)
    importance = None
    if "importance" in given:
        least, most = _IMPORTANCE
        importance = whole(place.at("importance"), given["importance"], least=least, most=most)
    tags = [
        text(place.at("tags").at(index), tag, longest=LONGEST_NAME)
        for index, tag in enumerate(array(place.at("tags"), given.get("tags", [])))
    ]
    return Principle(name or "", description or "", importance, tuple(tag for tag in tags if tag is not None))


def _document(place: Place, value: Any) -> Document:
    given = members(place, value, ("title", "content", "url"), ("title", "content"))
    title = _optional(place, given, "title", LARGEST_TARGET, may_be_empty=False)
    content = _optional(place, given, "content", LARGEST_TARGET, may_be_empty=False)
    return Document(title or "", content or "", _optional(place, given, "url", LONGEST_URL))


def _judges(place: Place, value: Any, rules: RequestRules) -> tuple[str, ...]:
    if value is None:
        return tuple(name for name, default in rules.judges.items() if default)
    names = array(place, value)
    if value == []:
        place.refuse("empty", "must name at least one judge; leave it out for the default set")
    asked: set[str] = set()
    for index, name in enumerate(names):
        where = place.at(index)
        if not isinstance(name, str):
            where.refuse("wrong_type", f"must be a string, not {kind_of(name)}")
        elif name not in rules.judges:
            where.refuse("unknown_judge", f"is {quoted(name)}, which is no judge{where.suggestion(name, rules.judges)}")
        elif name in asked:
            where.refuse("duplicate", f"names {quoted(name)} again")
        else:
            asked.add(name)
    return tuple(name for name in rules.judges if name in asked)


def _options(place: Place, value: Any, rules: RequestRules) -> Options:
    if value is None:
        return Options()
    given = members(place, value, ("model", "votes", "scope", "max_tokens", "max_cost_usd"))
    read: dict[str, Any] = {}
    for key, item in given.items():
        where = place.at(key)
        if key == "max_tokens":
            read[key] = whole(where, item, least=1, most=LARGEST_BUDGET)
        elif key == "max_cost_usd":
            read[key] = _cost(where, item)
        elif key == "model":
            read[key] = _model(where, item, rules)
        else:
            read[key] = _one_of(where, item, _VOTES if key == "votes" else _SCOPES)
    return Options(**read)


def _model(place: Place, value: Any, rules: RequestRules) -> str | None:
    if not isinstance(value, str):
        place.refuse("wrong_type", f"must be a string, not {kind_of(value)}")
    elif value not in rules.models:
        offered = f"possible are {', '.join(map(quoted, rules.models))}" if rules.models else "none can be chosen here"
        place.refuse("model_not_allowed", f"is {quoted(value)}; {offered}")
    else:
        return value
    return None


def _cost(place: Place, value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        place.refuse("wrong_type", f"must be a number, not {kind_of(value)}")
    elif not 0 < value <= LARGEST_BUDGET or not math.isfinite(value):
        place.refuse("out_of_range", "must be greater than 0")
    else:
        return float(value)
    return None


def _one_of(place: Place, value: Any, possible: Collection[Any]) -> Any:
    if type(value) in {type(each) for each in possible} and value in possible:
        return value
    place.refuse("value_not_allowed", f"must be one of {', '.join(json.dumps(each) for each in possible)}")
    return None


def _webhook(place: Place, value: Any, rules: RequestRules) -> WebhookRequest | None:
    if value is None:
        return None
    given = members(place, value, ("url", "secret"), ("url",))
    url = _optional(place, given, "url", LONGEST_URL, may_be_empty=False)
    if url is not None:
        _check_url(place.at("url"), url, rules)
    secret = _optional(place, given, "secret", LONGEST_URL, may_be_empty=False)
    if secret is not None and not _is_secret(secret):
        place.at("secret").refuse("secret_invalid", f"must be {_SECRET_PREFIX} and the base64 of 24 to 64 bytes")
    return WebhookRequest(url or "", secret)


def _check_url(place: Place, url: str, rules: RequestRules) -> None:
    schemes = ("https", "http") if rules.webhook_http_hosts else ("https",)
    try:
        parts = urlsplit(url)
        usable = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        place.refuse("url_not_allowed", "is not a URL")
        return
    if not usable or not url.isprintable() or any(char in url for char in ' \\"<>^`{|}'):
        place.refuse("url_not_allowed", f"must be an absolute {' or '.join(schemes)} URL")
    elif "@" in parts.netloc:
        place.refuse("url_not_allowed", "must not hold a user name or password")
    elif "#" in url:
        place.refuse("url_not_allowed", "must not have a fragment")


def _is_secret(secret: str) -> bool:
    try:
        key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return False
    return secret.startswith(_SECRET_PREFIX) and len(key) in _SECRET_BYTES


def _optional(
    place: Place, given: Mapping[str, Any], key: str, longest: int, *, may_be_empty: bool = True
) -> str | None:
    return text(place.at(key), given[key], longest=longest, may_be_empty=may_be_empty) if key in given else None


MEMBERS: Mapping[str, Callable[[Place, Any, RequestRules], Any]] = {
    "name": _name,
    "metadata": _metadata,
    "target": _target,
    "judges": _judges,
    "options": _options,
    "webhook": _webhook,
}
"""Every member of a request but ``conversations``, and who reads it."""
