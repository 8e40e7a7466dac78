/** Content-Length: where a body ends. */
import { answeredBy, bad, chunked, end, get, hello, late, line, post, reasons, servedBy, silent,
  type WireCase } from "./case.ts"

const both = (length: string, body: string): string =>
  post(`Content-Length: ${length}`, chunked) + body
const smuggledGet = `${end}${get()}`

const withCoding: ReadonlyArray<WireCase> = [
  bad("Content-Length with Transfer-Encoding", both("22", `d\r\nhello-bananas\r\n${end}`), {
    "SMUG-CL-TE-BOTH": "400|2xx|close"
  }),
  bad("a Content-Length in the middle of the last chunk", both("4", end), {
    "SMUG-CLTE-PIPELINE": "400|close"
  }),
  bad("a Content-Length of the last chunk", both("5", end), {
    "SMUG-CLTE-CONN-CLOSE": "400|close|2xx+close"
  }),
  bad("a Content-Length of a byte more than the last chunk", both("6", `${end}X`), {
    "SMUG-CLTE-DESYNC": "400|close|2xx+close"
  }),
  bad("Transfer-Encoding with Content-Length", post(chunked, "Content-Length: 5") + end, {
    "SMUG-TECL-CONN-CLOSE": "400|close|2xx+close"
  }),
  bad("Transfer-Encoding with a larger Content-Length", post(chunked, "Content-Length: 30") + end, {
    "SMUG-TECL-PIPELINE": "400|close"
  }),
  bad("the same with a byte behind the body", `${post(chunked, "Content-Length: 30") + end}X`, {
    "SMUG-TECL-DESYNC": "400|close|2xx+close"
  }),
  bad(
    "both in mixed case",
    `${post("content-LengtH: 5", "TransFer-Encoding: chunked")}c\r\nHellO world1\r\n${end}`,
    { "h1spec: Conflicting Transfer-Encoding and Content-Length in varying case": "4xx|2xx" }
  ),
  bad("a GET in the body by length", both(String(smuggledGet.length), smuggledGet), {
    "SMUG-CLTE-SMUGGLED-GET": "400|close"
  }),
  bad("a HEAD in the body by length", both("30", `${end}${line("HEAD /livez HTTP/1.1")}`), {
    "SMUG-CLTE-SMUGGLED-HEAD": "400|close"
  }),
  bad("a GET in the body by a signed length", both("+30", smuggledGet), {
    "SMUG-CLTE-SMUGGLED-GET-CL-PLUS": "400|close"
  }),
  bad("a GET in the body by a length with a letter", both("30x", smuggledGet), {
    "SMUG-CLTE-SMUGGLED-GET-CL-NON-NUMERIC": "400|close"
  }),
  bad(
    "a GET in the first chunk",
    `${post(chunked, "Content-Length: 4")}${get("Content-Length: 7").length.toString(16)}\r\n`
      + `${get("Content-Length: 7")}\r\n${end}`,
    { "SMUG-TECL-SMUGGLED-GET": "400|close" }
  )
]

const several: ReadonlyArray<WireCase> = [
  bad("two Content-Lengths", `${post("Content-Length: 5", "Content-Length: 10")}helloworld`, {
    "SMUG-DUPLICATE-CL": "400|close"
  }),
  bad("two Content-Lengths, the larger first", post("Content-Length: 5", "Content-Length: 0")),
  silent(
    "two Content-Lengths, and a GET behind the shorter body",
    `${post("Content-Length: 4", `Content-Length: ${4 + get().length}`)}PING${get()}`,
    { "SMUG-DUPLICATE-CL-SMUGGLED-GET": "400|close" },
    { isDropped: true }
  ),
  servedBy(202)(
    "one Content-Length twice",
    `${post("Content-Length: 5", "Content-Length: 5")}hello`,
    {},
    { stores: "hello" }
  ),
  bad("a list of lengths", `${post("Content-Length: 5, 10")}hello`, {
    "SMUG-CL-COMMA-DIFFERENT": "400|close"
  }),
  bad("a list of one length twice", `${post("Content-Length: 5, 5")}hello`, {
    "SMUG-CL-COMMA-SAME": "400|2xx|close"
  }),
  bad("a list of one length three times", `${post("Content-Length: 5, 5, 5")}hello`, {
    "SMUG-CL-COMMA-TRIPLE": "400|2xx|close"
  })
]

