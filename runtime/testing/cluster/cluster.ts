/** A simulated cluster: its nodes, what they share, and the faults that strike them. */
import { type Computer, Trace, VirtualTime } from "../time/index.ts"
import type { NodeEnvironment, NodeProcess, NodeSeams } from "./node-process.ts"
import type { Fault } from "./faults.ts"
import { type ClusterNoise, quiet } from "./noise.ts"
import { SharedRegistry } from "./shared-registry.ts"
import { type ApplyCommit, ContractStore, faithful, type SharedStore,
  type StoreEvents } from "./shared-storage.ts"

/** Pause before a process that failed to start is started again, ms. */
const restartDelayMs = 1_000
/** How much faster or slower a computer's clock may run, and its greatest offset. */
const clockRateOff = 0.02
const clockOffMs = 4_000

/** The parts of which a cluster makes its store. */
export interface StoreParts {
  readonly time: VirtualTime
  readonly trace: Trace
  readonly noise: ClusterNoise
  readonly events: StoreEvents
}

export interface ClusterOptions {
  readonly seed: number
  readonly noise: ClusterNoise
  /** Whether the trace keeps its lines, not only their digest. */
  readonly keepsTrace: boolean
  readonly seams?: NodeSeams
  /** How the store applies a commit; tests plant bugs here. Only without `storeOf`. */
  readonly apply?: ApplyCommit | undefined
  /** Makes another store than one by the contract of the storage port. */
  readonly storeOf?: ((parts: StoreParts) => SharedStore) | undefined
}

/** The nodes and the faults of a plan. */
export interface ClusterPlan {
  readonly nodes: number
  readonly faults: ReadonlyArray<Fault>
}

export abstract class SimulatedCluster<Node extends NodeProcess = NodeProcess> {
  readonly time: VirtualTime
  readonly trace: Trace
  readonly store: SharedStore
  readonly registry: SharedRegistry
  onCommitted: NodeEnvironment["onCommitted"] = () => {}
  storeEvents: StoreEvents = { onApplied: () => {}, onAnswered: () => {} }
  /** Violated invariants. */
  readonly violations: Array<string> = []
  /** Numbers of injected faults by kind. */
  readonly faults = new Map<string, number>()
  /** The latest process of each node, by the node's number. */
  readonly nodes: Array<Node> = []
  /** All processes of the run. */
  readonly processes: Array<Node> = []
  protected readonly environment: NodeEnvironment
  private readonly clocks: Array<{ readonly rate: number; offsetMs: number }> = []
  private readonly starts: Array<number> = []

  constructor({ apply = faithful, keepsTrace, noise, seams = {}, seed, storeOf }: ClusterOptions) {
    const time = new VirtualTime(seed)
    const trace = new Trace(time, keepsTrace)
    this.time = time
    this.trace = trace
    const events: StoreEvents = {
      onApplied: (computer, change) => this.storeEvents.onApplied(computer, change),
      onAnswered: (computer, actor) => this.storeEvents.onAnswered(computer, actor)
    }
    this.store = storeOf?.({ time, trace, noise, events }) ??
      new ContractStore(time, trace, noise, events, apply)
    this.registry = new SharedRegistry(time, trace, noise)
    this.environment = {
      time,
      trace,
      store: this.store,
      registry: this.registry,
      seams,
      processes: [],
      onCommitted: (computer, address) => this.onCommitted(computer, address),
      onDefect: (what) => this.violate(`a defect: ${what}`)
    }
  }

  /** Makes the next process of a node. */
  protected abstract newNode(computer: Computer): Node
  /** Cuts the path from one node to another until then, simulated ms. */
  protected abstract cutPath(from: Node, to: Node, untilMs: number): void
  /** Ends all cuts. */
  protected abstract mendPaths(): void

  violate(what: string): void {
    this.trace.note("VIOLATION", what)
    this.violations.push(what)
  }

  /** Starts all nodes, and schedules the faults. The nodes own these shards only. */
  begin({ faults, nodes }: ClusterPlan, shards: ReadonlySet<number>): void {
    this.registry.leaveOnly(shards)
    for (let at = 0; at < nodes; at++) {
      const { random } = this.time
      this.clocks.push({
        rate: 1 + (2 * random() - 1) * clockRateOff,
        offsetMs: (2 * random() - 1) * clockOffMs
      })
      this.start(at)
    }
    for (const fault of faults) this.time.later(fault.atMs, () => this.make(fault))
  }

  /** Ends all faults: starts the stopped nodes, and delivers all answers. */
  heal(): void {
    this.trace.note("world", "is quiet")
    this.setNoise(quiet)
    this.mendPaths()
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

  protected setNoise(noise: ClusterNoise): void {
    this.store.noise = noise
    this.registry.noise = noise
  }

  private start(at: number): void {
    const clock = this.clocks[at]
    if (clock === undefined) throw new RangeError(`there is no node ${at}`)
    const count = (this.starts[at] ?? 0) + 1
    this.starts[at] = count
    const computer = this.time.newComputer(`node-${at}#${count}`, clock.rate, clock.offsetMs)
    const node = this.newNode(computer)
    this.nodes[at] = node
    this.processes.push(node)
    node.start(() => this.startIn(at, node, restartDelayMs))
  }

  /** Restarts a node after a while, unless it already runs. */
  private startIn(at: number, last: Node, delayMs: number): void {
    this.time.later(delayMs, () => {
      if (this.nodes[at] === last && !last.alive) this.start(at)
    })
  }

  private make(fault: Fault): void {
    this.faults.set(fault.what, (this.faults.get(fault.what) ?? 0) + 1)
    this.trace.note("fault", () => JSON.stringify(fault))
    const { registry, store, time } = this
    if (fault.what === "stall") {
      const untilMs = time.nowMs + fault.forMs
      store.stalledUntilMs = Math.max(store.stalledUntilMs, untilMs)
      registry.stalledUntilMs = Math.max(registry.stalledUntilMs, untilMs)
    } else if (fault.what === "stall-one") store.stall(fault.stream, fault.forMs)
    else if (fault.what === "leader") store.loseLeader(fault.stream, fault.forMs)
    else {
      const node = this.nodes[fault.node]
      if (node !== undefined) this.strike(node, fault)
    }
  }

  private strike(node: Node, fault: Extract<Fault, { readonly node: number }>): void {
    const { time } = this
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
      case "cut":
        return this.cutOff(node, time.nowMs + fault.forMs)
      case "one-way": {
        const other = this.nodes[fault.to]
        if (other !== undefined) this.cutPath(node, other, time.nowMs + fault.forMs)
        return
      }
      case "jump": {
        const clock = this.clocks[fault.node]
        if (clock !== undefined) clock.offsetMs += fault.byMs
        node.computer.offsetMs += fault.byMs
        node.computer.jumpedAtMs = time.nowMs
      }
    }
  }

  /** Cuts a node off from the store, the registry and all other nodes. */
  private cutOff(node: Node, untilMs: number): void {
    node.line.cutUntilMs = Math.max(node.line.cutUntilMs, untilMs)
    node.registryLine.cutUntilMs = Math.max(node.registryLine.cutUntilMs, untilMs)
    for (const other of this.nodes) {
      if (other === node) continue
      this.cutPath(node, other, untilMs)
      this.cutPath(other, node, untilMs)
    }
  }
}
