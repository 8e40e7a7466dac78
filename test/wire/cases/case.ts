/** A row of the table of requests, and what builds its bytes. */
import { head } from "../../e2e/raw.ts"

/** Bytes on a connection, and what the service does with them. */
export interface WireCase {
  readonly name: string
  readonly bytes: string
  /**
   * Sent later, when the service has read `bytes`, and given all answers but the last; `{etag}` and
   * `{opaque}` are an entity tag of these, with its quotes and without.
   */
  readonly rest?: string
  /** The statuses of the answers, in order. Without one the parser waits for more bytes. */
  readonly statuses: ReadonlyArray<number>
  /** Whether the connection ends at once without an answer: another request is behind this one. */
  readonly isDropped?: boolean
  /** Whether the connection serves the next request; else it ends, and nothing more is read. */
  readonly isOpen?: boolean
  /** What the answers contain, and what they do not. */
  readonly has?: RegExp
  readonly lacks?: RegExp
  /** The body that the service stores. */
  readonly stores?: string
  /**
   * What suites of others ask for, by the ids of their cases: statuses (`400`, `2xx`, `!101`),
   * `close` without an answer, or `wait`; with `+close`, the connection must end after the answer.
   */
  readonly asked?: Readonly<Record<string, string>>
  /** Why the answer is another one. */
  readonly reason?: string
}

type More = Omit<WireCase, "name" | "bytes" | "statuses" | "asked">

/** Makes rows with these answers, after which the connection ends. */
export const answeredBy = (...statuses: ReadonlyArray<number>) =>
(
  name: string,
  bytes: string,
  asked: Readonly<Record<string, string>> = {},
  more: More = {}
): WireCase => ({ name, bytes, statuses, asked, ...more })

/** Makes rows with these answers, after which the connection serves the next request. */
export const servedBy = (...statuses: ReadonlyArray<number>) =>
(
  name: string,
  bytes: string,
  asked: Readonly<Record<string, string>> = {},
  more: More = {}
): WireCase => ({ name, bytes, statuses, asked, isOpen: true, ...more })

export const bad = answeredBy(400)
/** A row whose body does not end: 408, when its time is over. */
export const late = answeredBy(408)

/** A request line that the parser does not know. */
export const unknownLine = answeredBy(505)
export const silent = answeredBy()

export const post = (...fields: ReadonlyArray<string>): string =>
  head("POST /content HTTP/1.1", "Host: a", ...fields)
export const get = (...fields: ReadonlyArray<string>): string =>
  head("GET /livez HTTP/1.1", "Host: a", ...fields)
/** A header block with this request line. */
export const line = (first: string, ...fields: ReadonlyArray<string>): string =>
  head(first, "Host: a", ...fields)

export const chunked = "Transfer-Encoding: chunked"
export const end = "0\r\n\r\n"
export const hello = `5\r\nhello\r\n${end}`

/** Why the parser does otherwise than asked, and what follows from it. */
export const reasons = {
  line: "The parser answers 505 to each request line that is not a method, a path and HTTP/1.1, "
    + "and ends the connection.",
  waits: "The parser takes the line for unfinished. It waits for the rest. A header block ends "
    + "after 10 s, and a body with 408.",
  blind: "The parser accepts it, and nothing above the parser can see it. The connection ends with "
    + "the answer: nothing behind the body is read as a request.",
  extension: "The parser reads a chunk extension as further digits of the size. It waits for so "
    + "many bytes, or finds a character that is no digit, and ends the connection.",
  trailers: "The parser reads trailer fields as the next request line, answers 505 and ends the "
    + "connection. The body is not stored, unless it ended in an earlier packet.",
  nameless: "For the parser a field without a name ends the header block, and nothing above the "
    + "parser can see the rest. No known proxy passes such a field on.",
  edges: "For the parser bytes above 127 at the ends of a value are spaces; the service sees the "
    + "rest. A `Message-Password` that ends with an accented letter loses it.",
  pending: "The parser ends a connection on which a request arrives while the answer to another is "
    + "pending. Neither is answered; the first one may be done.",
  block: "A header block of more than 16 KiB gets 431, whatever makes it so long.",
  large: "The length is larger than any body that the service takes: 413 at once."
} as const
