/**
 * Limits the requests to each origin: how many are in flight, how many wait, and a circuit breaker
 * for origins that fail. Origins take turns, so that no origin delays another one.
 */
import { Effect, Exit } from "effect"
import { deferredJitterMs, type DeliveryLimits } from "../limits.ts"
import type { Deferred } from "./protocol.ts"

/** The evidence of one request about its origin. */
export type OriginHealth = "healthy" | "failing" | "unknown"

/**
 * The circuit breaker of one origin. Closed until `failuresMax` failures in a row; then open, for
 * twice as long each time. After that it lets one probe at a time through; a response closes it.
 */
export class CircuitBreaker {
  private readonly limits: Pick<DeliveryLimits, "failuresMax" | "openMs" | "openMaxMs">
  private failures = 0
  private openings = 0
  private untilMs = 0
  private isProbing = false

  constructor(limits: Pick<DeliveryLimits, "failuresMax" | "openMs" | "openMaxMs">) {
    this.limits = limits
  }

  /** Whether it has opened and not closed since. */
  get isOpen(): boolean {
    return this.openings > 0
  }

  /** Whether it has no failure to remember. */
  get isBlank(): boolean {
    return this.openings === 0 && this.failures === 0
  }

  /** When a request that comes now may be retried; undefined if it may be sent now. */
  retryAtMs(nowMs: number, probeRetryMs: number): number | undefined {
    if (this.openings === 0) return undefined
    if (nowMs < this.untilMs) return this.untilMs
    return this.isProbing ? nowMs + probeRetryMs : undefined
  }

  /** Begins a request; returns whether it is the probe. */
  begin(): boolean {
    if (this.openings === 0) return false
    this.isProbing = true
    return true
  }

  /** Ends a request; returns whether it has opened the circuit. */
  end(health: OriginHealth, isProbe: boolean, nowMs: number): boolean {
    if (isProbe) this.isProbing = false
    if (health === "unknown") return false
    if (health === "healthy") {
      this.failures = 0
      this.openings = 0
      return false
    }
    // A request that began before the opening proves nothing new by its failure.
    if (this.openings > 0 && !isProbe) return false
    this.failures += 1
    if (!isProbe && this.failures < this.limits.failuresMax) return false
    const openMs = this.limits.openMs * 2 ** Math.min(this.openings, 30)
    this.untilMs = nowMs + Math.min(openMs, this.limits.openMaxMs)
    this.openings += 1
    this.failures = 0
    return true
  }
}

/** The last retry time that was given to a request of an origin. */
export interface RetrySlots {
  lastMs: number
}

const sweepMs = 1_000

/**
 * Spreads the retries of deferred requests. Origins share the node's rate, so that an origin with
 * many deferred requests does not delay the others. The rate is kept on average only.
 */
export class RetryPacing {
  private readonly stepMs: number
  private readonly random: () => number
  /** Origins with a retry in the future, as of the last sweep. */
  private readonly pending = new Set<RetrySlots>()
  private sweptMs = 0

  constructor(perSecond: number, random: () => number) {
    this.stepMs = 1_000 / perSecond
    this.random = random
  }

  /**
   * The time of the origin's next retry, not before `earliestMs`. `originStepMs` bounds the time
   * between two retries of an origin that serves faster than its share.
   */
  next(slots: RetrySlots, earliestMs: number, nowMs: number, originStepMs = Infinity): number {
    if (nowMs - this.sweptMs >= sweepMs) this.sweep(nowMs)
    this.pending.add(slots)
    const stepMs = Math.min(this.stepMs * this.pending.size, originStepMs)
    slots.lastMs = Math.max(slots.lastMs + stepMs, earliestMs)
    return Math.round(slots.lastMs + this.random() * deferredJitterMs)
  }

  private sweep(nowMs: number): void {
    this.sweptMs = nowMs
    for (const slots of this.pending) if (slots.lastMs <= nowMs) this.pending.delete(slots)
  }
}

