"""The errors of this package. Each is a :class:`RestanteError`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping
from email.utils import parsedate_to_datetime
from typing import Literal

import httpx

SignatureFault = Literal["missing", "malformed", "stale", "wrong"]


class RestanteError(Exception):
    """The parent of every error of this package."""


class ConnectionFailed(RestanteError):
    """No complete answer came. The service may have carried out the request."""


class UnexpectedAnswer(RestanteError):
    """The answer is not from restante, or its document is malformed."""


class InvalidSignature(RestanteError):
    """A push is not authentic, or it is too old; ``fault`` says why."""

    def __init__(self, fault: SignatureFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class ProblemError(RestanteError):
    """The service answered with an error status and a problem document (RFC 9457)."""

    def __init__(
        self,
        status: int,
        title: str,
        *,
        type: str = "about:blank",
        detail: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{status} {title}" + (f": {detail}" if detail else ""))
        self.status = status
        self.title = title
        self.type = type
        self.detail = detail
        #: The time of Retry-After, in seconds.
        self.retry_after_s = retry_after_s


class UnknownCursor(ProblemError):
    """The position to continue from is of another mailbox, or from before a restore."""


class Unauthenticated(ProblemError):
    """401: the credentials are missing or wrong."""


class Forbidden(ProblemError):
    """403: the account may not do this."""


class NotFound(ProblemError):
    """404: there is no such resource, or the secret part of its URI is wrong."""


class Conflict(ProblemError):
    """409: the state of the resource does not allow this, or the name is taken."""


class Gone(ProblemError):
    """410: the resource was deleted."""


class PreconditionFailed(ProblemError):
    """412: the resource is not in the state that the condition of the request names."""


class Unprocessable(ProblemError):
    """422: the document breaks a rule, which the detail names."""


class TooManyRequests(ProblemError):
    """429: too many requests; repeat after ``retry_after_s``."""


class Unavailable(ProblemError):
    """502, 503, 504, 507: the service cannot answer now."""


_CLASSES: Mapping[int, type[ProblemError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    412: PreconditionFailed,
    422: Unprocessable,
    429: TooManyRequests,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
    507: Unavailable,
}


def _retry_after_s(headers: httpx.Headers) -> float | None:
    """The time of Retry-After: seconds, or from the date of the answer to another one."""
    text = headers.get("retry-after", "")
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        waiting = parsedate_to_datetime(text) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, waiting.total_seconds())


def problem_of(answer: httpx.Response) -> ProblemError:
    """The error of an answer with an error status, of the class for that status."""
    status = answer.status_code
    try:
        document = json.loads(answer.content)
    except ValueError:
        document = None
    fields = document if isinstance(document, dict) else {}

    def text(name: str) -> str | None:
        value = fields.get(name)
        return value if isinstance(value, str) else None

    kind = text("type") or "about:blank"
    is_unknown_cursor = kind.endswith("/problems/unknown-cursor")
    error = UnknownCursor if is_unknown_cursor else _CLASSES.get(status, ProblemError)
    return error(
        status,
        text("title") or "The service, or a proxy before it, refused the request",
        type=kind,
        detail=text("detail"),
        retry_after_s=_retry_after_s(answer.headers),
    )


async def _check_later(response: httpx.Response) -> None:
    if response.status_code >= 400:
        await response.aread()
        raise problem_of(response)


def check(response: httpx.Response) -> Awaitable[None] | None:
    """Raises the :class:`ProblemError` of an answer with an error status.

    It is a hook of httpx for answers, of a client that is asynchronous or not.
    """
    if isinstance(response.stream, httpx.AsyncByteStream) and not isinstance(
        response.stream, httpx.SyncByteStream
    ):
        return _check_later(response)
    if response.status_code >= 400:
        response.read()
        raise problem_of(response)
    return None
