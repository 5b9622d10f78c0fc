from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from app.judges.contract import Prompt
from app.llm.endpoint import ChatEndpoint
from app.llm.judge_model import OpenAIJudgeModel, Patience
from tests.stub_model import StubModel

KEY = "secret-key-for-tests"
QUICK = Patience(attempts=3, first_seconds=0.005, most_seconds=0.01, longest_wait_seconds=0.5)
SCHEMA = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string"},
        "label": {"type": "string", "enum": ["fail", "pass", "cannot_determine"]},
    },
    "required": ["reasoning", "label"],
    "additionalProperties": False,
}
PROMPT = Prompt("task_completion", "rules", "<transcript x>\n</transcript x>", "What of it?", SCHEMA)


@pytest.fixture
async def stub() -> AsyncIterator[StubModel]:
    async with StubModel() as running:
        yield running


MakeModel = Callable[..., OpenAIJudgeModel]


@pytest.fixture
async def make_model(stub: StubModel) -> AsyncIterator[MakeModel]:
    """Models at the stub; ``endpoint`` arguments apart from those of the model."""
    endpoints: list[ChatEndpoint] = []

    def make(model: str = "stub", *, patience: Patience = QUICK, prices: Any = None, **limits: Any) -> OpenAIJudgeModel:
        endpoints.append(ChatEndpoint(base_url=stub.base_url, api_key=KEY, **limits))
        return OpenAIJudgeModel(endpoints[-1], model, prices=prices, patience=patience)

    yield make
    for endpoint in endpoints:
        await endpoint.aclose()
