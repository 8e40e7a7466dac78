"""A client of restante: durable mailboxes and signed webhooks over HTTP.

``connect`` makes a client, which ``watch`` and the functions in ``restante.generated.api`` take:
one module for each operation of the service.
"""

from __future__ import annotations

from typing import Any

import httpx

from .errors import (
    Conflict,
    ConnectionFailed,
    Forbidden,
    Gone,
    InvalidSignature,
    NotFound,
    PreconditionFailed,
    ProblemError,
    RestanteError,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    UnexpectedAnswer,
    UnknownCursor,
    Unprocessable,
    check,
)
from .generated import AuthenticatedClient, Client
from .mailbox_watch import Watch, watch
from .notifications import Notification
from .webhooks import Push, SignedPush, read_push, verify_push, verify_signature

#: Time for the answer to a request of a generated function.
ANSWER_S = 30.0


def connect(url: str, token: str | None = None) -> AuthenticatedClient | Client:
    """A client of the service at ``url``, for the account of ``token``, or without an account.

    Its requests raise a :class:`ProblemError` for an answer with an error status.
    """
    options: dict[str, Any] = {
        "base_url": url.rstrip("/"),
        "headers": {"Accept": "application/json"},
        "timeout": httpx.Timeout(ANSWER_S),
        "httpx_args": {"event_hooks": {"response": [check]}},
    }
    return Client(**options) if token is None else AuthenticatedClient(token=token, **options)


__all__ = [
    "AuthenticatedClient",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "Forbidden",
    "Gone",
    "InvalidSignature",
    "NotFound",
    "Notification",
    "PreconditionFailed",
    "ProblemError",
    "Push",
    "RestanteError",
    "SignedPush",
    "TooManyRequests",
    "Unauthenticated",
    "Unavailable",
    "UnexpectedAnswer",
    "UnknownCursor",
    "Unprocessable",
    "Watch",
    "connect",
    "read_push",
    "verify_push",
    "verify_signature",
    "watch",
]
