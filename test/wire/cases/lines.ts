/** Request lines: methods, targets, versions. */
import { head } from "../../e2e/raw.ts"
import { answeredBy, bad, line, reasons, servedBy, silent, unknownLine,
  type WireCase } from "./case.ts"

const { line: reason } = reasons
const strict = "400|close"
const lenient = "400|2xx|close"
const webSocket = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"]

const methods: ReadonlyArray<WireCase> = [
  bad("a method that is no token", line("G(T /livez HTTP/1.1")),
  bad("no method", line(" /livez HTTP/1.1")),
  servedBy(405)("a method of marks", line("!#$ /livez HTTP/1.1")),
  servedBy(405)("a method in lower case", line("get /livez HTTP/1.1"), {
    "COMP-METHOD-CASE": "400|405|501|2xx|close"
  }),
  servedBy(405)("a method that nobody knows", line("FOOBAR / HTTP/1.1"), {
    "COMP-UNKNOWN-METHOD": "400|405|501|2xx|close"
  }),
  servedBy(405)("TRACE", line("TRACE / HTTP/1.1"), { "COMP-METHOD-TRACE": "405|501|2xx|close" }),
  servedBy(405)(
    "TRACE with credentials",
    line("TRACE / HTTP/1.1", "Authorization: Bearer secret-token-123"),
    { "COMP-TRACE-SENSITIVE": "405|501|2xx|close" },
    { lacks: /secret-token-123/ }
  ),
  unknownLine("words before the method", line("Extra lineGET /livez HTTP/1.1"), {
    "h1spec: Invalid prefix of request": "4xx|5xx"
  }),
  answeredBy(431)("a method of 100 kB", line(`${"A".repeat(100_000)} / HTTP/1.1`), {
    "MAL-LONG-METHOD": strict
  }, { reason: reasons.block })
]

const targets: ReadonlyArray<WireCase> = [
  unknownLine("the absolute form", line("GET http://a/livez HTTP/1.1"), {
    "COMP-ABSOLUTE-FORM": "2xx"
  }, { reason }),
  unknownLine("the absolute form of another host", line("GET http://other.test/ HTTP/1.1"), {
    "SMUG-ABSOLUTE-URI-HOST-MISMATCH": lenient
  }, { reason }),
  unknownLine("the authority form", head("CONNECT a.test:443 HTTP/1.1", "Host: a.test:443"), {
    "COMP-METHOD-CONNECT": "400|405|501|close"
  }, { reason }),
  unknownLine("the asterisk form", line("OPTIONS * HTTP/1.1"), { "COMP-OPTIONS-STAR": "2xx" }, {
    reason
  }),
  unknownLine("the asterisk form with GET", line("GET * HTTP/1.1"), {
    "COMP-ASTERISK-WITH-GET": strict
  }, { reason }),
  unknownLine("no target", line("GET HTTP/1.1"), { "RFC9112-3-MISSING-TARGET": strict }, {
    reason
  }),
  servedBy(400)("a fragment in the target", line("GET /path#frag HTTP/1.1"), {
    "RFC9112-3.2-FRAGMENT-IN-TARGET": lenient
  }),
  bad("a fragment behind the query", line("GET /livez?x=y#frag HTTP/1.1")),
  bad("a letter outside US-ASCII in the query", line("GET /livez?caf\xc3\xa9 HTTP/1.1")),
  servedBy(400)("a letter outside US-ASCII in the path", line("GET /caf\xc3\xa9 HTTP/1.1"), {
    "MAL-NON-ASCII-URL": strict
  }),
  servedBy(400)("an overlong encoding of a slash", line("GET /\xc0\xaf HTTP/1.1"), {
    "MAL-URL-OVERLONG-UTF8": strict
  }),
  servedBy(400)("a backslash in the path", line("GET /path\\file HTTP/1.1"), {
    "MAL-URL-BACKSLASH": "400|2xx|4xx|close"
  }),
  servedBy(400)("an encoded NUL in the path", line("GET /path%00.html HTTP/1.1"), {
    "MAL-URL-PERCENT-NULL": "400|2xx|4xx|close"
  }),
  servedBy(400)(
    "an encoded line break in the path",
    line("GET /path%0d%0aX-Injected:%20true HTTP/1.1"),
    { "MAL-URL-PERCENT-CRLF": "400|2xx|4xx|close" },
    { lacks: /\r\nX-Injected/i }
  ),
  unknownLine("NUL in the target", line("GET /\0test HTTP/1.1"), { "MAL-NUL-IN-URL": strict }, {
    reason
  }),
  unknownLine("a space in the target", line("GET /pa th HTTP/1.1"), {
    "COMP-SPACE-IN-TARGET": strict
  }, { reason }),
  servedBy(400)("a target of 7,900 bytes", line(`GET /${"a".repeat(7_900)} HTTP/1.1`), {
    "COMP-LONG-URL-OK": "!414"
  }),
  answeredBy(431)("a target of 100 kB", line(`GET /${"A".repeat(100_000)} HTTP/1.1`), {
    "MAL-LONG-URL": "400|414|431|close"
  })
]

