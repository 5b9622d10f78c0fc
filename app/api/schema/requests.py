"""The forensic request, for readers: what is accepted is decided by the intake, which tells every problem at once."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Lenient(BaseModel):
    """An object that may carry more than is named here: the rest is kept and ignored."""

    model_config = ConfigDict(extra="allow")


class Strict(BaseModel):
    """An object in which an unknown key is a typo and refused."""

    model_config = ConfigDict(extra="forbid")


class ChatMessage(Lenient):
    """A turn of a plain conversation."""

    role: Literal["user", "assistant"]
    content: str = Field(min_length=1)


class ResponseItem(Lenient):
    """An item of the OpenAI Responses API. Unknown types are kept and ignored."""

    type: str = Field(min_length=1, examples=["message", "function_call", "function_call_output"])


class _Conversation(Lenient):
    id: Any = Field(default=None, description="Your own id (a string), shown as `client_id`.")
    metadata: Any = Field(default=None, description="An object of your own.")


class MessagesConversation(_Conversation):
    """Chat Completions format: plain text without tools. At least one assistant turn."""

    messages: list[ChatMessage] = Field(min_length=1)


class ItemsConversation(_Conversation):
    """Responses API format: with tool calls. At least one assistant message."""

    items: list[ResponseItem] = Field(min_length=1)
    tools: list[dict[str, Any]] | None = Field(
        default=None, description="The agent's full catalogue. Without it tool selection cannot be scored."
    )


class Principle(Strict):
    """A rule the agent must follow."""

    name: str
    description: str
    importance: Annotated[int, Field(ge=1, le=5)] | None = None
    tags: list[str] | None = None


class Document(Strict):
    """A text you vouch for."""

    title: str
    content: str
    url: str | None = None


class Target(Strict):
    """What the recorded agent is and must do."""

    description: str | None = None
    principles: list[Principle] | None = None
    documents: list[Document] | None = None


class RequestOptions(Strict):
    """How to judge."""

    model: str | None = Field(default=None, description="One of the installation's judge models.")
    votes: Literal[1, 3, 5] | None = Field(default=None, description="Answers to ask a model for; the majority counts.")
    scope: Literal["all_turns", "last_turn"] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Budget of the whole evaluation.")
    max_cost_usd: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="Budget of the whole evaluation."
    )


class RequestWebhook(Strict):
    """Where to tell that the evaluation ended (Standard Webhooks)."""

    url: str
    secret: str | None = Field(default=None, description="`whsec_` + base64; left out, one is made and shown once.")


class ForensicRequest(Strict):
    """A forensic request: at most 30 MB (31,457,280 bytes)."""

    conversations: list[MessagesConversation | ItemsConversation] = Field(
        min_length=1, description="Both formats may be mixed. One bad conversation refuses the whole request."
    )
    name: str | None = None
    metadata: dict[str, str] | None = None
    target: Target | None = None
    judges: list[str] | None = Field(default=None, description="Names from `/v1/judges`; default: the default set.")
    options: RequestOptions | None = None
    webhook: RequestWebhook | None = None
