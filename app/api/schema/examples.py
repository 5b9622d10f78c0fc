"""The examples of the OpenAPI document: ``openapi/examples``, each file named after the schema it is an example of.

``ForensicRequest.mixed.json`` is the example "mixed" of a request. An installation without the checkout has none, and
its document lacks them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parents[3] / "openapi" / "examples"


def examples(component: str) -> Mapping[str, Any]:
    """Return the examples of a schema by name; the only one of its schema has the schema's name."""
    return {path.stem.removeprefix(f"{component}."): json.loads(path.read_bytes()) for path in _files(component)}


def _files(component: str) -> list[Path]:
    return sorted([*DIRECTORY.glob(f"{component}.json"), *DIRECTORY.glob(f"{component}.*.json")])
