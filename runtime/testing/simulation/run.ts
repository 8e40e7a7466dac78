/** One run of a plan: a simulated cluster of the user's actors, its clients, and its checks. */
import { Effect } from "effect"
import { type Address, type AnyBehavior, decodeStoredState, keyOf } from "../../actor/index.ts"
import { ClusterClient } from "../cluster/index.ts"
import { byResource, check, type Model } from "../history/index.ts"
import type { RunResult } from "../report/index.ts"
import type { CoverageReport } from "../table/index.ts"
import { type AnyActorModel, behaviorOf, type ClientAttempt, type ReceivedReply,
  type SimulateOptions, type SimulationView } from "./options.ts"
import { defaults, type PlannedRequest, type SimulationPlan } from "./plan.ts"
import { RecordedDecisions } from "./recorded-decisions.ts"
import { type ActorOperation, type ModelInput, type ModelOutput, tableHistory,
  tableModel } from "./table-model.ts"
import { UserCluster, type UserNode } from "./user-cluster.ts"

/** How often it is checked whether the clients, or the work of the actors, have ended, ms. */
const pollMs = 1_000
/** How long clients may take to finish, and actors to come to rest, ms. */
const endingMaxMs = 120_000
const restMaxMs = 300_000
/** Items of a log, and ids of a kind, that a view returns at most. */
const viewMax = 100_000
/** Bound of the search for an order of one actor's operations, in steps of its model. */
const stepsMax = 300_000

/** The result of one run of a simulation. */
export interface SimulationRun extends RunResult {
  readonly attempts: ReadonlyArray<ClientAttempt>
  /** Of each kind: which cells were decided. */
  readonly coverage: ReadonlyArray<CoverageReport>
}

/** One run, while it happens. */
export class SimulationInProgress<Services> {
  private readonly plan: SimulationPlan
  private readonly options: SimulateOptions<Services>
  private readonly cluster: UserCluster
  private readonly recorded: RecordedDecisions
  private readonly attempts: Array<ClientAttempt> = []
  private readonly operations: Array<ActorOperation> = []
  private readonly behaviors = new Map<string, AnyBehavior>()
  private readonly view: SimulationView<Services>
  private moments = 0

  constructor(plan: SimulationPlan, options: SimulateOptions<Services>, keepsTrace: boolean) {
    this.plan = plan
    this.options = options
    // Without `services` the behaviors and the checks use none.
    const services = options.services?.() as Services
    this.recorded = new RecordedDecisions({
      moment: () => ++this.moments,
      onDecided: (kind, line) => this.cluster.trace.note(kind, line),
      onImpure: (what) => this.violateOnce(what)
    })
    const record = (behavior: AnyBehavior) => this.recorded.record(behavior)
    this.cluster = new UserCluster(plan, keepsTrace, options.plant, record, (host) => {
      const { behaviors } = options
      const all = typeof behaviors === "function" ? behaviors(host, services) : behaviors
      const made = all.map(behaviorOf)
      for (const one of made) this.behaviors.set(one.kind, one)
      return made
    })
    this.view = this.viewOf(services)
    this.cluster.storeEvents = {
      ...this.cluster.storeEvents,
      onApplied: (_, { address }) => this.checkAlways(address)
    }
  }

  /** Runs the plan and checks what must hold. */
  async run(): Promise<SimulationRun> {
    const { cluster, recorded } = this
    const restore = cluster.time.install()
    try {
      await this.play()
      this.checkAtRest()
      this.checkModels()
    } finally {
      restore()
    }
    return {
      violations: cluster.violations,
      hash: cluster.trace.hash,
      trace: cluster.trace.lines,
      operations: this.operations.length,
      faults: cluster.faults,
      simulatedMs: cluster.time.nowMs,
      steps: cluster.time.steps,
      attempts: this.attempts,
      coverage: [...recorded.coverage.values()].map((coverage) => coverage.report())
    }
  }

