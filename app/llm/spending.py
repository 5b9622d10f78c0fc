"""What one question cost, failed attempts and repairs included, kept apart from anything the judged agent spent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from app.findings.model import Usage
from app.llm.completion import tokens

Prices: TypeAlias = Mapping[str, tuple[float, float, float]]
"""Model → US dollars per million (input, cached input, output) tokens."""


@dataclass(slots=True)
class Spending:
    """Adds up the requests of one question. Refused requests are free; one without usage makes the cost unknown."""

    price: tuple[float, float, float] | None
    usage: Usage = field(default_factory=Usage)

    def failed(self) -> None:
        """Count a request that brought no completion."""
        self.usage += Usage(requests=1, cost_usd=None if self.price is None else 0.0)

    def answered(self, reported: Any) -> None:
        """Count a completion with the usage the endpoint reported."""
        counted = tokens(reported)
        if counted is None:
            self.usage += Usage(requests=1)
            return
        prompt, cached, completion = counted
        cost = None
        if self.price is not None:
            fresh_price, cached_price, output_price = self.price
            cost = ((prompt - cached) * fresh_price + cached * cached_price + completion * output_price) / 1e6
        self.usage += Usage(1, prompt, cached, completion, cost)
