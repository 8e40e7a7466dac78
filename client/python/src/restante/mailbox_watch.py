"""Follows a mailbox by its event stream, over lost connections and restarts of the service."""

from __future__ import annotations

import codecs
import random
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import httpx

from .errors import (
    ConnectionFailed,
    Gone,
    NotFound,
    ProblemError,
    RestanteError,
    UnexpectedAnswer,
    UnknownCursor,
    check,
)
from .events import Event, EventParser
from .notifications import Notification, notification_of, parse_document

#: Attempts of the first connection.
ATTEMPTS_MAX = 5

#: Pauses between connections: the first, doubled each time up to the longest.
BACKOFF_S_FIRST = 0.25
BACKOFF_S_MAX = 10.0

#: The longest pause that the service may ask for.
RETRY_S_MAX = 60.0

#: Four heartbeats of the service: a stream that is silent for longer is broken.
SILENCE_S = 60.0

#: Later than any notification.
FAR_FUTURE = "9999-12-31T23:59:59Z"

#: Time for the answer of any other request.
ANSWER_S = 30.0

_TRANSIENT = (408, 425, 429)

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*(?:~[A-Za-z0-9_-]+)?")


class ServiceClient(Protocol):
    """A generated client, as :func:`restante.connect` makes it."""

    def get_httpx_client(self) -> httpx.Client: ...


def _mailbox_path(client: httpx.Client, mailbox: str) -> str:
    """The path of a mailbox by its name or URI, below the service: nobody else gets the token."""
    base = client.base_url
    uri = base.join(mailbox)
    own = (base.scheme, base.host, base.port)
    name = mailbox
    if "/" in mailbox:
        path = uri.path.removeprefix(base.path.rstrip("/"))
        name = path.removeprefix("/mailboxes/") if path.startswith("/mailboxes/") else ""
        if (uri.scheme, uri.host, uri.port) != own:
            name = ""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"it is no mailbox of {base}: give its name, or a URI that begins with it"
        )
    return f"/mailboxes/{name}"


def _is_final(error: Exception) -> bool:
    """Whether a repetition cannot succeed."""
    if isinstance(error, ProblemError):
        return error.status < 500 and error.status not in _TRANSIENT
    return isinstance(error, RestanteError) and not isinstance(error, ConnectionFailed)


def _pause_s(error: Exception, attempt: int, first_s: float) -> float:
    """The pause before the next attempt."""
    if isinstance(error, ProblemError) and error.retry_after_s is not None:
        return max(BACKOFF_S_FIRST, min(error.retry_after_s, RETRY_S_MAX))
    longest = min(first_s * 2.0 ** min(attempt - 1, 20), max(BACKOFF_S_MAX, first_s))
    return longest / 2 + random.random() * longest / 2


