/**
 * One node of a simulated cluster: the real runtime and the real placement on a computer of its
 * own, on the store and the registry that all nodes share.
 */
import { Effect, Layer, Logger, ManagedRuntime } from "effect"
import type { MessageStep } from "../../activation/index.ts"
import type { Address, AnyBehavior, AskFailure, LogItem, Tagged } from "../../actor/index.ts"
import { clusterPlacement, Placement, type PlacementApi } from "../../cluster/index.ts"
import { type Pings, Registry, Storage, type StorageApi,
  type Transport } from "../../ports/index.ts"
import { System, type SystemApi } from "../../system.ts"
import type { Computer, Trace, VirtualTime } from "../time/index.ts"
import type { RegistryLine, SharedRegistry } from "./shared-registry.ts"
import type { NodeLater, SharedStore, StorageLine } from "./shared-storage.ts"

/** As rarely as the limits allow: most of an idle cluster's messages are refreshes and pings. */
const placementLimits = {
  refreshMs: 4_000,
  pingMs: 700,
  pingDeadlineMs: 500,
  witnessCheckMs: 700
}

/** Rescans of timers come earlier than by default, so that they happen in a run. */
const systemLimits = { groupCommitsMax: 500, groupsInFlightMax: 2, timersRescanMs: 60_000 }

/** How often a leaving node checks whether all requests are answered, ms. */
const closingPollMs = 5

/** Items of a log that one read returns at most. */
const readItemsMax = 1_000

/** Log messages that must not occur. */
const defects = [
  "actor restarts",
  "actor quarantined",
  "a defect that does not restart the actor",
  "a shard is not served",
  "the receiver of a reply threw an error",
  "a reply cannot be sent"
]

/** The incarnations of a process begin with it. */
export const incarnationPrefix = ({ name }: Computer): string => `${name.replace("#", "-")}-`

/** Replacements of real parts, by which tests plant bugs. */
export interface NodeSeams {
  readonly behaviors?: (all: ReadonlyArray<AnyBehavior>) => ReadonlyArray<AnyBehavior>
  readonly placement?: (placement: PlacementApi) => PlacementApi
  readonly storage?: (storage: StorageApi, later: NodeLater) => StorageApi
}

/** What the nodes of a run share. */
export interface NodeEnvironment {
  readonly time: VirtualTime
  readonly trace: Trace
  readonly store: SharedStore
  readonly registry: SharedRegistry
  readonly seams: NodeSeams
  /** Whether each process runs, by its number. */
  readonly processes: Array<() => boolean>
  /** Called when a node logs a defect. */
  readonly onDefect: (what: string) => void
  /** Called when an actor of a node receives the outcome "committed". */
  readonly onCommitted: (computer: Computer, address: Address) => void
}

/** A node's connection to the other nodes. */
export interface NodeNetwork {
  readonly transport: Layer.Layer<Transport>
  readonly pings: Layer.Layer<Pings>
}

export abstract class NodeProcess {
  readonly computer: Computer
  readonly line: StorageLine
  readonly registryLine: RegistryLine
  /** The node's actor system; undefined while it starts. */
  system: SystemApi | undefined = undefined
  placement: PlacementApi | undefined = undefined
  /** The node drains, and finally accepts no more requests of clients. */
  isLeaving = false
  isClosed = false
  /** The incarnation of its present membership. */
  incarnation = ""
  /** Requests of clients without an answer. */
  protected asks = 0
  protected readonly environment: NodeEnvironment
  private births = 0
  private runtime: ManagedRuntime.ManagedRuntime<System | Placement, unknown> | undefined

  constructor(environment: NodeEnvironment, computer: Computer) {
    this.environment = environment
    this.computer = computer
    this.line = environment.store.connect(computer)
    this.registryLine = environment.registry.connect(computer)
  }

  /** The behaviors of a process; called once. */
  protected abstract behaviors(): ReadonlyArray<AnyBehavior>
  /** The connection of the process to the other nodes; called once. */
  protected abstract network(): NodeNetwork
  /** The process has ended: nothing reaches it any more. */
  protected abstract disconnect(): void
  /** The system runs, and takes messages next. */
  protected onStarted(_system: SystemApi): void {}

  /** Whether the process takes requests of clients now. */
  get isServing(): boolean {
    return this.system !== undefined
  }

  get alive(): boolean {
    return this.computer.alive
  }

