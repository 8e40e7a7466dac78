/** A cluster, its clients and its environment, in simulated time. */
import { Effect } from "effect"
import { decodeStoredState } from "../../runtime/actor/format.ts"
import type { Address } from "../../runtime/index.ts"
import { SharedBlobs } from "./blobs.ts"
import type { NatsApi } from "../../runtime/nats/connection/connection.ts"
import { Bus } from "./bus.ts"
import { type Seams, type Shared, SimulatedNode } from "./nodes.ts"
import { ExternalServices } from "./external-services.ts"
import { JetStreamStore } from "./jetstream/store.ts"
import { type Fault, type Noise, type Plan, quiet, type StoreKind } from "./plan.ts"
import { SharedRegistry } from "./registry.ts"
import { type Apply, ContractStore, faithful, type SharedStore, type StoreEvents } from "./store.ts"
import { SharedCalls } from "./shared-calls.ts"
import { SharedTables } from "./tables.ts"
import { type Computer, VirtualTime } from "./time.ts"
import { Trace } from "./trace.ts"

/** Pause before a process that failed to start is started again. */
const AGAIN_MS = 1_000
/** How much faster or slower a computer's clock may run, and its greatest offset. */
const RATE_OFF = 0.02
const CLOCK_OFF_MS = 4_000

export interface WorldSeams extends Seams {
  readonly apply?: Apply
  /** The store that a planted bug is in; `contract` by default. */
  readonly store?: StoreKind
  /** A node's connection to the servers of the store; only with `jetstream`. */
  readonly nats?: (api: NatsApi) => NatsApi
}

export class World {
  readonly time: VirtualTime
  readonly trace: Trace
  readonly store: SharedStore
  readonly blobs: SharedBlobs
  readonly tables: SharedTables
  readonly registry: SharedRegistry
  readonly bus: Bus
  readonly externalServices: ExternalServices
  onCommitted: Shared["onCommitted"] = () => {}
  storeEvents: StoreEvents = { onApplied: () => {}, onTold: () => {} }
  /** Violated invariants. */
  readonly violations: Array<string> = []
  /** Numbers of injected faults by kind. */
  readonly faults = new Map<string, number>()
  /** The latest process of each node, by the node's number. */
  readonly nodes: Array<SimulatedNode> = []
  /** All processes of the run. */
  readonly processes: Array<SimulatedNode> = []
  private readonly clocks: Array<{ readonly rate: number; offsetMs: number }> = []
  private readonly starts: Array<number> = []
  private readonly shared: Shared
  private isQuiet = false

  constructor(plan: Plan, keepsTrace: boolean, seams: WorldSeams = {}) {
    const { noise, seed } = plan
    this.time = new VirtualTime(seed)
    const { time } = this
    this.trace = new Trace(time, keepsTrace)
    this.store = this.storeOf(plan, seams)
    this.blobs = new SharedBlobs(new SharedCalls("blobs", time, this.trace, noise))
    this.tables = new SharedTables(new SharedCalls("records", time, this.trace, noise))
    this.registry = new SharedRegistry(time, this.trace, noise)
    this.bus = new Bus(time, this.trace, noise)
    this.externalServices = new ExternalServices(time, this.trace, noise)
    this.shared = {
      time,
      trace: this.trace,
      store: this.store,
      blobs: this.blobs,
      tables: this.tables,
      registry: this.registry,
      bus: this.bus,
      outbound: (computer) => this.externalServices.outbound(computer),
      seams,
      processes: [],
      onCommitted: (computer, address) => this.onCommitted(computer, address),
      onDefect: (what) => this.violate(`a defect: ${what}`)
    }
  }

  private storeOf({ noise, store }: Plan, { apply, nats }: WorldSeams): SharedStore {
    const { time, trace } = this
    const events: StoreEvents = {
      onApplied: (computer, change) => this.storeEvents.onApplied(computer, change),
      onTold: (computer, actor) => this.storeEvents.onTold(computer, actor)
    }
    return store === "jetstream"
      ? new JetStreamStore(time, trace, noise, events, nats ?? ((api) => api))
      : new ContractStore(time, trace, noise, events, apply ?? faithful)
  }

  violate(what: string): void {
    this.trace.note("VIOLATION", what)
    this.violations.push(what)
  }

