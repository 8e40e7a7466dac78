/** One request and its answer over undici, bounded in time and bytes. */
import { Effect } from "effect"
import { promisify } from "node:util"
import { brotliDecompress, gunzip, inflate } from "node:zlib"
import { type Agent, type Dispatcher, errors } from "undici"
import { answerBytesMax, type DeliveryLimits } from "../limits.ts"
import { faultOf, ForbiddenAddress, noAnswerInTime } from "./problems.ts"

/** The body as it is meant; or why there is none. */
export type Decoded =
  | { readonly _tag: "Decoded"; readonly bytes: Uint8Array }
  | { readonly _tag: "TooLarge" }
  | { readonly _tag: "Unknown" }
  | { readonly _tag: "Damaged" }

const decoders = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress)
}

const isKnown = (encoding: string): encoding is keyof typeof decoders =>
  Object.hasOwn(decoders, encoding)

const isTooLarge = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE"

/** Decompresses to at most `bytesMax`, and stops where there would be more. */
export const decoded = (
  encoding: string | undefined,
  bytes: Uint8Array,
  bytesMax: number
): Effect.Effect<Decoded> => {
  const name = (encoding ?? "identity").trim().toLowerCase()
  if (name === "identity" || name === "") return Effect.succeed({ _tag: "Decoded", bytes })
  if (!isKnown(name)) return Effect.succeed({ _tag: "Unknown" })
  return Effect.tryPromise(() => decoders[name](bytes, { maxOutputLength: Math.max(1, bytesMax) }))
    .pipe(
      Effect.match({
        onSuccess: (plain): Decoded =>
          plain.length > bytesMax ? { _tag: "TooLarge" } : { _tag: "Decoded", bytes: plain },
        onFailure: ({ cause }): Decoded => ({ _tag: isTooLarge(cause) ? "TooLarge" : "Damaged" })
      })
    )
}

/* Undoes a Content-Encoding that was not asked for, within bounds. */

export type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

export interface ExchangeRequest {
  readonly origin: string
  readonly path: string
  readonly method: "GET" | "POST"
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /**
   * What is kept of a 2xx answer's body: nothing, its first bytes, or all of it, in which case a
   * body with more bytes is {@link Answered.isTooLarge}.
   */
  readonly keep: "nothing" | "start" | "all"
  readonly bytesMax: number
}

/** The peer has answered: its head is complete. */
export interface Answered {
  readonly _tag: "Answered"
  readonly code: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  readonly isTooLarge: boolean
  /** Why the body did not come to its end, though it was to be kept. */
  readonly broken?: string
}

/** No answer, or no valid one. `own`: this node is to blame. */
export interface ExchangeFailure {
  readonly _tag: "Broken"
  readonly problem: string
  readonly own: boolean
}

export type Exchanged =
  | Answered
  | ExchangeFailure
  | { readonly _tag: "Forbidden" }
  | { readonly _tag: "Unsendable" }

const isOk = (code: number): boolean => code >= 200 && code < 300

const givenUp = new Error("given up")

/** Whether undici finds the request itself wrong, such as a line break in a header. */
const isInvalid = (error: unknown): boolean => error instanceof errors.InvalidArgumentError

/** The handler of one exchange, which settles once. */
class Handler implements Dispatcher.DispatchHandler {
  readonly #request: ExchangeRequest
  readonly #limits: Pick<DeliveryLimits, "drainMs">
  readonly #settle: (exchanged: Exchanged) => void
  readonly #endMs: number
  #controller: Dispatcher.DispatchController | undefined
  #head: { readonly code: number; readonly headers: Headers; readonly keeps: boolean } | undefined
  #chunks: Array<Buffer> = []
  #size = 0
  #settled = false
  #timer: NodeJS.Timeout

