"""Holds real answers against the OpenAPI document, so that what is described and what is sent cannot drift apart."""

import functools
import json
import re
from typing import Any

import httpx2
import jsonschema_rs

from app.api.application import ROUTES
from app.api.schema.document import document


@functools.cache
def described() -> dict[str, Any]:
    """Return the OpenAPI document."""
    found: dict[str, Any] = json.loads(document(ROUTES))
    return found


async def conforms(response: httpx2.Response) -> None:
    """Check status, media type and JSON body of an answer; goes into a client's response hooks."""
    await response.aread()
    assert re.fullmatch(r"[\w-]{1,64}", response.headers["x-request-id"])
    if response.request.url.path == "/openapi.json":
        return
    operation = _operation(response.request.method, response.request.url.path)
    if operation is None:
        assert response.status_code in {401, 404, 405}, response.text
        validator("Problem").validate(response.json())
        return
    responses = operation["responses"]
    assert str(response.status_code) in responses, f"{response.status_code} is not described: {response.text[:300]}"
    content = responses[str(response.status_code)].get("content", {})
    if not response.content:
        assert not content, "an answer with a body is described"
        return
    media_type = response.headers["content-type"].split(";")[0]
    assert media_type in content, f"{media_type} is not described"
    if media_type.endswith("json"):
        _validator(json.dumps(content[media_type]["schema"])).validate(response.json())


def validator(component: str) -> jsonschema_rs.Draft202012Validator:
    """Return the validator of a schema of the document."""
    return _validator(json.dumps({"$ref": f"#/components/schemas/{component}"}))


@functools.cache
def _validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    whole = {**json.loads(schema), "components": described()["components"]}
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


def _operation(method: str, path: str) -> dict[str, Any] | None:
    for template, operations in described()["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and method.lower() in operations:
            found: dict[str, Any] = operations[method.lower()]
            return found
    return None
