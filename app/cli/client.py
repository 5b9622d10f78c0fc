"""The service's HTTP API, as far as the command line needs it."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2

from app.cli.bodies import Submission
from app.cli.failure import CommandError
from app.logs import escape_controls

PATH = "/v1/forensic-evaluations"
MOST_TRIES = 4
LONGEST_PAUSE_SECONDS = 20.0
POLL_SECONDS = 2
MOST_ERRORS_SHOWN = 20
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_TRANSIENT = {429, 502, 503, 504}


class Client:
    """Speaks to one service with one API key. Trouble that may pass is waited out for a while.

    A service that was never reached is more likely not there at all: that is told at once.
    """

    def __init__(self, url: str, api_key: str) -> None:
        try:
            self._http = _connections(url, api_key)
        except (httpx2.InvalidURL, ValueError) as error:
            raise CommandError(f"The URL or the API key cannot be used: {escape_controls(str(error))}") from None
        self._url = escape_controls(url)
        self._reached = False

    async def __aenter__(self) -> Self:
        """Open the connections."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close them."""
        await self._http.aclose()

    async def submit(self, submission: Submission) -> dict[str, Any]:
        """Submit a request body once, however often it has to be sent, and return the evaluation.

        Raises:
            CommandError: it was refused (every problem with its place in the files), or the service cannot be
                reached.
        """
        headers = {"content-type": "application/json", "idempotency-key": str(uuid.uuid4())}
        answer = await self._send("POST", PATH, content=submission.body, headers=headers)
        if answer.status_code != httpx2.codes.ACCEPTED:
            raise refusal(answer, submission)
        return _object(answer)

    async def states(self, evaluation_id: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the evaluation every few seconds, the last time when it has ended."""
        wait = 0
        while True:
            state = await self.get(f"{PATH}/{evaluation_id}", wait=str(wait))
            yield state
            if state["finished_at"] is not None:
                return
            wait = POLL_SECONDS

    async def get(self, path: str, **query: str) -> dict[str, Any]:
        """Return an object."""
        answer = await self._send("GET", path, params=query)
        if answer.status_code != httpx2.codes.OK:
            raise refusal(answer)
        return _object(answer)

    async def every(self, path: str, **query: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the objects of a list, part by part."""
        query = {**query, "limit": "100"}
        while True:
            part = await self.get(path, **query)
            for each in part["data"]:
                yield each
            if not part["has_more"]:
                return
            query["after"] = part["last_id"]

    async def _send(self, method: str, path: str, **how: Any) -> httpx2.Response:
        for attempt in range(1, MOST_TRIES + 1):
            pause = min(2.0**attempt / 2, LONGEST_PAUSE_SECONDS)
            try:
                answer = await self._http.request(method, path, **how)
            except httpx2.TransportError as error:
                if attempt == MOST_TRIES or not self._reached:
                    reason = escape_controls(str(error)) or type(error).__name__
                    raise CommandError(f"The service at {self._url} cannot be reached: {reason}") from None
            except httpx2.HTTPError as error:
                raise CommandError(f"The request cannot be made: {escape_controls(str(error))}") from None
            else:
                self._reached = True
                if answer.status_code not in _TRANSIENT or attempt == MOST_TRIES:
                    return answer
                pause = _asked_pause(answer, pause)
            await asyncio.sleep(pause)
        raise AssertionError("the last try returns or raises")


def _connections(url: str, api_key: str) -> httpx2.AsyncClient:
    """Open none yet. Raises ValueError for what cannot be a URL or a key."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"}:
        raise ValueError(f"{url} does not begin with http:// or https://")
    return httpx2.AsyncClient(
        base_url=url,
        headers={"authorization": f"Bearer {api_key}"},
        timeout=httpx2.Timeout(60, read=120, write=120),
        # A proxy of the environment cannot reach this machine's own loopback.
        trust_env=parts.hostname not in LOOPBACK,
    )


def _object(answer: httpx2.Response) -> dict[str, Any]:
    try:
        value = answer.json()
    except ValueError:
        value = None
    if not isinstance(value, dict) or "object" not in value:
        raise CommandError(f"What answers at {answer.url.host} is not this service.")
    return value


def _asked_pause(answer: httpx2.Response, otherwise: float) -> float:
    try:
        return min(float(answer.headers["retry-after"]), LONGEST_PAUSE_SECONDS)
    except (KeyError, ValueError):
        return otherwise


def refusal(answer: httpx2.Response, submission: Submission | None = None) -> CommandError:
    """Tell an answer that is no success, with each problem's place."""
    try:
        problem = answer.json()
        detail = str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        return CommandError(f"The service answered {answer.status_code}, and not as this service would.")
    lines = [f"The service answered {answer.status_code}: {escape_controls(detail)}"]
    errors: Sequence[Mapping[str, Any]] = problem.get("errors") or ()
    lines += [f"  {_problem_line(each, submission)}" for each in errors[:MOST_ERRORS_SHOWN]]
    total = problem.get("error_count")
    if len(errors) > MOST_ERRORS_SHOWN or total is None or total > len(errors):
        lines.append(f"  … ({'many' if total is None else total} in all)" if errors else "")
    if answer.status_code == httpx2.codes.UNAUTHORIZED:
        lines.append("Set FORENSIC_API_KEY (or --api-key) to a key of that service.")
    return CommandError(*filter(None, lines))


def _problem_line(error: Mapping[str, Any], submission: Submission | None) -> str:
    """Name the place by file and line where that is known; the pointer is then from the conversation's root."""
    pointer = escape_controls(str(error.get("pointer") or ""))
    message = escape_controls(str(error.get("message")))
    index, line, column = error.get("conversation"), error.get("line"), error.get("column")
    if submission is None:
        return f"{pointer} {message}".strip()
    if isinstance(line, int) and isinstance(column, int):
        return f"{submission.locate(line, column)}: {message}"
    if isinstance(index, int) and index < len(submission.places):
        inside = pointer.removeprefix(f"/conversations/{index}")
        return " ".join(filter(None, (f"{submission.places[index]}:", inside, message)))
    whole = f"{submission.starts[0].name}: " if len(submission.starts) == 1 else ""
    return f"{whole}{pointer} {message}".strip()
