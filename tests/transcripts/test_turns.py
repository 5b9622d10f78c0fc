import pytest

from app.transcripts.model import Transcript
from tests.transcripts.build import asked, call, items, output, said


def turns(transcript: Transcript) -> list[tuple[tuple[int, ...], tuple[int, ...], bool]]:
    return [(turn.user, turn.reply, turn.reply_precedes_last_result) for turn in transcript.turns]


def test_a_user_message_opens_a_turn_and_the_next_one_joins_it() -> None:
    made = items(asked("a"), asked("b"), said("1"), asked("c"), said("2"))
    assert turns(made) == [((0, 1), (2,), False), ((3,), (4,), False)]
    assert [event.turn for event in made.events] == [0, 0, 0, 1, 1]


def test_what_stands_before_the_first_user_message_belongs_to_turn_zero() -> None:
    made = items(said("Hello"), call(), output(), asked("a"), said("1"))
    assert turns(made) == [((3,), (4,), False)]
    assert made.turns[0].assistant == (0, 4)
    assert made.turns[0].calls == (0,)


def test_without_a_user_everything_is_turn_zero() -> None:
    assert turns(items(said("a"), said("b"))) == [((), (0, 1), False)]


def test_a_system_message_between_two_user_messages_does_not_part_them() -> None:
    made = items(asked("a"), {"type": "message", "role": "developer", "content": "be brief"}, asked("b"), said("1"))
    assert turns(made) == [((0, 2), (3,), False)]
    assert made.events[1].kind == "system"


@pytest.mark.parametrize("between", [call(), {"type": "reasoning", "summary": []}])
def test_whatever_the_agent_does_ends_a_request(between: dict[str, object]) -> None:
    assert len(items(asked("a"), between, asked("b"), said("1")).turns) == 2


def test_commentary_is_no_reply_where_there_is_a_final_answer() -> None:
    made = items(asked("a"), said("Looking", phase="commentary"), call(), output(), said("Turin", phase="final_answer"))
    assert made.turns[0].reply == (4,)
    assert made.turns[0].assistant == (1, 4)
    assert made.reply_text(made.turns[0]) == "Turin"
    assert items(asked("a"), said("Looking", phase="commentary")).turns[0].reply == (1,)


def test_every_message_after_the_question_is_part_of_the_reply() -> None:
    made = items(asked("a"), said("Let me see."), call(), output(), said("Turin."))
    assert made.reply_text(made.turns[0]) == "Let me see.\nTurin."


def test_a_reply_before_the_last_result_is_flagged() -> None:
    made = items(asked("a"), said("One moment."), said("Wait."), call(), output())
    assert turns(made) == [((0,), (2,), True)]


def test_a_turn_that_nobody_answered_has_no_reply() -> None:
    assert turns(items(asked("a"), said("1"), asked("b")))[1] == ((2,), (), False)


def test_each_turn_has_its_own_calls() -> None:
    made = items(asked("a"), call(), output(), said("1"), asked("b"), call(), output(), said("2"))
    assert [turn.calls for turn in made.turns] == [(0,), (1,)]
    assert [item.turn for item in made.calls] == [0, 1]
