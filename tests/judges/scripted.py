"""A judge model that says what a test wants, and bench and case to go with it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs

from app.findings.model import Decision, Subject, Usage
from app.judges.contract import Answer, Bench, Case, Judge, JudgeModel, Prompt, SchemaCheck
from app.transcripts.parsing import parse

NONCE = "8f14e45fceea167a"


class NoSchemas:
    """Model judges check no client schemas."""

    async def check(self, jobs: Any) -> list[SchemaCheck]:
        raise AssertionError(f"nobody should check {jobs}")


@dataclass
class ScriptedModel:
    """Answers each prompt with what ``script`` makes of it, held to the prompt's schema; keeps the prompts."""

    script: Callable[[Prompt], Mapping[str, Any]]
    prompts: list[Prompt] = field(default_factory=list)

    async def ask(self, prompt: Prompt) -> Answer:
        self.prompts.append(prompt)
        value = self.script(prompt)
        jsonschema_rs.validate(dict(prompt.answer_schema), value)
        return Answer(value, "scripted", "0" * 64, Usage(1, 100, 40, 20, 0.25), attempts=1)


def says(label: str, *findings: Mapping[str, Any], **additions: Any) -> ScriptedModel:
    """A model that always gives the same answer."""
    return ScriptedModel(lambda _: {"reasoning": "because", "label": label, "findings": list(findings), **additions})


def finding(event: int | str, quote: str, code: str | None = None) -> dict[str, Any]:
    """A finding as a model gives it."""
    cited = event if isinstance(event, str) else f"e{event}"
    item: dict[str, Any] = {"evidence": [{"event": cited, "quote": quote}], "description": "what is wrong"}
    return item if code is None else item | {"code": code}


def case_of(document: Mapping[str, Any]) -> Case:
    """A conversation as judges see it."""
    return Case(parse(json.dumps(document).encode()), NONCE)


def bench_with(model: JudgeModel | None) -> Bench:
    """What judges may use."""
    return Bench(schemas=NoSchemas(), model=model)


async def decided(judge: Judge, case: Case, model: JudgeModel | None, subject: Subject | None = None) -> Decision:
    """Let a judge decide its first subject, or the one given."""
    return await judge.decide(case, subject or judge.subjects(case)[0], bench_with(model))
