"""``forensic submit`` against a scripted service: what is sent, shown and returned."""

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from app.cli.client import Client
from app.cli.failure import CommandError
from app.cli.main import cli
from app.cli.progress import follow
from app.cli.submit import How, submit
from tests.cli.stub_service import Service, service

CHAT = b'{"messages": [{"role": "assistant",  "content": "x"}]}'
COUNTS = {"passed": 1, "failed": 0, "not_applicable": 2, "not_scored": 3, "error": 0}


def evaluation(**changes: Any) -> dict[str, Any]:
    return {
        "object": "forensic_evaluation",
        "id": "feval_1",
        "status": "completed",
        "result": "pass",
        "result_reason": None,
        "finished_at": "2026-01-01T00:00:00Z",
        "progress": {"total": 1, "queued": 0, "in_progress": 0, "completed": 1, "failed": 0, "canceled": 0},
        "verdicts": COUNTS,
        "by_dimension": {"task_completion": {**COUNTS, "pass_rate": 1.0}},
        "findings": {"info": 0, "low": 0, "medium": 0, "high": 0, "critical": 0},
        "warnings": [],
        **changes,
    }


def listing(*data: Any) -> dict[str, Any]:
    return {"object": "list", "data": data, "first_id": None, "last_id": None, "has_more": False}


CONVERSATION = {"id": "conv_1", "index": 0, "client_id": "tea", "status": "completed", "result": "pass"}
FINDING = {
    "id": "finding_1",
    "severity": "high",
    "conversation": 0,
    "dimension": "argument_validity",
    "title": "Argument breaks the schema",
    "why_it_matters": "The tool may do something else.",
    "description": "[red]not markup[/red] \x1b[2J",
    "evidence": [
        {
            "source": "items",
            "event": 3,
            "pointer": "/arguments",
            "start": 2,
            "end": 9,
            "quote": "\u202eoops",
            "role": "",
        }
    ],
}
ACCEPTED = (202, evaluation(status="queued", result=None, finished_at=None))
NOTHING_FOUND = (200, listing())
UNDECIDED = {"dimension": "task_completion", "reason_code": "no_judge_model", "rationale": "Nobody was asked."}


def run(*arguments: str, stdin: bytes | None = None) -> Any:
    return CliRunner().invoke(cli, ["submit", *arguments], input=stdin, env={"FORENSIC_API_KEY": "k" * 20})


def finished(**changes: Any) -> list[tuple[Any, ...]]:
    return [ACCEPTED, (200, evaluation(**changes)), (200, listing(CONVERSATION)), NOTHING_FOUND]


@pytest.fixture
def chat(tmp_path: Path) -> str:
    path = tmp_path / "chat.json"
    path.write_bytes(CHAT)
    return str(path)


@pytest.mark.parametrize(
    ("status", "result", "code"),
    [
        ("completed", "pass", 0),
        ("completed", "fail", 1),
        ("completed", "partial", 3),
        ("completed", "error", 3),
        ("completed", None, 3),
        ("canceled", None, 3),
        ("failed", "error", 3),
        ("failed", "fail", 1),
    ],
)
def test_the_exit_code_is_the_result(chat: str, status: str, result: str | None, code: int) -> None:
    with service(*finished(status=status, result=result, result_reason="why")) as stub:
        outcome = run(chat, "--url", stub.url)
    assert outcome.exit_code == code
    assert (result or "why") in outcome.stdout


def test_what_is_sent(chat: str) -> None:
    with service(*finished()) as stub:
        run(chat, "--url", stub.url + "/")
    post, wait = stub.asked[:2]
    assert (post.method, post.path) == ("POST", "/v1/forensic-evaluations")
    assert post.body == b'{"conversations":[' + CHAT + b"]}"
    assert post.headers["authorization"] == "Bearer " + "k" * 20
    assert post.headers["content-type"] == "application/json"
    assert len(post.headers["idempotency-key"]) > 30
    assert wait.path.startswith("/v1/forensic-evaluations/feval_1?wait=")


