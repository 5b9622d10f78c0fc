"""Conversations and requests that are nearly right, with the oddities that JSON allows."""

from typing import Any

from hypothesis import strategies as st

from tests.evaluation.bodies import CHAT, ITEMS, REPLY, Pairs

scalars = st.sampled_from([None, True, 0, -1.5, "", " ", "x", "assistant", "message", "\ud800", "a\x00b", "è🙂"])
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(st.tuples(st.sampled_from(["type", "role", "v", "content"]), inner), max_size=3).map(Pairs),
    ),
    max_leaves=5,
)


def objects(*keys: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects with these keys, now and then repeated, and some others."""
    return st.lists(st.tuples(st.sampled_from([*keys, "other"]), values), max_size=len(keys) + 2).map(Pairs)


message = st.one_of(
    st.just(REPLY),
    objects(
        "role",
        "content",
        "tool_calls",
        values=st.one_of(st.sampled_from(["user", "assistant", "system", "Hello."]), anything),
    ),
    anything,
)
item = st.one_of(
    st.sampled_from(ITEMS["items"]),
    objects("type", "role", "content", values=st.one_of(st.sampled_from(["message", "assistant"]), anything)),
    anything,
)
conversation = st.one_of(
    st.sampled_from([CHAT, ITEMS]),
    st.lists(
        st.one_of(
            st.tuples(st.just("messages"), st.one_of(st.lists(message, max_size=4), anything)),
            st.tuples(st.just("items"), st.one_of(st.lists(item, max_size=4), anything)),
            st.tuples(st.sampled_from(["id", "metadata", "tools", "expectations", "x"]), anything),
        ),
        max_size=4,
    ).map(Pairs),
    anything,
)
requests = st.one_of(
    st.lists(conversation, min_size=1, max_size=4).map(lambda each: {"conversations": each}),
    st.lists(
        st.one_of(
            st.tuples(st.just("conversations"), st.one_of(st.lists(conversation, max_size=3), anything)),
            st.tuples(st.sampled_from(["conversation", "x", "name"]), st.just("n")),
        ),
        max_size=4,
    ).map(Pairs),
    anything,
)
