/**
 * One node: the real runtime with the real behaviors and the transport over NATS subjects, on a
 * separate computer, on the shared store and registry.
 */
import { Effect, Layer, Logger, ManagedRuntime } from "effect"
import { behaviors, type Dependencies, linksUnder, UsageLedger } from "../../actors/index.ts"
import type { Outbound } from "../../actors/outbound/protocol.ts"
import type { Service } from "../../http/pipeline/index.ts"
import type { MessageStep } from "../../runtime/activation/effects.ts"
import { type Address, type AnyBehavior, type AskFailure, type BlobsApi, clusterPlacement,
  type LogItem, Placement, type RecordsApi, Registry, Storage, type StorageFailure, System,
  type SystemApi, type Tagged } from "../../runtime/index.ts"
import { Nats, type NatsApi } from "../../runtime/nats/connection/connection.ts"
import { TurnWrites } from "../../runtime/nats/connection/turn-writes.ts"
import { natsPings } from "../../runtime/nats/transport/pings.ts"
import { natsTransport } from "../../runtime/nats/transport/transport.ts"
import type { StorageApi } from "../../runtime/ports/storage.ts"
import { makeTestKeyring, noDependencies } from "../actors/dependencies.ts"
import type { SharedBlobs } from "./blobs.ts"
import type { Bus, Wire } from "./bus.ts"
import type { RegistryLine, SharedRegistry } from "./registry.ts"
import type { Later, Line, SharedStore } from "./store.ts"
import type { SharedTables } from "./tables.ts"
import type { Computer, VirtualTime } from "./time.ts"
import type { Trace } from "./trace.ts"
import { serviceOf, Web, type WebAnswer, type WebRequest } from "./web.ts"
import { testAuthenticator } from "../runtime/nats/keys.ts"

export const baseUrl = "https://post.test"
export const links = linksUnder(baseUrl)
/** Short, so that a run reaches the end of it. */
export const schedule = [0, 1_000, 5_000, 20_000, 40_000]
export const retentionMs = 60 * 60_000
/** As rarely as the limits allow: refreshing is most of an idle cluster's work. */
/** Nothing here exceeds a quota. */
const quotas = {
  anonymousBytesMax: 1024 ** 4,
  networkBytesMax: 1024 ** 4,
  accountBytesMax: 1024 ** 4
}

const REFRESH_MS = 4_000

/** As rarely as the limits allow: most of an idle cluster's messages are pings. */
const rarePings = { pingMs: 700, pingDeadlineMs: 500, witnessCheckMs: 700 }

const CLOSING_LOOK_MS = 5

/** Earlier than by default, so that it happens in a run. */
const WAKES_LOOK_MS = 60_000

/** The incarnations of a process begin with it. */
export const incarnationPrefix = ({ name }: Computer): string => `${name.replace("#", "-")}-`

type PlacementApi = Placement["Service"]

/** Replacements of real parts, by which tests plant bugs. */
export interface Seams {
  readonly behaviors?: (all: ReadonlyArray<AnyBehavior>) => ReadonlyArray<AnyBehavior>
  readonly placement?: (placement: PlacementApi) => PlacementApi
  readonly storage?: (storage: StorageApi, later: Later) => StorageApi
  readonly service?: (service: Service) => Service
}

/** The shared environment of a run's nodes. */
export interface Shared {
  readonly time: VirtualTime
  readonly trace: Trace
  readonly store: SharedStore
  readonly blobs: SharedBlobs
  readonly tables: SharedTables
  readonly registry: SharedRegistry
  readonly bus: Bus
  readonly outbound: (computer: Computer) => Outbound
  readonly seams: Seams
  /** Whether each process runs, by its number. */
  readonly processes: Array<() => boolean>
  /** Called when a node logs a defect. */
  readonly onDefect: (what: string) => void
  /** Called when an actor of a node receives the outcome "committed". */
  readonly onCommitted: (computer: Computer, address: Address) => void
}

/** Log messages that must not occur. */
const defects = [
  "actor restarts",
  "actor quarantined",
  "a defect that does not restart the actor",
  "a shard is not served",
  "the receiver of a reply threw an error",
  "a reply cannot be sent"
]

export type Failure = AskFailure | StorageFailure

export class SimulatedNode {
  readonly computer: Computer
  readonly line: Line
  readonly registryLine: RegistryLine
  /** The node's actor system; undefined while it starts. */
  system: SystemApi | undefined = undefined
  placement: PlacementApi | undefined = undefined
  /** Its HTTP service; undefined while it starts. */
  web: Web | undefined = undefined
  /** The node drains, and finally accepts no more requests of clients. */
  isLeaving = false
  isClosed = false
  private asks = 0
  /** The incarnation of its present membership. */
  incarnation = ""
  private births = 0
  private readonly blobs: BlobsApi
  private readonly records: RecordsApi
  private readonly usage: UsageLedger
  private readonly wire: Wire
  private readonly shared: Shared
  private runtime: ManagedRuntime.ManagedRuntime<System | Placement, unknown> | undefined

