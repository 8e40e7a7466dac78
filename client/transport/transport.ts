/**
 * Requests to a service: credentials, attempts, problems. What is safe to repeat, or carries an
 * Idempotency-Key, is repeated when no answer came; what was refused for the moment, always.
 */
import { answerMs, attemptsMax, backoffMsFirst, backoffMsMax, documentBytesMax, problemBytesMax,
  retryAfterMsMax } from "../limits.ts"
import { ConnectionError, type ProblemError, problemError, RestanteError } from "./errors.ts"
import { type JsonObject, parseObject, unexpected } from "./json.ts"

/** All bytes of a body; undefined, and the rest left unread, when there are more than the bound. */
export const readBytes = async (
  body: ReadableStream<Uint8Array> | null,
  bytesMax: number
): Promise<Uint8Array | undefined> => {
  const chunks: Array<Uint8Array> = []
  let length = 0
  const reader = body?.getReader()
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    length += read.value.length
    if (length > bytesMax) {
      await reader?.cancel()
      return undefined
    }
    chunks.push(read.value)
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    bytes.set(chunk, at)
    at += chunk.length
  }
  return bytes
}

/* Pauses between attempts: growing, jittered, and over when a signal says so. */

/** Resolves after the time; rejects with the signal's reason when that is aborted first. */
export const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason)
    const aborted = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted)
      resolve()
    }, ms)
    signal?.addEventListener("abort", aborted, { once: true })
  })

/** Spreads clients that lost the same service: from half of the time to all of it. */
export const jittered = (ms: number): number => ms / 2 + Math.random() * (ms / 2)

/** The pause before attempt `n + 1`, where `n` counts from 1. */
export const backoffMs = (n: number, firstMs = backoffMsFirst): number =>
  jittered(Math.min(firstMs * 2 ** Math.min(n - 1, 20), Math.max(backoffMsMax, firstMs)))

/** The time that Retry-After asks for, in either of its forms (RFC 9110 §10.2.3). */
export const retryAfterMs = (field: string | null, nowMs: number): number | undefined => {
  if (field === null) return undefined
  if (/^\s*\d{1,9}\s*$/.test(field)) return Number(field) * 1000
  const atMs = Date.parse(field)
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs)
}

/** A signal that follows each of these that is there; undefined when none is. */
export const either = (
  ...signals: ReadonlyArray<AbortSignal | undefined>
): AbortSignal | undefined => {
  const there = signals.filter((signal) => signal !== undefined)
  return there.length > 1 ? AbortSignal.any(there) : there[0]
}

/* Reading bodies whole, up to a bound. */

/** What fetch is taken for. */
export type Fetch = (input: string, init?: RequestInit) => Promise<Response>

/** What a request brings. A stream can be sent once only; a function makes one for each attempt. */
export type RequestContentBody =
  | string
  | Uint8Array
  | ArrayBuffer
  | Blob
  | ReadableStream<Uint8Array>
  | (() => ReadableStream<Uint8Array>)

/** Where the service is, and whom to be there. */
export interface Endpoint {
  /** Where it is asked, without a slash at its end. */
  readonly url: string
  /** What the URIs that it gives out begin with. */
  readonly publicUrl: string
  readonly authorization: string | undefined
  readonly fetch: Fetch
  readonly signal: AbortSignal | undefined
  readonly attempts: number
}

/** One thing that is asked. */
export interface ServiceRequest {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE"
  /** A path of the service, or a URI. */
  readonly uri: string
  readonly accept?: string | undefined
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined
  readonly body?: RequestContentBody | undefined
  /** Instead of the account's; null for none. */
  readonly authorization?: string | undefined | null | undefined
  /** Statuses beside 2xx that are an answer. */
  readonly also?: ReadonlyArray<number> | undefined
  readonly signal?: AbortSignal | undefined
  /** Bounds an attempt; null for one that takes as long as its body. */
  readonly withinMs?: number | null | undefined
  readonly attempts?: number | undefined
  /** Refused unless asked for: fields with secrets would go wherever it leads. */
  readonly redirect?: "follow" | "error" | undefined
}

