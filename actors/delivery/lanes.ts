/**
 * A lane for each origin: how many attempts are in flight and waiting, and its circuit. No origin
 * holds up another: whose turn it is goes around among the origins that wait.
 */
import { CircuitBreaker, type Health } from "./circuit.ts"
import type { DeliveryLimits } from "./limits.ts"
import { noReturns, RetryPacing, type Returns, ServiceRate } from "./pace.ts"

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
