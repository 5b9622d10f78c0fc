from typing import Any

import pytest

from tests.transcripts.build import call, items, output


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ('{"error": "no such parcel"}', "no such parcel"),
        ({"error": "no such parcel"}, "no such parcel"),
        ('{"error": {"message": "late", "code": "E7"}}', "E7: late"),
        ('{"error": {"type": "http_error", "code": 500, "message": "down"}}', "http_error 500: down"),
        (
            '{"error": {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "no"}]}}',
            "mcp_tool_execution_error: no",
        ),
        ('{"error": {"reason": 1}}', '{"reason":1}'),
        ('{"error": ["a", "b"]}', '["a","b"]'),
        ('{"error": true}', "true"),
        ('{"error": 0}', "0"),
        ('{"isError": true, "content": [{"type": "text", "text": "quota"}]}', "quota"),
        ('{"is_error": true}', "isError"),
        ([{"type": "input_text", "text": '{"error": "in a part"}'}], "in a part"),
    ],
)
def test_the_record_says_that_it_failed(result: Any, error: str) -> None:
    made = items(call(), output(result)).calls[0]
    assert (made.outcome, made.failed, made.error) == ("failed", True, error)


@pytest.mark.parametrize("item", [{"error": "gone"}, {"status": "failed"}])
def test_the_output_item_says_that_it_failed(item: dict[str, Any]) -> None:
    assert items(call(), output("gone", **item)).calls[0].error == "gone"


@pytest.mark.parametrize(
    "result",
    [
        '{"error": null, "city": "Turin"}',
        '{"error": false}',
        '{"error": ""}',
        '{"error": []}',
        '{"error": {}}',
        '{"result": {"error": "nested"}}',
        '[{"error": "in a list"}]',
        "0 errors",
        "Errors are rare",
        '{"status": "ok"}',
        '{"status": 399}',
        '{"success": true}',
        '{"errors": []}',
        "Terror: a film",
        "",
        None,
        0,
        '{"ok": null}',
    ],
)
def test_not_a_failure(result: Any) -> None:
    made = items(call(), output(result)).calls[0]
    assert (made.outcome, made.error) == ("ok", None)


@pytest.mark.parametrize(
    "result",
    [
        "Error: parcel not found",
        " Exception in thread",
        "Traceback (most recent call last)",
        "KeyError: 'x'",
        "error: nope",
        "app.errors.NotFoundError: 7",
        "ERROR: 3",
        '{"success": false}',
        '{"ok": false}',
        '{"errors": ["x"]}',
        '{"exception": "x"}',
        '{"status": "error"}',
        '{"status": 404}',
        '{"status": 503.0}',
    ],
)
def test_only_reads_like_a_failure(result: str) -> None:
    made = items(call(), output(result)).calls[0]
    assert made.outcome == "suspected_failure"
    assert not made.failed
    assert made.error


def test_a_call_without_output_has_not_failed() -> None:
    made = items(call()).calls[0]
    assert (made.outcome, made.output_available, made.output_event) == ("no_output", False, None)
