"""How large a regular expression becomes when it is compiled.

`regex` (2026.11.19) writes a repeated part out as often as it has to match at least, at about 270
bytes for a character: `(a{1000}){1000}` takes 270 MB. So the size has to be known before compiling.
"""

from __future__ import annotations

import math

import regex

_PARTS = regex.compile(
    r"""(?xs)
    (?P<escape> \\. )
    | (?P<set> \[ \^? \]? (?: \\. | [^\]\\] )*+ \] )
    | \{ (?P<count> \d+ ) (?: , \d* )? \}
    | (?P<open> \( )
    | (?P<close> \) )
    | (?P<space> \s )
    | .
    """
)
_VERBOSE = regex.compile(r"\(\?[a-zA-Z0-9]*x")


def expanded_size(pattern: str) -> int:
    """An upper bound of the characters that a pattern is when its repeats are written out.

    Sets count as one. Where nested sets (`(?V1)`), comments or verbose patterns make it hard to
    see what is repeated, the bound is far too high rather than too low.
    """
    if _VERBOSE.search(pattern) and "#" in pattern:
        # A comment may stand between a part and its count.
        counts = (part["count"] for part in _PARTS.finditer(pattern))
        return len(pattern) * math.prod(max(1, int(count)) for count in counts if count)
    sizes, last = [0], [0]
    for part in _PARTS.finditer(pattern):
        if part["count"]:
            times = max(1, int(part["count"]))
            sizes[-1] += last[-1] * (times - 1)
            last[-1] *= times
        elif part["open"]:
            sizes.append(0)
            last.append(0)
        elif part["close"] and len(sizes) > 1:
            last.pop()
            last[-1] = max(1, sizes.pop())
            sizes[-1] += last[-1]
        else:
            sizes[-1] += 1
            # In a verbose pattern a count may stand behind blanks.
            last[-1] = last[-1] if part["space"] and last[-1] else 1
    return sum(sizes)
