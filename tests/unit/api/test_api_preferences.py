from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.preferences import MAX_WAIT_S, Preference, parse_preference


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, Preference()),
        ("", Preference()),
        ("respond-async", Preference(is_async=True)),
        ("Respond-Async", Preference(is_async=True)),
        ("wait=5", Preference(wait_s=5)),
        ('WAIT = "5"', Preference(wait_s=5)),
        ("wait=0", Preference(wait_s=0)),
        ("respond-async, wait=10", Preference(is_async=True, wait_s=10)),
        ("handling=lenient;x=1, wait=10;y", Preference(wait_s=10)),
        ("wait=1, wait=2", Preference(wait_s=1)),
        ("wait=x, wait=2", Preference(wait_s=2)),
        ("wait=99999999999999999999", Preference(wait_s=MAX_WAIT_S)),
        ("wait", Preference()),
        ("wait=", Preference()),
        ("wait=-1", Preference()),
        ("wait=1.5", Preference()),
        ("wait=٣", Preference()),
        ("wait=" + "9" * 5000, Preference()),
        (";;;", Preference()),
    ],
)
def test_parse_preference_reads_what_it_knows_and_passes_over_the_rest(header, expected):
    assert parse_preference(header) == expected


@settings(deadline=None)
@given(st.text())
def test_parse_preference_takes_any_text(header):
    assert parse_preference(header).is_given in (True, False)


@pytest.mark.parametrize(
    ("preference", "headers"),
    [
        (Preference(), {}),
        (Preference(is_async=True), {"Preference-Applied": "respond-async"}),
        (Preference(wait_s=0), {"Preference-Applied": "wait=0"}),
        (Preference(True, 3), {"Preference-Applied": "respond-async, wait=3"}),
    ],
)
def test_an_applied_preference_is_told(preference, headers):
    assert preference.headers == headers
