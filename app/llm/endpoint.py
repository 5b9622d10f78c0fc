"""One HTTP exchange with a chat completions endpoint, bounded in time, bytes and number.

There is one client per process: a new one costs 40 ms of CPU and a connection per call. The SDK's own models are
left out (``client.post`` instead of ``.parse``): they cost four times the exchange itself and check nothing. Three
bounds the SDK does not give: a deadline for the whole exchange (its read timeout starts again with every byte of a
drip), a cap on the bytes of a response (a gzip bomb unpacks to gigabytes, so none is accepted compressed), and a
limit on the requests in flight.
"""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import httpx2
import openai

from app.llm.errors import EndpointError, refused


class ChatEndpoint:
    """An OpenAI-compatible endpoint. Share one per process, for all its models, and close it at the end.

    ``concurrency`` bounds the requests in flight; ``timeout_seconds`` runs from the moment a request has a slot to the
    last byte of its answer.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str,
        concurrency: int = 20,
        timeout_seconds: float = 120.0,
        connect_seconds: float = 5.0,
        max_response_bytes: int = 4 << 20,
    ) -> None:
        self._api_key = api_key
        self._timeout_seconds = timeout_seconds
        self._max_response_bytes = max_response_bytes
        self._slots = asyncio.Semaphore(concurrency)
        timeout = httpx2.Timeout(timeout_seconds, connect=connect_seconds, pool=None)
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=api_key or "none",  # the SDK insists on one; keyless local servers ignore it
            max_retries=0,
            timeout=timeout,
            default_headers={"Accept-Encoding": "identity"},
            http_client=openai.DefaultAioHttpClient(
                limits=httpx2.Limits(max_connections=concurrency, keepalive_expiry=60),
                timeout=timeout,
                follow_redirects=False,
                event_hooks={"response": [self._bound]},
            ),
        )

    async def post(self, body: bytes) -> bytes:
        """Send a chat completions request once a slot is free; return the body of a 2xx answer.

        Raises:
            EndpointError: for everything else. Its text never holds the key.
        """
        async with self._slots:
            try:
                async with asyncio.timeout(self._timeout_seconds):
                    response = await self._client.post("/chat/completions", cast_to=httpx2.Response, content=body)
            except TimeoutError:
                raise self._late() from None
            except openai.APIStatusError as error:
                raise self._refused(error.response) from None
            except (openai.OpenAIError, httpx2.HTTPError, aiohttp.ClientError, OSError) as error:
                raise self._broken(error) from None
        return response.content

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _bound(self, response: httpx2.Response) -> None:
        """Runs before any byte of the body is read."""
        if response.headers.get("content-encoding", "identity") != "identity":
            raise EndpointError("provider_error", "The judge endpoint sent a compressed body, which was not accepted.")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Capped(response.stream, self._max_response_bytes)

    def _refused(self, response: httpx2.Response) -> EndpointError:
        body = response.content
        if self._api_key:
            body = body.replace(self._api_key.encode(), b"[key]")
        return refused(response.status_code, response.headers, body)

    def _broken(self, error: BaseException) -> EndpointError:
        while error.__cause__ is not None:
            error = error.__cause__
        if isinstance(error, TimeoutError):
            return self._late()
        said = f"The connection to the judge endpoint failed ({type(error).__name__})."
        return EndpointError("provider_error", said, transient=True)

    def _late(self) -> EndpointError:
        said = f"The judge endpoint gave no complete answer within {self._timeout_seconds:g} s."
        return EndpointError("timeout", said, transient=True)


class _Capped(httpx2.AsyncByteStream):
    """A response body that stops being read at a number of bytes."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream = stream
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in self._stream:
            received += len(chunk)
            if received > self._limit:
                raise EndpointError("provider_error", f"The judge endpoint sent more than {self._limit} bytes.")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
