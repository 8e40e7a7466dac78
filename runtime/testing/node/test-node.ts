/** One node for tests: the real runtime in memory, whose time only the test advances. */
import { Cause, Clock, Effect, Layer, Logger, ManagedRuntime } from "effect"
import { type Address, type AnyBehavior, type AskFailure, decodeStoredState, keyOf,
  type LogItem } from "../../actor/index.ts"
import { singleNodePlacement } from "../../cluster/index.ts"
import type { Limits } from "../../limits.ts"
import { makeMemoryStorage, makeMemoryTransport } from "../../memory/index.ts"
import { Storage, type StorageApi, Transport } from "../../ports/index.ts"
import { System, type SystemApi } from "../../system.ts"
import type { AnyMessage } from "../cluster/index.ts"
import { behaviorOf, type TestedActor } from "../simulation/index.ts"
import { epochMs } from "../time/index.ts"
import { ManualClock } from "./manual-clock.ts"

/** Turns of the event loop in which ready work begins, and at most until a node is idle. */
const turnsMin = 4
const turnsMax = 1_000
/** Items of a log that a test sees at most. */
const logItemsMax = 100_000

/** What a test node runs, and from which time and store it begins. */
export interface TestNodeOptions {
  /** The kinds of actors: definitions or behaviors, each kind once. */
  readonly behaviors: ReadonlyArray<TestedActor>
  /** The time of day at the start, ms since the epoch. */
  readonly nowMs?: number
  /** Replaces some limits of the runtime. */
  readonly limits?: Partial<Limits>
  /** Where the actors are stored; by default a new store in memory. */
  readonly storage?: StorageApi
}

/**
 * A node for tests, by default on a store in memory, whose time only the test advances. What waits
 * for time waits until {@link TestNode.advance}.
 */
export interface TestNode {
  /** The time of day, ms since the epoch. */
  readonly nowMs: number
  /** The logged faults of actors: restarts, quarantines and other defects. */
  readonly faults: ReadonlyArray<string>
  /**
   * Asks an actor; a refusal is a reply. Rejects with an {@link AskFailure}. An ask whose actor
   * waits for time, such as after a restart, ends when the test has advanced it.
   */
  readonly ask: <Reply = unknown>(to: Address, message: AnyMessage) => Promise<Reply>
  /**
   * Advances the time, ms: timers, and sleeps of effects by `Effect.sleep`, end in their order.
   * Resolves when the work that they caused is done.
   */
  readonly advance: (ms: number) => Promise<void>
  /** The stored state; the initial one of an actor without a record. */
  readonly stateOf: <State = unknown>(of: Address) => State
  /** The stored items of the actor's log, ascending: the first 100,000. */
  readonly logOf: (of: Address) => ReadonlyArray<LogItem>
  /** The actor's stored timer, ms since the epoch; undefined without one. */
  readonly timerOf: (of: Address) => number | undefined
  /**
   * Passivates an actor: its next message loads it from the store. Rejects if the actor is not
   * idle, or not in memory.
   */
  readonly passivate: (of: Address) => Promise<void>
  /** Crashes the node, and starts it on what is stored: everything in memory is lost. */
  readonly restart: () => Promise<void>
  /** Stops the node; `await using` does so at the end of the block. */
  readonly stop: () => Promise<void>
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

type Running = ManagedRuntime.ManagedRuntime<System, never>

class NodeUnderTest {
  readonly faults: Array<string> = []
  readonly clock: ManualClock
  readonly storage: StorageApi
  private readonly behaviors: ReadonlyMap<string, AnyBehavior>
  private readonly limits: Partial<Limits>
  private running: { readonly runtime: Running; readonly system: SystemApi } | undefined

  constructor({ behaviors, limits = {}, nowMs = epochMs, storage }: TestNodeOptions) {
    this.behaviors = new Map(behaviors.map(behaviorOf).map((one) => [one.kind, one]))
    this.limits = limits
    this.clock = new ManualClock(nowMs)
    this.storage = storage ?? makeMemoryStorage()
  }

  get system(): SystemApi {
    if (this.running === undefined) throw new Error("the test node has stopped: start another one")
    return this.running.system
  }

  async start(): Promise<void> {
    const logger = Logger.make(({ cause, message }) => {
      // A logged fault has the error beside its text.
      const text = (Array.isArray(message) ? message : [message]).map(String).join(": ")
      this.faults.push(cause.reasons.length === 0 ? text : `${text}: ${Cause.pretty(cause)}`)
    })
    const ports = Layer.mergeAll(
      Layer.succeed(Storage, this.storage),
      Layer.succeed(Transport, makeMemoryTransport()),
      singleNodePlacement,
      Logger.layer([logger]),
      Layer.succeed(Clock.Clock, this.clock)
    )
    const layer = System.layer({ behaviors: [...this.behaviors.values()], limits: this.limits })
    const runtime = ManagedRuntime.make(Layer.provide(layer, ports))
    this.running = { runtime, system: await runtime.runPromise(System) }
    await this.settle()
  }

  async stop(): Promise<void> {
    const { running } = this
    this.running = undefined
    await running?.runtime.dispose()
  }

  ask<Reply>(to: Address, message: AnyMessage): Promise<Reply> {
    const { system } = this
    return new Promise((resolve, reject) =>
      system.askByCallback(to, message, (failure: AskFailure | undefined, reply) => {
        // The caller knows what its actor replies.
        failure === undefined ? resolve(reply as Reply) : reject(failure)
      })
    )
  }

  async passivate(of: Address): Promise<void> {
    await this.settle()
    if (this.system.passivate(of)) return
    throw new Error(
      `${
        keyOf(of)
      } cannot be passivated: it is busy, or not in memory; ask it first, and let its ` +
        "effects end"
    )
  }

  stateOf<State>(of: Address): State {
    const behavior = this.behaviors.get(of.kind)
    if (behavior === undefined) {
      throw new Error(`${keyOf(of)}: the node has no behavior of its kind`)
    }
    const { state } = Effect.runSync(this.storage.load(of))
    if (state === undefined) return behavior.initial
    const { format, text } = decodeStoredState(state)
    return behavior.decode(text, format, of)
  }

  /** Waits until ready work is done: all that needs no time. */
  readonly settle = async (): Promise<void> => {
    const isBusy = (): boolean => {
      const { activations, timersInFlight } = this.system.snapshot()
      return timersInFlight > 0 || [...activations.values()].some(({ queued }) => queued > 0)
    }
    for (let turn = 0; turn < turnsMax && this.running !== undefined; turn++) {
      if (turn >= turnsMin && !isBusy()) return
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

/** Starts a node for tests. Only {@link TestNode.advance} advances its time. */
export const startTestNode = async (options: TestNodeOptions): Promise<TestNode> => {
  const node = new NodeUnderTest(options)
  await node.start()
  const { clock, storage } = node
  return {
    get nowMs() {
      return clock.currentTimeMillisUnsafe()
    },
    faults: node.faults,
    ask: (to, message) => node.ask(to, message),
    advance: (ms) => clock.advance(ms, node.settle),
    stateOf: (of) => node.stateOf(of),
    logOf: (of) => Effect.runSync(storage.read(of, 1, logItemsMax)),
    timerOf: (of) => Effect.runSync(storage.load(of)).timer,
    passivate: (of) => node.passivate(of),
    restart: async () => {
      await node.stop()
      await node.start()
    },
    stop: () => node.stop(),
    [Symbol.asyncDispose]: () => node.stop()
  }
}
