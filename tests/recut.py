"""Cut evidence from a conversation's original bytes, independently of the product: json.loads and slices only."""

import json
import re
from typing import Any

_BAD = re.compile("[\x00\ud800-\udfff]")


def recut(original: bytes, evidence: dict[str, Any]) -> tuple[Any, Any]:
    """Return (what stands there, what the evidence says stands there); equal when the evidence is true."""
    document = json.loads(original.decode("utf-8-sig"))
    value = document[evidence["source"]][evidence["event"]]
    for token in evidence["pointer"].split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    if isinstance(value, str):
        return _BAD.sub("\ufffd", value)[evidence["start"] : evidence["end"]], evidence["quote"]
    assert evidence["start"] is None
    assert evidence["end"] is None
    return value, json.loads(evidence["quote"])
