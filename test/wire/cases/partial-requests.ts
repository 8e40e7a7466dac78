/** Requests of which a part arrives: the service waits, and answers when the rest arrives. */
import { get, post, servedBy, silent, type WireCase } from "./case.ts"

const whole = get()

/** The places where h1spec cuts a request, by the last bytes before the cut. */
const places: ReadonlyArray<readonly [h1spec: string, name: string, until: string]> = [
  ["Fragmented method", "a part of the method", "G"],
  ["Fragmented URL 1", "a method and a space", "GET "],
  ["Fragmented URL 2", "a target", "GET /livez"],
  ["Fragmented URL 3", "a target and a space", "GET /livez "],
  ["Fragmented HTTP version", "a part of the version", "GET /livez HTTP"],
  ["Fragmented request line", "a version without a line end", "GET /livez HTTP/1.1"],
  ["Fragmented request line newline 1", "half a line end", "GET /livez HTTP/1.1\r"],
  ["Fragmented request line newline 2", "a request line", "GET /livez HTTP/1.1\r\n"],
  ["Fragmented field name", "a part of a field name", "GET /livez HTTP/1.1\r\nHos"],
  ["Fragmented field value 1", "a colon", "GET /livez HTTP/1.1\r\nHost:"],
  ["Fragmented field value 2", "a colon and a space", "GET /livez HTTP/1.1\r\nHost: "],
  ["Fragmented field value 3", "a value", "GET /livez HTTP/1.1\r\nHost: a"],
  ["Fragmented field value 4", "a value and half a line end", "GET /livez HTTP/1.1\r\nHost: a\r"],
  ["Fragmented request", "a field", "GET /livez HTTP/1.1\r\nHost: a\r\n"],
  ["Fragmented request termination", "half an empty line", "GET /livez HTTP/1.1\r\nHost: a\r\n\r"]
]

export const partialRequests: ReadonlyArray<WireCase> = [
  ...places.map(([h1spec, name, until]) =>
    servedBy(200)(`${name}, then the rest`, until, { [`h1spec: ${h1spec}`]: "wait" }, {
      rest: whole.slice(until.length)
    })
  ),
  silent("nothing", "", { "MAL-EMPTY-REQUEST": "400|close|wait" }),
  silent("fields without an end", "GET / HTTP/1.1\r\nHost: a\r\nX-Test: value", {
    "MAL-INCOMPLETE-REQUEST": "400|close|wait"
  }),
  servedBy(100, 200)("an expectation of a GET", get("Expect: 100-continue"), {
    "h1spec: Request with Expect header": "100|2xx"
  }),
  servedBy(100, 202)(
    "100-continue, then the body",
    post("Content-Length: 5", "Expect: 100-continue"),
    {},
    { rest: "hello", stores: "hello" }
  ),
  servedBy(100, 202)(
    "100-continue, with the body",
    `${post("Content-Length: 5", "Expect: 100-continue")}hello`,
    { "SMUG-EXPECT-100-CL": "400|1xx|2xx|close" },
    { stores: "hello" }
  )
]
