/**
 * Limits the requests to each origin: how many are in flight, how many wait, and a circuit breaker
 * for origins that fail. Causes take turns, and so do the origins of each, so that neither an
 * origin nor a cause delays another one. Deferred requests share the rate of retries in the same
 * way.
 */
import { Effect, Exit } from "effect"
import { deferredJitterMs, type DeliveryLimits } from "../limits.ts"
import type { Deferred, RequestCause } from "./protocol.ts"

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

const getOrSet = <K, V>(map: Map<K, V>, key: K, make: () => V): V => {
  const existing = map.get(key)
  if (existing !== undefined) return existing
  const made = make()
  map.set(key, made)
  return made
}

/** The last retry time that a cause was given for each of its origins. */
type RetryTimes = Map<string, number>

/** When a retry may be made. */
export interface RetryBounds {
  readonly earliestMs: number
  /** Bounds the time between two retries of an origin that serves faster than its share. */
  readonly stepMaxMs?: number
}

const sweepMs = 1_000

/** How many retries are in the future, as of the last sweep. */
class DueRetries {
  count = 0
  /** How many are due in each second. */
  private readonly bySecond = new Map<number, number>()

  add(atMs: number): void {
    const second = Math.ceil(atMs / 1_000)
    this.bySecond.set(second, (this.bySecond.get(second) ?? 0) + 1)
    this.count++
  }

  sweep(nowMs: number): void {
    for (const [second, count] of this.bySecond) {
      if (second * 1_000 > nowMs) continue
      this.bySecond.delete(second)
      this.count -= count
    }
  }
}

/**
 * Spreads the retries of deferred requests. The kinds of causes share the node's rate, then the
 * causes of each kind, then the origins of each cause: so neither an origin with many deferred
 * requests nor a cause with many origins delays the others. What a share leaves is used by others:
 * a retry waits at most for as long as the node takes for all of them. The rate is kept on average.
 */
export class RetryPacing {
  private readonly stepMs: number
  private readonly random: () => number
  /** By kind and cause: the origins with a retry in the future, as of the last sweep. */
  private readonly pending = new Map<RequestCause["kind"], Map<string, RetryTimes>>()
  private readonly due = new DueRetries()
  private sweptMs = 0

  constructor(perSecond: number, random: () => number) {
    this.stepMs = 1_000 / perSecond
    this.random = random
  }

  /** The time of the next retry that the cause makes at the origin. */
  next(
    { id, kind }: RequestCause,
    origin: string,
    nowMs: number,
    { earliestMs, stepMaxMs = Infinity }: RetryBounds
  ): number {
    if (nowMs - this.sweptMs >= sweepMs) this.sweep(nowMs)
    const causes = getOrSet(this.pending, kind, () => new Map<string, RetryTimes>())
    const times = getOrSet(causes, id, (): RetryTimes => new Map())
    const lastMs = times.get(origin)
    times.set(origin, lastMs ?? nowMs)
    const shareMs = this.stepMs * this.pending.size * causes.size * times.size
    const stepMs = Math.min(shareMs, stepMaxMs)
    const allMs = this.stepMs * (this.due.count + 1)
    const nextMs = lastMs === undefined
      // The first ones of many causes and origins must not come at once.
      ? earliestMs + this.random() * Math.min(stepMs, allMs)
      : Math.max(lastMs + stepMs, earliestMs)
    const atMs = nextMs <= earliestMs + allMs ? nextMs : earliestMs + this.random() * allMs
    times.set(origin, Math.max(lastMs ?? 0, atMs))
    this.due.add(atMs)
    return Math.round(atMs + this.random() * deferredJitterMs)
  }

