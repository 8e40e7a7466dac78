"""Server-sent events by the rules of WHATWG HTML §9.2.6, from text in arbitrary pieces."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import UnexpectedAnswer

#: Longest event of a live stream, in characters.
EVENT_CHARS_MAX = 4 * 1024 * 1024


@dataclass(frozen=True)
class Event:
    """A complete event."""

    type: str
    data: str
    #: The last id, of this event or an earlier one.
    last_id: str


class EventParser:
    """Parses the events of a stream; ``last_id`` is the id of an earlier connection."""

    def __init__(self, last_id: str = "") -> None:
        #: Set by a ``retry`` field: the pause before the next connection, in seconds.
        self.retry_s: float | None = None
        self._id = last_id
        self._rest = ""
        self._skips_line_feed = False
        self._is_first = True
        self._data: list[str] = []
        self._type = ""
        self._chars = 0

    def push(self, piece: str) -> list[Event]:
        """The events that this piece completes."""
        if piece and self._is_first:
            self._is_first = False
            piece = piece.removeprefix("\ufeff")
        # A CR ended the last line; an LF right after it belongs to that end.
        if piece and self._skips_line_feed:
            self._skips_line_feed = False
            piece = piece.removeprefix("\n")
        self._chars += len(piece)
        events: list[Event] = []
        start = 0
        for end in re.finditer("\r\n|\r|\n", piece):
            self._line(self._rest + piece[start : end.start()], events)
            self._rest = ""
            start = end.end()
            self._skips_line_feed = end.group() == "\r" and start == len(piece)
        self._rest += piece[start:]
        if len(self._rest) > EVENT_CHARS_MAX or self._chars > EVENT_CHARS_MAX + len(piece):
            raise UnexpectedAnswer("an event is too long")
        return events

    def _line(self, line: str, events: list[Event]) -> None:
        if line == "":
            self._dispatch(events)
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._type = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and re.fullmatch("[0-9]{1,9}", value):
            self.retry_s = int(value) / 1000

    def _dispatch(self, events: list[Event]) -> None:
        if self._data:
            events.append(Event(self._type or "message", "\n".join(self._data), self._id))
        self._data = []
        self._type = ""
        self._chars = 0
