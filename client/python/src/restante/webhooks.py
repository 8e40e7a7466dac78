"""Receiving pushes: signatures of Standard Webhooks, and the document of a push."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import time as clock
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .errors import InvalidSignature, UnexpectedAnswer
from .notifications import Notification, notification_of, parse_document

#: Largest difference between the time of a push and now.
TOLERANCE_S = 5 * 60

#: Signatures of one push that are verified.
SIGNATURES_MAX = 16


@dataclass(frozen=True)
class SignedPush:
    """A push whose signature is right."""

    #: The same for repeated pushes of the same changes: drop one that you know.
    id: str
    #: When it was signed, in seconds since 1970.
    time: int
    body: bytes


@dataclass(frozen=True)
class Push:
    """The changes of a mailbox since the last acknowledged push."""

    id: str
    mailbox: str
    #: Continue after this push with ``watch(…, after=cursor)``.
    cursor: str
    #: In the order of their deposit.
    notifications: list[Notification]
    #: URIs of notifications that were removed.
    removed: list[str]
    #: Whether the mailbox itself has been deleted.
    deleted: bool
    #: Whether it is a test event, which has no changes.
    test: bool


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise ValueError(
            "the secret of a registration is whsec_ and base64: copy all of it from the answer "
            "that created the registration"
        )
    return key


def _signatures(text: str) -> list[bytes]:
    found = []
    for one in text.split(" ")[:SIGNATURES_MAX]:
        if one.startswith("v1,"):
            try:
                found.append(base64.b64decode(one.removeprefix("v1,"), validate=True))
            except (binascii.Error, ValueError):
                continue
    return found


def verify_signature(
    headers: Mapping[str, str],
    body: bytes | str,
    secrets: str | Iterable[str],
    *,
    tolerance_s: float = TOLERANCE_S,
    now: float | None = None,
) -> SignedPush:
    """Verifies a signature of Standard Webhooks over the unchanged body.

    ``secrets`` has the old and the new secret while a secret changes. Raises
    :class:`InvalidSignature`; its ``fault`` is ``missing``, ``malformed``, ``stale`` or ``wrong``.
    """
    fields = {name.lower(): value for name, value in headers.items()}

    def required(name: str) -> str:
        value = fields.get(name)
        if not value:
            raise InvalidSignature("missing", f"there is no {name}")
        return value

    id, time, signature = (
        required(f"webhook-{name}") for name in ("id", "timestamp", "signature")
    )
    if re.fullmatch(r"[0-9]{1,12}", time) is None:
        raise InvalidSignature("malformed", "webhook-timestamp is no time in seconds")
    if not abs((clock.time() if now is None else now) - int(time)) <= tolerance_s:
        raise InvalidSignature("stale", "webhook-timestamp is too far from now")
    # Servers may keep bytes that are not UTF-8 as halves of characters.
    raw = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else bytes(body)
    signed = f"{id}.{time}.".encode("utf-8", "surrogatepass") + raw
    expected = [
        hmac.digest(_key(secret), signed, hashlib.sha256)
        for secret in ([secrets] if isinstance(secrets, str) else secrets)
    ]
    # All pairs, whichever is right: the time that this takes reveals nothing.
    matches = [
        hmac.compare_digest(one, other) for one in expected for other in _signatures(signature)
    ]
    if not any(matches):
        raise InvalidSignature("wrong", "no signature matches the body and a secret")
    return SignedPush(id, int(time), raw)


def read_push(body: bytes | str, id: str = "") -> Push:
    """Reads the document of a push without verifying it."""
    try:
        root = parse_document(body if isinstance(body, str) else body.decode())
    except UnicodeDecodeError as error:
        raise UnexpectedAnswer("the body is not UTF-8") from error
    of = {
        name: [child for child in root if child.tag == name]
        for name in ("notification", "removed", "deleted")
    }
    return Push(
        id=id,
        mailbox=root.attrib.get("mailbox", ""),
        cursor=root.attrib.get("time", ""),
        notifications=[notification_of(one) for one in of["notification"]],
        removed=[one.attrib.get("href", "") for one in of["removed"]],
        deleted=bool(of["deleted"]),
        test=root.attrib.get("test") == "true",
    )


def verify_push(
    headers: Mapping[str, str],
    body: bytes | str,
    secrets: str | Iterable[str],
    *,
    tolerance_s: float = TOLERANCE_S,
    now: float | None = None,
) -> Push:
    """Verifies a push of a registration in the native form, and reads it."""
    signed = verify_signature(headers, body, secrets, tolerance_s=tolerance_s, now=now)
    return read_push(signed.body, signed.id)