  private sweep(nowMs: number): void {
    this.sweptMs = nowMs
    this.due.sweep(nowMs)
    for (const [kind, causes] of this.pending) {
      for (const [id, times] of causes) {
        for (const [origin, lastMs] of times) if (lastMs <= nowMs) times.delete(origin)
        if (times.size === 0) causes.delete(id)
      }
      if (causes.size === 0) this.pending.delete(kind)
    }
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
  readonly service: ServiceRate
  readonly queues: Map<Cause, RequestQueue>
  /** The queues that wait for room at the origin; the first is next. Empty while it has room. */
  readonly blocked: Set<RequestQueue>
  inFlight: number
  waiting: number
  /** When the last of its deferred requests is retried. */
  lastRetryMs: number
}

/** All causes of one kind, and what they may hold together. */
interface CauseGroup {
  readonly inFlightMax: number
  readonly waitingMax: number
  readonly causes: Map<string, Cause>
  /** Causes with a ready queue; the first is next. */
  readonly ready: Set<Cause>
  inFlight: number
  waiting: number
}

/** The requests of one cause. */
interface Cause {
  readonly of: RequestCause
  readonly group: CauseGroup
  /** Queues that do not wait for room at their origin, as far as is known; the first is next. */
  readonly ready: Set<RequestQueue>
  inFlight: number
  waiting: number
}

/** The waiting requests of one cause to one origin. The queue is `ready` or `blocked`. */
interface RequestQueue {
  readonly cause: Cause
  readonly origin: Origin
  /** In the order of their arrival. */
  readonly waiting: Set<Permit>
}

/** One request's permit to its origin. */
interface Permit {
  readonly _tag: "Permit"
  readonly origin: Origin
  readonly cause: Cause
  readonly sinceMs: number
  readonly resume: (result: Effect.Effect<Permit | Deferred>) => void
  state: "waiting" | "granted" | "over"
  queue: RequestQueue | undefined
  isProbe: boolean
  timer: NodeJS.Timeout | undefined
}

const groupOf = (inFlightMax: number, waitingMax: number): CauseGroup => ({
  inFlightMax,
  waitingMax,
  causes: new Map(),
  ready: new Set(),
  inFlight: 0,
  waiting: 0
})

export class OriginLimiter {
  private readonly options: OriginLimiterOptions
  private readonly retryPacing: RetryPacing
  /** In the order of their last use. */
  private readonly origins = new Map<string, Origin>()
  private readonly groups: Readonly<Record<RequestCause["kind"], CauseGroup>>
  /** The same, in the order of their turns. */
  private readonly turns: Array<CauseGroup>
  /** All that wait, in the order of their arrival. */
  private readonly waiting = new Set<Permit>()
  /** Origins with blocked queues that have room again. */
  private readonly freed = new Set<Origin>()
  private readonly open = new Set<Origin>()
  private inFlight = 0
  private isGranting = false

  constructor(options: OriginLimiterOptions) {
    const { limits } = options
    this.options = options
    this.retryPacing = new RetryPacing(limits.deferredPerSecond, options.random)
    this.groups = {
      account: groupOf(limits.inFlightMax, limits.waitingMax),
      mailbox: groupOf(limits.mailboxesInFlightMax, limits.mailboxesWaitingMax),
      network: groupOf(limits.anonymousInFlightMax, limits.anonymousWaitingMax)
    }
    this.turns = Object.values(this.groups)
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
      (circuit.isOpen ? 1e9 : 0) + waiting * 1e3 + inFlight
    const busy = [...this.origins.values()].filter((one) => rank(one) > 0)
    const nowMs = this.options.monotonicMs()
    return busy.sort((a, b) => rank(b) - rank(a)).slice(0, max).map((one) => {
      const { circuit: { isOpen: circuitOpen }, inFlight, origin, queues, waiting } = one
      let oldestMs = nowMs
      for (const { waiting: [first] } of queues.values()) {
        oldestMs = Math.min(oldestMs, first?.sinceMs ?? nowMs)
      }
      return { origin, inFlight, waiting, oldestWaitingMs: nowMs - oldestMs, circuitOpen }
    })
  }

