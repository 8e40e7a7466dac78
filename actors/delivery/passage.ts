/** One request's way through its lane: its turn, sent, answered. By callback. */
import { Effect, Exit, type Fiber } from "effect"
import type { Agent } from "undici"
import type { Health } from "./circuit.ts"
import type { Connector } from "./connector.ts"
import { exchange, type Exchanged, type ExchangeRequest } from "./exchange.ts"
import type { Deferred, LimiterPermit, LimiterWaiter, OriginLimiter } from "./lanes.ts"
import type { DeliveryLimits } from "./limits.ts"

/** What requests go by. */
export interface RequestResources {
  readonly agent: Agent
  readonly connector: Connector
  readonly lanes: OriginLimiter
  readonly limits: DeliveryLimits
}

/** The time that is left to an attempt, over all its requests. */
export interface Budget {
  /** On the wire. */
  sendMs: number
  /** In lanes. */
  waitMs: number
}

/** Headers by lower-case names, and the body. */
export type RequestContent = Pick<ExchangeRequest, "headers" | "body">

/** What is sent, or what is asked for it when its turn has come; see {@link Posting}. */
export interface ContentSource {
  readonly load:
    | RequestContent
    | (() => RequestContent | undefined | Effect.Effect<RequestContent | undefined>)
}

const unwanted = { _tag: "Unwanted" } as const
export type Hop = Exchanged | typeof unwanted

const healthOf = (hop: Hop): Health => {
  if (hop._tag === "Answered") return "answers"
  return hop._tag === "Broken" && !hop.own ? "faults" : "unknown"
}

type Resume = (result: Effect.Effect<Hop | Deferred>) => void

class Passage implements LimiterWaiter {
  readonly #roads: RequestResources
  readonly #request: Omit<ExchangeRequest, "headers" | "body">
  readonly #cargo: ContentSource
  readonly #budget: Budget
  readonly #resume: Resume
  readonly #fork: (
    asked: Effect.Effect<RequestContent | undefined>
  ) => Fiber.Fiber<RequestContent | undefined>
  #turn: LimiterPermit | undefined
  #asking: Fiber.Fiber<RequestContent | undefined> | undefined
  #sinceMs = performance.now()
  #begun = false
  #over = false
  #giveUp: (() => void) | undefined

  constructor(
    roads: RequestResources,
    request: Omit<ExchangeRequest, "headers" | "body">,
    cargo: ContentSource,
    budget: Budget,
    fork: (
      asked: Effect.Effect<RequestContent | undefined>
    ) => Fiber.Fiber<RequestContent | undefined>,
    resume: Resume
  ) {
    this.#roads = roads
    this.#request = request
    this.#cargo = cargo
    this.#budget = budget
    this.#fork = fork
    this.#resume = resume
    roads.lanes.enter(request.origin, Math.max(0, budget.waitMs), this)
  }

  entered(turn: LimiterPermit): void {
    this.#turn = turn
  }

  begin(): void {
    this.#begun = true
    const nowMs = performance.now()
    this.#budget.waitMs -= nowMs - this.#sinceMs
    this.#sinceMs = nowMs
    const { load } = this.#cargo
    const made = typeof load === "function" ? load() : load
    if (Effect.isEffect(made)) this.#ask(made)
    else this.#send(made)
  }

  deferred(deferred: Deferred): void {
    this.#over = true
    this.#asking?.interruptUnsafe()
    this.#resume(Effect.succeed(deferred))
  }

  /** Gives it up, wherever it is. */
  stop(): void {
    if (this.#over) return
    this.#over = true
    this.#asking?.interruptUnsafe()
    this.#giveUp?.()
    this.#leave("unknown")
  }

  #ask(load: Effect.Effect<RequestContent | undefined>): void {
    const fiber = this.#fork(load)
    this.#asking = fiber
    fiber.addObserver((exit) => {
      this.#asking = undefined
      if (this.#over) return
      if (Exit.isFailure(exit)) return this.#end("unknown", Effect.failCause(exit.cause))
      this.#send(exit.value)
    })
  }

  #send(load: RequestContent | undefined): void {
    if (load === undefined) return this.#settle(unwanted)
    const { agent, connector, limits } = this.#roads
    const keeps = connector.open() < limits.connectionsKeptMax
    const request = { ...this.#request, ...load }
    const { sendMs } = this.#budget
    this.#sinceMs = performance.now()
    const stop = exchange(agent, request, sendMs, keeps, limits, (hop) => this.#settle(hop))
    if (!this.#over) this.#giveUp = stop
  }

  #settle(hop: Hop): void {
    this.#end(healthOf(hop), Effect.succeed(hop))
  }

  #end(health: Health, result: Effect.Effect<Hop>): void {
    this.#over = true
    if (this.#begun) this.#budget.sendMs -= performance.now() - this.#sinceMs
    // The lane's next request is sent before anybody decides on this answer.
    this.#leave(health)
    this.#resume(result)
  }

  #leave(health: Health): void {
    if (this.#turn !== undefined) this.#roads.lanes.leave(this.#turn, health)
  }
}

/** One request: waits for its turn, and is sent. */
export const pass = (
  roads: RequestResources,
  request: Omit<ExchangeRequest, "headers" | "body">,
  cargo: ContentSource,
  budget: Budget
): Effect.Effect<Hop | Deferred> =>
  Effect.withFiber(({ context }) =>
    Effect.callback((resume) => {
      const fork = Effect.runForkWith(context)
      const passage = new Passage(roads, request, cargo, budget, fork, resume)
      return Effect.sync(() => passage.stop())
    })
  )
