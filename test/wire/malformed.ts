/**
 * Requests that two readers could interpret differently, and their answers. `[]` means no answer:
 * the native parser waits for the rest of a line that it considers unfinished.
 */
import { head } from "../e2e/raw.ts"

export interface FramingCase {
  readonly name: string
  readonly bytes: string
  readonly statuses: ReadonlyArray<number>
}

const post = (...fields: ReadonlyArray<string>): string =>
  head("POST /content HTTP/1.1", "Host: a", ...fields)
const get = (line: string, ...fields: ReadonlyArray<string>): string =>
  head(line, ...(fields.length === 0 ? ["Host: a"] : fields))

const row = (statuses: ReadonlyArray<number>) => (name: string, bytes: string): FramingCase => ({
  name,
  bytes,
  statuses
})
const bad = row([400])
const unknownCoding = row([501])
/** A request line or a version that the native parser does not know. */
const unknown = row([505])
const silent = row([])

const chunked = "Transfer-Encoding: chunked"
const end = "0\r\n\r\n"
const hello = `5\r\nhello\r\n${end}`

/** Where the body ends. */
const lengths: ReadonlyArray<FramingCase> = [
  bad("Content-Length with Transfer-Encoding", post("Content-Length: 4", chunked) + end),
  bad("Transfer-Encoding with Content-Length", post(chunked, "Content-Length: 5") + end),
  bad("both in mixed case", post("transfer-ENCODING: chunked", "content-LENGTH: 4") + end),
  bad("two Content-Lengths", post("Content-Length: 0", "Content-Length: 5")),
  bad("two Content-Lengths, the other first", post("Content-Length: 5", "Content-Length: 0")),
  bad("a list of lengths", post("Content-Length: 0, 5")),
  bad("a list of one length twice", `${post("Content-Length: 5, 5")}hello`),
  bad("a signed length", `${post("Content-Length: +5")}hello`),
  bad("a negative length", post("Content-Length: -1")),
  bad("a hexadecimal length", `${post("Content-Length: 0x5")}hello`),
  bad("a length with an exponent", `${post("Content-Length: 1e1")}hellohello`),
  bad("a length with a fraction", `${post("Content-Length: 5.0")}hello`),
  bad("a length of two words", `${post("Content-Length: 5 5")}hello`),
  bad("no length after Content-Length", post("Content-Length:")),
  bad("an endless length", post(`Content-Length: ${"9".repeat(30)}`)),
  bad("a length of 64 bits and one", post("Content-Length: 18446744073709551616")),
  bad("a vertical tab before the length", `${post("Content-Length: \x0b5")}hello`),
  bad("a space before the colon of Content-Length", `${post("Content-Length : 5")}hello`)
]

const codings: ReadonlyArray<FramingCase> = [
  unknownCoding("another coding", post("Transfer-Encoding: xchunked") + end),
  unknownCoding("a coding before chunked", post("Transfer-Encoding: gzip, chunked") + end),
  unknownCoding("a coding after chunked", post("Transfer-Encoding: chunked, identity") + end),
  unknownCoding("chunked twice", post(chunked, chunked) + end),
  unknownCoding("chunked and identity", post(chunked, "Transfer-Encoding: identity") + end),
  unknownCoding("chunked and nonsense", post(chunked, "Transfer-encoding: cow") + end),
  unknownCoding("chunked in quotes", post(`Transfer-Encoding: "chunked"`) + end),
  unknownCoding("chunked with a parameter", post("Transfer-Encoding: chunked;q=1") + end),
  unknownCoding("no coding after Transfer-Encoding", post("Transfer-Encoding:") + end),
  bad("a vertical tab before chunked", post("Transfer-Encoding: \x0bchunked") + end),
  bad("a space before the colon of a coding", post("Transfer-Encoding : chunked") + end),
  bad("a coding after a bare line feed", post("X: y\nTransfer-Encoding: chunked") + end),
  bad("a chunked GET", get("GET /livez HTTP/1.1", "Host: a", chunked) + hello)
]

const chunks: ReadonlyArray<FramingCase> = [
  bad("a chunk of no hexadecimal size", `${post(chunked)}zz\r\n\r\n`),
  bad("a chunk of too many digits", `${post(chunked)}fffffffffffffffff\r\n\r\n`),
  bad("a negative chunk", `${post(chunked)}-1\r\n\r\n`),
  bad("a signed chunk", `${post(chunked)}+5\r\nhello\r\n${end}`),
  bad("a chunk of a C number", `${post(chunked)}0x5\r\nhello\r\n${end}`),
  bad("an extension without end", `${post(chunked)}5;a=${"x".repeat(30_000)}\r\nhello\r\n${end}`),
  unknown("trailers", `${post(chunked)}5\r\nhello\r\n0\r\nX-T: y\r\n\r\n`),
  unknown(
    "a length in the trailers",
    `${post(chunked)}${hello.slice(0, -2)}Content-Length: 9\r\n\r\n`
  ),
  unknown("trailers without end", `${post(chunked)}0\r\n${"X-T: y\r\n".repeat(5_000)}`)
]

