"""Judge: one conversation from claim to end, resumable at every verdict.

The work is fenced by a lease that is beaten while it lasts. Whoever loses it stops and writes nothing more; whoever
is told to stop gives it back without burning an attempt.
"""

import asyncio
import contextlib
import hashlib
import hmac
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import zstandard

from app.findings.model import Subject, Usage, Verdict, errored
from app.judges.budget import BudgetedModel
from app.judges.catalogue import BY_NAME
from app.judges.contract import Bench, Case, JudgeModel, SchemaChecker
from app.judges.run import RetryIn, run
from app.judges.tools.schema_patience import PatientSchemas
from app.pipeline.errors import StoreUnavailableError
from app.pipeline.finish import finish, give_up
from app.pipeline.ports import Store
from app.pipeline.record import LeaseLostError, Recorder
from app.pipeline.recover import LEASE_SECONDS, MAX_ATTEMPTS
from app.pipeline.values import Claim, Lease
from app.transcripts.parsing import parse

_log = logging.getLogger(__name__)

_BIG_BYTES = 100_000
"""Size of a conversation from which it is read in a thread, so that beats and other conversations go on."""
_UNKNOWN_JUDGE_DELAY_SECONDS = 15.0
_GIVE_BACK_SECONDS = 2.0
_BUDGETS = 1000


@dataclass(frozen=True, slots=True)
class Examiner:
    """Everything that judging needs. ``model_for`` maps the evaluation's model option to a judge model."""

    store: Store
    schemas: SchemaChecker
    model_for: Callable[[str | None], JudgeModel | None]
    nonce_key: bytes = field(repr=False)
    lease_seconds: float = LEASE_SECONDS
    max_attempts: int = MAX_ATTEMPTS
    retry_deadline_seconds: float = 86_400.0
    attempt_seconds: float = 840.0
    """How long one attempt may take; one that has stored verdicts by then is continued, not counted."""
    _budgets: dict[str, BudgetedModel] = field(default_factory=dict, init=False, repr=False)

    async def judge(self, conversation_id: str) -> None:
        """Judge a conversation if it is there to be taken; asking twice is asking once."""
        try:
            async with self.store.begin() as tx:
                claim = await tx.claim(conversation_id, self.lease_seconds)
        except StoreUnavailableError as error:
            _log.warning("%s cannot be taken now: %s", conversation_id, error)
            return
        if claim is None:
            return
        recorder = Recorder(self.store, claim.lease)
        try:
            async with asyncio.timeout(self.attempt_seconds):
                await self._under_lease(claim, recorder)
        except asyncio.CancelledError:
            await _give_back(self.store, claim.lease)
            raise
        except LeaseLostError:
            _log.info("%s was taken over or withdrawn", conversation_id)
        except StoreUnavailableError as error:
            _log.warning("%s is left to the reaper: %s", conversation_id, error)
        except TimeoutError:
            _log.warning("%s: attempt %d took too long", conversation_id, claim.attempt)
            await self._after_failure(claim, "timeout", burn_attempt=not recorder.stored)
        except Exception:  # noqa: BLE001 - a poison conversation must end, whatever it does to us
            _log.exception("%s: attempt %d failed", conversation_id, claim.attempt)
            await self._after_failure(claim, "internal_error", burn_attempt=True)

    async def _under_lease(self, claim: Claim, recorder: Recorder) -> None:
        """Examine while a beat keeps the lease; the first of the two that fails ends the other."""
        work = asyncio.ensure_future(self._examine(claim, recorder))
        beat = asyncio.ensure_future(_beat(self.store, claim.lease, self.lease_seconds))
        try:
            await asyncio.wait({work, beat}, return_when=asyncio.FIRST_COMPLETED)
            if beat.done():
                beat.result()
            await work
        finally:
            for task in (work, beat):
                task.cancel()
            await asyncio.wait({work, beat})

    async def _examine(self, claim: Claim, recorder: Recorder) -> None:
        late = claim.waited_seconds >= self.retry_deadline_seconds
        unknown = [name for name in claim.judges if name not in BY_NAME]
        if unknown and not late:  # a newer API accepted them: leave the work to a newer worker
            _log.warning("%s: no judge named %s here", claim.lease.conversation_id, ", ".join(unknown))
            await _put_back(self.store, claim.lease, _UNKNOWN_JUDGE_DELAY_SECONDS, burn_attempt=False)
            return
        case = await self._case(claim)
        bench = Bench(PatientSchemas(self.schemas), self._model(claim))
        async with recorder:
            for name in unknown:
                await recorder.add(_nobody_knows(name))
            outcome = await run(
                [BY_NAME[name] for name in claim.judges if name in BY_NAME],
                case,
                bench,
                recorder.add,
                done=claim.done,
                votes=claim.options.votes,
                may_wait=not late,
            )
        if isinstance(outcome, RetryIn):
            await _put_back(self.store, claim.lease, outcome.seconds, burn_attempt=False, usage=outcome.usage)
        else:
            await finish(self.store, claim.lease)

    async def _case(self, claim: Claim) -> Case:
        if zstandard.get_frame_parameters(claim.body).content_size > _BIG_BYTES:
            return await asyncio.to_thread(self._read, claim)
        return self._read(claim)

    def _read(self, claim: Claim) -> Case:
        raw = zstandard.decompress(claim.body)
        nonce = hmac.digest(self.nonce_key, hashlib.sha256(raw).digest(), "sha256").hex()[:16]
        return Case(parse(raw), nonce, claim.target, claim.options.scope)

    def _model(self, claim: Claim) -> JudgeModel | None:
        """Return the model, within the evaluation's budget where it has one."""
        model = self.model_for(claim.options.model)
        options = claim.options
        if model is None or (options.max_tokens is None and options.max_cost_usd is None):
            return model
        budget = self._budgets.get(claim.evaluation_id)
        if budget is None:
            if len(self._budgets) >= _BUDGETS:
                del self._budgets[next(iter(self._budgets))]
            budget = BudgetedModel(model, max_tokens=options.max_tokens, max_cost_usd=options.max_cost_usd)
            self._budgets[claim.evaluation_id] = budget
        budget.at_least(claim.tokens_spent, claim.cost_spent_usd)
        return budget

    async def _after_failure(self, claim: Claim, reason_code: str, *, burn_attempt: bool) -> None:
        """Try again later, or end it: a poison conversation must not be judged for ever."""
        with contextlib.suppress(StoreUnavailableError):  # then the lease runs out and the reaper decides
            if burn_attempt and claim.attempt >= self.max_attempts:
                await give_up(self.store, claim, reason_code)
            else:
                await _put_back(self.store, claim.lease, float(2**claim.attempt), burn_attempt=burn_attempt)


