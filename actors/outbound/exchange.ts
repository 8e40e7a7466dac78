/** One request and its response over undici, bounded in time and bytes. */
import { Effect } from "effect"
import { promisify } from "node:util"
import { brotliDecompress, gunzip, inflate } from "node:zlib"
import { type Agent, type Dispatcher, errors } from "undici"
import { answerBytesMax, answerSampleBytesMax, blamedShare, bodyBlockBytes,
  type DeliveryLimits } from "../limits.ts"
import { connectionFailureOf, ForbiddenAddress, noAnswerInTime, notAllowed } from "./problems.ts"
import type { BodyMemory, DeliveryFailure } from "./protocol.ts"

/** Why a body cannot be decompressed. */
export type DecodingFailure = "TooLarge" | "Unknown" | "Corrupted"

const decoders = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress)
}

const isSupported = (encoding: string): encoding is keyof typeof decoders =>
  Object.hasOwn(decoders, encoding)

const isTooLarge = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE"

const nameOf = (encoding: string | undefined): string =>
  (encoding ?? "identity").trim().toLowerCase()

/** Whether a Content-Encoding leaves the bytes as they are. */
export const isIdentity = (encoding: string | undefined): boolean =>
  ["identity", ""].includes(nameOf(encoding))

/** Undoes a Content-Encoding that was not requested; stops at `bytesMax`. */
export const decoded = (
  encoding: string | undefined,
  bytes: Uint8Array,
  bytesMax: number
): Effect.Effect<Uint8Array, DecodingFailure> => {
  if (isIdentity(encoding)) return Effect.succeed(bytes)
  const name = nameOf(encoding)
  if (!isSupported(name)) return Effect.fail("Unknown")
  return Effect.tryPromise({
    try: () => decoders[name](bytes, { maxOutputLength: Math.max(1, bytesMax) }),
    catch: (error): DecodingFailure => isTooLarge(error) ? "TooLarge" : "Corrupted"
  }).pipe(Effect.filterOrFail(({ length }) => length <= bytesMax, () => "TooLarge" as const))
}

export type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

export interface ExchangeRequest {
  readonly origin: string
  readonly path: string
  readonly method: "GET" | "HEAD" | "POST"
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | undefined
  /**
   * The part of a 2xx response's body to return: nothing, its first bytes, or all of it. If all of
   * it, a body with more bytes is {@link ExchangeResponse.isTooLarge}.
   */
  readonly keep: "nothing" | "start" | "all"
  readonly bytesMax: number
  /** Asked for the memory of a body that is kept; by default there is room. */
  readonly memory?: BodyMemory | undefined
  /**
   * Whether the first bytes of the body are sampled. Asked while the connection is open on which
   * the head has come; by default they are not.
   */
  readonly samples?: (() => boolean) | undefined
}

/** The peer has responded: its head is complete. */
export interface ExchangeResponse {
  readonly _tag: "Response"
  readonly code: number
  readonly headers: Headers
  readonly bytes: Uint8Array
  readonly isTooLarge: boolean
  /** There was no memory for the body. */
  readonly lacksMemory: boolean
  /** Why a body that was to be kept is incomplete. */
  readonly broken?: string
  /** The first bytes of the body, and how many have arrived; only if it is sampled. */
  readonly sample?: { readonly bytes: Uint8Array; readonly size: number }
}

/** No valid response. `health` is the evidence about the origin, for its circuit breaker. */
export interface ExchangeFailure {
  readonly _tag: "Failed"
  readonly outcome: DeliveryFailure
  readonly health: "failing" | "unknown"
}

export type ExchangeResult = ExchangeResponse | ExchangeFailure

/** Whether the code is a 2xx. */
export const isOk = (code: number): boolean => code >= 200 && code < 300

const stopped = new Error("the exchange was stopped")

/** The failure of an exchange that has no response. */
const failureOf = (error: unknown): ExchangeFailure => {
  if (error instanceof ForbiddenAddress) return permanentFailure(notAllowed)
  // undici rejects the request itself, such as a line break in a header.
  if (error instanceof errors.InvalidArgumentError) {
    return permanentFailure("a header or the target cannot be sent")
  }
  const { isLocal, problem } = connectionFailureOf(error)
  return retryableFailure(problem, isLocal)
}

const permanentFailure = (problem: string): ExchangeFailure => ({
  _tag: "Failed",
  outcome: { _tag: "PermanentFailure", problem },
  health: "unknown"
})

const retryableFailure = (problem: string, isBlameless: boolean): ExchangeFailure => ({
  _tag: "Failed",
  outcome: { _tag: "RetryableFailure", problem },
  health: isBlameless ? "unknown" : "failing"
})

/**
 * The bytes of a body, in blocks: a body that comes in chunks of a byte takes no more memory than
 * any other.
 */
class Body {
  private readonly blockBytes: number
  private readonly reserve: (bytes: number) => boolean
  private readonly blocks: Array<Buffer> = []
  private length = 0

  constructor({ bytesMax, memory }: Pick<ExchangeRequest, "bytesMax" | "memory">) {
    this.blockBytes = Math.max(1, Math.min(bodyBlockBytes, bytesMax))
    this.reserve = (bytes) => memory?.reserve(bytes) ?? true
  }

  /** False if there is no memory for the chunk. */
  add(chunk: Buffer): boolean {
    for (let from = 0; from < chunk.length;) {
      const used = this.length % this.blockBytes
      if (used === 0) {
        if (!this.reserve(this.blockBytes)) return false
        this.blocks.push(Buffer.allocUnsafe(this.blockBytes))
      }
      const copied = chunk.copy(this.blocks.at(-1) ?? chunk, used, from)
      from += copied
      this.length += copied
    }
    return true
  }