const rateSpanMs = 250

/** How many requests an origin has served in a second, as of the last span. */
class ServiceRate {
  private sinceMs: number
  private spanCount = 0
  private lastPerSecond: number | undefined

  constructor(nowMs: number) {
    this.sinceMs = nowMs
  }

  count(nowMs: number): void {
    this.advance(nowMs)
    this.spanCount += 1
  }

  /** 0 until one was served; undefined until the first span is over. */
  perSecond(nowMs: number): number | undefined {
    this.advance(nowMs)
    return this.lastPerSecond ?? (this.spanCount === 0 ? 0 : undefined)
  }

  private advance(nowMs: number): void {
    const spanMs = nowMs - this.sinceMs
    if (spanMs < rateSpanMs) return
    this.lastPerSecond = this.spanCount * 1_000 / spanMs
    this.spanCount = 0
    this.sinceMs = nowMs
  }
}

export interface OriginLimiterMetrics {
  readonly inFlight: number
  readonly waiting: number
  readonly oldestWaitingMs: number
  readonly circuitsOpen: number
  readonly origins: number
}

/** The requests of one origin, and its circuit. */
export interface OriginMetrics {
  readonly origin: string
  readonly inFlight: number
  readonly waiting: number
  readonly oldestWaitingMs: number
  readonly circuitOpen: boolean
}

export interface OriginLimiterOptions {
  readonly limits: DeliveryLimits
  /** The time of day, for the times that it returns. */
  readonly nowMs: () => number
  /** Measures everything else: a clock that is set back by an hour keeps no circuit open. */
  readonly monotonicMs: () => number
  /** In [0, 1). */
  readonly random: () => number
}

/** An origin with a full queue gets more retries than it serves, by this factor. */
const retriesPerServed = 1.5

/** An origin that serves fewer requests than this gets no more retries than an open circuit. */
const slowPerSecond = 100

interface Origin {
  readonly origin: string
  readonly circuit: CircuitBreaker
  readonly retries: RetrySlots
  readonly service: ServiceRate
  /** In the order of their arrival. */
  readonly waiting: Set<Permit>
  inFlight: number
}

/** One request's permit to its origin. */
interface Permit {
  readonly _tag: "Permit"
  readonly origin: Origin
  readonly sinceMs: number
  readonly resume: (result: Effect.Effect<Permit | Deferred>) => void
  state: "waiting" | "granted" | "over"
  isProbe: boolean
  timer: NodeJS.Timeout | undefined
}

export class OriginLimiter {
  private readonly options: OriginLimiterOptions
  private readonly retryPacing: RetryPacing
  /** In the order of their last use. */
  private readonly origins = new Map<string, Origin>()
  /** All that wait, in the order of their arrival. */
  private readonly waiting = new Set<Permit>()
  /** Origins with a waiting request and room for one in flight; the first is next. */
  private readonly ready = new Set<Origin>()
  private readonly open = new Set<Origin>()
  private inFlight = 0
  private isGranting = false

  constructor(options: OriginLimiterOptions) {
    this.options = options
    this.retryPacing = new RetryPacing(options.limits.deferredPerSecond, options.random)
  }

  metrics(): OriginLimiterMetrics {
    const [oldest] = this.waiting
    return {
      inFlight: this.inFlight,
      waiting: this.waiting.size,
      oldestWaitingMs: oldest === undefined
        ? 0
        : Math.max(0, this.options.monotonicMs() - oldest.sinceMs),
      circuitsOpen: this.open.size,
      origins: this.origins.size
    }
  }