/** An answer with the document in it. */
export interface ServiceAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** How often it was asked. */
  readonly attempts: number
}

/** Statuses of a service that does nothing at the moment, and may later. */
const passing: ReadonlySet<number> = new Set([408, 425, 429, 502, 503, 504])

const base64 = (text: string): string =>
  btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""))

/** HTTP Basic (RFC 7617). */
export const basic = (name: string, password: string): string =>
  `Basic ${base64(`${name}:${password}`)}`

/** A key that nobody else makes. Not randomUUID: browsers have that in secure contexts only. */
export const newKey = (): string =>
  Array.from(
    crypto.getRandomValues(new Uint8Array(16)),
    (byte) => byte.toString(16).padStart(2, "0")
  ).join("")

const textIn = async (response: Response, bytesMax: number): Promise<string | undefined> => {
  const bytes = await readBytes(response.body, bytesMax)
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes)
}

/** The problem of a refusal; without a problem document, what its status says. */
export const problemOf = async (response: Response): Promise<ProblemError> => {
  const { headers, status, statusText } = response
  const text = await textIn(response, problemBytesMax).catch(() => undefined) ?? ""
  let document: JsonObject = {}
  try {
    if (headers.get("content-type")?.includes("json") === true) document = parseObject(text)
  } catch {
    // A proxy may answer anything.
  }
  const { detail, instance, p, status: _, title, type, ...extensions } = document
  const asText = (value: unknown): string | undefined =>
    typeof value === "string" ? value : undefined
  return problemError({
    status,
    type: asText(type) ?? "about:blank",
    title: asText(title) ?? (statusText || `status ${status}`),
    // The bridge-keeper speaks in a `p` of his own.
    detail: asText(detail) ?? asText(p),
    instance: asText(instance),
    retryAfterMs: retryAfterMs(headers.get("retry-after"), Date.now()),
    extensions
  })
}

const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  const { cause, message } = error
  return cause instanceof Error && cause.message !== "" ? `${message}: ${cause.message}` : message
}

const isStream = (body: RequestContentBody | undefined): boolean =>
  typeof body === "function" || body instanceof ReadableStream

/** Requests with the credentials and the patience of one endpoint. */
export class HttpTransport {
  readonly endpoint: Endpoint

  constructor(endpoint: Endpoint) {
    this.endpoint = endpoint
  }

  /** Where a path or URI is asked, and whether it is of this service; TypeError if it is none. */
  locate(uri: string): { readonly at: string; readonly own: boolean } {
    const { publicUrl, url } = this.endpoint
    if (uri.startsWith("/")) return { at: url + uri, own: true }
    for (const base of [publicUrl, url]) {
      if (uri === base || uri.startsWith(`${base}/`)) {
        return { at: url + uri.slice(base.length), own: true }
      }
    }
    if (!/^https?:\/\//i.test(uri) || !URL.canParse(uri)) {
      throw new TypeError("expected an http or https URI, or a path of the service")
    }
    return { at: uri, own: false }
  }

  /** The URI as the service gives it out. */
  absolute(uri: string): string {
    return uri.startsWith("/") ? this.endpoint.publicUrl + uri : uri
  }

  /**
   * Asks until there is an answer, and reads it with `read`, within the attempt: what breaks off
   * in its middle is asked again. Fails with ConnectionError, with a ProblemError, or with the
   * reason of the signal.
   */
  async ask<A>(
    asked: ServiceRequest,
    read: (response: Response, attempts: number) => Promise<A> | A
  ): Promise<A> {
    this.locate(asked.uri)
    const bound = asked.attempts ?? this.endpoint.attempts
    const most = asked.body instanceof ReadableStream ? 1 : bound
    for (let attempt = 1;; attempt++) {
      const tried = await this.attempt(asked, attempt, read)
      if (tried.done) return tried.value
      if (attempt >= most || !tried.again) throw tried.error
      await pause(tried.waitMs ?? backoffMs(attempt), this.signalOf(asked))
    }
  }

  /** As `ask`, with the text of the answer. */
  text(asked: ServiceRequest): Promise<ServiceAnswer> {
    return this.ask({ accept: "application/json", ...asked }, async (response, attempts) => {
      const { headers, status } = response
      const text = await textIn(response, documentBytesMax) ?? unexpected("it is too long")
      return { status, headers, text, attempts }
    })
  }