  /**
   * Runs `use` with a permit of the origin, after at most `waitMs` in its queue. Deferred if the
   * circuit is open, a queue is full, or the wait is over. The circuit breaker learns from
   * `healthOf`. The permit is passed on before the result is returned.
   */
  withPermit<A>(
    origin: string,
    cause: RequestCause,
    waitMs: number,
    use: Effect.Effect<A>,
    healthOf: (result: A) => OriginHealth
  ): Effect.Effect<A | Deferred> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        restore(this.acquire(origin, cause, waitMs)),
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

  private acquire(
    origin: string,
    cause: RequestCause,
    waitMs: number
  ): Effect.Effect<Permit | Deferred> {
    return Effect.callback((resume) => {
      const permit = this.enqueue(origin, cause, Math.max(0, waitMs), resume)
      return Effect.sync(() => this.release(permit, "unknown"))
    })
  }

  private enqueue(
    name: string,
    requestCause: RequestCause,
    waitMs: number,
    resume: Permit["resume"]
  ): Permit {
    const { limits, monotonicMs } = this.options
    const sinceMs = monotonicMs()
    const origin = this.origin(name)
    const cause = this.cause(requestCause)
    const permit: Permit = {
      _tag: "Permit",
      origin,
      cause,
      resume,
      sinceMs,
      state: "waiting",
      queue: undefined,
      isProbe: false,
      timer: undefined
    }
    const retryAtMs = origin.circuit.retryAtMs(sinceMs, limits.fullRetryMs)
    const queue = origin.queues.get(cause)
    if (retryAtMs !== undefined) this.defer(permit, { earliestMs: retryAtMs })
    else if (queue === undefined && this.hasRoom(origin) && this.mayHoldMore(cause)) {
      this.grant(permit)
    } else if (this.isFull(cause, queue)) this.deferFull(permit, sinceMs)
    else this.wait(permit, queue, waitMs)
    return permit
  }

  private wait(permit: Permit, existing: RequestQueue | undefined, waitMs: number): void {
    const { limits, monotonicMs } = this.options
    const { cause, origin } = permit
    const queue: RequestQueue = existing ?? { cause, origin, waiting: new Set() }
    permit.queue = queue
    queue.waiting.add(permit)
    this.waiting.add(permit)
    origin.waiting += 1
    cause.waiting += 1
    cause.group.waiting += 1
    permit.timer = setTimeout(
      () => this.defer(permit, { earliestMs: monotonicMs() + limits.fullRetryMs }),
      waitMs
    )
    if (existing !== undefined) return
    origin.queues.set(cause, queue)
    this.place(queue)
  }

  private cause(of: RequestCause): Cause {
    const group = this.groups[of.kind]
    return getOrSet(group.causes, of.id, () => ({
      of,
      group,
      ready: new Set(),
      inFlight: 0,
      waiting: 0
    }))
  }

  private origin(name: string): Origin {
    const { limits } = this.options
    const existing = this.origins.get(name)
    const origin: Origin = existing ??
      {
        origin: name,
        circuit: new CircuitBreaker(limits),
        service: new ServiceRate(this.options.monotonicMs()),
        queues: new Map(),
        blocked: new Set(),
        inFlight: 0,
        waiting: 0,
        lastRetryMs: 0
      }
    this.origins.delete(name)
    this.origins.set(name, origin)
    if (existing === undefined && this.origins.size > limits.originsMax) this.forgetIdle(origin)
    return origin
  }