  /** The origins with open circuits or the most requests, those first; at most `max`. */
  busiest(max: number): ReadonlyArray<OriginMetrics> {
    const rank = ({ circuit, inFlight, waiting }: Origin): number =>
      (circuit.isOpen ? 1e9 : 0) + waiting.size * 1e3 + inFlight
    const busy = [...this.origins.values()].filter((one) => rank(one) > 0)
    const nowMs = this.options.monotonicMs()
    return busy.sort((a, b) => rank(b) - rank(a)).slice(0, max).map((one) => {
      const { circuit: { isOpen: circuitOpen }, inFlight, origin, waiting } = one
      const [{ sinceMs } = { sinceMs: nowMs }] = waiting
      const oldestWaitingMs = Math.max(0, nowMs - sinceMs)
      return { origin, inFlight, waiting: waiting.size, oldestWaitingMs, circuitOpen }
    })
  }

  /**
   * Runs `use` with a permit of the origin, after at most `waitMs` in its queue. Deferred if the
   * circuit is open, a queue is full, or the wait is over. The circuit breaker learns from
   * `healthOf`. The permit is passed on before the result is returned.
   */
  withPermit<A>(
    origin: string,
    waitMs: number,
    use: Effect.Effect<A>,
    healthOf: (result: A) => OriginHealth
  ): Effect.Effect<A | Deferred> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        restore(this.acquire(origin, waitMs)),
        (permit): Effect.Effect<A | Deferred> =>
          permit._tag === "Deferred"
            ? Effect.succeed(permit)
            : Effect.onExit(restore(use), (exit) => {
              this.release(permit, Exit.isSuccess(exit) ? healthOf(exit.value) : "unknown")
              return Effect.void
            })
      )
    )
  }

  private acquire(origin: string, waitMs: number): Effect.Effect<Permit | Deferred> {
    return Effect.callback((resume) => {
      const permit = this.enqueue(origin, Math.max(0, waitMs), resume)
      return Effect.sync(() => this.release(permit, "unknown"))
    })
  }

  private enqueue(name: string, waitMs: number, resume: Permit["resume"]): Permit {
    const { limits, monotonicMs } = this.options
    const sinceMs = monotonicMs()
    const origin = this.origin(name)
    const permit: Permit = {
      _tag: "Permit",
      origin,
      resume,
      sinceMs,
      state: "waiting",
      isProbe: false,
      timer: undefined
    }
    const retryAtMs = origin.circuit.retryAtMs(sinceMs, limits.fullRetryMs)
    const isFull = origin.waiting.size >= limits.waitingPerOriginMax ||
      this.waiting.size >= limits.waitingMax
    if (retryAtMs !== undefined) this.defer(permit, retryAtMs)
    else if (
      this.inFlight < limits.inFlightMax && origin.waiting.size === 0 && this.hasRoom(origin)
    ) {
      this.grant(permit)
    } else if (isFull) this.deferFull(permit, sinceMs)
    else {
      origin.waiting.add(permit)
      this.waiting.add(permit)
      permit.timer = setTimeout(
        () => this.defer(permit, monotonicMs() + limits.fullRetryMs),
        waitMs
      )
      if (this.hasRoom(origin)) this.ready.add(origin)
    }
    return permit
  }

  private origin(name: string): Origin {
    const { limits } = this.options
    const existing = this.origins.get(name)
    const origin: Origin = existing ??
      {
        origin: name,
        circuit: new CircuitBreaker(limits),
        retries: { lastMs: 0 },
        service: new ServiceRate(this.options.monotonicMs()),
        waiting: new Set(),
        inFlight: 0
      }
    this.origins.delete(name)
    this.origins.set(name, origin)
    if (existing === undefined && this.origins.size > limits.originsMax) this.forgetIdle(origin)
    return origin
  }

  /** Forgets the origin that has been idle for longest, but not this one. */
  private forgetIdle(newest: Origin): void {
    for (const origin of this.origins.values()) {
      if (origin === newest || origin.inFlight > 0 || origin.waiting.size > 0) continue
      this.forget(origin)
      return
    }
  }

  private forget(origin: Origin): void {
    if (this.origins.get(origin.origin) === origin) this.origins.delete(origin.origin)
    this.open.delete(origin)
  }

  private hasRoom(origin: Origin): boolean {
    return origin.inFlight < this.options.limits.perOriginMax
  }

  private grant(permit: Permit): void {
    this.dequeue(permit)
    permit.state = "granted"
    permit.isProbe = permit.origin.circuit.begin()
    permit.origin.inFlight += 1
    this.inFlight += 1
    permit.resume(Effect.succeed(permit))
  }

  private defer(permit: Permit, earliestMs: number, originStepMs?: number): void {
    this.dequeue(permit)
    permit.state = "over"
    const { retries } = permit.origin
    const nowMs = this.options.monotonicMs()
    const atMs = this.retryPacing.next(retries, earliestMs, nowMs, originStepMs)
    const untilMs = Math.round(this.options.nowMs() + atMs - nowMs)
    permit.resume(Effect.succeed({ _tag: "Deferred", untilMs }))
  }

  /**
   * Defers a request whose queue is full. Retries come while the queue empties, and faster than
   * the origin has served, so that it never idles. A retry that comes too early is deferred again.
   */
  private deferFull(permit: Permit, nowMs: number): void {
    const { fullRetriesPerSecond, fullRetryMs } = this.options.limits
    const served = permit.origin.service.perSecond(nowMs)
    if (served !== undefined && served < slowPerSecond) {
      return this.defer(permit, nowMs + fullRetryMs)
    }
    const perSecond = Math.max(fullRetriesPerSecond, (served ?? 0) * retriesPerServed)
    const halfEmptyMs = permit.origin.waiting.size * 500 / perSecond
    this.defer(permit, nowMs + Math.min(halfEmptyMs, fullRetryMs), 1_000 / perSecond)
  }

  private dequeue(permit: Permit): void {
    clearTimeout(permit.timer)
    permit.origin.waiting.delete(permit)
    this.waiting.delete(permit)
    if (permit.origin.waiting.size === 0) this.ready.delete(permit.origin)
  }

  /** Ends a permit, granted or still waiting. A second call has no effect. */
  private release(permit: Permit, health: OriginHealth): void {
    const { origin, state } = permit
    if (state === "over") return
    permit.state = "over"
    if (state === "waiting") this.dequeue(permit)
    else {
      origin.inFlight -= 1
      this.inFlight -= 1
      origin.service.count(this.options.monotonicMs())
      this.updateCircuit(permit, health)
    }
    if (origin.waiting.size > 0 && this.hasRoom(origin)) this.ready.add(origin)
    this.grantNext()
    const isIdle = origin.inFlight === 0 && origin.waiting.size === 0 && origin.circuit.isBlank
    if (isIdle && origin.retries.lastMs <= this.options.monotonicMs()) this.forget(origin)
  }

  private updateCircuit({ isProbe, origin }: Permit, health: OriginHealth): void {
    const { limits, monotonicMs } = this.options
    const hasOpened = origin.circuit.end(health, isProbe, monotonicMs())
    origin.circuit.isOpen ? this.open.add(origin) : this.open.delete(origin)
    if (!hasOpened) return
    const nowMs = monotonicMs()
    const retryAtMs = origin.circuit.retryAtMs(nowMs, limits.fullRetryMs) ?? nowMs
    for (const permit of origin.waiting) this.defer(permit, retryAtMs)
  }

  /** Grants permits while there is room; an origin that got one goes to the end. */
  private grantNext(): void {
    // A request may end inside its grant: the running loop then grants the next one.
    if (this.isGranting) return
    this.isGranting = true
    const { limits, monotonicMs } = this.options
    for (const origin of this.ready) {
      if (this.inFlight >= limits.inFlightMax) break
      this.ready.delete(origin)
      const [permit] = origin.waiting
      if (permit === undefined) continue
      const retryAtMs = origin.circuit.retryAtMs(monotonicMs(), limits.fullRetryMs)
      retryAtMs === undefined ? this.grant(permit) : this.defer(permit, retryAtMs)
      if (origin.waiting.size > 0 && this.hasRoom(origin)) this.ready.add(origin)
    }
    this.isGranting = false
  }
}