  bytes(): Buffer {
    return Buffer.concat(this.blocks, this.length)
  }
}

type ExchangeLimits = Pick<DeliveryLimits, "attemptMs" | "drainMs">

/** The handler of one exchange, which settles once. */
class Handler implements Dispatcher.DispatchHandler {
  private readonly request: ExchangeRequest
  private readonly limits: ExchangeLimits
  private readonly settle: (result: ExchangeResult) => void
  private readonly endMs: number
  /** The hops before have left too little time to blame this origin for what it does not answer. */
  private readonly isHurried: boolean
  private controller: Dispatcher.DispatchController | undefined
  private head:
    | { readonly code: number; readonly headers: Headers; readonly keeps: boolean }
    | undefined
  private readonly body: Body
  private sample: Body | undefined
  private size = 0
  private isTooLarge = false
  private settled = false
  private timer: NodeJS.Timeout

  constructor(
    request: ExchangeRequest,
    timeoutMs: number,
    limits: ExchangeLimits,
    settle: (result: ExchangeResult) => void
  ) {
    this.request = request
    this.body = new Body(request)
    this.limits = limits
    this.settle = settle
    this.endMs = performance.now() + timeoutMs
    this.isHurried = timeoutMs < limits.attemptMs * blamedShare
    this.timer = setTimeout(() => this.timedOut(), timeoutMs)
  }

  /** Stops the exchange; it settles no more. */
  stop(): void {
    this.settled = true
    clearTimeout(this.timer)
    this.controller?.abort(stopped)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.settled) controller.abort(stopped)
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    code: number,
    headers: Headers
  ): void {
    if (code < 200 || this.settled) return
    const keeps = isOk(code) && this.request.keep !== "nothing"
    this.head = { code, headers, keeps }
    if (this.request.samples?.() === true) {
      this.sample = new Body({ bytesMax: answerSampleBytesMax })
    }
    if (!keeps) this.drain()
    else if (
      this.request.keep === "all" && Number(headers["content-length"]) > this.request.bytesMax
    ) this.exceeded()
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.settled || this.head === undefined) return
    this.sample?.add(chunk.subarray(0, Math.max(0, answerSampleBytesMax - this.size)))
    this.size += chunk.length
    const { bytesMax, keep } = this.request
    if (!this.head.keeps) {
      if (this.size > answerBytesMax) this.respond({})
      return
    }
    const isTooLarge = this.size > bytesMax
    if (keep === "all" && (isTooLarge || this.isTooLarge)) return this.exceeded()
    if (!this.body.add(chunk)) return this.respond({ lacksMemory: true })
    if (isTooLarge) this.respond({})
  }

  onResponseEnd(): void {
    if (this.settled) return
    // The connection is idle again: stop() must not abort it.
    this.controller = undefined
    this.respond({})
  }

  onResponseError(_: Dispatcher.DispatchController, error: unknown): void {
    this.controller = undefined
    this.failed(error)
  }

  /** The exchange has failed, before or after its request was sent. */
  failed(error: unknown): void {
    if (this.settled) return
    const failure = failureOf(error)
    const { problem } = failure.outcome
    this.head === undefined ? this.end(failure) : this.respond({ broken: problem })
  }

  /** What is still read, which decides nothing, has little time. */
  private drain(): void {
    clearTimeout(this.timer)
    const leftMs = Math.min(this.limits.drainMs, this.endMs - performance.now())
    this.timer = setTimeout(() => this.timedOut(), leftMs)
  }

  /** The body is larger than it may be: only the rest of the sample is read. */
  private exceeded(): void {
    const wasTooLarge = this.isTooLarge
    this.isTooLarge = true
    if (this.sample === undefined || this.size >= answerSampleBytesMax) this.respond({})
    else if (!wasTooLarge) this.drain()
  }

  private timedOut(): void {
    if (this.head !== undefined) return this.respond({ broken: noAnswerInTime })
    this.end(retryableFailure(noAnswerInTime, this.isHurried))
  }

  private respond(
    rest: Partial<Pick<ExchangeResponse, "lacksMemory" | "broken">>
  ): void {
    const { head, isTooLarge } = this
    if (head === undefined) return
    const { broken, lacksMemory = false } = rest
    const bytes = isTooLarge || lacksMemory ? Buffer.alloc(0) : this.body.bytes()
    this.end({
      _tag: "Response",
      code: head.code,
      headers: head.headers,
      bytes: bytes.subarray(0, this.request.bytesMax),
      isTooLarge,
      lacksMemory,
      ...broken === undefined || !head.keeps ? {} : { broken },
      ...this.sample === undefined
        ? {}
        : { sample: { bytes: this.sample.bytes(), size: this.size } }
    })
  }

  private end(result: ExchangeResult): void {
    this.stop()
    this.settle(result)
  }
}

/**
 * Sends a request and reads its response, within `timeoutMs`. If the body is not kept, the
 * response counts once its head is complete, even if the body is slow or breaks off.
 */
export const exchange = (
  agent: Agent,
  request: ExchangeRequest,
  timeoutMs: number,
  keepsConnection: boolean,
  limits: ExchangeLimits
): Effect.Effect<ExchangeResult> =>
  Effect.callback((resume) => {
    const handler = new Handler(
      request,
      Math.max(1, timeoutMs),
      limits,
      (result) => resume(Effect.succeed(result))
    )
    const { body, headers, method, origin, path } = request
    try {
      agent.dispatch(
        { origin, path, method, headers, body: body ?? null, reset: !keepsConnection },
        handler
      )
    } catch (error) {
      handler.failed(error)
    }
    return Effect.sync(() => handler.stop())
  })
