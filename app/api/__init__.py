"""The HTTP face: FastAPI routes over the pipeline, and the OpenAPI document that describes them.

A request meets, in this order: lingering close and envelope (pure ASGI), the bearer key, the path and query, and only
then its body. Answers are serialised by ``wire`` and sent as bytes; the pydantic models in ``schema`` describe them and
are never run on a request.
"""
