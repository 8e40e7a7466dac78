/** Bodies in chunks. The connection ends after each of them. */
import { answeredBy, bad, chunked, end, hello, late, post, reasons, unknownLine,
  type WireCase } from "./case.ts"

const body = (chunks: string): string => post(chunked) + chunks
const stored = answeredBy(202)
const refusedElsewhere = "400|close"
const lenient = "400|2xx|close"

const valid: ReadonlyArray<WireCase> = [
  stored("a chunked body", body(hello), { "COMP-CHUNKED-BODY": "2xx" }, { stores: "hello" }),
  stored("several chunks", body(`5\r\nhello\r\n6\r\n world\r\n${end}`), {
    "COMP-CHUNKED-MULTI": "2xx"
  }, { stores: "hello world" }),
  stored("a chunked body that is empty", body(end), { "COMP-CHUNKED-EMPTY": "2xx|close" }),
  stored("a chunk of twelve bytes", body(`c\r\nHellO world1\r\n${end}`), {
    "h1spec: Chunked Transfer-Encoding": "2xx"
  }, { stores: "HellO world1" }),
  stored("a size in capitals", body(`A\r\nhelloworld\r\n${end}`), {
    "COMP-CHUNKED-HEX-UPPERCASE": "2xx"
  }, { stores: "helloworld" }),
  stored("a last chunk of several zeros", body("5\r\nhello\r\n000\r\n\r\n"), {}, {
    stores: "hello"
  }),
  stored("chunked in capitals", post("Transfer-Encoding: CHUNKED") + hello, {}, {
    stores: "hello"
  }),
  stored("a tab before chunked", post("Transfer-Encoding:\tchunked") + hello, {}, {
    stores: "hello"
  }),
  late("no last chunk", body("5\r\nhello\r\n"), { "COMP-CHUNKED-NO-FINAL": "400|close|wait" })
]

const sizes: ReadonlyArray<WireCase> = [
  bad("a size in other letters", body("zz\r\n\r\n")),
  bad("a size of too many digits", body(`FFFFFFFFFFFFFFFF0\r\nhello\r\n${end}`), {
    "MAL-CHUNK-SIZE-OVERFLOW": refusedElsewhere
  }),
  bad("a negative size", body(`-1\r\nhello\r\n${end}`), {
    "SMUG-CHUNK-NEGATIVE": refusedElsewhere
  }),
  bad("a signed size", body(`+5\r\nhello\r\n${end}`), {
    "SMUG-CHUNK-SIZE-PLUS": refusedElsewhere
  }),
  bad("a signed last size", body("+0\r\n\r\nX"), {
    "SMUG-CHUNK-INVALID-SIZE-DESYNC": "400|close|2xx+close"
  }),
  bad("a size with a prefix", body(`0x5\r\nhello\r\n${end}`), {
    "SMUG-CHUNK-HEX-PREFIX": refusedElsewhere
  }),
  bad("a size with an underscore", body(`1_0\r\nhello world!!!!!\r\n${end}`), {
    "SMUG-CHUNK-UNDERSCORE": refusedElsewhere
  })
]

const { blind: reason } = reasons

/** What a strict parser rejects. */
const broken: ReadonlyArray<WireCase> = [
  stored("a space behind a size", body(`5 \r\nhello\r\n${end}`), {
    "SMUG-CHUNK-SIZE-TRAILING-OWS": refusedElsewhere
  }, { stores: "hello", reason }),
  stored("a space before a size", body(` 5\r\nhello\r\n${end}`), {
    "SMUG-CHUNK-LEADING-SP": refusedElsewhere
  }, { stores: "", reason }),
  stored("a chunk that is longer than its size", body(`5\r\nhello!!\r\n${end}`), {
    "SMUG-CHUNK-SPILL": refusedElsewhere
  }, { stores: "hello", reason }),
  stored("a chunk of which two bytes are cut", body(`3\r\nhello\r\n${end}`), {}, {
    stores: "hel",
    reason
  }),
  stored("a chunk without a line end", body(`5\r\nhello${end}`), {
    "SMUG-CHUNK-MISSING-TRAILING-CRLF": refusedElsewhere
  }, { stores: "hello", reason }),
  stored("a chunk without a size", body(`\r\nhello\r\n${end}`), {}, { stores: "", reason }),
  stored("line feeds behind sizes", body("5\nhello\n0\n\n"), {}, { stores: "hello", reason }),
  stored("a line feed behind a chunk", body(`5\r\nhello\n${end}`), {
    "SMUG-CHUNK-LF-TERM": lenient
  }),
  stored("a line feed at the end", body("5\r\nhello\r\n0\r\n\n"), {
    "SMUG-CHUNK-LF-TRAILER": lenient
  }, { stores: "hello" }),
  late("a carriage return behind a size", body("5\rhello\r\n0\r\n\r\n"), {
    "SMUG-CHUNK-BARE-CR-TERM": refusedElsewhere
  }, { reason: reasons.waits })
]

const extension = (text: string): string => body(`5;${text}\r\nhello\r\n${end}`)

const extensions: ReadonlyArray<WireCase> = [
  bad("a chunk extension", extension("ext=value"), { "COMP-CHUNKED-EXTENSION": "2xx" }, {
    reason: reasons.extension
  }),
  late("an extension without a name", extension(""), {
    "SMUG-CHUNK-BARE-SEMICOLON": refusedElsewhere
  }, { reason: reasons.extension }),
  bad("an extension that is no token", extension("bad[=x"), {
    "SMUG-CHUNK-EXT-INVALID-TOKEN": refusedElsewhere
  }),
  late("an extension that ends with a line feed", body(`5;\nhello\r\n${end}`), {
    "SMUG-CHUNK-EXT-LF": lenient
  }, { reason: reasons.extension }),
  late("NUL in an extension", extension("\0ext"), {
    "SMUG-CHUNK-EXT-CTRL": refusedElsewhere
  }, { reason: reasons.extension }),
  late("a carriage return in an extension", extension("a\rX"), {
    "SMUG-CHUNK-EXT-CR": refusedElsewhere
  }, { reason: reasons.extension }),
  bad("an extension of 64 KiB", extension(`ext=${"a".repeat(65_536)}`), {
    "MAL-CHUNK-EXT-64K": "400|431|2xx|close"
  })
]

const trailer = (field: string): string => body(`${hello.slice(0, -2)}${field}\r\n\r\n`)
const refusedTrailer = (name: string, id: string, field: string): WireCase =>
  unknownLine(name, trailer(field), { [id]: lenient }, { reason: reasons.trailers })

const trailers: ReadonlyArray<WireCase> = [
  unknownLine("a trailer field", trailer("X-Checksum: abc"), {
    "COMP-CHUNKED-TRAILER-VALID": "2xx"
  }, { reason: reasons.trailers }),
  refusedTrailer("a length in the trailers", "SMUG-TRAILER-CL", "Content-Length: 50"),
  refusedTrailer("a coding in the trailers", "SMUG-TRAILER-TE", chunked),
  refusedTrailer("a Host in the trailers", "SMUG-TRAILER-HOST", "Host: evil.example.com"),
  refusedTrailer("credentials in the trailers", "SMUG-TRAILER-AUTH", "Authorization: Bearer evil"),
  refusedTrailer("a type in the trailers", "SMUG-TRAILER-CONTENT-TYPE", "Content-Type: text/evil"),
  unknownLine("trailers without an end", body(`0\r\n${"X-T: y\r\n".repeat(5_000)}`))
]

export const chunks: ReadonlyArray<WireCase> = [
  ...valid,
  ...sizes,
  ...broken,
  ...extensions,
  ...trailers
]