  /** Starts the process; calls `onEnd` if the start fails. */
  start(onEnd: (reason: string) => void): void {
    const { computer, environment: { time, trace } } = this
    trace.note("node", `${computer.name} starts`)
    time.on(computer, 0, () => {
      const runtime = ManagedRuntime.make(this.layer())
      this.runtime = runtime
      const both = Effect.gen(function*() {
        return { system: yield* System, placement: yield* Placement }
      })
      runtime.runPromise(both).then(
        ({ placement, system }) => {
          this.system = system
          this.placement = placement
          this.onStarted(system)
        },
        (error: unknown) => {
          trace.note("node", `${computer.name} does not start: ${String(error)}`)
          this.die()
          onEnd(String(error))
        }
      )
    })
  }

  /** Kills the process. */
  die(): void {
    if (!this.computer.alive) return
    this.computer.alive = false
    this.disconnect()
    this.environment.trace.note("node", `${this.computer.name} is gone`)
  }

  /** Stops with a drain; calls `done` once the process has ended. */
  stop(done: () => void): void {
    const { environment: { time, trace }, runtime, system } = this
    if (system === undefined || runtime === undefined) {
      this.die()
      return done()
    }
    this.isLeaving = true
    trace.note("node", `${this.computer.name} leaves`)
    time.on(this.computer, 0, () => {
      void Effect.runPromise(system.drain).then(() => this.answered())
        .then(() => runtime.dispose()).then(() => {
          this.die()
          done()
        })
    })
  }

  /** Accepts no more requests, and waits until all are answered, as a service does. */
  private async answered(): Promise<void> {
    this.isClosed = true
    while (this.asks > 0) await new Promise((resolve) => setTimeout(resolve, closingPollMs))
  }

  /** A client asks an actor through this node. */
  ask(
    to: Address,
    message: Tagged,
    done: (failure: AskFailure | undefined, reply: unknown) => void
  ): void {
    this.asks++
    this.system?.askByCallback(to, message, (failure, reply) => {
      this.asks--
      done(failure, reply)
    })
  }

  /** A client reads the log of an actor through this node; undefined: the read failed. */
  read(of: Address, done: (items: ReadonlyArray<LogItem> | undefined) => void): void {
    const { system } = this
    if (system === undefined) return done(undefined)
    const reading = Effect.result(system.read(of, 1, readItemsMax))
    Effect.runFork(reading).addObserver((exit) => {
      const isRead = exit._tag === "Success" && exit.value._tag === "Success"
      done(isRead ? exit.value.success : undefined)
    })
  }

  private storage(): Layer.Layer<Storage, unknown> {
    const { computer, environment: { seams, time }, line: { storage } } = this
    const { storage: planted } = seams
    if (planted === undefined) return storage
    const later: NodeLater = (ms, run) => time.on(computer, ms, run)
    return Layer.effect(Storage, Effect.map(Storage, (real) => planted(real, later))).pipe(
      Layer.provide(storage)
    )
  }

  /** Notes what the node logs; a message of {@link defects} is a violation. */
  private logger(): Logger.Logger<unknown, void> {
    const { computer, environment: { onDefect, trace } } = this
    return Logger.make(({ cause, message }) => {
      const text = String(Array.isArray(message) ? message[0] : message)
      trace.note("log", () => `${computer.name}: ${text} ${JSON.stringify(cause)}`)
      if (defects.includes(text)) onDefect(`${computer.name}: ${text} ${JSON.stringify(cause)}`)
    })
  }

  private placementLayer() {
    const { computer, environment: { processes, seams } } = this
    const [name = ""] = computer.name.split("#")
    const pid = processes.push(() => computer.alive) - 1
    const placement = clusterPlacement({
      node: name,
      limits: placementLimits,
      newIncarnation: () => this.incarnation = `${incarnationPrefix(computer)}${++this.births}`,
      process: { host: name, pid },
      isGone: (other) => other.host === name && processes[other.pid]?.() !== true
    })
    const { placement: planted } = seams
    return planted === undefined
      ? placement
      : Layer.effect(Placement, Effect.map(Placement, planted)).pipe(Layer.provide(placement))
  }

  private layer(): Layer.Layer<System | Placement, unknown> {
    const { computer, environment: { onCommitted, seams } } = this
    const placement = this.placementLayer()
    const { pings, transport } = this.network()
    const ports = Layer.mergeAll(
      this.storage(),
      transport,
      Layer.provide(
        placement,
        Layer.merge(Layer.succeed(Registry, this.registryLine.registry), pings)
      )
    )
    const step = (step: MessageStep, address: Address): void => {
      if (step === "committed") onCommitted(computer, address)
    }
    const own = this.behaviors()
    const behaviors = seams.behaviors?.(own) ?? own
    return System.layer({ behaviors, limits: systemLimits, step }).pipe(
      Layer.provideMerge(ports),
      Layer.provideMerge(Logger.layer([this.logger()]))
    )
  }
}
