/**
 * A lane for each origin: how many attempts are in flight and waiting, and its circuit. No origin
 * holds up another: whose turn it is goes around among the origins that wait.
 */
import { Effect, Exit } from "effect"
import { Circuit, type Health } from "./circuit.ts"
import type { DeliveryLimits } from "./limits.ts"
import { noReturns, Pace, type Returns, ServiceRate } from "./pace.ts"

/** No attempt was made. */
export interface Deferred {
  readonly _tag: "Deferred"
  readonly untilMs: number
}

export interface LanesMeasures {
  readonly inFlight: number
  readonly waiting: number
  readonly oldestWaitingMs: number
  readonly circuitsOpen: number
  readonly origins: number
}

export interface LanesOptions {
  readonly limits: DeliveryLimits
  readonly nowMs: () => number
  /** In [0, 1). */
  readonly random: () => number
}

/** Returns to a full lane outnumber what it serves by so much. */
const returnsAhead = 1.5

interface Lane {
  readonly origin: string
  readonly circuit: Circuit
  readonly returns: Returns
  readonly service: ServiceRate
  readonly waiting: Set<Turn>
  inFlight: number
}

/** One attempt's way through its lane. */
interface Turn {
  readonly lane: Lane
  readonly sinceMs: number
  /** How it goes on: undefined is its turn. */
  readonly resume: (deferred: Deferred | undefined) => void
  state: "waiting" | "begun" | "over"
  probe: boolean
  timer: NodeJS.Timeout | undefined
}

export class Lanes {
  readonly #options: LanesOptions
  readonly #pace: Pace
  /** In the order of their last use. */
  readonly #lanes = new Map<string, Lane>()
  /** All that wait, in the order in which they came. */
  readonly #waiting = new Set<Turn>()
  /** Lanes that have somebody waiting and room for an attempt; the first has the next turn. */
  readonly #ready = new Set<Lane>()
  readonly #open = new Set<Lane>()
  #inFlight = 0
  #giving = false

  constructor(options: LanesOptions) {
    this.#options = options
    this.#pace = new Pace(options.limits.deferredPerSecond, options.random)
  }

  /**
   * Does `use` when its turn has come, at the latest after `waitMs`; else it is deferred. The
   * circuit learns from what `healthOf` says of the result.
   */
  run<A>(
    origin: string,
    waitMs: number,
    use: Effect.Effect<A>,
    healthOf: (result: A) => Health
  ): Effect.Effect<A | Deferred> {
    return Effect.suspend(() => {
      let turn: Turn | undefined
      const take = Effect.callback<Deferred | undefined>((resume) => {
        turn = this.#enter(origin, waitMs, (deferred) => resume(Effect.succeed(deferred)))
      })
      return take.pipe(
        Effect.flatMap((deferred): Effect.Effect<A | Deferred> =>
          deferred === undefined ? use : Effect.succeed(deferred)
        ),
        Effect.onExit((exit) =>
          Effect.sync(() => {
            if (turn === undefined) return
            // A turn that was begun did `use`, unless the fiber was interrupted.
            const begun = Exit.isSuccess(exit) && turn.state === "begun"
            this.#leave(turn, begun ? healthOf(exit.value as A) : "unknown")
          })
        )
      )
    })
  }

  measures(): LanesMeasures {
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

  #lane(origin: string): Lane {
    const { limits } = this.#options
    const known = this.#lanes.get(origin)
    const lane: Lane = known ??
      {
        origin,
        circuit: new Circuit(limits),
        returns: noReturns(),
        service: new ServiceRate(),
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

  #enter(origin: string, waitMs: number, resume: Turn["resume"]): Turn {
    const { limits, nowMs } = this.#options
    const now = nowMs()
    const lane = this.#lane(origin)
    const turn: Turn = {
      lane,
      resume,
      sinceMs: now,
      state: "waiting",
      probe: false,
      timer: undefined
    }
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
    return turn
  }

  /** Whether a lane has room for one more attempt. */
  #has(lane: Lane): boolean {
    return lane.inFlight < this.#options.limits.perOriginMax
  }

  #begin(turn: Turn): void {
    this.#unqueue(turn)
    turn.state = "begun"
    turn.probe = turn.lane.circuit.begin()
    turn.lane.inFlight += 1
    this.#inFlight += 1
    turn.resume(undefined)
  }

  #defer(turn: Turn, earliestMs: number, stepMs?: number): void {
    this.#unqueue(turn)
    turn.state = "over"
    const untilMs = this.#pace.next(turn.lane.returns, earliestMs, this.#options.nowMs(), stepMs)
    turn.resume({ _tag: "Deferred", untilMs })
  }

  /** A full lane's returns come as it empties, and a little faster, so that it never idles. */
  #turnAway(turn: Turn, nowMs: number): void {
    const { fullRetryMs } = this.#options.limits
    const perSecond = turn.lane.service.perSecond(nowMs)
    if (perSecond === 0) return this.#defer(turn, nowMs + fullRetryMs)
    const halfEmptyMs = turn.lane.waiting.size * 500 / perSecond
    const earliestMs = nowMs + Math.min(halfEmptyMs, fullRetryMs)
    this.#defer(turn, earliestMs, 1_000 / (perSecond * returnsAhead))
  }

  #unqueue(turn: Turn): void {
    clearTimeout(turn.timer)
    turn.lane.waiting.delete(turn)
    this.#waiting.delete(turn)
    if (turn.lane.waiting.size === 0) this.#ready.delete(turn.lane)
  }

  /** A turn is over, whether it was begun or given up before. */
  #leave(turn: Turn, health: Health): void {
    const { lane, state } = turn
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

  #learn({ lane, probe }: Turn, health: Health): void {
    const { limits, nowMs } = this.#options
    const opened = lane.circuit.end(health, probe, nowMs())
    lane.circuit.isOpen ? this.#open.add(lane) : this.#open.delete(lane)
    if (!opened) return
    const until = lane.circuit.closedUntil(nowMs(), limits.fullRetryMs) ?? nowMs()
    for (const turn of lane.waiting) this.#defer(turn, until)
  }

  /** Gives out turns while there are some; each lane that had one goes to the end. */
  #next(): void {
    // A turn may be over before its resume returns: the loop that is running sees to the rest.
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
