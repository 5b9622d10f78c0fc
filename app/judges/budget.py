"""A budget over a whole evaluation: once it is spent, the rest is not_scored, never guessed and never an error.

All conversations of an evaluation that a process judges share one budget. It is checked before each question, so it
may be overdrawn by the questions under way; several processes learn of each other's spending only as conversations
finish, so each may overdraw it by what its unfinished ones cost.
"""

from app.findings.model import Usage
from app.judges.contract import Answer, JudgeModel, JudgeModelError, Prompt


class BudgetedModel:
    """A judge model that stops answering when the evaluation's tokens or money are spent."""

    def __init__(self, model: JudgeModel, *, max_tokens: int | None, max_cost_usd: float | None) -> None:
        self._model = model
        self._max_tokens = max_tokens
        self._max_cost_usd = max_cost_usd
        self._tokens = 0
        self._cost_usd = 0.0
        self._unpriced = False

    def at_least(self, tokens: int, cost_usd: float) -> None:
        """Note what is known to be spent by everybody."""
        self._tokens = max(self._tokens, tokens)
        self._cost_usd = max(self._cost_usd, cost_usd)

    async def ask(self, prompt: Prompt) -> Answer:
        """Return the model's answer.

        Raises:
            JudgeModelError: the model's own; budget_exhausted; or price_unknown, when money is limited and the first
                answer had no price.
        """
        if self._max_tokens is not None and self._tokens >= self._max_tokens:
            raise JudgeModelError("budget_exhausted", f"The evaluation's {self._max_tokens} tokens are spent.")
        if self._max_cost_usd is not None:
            if self._unpriced:
                raise JudgeModelError("price_unknown", "max_cost_usd is set, but this model's price is not configured.")
            if self._cost_usd >= self._max_cost_usd:
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
        self._unpriced |= usage.cost_usd is None and usage.prompt_tokens > 0


class UnavailableModel:
    """Stands for a model that was allowed when the evaluation was submitted and is not configured any more."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def ask(self, prompt: Prompt) -> Answer:
        """Raise JudgeModelError model_unavailable."""
        raise JudgeModelError("model_unavailable", f"The judge model {self._name!r} is not configured on this server.")