def test_standard_input(chat: str) -> None:
    with service(*finished()) as stub:
        outcome = run("-", "--url", stub.url, stdin=CHAT + b"\n" + CHAT)
    assert outcome.exit_code == 0
    assert stub.asked[0].body.count(CHAT) == 2


def test_progress_goes_to_stderr_and_json_alone_to_stdout(chat: str) -> None:
    with service(*finished()) as stub:
        outcome = run(chat, "--url", stub.url, "--json")
    assert json.loads(outcome.stdout) == evaluation()
    assert "examined 1 of 1" in outcome.stderr


def test_without_waiting_the_id_is_all(chat: str) -> None:
    with service(ACCEPTED) as stub:
        outcome = run(chat, "--url", stub.url, "--no-wait")
    assert outcome.exit_code == 0
    assert outcome.stdout.split() == ["feval_1", f"{stub.url}/v1/forensic-evaluations/feval_1"]
    assert len(stub.asked) == 1


def test_findings_are_shown_without_their_tricks(chat: str) -> None:
    tally = {"info": 0, "low": 0, "medium": 0, "high": 1, "critical": 0}
    answers = [*finished(result="fail", findings=tally)[:3], NOTHING_FOUND, (200, listing(FINDING)), NOTHING_FOUND]
    with service(*answers, NOTHING_FOUND, NOTHING_FOUND, (200, listing(UNDECIDED)), NOTHING_FOUND) as stub:
        outcome = run(chat, "--url", stub.url)
    shown = " ".join(outcome.stdout.split())
    assert "[red]not markup[/red]" in shown
    assert r"“\u202eoops”" in shown
    assert "items[3] arguments, characters 2-9: “" in shown
    assert "no_judge_model 1 task_completion Nobody was asked. Set FORENSIC_JUDGE_MODEL" in shown
    assert "The tool may do something else." in shown
    assert "\x1b[2J" not in outcome.stdout
    assert max(len(line) for line in outcome.stdout.splitlines()) <= 80


def test_what_was_ignored_or_redacted_is_told(chat: str) -> None:
    warnings = [
        {"conversation": 0, "pointer": "/messages/0", "code": "x", "message": "ignored \x1b[2J", "count": 3},
        {"conversation": None, "pointer": "/webhook", "code": "y", "message": "has no effect", "count": 1},
    ]
    with service(*finished(warnings=warnings)) as stub:
        outcome = run(chat, "--url", stub.url)
    assert r"tea /messages/0: ignored \x1b[2J (3 times)" in outcome.stdout
    assert "request /webhook: has no effect" in outcome.stdout


def test_a_refusal_names_file_line_and_place(tmp_path: Path) -> None:
    lines = tmp_path / "many.jsonl"
    lines.write_bytes(CHAT + b"\n\n" + CHAT + b"\n")
    problem = {
        "type": "about:blank",
        "title": "Unprocessable Content",
        "status": 422,
        "code": "invalid_request",
        "detail": "The body breaks rules.",
        "error_count": 2,
        "errors": [
            {"pointer": "/conversations/1/messages/0", "code": "x", "message": "is \x1b[1m wrong", "conversation": 1},
            {"pointer": "", "code": "y", "message": "is odd", "conversation": None, "line": 1, "column": 76},
        ],
    }
    with service((422, problem)) as stub:
        outcome = run(str(lines), "--url", stub.url)
    assert isinstance(outcome.exception, CommandError)
    assert outcome.exception.lines == (
        "The service answered 422: The body breaks rules.",
        rf"  {lines}:3: /messages/0 is \x1b[1m wrong",
        f"  {lines}, line 3, column 3: is odd",
    )


def test_more_problems_than_shown_are_counted(chat: str) -> None:
    errors = [{"pointer": f"/{n}", "code": "x", "message": "bad", "conversation": None} for n in range(100)]
    problem = {"detail": "d", "errors": errors, "error_count": None, "truncated": True}
    with service((422, problem)) as stub:
        outcome = run(chat, "--url", stub.url)
    assert isinstance(outcome.exception, CommandError)
    assert len(outcome.exception.lines) == 22
    assert "many in all" in outcome.exception.lines[-1]