  /** Starts all nodes, and schedules the faults. */
  begin({ faults, nodes }: Plan, shards: ReadonlySet<number>): void {
    this.registry.leaveOnly(shards)
    for (let at = 0; at < nodes; at++) {
      const { random } = this.time
      this.clocks.push({
        rate: 1 + (2 * random() - 1) * RATE_OFF,
        offsetMs: (2 * random() - 1) * CLOCK_OFF_MS
      })
      this.start(at)
    }
    for (const fault of faults) this.time.later(fault.atMs, () => this.make(fault))
  }

  /** Ends all faults: starts the stopped nodes, and delivers all answers. */
  heal(): void {
    this.isQuiet = true
    this.trace.note("world", "is quiet")
    this.setNoise(quiet)
    this.bus.cuts.clear()
    this.store.heal()
    this.registry.stalledUntilMs = 0
    for (const [at, node] of this.nodes.entries()) {
      node.line.cutUntilMs = 0
      node.registryLine.cutUntilMs = 0
      if (!node.alive) this.start(at)
    }
  }

  /** Creates a computer that is not a node. */
  computer(name: string): Computer {
    return this.time.newComputer(name, 1, 0)
  }

  private setNoise(noise: Noise): void {
    const { blobs, bus, externalServices, registry, store, tables } = this
    for (const one of [store, blobs.calls, tables.calls, registry, bus, externalServices]) {
      one.noise = noise
    }
  }

  private start(at: number): void {
    const clock = this.clocks[at]
    if (clock === undefined) throw new RangeError(`there is no node ${at}`)
    const count = (this.starts[at] ?? 0) + 1
    this.starts[at] = count
    const computer = this.time.newComputer(`node-${at}#${count}`, clock.rate, clock.offsetMs)
    const node = new SimulatedNode(this.shared, computer)
    this.nodes[at] = node
    this.processes.push(node)
    node.start(() => this.startIn(at, node, AGAIN_MS))
  }

  /** Restarts a node after a while, unless it already runs. */
  private startIn(at: number, last: SimulatedNode, delayMs: number): void {
    this.time.later(delayMs, () => {
      if (this.nodes[at] === last && !last.alive) this.start(at)
    })
  }

  private make(fault: Fault): void {
    this.faults.set(fault.what, (this.faults.get(fault.what) ?? 0) + 1)
    this.trace.note("fault", () => JSON.stringify(fault))
    const { time } = this
    if (fault.what === "stall") {
      const untilMs = time.nowMs + fault.forMs
      this.store.stalledUntilMs = Math.max(this.store.stalledUntilMs, untilMs)
      this.registry.stalledUntilMs = Math.max(this.registry.stalledUntilMs, untilMs)
      return
    }
    if (fault.what === "stall-one") return this.store.stall(fault.stream, fault.forMs)
    if (fault.what === "leader") return this.store.loseLeader(fault.stream, fault.forMs)
    const node = this.nodes[fault.node]
    if (node === undefined) return
    switch (fault.what) {
      case "kill":
        node.die()
        return this.startIn(fault.node, node, fault.downMs)
      case "restart":
        return node.stop(() => this.startIn(fault.node, node, fault.downMs))
      case "pause": {
        const { computer } = node
        computer.pausedUntilMs = Math.max(computer.pausedUntilMs, time.nowMs + fault.forMs)
        return
      }
      case "cut": {
        const untilMs = time.nowMs + fault.forMs
        node.line.cutUntilMs = Math.max(node.line.cutUntilMs, untilMs)
        node.registryLine.cutUntilMs = Math.max(node.registryLine.cutUntilMs, untilMs)
        for (const other of this.nodes) {
          if (other === node) continue
          this.cutWay(node, other, untilMs)
          this.cutWay(other, node, untilMs)
        }
        return
      }
      case "one-way": {
        const other = this.nodes[fault.to]
        if (other !== undefined) this.cutWay(node, other, time.nowMs + fault.forMs)
        return
      }
      case "jump": {
        const clock = this.clocks[fault.node]
        if (clock !== undefined) clock.offsetMs += fault.byMs
        node.computer.offsetMs += fault.byMs
        node.computer.jumpedAtMs = time.nowMs
        return
      }
    }
  }

  private cutWay(from: SimulatedNode, to: SimulatedNode, untilMs: number): void {
    this.bus.cuts.set(`${from.computer.name} ${to.computer.name}`, untilMs)
  }
}

/** The state of an actor's record, as its behavior wrote it; undefined without a record. */
export const stateOf = <State>({ store }: World, of: Address): State | undefined => {
  const { state } = Effect.runSync(store.inner.load(of))
  return state === undefined ? undefined : JSON.parse(decodeStoredState(state).text) as State
}
