"""Uses the installed Python client; `python.long.ts` runs it with the name of a scenario."""

import asyncio
import importlib
import importlib.metadata
import json
import pkgutil
import sys
import time

import httpx
import restante
import restante.generated.api
import restante.generated.api.mailboxes.read_mailbox
from restante import mailbox_watch

# A test waits for conditions, not for pauses.
mailbox_watch.BACKOFF_S_FIRST = 0.01
mailbox_watch.BACKOFF_S_MAX = 0.05


def fault_of(call, *args, **options):
    try:
        call(*args, **options)
    except restante.RestanteError as error:
        return type(error).__name__, getattr(error, "fault", getattr(error, "status", None))
    return None


def watches(url, token, mailbox, count, after):
    """Prints the descriptions that a watch gets, and how often it lost its connection."""
    lost, found = [], []

    def on_connection(error):
        if error is not None:
            lost.append(str(error))

    watch = restante.watch(
        restante.connect(url, token), mailbox, after=after or None, on_connection=on_connection
    )
    # Each loop continues behind the one before.
    while len(found) < int(count):
        for notification in watch:
            found.append(notification.description)
            if len(found) % 5 == 0 or len(found) == int(count):
                break
    return {"found": found, "lost": len(lost), "cursor": watch.cursor}


def acknowledges(url, token, mailbox):
    """Removes all but the last notification, which the loop has not handled."""
    found = []
    client = restante.connect(url, token)
    for notification in restante.watch(client, mailbox, acknowledge=True):
        found.append(notification.description)
        if len(found) == 2:
            break
    return {"found": found}


def removes_again():
    """The requests of a watch whose first removals fail."""
    log = []

    def event(n):
        item = "<item><description>d</description><url>u</url></item>"
        href = f"http://p.test/mailboxes/a/notifications/{n}"
        data = f'<notification href="{href}" received="t">{item}</notification>'
        return f"id: c{n}\nevent: notification\ndata: {data}\n\n"

    def answer(request):
        log.append(f"{request.method} {request.url.path.rpartition('/')[2]}")
        removals = sum(one.startswith("DELETE") for one in log)
        if request.method == "DELETE" and removals == 1:
            raise httpx.ConnectError("it is away")
        if request.method == "DELETE":
            return httpx.Response({2: 503, 3: 204}.get(removals, 410), json={"title": "t"})
        events = event(1) if len(log) == 1 else event(2) + "event: gone\ndata: <gone/>\n\n"
        return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, text=events)

    client = FakeClient(200, "text/plain", b"")
    client._client = httpx.Client(
        base_url="http://fake.test", transport=httpx.MockTransport(answer)
    )
    end = fault_of(list, restante.watch(client, "a", acknowledge=True))
    return {"log": log, "end": end}


def pauses_between():
    """The pauses of a watch behind a proxy that allows none, and what ends it."""
    pauses = []
    answers = iter(
        [
            httpx.Response(503, headers={"Retry-After": "0"}),
            httpx.Response(
                200, headers={"Content-Type": "text/event-stream"}, text="retry: 0\n\n"
            ),
            httpx.ConnectError("it is away"),
            httpx.Response(200, headers={"Content-Type": "text/html"}, text="<p>"),
        ]
    )

    def answer(request):
        one = next(answers)
        if isinstance(one, Exception):
            raise one
        return one

    client = FakeClient(200, "text/plain", b"")
    client._client = httpx.Client(
        base_url="http://fake.test", transport=httpx.MockTransport(answer)
    )
    sleep, mailbox_watch.time.sleep = mailbox_watch.time.sleep, pauses.append
    try:
        end = fault_of(list, restante.watch(client, "a"))
    finally:
        mailbox_watch.time.sleep = sleep
    return {"pauses": len(pauses), "none": min(pauses) <= 0, "end": end}


def items(url, token, mailbox, count):
    """The items of a mailbox as a watch has them."""
    found = []
    for notification in restante.watch(restante.connect(url, token), mailbox):
        found.append([notification.description, notification.password, notification.item])
        if len(found) == int(count):
            return found


