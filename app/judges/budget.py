"""A budget over a whole evaluation: once it is spent, the rest is not_scored, never guessed and never an error.

Conversations are judged side by side, so the budget is checked before each question and may be overdrawn by the
questions under way.
"""

from app.findings.model import Usage
from app.judges.contract import Answer, JudgeModel, JudgeModelError, Prompt


class BudgetedModel:
    """A judge model that stops answering when the evaluation's tokens or money are spent."""

    def __init__(
        self,
        model: JudgeModel,
        *,
        max_tokens: int | None,
        max_cost_usd: float | None,
        tokens_spent: int = 0,
        cost_spent_usd: float = 0.0,
    ) -> None:
        self._model = model
        self._max_tokens = max_tokens
        self._max_cost_usd = max_cost_usd
        self._tokens = tokens_spent
        self._cost_usd = cost_spent_usd

    async def ask(self, prompt: Prompt) -> Answer:
        """Return the model's answer.

        Raises:
            JudgeModelError: the model's own, or budget_exhausted.
        """
        if self._max_tokens is not None and self._tokens >= self._max_tokens:
            raise JudgeModelError("budget_exhausted", f"The evaluation's {self._max_tokens} tokens are spent.")
        if self._max_cost_usd is not None and self._cost_usd >= self._max_cost_usd:
            raise JudgeModelError("budget_exhausted", f"The evaluation's {self._max_cost_usd} USD are spent.")
        try:
            answer = await self._model.ask(prompt)
        except JudgeModelError as error:
            self._pay(error.usage)
            raise
        self._pay(answer.usage)
        return answer

    def _pay(self, usage: Usage) -> None:
        self._tokens += usage.prompt_tokens + usage.completion_tokens
        self._cost_usd += usage.cost_usd or 0.0