  private async play(): Promise<void> {
    const { cluster, options, plan } = this
    const { time } = cluster
    cluster.begin(plan, new Set())
    const clients = this.runClients(plan.operations)
    await time.runUntil(plan.busyMs)
    cluster.heal()
    if (!await this.ends(clients)) cluster.violate("a client never ended")
    // A commit that is stored late may set timers, and its actor cannot be loaded before.
    await time.runUntil(Math.max(time.nowMs, cluster.store.settledMs))
    await time.runUntil(time.nowMs + (options.restMs ?? defaults.restMs))
    const restMs = time.nowMs + restMaxMs
    while (!this.isAtRest() && time.nowMs < restMs) await time.runUntil(time.nowMs + pollMs)
    if (!this.isAtRest()) cluster.violate("the actors do not come to rest: isAtRest is false")
    const nodes = Array.from({ length: plan.nodes }, (_, at) => at)
    const last = (options.lastRequests ?? []).map((request) => ({
      client: 0,
      atMs: time.nowMs,
      nodes,
      request
    }))
    if (!await this.ends(this.runClients(last))) cluster.violate("a last request never ended")
  }

  private isAtRest(): boolean {
    const { cluster: { nodes, time }, options: { isAtRest } } = this
    const areUp = nodes.every(({ alive, computer, isLeaving, system }) =>
      alive && !isLeaving && system !== undefined && computer.pausedUntilMs <= time.nowMs
    )
    return areUp && (isAtRest?.(this.view) ?? true)
  }

  /** Advances time until the promise settles; false if it never does. */
  private async ends(what: Promise<void>): Promise<boolean> {
    const { time } = this.cluster
    const state = { isOver: false, error: undefined as unknown }
    void what.then(
      () => void (state.isOver = true),
      (error: unknown) => Object.assign(state, { isOver: true, error })
    )
    const untilMs = time.nowMs + endingMaxMs
    while (!state.isOver && time.nowMs < untilMs) await time.runUntil(time.nowMs + pollMs)
    if (state.error !== undefined) throw state.error
    return state.isOver
  }

  private async runClients(requests: ReadonlyArray<PlannedRequest>): Promise<void> {
    const clients = new Map<number, Array<PlannedRequest>>()
    for (const request of requests) {
      const own = clients.get(request.client) ?? []
      clients.set(request.client, own)
      own.push(request)
    }
    await Promise.all([...clients].map(([client, own]) => this.runClient(client, own)))
  }

  private async runClient(number: number, requests: ReadonlyArray<PlannedRequest>): Promise<void> {
    const name = `client-${number}`
    const client = new ClusterClient(this.cluster, name)
    const received: Array<ReceivedReply> = []
    for (const { atMs, nodes, request: { message, to } } of requests) {
      await client.until(atMs)
      const sent = typeof message === "function" ? message(received) : message
      if (sent === undefined) continue
      for (const node of nodes) {
        const attempt = await this.ask(client, name, node, { to, message: sent })
        if (attempt.outcome !== "ok") continue
        received.push({ to, message: sent, reply: attempt.reply })
        break
      }
    }
    if (!this.plan.isCalm) return
    for (const why of client.unanswered) {
      this.cluster.violate(`${why} was answered, though nodes only restarted in good order`)
    }
  }

  /** One attempt of a client. */
  private async ask(
    client: ClusterClient<UserNode>,
    name: string,
    node: number,
    { message, to }: Pick<ClientAttempt, "message" | "to">
  ): Promise<ClientAttempt> {
    const { trace } = this.cluster
    const start = ++this.moments
    const startMs = client.nowMs
    const shown = `${name} ${keyOf(to)} ${JSON.stringify(message)}`
    trace.note("client", () => `${shown} to node-${node}`)
    const answer = await client.ask(node, to, message)
    const end = ++this.moments
    trace.note("client", () => `${shown}: ${JSON.stringify(answer)}`)
    const outcomes = { Answered: "ok", Failed: "fail", Unknown: "info" } as const
    const attempt: ClientAttempt = {
      client: name,
      to,
      message,
      outcome: outcomes[answer._tag],
      reply: answer._tag === "Answered" ? answer.reply : undefined,
      why: answer._tag === "Answered" ? undefined : answer.why,
      startMs,
      endMs: client.nowMs
    }
    this.attempts.push(attempt)
    const { outcome, reply } = attempt
    this.operations.push({
      client: name,
      resource: keyOf(to),
      input: { kind: message._tag, message, contexts: [] },
      output: outcome === "ok" ? { reply } : undefined,
      start,
      end,
      outcome
    })
    return attempt
  }

