"""How large a regular expression becomes when it is compiled.

`regex` (2026.11.19) writes a repeated part out as often as it has to match at least, at about 270
bytes for a character: `(a{1000}){1000}` takes 270 MB. So the size has to be known before compiling.
"""

from __future__ import annotations

import math

import regex

_PARTS = regex.compile(
    r"""(?xs)
    (?P<escape> \\ . )
    | (?P<set> \[ \^? \]? (?: \\ . | [^\]\\] )*+ \] )
    | \{ \s* (?P<count> \d [\d\s]* ) (?: , [\d\s]* )? \}
    | (?P<open> \( )
    | (?P<close> \) )
    | .
    """,
    cache_pattern=False,
)
_HARD_TO_READ = regex.compile(r"\(\?\#|\(\?[a-zA-Z0-9-]*[xV]|\[[^\]]*\[", cache_pattern=False)
"""A comment, a verbose pattern or nested sets: what is repeated there is not plain to see."""


def expanded_size(pattern: str) -> int:
    """An upper bound of the characters that a pattern is when its repeats are written out.

    Where it is hard to see what is repeated, all repeats are taken to be of everything, so that
    the bound is far too high rather than too low.
    """
    if _HARD_TO_READ.search(pattern):
        counts = (part["count"] for part in _PARTS.finditer(pattern, overlapped=True))
        return len(pattern) * math.prod(_times(count) for count in counts if count)
    sizes, last = [0], [0]
    for part in _PARTS.finditer(pattern):
        if part["count"]:
            sizes[-1] += last[-1] * (_times(part["count"]) - 1)
            last[-1] *= _times(part["count"])
        elif part["open"]:
            sizes.append(0)
            last.append(0)
        elif part["close"] and len(sizes) > 1:
            last.pop()
            last[-1] = max(1, sizes.pop())
            sizes[-1] += last[-1]
        else:
            last[-1] = len(part["set"] or "x")
            sizes[-1] += last[-1]
    return sum(sizes)


def _times(count: str) -> int:
    return max(1, int("".join(count.split())))
