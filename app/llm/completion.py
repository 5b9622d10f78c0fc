"""What came back, taken apart without trust: gateways answer 200 with HTML, null, empty choices or an error object."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from app.llm.errors import EndpointError, excerpt


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class Choice(msgspec.Struct):
    """The model's message and why it ended."""

    message: _Message
    finish_reason: str | None = None

    @property
    def text(self) -> str:
        """What the model wrote."""
        return self.message.content or ""

    @property
    def cut(self) -> bool:
        """Whether the model ran out of output tokens."""
        return self.finish_reason == "length"

    @property
    def refusal(self) -> str | None:
        """Why there is no point in asking again, if so."""
        if self.message.refusal:
            return f"The judge model refused: {excerpt(self.message.refusal.encode())}"
        if self.finish_reason == "content_filter":
            return "The judge endpoint's content filter suppressed the answer."
        return None


class Completion(msgspec.Struct):
    """A chat completion. ``usage`` is left as it came; see ``tokens``."""

    choices: Annotated[list[Choice], msgspec.Meta(min_length=1)]
    usage: Any = None


_DECODER = msgspec.json.Decoder(Completion)


def read(body: bytes) -> Completion:
    """Return the completion in a response body.

    Raises:
        EndpointError: when there is none.
    """
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        said = f"The judge endpoint's answer is no chat completion. It begins: {excerpt(body)}"
        raise EndpointError("provider_error", said, transient=True) from None


def tokens(usage: Any) -> tuple[int, int, int] | None:
    """Return (prompt, cached, completion) tokens as the endpoint counts them; None when it does not say."""
    if not isinstance(usage, Mapping):
        return None
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if prompt is None or completion is None:
        return None
    details = usage.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, Mapping) else None
    return prompt, min(cached or 0, prompt), completion


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 53 else None