def follows_now(url, token, mailbox):
    """Prints the first notification that comes after the watch began."""
    client = restante.connect(url, token)
    found = []

    def on_connection(error):
        print("open" if error is None else "lost", flush=True)

    for notification in restante.watch(client, mailbox, after="now", on_connection=on_connection):
        found.append(notification.description)
        break
    return {"found": found}


def refuses(url, token, mailbox, other):
    """The errors of watches that cannot begin or go on."""
    client = restante.connect(url, token)

    def first(mailbox, **options):
        next(iter(restante.watch(options.pop("client", client), mailbox, **options)))

    def value_error(mailbox):
        try:
            restante.watch(client, mailbox)
        except ValueError:
            return True
        return False

    return {
        "absent": fault_of(first, "nobody"),
        "anonymous": fault_of(first, mailbox, client=restante.connect(url)),
        "password": fault_of(first, mailbox, password="wrong"),
        "cursor": fault_of(first, mailbox, after=other),
        "service": fault_of(first, mailbox, client=restante.connect("http://127.0.0.1:9", token)),
        "elsewhere": [
            value_error(one)
            for one in ("http://example.org/mailboxes/a", "../accounts", "a/b", "", "a?x")
        ],
        "html": fault_of(first, mailbox, client=FakeClient(200, "text/html", b"<p>")),
        "final": fault_of(first, mailbox, client=FakeClient(418, "text/plain", b"no")),
    }


def raises(url, token):
    """The errors of generated functions, with and without asyncio, also of a proxy's answer."""
    read = restante.generated.api.mailboxes.read_mailbox
    client = restante.connect(url, token)

    async def later():
        async with client:
            await read.asyncio("nobody", client=client)

    found = [fault_of(read.sync, "nobody", client=client), fault_of(asyncio.run, later())]
    for status, retry_after in ((503, "7"), (502, "Thu, 01 Jan 2026 00:00:09 GMT"), (429, "x")):
        headers = {"Retry-After": retry_after, "Date": "Thu, 01 Jan 2026 00:00:00 GMT"}
        content = b"<html>of a proxy</html>"
        response = httpx.Response(status, headers=headers, content=content)
        transport = httpx.MockTransport(lambda _, response=response: response)
        fake = restante.connect(url, token)
        hooks = fake.get_httpx_client().event_hooks
        fake.set_httpx_client(httpx.Client(base_url=url, transport=transport, event_hooks=hooks))
        try:
            read.sync("nobody", client=fake)
        except restante.ProblemError as error:
            found.append([type(error).__name__, error.retry_after_s])
    return found


class FakeClient:
    """A client whose service always gives the same answer."""

    def __init__(self, status, type, content):
        answer = lambda _: httpx.Response(status, headers={"Content-Type": type}, content=content)  # noqa: E731
        self._client = httpx.Client(
            base_url="http://fake.test", transport=httpx.MockTransport(answer)
        )

    def get_httpx_client(self):
        return self._client


def verifies(pushes_file):
    """What comes of each push: its headers, its body, its secrets, and when it is verified."""
    with open(pushes_file, encoding="utf-8") as file:
        pushes = json.load(file)
    results = []
    for one in pushes:
        now = one.get("now", time.time())
        args = (one["headers"], one["body"].encode(), one["secrets"])
        fault = fault_of(restante.verify_push, *args, now=now)
        if fault is not None:
            results.append(fault[1])
            continue
        push = restante.verify_push(*args, now=now)
        results.append([push.mailbox, [one.description for one in push.notifications], push.test])
    try:
        restante.verify_signature({}, b"", "whsec_")
    except restante.InvalidSignature as error:
        results.append(error.fault)
    return results


def describes():
    """How many modules of operations there are, each of which can be imported, and the version."""
    found = pkgutil.walk_packages(restante.generated.api.__path__, "restante.generated.api.")
    modules = [importlib.import_module(one.name) for one in found if not one.ispkg]
    return {
        "modules": sum(hasattr(one, "sync_detailed") for one in modules),
        "version": importlib.metadata.version("restante"),
    }


def main():
    name, *args = sys.argv[1:]
    print(json.dumps(globals()[name](*args)))


main()
