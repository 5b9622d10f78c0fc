"""The OpenAPI document: what FastAPI derives from the routes, and what it cannot know.

The request body is read by the intake, not by FastAPI, and problems have a media type of their own: both are described
here. ``python -m app.api.openapi`` writes the committed copy; a test refuses a stale one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute

from app.api.problems import ITEM_CODES, KINDS
from app.api.schema.about import InvalidRequest, NotReady, Problem, ProblemItem
from app.api.schema.examples import examples
from app.api.schema.requests import ForensicRequest
from app.transcripts.admission.codes import VIOLATIONS

TITLE = "Forensic Evals"
VERSION = "0.1.0"
_REF = "#/components/schemas/{model}"
_DESCRIPTION = """\
Examines recorded conversations of LLM agents after the fact. Post transcripts; every conversation is judged, and every
finding cites words that stand in the transcript, checked by the service.

Every answer from 400 on is `application/problem+json` with a stable `code`. Every answer carries `X-Request-Id`. Lists
are cut by cursor. Ids sort by creation. Times are RFC 3339 in UTC.
"""
_TAGS = [
    {"name": "Evaluations", "description": "Submit conversations and follow what becomes of them."},
    {"name": "Results", "description": "Conversations, verdicts and findings."},
    {"name": "Judges", "description": "What is examined."},
    {"name": "Service", "description": "Health. No key needed."},
]

IF_NONE_MATCH: dict[str, Any] = {
    "parameters": [
        {
            "name": "If-None-Match",
            "in": "header",
            "required": False,
            "description": "The ETag of an earlier answer; 304 while nothing has changed since.",
            "schema": {"type": "string"},
        }
    ]
}
SUBMIT_PATH = "/v1/forensic-evaluations"
SUBMIT_BODY: dict[str, Any] = {
    "parameters": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "description": "A second request with the same key and body returns the first one's evaluation.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
        }
    ],
    "requestBody": {
        "required": True,
        "description": "At most 31,457,280 bytes, not compressed.",
        "content": {"application/json": {"schema": {"$ref": _REF.format(model="ForensicRequest")}}},
    },
}


def document(routes: Sequence[BaseRoute]) -> bytes:
    """Return the OpenAPI document of some routes, as JSON with sorted keys where order means nothing."""
    described = get_openapi(title=TITLE, version=VERSION, description=_DESCRIPTION, routes=routes, tags=_TAGS)
    schemas = described["components"]["schemas"]
    schemas |= _definitions(ForensicRequest, InvalidRequest, NotReady, Problem, ProblemItem)
    described["components"]["schemas"] = dict(sorted(schemas.items()))
    _name_codes(described["components"]["schemas"])
    _add_examples(described)
    return msgspec.json.encode(described)


def _definitions(*models: type[BaseModel]) -> dict[str, Any]:
    _, document_ = models_json_schema([(model, "validation") for model in models], ref_template=_REF)
    definitions: dict[str, Any] = document_["$defs"]
    return definitions


def _name_codes(schemas: Mapping[str, Any]) -> None:
    """List the codes a problem can carry, with their meanings."""
    kinds = {code: kind.meaning for code, kind in KINDS.items()}
    for name in ("Problem", "InvalidRequest", "NotReady"):
        schemas[name]["properties"]["code"] |= _codes(kinds)
    schemas["ProblemItem"]["properties"]["code"] |= _codes({**VIOLATIONS, **ITEM_CODES})


def _add_examples(described: Mapping[str, Any]) -> None:
    for component, schema in described["components"]["schemas"].items():
        found = list(examples(component).values())
        if found:
            schema["examples"] = found
    body = described["paths"][SUBMIT_PATH]["post"]["requestBody"]["content"]["application/json"]
    named = examples(ForensicRequest.__name__)
    if named:
        body["examples"] = {name: {"value": value} for name, value in named.items()}


def _codes(meanings: Mapping[str, str]) -> dict[str, Any]:
    listed = "\n".join(f"- `{code}`: {meaning}" for code, meaning in meanings.items())
    return {"enum": list(meanings), "description": listed}
