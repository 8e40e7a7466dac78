/** Header fields, and Host. */
import { head } from "../../e2e/raw.ts"
import { answeredBy, bad, get, post, reasons, servedBy, silent, type WireCase } from "./case.ts"

const tooLarge = answeredBy(431)
const served = servedBy(200)
const withHost = (...lines: ReadonlyArray<string>): string => head("GET /livez HTTP/1.1", ...lines)

const names: ReadonlyArray<WireCase> = [
  bad("NUL in a name", post("X\0: y")),
  bad("a control character in a name", post("X\x01: y")),
  bad("a parenthesis in a name", post("X(: y")),
  bad("brackets in a name", get("X-Invalid[]: test"), {
    "h1spec: Invalid header characters": "4xx"
  }),
  bad("a bracket in a name", get("Bad[Name: value"), {
    "RFC9112-5-INVALID-HEADER-NAME": "400|close"
  }),
  bad("a letter outside US-ASCII in a name", get("X-T\xc3\xabst: value"), {
    "MAL-NON-ASCII-HEADER-NAME": "400|close"
  }),
  bad("a space before a colon", get("X-Test : value"), {
    "RFC9110-5.6.2-SP-BEFORE-COLON": "400"
  }),
  bad("a line without a colon", get("NoColonHere"), { "RFC9112-5-HEADER-NO-COLON": "400|close" }),
  servedBy(200)("a field without a name", get(": empty-name"), {
    "RFC9112-5-EMPTY-HEADER-NAME": "400|close"
  }, { reason: reasons.nameless }),
  served(
    "names in any case, and a field without a value",
    withHost("hoSt:\texample.com", "empty:"),
    { "h1spec: Valid GET request with edge cases": "2xx" }
  ),
  servedBy(202)("an underscore in Transfer_Encoding", post("Transfer_Encoding: chunked")),
  servedBy(202)(
    "an underscore in Transfer_Encoding, and a length",
    `${post("Transfer_Encoding: chunked", "Content-Length: 5")}hello`,
    { "SMUG-TRANSFER_ENCODING": "400|2xx|close" },
    { stores: "hello" }
  )
]

const values: ReadonlyArray<WireCase> = [
  bad("NUL in a value", get("X-Test: val\0ue"), { "MAL-NUL-IN-HEADER-VALUE": "400|close" }),
  bad("control characters in a value", get("X-Test: abc\x07\x08\x0bdef"), {
    "MAL-CONTROL-CHARS-HEADER": "400|close"
  }),
  bad("a bell in a value", get("X-Bad-Control-Char: test\x07"), {
    "h1spec: Header containing invalid control character": "4xx"
  }),
  silent("a carriage return in a value", `${post("Content-Length: 5", "X-Test: val\rue")}hello`, {
    "SMUG-BARE-CR-HEADER-VALUE": "400|close"
  }, { reason: reasons.waits }),
  served("an empty value", get("X-Empty-Header: "), { "h1spec: Empty header value": "2xx" }),
  bad("a folded value", get("X-Test: value", " continued"), { "RFC9112-5.1-OBS-FOLD": "400" }),
  bad("a folded length", post("X-A: b", " Content-Length: 5")),
  bad("a value folded by a tab", post("X-A: b", "\tcontinued")),
  bad("a folded first field", head("POST /content HTTP/1.1", " Host: a")),
  bad("a line of a space before the fields", head("GET /livez HTTP/1.1", " ", "Host: a"), {
    "COMP-WHITESPACE-BEFORE-HEADERS": "400|close"
  }),
  bad("a bare line feed in the fields", "GET /livez HTTP/1.1\r\nHost: a\nX-Test: value\r\n\r\n", {
    "RFC9112-2.2-BARE-LF-HEADER": "400|2xx|close"
  }),
  bad("a bare line feed at the end", "POST /content HTTP/1.1\r\nHost: a\r\nX: y\n\r\n"),
  bad(
    "a bare carriage return behind the fields",
    "GET /livez HTTP/1.1\r\nHost: a\r\n\rSome-Header: Test\r\n\r\n",
    { "h1spec: Invalid line ending": "4xx" }
  ),
  bad(
    "two types",
    `${post("Content-Length: 5", "Content-Type: text/plain", "Content-Type: text/html")}hello`,
    { "COMP-DUPLICATE-CT": "400|2xx|close" }
  ),
  answeredBy(417)("an expectation that nobody knows", get("Expect: 200-ok"), {
    "COMP-EXPECT-UNKNOWN": "417|2xx|close"
  }),
  served("the character that US-ASCII ends with", get("X: \x7f"))
]

