from typing import Any

import pytest

from tests.transcripts.build import codes, items

PNG = "data:image/png;base64,iVBORw0KGgo="


def said(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text}


def refused(text: str) -> dict[str, Any]:
    return {"type": "refusal", "refusal": text}


@pytest.mark.parametrize(
    ("content", "text", "refusal", "warnings"),
    [
        ([said("In "), said("Turin.")], "In Turin.", False, {}),
        ([refused("I cannot.")], "I cannot.", True, {}),
        ([said("Hm."), refused("I cannot.")], "Hm.\nI cannot.", True, {}),
        ([], "", False, {}),
        (None, "", False, {}),
        ("plain", "plain", False, {}),
        ([{"type": "text", "text": "a"}], "a", False, {"content_fallback": 1}),
        ([{"type": "input_text", "text": "a"}, "b"], "ab", False, {"content_fallback": 2}),
        ([said("a"), {"type": "text", "text": "b"}], "a", False, {"unknown_content_part": 1}),
        ([{"type": "output_text", "text": None}, {"type": "x"}, 3], "", False, {"unknown_content_part": 3}),
        ({"type": "output_text", "text": "a"}, "", False, {"content_ignored": 1}),
        (7, "", False, {"content_ignored": 1}),
    ],
)
def test_replies(content: Any, text: str, refusal: bool, warnings: dict[str, int]) -> None:
    made = items({"type": "message", "role": "assistant", "content": content})
    assert (made.events[0].text, made.events[0].refusal) == (text, refusal)
    assert codes(made) == warnings


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hello", "hello"),
        ([{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": PNG}], "see\n[image]"),
        ([{"type": "input_file", "file_data": "AAAA"}, {"type": "input_audio"}], "[file]\n[audio]"),
        (["a", {"type": "text", "text": "b"}, {"type": "output_text", "text": "c"}], "a\nb\nc"),
        (f"before {PNG} after", "before [image] after"),
        ("data:image/svg+xml;charset=utf-8;base64,PHN2Zz4=!", "[image]!"),
        ("data:image/png;base64,", "[image]"),
        ("ask for data:text/plain;base64,AAAA", "ask for data:text/plain;base64,AAAA"),
    ],
)
def test_what_a_user_says(content: Any, text: str) -> None:
    made = items({"type": "message", "role": "user", "content": content})
    assert made.events[0].text == text
    assert codes(made) == {}


def test_the_bytes_of_pictures_are_shown_nowhere() -> None:
    picture = {"type": "input_image", "image_url": PNG}
    made = items(
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": {"picture": PNG}},
        {"type": "function_call_output", "call_id": "1", "output": {"picture": PNG}},
        {"type": "function_call", "call_id": "2", "name": "f", "arguments": f'{{"picture": "{PNG}"}}'},
        {"type": "function_call_output", "call_id": "2", "output": [picture]},
        {"type": "image_generation_call", "id": "3", "result": "iVBORw0KGgo="},
    )
    assert all("iVBORw0KGgo" not in event.text for event in made.events)
    assert [event.text for event in made.events[:5]] == [
        'f({"picture": "[image]"})',
        '{"picture": "[image]"}',
        'f({"picture": "[image]"})',
        "[image]",
        "image_generation()\n[image]",
    ]


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        ("user", "user"),
        ("assistant", "assistant"),
        ("system", "system"),
        ("developer", "system"),
        ("critic", "unknown"),
        ("tool", "unknown"),
        (None, "unknown"),
        (7, "unknown"),
    ],
)
def test_roles(role: Any, kind: str) -> None:
    made = items(
        {"type": "message", "role": role, "content": "a"}, {"type": "message", "role": "assistant", "content": []}
    )
    assert (made.events[0].kind, made.events[0].text) == (kind, "a")
    unknown = {"unknown_role": 1} if isinstance(role, str) else {"missing_role": 1}
    assert codes(made).items() >= (unknown if kind == "unknown" else {}).items()
    assert len(made.turns) == 1


def test_a_phase_is_kept_on_replies_only() -> None:
    reply = {"type": "message", "role": "assistant", "content": [], "phase": "commentary"}
    made = items(reply, reply | {"role": "user"}, reply | {"phase": 3})
    assert [event.phase for event in made.events] == ["commentary", None, None]
