"""The only place where ports meet adapters: the real things, made from Settings.

Whoever enters ``api_parts`` or ``worker_parts`` gets them running and leaves them closed. Without a Redis URL the
process that holds the API does the judging too.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from app.intake.process_intake import ProcessIntake
from app.judges.budget import UnavailableModel
from app.judges.catalogue import JUDGES
from app.judges.contract import JudgeModel
from app.llm.endpoint import ChatEndpoint
from app.llm.judge_model import OpenAIJudgeModel
from app.pipeline.access import ensure_bootstrap_key
from app.pipeline.judge import Examiner
from app.pipeline.ports import Intake, Queue, Store
from app.pipeline.recover import dispatch
from app.pipeline.values import Rules
from app.queueing.arq_queue import ArqQueue, connect
from app.queueing.arq_worker import listen
from app.queueing.fallback import FallbackQueue
from app.queueing.in_process import InProcessQueue
from app.queueing.stopping import stop
from app.sandbox.checker import SandboxChecker
from app.settings import Settings
from app.storage.store import DatabaseStore

_OPENAI = "https://api.openai.com/v1"
_LISTENER_SECONDS = 10.0
"""What a listener may need to let its jobs give their work back; it hears the first cancellation for sure."""


@dataclass(frozen=True, slots=True)
class ApiParts:
    """What the API needs."""

    store: Store
    queue: Queue
    intake: Intake
    rules: Rules


def rules_of(settings: Settings) -> Rules:
    """Return what requests may ask for."""
    return Rules(
        judges={judge.name: judge.default for judge in JUDGES},
        models=settings.models,
        webhook_http_hosts=bool(settings.webhook_allow_cidrs),
    )


@contextlib.asynccontextmanager
async def api_parts(settings: Settings) -> AsyncIterator[ApiParts]:
    """Run everything an API process needs; without Redis that includes a worker."""
    async with contextlib.AsyncExitStack() as stack:
        store = await _store(settings, stack)
        await ensure_bootstrap_key(store, settings.api_key())
        intake = ProcessIntake(in_flight_bytes=settings.in_flight_bytes)
        stack.push_async_callback(intake.aclose)
        if settings.redis_url is None:
            queue: Queue = await _in_process(settings, store, stack)
        else:
            redis = ArqQueue(connect(settings.redis_url.get_secret_value()))
            stack.push_async_callback(redis.aclose)
            queue = redis
        yield ApiParts(store, queue, intake, rules_of(settings))


async def run_worker(settings: Settings) -> None:
    """Judge conversations until cancelled."""
    if settings.redis_url is None:
        raise ValueError("a worker of its own needs FORENSIC_REDIS_URL; without Redis the API process judges")
    url = settings.redis_url.get_secret_value()
    async with contextlib.AsyncExitStack() as stack:
        store = await _store(settings, stack)
        await store.check()
        examiner = await _examiner(settings, store, stack)
        redis = ArqQueue(connect(url))
        stack.push_async_callback(redis.aclose)
        own = InProcessQueue(examiner.judge, settings.worker_max_jobs)
        stack.push_async_callback(own.aclose)
        tasks = (
            asyncio.create_task(_dispatch(settings, store, FallbackQueue(redis, own))),
            asyncio.create_task(listen(url, examiner.judge, max_jobs=settings.worker_max_jobs)),
        )
        dispatching, listening = tasks
        stack.push_async_callback(stop, dispatching, again_seconds=0.5)  # its transactions may be cut short
        stack.push_async_callback(stop, listening, again_seconds=_LISTENER_SECONDS)
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()


async def migrate(settings: Settings) -> None:
    """Bring the database's schema up to date."""
    store = _database(settings)
    try:
        await store.migrate()
    finally:
        await store.aclose()


async def _in_process(settings: Settings, store: Store, stack: contextlib.AsyncExitStack) -> InProcessQueue:
    examiner = await _examiner(settings, store, stack)
    queue = InProcessQueue(examiner.judge, settings.worker_max_jobs)
    stack.push_async_callback(queue.aclose)
    stack.push_async_callback(stop, asyncio.create_task(_dispatch(settings, store, queue)))
    return queue


async def _dispatch(settings: Settings, store: Store, queue: Queue) -> None:
    await dispatch(store, queue, max_attempts=settings.max_attempts, lease_seconds=settings.lease_seconds)


async def _examiner(settings: Settings, store: Store, stack: contextlib.AsyncExitStack) -> Examiner:
    schemas = SandboxChecker()
    stack.push_async_callback(schemas.aclose)
    return Examiner(
        store=store,
        schemas=schemas,
        model_for=_models(settings, stack),
        nonce_key=hashlib.sha256(b"nonce:" + settings.secret().encode()).digest(),
        lease_seconds=settings.lease_seconds,
        max_attempts=settings.max_attempts,
        retry_deadline_seconds=settings.retry_deadline_seconds,
    )


def _models(settings: Settings, stack: contextlib.AsyncExitStack) -> Callable[[str | None], JudgeModel | None]:
    """Return what finds the judge model of an evaluation: the one it asked for, else the default, else none."""
    if not settings.models:
        return lambda _: None
    key = settings.judge_api_key
    endpoint = ChatEndpoint(
        base_url=settings.judge_base_url or _OPENAI,
        api_key="" if key is None else key.get_secret_value(),
        concurrency=settings.judge_concurrency,
        timeout_seconds=settings.judge_timeout_seconds,
    )
    stack.push_async_callback(endpoint.aclose)
    prices = {
        name: (price.input, price.input if price.cached is None else price.cached, price.output)
        for name, price in settings.judge_prices.items()
    }
    models: dict[str, JudgeModel] = {name: OpenAIJudgeModel(endpoint, name, prices=prices) for name in settings.models}
    return lambda name: models[settings.models[0]] if name is None else models.get(name) or UnavailableModel(name)


def _database(settings: Settings) -> DatabaseStore:
    if settings.embedded:
        settings.make_data_dir()
    return DatabaseStore(settings.database, settings.secret(), pool_size=settings.database_pool_size)


async def _store(settings: Settings, stack: contextlib.AsyncExitStack) -> DatabaseStore:
    store = _database(settings)
    stack.push_async_callback(store.aclose)
    return store
