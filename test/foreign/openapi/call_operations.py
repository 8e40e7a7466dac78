"""Calls every operation through a client that openapi-python-client generated.

Arguments: the folder of the client, the origin of the service, the token, and the file of the calls.
Prints a finding for each call as a JSON array.
"""

import importlib
import inspect
import io
import json
import pkgutil
import re
import sys
import time
import typing
from datetime import datetime
from enum import Enum

FOLDER, ORIGIN, TOKEN, CALLS = sys.argv[1:]
sys.path.insert(0, FOLDER)

import generated  # noqa: E402
import generated.api  # noqa: E402
from generated.types import File  # noqa: E402

FILE_TYPES = (
    "application/octet-stream",
    "application/x-ndjson",
    "font/woff2",
    "image/png",
    "image/webp",
)

PAUSE_SECONDS = 0.2
ATTEMPTS_MAX = 300


def plain(name):
    return re.sub("[^a-z0-9]", "", name.lower())


def operations():
    """The modules of the operations, by the plain name of the operation."""
    found = pkgutil.walk_packages(generated.api.__path__, "generated.api.")
    return {plain(one.name.split(".")[-1]): one.name for one in found if not one.ispkg}


def filled(value, saved):
    """The value, with saved values in place of their names."""
    if isinstance(value, dict):
        return {name: filled(one, saved) for name, one in value.items()}
    if isinstance(value, list):
        return [filled(one, saved) for one in value]
    return saved[value[1:]] if isinstance(value, str) and value.startswith("$") else value


def body_of(function, body):
    """The body in a generated class of the parameter, which may also take other types."""
    if isinstance(body, str):
        return File(payload=io.BytesIO(body.encode()))
    annotation = typing.get_type_hints(function)["body"]
    for one in (annotation, *typing.get_args(annotation)):
        if hasattr(one, "from_dict"):
            try:
                return one.from_dict(body)
            except KeyError:
                # A class of another alternative, which requires another member.
                continue
    raise ValueError(f"no class of {annotation} takes {body!r}")


def typed(value, annotation):
    """A text in the type of its parameter, which is a time, one of some values, or a text."""
    types = (annotation, *typing.get_args(annotation))
    if datetime in types:
        return datetime.fromisoformat(value)
    values = [one for one in types if inspect.isclass(one) and issubclass(one, Enum)]
    return values[0](value) if values else value


def arguments(function, call, saved):
    values = {**call.get("path", {}), **call.get("query", {})}
    by_name = {plain(name): filled(value, saved) for name, value in values.items()}
    types = typing.get_type_hints(function)
    taken = {
        name: typed(by_name[plain(name)], types[name])
        for name in inspect.signature(function).parameters
        if plain(name) in by_name
    }
    if len(taken) < len(by_name):
        raise ValueError(f"the operation has no parameters for all of {sorted(values)}")
    if "body" in call:
        taken["body"] = body_of(function, filled(call["body"], saved))
    return taken


def is_same(written, sent):
    """Whether two JSON values are equal; a time may be written in another way."""
    if isinstance(written, dict) and isinstance(sent, dict):
        return written.keys() == sent.keys() and all(
            is_same(value, sent[name]) for name, value in written.items()
        )
    if isinstance(written, list) and isinstance(sent, list):
        return len(written) == len(sent) and all(map(is_same, written, sent))
    if written == sent:
        return True
    try:
        return datetime.fromisoformat(written) == datetime.fromisoformat(sent)
    except (TypeError, ValueError):
        return False


def fault(call, response):
    """What is wrong with the answer, or None."""
    parsed, content = response.parsed, response.content
    if int(response.status_code) != call["status"]:
        return f"{int(response.status_code)} {content[:300]!r}"
    kind = call.get("answerType")
    if kind is None:
        return None if parsed is None else f"it was parsed as {parsed!r}"
    if re.search("[/+]json$", kind):
        if not hasattr(parsed, "to_dict"):
            return f"it was parsed as {type(parsed)}"
        written, sent = parsed.to_dict(), json.loads(content)
        return None if is_same(written, sent) else f"parsed {written!r} of {sent!r}"
    if kind in FILE_TYPES:
        return None if isinstance(parsed, File) else f"it was parsed as {type(parsed)}"
    return None if parsed == content.decode() else f"it was parsed as {type(parsed)}"


def value_from(source, response):
    headers = response.headers
    if source == "location":
        uri = headers["location"]
    elif source == "edit":
        uri = re.search('<([^>]*)>; rel="edit"', headers["link"])[1]
    else:
        uri = json.loads(response.content)
        for name in source.removeprefix("json:").split("/"):
            uri = uri[int(name) if isinstance(uri, list) else name]
    return uri.split("/")[-1]


def respond(function, client, call, saved):
    """The answer; repeats the call until the answer has a value, if it waits for one."""
    given = arguments(function, call, saved)
    for _ in range(ATTEMPTS_MAX):
        response = function(client=client, **given)
        if "until" not in call or int(response.status_code) != call["status"]:
            return response
        member, value = call["until"]
        if json.loads(response.content)[member] == value:
            return response
        time.sleep(PAUSE_SECONDS)
    raise TimeoutError(f"{call['until']} did not come true")


def main():
    client = generated.AuthenticatedClient(
        base_url=ORIGIN, token=TOKEN, headers={"Accept": "application/json"}, timeout=60
    )
    with open(CALLS, encoding="utf8") as file:
        calls = json.load(file)
    modules, saved, findings = operations(), {}, []
    for call in calls:
        try:
            module = importlib.import_module(modules[plain(call["operationId"])])
            response = respond(module.sync_detailed, client, call, saved)
            detail = fault(call, response)
            for name, source in call.get("save", {}).items():
                saved[name] = value_from(source, response)
        except Exception as error:  # A call that cannot be made is a finding, not the end.
            detail = f"{type(error).__name__}: {error}"
        finding = {"check": call["key"], "isPassed": detail is None}
        findings.append(finding if detail is None else {**finding, "detail": detail})
    print(json.dumps(findings))


main()