  private viewOf(services: Services): SimulationView<Services> {
    const { attempts, cluster } = this
    const { inner } = cluster.store
    const stateOf = <State>(of: Address): State => {
      const behavior = this.behaviors.get(of.kind)
      if (behavior === undefined) {
        throw new Error(`${keyOf(of)}: no behavior of this kind is tested`)
      }
      const { state } = Effect.runSync(inner.load(of))
      if (state === undefined) return behavior.initial
      const { format, text } = decodeStoredState(state)
      return behavior.decode(text, format, of)
    }
    return {
      get nowMs() {
        return cluster.time.nowMs
      },
      stateOf,
      logOf: (of) => Effect.runSync(inner.read(of, 1, viewMax)),
      timerOf: (of) => Effect.runSync(inner.load(of)).timer,
      idsOf: (kind) => Effect.runSync(inner.scan(kind, undefined, viewMax)),
      attempts,
      services
    }
  }

  private violateOnce(what: string): void {
    if (!this.cluster.violations.includes(what)) this.cluster.violate(what)
  }

  private checkAlways(changed: Address): void {
    for (const { always, name } of this.options.invariants ?? []) {
      const what = always?.(this.view, changed)
      if (what !== undefined) this.violateOnce(`${name}: ${what}`)
    }
  }

  private checkAtRest(): void {
    for (const { atRest, name } of this.options.invariants ?? []) {
      const what = atRest?.(this.view)
      if (what !== undefined) this.violateOnce(`${name}: ${what}`)
    }
  }

  /** The answers of each actor must be linearizable by its model. */
  private checkModels(): void {
    const { model } = this.options
    if (model === undefined) return
    for (const [key, operations] of byResource(this.operations)) {
      const to = this.attempts.find((one) => keyOf(one.to) === key)?.to
      const behavior = to && this.behaviors.get(to.kind)
      if (to === undefined || behavior === undefined) continue
      const own = model === "table" ? model : model[to.kind]
      if (own === undefined) continue
      if (own === "table") {
        const decisions = this.recorded.of(to)
        const all = tableHistory(behavior, to, operations, decisions)
        this.checkHistory(key, tableModel(behavior, to), all)
      } else this.checkHistory(key, userModel(own), operations)
    }
  }

  private checkHistory<State>(
    key: string,
    model: Model<State, ModelInput, ModelOutput>,
    operations: ReadonlyArray<ActorOperation>
  ): void {
    const verdict = check(model, operations, stepsMax)
    if (verdict._tag === "Linearizable") return
    const what = verdict._tag === "Broken"
      ? "is not linearizable"
      : "has too many requests at once to find their order: use fewer for each actor"
    this.cluster.violate(`${key} ${what}: ${verdict.report}`)
  }
}

/** A model of the user, for the checker. */
const userModel = (model: AnyActorModel): Model<unknown, ModelInput, ModelOutput> => ({
  initial: model.initial,
  step: (state, { message }, output) => model.step(state, message, output),
  keyOf: (state) => model.keyOf?.(state) ?? JSON.stringify(state)
})

/** Runs a plan; the same plan has the same result. */
export const runPlan = <Services>(
  plan: SimulationPlan,
  options: SimulateOptions<Services>,
  keepsTrace: boolean
): Promise<SimulationRun> => new SimulationInProgress(plan, options, keepsTrace).run()