  constructor(shared: Shared, computer: Computer) {
    this.shared = shared
    this.computer = computer
    this.line = shared.store.connect(computer)
    this.blobs = shared.blobs.connect(computer, () => this.line.cutUntilMs)
    this.records = shared.tables.connect(computer, () => this.line.cutUntilMs)
    this.usage = new UsageLedger(this.records, quotas)
    this.registryLine = shared.registry.connect(computer)
    this.wire = shared.bus.connect(computer)
  }

  get alive(): boolean {
    return this.computer.alive
  }

  /** Starts the process; calls `onEnd` if the start fails. */
  start(onEnd: (reason: string) => void): void {
    const { shared: { time, trace }, computer } = this
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
          this.web = this.webOf(system)
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
    this.wire.closed = true
    this.shared.bus.lose(this.wire)
    this.shared.trace.note("node", `${this.computer.name} is gone`)
  }

  /** Stops with a drain; calls `done` once the process has ended. */
  stop(done: () => void): void {
    const { runtime, shared: { time, trace }, system } = this
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

  /** Accepts no more requests, and waits until all are answered, as the service does. */
  private async answered(): Promise<void> {
    this.isClosed = true
    while (this.asks > 0) await new Promise((resolve) => setTimeout(resolve, CLOSING_LOOK_MS))
  }

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

  /** Handles an HTTP request of a client. */
  request(request: WebRequest, done: (answer: WebAnswer) => void): void {
    this.asks++
    this.web?.answer(request, (answer) => {
      this.asks--
      done(answer)
    })
  }

  read(of: Address, done: (items: ReadonlyArray<LogItem> | undefined) => void): void {
    const { system } = this
    if (system === undefined) return done(undefined)
    const reading = Effect.result(system.read(of, 1, 1_000))
    Effect.runFork(reading).addObserver((exit) => {
      const isRead = exit._tag === "Success" && exit.value._tag === "Success"
      done(isRead ? exit.value.success : undefined)
    })
  }

  private webOf(system: SystemApi): Web {
    const { blobs, computer, shared: { onDefect, seams } } = this
    const service = serviceOf({
      baseUrl,
      // Two parts, joined by a dot, as the service composes it.
      startId: computer.name.replace("#", "."),
      system,
      blobs,
      records: this.records,
      usage: this.usage
    })
    const what = (text: string) => onDefect(`${computer.name}: ${text}`)
    return new Web(seams.service?.(service) ?? service, what)
  }

  private storage(): Layer.Layer<Storage, unknown> {
    const { computer, line: { storage }, shared: { seams, time } } = this
    const { storage: planted } = seams
    if (planted === undefined) return storage
    const later: Later = (ms, run) => time.on(computer, ms, run)
    return Layer.effect(Storage, Effect.map(Storage, (real) => planted(real, later))).pipe(
      Layer.provide(storage)
    )
  }

  private behaviors(): ReadonlyArray<AnyBehavior> {
    const { computer, shared: { outbound, seams, time } } = this
    const dependencies: Dependencies = {
      ...noDependencies,
      keyring: makeTestKeyring(),
      blobs: this.blobs,
      usage: this.usage,
      outbound: outbound(computer),
      links,
      schedule,
      retentionMs,
      random: time.random
    }
    const all = behaviors(dependencies)
    return seams.behaviors?.(all) ?? all
  }

  private layer(): Layer.Layer<System | Placement, unknown> {
    const { computer, shared: { onCommitted, onDefect, processes, seams, trace } } = this
    const [name = ""] = computer.name.split("#")
    const pid = processes.push(() => computer.alive) - 1
    const logger = Logger.make(({ cause, message }) => {
      const text = String(Array.isArray(message) ? message[0] : message)
      trace.note("log", () => `${computer.name}: ${text} ${JSON.stringify(cause)}`)
      if (defects.includes(text)) onDefect(`${computer.name}: ${text} ${JSON.stringify(cause)}`)
    })
    const placement = clusterPlacement({
      node: name,
      limits: { refreshMs: REFRESH_MS, ...rarePings },
      newIncarnation: () => this.incarnation = `${incarnationPrefix(computer)}${++this.births}`,
      process: { host: name, pid },
      isGone: (other) => other.host === name && processes[other.pid]?.() !== true
    })
    const seen = seams.placement === undefined
      ? placement
      : Layer.effect(
        Placement,
        Effect.map(Placement, (real) => seams.placement?.(real) ?? real)
      ).pipe(Layer.provide(placement))
    // The transport uses nothing else of the connection.
    const { nc } = this.wire
    const nats = Layer.succeed(Nats, {
      nc,
      writes: new TurnWrites(nc),
      isConnected: () => true
    } as NatsApi)
    const ports = Layer.mergeAll(
      this.storage(),
      Layer.provide(natsTransport(testAuthenticator), nats),
      Layer.provide(
        seen,
        Layer.merge(
          Layer.succeed(Registry, this.registryLine.registry),
          Layer.provide(natsPings(testAuthenticator), nats)
        )
      )
    )
    const limits = { groupCommitsMax: 500, groupsInFlightMax: 2, timersRescanMs: WAKES_LOOK_MS }
    const step = (step: MessageStep, address: Address): void => {
      if (step === "committed") onCommitted(computer, address)
    }
    return System.layer({ behaviors: this.behaviors(), limits, step }).pipe(
      Layer.provideMerge(ports),
      Layer.provideMerge(Logger.layer([logger]))
    )
  }
}