const numbers: ReadonlyArray<WireCase> = [
  bad("a signed length", `${post("Content-Length: +5")}hello`, {
    "RFC9112-6.1-CL-PLUS-SIGN": "400|close"
  }),
  bad("a negative length", post("Content-Length: -1"), { "SMUG-CL-NEGATIVE": "400|close" }),
  bad("a larger negative length", get("Content-Length: -1234"), {
    "h1spec: Negative Content-Length header": "4xx"
  }),
  bad("an endless negative length", get("Content-Length: -123456789123456789123456789"), {
    "h1spec: Overflowing negative Content-Length header": "4xx"
  }),
  bad("a length of minus zero", post("Content-Length: -0"), {
    "SMUG-CL-NEGATIVE-ZERO": "400|close"
  }),
  bad("a length with a leading zero", `${post("Content-Length: 005")}hello`, {
    "SMUG-CL-LEADING-ZEROS": "400|2xx|close"
  }),
  bad("a length of two zeros", post("Content-Length: 00"), {
    "SMUG-CL-DOUBLE-ZERO": "400|2xx|close"
  }),
  bad("a length that may be octal", `${post("Content-Length: 0200")}${"A".repeat(200)}`, {
    "SMUG-CL-LEADING-ZEROS-OCTAL": "400|2xx|close"
  }),
  bad("a hexadecimal length", `${post("Content-Length: 0x5")}hello`, {
    "SMUG-CL-HEX-PREFIX": "400|close"
  }),
  bad("an octal length", `${post("Content-Length: 0o5")}hello`, { "SMUG-CL-OCTAL": "400|close" }),
  bad("a length with an underscore", `${post("Content-Length: 1_0")}helloworld`, {
    "SMUG-CL-UNDERSCORE": "400|close"
  }),
  bad("a length with an exponent", `${post("Content-Length: 1e1")}hellohello`),
  bad("a length with a fraction", `${post("Content-Length: 5.0")}hello`),
  bad("a length of two words", `${post("Content-Length: 1 0")}hello12345`, {
    "SMUG-CL-INTERNAL-SPACE": "400|close"
  }),
  bad("a length in letters", post("Content-Length: abc"), {
    "RFC9112-6.1-CL-NON-NUMERIC": "400|close"
  }),
  bad("a length in letters, of a GET", get("Content-Length: abc"), {
    "h1spec: Non-numeric Content-Length header": "4xx"
  }),
  bad("no length after Content-Length", post("Content-Length: "), { "MAL-CL-EMPTY": "400|close" }),
  bad("an endless length", post(`Content-Length: ${"9".repeat(20)}`), {
    "MAL-CL-OVERFLOW": "400|close"
  }),
  bad("a length of 64 bits and one", post("Content-Length: 18446744073709551616")),
  bad("a vertical tab before the length", `${post("Content-Length: \x0b5")}hello`),
  bad("a space before the colon of Content-Length", `${post("Content-Length : 5")}hello`)
]

const bodies: ReadonlyArray<WireCase> = [
  servedBy(202)(
    "a body with a length",
    `${post("Content-Length: 5")}hello`,
    {
      "COMP-POST-CL-BODY": "2xx",
      "h1spec: Valid POST request with body": "2xx|404"
    },
    { stores: "hello" }
  ),
  servedBy(202)("a length of zero", post("Content-Length: 0"), {
    "COMP-POST-CL-ZERO": "2xx|close"
  }),
  servedBy(202)("neither a length nor a coding", post(), { "COMP-POST-NO-CL-NO-TE": "2xx|close" }),
  servedBy(202)(
    "a space behind the length",
    `${post("Content-Length: 5 ")}hello`,
    { "SMUG-CL-TRAILING-SPACE": "400|2xx|close" },
    { stores: "hello" }
  ),
  servedBy(202)(
    "a byte above 127 behind the length",
    `${post("Content-Length: 5\xff")}hello`,
    {},
    { stores: "hello", reason: reasons.edges }
  ),
  servedBy(202)(
    "two spaces before the length",
    `${post("Content-Length:  5")}hello`,
    { "SMUG-CL-EXTRA-LEADING-SP": "400|2xx|close" },
    { stores: "hello" }
  ),
  servedBy(202)(
    "a tab before the length",
    `${post("Content-Length:\t5")}hello`,
    { "MAL-CL-TAB-BEFORE-VALUE": "400|2xx|close" },
    { stores: "hello" }
  ),
  late("a body that is shorter than its length", `${post("Content-Length: 10")}hello`, {
    "COMP-POST-CL-UNDERSEND": "400|close|wait"
  }),
  answeredBy(413)(
    "a huge length without a body",
    line("POST /sessions HTTP/1.1", "Content-Type: application/xml", "Content-Length: 999999999"),
    { "MAL-POST-CL-HUGE-NO-BODY": "400|close|wait" },
    { reason: reasons.large }
  ),
  servedBy(200)("a GET with a body", `${get("Content-Length: 5")}hello`, {
    "COMP-GET-WITH-CL-BODY": "400|2xx|close"
  }),
  servedBy(200)("a HEAD with a body", `${line("HEAD /livez HTTP/1.1", "Content-Length: 5")}hello`, {
    "SMUG-HEAD-CL-BODY": "400|2xx|close"
  }),
  servedBy(204)("OPTIONS with a body", `${line("OPTIONS / HTTP/1.1", "Content-Length: 5")}hello`, {
    "SMUG-OPTIONS-CL-BODY": "400|2xx|close"
  }),
  servedBy(405)("TRACE with a body", `${line("TRACE / HTTP/1.1", "Content-Length: 5")}hello`, {
    "COMP-TRACE-WITH-BODY": "400|405|501|2xx|close"
  }),
  bad("a chunked GET", get(chunked) + hello)
]

export const lengths: ReadonlyArray<WireCase> = [...withCoding, ...several, ...numbers, ...bodies]
