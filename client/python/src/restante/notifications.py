"""Notifications, as events and pushes have them. Both are XML that the service writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

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
    #: The whole ``item``: texts and objects by the names of elements, as they are written; lists
    #: of elements that are repeated; attributes as ``@name``.
    item: dict[str, Any] = field(hash=False)
    #: Continue after this notification with ``watch(…, after=cursor)``; only of a watch.
    cursor: str = ""
    #: The message password.
    password: str | None = None


def _refuse_document_type(*_: Any) -> None:
    raise UnexpectedAnswer("the document has a document type")


def parse_document(text: str) -> ElementTree.Element:
    """The root of a document of the service, which has no document type.

    Names have their prefixes: what strangers add to an item must not have the names of its fields.
    """
    if len(text) > DOCUMENT_CHARS_MAX:
        raise UnexpectedAnswer("the document is too long")
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = _refuse_document_type
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, UnicodeError) as error:
        raise UnexpectedAnswer(f"the document is not XML: {error}") from error
    return builder.close()


def value_of(element: ElementTree.Element) -> Any:
    """The text of an element, or an object of its attributes and its parts."""
    if len(element) == 0 and not element.attrib:
        return element.text or ""
    found: dict[str, Any] = {f"@{name}": value for name, value in element.attrib.items()}
    if len(element) == 0:
        found["text"] = element.text or ""
    for child in element:
        value = value_of(child)
        if child.tag not in found:
            found[child.tag] = value
        elif isinstance(found[child.tag], list):
            found[child.tag].append(value)
        else:
            found[child.tag] = [found[child.tag], value]
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
    items = [child for child in element if child.tag == "item"]
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
