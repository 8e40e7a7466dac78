"""Notifications, as events and pushes have them. Both are XML that the service writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from .errors import UnexpectedAnswer

#: Longest document that is read, in characters.
DOCUMENT_CHARS_MAX = 64 * 1024 * 1024


@dataclass(frozen=True)
class Notification:
    """A notification in a mailbox."""

    #: Its URI.
    href: str
    #: When it was deposited, RFC 3339, by the service's clock.
    received: str
    description: str
    #: The URI of the message.
    url: str
    #: The whole ``item``, with elements that this package does not read.
    item: dict[str, Any] = field(hash=False)
    #: Continue after this notification with ``watch(…, after=cursor)``; only of a watch.
    cursor: str = ""
    #: The message password.
    password: str | None = None


def parse_document(text: str) -> ElementTree.Element:
    """The root of a document of the service, which has no document type."""
    if len(text) > DOCUMENT_CHARS_MAX or "<!DOCTYPE" in text:
        raise UnexpectedAnswer("the document is too long, or has a document type")
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise UnexpectedAnswer(f"the document is not XML: {error}") from error


def local_name(element: ElementTree.Element) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def value_of(element: ElementTree.Element) -> Any:
    """An element as the service writes it in JSON: a text, or an object."""
    if len(element) == 0 and not element.attrib:
        return element.text or ""
    found: dict[str, Any] = dict(element.attrib)
    if len(element) == 0 and element.text:
        found["text"] = element.text
    for child in element:
        name, value = local_name(child), value_of(child)
        if name not in found:
            found[name] = value
        elif isinstance(found[name], list):
            found[name].append(value)
        else:
            found[name] = [found[name], value]
    return found


def _text(item: dict[str, Any], name: str) -> str:
    value = item.get(name)
    if isinstance(value, dict):
        value = value.get("text")
    if not isinstance(value, str):
        raise UnexpectedAnswer(f"a notification has no {name}")
    return value


def notification_of(element: ElementTree.Element, cursor: str = "") -> Notification:
    """The notification of an element."""
    items = [child for child in element if local_name(child) == "item"]
    item = value_of(items[0]) if items else None
    if not isinstance(item, dict) or "href" not in element.attrib:
        raise UnexpectedAnswer("the element is no notification")
    return Notification(
        href=element.attrib["href"],
        received=element.attrib.get("received", ""),
        description=_text(item, "description"),
        url=_text(item, "url"),
        item=item,
        cursor=cursor,
        password=_text(item, "password") if "password" in item else None,
    )
