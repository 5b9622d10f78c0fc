"""A question taken to its end: asked, asked again where that can help, validated, paid for.

Time is bounded on every path: an exchange has a deadline, transient trouble a number of attempts and short waits, a cut
answer one retry with more room, a malformed one a single repair turn. Never a number made of a failure: what cannot
be had ends as ``JudgeModelError``.
"""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256

from app.judges.contract import Answer, JudgeModelError, Prompt
from app.llm.answers import AnswerFormat, MalformedAnswerError
from app.llm.completion import Choice, read
from app.llm.endpoint import ChatEndpoint
from app.llm.errors import EndpointError
from app.llm.parameters import Message, Parameters
from app.llm.spending import Prices, Spending

_MAX_QUOTED_CHARS = 8000


@dataclass(frozen=True, slots=True)
class Patience:
    """How transient trouble is met: full jitter under a doubling ceiling, and Retry-After where it is short."""

    attempts: int = 4
    late_attempts: int = 2
    """A request that timed out has cost its whole deadline and held a slot for it: less often."""
    first_seconds: float = 0.5
    most_seconds: float = 8.0
    longest_wait_seconds: float = 20.0
    """A longer Retry-After is not slept through: the conversation goes back to the queue for that long."""

    def pause(self, error: EndpointError, failures: int) -> float:
        """Return how many seconds to wait after ``failures`` failed attempts.

        Raises:
            EndpointError: ``error``, when trying again cannot help or has been done enough.
        """
        asked = error.wait_seconds or 0.0
        attempts = self.late_attempts if error.reason_code == "timeout" else self.attempts
        if not error.transient or failures >= attempts or asked > self.longest_wait_seconds:
            raise error
        ceiling = min(self.most_seconds, self.first_seconds * 2 ** (failures - 1))
        return asked + random.uniform(0, ceiling)  # noqa: S311 - spreads load, keeps no secret

    def come_back(self, error: EndpointError) -> float | None:
        """Return after how many seconds the whole conversation should be tried again; None: not at all."""
        if error.transient and error.reason_code == "rate_limited":
            return max(error.wait_seconds or 0.0, self.longest_wait_seconds)
        long = (error.wait_seconds or 0.0) > self.longest_wait_seconds
        return error.wait_seconds if long else None


class OpenAIJudgeModel:
    """A model behind an OpenAI-compatible endpoint; satisfies ``app.judges.contract.JudgeModel``.

    Keep one per model for the process: it remembers which parameters the model accepts.
    """

    def __init__(
        self, endpoint: ChatEndpoint, model: str, *, prices: Prices | None = None, patience: Patience | None = None
    ) -> None:
        self._endpoint = endpoint
        self._model = model
        self._price = (prices or {}).get(model)
        self._patience = patience or Patience()
        self._parameters = Parameters()

    async def ask(self, prompt: Prompt) -> Answer:
        """Return a validated answer; see ``JudgeModel.ask``."""
        question = _Question(prompt)
        spending = Spending(self._price)
        try:
            value = await self._settle(question, spending)
        except EndpointError as error:
            come_back = self._patience.come_back(error)
            raise JudgeModelError(
                error.reason_code, str(error), retry_after_seconds=come_back, usage=spending.usage
            ) from error
        digest = _fingerprint(self._model, prompt, question.format.schema)
        return Answer(value, self._model, digest, spending.usage, attempts=spending.usage.requests)

    async def _settle(self, question: "_Question", spending: Spending) -> Mapping[str, object]:
        """Ask until there is an answer: at most one retry with more room and one repair turn."""
        while True:
            choice = await self._exchange(question, spending)
            try:
                return question.format.read(choice.text)
            except MalformedAnswerError as problem:
                if choice.refusal:
                    raise EndpointError("invalid_judge_output", choice.refusal) from None
                question.again(choice, problem)
                if choice.cut:
                    # A model that thinks beyond its room would be cut again, so it keeps the larger one.
                    self._parameters = replace(self._parameters, roomy=True)

    async def _exchange(self, question: "_Question", spending: Spending) -> Choice:
        """Return what the model wrote, through transient trouble and refused parameters."""
        failures = 0
        parameters = known = self._parameters
        while True:
            body = parameters.body(self._model, question.messages, question.format.schema, question.tokens)
            try:
                completion = read(await self._endpoint.post(body))
            except EndpointError as error:
                spending.failed()
                simpler = parameters.without(error)
                if simpler is not None:
                    parameters = simpler
                    continue
                failures += 1
                await asyncio.sleep(self._patience.pause(error, failures))
            else:
                spending.answered(completion.usage)
                if parameters is not known:
                    self._parameters = replace(parameters, roomy=self._parameters.roomy)
                return completion.choices[0]


class _Question:
    """A prompt as messages, growing by one repair turn at most."""

    def __init__(self, prompt: Prompt) -> None:
        self.format = AnswerFormat(prompt.answer_schema)
        self.tokens = prompt.max_output_tokens
        asked = f"{prompt.transcript}\n\n{prompt.question}"
        self.messages: list[Message] = [
            {"role": "system", "content": prompt.system},
            {"role": "user", "content": asked},
        ]
        self._cut = False
        self._repaired = False

    def again(self, choice: Choice, problem: MalformedAnswerError) -> None:
        """Prepare the next turn after an unusable answer.

        Raises:
            EndpointError: when its one chance has been used.
        """
        if choice.cut:
            if self._cut:
                raise EndpointError("invalid_judge_output", "The judge model's answer was cut off, twice.")
            self._cut = True
            return
        if self._repaired:
            raise EndpointError("invalid_judge_output", f"The judge model's answer is unusable, twice: {problem}")
        self._repaired = True
        demand = (
            f"That is not usable: {problem}. Answer the same question again with one JSON object that satisfies this "
            f"JSON Schema, and nothing else:\n{self.format.schema.decode()}"
        )
        self.messages += [
            {"role": "assistant", "content": choice.text[:_MAX_QUOTED_CHARS] or "(nothing)"},
            {"role": "user", "content": demand},
        ]


def _fingerprint(model: str, prompt: Prompt, schema: bytes) -> str:
    """Return the SHA-256 of everything that decides the answer: model, parameters, rendered prompt and schema.

    Parameters as meant, not as the endpoint made us adapt them: a question has the same fingerprint before and after
    its model's refusals were learnt.
    """
    parameters = f"temperature=0 tokens={prompt.max_output_tokens}"
    texts = [model, parameters, prompt.system, prompt.transcript, prompt.question]
    return sha256(b"\0".join([*(text.encode() for text in texts), schema])).hexdigest()
