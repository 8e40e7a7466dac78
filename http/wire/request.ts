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
  readonly choice?: FormatChoice
}

/** Request fields as name, value, name, value …; names in lower case. */
export class RequestHeaders {
  private readonly flat: ReadonlyArray<string>

  constructor(flat: ReadonlyArray<string>) {
    this.flat = flat
  }

  /** The value of a field by its lower-case name; several lines are joined by commas. */
  get(name: string): string | undefined {
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
    const others = this.flat.flatMap((field, at, all) =>
      at % 2 === 0 && field !== name ? [field, all[at + 1] ?? ""] : []
    )
    return new RequestHeaders([...others, name, value])
  }
}

/** Why a body did not arrive completely. After `Aborted` the client is gone. */
export type BodyFault =
  | { readonly _tag: "TooLarge"; readonly bytesMax: number }
  | { readonly _tag: "Aborted" | "Timeout" }

/** A {@link BodyFault} as the error that `Exchange.stream` throws. */
export class BodyError extends Error {
  readonly _tag: BodyFault["_tag"]
  constructor(tag: BodyFault["_tag"]) {
    super(`the request body: ${tag}`)
    this._tag = tag
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

/** `uri-host [":" port]`, or nothing (RFC 9110 §7.2). */
const hostPattern = /^(?:[A-Za-z0-9\-._~%!$&'()*+,;=]*|\[[0-9A-Fa-f:.]+\])(?::\d*)?$/

const methodPattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

const lengthPattern = /^\d{1,15}$/

const closePattern = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i

interface Line {
  readonly method: string
  readonly path: string
  readonly query: string
}

/** Reads the fields that frame a message. `flat` alternates names, in lower case, and values. */
export const framingOf = (
  { method, path, query }: Line,
  flat: ReadonlyArray<string>
): Framing => {
  if (!methodPattern.test(method)) return refuse("malformed", "the method is no token")
  let sizeBytes = path.length + query.length + 32
  let length: string | undefined
  let host: string | undefined
  let chunked = false
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
      if (chunked || value.toLowerCase() !== "chunked") {
        return refuse("not-implemented", "the only transfer coding known is chunked")
      }
      chunked = true
    } else if (name === "host") {
      if (host !== undefined) return refuse("malformed", "there are two Host fields")
      if (!hostPattern.test(value)) return refuse("malformed", "Host is no host")
      host = value
    } else if (name === "connection") isLast ||= closePattern.test(value)
  }
  if (sizeBytes > headerBlockBytesMax) {
    return refuse("header-fields-too-large", `more than ${headerBlockBytesMax} bytes`)
  }
  if (chunked) {
    if (length !== undefined) {
      return refuse("malformed", "there are both Content-Length and Transfer-Encoding")
    }
    return method === "GET" || method === "HEAD"
      ? refuse("malformed", `${method} takes no chunked body`)
      : chunkedBody
  }
  if (length === undefined || length === "0") return isLast ? lastEmpty : empty
  if (!lengthPattern.test(length)) return refuse("malformed", "Content-Length is not a number")
  return accepted(Number(length), isLast)
}