def _nobody_knows(name: str) -> Verdict:
    reason = f"No judge named {name!r} has been here since the evaluation was submitted."
    return Verdict(name, "output", "0", Subject(), "binary", None, errored("unknown_judge", reason))


async def _beat(store: Store, lease: Lease, lease_seconds: float) -> None:
    """Prolong the lease for ever.

    Raises:
        LeaseLostError: it belongs to another now, or the conversation is gone.
    """
    while True:
        await asyncio.sleep(lease_seconds / 3)
        try:
            async with store.begin() as tx:
                ours = await tx.extend(lease, lease_seconds)
        except StoreUnavailableError:
            continue  # the lease has two more thirds to go; every write is fenced anyway
        if not ours:
            raise LeaseLostError


async def _put_back(
    store: Store, lease: Lease, delay_seconds: float, *, burn_attempt: bool, usage: Usage = Usage()
) -> None:
    async with store.begin() as tx:
        await tx.put_back(lease, delay_seconds=delay_seconds, burn_attempt=burn_attempt, usage=usage)


async def _give_back(store: Store, lease: Lease) -> None:
    """Return the work at once: this process is told to stop. Bounded, since it will not be asked twice."""
    with contextlib.suppress(StoreUnavailableError, TimeoutError):
        async with asyncio.timeout(_GIVE_BACK_SECONDS):
            await asyncio.shield(_put_back(store, lease, 0.0, burn_attempt=False))
