/**
 * Other services: recipients of notifications and callbacks. They answer at random, or not at all.
 * This file records their requests and answers.
 */
import { Effect } from "effect"
import { type Computer, epochMs, type Trace,
  type VirtualTime } from "../../runtime/testing/index.ts"
import type { DeliveryOutcome, FetchOutcome, Outbound, OutboundGet, OutboundPost,
  TextContent } from "../../actors/outbound/protocol.ts"
import { outcomeOf } from "../../actors/outbound/response.ts"
import { textContentOf } from "../actors/contents.ts"
import type { Noise } from "./plan.ts"

/** One request that a recipient has received. */
export interface Delivery {
  readonly uri: string
  readonly computer: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** True time, ms. */
  readonly atMs: number
  /** The status of its answer, even if the answer was lost; 0 without an answer. */
  readonly code: number
  /** The Retry-After of its answer by the node's clock, ms; 0 without one. */
  readonly retryAfterMs: number
}

interface Answer {
  readonly code: number
  readonly headers: Readonly<Record<string, string>>
  /** The recipient receives the request and never answers. */
  readonly heard: boolean
  /** The request does not arrive. */
  readonly received: boolean
}

const ATTEMPT_MS = 30_000
const WAY_MS = 40
/** Fraction of the attempts that wait for a permit of a busy origin, and for how long. */
const TURNS = 0.5
const TURN_MS = 4_000
const fine: Answer = { code: 202, headers: {}, heard: true, received: true }
/** Characters of the Location of recipients that are many: together they fill no record. */
const LOCATION_CHARS = 1_100
const located: Answer = { ...fine, headers: { location: `/${"x".repeat(LOCATION_CHARS)}` } }

export class ExternalServices {
  noise: Noise
  readonly deliveries: Array<Delivery> = []
  readonly counts = new Map<string, number>()
  /** When each callback first echoed a challenge. */
  readonly echoes = new Map<string, number>()
  /** An attempt begins on a node. */
  onAttempt: (uri: string, content: TextContent, computer: Computer) => void = () => {}
  /** The node knows the outcome of an attempt. */
  onOutcome: (uri: string, content: TextContent, computer: Computer) => void = () => {}
  private readonly time: VirtualTime
  private readonly trace: Trace

  constructor(time: VirtualTime, trace: Trace, noise: Noise) {
    this.time = time
    this.trace = trace
    this.noise = noise
  }

  /** The client of one node. */
  outbound(computer: Computer): Outbound {
    return {
      post: (post) => this.post(computer, post),
      get: (get) => this.get(computer, get),
      head: () => Effect.succeed({ _tag: "PermanentFailure", problem: "takes no receipts" })
    }
  }

  private post(computer: Computer, post: OutboundPost): Effect.Effect<DeliveryOutcome> {
    const { time } = this
    return Effect.suspend((): Effect.Effect<DeliveryOutcome> => {
      if (time.random() < this.noise.deferrals) {
        this.count("deferred")
        const untilMs = time.wallMs(computer) + Math.round(time.random() * 3_000)
        return Effect.succeed({ _tag: "Deferred", untilMs })
      }
      const contentInTurn = Effect.andThen(this.turn(computer), textContentOf(post))
      return Effect.flatMap(contentInTurn, (content): Effect.Effect<DeliveryOutcome> => {
        if (content === undefined) {
          return Effect.succeed({ _tag: "PermanentFailure", problem: "no longer wanted" })
        }
        this.onAttempt(post.uri, content, computer)
        return Effect.tap(
          this.send(computer, post.uri, content),
          () => Effect.sync(() => this.onOutcome(post.uri, content, computer))
        )
      })
    })
  }

  /** Loads the content once the attempt has a permit; the attempt may be obsolete by then. */
  private turn(computer: Computer): Effect.Effect<void> {
    const { noise: { deferrals }, time } = this
    if (deferrals === 0 || time.random() >= TURNS) return Effect.void
    return Effect.callback((resume) => {
      time.on(computer, time.random() * TURN_MS, () => resume(Effect.void))
    })
  }