const fields: ReadonlyArray<FramingCase> = [
  bad("NUL in a name", post("X\0: y")),
  bad("NUL in a value", post("X: a\0b")),
  silent("CR in a value", post("X: a\rb")),
  bad("a control character in a name", post("X\x01: y")),
  bad("a parenthesis in a name", post("X(: y")),
  bad("a line without a colon", post("X-nothing")),
  bad("a folded length", post("X-A: b", " Content-Length: 5")),
  bad("a line folded by a tab", post("X-A: b", "\tcontinued")),
  bad("a folded first field", head("POST /content HTTP/1.1", " Host: a")),
  bad("a bare line feed at the end", "POST /content HTTP/1.1\r\nHost: a\r\nX: y\n\r\n"),
  row([431])(
    "more fields than there may be",
    post(...Array.from({ length: 150 }, (_, n) => `X-${n}: y`))
  ),
  row([431])("a header block that is too large", post(`X: ${"x".repeat(20_000)}`)),
  bad("no Host", get("GET /livez HTTP/1.1", "X: a")),
  bad("two Hosts", get("GET /livez HTTP/1.1", "Host: a", "Host: b")),
  bad("one Host twice", get("GET /livez HTTP/1.1", "Host: a", "Host: a")),
  bad("a Host with a path", get("GET /livez HTTP/1.1", "Host: a/../b")),
  bad("a Host with a space", get("GET /livez HTTP/1.1", "Host: a b")),
  bad("a Host with credentials", get("GET /livez HTTP/1.1", "Host: user@a"))
]

const lines: ReadonlyArray<FramingCase> = [
  unknown("the absolute form", get("GET http://other.test/livez HTTP/1.1")),
  unknown("the authority form", get("CONNECT a.test:443 HTTP/1.1")),
  unknown("the asterisk form", get("OPTIONS * HTTP/1.1")),
  unknown("HTTP/1.0", get("GET /livez HTTP/1.0")),
  unknown("HTTP/1.2", get("GET /livez HTTP/1.2")),
  unknown("HTTP/2 by its version", get("GET /livez HTTP/2.0")),
  unknown("HTTP/2 in clear text", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  unknown("HTTP/0.9", "GET /livez\r\n\r\n"),
  unknown("a version in lower case", get("GET /livez http/1.1")),
  unknown("two spaces", get("GET  /livez HTTP/1.1")),
  unknown("tabs for spaces", get("GET\t/livez\tHTTP/1.1")),
  unknown("a space in the target", get("GET /li vez HTTP/1.1")),
  unknown("a space after the version", get("GET /livez HTTP/1.1 ")),
  unknown("NUL in the target", get("GET /\0 HTTP/1.1")),
  unknown("bare line feeds", "POST /content HTTP/1.1\nHost: a\nContent-Length: 0\n\n"),
  unknown("bare carriage returns", "POST /content HTTP/1.1\rHost: a\r\r"),
  unknown("a carriage return too many", "POST /content HTTP/1.1\r\r\nHost: a\r\n\r\n"),
  silent("an empty line before", `\r\n${get("GET /livez HTTP/1.1")}`),
  bad("a method that is no token", get("G(T /livez HTTP/1.1")),
  bad("no method", get(" /livez HTTP/1.1"))
]

/** Rejected or not answered. The connection ends; the next bytes are never read as a request. */
export const malformed: ReadonlyArray<FramingCase> = [lengths, codings, chunks, fields, lines]
  .flat()

/**
 * Accepted, although a strict parser would reject some: the native parser accepts any byte as the
 * line feed after a chunk's size. The connection therefore ends after every chunked body.
 */
export const lenient: ReadonlyArray<FramingCase> = [
  row([202])("a chunked body", post(chunked) + hello),
  row([202])("chunked in capitals", post("Transfer-Encoding: CHUNKED") + hello),
  row([202])("a tab before chunked", post("Transfer-Encoding:\tchunked") + hello),
  row([202])("a last chunk of several zeros", `${post(chunked)}5\r\nhello\r\n000\r\n\r\n`),
  row([202])("a space after a chunk's size", `${post(chunked)}5 \r\nhello\r\n${end}`),
  row([202])("line feeds after sizes", `${post(chunked)}5\nhello\n0\n\n`),
  row([202])("a chunk that is longer than its size", `${post(chunked)}3\r\nhello\r\n${end}`),
  row([202])("a chunk without a size", `${post(chunked)}\r\nhello\r\n${end}`),
  row([202])("an underscore in Transfer_Encoding", `${post("Transfer_Encoding: chunked")}${end}`),
  row([200])("a wish to close", get("GET /livez HTTP/1.1", "Host: a", "Connection: close")),
  row([200])("the same among others", get("GET /livez HTTP/1.1", "Host: a", "Connection: x, Close"))
]

/**
 * Invisible behind the native parser: a field without a name ends the header block, and the parser
 * ignores the length after it. No known proxy forwards such a field. If this row gets one answer
 * only, the parser is fixed: move the row to the malformed ones.
 */
export const undetected: FramingCase = row([200, 200])(
  "a field without a name",
  get("GET /livez HTTP/1.1", "Host: a", ": y", "Content-Length: 58") +
    get("GET /livez HTTP/1.1", "Host: a", "Connection: close")
)

/** Unusual but valid: the service answers them and the next request. */
export const unusual: ReadonlyArray<FramingCase> = [
  row([200])(
    "a GET with a body",
    `${get("GET /livez HTTP/1.1", "Host: a", "Content-Length: 5")}hello`
  ),
  row([200])("an empty Host", get("GET /livez HTTP/1.1", "Host:")),
  row([200])("a Host of IPv6 with a port", get("GET /livez HTTP/1.1", "Host: [::1]:8080")),
  row([200])("an upgrade to h2c", get("GET /livez HTTP/1.1", "Host: a", "Upgrade: h2c")),
  row([405])("a method of marks", get("!#$ /livez HTTP/1.1")),
  row([405])("a method in lower case", get("get /livez HTTP/1.1")),
  row([400])("a fragment in the target", get("GET /livez#x HTTP/1.1"))
]
