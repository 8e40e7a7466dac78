/** One request and its answer over undici, bounded in time and bytes. */
import { type Agent, type Dispatcher, errors } from "undici"
import { answerBytesMax, type DeliveryLimits } from "./limits.ts"
import { faultOf, ForbiddenAddress, noAnswerInTime } from "./problems.ts"

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
