"""The kind of model all wire objects are: closed, with every key always present."""

from typing import Annotated, TypeAlias

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field


class WireObject(BaseModel):
    """An object of an answer: no key is ever left out, and there are no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Time: TypeAlias = Annotated[AwareDatetime, Field(description="RFC 3339, UTC.")]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Index: TypeAlias = Annotated[int, Field(ge=0, description="From 0.")]
EvaluationRef: TypeAlias = Annotated[str, Field(pattern="^feval_[0-9a-f]{32}$")]
Sha256: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
