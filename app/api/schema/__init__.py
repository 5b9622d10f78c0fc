"""The OpenAPI text: pydantic models of what goes in and out. They describe; they are never run on a request."""
