"""Lints the exchanges in a file of JSON lines; writes the notes of each one as a JSON line."""

import base64
import json
import sys

from httplint import HttpRequestLinter, HttpResponseLinter


def pairs(fields):
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]


def lint(exchange):
    request = HttpRequestLinter()
    response = HttpResponseLinter(start_time=exchange["at"])
    request.response = response
    response.request = request
    response.is_head_response = exchange["method"] == "HEAD"
    request.process_request_topline(
        exchange["method"].encode(), exchange["uri"].encode(), b"HTTP/1.1"
    )
    request.process_headers(pairs(exchange["requestFields"]))
    request.feed_content(base64.b64decode(exchange["requestContent"]))
    request.finish_content(True)
    response.base_uri = exchange["uri"]
    response.process_response_topline(
        b"HTTP/1.1", str(exchange["status"]).encode(), exchange["phrase"].encode()
    )
    response.process_headers(pairs(exchange["fields"]))
    response.feed_content(base64.b64decode(exchange["content"]))
    response.finish_content(True)
    return [
        {
            "note": type(note).__name__,
            "level": note.level.name,
            "subject": note.subject,
            "summary": str(note.summary),
        }
        for note in response.notes
    ]


for line in open(sys.argv[1], encoding="utf-8"):
    print(json.dumps(lint(json.loads(line))))
