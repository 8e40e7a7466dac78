/** The placement of a node among others, over whatever registry is provided. */
import { Effect, Layer } from "effect"
import { SHARDS, type StorageUnavailable } from "../actor/index.ts"
import { type Fork, laterWith } from "../clock.ts"
import { makePlacementLimits, type PlacementLimits } from "../limits.ts"
import { Registry, type RegistryApi } from "../ports/index.ts"
import { Claims } from "./claims.ts"
import { Handoff } from "./handoff.ts"
import { Members } from "./members.ts"
import { type ClusterClock, isProcessGone, joinCluster, memberOf, Membership, type NodeNameTaken,
  type ProcessName, thisProcess } from "./membership.ts"
import { makeNodeStatus } from "./node-status.ts"
import { type ClusterView, Placement, type PlacementApi } from "./placement.ts"

export interface ClusteredOptions {
  /** `[A-Za-z0-9_=-]+`, of this node alone; the same at each start, or made up. */
  readonly node: string
  readonly limits?: Partial<PlacementLimits>
  /** A name that was never used before; random by default. */
  readonly newIncarnation?: () => string
  /** What the node is to who starts after it on the same machine, and whether another is gone. */
  readonly process?: ProcessName | undefined
  readonly isGone?: (other: ProcessName) => boolean
}

export interface Clustered {
  readonly placement: PlacementApi
  /** Takes the node's name; what keeps it from that. To be called once, before it is followed. */
  readonly enter: () => Promise<NodeNameTaken | StorageUnavailable | undefined>
  /** What the registry tells goes here. */
  readonly observe: (entry: Parameters<Claims["observe"]>[0]) => void
  /** Ends at once: what was not handed over is anybody's. Resolves when the others can know. */
  readonly close: () => Promise<void>
}

/** How often a node that leaves looks whether all is handed over, ms. */
const handoverPollMs = 10

const nodePattern = /^[A-Za-z0-9_=-]{1,100}$/

class ClusteredPlacement implements Clustered {
  readonly placement: PlacementApi
  private readonly node: string
  private readonly limits: PlacementLimits
  private readonly options: ClusteredOptions
  private readonly registry: RegistryApi
  private readonly time: ClusterClock
  private readonly claims: Claims
  private readonly members: Members
  private readonly membership: Membership
  private readonly handoff: Handoff
  private closing: Promise<void> | undefined = undefined
  private cancelTick: () => void = () => {}

  constructor(registry: RegistryApi, time: ClusterClock, options: ClusteredOptions) {
    const { newIncarnation = () => crypto.randomUUID(), node } = options
    if (!nodePattern.test(node)) throw new TypeError(`not a node's name: ${JSON.stringify(node)}`)
    const limits = makePlacementLimits(options.limits)
    this.node = node
    this.limits = limits
    this.options = options
    this.registry = registry
    this.time = time
    this.claims = new Claims(registry, time, limits)
    this.members = new Members(registry, time, limits)
    this.membership = new Membership(registry, time, {
      node,
      limits,
      process: options.process,
      newIncarnation,
      onChange: () => this.handoff.schedule(),
      onFault: (what) => time.fork(Effect.logError(what))
    })
    const { claims, members, membership } = this
    this.handoff = new Handoff({ node, limits, claims, members, membership })
    this.placement = {
      owns: (shard) => this.handoff.holds(shard) && membership.isLeaseValid(),
      isLeaseValid: () => membership.isLeaseValid(),
      holdsClaim: (shard) => this.handoff.claims(shard) && membership.isLeaseValid(),
      follow: (taken, lost) => this.follow(taken, lost),
      leave: () => this.leave(),
      view: () => this.view(),
      nodeStatus: makeNodeStatus(registry, time.fork, node)
    }
  }

  readonly observe: Clustered["observe"] = (entry) => {
    this.claims.observe(entry)
    this.members.observe(entry)
    if (memberOf(entry.key) === this.node) this.membership.observe(entry)
    this.handoff.schedule()
  }

  readonly enter: Clustered["enter"] = async () => {
    const { limits, membership, node, options, time } = this
    const outcome = await joinCluster(this.registry, time, {
      node,
      limits,
      incarnation: membership.incarnation,
      process: options.process,
      isGone: options.isGone ?? (() => false),
      onWait: () => time.fork(Effect.logInfo(`node ${node} was another process: it is waited for`)),
      stopped: () => this.closed
    })
    if (typeof outcome !== "number") return outcome
    if (!this.closed) membership.entered(outcome)
    return undefined
  }

  readonly close: Clustered["close"] = () => this.closing ??= this.end()

  private end(): Promise<void> {
    this.cancelTick()
    this.handoff.stop()
    return new Promise((resolve) => this.membership.end(resolve))
  }

  private get closed(): boolean {
    return this.closing !== undefined
  }

  private follow(...[taken, lost]: Parameters<PlacementApi["follow"]>): () => void {
    this.handoff.follow({ taken, lost })
    this.membership.join()
    this.tick()
    return () => void this.close()
  }

  /** What was not told, or a call that failed, is looked at again. */
  private tick(): void {
    if (this.closed) return
    this.cancelTick = this.time.later(this.limits.refreshMs, () => {
      this.handoff.schedule()
      this.tick()
    })
  }

  private leave(): Promise<void> | undefined {
    return this.hasOthers() && !this.closed ? this.handOver() : undefined
  }

  /** Whether there is another node to take this one's shards. */
  private hasOthers(): boolean {
    return this.members.living().some(({ leaving, node }) => node !== this.node && !leaving)
  }

  private async handOver(): Promise<void> {
    this.membership.leave()
    this.handoff.schedule()
    while (!this.handoff.empty && !this.closed) await this.pause()
    const untilMs = this.time.nowMs() + this.limits.takeoverMs
    const waits = () => !this.closed && this.hasOthers() && this.time.nowMs() < untilMs
    while (!this.handoff.handedOver && waits()) await this.pause()
  }

  private pause(): Promise<void> {
    return new Promise((resolve) => this.time.later(handoverPollMs, resolve))
  }

  private view(): ClusterView {
    const owners = Array.from({ length: SHARDS }, (_, at) => this.claims.at(at).holder?.node)
    return { self: this.node, nodes: this.members.living(), owners }
  }
}

/** The placement of one node; it joins when it is followed. A wrong name is a defect. */
export const makeClustered = (
  registry: RegistryApi,
  time: ClusterClock,
  options: ClusteredOptions
): Clustered => new ClusteredPlacement(registry, time, options)

/**
 * One node among others: it enters with its layer, takes shards when the system follows it, and
 * leaves with its layer.
 */
export const clustered = (
  options: ClusteredOptions
): Layer.Layer<Placement, StorageUnavailable | NodeNameTaken, Registry> =>
  Layer.effect(
    Placement,
    Effect.gen(function*() {
      const registry = yield* Registry
      const fork: Fork = Effect.runForkWith(yield* Effect.context<never>())
      const nowMs = () => performance.now()
      const time = { fork, later: laterWith(fork), nowMs }
      const known = { process: thisProcess, isGone: isProcessGone }
      const node = makeClustered(registry, time, { ...known, ...options })
      yield* registry.watch(node.observe)
      yield* Effect.addFinalizer(() => Effect.promise(node.close))
      const refused = yield* Effect.promise(node.enter)
      if (refused !== undefined) return yield* Effect.fail(refused)
      return node.placement
    })
  )
