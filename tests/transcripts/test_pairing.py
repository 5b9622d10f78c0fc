from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.transcripts.pairing import Pairing, Step, pair

KEYS = st.sampled_from(["a", "b", None])
STEPS = st.lists(
    st.tuples(
        st.booleans(),
        st.sampled_from(["function", "shell"]),
        KEYS,
        st.sampled_from(["x", None]),
        st.sampled_from(["f", "g", None]),
    ),
    max_size=14,
).map(lambda rows: [Step(number, *row) for number, row in enumerate(rows)])


@given(STEPS)
def test_every_output_is_accounted_for_once_and_stays_in_its_family(steps: list[Step]) -> None:
    pairing = pair(steps)
    outputs = [step.event for step in steps if not step.is_call]
    assert sorted([*pairing.outputs.values(), *pairing.second, *pairing.orphans]) == outputs
    for call, output in pairing.outputs.items():
        assert steps[call].is_call
        assert steps[call].family == steps[output].family
        if steps[output].key is not None:
            assert steps[output].key in (steps[call].key, steps[call].item_id)
    assert sorted(pairing.early) == sorted(out for call, out in pairing.outputs.items() if out < call)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("ab")), max_size=14))
def test_with_ids_outputs_close_calls_first_in_first_out(rows: list[tuple[bool, str]]) -> None:
    steps = [Step(number, is_call, "function", key) for number, (is_call, key) in enumerate(rows)]
    pairing = pair(steps)
    waiting: dict[str, list[int]] = defaultdict(list)
    expected: dict[int, int] = {}
    for step in steps:
        if step.is_call:
            waiting[step.key or ""].append(step.event)
        elif waiting[step.key or ""]:
            expected[waiting[step.key or ""].pop(0)] = step.event
    in_order = {call: out for call, out in pairing.outputs.items() if out > call}
    assert in_order == expected


def calls_and_outputs(text: str) -> Pairing:
    """Read ``C1f`` as a call with id 1 and name f, ``O-f`` as an output with a name and no id."""
    return pair(
        [
            Step(number, word[0] == "C", "function", word[1:2].strip("-") or None, None, word[2:] or None)
            for number, word in enumerate(text.split())
        ]
    )


@pytest.mark.parametrize(
    ("record", "outputs"),
    [
        ("C1 C2 O2 O1", {0: 3, 1: 2}),
        ("C1 O1 C1 O1", {0: 1, 2: 3}),
        ("C1 C1 O1 O1", {0: 2, 1: 3}),
        ("C1f C2g O-g O-f", {0: 3, 1: 2}),
        ("C1f C2f O-f O-f", {0: 2, 1: 3}),
        ("C- O- C- O-", {0: 1, 2: 3}),
        ("C1f O-f C1f O1", {0: 1, 2: 3}),
        ("O1 C1", {1: 0}),
        ("O-f C1f", {1: 0}),
        ("O- C-", {1: 0}),
    ],
)
def test_pairs(record: str, outputs: dict[int, int]) -> None:
    assert calls_and_outputs(record).outputs == outputs


def test_what_pairs_with_nothing_is_told_apart() -> None:
    pairing = calls_and_outputs("C1 C1 O1 O1 O1 O9 O-")
    assert pairing.second == {4: 1}
    assert pairing.orphans == [5, 6]
    assert pairing.repeated == [1]


def test_without_an_id_two_open_calls_are_too_many_to_guess() -> None:
    assert calls_and_outputs("C1f C2g O-").orphans == [2]


def test_an_output_known_by_its_own_id_answers_the_only_open_call() -> None:
    call = Step(0, True, "shell", "c1", "lsh_1")
    assert pair([call, Step(1, False, "shell", "lsh_1", certain=False)]).outputs == {0: 1}
    assert pair([call, Step(1, False, "shell", "other", certain=False)]).outputs == {0: 1}
    assert pair([call, Step(1, False, "shell", "other")]).orphans == [1]


def test_a_million_reused_ids_pair_in_linear_time() -> None:
    half = 100_000
    steps = [Step(number, number < half, "function", "c", None, "f") for number in range(2 * half)]
    assert len(pair(steps).outputs) == half
