"""Log lines: one record is one line, whatever text is in it."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.logs import JsonFormatter, TerminalFormatter, escape_controls, set_up_logs


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


def record(message: str, **fields: object) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "app.x", "levelname": "INFO", "levelno": 20, "msg": message, **fields})


@given(st.text(), st.text())
def test_a_record_is_one_json_line(message: str, value: str) -> None:
    line = JsonFormatter().format(record(message, conversation=value))
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["logger"] == "app.x"


@given(st.text())
def test_a_record_is_one_terminal_line(message: str) -> None:
    line = TerminalFormatter().format(record(message, note=message))
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line
    assert "\u202e" not in line


def test_messages_and_fields_are_clipped() -> None:
    line = json.loads(JsonFormatter().format(record("m" * 9_999, body="b" * 9_999, count=7)))
    assert len(line["message"]) < 2_100
    assert len(line["body"]) < 350
    assert line["count"] == 7


def test_a_field_cannot_replace_what_the_line_is_about() -> None:
    assert json.loads(JsonFormatter().format(record("real", level="forged")))["level"] == "info"


def test_an_exception_keeps_both_ends(root: logging.Logger) -> None:
    stream = io.StringIO()
    set_up_logs("info", stream)
    try:
        dict[str, int]()["the cause " + "x" * 50_000 + " the end"]
    except KeyError:
        logging.getLogger("app").exception("it broke")
    line = json.loads(stream.getvalue())
    assert line["exception"].startswith("Traceback")
    assert line["exception"].endswith("the end'")
    assert len(line["exception"]) < 21_000


def test_level_and_chatty_libraries(root: logging.Logger) -> None:
    stream = io.StringIO()
    set_up_logs("info", stream)
    logging.getLogger("app").debug("no")
    logging.getLogger("httpx2").info("no")
    logging.getLogger("app").info("yes")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["yes"]


def test_a_terminal_gets_short_lines(root: logging.Logger) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    set_up_logs("info", stream)
    logging.getLogger("app").warning("two\nlines", extra={"port": 1})
    assert stream.getvalue().rstrip("\n").endswith(r"warning app: two\nlines port=1")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größe 漢字 😀", "größe 漢字 😀"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\r\n\tb", r"a\r\n\tb"),
        ("\x00\x9b", r"\x00\x9b"),
        ("safe\u202egnp.exe", r"safe\u202egnp.exe"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_steers_a_terminal_is_spelled_out(text: str, shown: str) -> None:
    assert escape_controls(text) == shown