class Watch:
    """The notifications of a mailbox in the order of their deposit, each once.

    A loop gets the present ones, then new ones as they come. It survives lost connections and
    restarts of the service. A second loop continues after the last notification of the first.
    """

    def __init__(
        self,
        client: ServiceClient,
        mailbox: str,
        *,
        after: str | None = None,
        acknowledge: bool = False,
        password: str | None = None,
        on_connection: Callable[[Exception | None], None] = lambda _: None,
        on_discarded: Callable[[], None] = lambda: None,
    ) -> None:
        self._client = client.get_httpx_client()
        self._path = _mailbox_path(self._client, mailbox)
        self._after = after
        #: After the last notification of the loop; store it to continue after a restart.
        self.cursor: str | None = None if after == "now" else after
        self._acknowledge = acknowledge
        # The user name is not regarded.
        self._request: dict[str, Any] = {} if password is None else {"auth": ("reader", password)}
        self._on_connection = on_connection
        self._on_discarded = on_discarded
        self._is_open = False
        # Of the next connection, from 1.
        self._attempt = 1
        # What the loop has handled, until it is removed.
        self._handled: Notification | None = None

    def __iter__(self) -> Iterator[Notification]:
        self._attempt = 1
        while True:
            parser = EventParser()
            try:
                if self._after == "now" and self.cursor is None:
                    self.cursor = self._now()
                self._remove_handled()
                parser = EventParser(self.cursor or "")
                for event in self._events(parser):
                    notification = self._received(event)
                    if notification is None:
                        continue
                    self.cursor = notification.cursor
                    yield notification
                    if self._acknowledge:
                        self._handled = notification
                        self._remove_handled()
                error: Exception = ConnectionFailed("the service ended the stream")
            except httpx.TransportError as failure:
                error = ConnectionFailed(f"the connection failed: {failure!r}")
                error.__cause__ = failure
            except RestanteError as failure:
                error = failure
            if _is_final(error) or (not self._is_open and self._attempt >= ATTEMPTS_MAX):
                raise error
            self._on_connection(error)
            # No proxy may have the loop go on without a pause.
            first_s = max(BACKOFF_S_FIRST, min(parser.retry_s or 0.0, RETRY_S_MAX))
            time.sleep(_pause_s(error, self._attempt, first_s))
            self._attempt += 1

    def _events(self, parser: EventParser) -> Iterator[Event]:
        # The service sends refusals as JSON.
        headers = {"Accept": "text/event-stream, application/problem+json;q=0.1"}
        params = {}
        # The first position may be a time, which is not an event id.
        if self.cursor is not None and self.cursor == self._after:
            params["since"] = self.cursor
        elif self.cursor is not None:
            headers["Last-Event-ID"] = self.cursor
        timeout = httpx.Timeout(ANSWER_S, read=SILENCE_S)
        with self._client.stream(
            "GET", self._path, headers=headers, params=params, timeout=timeout, **self._request
        ) as answer:
            check(answer)
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                raise UnexpectedAnswer("the answer is no event stream")
            self._is_open = True
            self._attempt = 1
            self._on_connection(None)
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            for piece in answer.iter_bytes():
                yield from parser.push(decoder.decode(piece))

    def _received(self, event: Event) -> Notification | None:
        """The notification of an event; None for an event of another kind."""
        if event.type == "gone":
            raise Gone(410, "Deleted", detail="the mailbox has been deleted")
        if event.type == "position":
            position = parse_document(event.data).attrib
            if position.get("state") != "discarded":
                raise UnknownCursor(
                    400, "The position is not known here", detail=position.get("detail")
                )
            self.cursor = event.last_id
            self._on_discarded()
        if event.type != "notification":
            return None
        return notification_of(parse_document(event.data), event.last_id)

    def _remove_handled(self) -> None:
        """Removes the handled notification; somebody else may have removed it already."""
        if self._handled is None:
            return
        id = self._handled.href.rpartition("/notifications/")[2]
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", id):
            raise UnexpectedAnswer("the URI of a notification leads elsewhere")
        try:
            self._call("DELETE", f"{self._path}/notifications/{id}")
        except (NotFound, Gone):
            pass
        self._handled = None

    def _now(self) -> str:
        """The cursor after the newest notification."""
        answer = self._call("GET", self._path, params={"since": FAR_FUTURE, "limit": "1"})
        try:
            return str(answer.json()["time"])
        except (KeyError, TypeError, ValueError) as error:
            raise UnexpectedAnswer("the answer is no listing of a mailbox") from error

    def _call(self, method: str, path: str, **request: Any) -> httpx.Response:
        headers = {"Accept": "application/json"}
        request = {**request, **self._request, "headers": headers, "timeout": ANSWER_S}
        try:
            answer = self._client.request(method, path, **request)
        except httpx.TransportError as failure:
            raise ConnectionFailed(f"the connection failed: {failure!r}") from failure
        check(answer)
        return answer


def watch(
    client: ServiceClient,
    mailbox: str,
    *,
    after: str | None = None,
    acknowledge: bool = False,
    password: str | None = None,
    on_connection: Callable[[Exception | None], None] = lambda _: None,
    on_discarded: Callable[[], None] = lambda: None,
) -> Watch:
    """Follows a mailbox, by its name or its URI, which may be the secret one.

    ``after`` is the ``cursor`` of an earlier notification or push, any RFC 3339 time, or ``now``;
    without it the loop begins with the oldest notification. With ``acknowledge`` each notification
    is removed when the loop asks for the next one, so that the one at which a loop ends stays.
    ``password`` is that of the mailbox, in place of
    the token. ``on_connection`` is called with None when the stream is open, and with the error
    when it is lost. ``on_discarded`` is called when notifications after the position were removed
    by others.

    The loop raises permanent failures: :class:`Gone` when the mailbox is deleted,
    :class:`UnknownCursor` when ``after`` is not of this mailbox or the service was restored from a
    backup. It raises :class:`ConnectionFailed` only before the first connection.
    """
    return Watch(
        client,
        mailbox,
        after=after,
        acknowledge=acknowledge,
        password=password,
        on_connection=on_connection,
        on_discarded=on_discarded,
    )
