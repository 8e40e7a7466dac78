/**
 * A lane for each origin: how many attempts are in flight and waiting, and its circuit. No origin
 * holds up another: whose turn it is goes around among the origins that wait.
 */
import { deferredJitterMs, type DeliveryLimits } from "../limits.ts"

/** What an attempt says of its origin: that it answers, that it does not, or neither. */
export type Health = "answers" | "faults" | "unknown"

type CircuitLimits = Pick<DeliveryLimits, "faultsMax" | "openMs" | "openMaxMs">

/**
 * Closed until so many faults in a row; then open, for twice as long each time; after that one
 * probe at a time is let through. What answers closes it.
 */
export class CircuitBreaker {
  readonly #limits: CircuitLimits
  #faults = 0
  #openings = 0
  #untilMs = 0
  #probing = false

  constructor(limits: CircuitLimits) {
    this.#limits = limits
  }

  /** Whether it has opened and not been closed since. */
  get isOpen(): boolean {
    return this.#openings > 0
  }

  /** Whether there is nothing to remember. */
  get isBlank(): boolean {
    return this.#openings === 0 && this.#faults === 0
  }

  /** When an attempt that is turned away now may come back; undefined: it may go ahead. */
  closedUntil(nowMs: number, retryMs: number): number | undefined {
    if (this.#openings === 0) return undefined
    if (nowMs < this.#untilMs) return this.#untilMs
    return this.#probing ? nowMs + retryMs : undefined
  }

  /** An attempt begins; gives whether it is the probe. */
  begin(): boolean {
    if (this.#openings === 0) return false
    this.#probing = true
    return true
  }

  /** An attempt has ended; gives whether this opened the circuit. */
  end(health: Health, probe: boolean, nowMs: number): boolean {
    if (probe) this.#probing = false
    if (health === "unknown") return false
    if (health === "answers") {
      this.#faults = 0
      this.#openings = 0
      return false
    }
    // Attempts from before the opening say nothing new.
    if (this.#openings > 0 && !probe) return false
    this.#faults += 1
    if (!probe && this.#faults < this.#limits.faultsMax) return false
    const longer = this.#limits.openMs * 2 ** Math.min(this.#openings, 30)
    this.#untilMs = nowMs + Math.min(longer, this.#limits.openMaxMs)
    this.#openings += 1
    this.#faults = 0
    return true
  }
}

/* When what was deferred comes back: no faster than the node can bear, each origin on its own. */

/** The last return that was given out to an origin. */
export interface Returns {
  lastMs: number
}

/** The returns of origins that have had no deferral before. */
export const noReturns = (): Returns => ({ lastMs: 0 })

const sweepMs = 1_000

const rateSpanMs = 250

/**
 * Gives each origin a line of returns. The lines share the node's rate, so that the longest of
 * them does not put off the others; the rate is kept on average, not to the millisecond.
 */
export class RetryPacing {
  readonly #stepMs: number
  readonly #random: () => number
  /** Origins whose line reaches beyond now, as of the last sweep. */
  readonly #lines = new Set<Returns>()
  #sweptMs = 0

  constructor(perSecond: number, random: () => number) {
    this.#stepMs = 1_000 / perSecond
    this.#random = random
  }

  /**
   * The time of the next return in this line, not before `earliestMs`. An origin that is served
   * faster than its share has a `servedMs` of its own between two returns.
   */
  next(line: Returns, earliestMs: number, nowMs: number, servedMs?: number): number {
    if (nowMs - this.#sweptMs >= sweepMs || nowMs < this.#sweptMs) this.#sweep(nowMs)
    this.#lines.add(line)
    const stepMs = Math.min(this.#stepMs * this.#lines.size, servedMs ?? Number.POSITIVE_INFINITY)
    line.lastMs = Math.max(line.lastMs + stepMs, earliestMs)
    return Math.round(line.lastMs + this.#random() * deferredJitterMs)
  }

  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs
    for (const line of this.#lines) if (line.lastMs <= nowMs) this.#lines.delete(line)
  }
}

/** How many attempts a lane has served in a second, as of the last span. */
export class ServiceRate {
  #sinceMs: number
  #count = 0
  #perSecond: number | undefined

  constructor(nowMs: number) {
    this.#sinceMs = nowMs
  }

  count(nowMs: number): void {
    this.#turn(nowMs)
    this.#count += 1
  }

  /** 0 until one was served; undefined while it is not known how many. */
  perSecond(nowMs: number): number | undefined {
    this.#turn(nowMs)
    return this.#perSecond ?? (this.#count === 0 ? 0 : undefined)
  }

  #turn(nowMs: number): void {
    const spanMs = nowMs - this.#sinceMs
    if (spanMs >= 0 && spanMs < rateSpanMs) return
    this.#perSecond = spanMs < 0 ? undefined : this.#count * 1_000 / spanMs
    this.#count = 0
    this.#sinceMs = nowMs
  }
}

/* The circuit breaker of one origin, and when what it turns away may come back. */

/** No attempt was made. */
export interface Deferred {
  readonly _tag: "Deferred"
  readonly untilMs: number
}

export interface OriginLimiterMetrics {
  readonly inFlight: number
  readonly waiting: number
  readonly oldestWaitingMs: number
  readonly circuitsOpen: number
  readonly origins: number
}

/** How one origin stands. */
export interface OriginMetrics {
  readonly origin: string
  readonly inFlight: number
  readonly waiting: number
  readonly oldestWaitingMs: number
  /** It is left alone after failures, or probed. */
  readonly circuitOpen: boolean
}

export interface OriginLimiterOptions {
  readonly limits: DeliveryLimits
  readonly nowMs: () => number
  /** In [0, 1). */
  readonly random: () => number
}

/** Returns to a full lane outnumber what it serves by so much. */
const returnsAhead = 1.5

/** An origin that serves fewer than this is given no more returns than one whose circuit opened. */
const slowPerSecond = 100

interface Lane {
  readonly origin: string
  readonly circuit: CircuitBreaker
  readonly returns: Returns
  readonly service: ServiceRate
  /** In the order in which they came. */
  readonly waiting: Set<LimiterPermit>
  inFlight: number
}

/** Who goes through a lane. What is called here may leave the lane, or enter another. */
export interface LimiterWaiter {
  /** Called first of all. */
  readonly entered: (turn: LimiterPermit) => void
  /** Its turn has come; {@link OriginLimiter.leave} ends it. */
  readonly begin: () => void
  /** There was no turn, and it is over. */
  readonly deferred: (deferred: Deferred) => void
}

/** One attempt's way through its lane. */
export interface LimiterPermit {
  readonly lane: Lane
  readonly sinceMs: number
  readonly passenger: LimiterWaiter
  state: "waiting" | "begun" | "over"
  probe: boolean
  timer: NodeJS.Timeout | undefined
}

export class OriginLimiter {
  readonly #options: OriginLimiterOptions
  readonly #pace: RetryPacing
  /** In the order of their last use. */
  readonly #lanes = new Map<string, Lane>()
  /** All that wait, in the order in which they came. */
  readonly #waiting = new Set<LimiterPermit>()
  /** Lanes that have somebody waiting and room for an attempt; the first has the next turn. */
  readonly #ready = new Set<Lane>()
  readonly #open = new Set<Lane>()
  #inFlight = 0
  #giving = false

  constructor(options: OriginLimiterOptions) {
    this.#options = options
    this.#pace = new RetryPacing(options.limits.deferredPerSecond, options.random)
  }

  measures(): OriginLimiterMetrics {
    const [oldest] = this.#waiting
    return {
      inFlight: this.#inFlight,
      waiting: this.#waiting.size,
      oldestWaitingMs: oldest === undefined
        ? 0
        : Math.max(0, this.#options.nowMs() - oldest.sinceMs),
      circuitsOpen: this.#open.size,
      origins: this.#lanes.size
    }
  }

  /** The origins that are in trouble or have most to do, those first; `max` at most. */
  worst(max: number): ReadonlyArray<OriginMetrics> {
    const rank = ({ circuit, inFlight, waiting }: Lane): number =>
      (circuit.isOpen ? 1e9 : 0) + waiting.size * 1e3 + inFlight
    const busy = [...this.#lanes.values()].filter((lane) => rank(lane) > 0)
    const nowMs = this.#options.nowMs()
    return busy.sort((a, b) => rank(b) - rank(a)).slice(0, max).map((lane) => {
      const { circuit: { isOpen: circuitOpen }, inFlight, origin, waiting: turns } = lane
      const [{ sinceMs } = { sinceMs: nowMs }] = turns
      const oldestWaitingMs = Math.max(0, nowMs - sinceMs)
      return { origin, inFlight, waiting: turns.size, oldestWaitingMs, circuitOpen }
    })
  }

  #lane(origin: string): Lane {
    const { limits } = this.#options
    const known = this.#lanes.get(origin)
    const lane: Lane = known ??
      {
        origin,
        circuit: new CircuitBreaker(limits),
        returns: noReturns(),
        service: new ServiceRate(this.#options.nowMs()),
        waiting: new Set(),
        inFlight: 0
      }
    this.#lanes.delete(origin)
    this.#lanes.set(origin, lane)
    if (known === undefined && this.#lanes.size > limits.originsMax) this.#forgetOne(lane)
    return lane
  }

  /** Forgets the origin that has been idle for longest. */
  #forgetOne(fresh: Lane): void {
    for (const lane of this.#lanes.values()) {
      if (lane === fresh || lane.inFlight > 0 || lane.waiting.size > 0) continue
      this.#forget(lane)
      return
    }
  }

  #forget(lane: Lane): void {
    if (this.#lanes.get(lane.origin) === lane) this.#lanes.delete(lane.origin)
    this.#open.delete(lane)
  }

  /** Waits for a turn, `waitMs` at the most; the passenger is told of it, maybe at once. */
  enter(origin: string, waitMs: number, passenger: LimiterWaiter): void {
    const { limits, nowMs } = this.#options
    const now = nowMs()
    const lane = this.#lane(origin)
    const turn: LimiterPermit = {
      lane,
      passenger,
      sinceMs: now,
      state: "waiting",
      probe: false,
      timer: undefined
    }
    passenger.entered(turn)
    const turnedAway = lane.circuit.closedUntil(now, limits.fullRetryMs)
    const isFull = lane.waiting.size >= limits.waitingPerOriginMax ||
      this.#waiting.size >= limits.waitingMax
    if (turnedAway !== undefined) {
      this.#defer(turn, turnedAway)
    } else if (this.#inFlight < limits.inFlightMax && lane.waiting.size === 0 && this.#has(lane)) {
      this.#begin(turn)
    } else if (isFull) {
      this.#turnAway(turn, now)
    } else {
      lane.waiting.add(turn)
      this.#waiting.add(turn)
      turn.timer = setTimeout(() => this.#defer(turn, nowMs() + limits.fullRetryMs), waitMs)
      if (this.#has(lane)) this.#ready.add(lane)
    }
  }

  /** Whether a lane has room for one more attempt. */
  #has(lane: Lane): boolean {
    return lane.inFlight < this.#options.limits.perOriginMax
  }

  #begin(turn: LimiterPermit): void {
    this.#unqueue(turn)
    turn.state = "begun"
    turn.probe = turn.lane.circuit.begin()
    turn.lane.inFlight += 1
    this.#inFlight += 1
    turn.passenger.begin()
  }

  #defer(turn: LimiterPermit, earliestMs: number, stepMs?: number): void {
    this.#unqueue(turn)
    turn.state = "over"
    const untilMs = this.#pace.next(turn.lane.returns, earliestMs, this.#options.nowMs(), stepMs)
    turn.passenger.deferred({ _tag: "Deferred", untilMs })
  }

  /**
   * A full lane's returns come as it empties, and faster than it was served of late, so that it
   * never idles while there is work for it; those that come too early wait once more.
   */
  #turnAway(turn: LimiterPermit, nowMs: number): void {
    const { fullRetryMs, fullReturnsPerSecond } = this.#options.limits
    const served = turn.lane.service.perSecond(nowMs)
    if (served !== undefined && served < slowPerSecond) {
      return this.#defer(turn, nowMs + fullRetryMs)
    }
    const perSecond = Math.max(fullReturnsPerSecond, (served ?? 0) * returnsAhead)
    const halfEmptyMs = turn.lane.waiting.size * 500 / perSecond
    this.#defer(turn, nowMs + Math.min(halfEmptyMs, fullRetryMs), 1_000 / perSecond)
  }

  #unqueue(turn: LimiterPermit): void {
    clearTimeout(turn.timer)
    turn.lane.waiting.delete(turn)
    this.#waiting.delete(turn)
    if (turn.lane.waiting.size === 0) this.#ready.delete(turn.lane)
  }

  /**
   * A turn is over, whether it was begun or given up before; the circuit learns from it. To leave
   * twice, or after a deferral, is to leave once.
   */
  leave(turn: LimiterPermit, health: Health): void {
    const { lane, state } = turn
    if (state === "over") return
    turn.state = "over"
    if (state === "waiting") this.#unqueue(turn)
    if (state === "begun") {
      lane.inFlight -= 1
      this.#inFlight -= 1
      lane.service.count(this.#options.nowMs())
      this.#learn(turn, health)
    }
    if (lane.waiting.size > 0 && this.#has(lane)) this.#ready.add(lane)
    this.#next()
    const isIdle = lane.inFlight === 0 && lane.waiting.size === 0 && lane.circuit.isBlank
    if (isIdle && lane.returns.lastMs <= this.#options.nowMs()) this.#forget(lane)
  }

  #learn({ lane, probe }: LimiterPermit, health: Health): void {
    const { limits, nowMs } = this.#options
    const opened = lane.circuit.end(health, probe, nowMs())
    lane.circuit.isOpen ? this.#open.add(lane) : this.#open.delete(lane)
    if (!opened) return
    const until = lane.circuit.closedUntil(nowMs(), limits.fullRetryMs) ?? nowMs()
    for (const turn of lane.waiting) this.#defer(turn, until)
  }

  /** Gives out turns while there are some; each lane that had one goes to the end. */
  #next(): void {
    // A turn may be over before its begin returns: the loop that is running sees to the rest.
    if (this.#giving) return
    this.#giving = true
    const { limits, nowMs } = this.#options
    for (const lane of this.#ready) {
      if (this.#inFlight >= limits.inFlightMax) break
      this.#ready.delete(lane)
      const [turn] = lane.waiting
      if (turn === undefined) continue
      const turnedAway = lane.circuit.closedUntil(nowMs(), limits.fullRetryMs)
      turnedAway === undefined ? this.#begin(turn) : this.#defer(turn, turnedAway)
      if (lane.waiting.size > 0 && this.#has(lane)) this.#ready.add(lane)
    }
    this.#giving = false
  }
}
