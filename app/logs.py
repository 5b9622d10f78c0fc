"""Log lines that a machine can read and hostile text cannot forge.

A line is one JSON object on stderr: every control character in it is escaped, so a transcript that finds its way into a
message can neither start a line of its own nor steer a terminal. On a terminal the same records are shown as short
lines, escaped likewise. Messages and fields are clipped: a log is no place for a request body.
"""

import json
import logging
import sys
import unicodedata
from datetime import UTC, datetime
from typing import Any, TextIO

LONGEST_MESSAGE = 2_000
LONGEST_FIELD = 300
LONGEST_TRACEBACK = 20_000
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}
_CHATTY = ("alembic", "asyncio", "aiosqlite", "httpcore2", "httpx2", "openai", "sqlalchemy")


def set_up_logs(level: str = "info", stream: TextIO | None = None) -> None:
    """Send this process's log to ``stream`` (stderr): JSON lines, or short lines when it is a terminal.

    Libraries that log every statement or request do so only from ``warning`` on, whatever ``level`` is.
    """
    target = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(target)
    handler.setFormatter(TerminalFormatter() if target.isatty() else JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


class JsonFormatter(logging.Formatter):
    """One JSON object a record: time, level, logger, message, the fields given as ``extra``, and the exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, pure ASCII."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _clip(record.getMessage(), LONGEST_MESSAGE),
        }
        for name, value in _fields(record).items():
            line.setdefault(name, value)
        if record.exc_info:
            line["exception"] = _clip_middle(self.formatException(record.exc_info), LONGEST_TRACEBACK)
        return json.dumps(line)


class TerminalFormatter(logging.Formatter):
    """A short line for people; what follows from an exception keeps its line breaks and nothing else."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without control characters."""
        time = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        text = _clip(record.getMessage(), LONGEST_MESSAGE)
        line = escape_controls(f"{time} {record.levelname.lower():7} {record.name}: {text}{fields}")
        if record.exc_info:
            trace = _clip_middle(self.formatException(record.exc_info), LONGEST_TRACEBACK)
            line += "".join(f"\n{escape_controls(each)}" for each in trace.splitlines())
        return line


def escape_controls(text: str) -> str:
    r"""Return ``text`` with everything that steers a terminal or hides spelled out as ``\x..`` or ``\u....``.

    Control, format (bidirectional overrides, zero-width), surrogate, private-use and line-separating characters.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(each) if unicodedata.category(each) in _UNSAFE else each for each in text)


_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LAST_LATIN_1 = 0xFF


def _escape(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    return f"\\x{code:02x}" if code <= _LAST_LATIN_1 else f"\\u{code:04x}"


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """What the caller gave as ``extra``: numbers as they are, anything else as clipped text."""
    given = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return {
        name: value if value is None or isinstance(value, bool | int | float) else _clip(str(value), LONGEST_FIELD)
        for name, value in given.items()
    }


def _clip(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"


def _clip_middle(text: str, longest: int) -> str:
    """Clip a traceback where it says least: its ends name the entry point and the error."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]}\n…\n{text[-half:]}"