  constructor(
    request: ExchangeRequest,
    timeoutMs: number,
    limits: Pick<DeliveryLimits, "drainMs">,
    settle: (exchanged: Exchanged) => void
  ) {
    this.#request = request
    this.#limits = limits
    this.#settle = settle
    this.#endMs = performance.now() + timeoutMs
    this.#timer = setTimeout(() => this.#late(), timeoutMs)
  }

  /** Gives the exchange up, whatever has come of it. */
  stop(): void {
    this.#settled = true
    clearTimeout(this.#timer)
    this.#controller?.abort(givenUp)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#settled) controller.abort(givenUp)
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    code: number,
    headers: Headers
  ): void {
    if (code < 200 || this.#settled) return
    const keeps = isOk(code) && this.#request.keep !== "nothing"
    this.#head = { code, headers, keeps }
    if (!keeps) {
      clearTimeout(this.#timer)
      const leftMs = Math.min(this.#limits.drainMs, this.#endMs - performance.now())
      this.#timer = setTimeout(() => this.#late(), leftMs)
    } else if (
      this.#request.keep === "all" && Number(headers["content-length"]) > this.#request.bytesMax
    ) this.#answered({ isTooLarge: true })
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled || this.#head === undefined) return
    this.#size += chunk.length
    const { bytesMax, keep } = this.#request
    if (!this.#head.keeps) {
      if (this.#size > answerBytesMax) this.#answered({})
      return
    }
    this.#chunks.push(chunk)
    if (this.#size > bytesMax) this.#answered({ isTooLarge: keep === "all" })
  }

  onResponseEnd(): void {
    if (this.#settled) return
    // Nothing more comes, so that there is nothing to give up.
    this.#controller = undefined
    this.#answered({})
  }

  onResponseError(_: Dispatcher.DispatchController, error: unknown): void {
    this.#controller = undefined
    this.failed(error)
  }

  /** The exchange has failed, before its request was sent or after. */
  failed(error: unknown): void {
    if (this.#settled) return
    if (error instanceof ForbiddenAddress) return this.#done({ _tag: "Forbidden" })
    if (isInvalid(error)) return this.#done({ _tag: "Unsendable" })
    const { own, problem } = faultOf(error)
    this.#head === undefined
      ? this.#done({ _tag: "Broken", problem, own })
      : this.#answered({ broken: problem })
  }

  #late(): void {
    if (this.#head === undefined) {
      this.#done({ _tag: "Broken", problem: noAnswerInTime, own: false })
    } else this.#answered({ broken: noAnswerInTime })
  }

  #answered(rest: { readonly isTooLarge?: boolean; readonly broken?: string }): void {
    const head = this.#head
    if (head === undefined) return
    const { broken, isTooLarge = false } = rest
    const bytes = isTooLarge ? Buffer.alloc(0) : Buffer.concat(this.#chunks)
    this.#done({
      _tag: "Answered",
      code: head.code,
      headers: head.headers,
      bytes: bytes.subarray(0, this.#request.bytesMax),
      isTooLarge,
      ...broken === undefined || !head.keeps ? {} : { broken }
    })
  }

  #done(exchanged: Exchanged): void {
    this.stop()
    this.#settle(exchanged)
  }
}

/**
 * Sends a request and takes its answer, within `timeoutMs`; the result gives it up. `settle` is
 * called once, maybe before this returns. When its body does not matter, the answer counts as it
 * stands once its head is there, though the body drips or breaks off.
 */
export const exchange = (
  agent: Agent,
  request: ExchangeRequest,
  timeoutMs: number,
  keepsConnection: boolean,
  limits: Pick<DeliveryLimits, "drainMs">,
  settle: (exchanged: Exchanged) => void
): () => void => {
  const handler = new Handler(request, Math.max(1, timeoutMs), limits, settle)
  const { body, headers, method, origin, path } = request
  try {
    agent.dispatch(
      { origin, path, method, headers, body: body ?? null, reset: !keepsConnection },
      handler
    )
  } catch (error) {
    handler.failed(error)
  }
  return () => handler.stop()
}
