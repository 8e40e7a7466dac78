/** What answers contain, and several requests on one connection. */
import { answeredBy, get, line, post, reasons, servedBy, silent, type WireCase } from "./case.ts"

const home = line("GET / HTTP/1.1")
const imfDate = /\r\nDate: (Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT\r\n/

const single: ReadonlyArray<WireCase> = [
  servedBy(200)("GET", home, { "COMP-BASELINE": "2xx", "h1spec: Valid GET request": "2xx" }),
  servedBy(200)("a date", home, { "COMP-DATE-HEADER": "2xx", "COMP-DATE-FORMAT": "2xx" }, {
    has: imfDate
  }),
  servedBy(200)("a type", home, { "COMP-CONTENT-TYPE": "2xx" }, { has: /\r\nContent-Type: / }),
  servedBy(200)("HEAD without a body", line("HEAD / HTTP/1.1"), { "COMP-HEAD-NO-BODY": "2xx" }, {
    has: /\r\n\r\nHTTP\/1\.1 200 /
  }),
  servedBy(405)("405 with Allow", line("DELETE / HTTP/1.1"), { "COMP-405-ALLOW": "405" }, {
    has: /\r\nAllow: GET/
  }),
  servedBy(204)("OPTIONS with Allow", line("OPTIONS / HTTP/1.1"), { "COMP-OPTIONS-ALLOW": "2xx" }, {
    has: /\r\nAllow: GET/
  }),
  servedBy(204)(
    "204 without a length",
    line("OPTIONS / HTTP/1.1"),
    { "COMP-NO-CL-IN-204": "204" },
    {
      has: /^HTTP\/1\.1 204 (?:(?!\r\n\r\n)(?!content-length)[^])*\r\n\r\n/i
    }
  ),
  servedBy(202)("a range of a POST", `${post("Content-Length: 5", "Range: bytes=0-10")}hello`, {
    "COMP-RANGE-POST": "2xx"
  }, { stores: "hello" }),
  servedBy(200)("a range that is none", line("GET / HTTP/1.1", "Range: bytes=abc-xyz"), {
    "COMP-RANGE-INVALID": "2xx|416"
  }),
  servedBy(200)(
    "1,000 ranges",
    line("GET / HTTP/1.1", `Range: bytes=${Array.from({ length: 1_000 }, () => "0-").join(",")}`),
    { "MAL-RANGE-OVERLAPPING": "200|206|400|416|431|close" }
  ),
  servedBy(406)(
    "a type that nobody has",
    line("GET / HTTP/1.1", "Accept: application/x-nonsense"),
    {
      "COMP-ACCEPT-NONSENSE": "406|2xx"
    }
  ),
  servedBy(202)(
    "a body of a type that nobody knows",
    `${post("Content-Length: 5", "Content-Type: application/x-nonsense")}hello`,
    { "COMP-POST-UNSUPPORTED-CT": "415|2xx" },
    { stores: "hello" }
  )
]

const prefix = "GET /livez HTTP/1.1\r\nHost: a\r\n"

const several: ReadonlyArray<WireCase> = [
  silent(
    "a request behind one whose answer is pending",
    `${post("Content-Length: 5")}hello${get()}`,
    {},
    { isDropped: true, reason: reasons.pending }
  ),
  servedBy(200, 404, 200)(
    "three requests in one packet",
    get() + line("GET /nowhere HTTP/1.1") + get()
  ),
  servedBy(200, 200)("two requests", get(), { "SMUG-PIPELINE-SAFE": "2xx" }, { rest: get() }),
  servedBy(200, 200)(
    "a GET with a body, then another",
    `${get("Content-Length: 5")}hello`,
    { "SMUG-GET-CL-BODY-DESYNC": "400|2xx|close" },
    { rest: get() }
  ),
  servedBy(204, 200)(
    "OPTIONS with a body, then GET",
    `${line("OPTIONS / HTTP/1.1", "Content-Length: 5")}hello`,
    { "SMUG-OPTIONS-CL-BODY-DESYNC": "400|2xx|close" },
    { rest: get() }
  ),
  servedBy(100, 202, 200)(
    "a body after 100-continue, then GET",
    `${post("Content-Length: 5", "Expect: 100-continue")}hello`,
    { "SMUG-EXPECT-100-CL-DESYNC": "400|417|1xx|2xx|close" },
    { rest: get(), stores: "hello" }
  ),
  answeredBy(200)(
    "a GET with the start of a request as its body, then an empty line",
    `${get(`Content-Length: ${prefix.length}`)}${prefix}`,
    { "SMUG-GET-CL-PREFIX-DESYNC": "400|2xx|close" },
    { rest: `\r\n${get()}` }
  ),
  servedBy(202, 405)(
    "a byte behind a body of no length, then GET",
    `${post("Content-Length: 0")}X`,
    { "SMUG-CL0-BODY-POISON": "400|2xx|close" },
    { rest: line("GET /livez HTTP/1.1") }
  )
]

const problem = (...fields: ReadonlyArray<string>): string =>
  line("GET /problems/gone HTTP/1.1", ...fields)

/** A GET, and a conditional one; `{etag}` is the entity tag of the first answer. */
const again = (name: string, id: string, status: number, ...fields: ReadonlyArray<string>) =>
  servedBy(200, status)(name, problem(), { [id]: "2xx" }, {
    rest: problem(...fields),
    ...status === 304 ? { has: /HTTP\/1\.1 304 [^]*\r\nETag: "/ } : {}
  })

const future = "If-Modified-Since: Thu, 01 Jan 2099 00:00:00 GMT"
const past = "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT"

const conditional: ReadonlyArray<WireCase> = [
  again("an entity tag", "CAP-ETAG-304", 304, "If-None-Match: {etag}"),
  again("an entity tag in 304", "CAP-ETAG-IN-304", 304, "If-None-Match: {etag}"),
  again("a weak entity tag", "CAP-ETAG-WEAK", 304, "If-None-Match: W/{etag}"),
  again("any entity tag", "CAP-INM-WILDCARD", 304, "If-None-Match: *"),
  again("an entity tag and a date", "CAP-INM-PRECEDENCE", 304, "If-None-Match: {etag}", past),
  again("an entity tag without quotes", "CAP-INM-UNQUOTED", 200, "If-None-Match: {opaque}"),
  again("a date in the future", "CAP-IMS-FUTURE", 200, future),
  again("no date of the resource", "CAP-LAST-MODIFIED-304", 200, past),
  again("a date that is none", "CAP-IMS-INVALID", 200, "If-Modified-Since: not-a-date")
]

export const answers: ReadonlyArray<WireCase> = [...single, ...several, ...conditional]