  /** Forgets the origin that has been idle for longest, but not this one. */
  private forgetIdle(newest: Origin): void {
    for (const origin of this.origins.values()) {
      if (origin === newest || origin.inFlight > 0 || origin.waiting > 0) continue
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

  /**
   * Whether the cause may have another request in flight: while it holds fewer permits than are
   * free (dynamic thresholds, Choudhury and Hahne 1998). So one cause alone holds half of them, n
   * causes that share alike hold n parts of n + 1, although each permit may be held for as long as
   * an attempt lasts. Causes that come one after the other may hold all: half, a quarter, and so
   * on. Another one then gets the next that is free.
   */
  private mayHoldMore({ group, inFlight }: Cause): boolean {
    const free = this.options.limits.inFlightMax - this.inFlight
    return inFlight < Math.min(free, group.inFlightMax - group.inFlight)
  }

  /** Whether no other request of the cause may wait in the queue: the same rule, or its bound. */
  private isFull({ group, waiting }: Cause, queue: RequestQueue | undefined): boolean {
    const { limits } = this.options
    const free = limits.waitingMax - this.waiting.size
    return waiting >= Math.min(free, group.waitingMax - group.waiting) ||
      (queue?.waiting.size ?? 0) >= limits.waitingPerOriginMax
  }

  private grant(permit: Permit): void {
    const { cause, origin } = permit
    this.dequeue(permit)
    permit.state = "granted"
    permit.isProbe = origin.circuit.begin()
    origin.inFlight += 1
    cause.inFlight += 1
    cause.group.inFlight += 1
    this.inFlight += 1
    permit.resume(Effect.succeed(permit))
  }

  private defer(permit: Permit, bounds: RetryBounds): void {
    const { cause, origin } = permit
    this.dequeue(permit)
    permit.state = "over"
    this.forgetCause(cause)
    const nowMs = this.options.monotonicMs()
    const atMs = this.retryPacing.next(cause.of, origin.origin, nowMs, bounds)
    origin.lastRetryMs = Math.max(origin.lastRetryMs, atMs)
    const untilMs = Math.round(this.options.nowMs() + atMs - nowMs)
    permit.resume(Effect.succeed({ _tag: "Deferred", untilMs }))
  }

  /**
   * Defers a request whose queue is full. Retries come while the queue empties, and faster than
   * the origin has served, so that it never idles. The causes that wait for the origin share this
   * rate. A retry that comes too early is deferred again.
   */
  private deferFull(permit: Permit, nowMs: number): void {
    const { fullRetriesPerSecond, fullRetryMs } = this.options.limits
    const { queues, service, waiting } = permit.origin
    const served = service.perSecond(nowMs)
    if (served !== undefined && served < slowPerSecond) {
      return this.defer(permit, { earliestMs: nowMs + fullRetryMs })
    }
    const perSecond = Math.max(fullRetriesPerSecond, (served ?? 0) * retriesPerServed)
    const halfEmptyMs = waiting * 500 / perSecond
    this.defer(permit, {
      earliestMs: nowMs + Math.min(halfEmptyMs, fullRetryMs),
      stepMaxMs: Math.max(1, queues.size) * 1_000 / perSecond
    })
  }

  private dequeue(permit: Permit): void {
    const { cause, origin, queue } = permit
    if (queue === undefined) return
    clearTimeout(permit.timer)
    permit.queue = undefined
    queue.waiting.delete(permit)
    this.waiting.delete(permit)
    origin.waiting -= 1
    cause.waiting -= 1
    cause.group.waiting -= 1
    if (queue.waiting.size > 0) return
    origin.queues.delete(cause)
    origin.blocked.delete(queue)
    this.removeReady(queue)
  }

  /** Ends a permit, granted or still waiting. A second call has no effect. */
  private release(permit: Permit, health: OriginHealth): void {
    const { cause, origin, state } = permit
    if (state === "over") return
    permit.state = "over"
    if (state === "waiting") this.dequeue(permit)
    else {
      origin.inFlight -= 1
      cause.inFlight -= 1
      cause.group.inFlight -= 1
      this.inFlight -= 1
      origin.service.count(this.options.monotonicMs())
      this.updateCircuit(permit, health)
      if (origin.blocked.size > 0) this.freed.add(origin)
      this.grantNext()
    }
    this.forgetCause(cause)
    const isIdle = origin.inFlight === 0 && origin.waiting === 0 && origin.circuit.isBlank
    if (isIdle && origin.lastRetryMs <= this.options.monotonicMs()) this.forget(origin)
  }

  private forgetCause(cause: Cause): void {
    const { group, inFlight, of, waiting } = cause
    if (inFlight > 0 || waiting > 0 || group.causes.get(of.id) !== cause) return
    group.causes.delete(of.id)
  }

  private updateCircuit({ isProbe, origin }: Permit, health: OriginHealth): void {
    const { limits, monotonicMs } = this.options
    const hasOpened = origin.circuit.end(health, isProbe, monotonicMs())
    origin.circuit.isOpen ? this.open.add(origin) : this.open.delete(origin)
    if (!hasOpened) return
    const nowMs = monotonicMs()
    const retryAtMs = origin.circuit.retryAtMs(nowMs, limits.fullRetryMs) ?? nowMs
    for (const { waiting } of origin.queues.values()) {
      for (const permit of waiting) this.defer(permit, { earliestMs: retryAtMs })
    }
  }

  /** Puts a queue behind those that wait for the same: for its origin, or for its cause's turn. */
  private place(queue: RequestQueue): void {
    const { cause, origin } = queue
    if (!this.hasRoom(origin) || origin.blocked.size > 0) {
      origin.blocked.add(queue)
      return
    }
    cause.ready.add(queue)
    cause.group.ready.add(cause)
  }

  private removeReady(queue: RequestQueue): void {
    const { cause } = queue
    cause.ready.delete(queue)
    if (cause.ready.size === 0) cause.group.ready.delete(cause)
  }

  /** Grants permits while there is room. */
  private grantNext(): void {
    // A request may end inside its grant: the running loop then grants the next one.
    if (this.isGranting) return
    this.isGranting = true
    try {
      do {
        for (const origin of this.freed) this.fill(origin)
      } while (this.grantByTurn())
    } finally {
      this.isGranting = false
    }
  }

  /**
   * Gives the room of an origin to its queues, in turn. A queue whose cause may hold no more, or
   * has others for which it waited, becomes ready: it waits for its turn among these.
   */
  private fill(origin: Origin): void {
    this.freed.delete(origin)
    for (const queue of origin.blocked) {
      if (!this.hasRoom(origin)) return
      origin.blocked.delete(queue)
      const { cause } = queue
      if (cause.ready.size === 0 && this.mayHoldMore(cause)) this.serve(queue)
      else {
        cause.ready.add(queue)
        cause.group.ready.add(cause)
      }
    }
  }

  /** Grants one permit to the cause whose turn it is; returns whether there was one. */
  private grantByTurn(): boolean {
    for (const group of this.turns) {
      if (this.inFlight >= this.options.limits.inFlightMax) return false
      if (group.inFlight >= group.inFlightMax) continue
      for (const cause of group.ready) {
        if (!this.mayHoldMore(cause)) continue
        group.ready.delete(cause)
        if (!this.serveFirst(cause)) continue
        if (cause.ready.size > 0) group.ready.add(cause)
        this.turns.splice(this.turns.indexOf(group), 1)
        this.turns.push(group)
        return true
      }
    }
    return false
  }

  /** Serves the first queue of the cause whose origin has room; returns whether there was one. */
  private serveFirst(cause: Cause): boolean {
    for (const queue of cause.ready) {
      cause.ready.delete(queue)
      if (this.hasRoom(queue.origin)) {
        this.serve(queue)
        return true
      }
      queue.origin.blocked.add(queue)
    }
    return false
  }

  /** Grants the first request of the queue, or defers it; the queue goes to the end. */
  private serve(queue: RequestQueue): void {
    const { limits, monotonicMs } = this.options
    const { origin, waiting } = queue
    const [permit] = waiting
    if (permit === undefined) return
    const retryAtMs = origin.circuit.retryAtMs(monotonicMs(), limits.fullRetryMs)
    retryAtMs === undefined ? this.grant(permit) : this.defer(permit, { earliestMs: retryAtMs })
    if (waiting.size > 0) this.place(queue)
  }
}
