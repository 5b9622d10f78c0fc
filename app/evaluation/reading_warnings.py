"""Warnings of half a million conversations in a list that a client can read."""

from collections.abc import Iterable

from app.evaluation.model import EvaluationRequest, EvaluationWarning
from app.transcripts.model import Warning_

MOST_WARNINGS = 100
"""Warnings that an evaluation lists; those of a single conversation are all kept with it."""

_UNHEEDED = {
    "target": "It is kept with the evaluation, but no judge of this version reads it.",
    "webhook": "It is kept and its delivery is recorded, but this version does not send it: wait, poll or stream.",
}


class Warnings:
    """Collects the warnings of a request: the first hundred, and how many more there were."""

    def __init__(self) -> None:
        self._kept: list[EvaluationWarning] = []
        self._excess = 0

    def add(self, conversation: int | None, warning: Warning_) -> None:
        """Note a warning about one conversation, or about the request."""
        if len(self._kept) < MOST_WARNINGS - 1:
            self._kept.append(EvaluationWarning(conversation, warning))
        else:
            self._excess += 1

    def add_all(self, conversation: int, warnings: Iterable[Warning_]) -> None:
        """Note the warnings of a conversation."""
        for warning in warnings:
            self.add(conversation, warning)

    def add_unheeded(self, request: EvaluationRequest) -> None:
        """Note what a client asked for that has no effect: nobody should wait for it."""
        for name, message in _UNHEEDED.items():
            if getattr(request, name) is not None:
                self._kept.insert(0, EvaluationWarning(None, Warning_(f"/{name}", f"{name}_unheeded", message)))

    def listed(self) -> tuple[EvaluationWarning, ...]:
        """Return at most a hundred entries, the last of which counts what is not listed."""
        if not self._excess:
            return tuple(self._kept)
        message = "further warnings, each kept with its conversation"
        return (*self._kept, EvaluationWarning(None, Warning_("", "more_warnings", message, self._excess)))
