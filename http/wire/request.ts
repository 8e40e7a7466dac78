/**
 * A request as plain values, the faults of its body, and its framing (RFC 9112 §3.2, §6). The
 * native parser leaves the check of the framing fields to its user: this module rejects a block
 * that two readers could frame differently, and the connection ends.
 */
import type { FormatChoice, ProblemSlug } from "../formats/index.ts"
import { headerBlockBytesMax } from "../limits.ts"

/** A request. `path` is raw (not decoded) and without the query; `query` is without its `?`. */
export interface HttpRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: RequestHeaders
  /** The address of the connection's peer, which may be a proxy. */
  readonly remoteAddress: string
  /** Of a GET for a resource with several representations. */
  readonly choice?: FormatChoice | undefined
  /** The account whose browser is signed in, for the header of a page. */
  readonly viewer?: string | undefined
}

/** One bit for each length of a name, of 32. */
const lengthBit = (name: string): number => 1 << (name.length & 31)

/** Request fields as name, value, name, value …; names in lower case. */
export class RequestHeaders {
  private readonly flat: ReadonlyArray<string>
  /** The lengths of the names: nearly all fields that are asked for are missing. */
  private readonly lengths: number

  constructor(flat: ReadonlyArray<string>) {
    this.flat = flat
    let lengths = 0
    for (let index = 0; index < flat.length; index += 2) lengths |= lengthBit(flat[index] ?? "")
    this.lengths = lengths
  }

  /** The value of a field by its lower-case name; several lines are joined by commas. */
  get(name: string): string | undefined {
    if ((this.lengths & lengthBit(name)) === 0) return undefined
    const flat = this.flat
    let value: string | undefined
    for (let index = 0; index < flat.length; index += 2) {
      if (flat[index] !== name) continue
      const line = flat[index + 1] ?? ""
      value = value === undefined ? line : `${value}, ${line}`
    }
    return value
  }

  has(name: string): boolean {
    return this.get(name) !== undefined
  }

  /** The same fields, but one of them with another value. */
  with(name: string, value: string): RequestHeaders {
    return new RequestHeaders([...this.without(name).flat, name, value])
  }

  /** The same fields, but one of them left out. */
  without(name: string): RequestHeaders {
    return new RequestHeaders(
      this.flat.flatMap((field, at, all) =>
        at % 2 === 0 && field !== name ? [field, all[at + 1] ?? ""] : []
      )
    )
  }
}

/** A limit of unfinished bodies that is reached: of the service, or of a client network. */
export interface Shortage {
  readonly of: string
  readonly bytesMax: number
  /** Whether the limit is of the files of uploads, and not of memory. */
  readonly isOfFiles?: boolean
}

/** Why a body did not arrive completely. After `Aborted` the client is gone. */
export type BodyFault =
  | {
    readonly _tag: "TooLarge"
    readonly bytesMax: number
    /** The announced length, if it is the reason. */
    readonly sizeBytes?: number
  }
  | { readonly _tag: "Timeout"; readonly afterMs: number }
  | { readonly _tag: "NoRoom"; readonly shortage: Shortage }
  /** An upload arrived faster than it was stored, and its file takes or gives no more. */
  | { readonly _tag: "FileFailed"; readonly why: "DiskLow" | "Unwritable" | "Unreadable" }
  | { readonly _tag: "Aborted" }

/** A {@link BodyFault} as the error that `Exchange.stream` throws. */
export class BodyError extends Error {
  readonly fault: BodyFault
  constructor(fault: BodyFault) {
    super(`the request body: ${fault._tag}`)
    this.fault = fault
  }
}

/** How the message is framed, or why it is rejected. */
export interface Framing {
  /** The Content-Length, 0 without a body, -1 when chunked. */
  readonly declaredBytes: number
  /** Whether the connection ends with this request. */
  readonly isLast: boolean
  readonly refusal: ProblemSlug | undefined
  readonly detail: string
}

const accepted = (declaredBytes: number, isLast: boolean): Framing => ({
  declaredBytes,
  isLast,
  refusal: undefined,
  detail: ""
})

const empty = accepted(0, false)

const lastEmpty = accepted(0, true)