const versions: ReadonlyArray<WireCase> = [
  unknownLine("HTTP/1.0", line("GET / HTTP/1.0"), { "COMP-HTTP10-DEFAULT-CLOSE": "2xx" }, {
    reason
  }),
  unknownLine("HTTP/1.0 without Host", head("GET / HTTP/1.0"), { "COMP-HTTP10-NO-HOST": lenient }, {
    reason
  }),
  unknownLine("an upgrade of HTTP/1.0", line("GET / HTTP/1.0", ...webSocket), {
    "COMP-UPGRADE-HTTP10": "!101"
  }),
  unknownLine(
    "100-continue of HTTP/1.0",
    `${line("POST / HTTP/1.0", "Expect: 100-continue", "Content-Length: 5")}hello`,
    { "COMP-NO-1XX-HTTP10": "!1xx" }
  ),
  unknownLine(
    "chunked in HTTP/1.0, or a length",
    `${line("POST / HTTP/1.0", "Transfer-Encoding: chunked", "Content-Length: 5")}hello`,
    { "SMUG-TE-HTTP10": strict },
    { reason }
  ),
  unknownLine("HTTP/1.2", line("GET / HTTP/1.2"), { "COMP-HTTP12-VERSION": "2xx|505|close" }),
  unknownLine("HTTP/9.9", line("GET / HTTP/9.9"), {
    "RFC9112-2.3-INVALID-VERSION": "400|505|close",
    "h1spec: Invalid HTTP version": "4xx|5xx"
  }),
  unknownLine("HTTP/2 by its version", line("GET /livez HTTP/2.0")),
  unknownLine("HTTP/2 in clear text", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {
    "MAL-H2-PREFACE": "400|505|close|wait"
  }),
  unknownLine("HTTP/0.9", "GET /\r\n", { "RFC9112-2.3-HTTP09-REQUEST": "400|close|wait" }, {
    reason
  }),
  unknownLine("no version behind the space", "GET / \r\n\r\n", {
    "h1spec: Request without HTTP version": "4xx|5xx"
  }),
  unknownLine("a version in lower case", line("GET / http/1.1"), { "COMP-VERSION-CASE": strict }, {
    reason
  }),
  unknownLine("a version without its second number", line("GET / HTTP/1"), {
    "COMP-VERSION-MISSING-MINOR": strict
  }, { reason }),
  unknownLine("a version with leading zeros", line("GET / HTTP/01.01"), {
    "COMP-VERSION-LEADING-ZEROS": strict
  }, { reason }),
  unknownLine("a version with a space", line("GET / HTTP/ 1.1"), {
    "COMP-VERSION-WHITESPACE": strict
  }, { reason })
]

const spaces: ReadonlyArray<WireCase> = [
  unknownLine("two spaces", line("GET  / HTTP/1.1"), {
    "RFC9112-3-MULTI-SP-REQUEST-LINE": lenient
  }, { reason }),
  unknownLine("a tab for a space", line("GET\t/ HTTP/1.1"), { "COMP-REQUEST-LINE-TAB": lenient }, {
    reason
  }),
  unknownLine("a space after the version", line("GET /livez HTTP/1.1 ")),
  unknownLine("a bare line feed", "GET / HTTP/1.1\nHost: a\r\n\r\n", {
    "RFC9112-2.2-BARE-LF-REQUEST-LINE": lenient
  }, { reason }),
  unknownLine("bare line feeds", "POST /content HTTP/1.1\nHost: a\nContent-Length: 0\n\n"),
  unknownLine("a bare carriage return", "GET / HTTP/1.1\rHost: a\r\n\r\n", {
    "RFC9112-3-CR-ONLY-LINE-ENDING": "400"
  }, { reason }),
  unknownLine("bare carriage returns", "POST /content HTTP/1.1\rHost: a\r\r"),
  unknownLine("a carriage return too many", "POST /content HTTP/1.1\r\r\nHost: a\r\n\r\n"),
  silent("empty lines before", `\r\n\r\n${line("GET / HTTP/1.1")}`, {
    "COMP-LEADING-CRLF": lenient
  }, { reason: reasons.waits }),
  unknownLine("a line of spaces", "   \r\n\r\n", { "MAL-WHITESPACE-ONLY-LINE": "400|close|wait" }, {
    reason
  }),
  unknownLine(
    "random bytes",
    Array.from({ length: 256 }, (_, n) => String.fromCharCode((n * 167 + 89) % 256)).join(""),
    { "MAL-BINARY-GARBAGE": "400|close|wait" },
    { reason }
  )
]

export const lines: ReadonlyArray<WireCase> = [...methods, ...targets, ...versions, ...spaces]
