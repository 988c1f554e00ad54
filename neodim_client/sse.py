"""Server-sent events (WHATWG HTML, 9.2.6), from bytes cut anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event.

    Args:
        id: the newest id of the stream, "" = there was none yet.
        kind: its type, `message` unless named.
        text: its data.
    """

    id: str
    kind: str
    text: str


@dataclass(slots=True)
class _Draft:
    kind: str = ""
    data: list[str] = field(default_factory=list)


class EventReader:
    """Reads one stream. What is not ended by an empty line is no event, as when it was cut off."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_first_line = True
        self._last_id = ""
        self._draft = _Draft()

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """The events that are complete with these bytes."""
        return [event for line in self._lines(piece) if (event := self._read(line))]

    def _lines(self, piece: bytes) -> Iterator[str]:
        # Split as bytes: str.splitlines would also cut at U+2028 and others, which JSON may hold.
        content = self._rest + piece
        is_open = content.endswith(b"\r")
        # Behind a carriage return a line feed may be still to come, and would be a second end.
        content = content.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, self._rest = content.split(b"\n")
        self._rest += b"\r" * is_open
        for line in lines:
            if self._is_first_line:
                line = line.removeprefix(BYTE_ORDER_MARK)
                self._is_first_line = False
            yield line.decode("utf-8", "replace")

    def _read(self, line: str) -> ServerSentEvent | None:
        if not line:
            return self._end_of_event()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._draft.data.append(value)
        elif name == "event":
            self._draft.kind = value
        elif name == "id" and "\0" not in value:
            self._last_id = value
        return None

    def _end_of_event(self) -> ServerSentEvent | None:
        draft, self._draft = self._draft, _Draft()
        if not draft.data:
            return None
        return ServerSentEvent(self._last_id, draft.kind or "message", "\n".join(draft.data))