const sizes: ReadonlyArray<WireCase> = [
  tooLarge(
    "more fields than there may be",
    post(...Array.from({ length: 150 }, (_, n) => `X-${n}: y`))
  ),
  tooLarge("10,000 fields", get(...Array.from({ length: 10_000 }, (_, n) => `X-H-${n}: value`)), {
    "MAL-MANY-HEADERS": "400|431|close"
  }),
  tooLarge("a header block that is too large", post(`X: ${"x".repeat(20_000)}`)),
  tooLarge("a value of 100 kB", get(`X-Big: ${"B".repeat(100_000)}`), {
    "MAL-LONG-HEADER-VALUE": "400|431|close"
  }),
  tooLarge("a name of 100 kB", get(`${"A".repeat(100_000)}: val`), {
    "MAL-LONG-HEADER-NAME": "400|431|close"
  })
]

const hosts: ReadonlyArray<WireCase> = [
  bad("no Host", withHost("X: a")),
  bad("no fields at all", withHost(), { "RFC9112-7.1-MISSING-HOST": "400" }),
  bad("a length, and no Host", withHost("Content-Length: 5"), {
    "h1spec: Missing Host header": "4xx"
  }),
  bad("two Hosts", withHost("Host: a", "Host: other.example.com"), {
    "RFC9110-5.4-DUPLICATE-HOST": "400",
    "h1spec: Multiple Host headers": "4xx"
  }),
  bad("one Host twice", withHost("Host: a", "Host: a"), { "COMP-DUPLICATE-HOST-SAME": "400" }),
  bad("a list of Hosts", withHost("Host: a, other.example.com"), {
    "SMUG-MULTIPLE-HOST-COMMA": "400|close"
  }),
  bad("an empty Host", withHost("Host: "), { "COMP-HOST-EMPTY-VALUE": "400|close" }),
  bad("a port without a host", withHost("Host: :80")),
  bad("a Host with a path", withHost("Host: a/path"), { "COMP-HOST-WITH-PATH": "400|close" }),
  bad("a Host with a space", withHost("Host: a b")),
  bad("a Host with credentials", withHost("Host: user@a"), {
    "COMP-HOST-WITH-USERINFO": "400|close"
  }),
  served("a Host of IPv6 with a port", withHost("Host: [::1]:8080"))
]

const connections: ReadonlyArray<WireCase> = [
  answeredBy(200)("a wish to close", get("Connection: close"), {
    "COMP-CONNECTION-CLOSE": "2xx+close"
  }),
  answeredBy(200)("the same among others", get("Connection: x, Close")),
  served("an upgrade to h2c", get("Upgrade: h2c")),
  served("an upgrade to an unknown protocol", get("Connection: Upgrade", "Upgrade: made-up/1.0"), {
    "COMP-UPGRADE-UNKNOWN": "!101"
  }),
  served("an upgrade to WebSocket that Connection does not name", get(...webSocket("13")), {
    "COMP-UPGRADE-MISSING-CONN": "!101"
  }),
  servedBy(202)(
    "an upgrade to WebSocket by POST",
    post("Connection: Upgrade", ...webSocket("13")),
    { "COMP-UPGRADE-POST": "!101" }
  ),
  served(
    "an upgrade to a version of WebSocket that there is not",
    get("Connection: Upgrade", ...webSocket("99")),
    { "COMP-UPGRADE-INVALID-VER": "!101" }
  )
]

function webSocket(version: string): ReadonlyArray<string> {
  return [
    "Upgrade: websocket",
    "Sec-WebSocket-Key: c2l4dGVlbiByYW5kb20gYg==",
    `Sec-WebSocket-Version: ${version}`
  ]
}

export const fields: ReadonlyArray<WireCase> = [
  ...names,
  ...values,
  ...sizes,
  ...hosts,
  ...connections
]