  private send(
    computer: Computer,
    uri: string,
    { body, headers }: TextContent
  ): Effect.Effect<DeliveryOutcome> {
    const { time } = this
    return Effect.callback((resume) => {
      const answer = this.answerOf(uri)
      const settle = (outcome: DeliveryOutcome, afterMs: number): void =>
        void time.on(computer, afterMs, () => resume(Effect.succeed(outcome)))
      const silent: DeliveryOutcome = { _tag: "RetryableFailure", problem: "no answer in time" }
      if (!answer.received) {
        return settle({ _tag: "RetryableFailure", problem: "the connection was reset" }, WAY_MS)
      }
      settle(silent, ATTEMPT_MS / computer.rate)
      time.later(time.random() * WAY_MS, () => {
        const { code, heard } = answer
        const name = computer.name
        const answered = {
          ...answer,
          _tag: "Answered",
          bytes: new Uint8Array(),
          isTooLarge: false
        } as const
        const outcome = outcomeOf(answered, new URL(uri), time.wallMs(computer))
        const { retryAfterMs = 0 } = outcome._tag === "RetryableFailure" ? outcome : {}
        const atMs = time.nowMs
        this.deliveries.push({ uri, computer: name, headers, body, atMs, code, retryAfterMs })
        this.trace.note(
          "externalServices",
          () => `${uri} of ${name}: ${code} ${heard} ${body.slice(0, 400)}`
        )
        if (!heard) return
        settle(outcome, time.random() * WAY_MS)
      })
    })
  }

  /** Echoes a challenge if the callback exists. */
  private get(computer: Computer, { uri }: OutboundGet): Effect.Effect<FetchOutcome> {
    const { time } = this
    return Effect.callback((resume) => {
      const answer = this.answerOf(uri)
      const settle = (outcome: FetchOutcome, afterMs: number) =>
        time.on(computer, afterMs, () => resume(Effect.succeed(outcome)))
      settle({ _tag: "RetryableFailure", problem: "no answer in time" }, ATTEMPT_MS / computer.rate)
      if (!answer.received || !answer.heard) return
      const { code } = answer
      const challenge = new URL(uri).searchParams.get("hub.challenge") ?? ""
      const bytes = Buffer.from(challenge)
      this.trace.note("externalServices", () => `challenge ${uri}: ${code}`)
      const [callback = ""] = uri.split("?")
      if (code < 300 && !this.echoes.has(callback)) this.echoes.set(callback, time.nowMs)
      const fetched = { uri, code: 200, type: "text/plain", bytes }
      settle(
        code < 300
          ? { _tag: "Fetched", fetched }
          : { _tag: "RetryableFailure", code, problem: `answered ${code}` },
        time.random() * 2 * WAY_MS
      )
    })
  }

  private answerOf(uri: string): Answer {
    // Some recipients are gone, and answer 410.
    if (uri.includes("//gone.")) return { ...fine, code: 410 }
    const { random } = this.time
    if (random() >= this.noise.recipients) return uri.includes("//many.") ? located : fine
    const kinds: ReadonlyArray<readonly [string, () => Answer]> = [
      ["5xx", () => ({ ...fine, code: 500 + Math.floor(random() * 5) })],
      ["429", () => ({ ...fine, code: 429, headers: { "retry-after": this.retryAfter() } })],
      ["408", () => ({ ...fine, code: 408 })],
      ["reset", () => ({ ...fine, received: false })],
      ["lost", () => ({ ...fine, heard: false })],
      ["hang", () => ({ ...fine, code: 0, heard: false })],
      ["4xx", () => random() < 0.3 ? { ...fine, code: 400 } : { ...fine, code: 503 }]
    ]
    const [name, make] = kinds[Math.floor(random() * kinds.length)] ?? ["fine", () => fine]
    this.count(name)
    return make()
  }

  private retryAfter(): string {
    const { nowMs, random } = this.time
    const seconds = Math.floor(random() * 20)
    return random() < 0.5
      ? String(seconds)
      : new Date(epochMs + nowMs + seconds * 1_000).toUTCString()
  }

  private count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }
}
