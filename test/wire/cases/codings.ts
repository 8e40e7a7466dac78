/** Transfer-Encoding: whether, and how, a body is in chunks. */
import { answeredBy, bad, chunked, end, get, line, post, reasons, type WireCase } from "./case.ts"

const unknownCoding = answeredBy(501)
const coding = (value: string, ...fields: ReadonlyArray<string>): string =>
  post(`Transfer-Encoding:${value}`, ...fields)
/** With a length, for readers that ignore the coding. */
const orLength = (value: string): string => `${coding(value, "Content-Length: 5")}hello`
/** With a GET in the body, for readers that take the coding. */
const withGet = (value: string): string =>
  coding(value, `Content-Length: ${(end + get()).length}`) + end + get()

const alone: ReadonlyArray<WireCase> = [
  bad("another coding", coding(" xchunked") + end),
  bad("another known coding", coding(" gzip"), { "COMP-UNKNOWN-TE-501": "400|501|close" }),
  unknownCoding("a coding before chunked", coding(" gzip, chunked") + end),
  unknownCoding("a coding before chunked, in its own field", coding(" gzip", chunked) + end),
  bad("a coding after chunked", coding(" chunked, gzip") + end, {
    "SMUG-TE-NOT-FINAL-CHUNKED": "400|close"
  }),
  bad("chunked twice", coding(" chunked", chunked) + end),
  bad("chunked and identity", coding(" chunked", "Transfer-Encoding: identity") + end),
  bad("chunked and nonsense", coding(" chunked", "Transfer-encoding: cow") + end),
  bad("chunked in quotes", coding(" \"chunked\"") + end),
  bad("chunked with a parameter", coding(" chunked;q=1") + end),
  bad("no coding after Transfer-Encoding", coding("") + end),
  bad("an empty member before chunked", coding(" , chunked") + end),
  bad("an empty member after chunked", coding(" chunked,") + end),
  bad("a vertical tab before chunked", coding(" \x0bchunked") + end),
  bad("a space before the colon of a coding", post("Transfer-Encoding : chunked") + end),
  answeredBy(202)(
    "a byte above 127 behind chunked",
    `${coding(" chunked\xff")}5\r\nhello\r\n${end}`,
    {},
    { stores: "hello", reason: reasons.edges }
  ),
  bad("a coding after a bare line feed", post("X: y\nTransfer-Encoding: chunked") + end)
]

const ambiguous = { ask: "400|2xx|close", reject: "400|close", either: "400|501|close" }

const withLength: ReadonlyArray<WireCase> = [
  bad("another coding, or a length", orLength(" xchunked"), {
    "SMUG-TE-XCHUNKED": ambiguous.either
  }),
  bad("identity, or a length", orLength(" identity"), { "SMUG-TE-IDENTITY": ambiguous.either }),
  bad("a space behind chunked, or a length", orLength(" chunked "), {
    "SMUG-TE-TRAILING-SPACE": "400|501|close|2xx+close"
  }),
  bad(
    "a space before the colon of a coding, or a length",
    `${post("Transfer-Encoding : chunked", "Content-Length: 5")}hello`,
    { "SMUG-TE-SP-BEFORE-COLON": ambiguous.reject }
  ),
  bad("chunked twice, or a length", orLength(" chunked, chunked"), {
    "SMUG-TE-DOUBLE-CHUNKED": ambiguous.ask
  }),
  bad("chunked in capitals, or a length", orLength(" Chunked"), {
    "SMUG-TE-CASE-MISMATCH": ambiguous.ask
  }),
  bad("no coding, or a length", orLength(" "), { "SMUG-TE-EMPTY-VALUE": ambiguous.reject }),
  bad("an empty member before chunked, or a length", orLength(" , chunked"), {
    "SMUG-TE-LEADING-COMMA": ambiguous.ask
  }),
  bad("an empty member after chunked, or a length", orLength(" chunked,"), {
    "SMUG-TE-TRAILING-COMMA": ambiguous.ask
  }),
  bad(
    "two codings, or a length",
    `${post(chunked, "Transfer-Encoding: identity", "Content-Length: 5")}hello`,
    { "SMUG-TE-DUPLICATE-HEADERS": ambiguous.reject }
  ),
  bad("a parameter of chunked, or a length", orLength(" chunked;ext=val"), {
    "SMUG-CHUNKED-WITH-PARAMS": ambiguous.ask
  }),
  bad("a vertical tab before chunked, or a length", orLength(" \x0bchunked"), {
    "SMUG-TE-VTAB": ambiguous.reject
  }),
  bad("a form feed before chunked, or a length", orLength(" \x0cchunked"), {
    "SMUG-TE-FORMFEED": ambiguous.reject
  }),
  bad("NUL behind chunked, or a length", orLength(" chunked\0"), {
    "SMUG-TE-NULL": ambiguous.reject
  }),
  bad("a tab before chunked, or a length", orLength("\tchunked"), {
    "SMUG-TE-TAB-BEFORE-VALUE": ambiguous.ask
  }),
  bad("a folded coding, or a length", orLength("\r\n chunked"), {
    "SMUG-TE-OBS-FOLD": "400|close|2xx+close"
  }),
  bad(
    "a folded coding of OPTIONS, or a length",
    `${line("OPTIONS / HTTP/1.1", "Transfer-Encoding:\r\n chunked", "Content-Length: 5")}hello`,
    { "SMUG-OPTIONS-TE-OBS-FOLD": "400|close|2xx+close" }
  )
]

const withGets: ReadonlyArray<WireCase> = [
  bad("a GET behind a folded coding", withGet("\r\n chunked"), {
    "SMUG-CLTE-SMUGGLED-GET-TE-OBS-FOLD": ambiguous.reject
  }),
  bad("a GET behind chunked and a space", withGet(" chunked "), {
    "SMUG-CLTE-SMUGGLED-GET-TE-TRAILING-SPACE": ambiguous.reject
  }),
  bad("a GET behind an empty member and chunked", withGet(" , chunked"), {
    "SMUG-CLTE-SMUGGLED-GET-TE-LEADING-COMMA": ambiguous.reject
  }),
  bad("a GET behind chunked in capitals", withGet(" Chunked"), {
    "SMUG-CLTE-SMUGGLED-GET-TE-CASE-MISMATCH": ambiguous.reject
  }),
  bad(
    "a GET behind two codings",
    post(chunked, "Transfer-Encoding: identity", `Content-Length: ${(end + get()).length}`)
      + end + get(),
    { "SMUG-TE-DUPLICATE-HEADERS-SMUGGLED-GET": ambiguous.reject }
  )
]

export const codings: ReadonlyArray<WireCase> = [...alone, ...withLength, ...withGets]
