"""Random memories: every layer with the fields that it has."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kledger.contract.memory import Memory


def memories(contents: st.SearchStrategy[str]) -> st.SearchStrategy[Memory]:
    """A memory of any layer."""
    words = st.none() | contents
    several = st.lists(contents, max_size=2)
    shared: dict[str, Any] = {
        "kind": st.none() | st.sampled_from(["preference", "mood", "adr", "user_preference"]),
        "importance": st.none() | st.floats(0, 1),
        "related": several,
        "tags": several,
        "session": words,
    }
    moments = st.none() | st.sampled_from(
        ["2026-02-17T14:30:00Z", "0001-01-01T00:00:00.5+00:00", "2026-03-05T12:00:00-05:00"]
    )
    return st.one_of(
        st.builds(Memory, layer=st.just("short"), lifetime=st.integers(1, 10**8), **shared),
        st.builds(Memory, layer=st.just("semantic"), category=words, **shared),
        st.builds(
            Memory,
            layer=st.just("episodic"),
            event=words,
            participants=several,
            outcome=words,
            artifacts=several,
            happened_at=moments,
            **shared,
        ),
        st.builds(Memory, layer=st.just("procedural"), name=words, trigger=words, steps=several, **shared),
    )