/**
 * The server reads nothing after a chunked body. The native parser accepts any byte as the line
 * feed after a chunk's size and does not know trailers. A proxy may therefore see the end of the
 * body elsewhere.
 */
const chunkedBody = accepted(-1, true)

const refuse = (refusal: ProblemSlug, detail: string): Framing => ({
  declaredBytes: -1,
  isLast: true,
  refusal,
  detail
})

/** `uri-host [":" port]` (RFC 9110 §7.2); an http URI has a host (§4.2.1). */
const hostPattern = /^(?:[A-Za-z0-9\-._~%!$&'()*+,;=]+|\[[0-9A-Fa-f:.]+\])(?::\d*)?$/

const methodPattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Without leading zeros, which some readers take for an octal number. */
const lengthPattern = /^(?:0|[1-9]\d{0,14})$/

const closePattern = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i

/** What no URI has, and a fragment. The characters that browsers leave unencoded pass. */
const foreignToQuery = /[^\x21-\x7e]|#/

interface Line {
  readonly method: string
  readonly path: string
  readonly query: string
}

/** Why the line is rejected, if it is. */
const refusalOfLine = ({ method, query }: Line): Framing | undefined => {
  if (!methodPattern.test(method)) return refuse("malformed", "the method is no token")
  return query !== "" && foreignToQuery.test(query)
    ? refuse("malformed", "the query has a character that a URI must encode")
    : undefined
}

/** RFC 9112 §6.1, §6.3. A body whose coding is not exactly `chunked` is never read. */
const framingOfCoding = (method: string, coding: string, length: string | undefined): Framing => {
  if (length !== undefined) {
    return refuse("malformed", "there are both Content-Length and Transfer-Encoding")
  }
  if (coding === "chunked") {
    return method === "GET" || method === "HEAD"
      ? refuse("malformed", `${method} takes no chunked body`)
      : chunkedBody
  }
  const codings = coding.split(",").map((one) => one.trim())
  if (codings.indexOf("chunked") !== codings.length - 1) {
    return refuse("malformed", "the transfer coding does not end with chunked, once")
  }
  return codings.includes("")
    ? refuse("malformed", "Transfer-Encoding has an empty member")
    : refuse("not-implemented", "the only transfer coding known is chunked")
}

/** Reads the fields that frame a message. `flat` alternates names, in lower case, and values. */
export const framingOf = (line: Line, flat: ReadonlyArray<string>): Framing => {
  const refused = refusalOfLine(line)
  if (refused !== undefined) return refused
  let sizeBytes = line.path.length + line.query.length + 32
  let length: string | undefined
  let host: string | undefined
  let coding: string | undefined
  let hasType = false
  let isLast = false
  for (let index = 0; index < flat.length; index += 2) {
    const name = flat[index] ?? ""
    const value = flat[index + 1] ?? ""
    sizeBytes += name.length + value.length + 4
    if (name === "content-length") {
      if (length !== undefined && length !== value) {
        return refuse("malformed", "there are two different Content-Length fields")
      }
      length = value
    } else if (name === "transfer-encoding") {
      coding = (coding === undefined ? value : `${coding},${value}`).toLowerCase()
    } else if (name === "host") {
      if (host !== undefined) return refuse("malformed", "there are two Host fields")
      if (!hostPattern.test(value)) return refuse("malformed", "Host is no host")
      host = value
    } else if (name === "connection") isLast ||= closePattern.test(value)
    else if (name === "content-type") {
      if (hasType) return refuse("malformed", "there are two Content-Type fields")
      hasType = true
    } else if (name === "expect" && value.toLowerCase() !== "100-continue") {
      return refuse("expectation-failed", "the only expectation known is 100-continue")
    }
  }
  if (sizeBytes > headerBlockBytesMax) {
    return refuse(
      "header-fields-too-large",
      `the request line and the header fields have about ${sizeBytes} bytes, and may have at ` +
        `most ${headerBlockBytesMax}: send fewer or shorter fields`
    )
  }
  if (coding !== undefined) return framingOfCoding(line.method, coding, length)
  if (length === undefined || length === "0") return isLast ? lastEmpty : empty
  if (!lengthPattern.test(length)) {
    return refuse("malformed", "Content-Length is not a number without leading zeros")
  }
  return accepted(Number(length), isLast)
}