def test_trouble_that_passes_is_waited_out_under_one_key(chat: str) -> None:
    busy = (503, {"detail": "busy"}, {"retry-after": "0"})
    with service(busy, busy, *finished()) as stub:
        outcome = run(chat, "--url", stub.url)
    assert outcome.exit_code == 0
    posts = [each for each in stub.asked if each.method == "POST"]
    assert len(posts) == 3
    assert len({each.headers["idempotency-key"] for each in posts}) == 1


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((401, {"detail": "No valid API key."}), "FORENSIC_API_KEY"),
        ((404, b"<html>"), "answered 404"),
        ((202, b"<html>"), "not this service"),
        ((202, [1]), "not this service"),
        ((503, {"detail": "busy"}, {"retry-after": "0"}), "answered 503: busy"),
    ],
)
def test_what_is_no_success_is_told(chat: str, answer: tuple[Any, ...], told: str) -> None:
    with service(answer) as stub:
        outcome = run(chat, "--url", stub.url)
    assert isinstance(outcome.exception, CommandError)
    assert told in str(outcome.exception)


def test_nobody_there(chat: str) -> None:
    with service() as stub:
        gone = Service([], url=stub.url)
    outcome = run(chat, "--url", gone.url)
    assert isinstance(outcome.exception, CommandError)
    assert "cannot be reached" in str(outcome.exception)


@pytest.mark.parametrize("url", ["nonsense", "ftp://x", "http://[::1"])
def test_a_url_that_cannot_be_used(chat: str, url: str) -> None:
    outcome = run(chat, "--url", url)
    assert isinstance(outcome.exception, CommandError)


def test_a_key_is_asked_for(chat: str) -> None:
    outcome = CliRunner().invoke(cli, ["submit", chat], env={"FORENSIC_API_KEY": ""})
    assert "FORENSIC_API_KEY" in str(outcome.exception)


def test_a_missing_file_is_told() -> None:
    outcome = run("no-such-file.json", "--url", "http://127.0.0.1:9")
    assert "no-such-file.json: No such file" in str(outcome.exception)


def test_no_file_is_a_usage_error() -> None:
    assert run().exit_code == 2


async def test_work_that_nobody_begins_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.progress.PATIENCE_SECONDS", -1)
    screen = io.StringIO()
    waiting = (200, ACCEPTED[1])
    with service(waiting, waiting, (200, evaluation())) as stub:
        async with Client(stub.url, "key") as client:
            await follow(client, "feval_1", Console(file=screen, width=200))
    assert screen.getvalue().count("perhaps no worker is running") == 1


async def test_whoever_does_not_wait_is_told_how_to_look(chat: str, capsys: pytest.CaptureFixture[str]) -> None:
    with service(ACCEPTED, (200, ACCEPTED[1])) as stub:
        waiting = asyncio.create_task(submit([chat], How(stub.url, "key", wait=True, as_json=False)))
        while len(stub.asked) < 2:
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert f"curl -sS {stub.url}/v1/forensic-evaluations/feval_1 -H" in capsys.readouterr().err


def test_an_id_is_never_broken(chat: str) -> None:
    identity = "feval_" + "0" * 100
    with service((202, evaluation(id=identity, finished_at=None))) as stub:
        outcome = run(chat, "--url", stub.url, "--no-wait")
    assert outcome.stdout == f"{identity}  {stub.url}/v1/forensic-evaluations/{identity}\n"


async def test_a_terminal_gets_a_bar() -> None:
    screen = io.StringIO()
    with service((200, evaluation())) as stub:
        async with Client(stub.url, "key") as client:
            assert await follow(client, "feval_1", Console(file=screen, force_terminal=True)) == evaluation()
    assert "examining" in screen.getvalue()