  /** As `ask`, with the document of the answer. */
  async json(asked: ServiceRequest): Promise<ServiceAnswer & { readonly document: JsonObject }> {
    const answer = await this.text(asked)
    return { ...answer, document: parseObject(answer.text) }
  }

  private signalOf({ signal }: ServiceRequest): AbortSignal | undefined {
    return either(this.endpoint.signal, signal)
  }

  private async attempt<A>(
    asked: ServiceRequest,
    attempt: number,
    read: (response: Response, attempts: number) => Promise<A> | A
  ): Promise<Tried<A>> {
    const stop = new AbortController()
    const { withinMs = answerMs } = asked
    const timer = withinMs === null
      ? undefined
      : setTimeout(() => stop.abort(new Error(`no answer in ${withinMs} ms`)), withinMs)
    const given = this.signalOf(asked)
    try {
      const response = await this.fetch(asked, either(given, stop.signal))
      const { ok, status } = response
      if (ok || asked.also?.includes(status) === true) {
        return { done: true, value: await read(response, attempt) }
      }
      const error = await problemOf(response)
      const waitMs = error.retryAfterMs
      // The first attempt with this key is still under way.
      const isUnderWay = status === 409 && waitMs !== undefined && isKeyed(asked)
      const again = (passing.has(status) || isUnderWay) && (waitMs ?? 0) <= retryAfterMsMax
      return { done: false, error, again, waitMs }
    } catch (error) {
      if (given?.aborted === true) throw given.reason
      if (error instanceof RestanteError) throw error
      const what = `${this.locate(asked.uri).at} cannot be reached: ${reasonOf(error)}`
      const failed = new ConnectionError(withoutSecret(what), attempt, error)
      return { done: false, error: failed, again: isRepeatable(asked), waitMs: undefined }
    } finally {
      clearTimeout(timer)
    }
  }

  private fetch(asked: ServiceRequest, signal: AbortSignal | undefined): Promise<Response> {
    const { at, own } = this.locate(asked.uri)
    const headers = new Headers({ accept: asked.accept ?? "*/*" })
    for (const [name, value] of Object.entries(asked.headers ?? {})) {
      if (value !== undefined) headers.set(name, value)
    }
    const authorization = asked.authorization === undefined && own
      ? this.endpoint.authorization
      : asked.authorization ?? undefined
    if (authorization !== undefined) headers.set("authorization", authorization)
    const { body, method } = asked
    const given = typeof body === "function" ? body() : body
    return this.endpoint.fetch(at, {
      method,
      headers,
      // Nothing that a browser remembers goes along, and nothing is kept there.
      credentials: "omit",
      redirect: asked.redirect ?? "error",
      cache: "no-store",
      ...signal === undefined ? {} : { signal },
      ...given === undefined ? {} : { body: given as BodyInit }, // buffers here are not shared
      ...isStream(body) ? { duplex: "half" } : {}
    })
  }
}

type Tried<A> =
  | { readonly done: true; readonly value: A }
  | {
    readonly done: false
    readonly error: RestanteError
    readonly again: boolean
    readonly waitMs: number | undefined
  }

const isKeyed = ({ headers }: ServiceRequest): boolean => headers?.["idempotency-key"] !== undefined

/** Whether it can be asked again when nobody knows whether it was done. */
const isRepeatable = (asked: ServiceRequest): boolean => {
  if (asked.method === "POST") return isKeyed(asked)
  // Done the first time, its condition would not hold the second time.
  const isConditional = asked.headers?.["if-match"] !== undefined ||
    asked.headers?.["if-none-match"] !== undefined
  return asked.method === "GET" || asked.method === "HEAD" || !isConditional
}

/** Messages of errors are logged: what follows `~` in a URI is not for logs. */
const withoutSecret = (text: string): string => text.replace(/(?:~|%7e)[^/\s?#:]*/gi, "~…")

/** The attempts that an endpoint makes unless it is told. */
export const defaultAttempts = attemptsMax
