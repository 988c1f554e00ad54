from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from neodim_sampling.text.automaton import StringAutomaton

WORDS = st.text("ab", min_size=1, max_size=5)


@given(strings=st.lists(WORDS, min_size=1, max_size=6, unique=True), text=st.text("abc"))
def test_automaton_knows_what_ends_and_what_begins_at_each_place(
    strings: list[str], text: str
) -> None:
    automaton = StringAutomaton(tuple(strings))
    state = 0

    for end in range(1, len(text) + 1):
        state = automaton.step(state, text[end - 1])

        read = text[:end]
        assert sorted(automaton.found[state]) == sorted(s for s in strings if read.endswith(s))
        ends = (read[start:] for start in range(end))
        begun = next((e for e in ends if any(s.startswith(e) for s in strings)), "")
        assert automaton.depths[state] == len(begun)
