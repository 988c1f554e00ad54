from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.rejections import MalformedBody
from api.strict_json import MAX_DEPTH, parse_object

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)


def nested(depth):
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def outcome(body):
    """The object, or the reason why there is none."""
    try:
        return parse_object(body)
    except MalformedBody as error:
        return str(error)


@settings(deadline=None)
@given(st.dictionaries(TEXTS, VALUES), st.booleans())
def test_parse_object_reads_what_json_writes(value, ascii_only):
    body = json.dumps(value, ensure_ascii=ascii_only).encode()

    assert parse_object(body) == value


@settings(deadline=None)
@given(st.binary())
def test_parse_object_of_any_bytes_gives_an_object_or_a_reason(body):
    found = outcome(body)

    assert isinstance(found, (dict, str))
    assert str(found).encode()


@settings(deadline=None)
@given(st.text(st.sampled_from('{}[]":,\\u0dD8 1-eEa.tn')))
def test_parse_object_of_json_like_text_agrees_with_json_or_gives_a_reason(text):
    found = outcome(text.encode())

    assert isinstance(found, str) or found == json.loads(text)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "empty"),
        (b"\xff{}", "not UTF-8: bad byte at 0"),
        (b'{"a": }', "not JSON: Expecting value at line 1, column 7"),
        (b"[]", "must be a JSON object"),
        (b'{"b": 1, "a": NaN}', "a: NaN is not a JSON number; allowed: finite numbers"),
        (b'{"a": -1e999}', "a: the number -1e999 is too large; allowed: finite numbers"),
        (b'{"a": ' + b"1" * 5000 + b"}", "a: the number has too many digits; allowed: at most"),
        (b'{"x": {"a": [1, [Infinity]]}, "b": 1}', "a: Infinity is not a JSON number"),
        (b'{"": NaN}', '"": NaN is not a JSON number'),
        (b'{"": 1, "": 2}', '"": is there more than once'),
        (b"[NaN]", "must be a JSON object"),
        (b'{"a": 1, "b": 2, "a": 1}', "a: is there more than once"),
        (b'{"x": [{"b": 1, "b": 1}]}', "b: is there more than once"),
        (b'{"a": ["\\udead"]}', "a: has half of a surrogate pair"),
        (b'{"x": {"a": "\\udead"}}', "a: has half of a surrogate pair"),
        (b'{"a": {"\\ud800": 1}}', "?: the name has half of a surrogate pair"),
        (b'{"\\ud800": 1, "\\ud800": 2}', "?: is there more than once"),
        (nested(MAX_DEPTH + 1), "nested deeper than 64 levels"),
        (b"[" * 100_000, "nested deeper than 64 levels"),
        (b'{"a": "' + b'\\"[' * 100_000, "not JSON"),
    ],
)
def test_parse_object_says_what_is_wrong(body, reason):
    with pytest.raises(MalformedBody) as caught:
        parse_object(body)

    assert reason in str(caught.value)


def test_parse_object_allows_the_deepest_level():
    assert parse_object(nested(MAX_DEPTH))


def test_parse_object_counts_no_brackets_within_strings():
    body = json.dumps({"a": '[{"' * 100, "b": [[]] * 100}).encode()

    assert parse_object(body)["a"] == '[{"' * 100


def test_parse_object_takes_whole_surrogate_pairs_and_a_byte_order_mark():
    assert parse_object(b'\xef\xbb\xbf{"a": "\\ud83d\\ude00"}') == {"a": "\U0001f600"}
