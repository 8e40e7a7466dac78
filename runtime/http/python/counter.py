"""Adds to a counter of a service with the HTTP face: `python3 counter.py alice 3`."""

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

URL = os.environ.get("ACTORS_URL", "http://localhost:8080")
TOKEN = os.environ.get("ACTORS_TOKEN", "")
ATTEMPTS_MAX = 5
TIMEOUT_S = 30


class Problem(Exception):
    """An answer without a reply. `outcome` says whether the actor can have changed."""

    def __init__(self, status, document):
        super().__init__(document.get("detail", f"the service answered {status}"))
        self.status = status
        self.outcome = document.get("outcome", "indeterminate")
        self.reason = document.get("reason")


def request(path, message=None):
    """The reply to a message by POST, or to the query of a path by GET."""
    body = None if message is None else json.dumps(message).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            sent = urllib.request.Request(URL + path, body, headers)
            with urllib.request.urlopen(sent, timeout=TIMEOUT_S) as answer:
                return json.loads(answer.read() or "null")
        except urllib.error.HTTPError as error:
            # 503 of the face says that nothing changed. Only then a message may be repeated.
            is_problem = error.headers.get_content_type() == "application/problem+json"
            problem = Problem(error.code, json.load(error) if is_problem else {})
            if error.code != 503 or problem.outcome != "unchanged" or attempt == ATTEMPTS_MAX:
                raise problem from None
            time.sleep(int(error.headers.get("Retry-After", "1")))


def main(name, by):
    counter = "/actors/counter/" + urllib.parse.quote(name, safe="")
    try:
        added = request(counter, {"_tag": "Add", "by": int(by)})
        print("added:", added, "read:", request(counter + "?_tag=Read"))
    except Problem as problem:
        sys.exit(f"{problem.status}, {problem.outcome}: {problem}")


if __name__ == "__main__":
    main(*sys.argv[1:])
