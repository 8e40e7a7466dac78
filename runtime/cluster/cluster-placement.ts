/** The placement of a node in a cluster, on any registry. */
import { Effect, Exit, Layer } from "effect"
import { firstFormat, SHARDS, StorageUnavailable,
  type StoreFormatUnsupported } from "../actor/index.ts"
import { type Fork, laterWith, runWithin } from "../clock.ts"
import { makePlacementLimits, type PlacementLimits } from "../limits.ts"
import { Pings, type PingsApi, Registry, type RegistryApi,
  type RegistryEntry } from "../ports/index.ts"
import { Claims } from "./claims.ts"
import { ClusterFormat, formatFailure, readFormat } from "./cluster-format.ts"
import { Handoff } from "./handoff.ts"
import { Members } from "./members.ts"
import { joinCluster, Membership, type NodeNameTaken } from "./membership.ts"
import { type ClusterClock, isProcessGone, memberOf, type ProcessName,
  thisProcess } from "./member-entry.ts"
import { makeNodeStatus } from "./node-status.ts"
import { type ClusterView, Placement, type PlacementApi } from "./placement.ts"
import { Witness, WitnessLease } from "./witnesses.ts"

/** How a node takes part in a cluster. */
export interface ClusterPlacementOptions {
  /** `[A-Za-z0-9_=-]+`, unique in the cluster; the same at each start, or a random name. */
  readonly node: string
  /** The newest format that this program reads ({@link ClusterFormat}); 1 by default. */
  readonly format?: number
  readonly limits?: Partial<PlacementLimits>
  /** Creates a name of this pattern that was never used before; a UUID by default. */
  readonly newIncarnation?: () => string
  /** This process, for the next start on the same machine; and whether another has ended. */
  readonly process?: ProcessName | undefined
  readonly isGone?: (other: ProcessName) => boolean
}

/** How often a leaving node checks whether its shards are handed over. */
const handoverPollMs = 10

const nodePattern = /^[A-Za-z0-9_=-]{1,100}$/

/** The placement of one node; `follow` makes it claim shards. */
export class ClusterPlacement {
  readonly placement: PlacementApi
  private readonly node: string
  private readonly limits: PlacementLimits
  private readonly options: ClusterPlacementOptions
  private readonly registry: RegistryApi
  private readonly time: ClusterClock
  private readonly claims: Claims
  private readonly members: Members
  private readonly membership: Membership
  private readonly witness: Witness
  private readonly handoff: Handoff
  /** The name under which this process answers pings. */
  readonly witnessName: string
  private readonly ownFormat: number
  private readonly format: ClusterFormat
  private closing: Promise<void> | undefined = undefined
  private cancelTick: () => void = () => {}

  /** Throws a TypeError if the node's name is invalid. */
  constructor(
    registry: RegistryApi,
    pings: PingsApi,
    time: ClusterClock,
    options: ClusterPlacementOptions
  ) {
    const { newIncarnation = () => crypto.randomUUID(), node } = options
    if (!nodePattern.test(node)) throw new TypeError(`not a node name: ${JSON.stringify(node)}`)
    const limits = makePlacementLimits(options.limits)
    this.node = node
    this.limits = limits
    this.options = options
    this.registry = registry
    this.time = time
    this.claims = new Claims(registry, time, limits)
    this.members = new Members(registry, time, limits)
    const format = options.format ?? firstFormat
    this.ownFormat = format
    this.format = new ClusterFormat(format, this.members, registry, time, limits)
    const { members } = this
    this.witnessName = newIncarnation()
    const shared = { node, limits, members, pings, time, witness: this.witnessName }
    this.witness = new Witness({
      ...shared,
      registry,
      onRemoved: (other) => this.logRemoval(other)
    })
    const witnessLease = new WitnessLease({
      ...shared,
      onAnswer: () => this.membership.leaseChanged(),
      onReplace: () => this.membership.replaceWitnesses()
    })
    this.membership = new Membership(registry, time, {
      node,
      format,
      limits,
      process: options.process,
      witness: this.witnessName,
      newIncarnation,
      witnessLease,
      onChange: () => this.handoff.schedule(),
      onFault: (problem) => time.fork(Effect.logError(problem))
    })
    const { claims, membership } = this
    this.handoff = new Handoff({ node, limits, claims, members, membership })
    this.placement = {
      owns: (shard) => this.handoff.holds(shard) && membership.isLeaseValid(),
      isLeaseValid: () => membership.isLeaseValid(),
      heldClaim: (shard) => membership.isLeaseValid() ? this.handoff.heldClaim(shard) : undefined,
      awaitLeaseDecision: () => membership.awaitLeaseDecision(),
      follow: (taken, lost) => this.follow(taken, lost),
      leave: () => this.leave(),
      format: () => this.format.current,
      view: () => this.view(),
      nodeStatus: makeNodeStatus(registry, time.fork, node)
    }
  }

  private logRemoval(node: string): void {
    const { limits: { removeAfterMs }, time } = this
    time.fork(Effect.logWarning(
      `node ${node} did not answer for ${removeAfterMs / 1_000} s: its membership was removed, ` +
        "and other nodes take its shards"
    ))
  }

  /** Receives every change of the registry. */
  readonly observe = (entry: RegistryEntry): void => {
    this.claims.observe(entry)
    this.members.observe(entry)
    this.format.observe(entry)
    if (memberOf(entry.key) === this.node) this.membership.observe(entry)
    this.handoff.schedule()
  }

  /** Answers a ping of another node. */
  readonly answerPing = (text: string): string => this.witness.answer(text)

  /** Takes the node's name, or returns why it cannot. Call it once, before `placement.follow`. */
  readonly enter = async (): Promise<
    NodeNameTaken | StorageUnavailable | StoreFormatUnsupported | undefined
  > => {
    const { limits, membership, node, options, time } = this
    const outcome = await joinCluster(this.registry, time, {
      node,
      limits,
      format: this.ownFormat,
      incarnation: membership.incarnation,
      process: options.process,
      isGone: options.isGone ?? (() => false),
      onWait: () =>
        time.fork(Effect.logInfo(`node ${node} waits until the earlier process of its name ended`)),
      stopped: () => this.closed
    })
    if (typeof outcome !== "number") return outcome
    if (!this.closed) {
      membership.entered(outcome)
      this.witness.start()
    }
    return await this.readFormatFailure()
  }

  /** The failure of a program that cannot read the cluster's format; undefined if it can. */
  private readFormatFailure(): Promise<StorageUnavailable | StoreFormatUnsupported | undefined> {
    const { limits, registry, time } = this
    const read = () => readFormat(registry)
    return new Promise((resolve) =>
      runWithin(time, read, limits.callDeadlineMs, (exit) =>
        resolve(
          Exit.isSuccess(exit)
            ? formatFailure(this.ownFormat, exit.value)
            : new StorageUnavailable({ detail: "the registry does not answer" })
        ))
    )
  }

  /** Ends at once: other nodes may take the remaining shards. Resolves when the key is gone. */
  readonly close = (): Promise<void> => this.closing ??= this.end()

  private end(): Promise<void> {
    this.cancelTick()
    this.witness.stop()
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

  /** Checks all shards at an interval: a watch may miss a change, and a call may fail. */
  private tick(): void {
    if (this.closed) return
    this.cancelTick = this.time.later(this.limits.refreshMs, () => {
      this.handoff.schedule()
      this.format.raise()
      this.tick()
    })
  }

  private leave(): Promise<void> | undefined {
    return this.hasOthers() && !this.closed ? this.handOver() : undefined
  }

  /** Whether another node can take this node's shards. */
  private hasOthers(): boolean {
    return this.members.living().some(({ leaving, node }) => node !== this.node && !leaving)
  }

  private async handOver(): Promise<void> {
    this.membership.leave()
    this.handoff.schedule()
    while (!this.handoff.empty && !this.closed) await this.pause()
    const deadlineMs = this.time.nowMs() + this.limits.takeoverMs
    const mayWait = () => !this.closed && this.hasOthers() && this.time.nowMs() < deadlineMs
    while (!this.handoff.handedOver && mayWait()) await this.pause()
  }

  private pause(): Promise<void> {
    return new Promise((resolve) => this.time.later(handoverPollMs, resolve))
  }

  private view(): ClusterView {
    const owners = Array.from({ length: SHARDS }, (_, at) => this.claims.at(at).holder?.node)
    const { handoff, members, node } = this
    const targets = handoff.targets()
    return { self: node, nodes: members.living(), owners, targets, lost: members.lost() }
  }
}

/**
 * Placement in a cluster: the node joins when the layer is built, takes shards when the system
 * follows the placement, and leaves when the layer's scope closes.
 */
export const clusterPlacement = (
  options: ClusterPlacementOptions
): Layer.Layer<
  Placement,
  StorageUnavailable | NodeNameTaken | StoreFormatUnsupported,
  Pings | Registry
> =>
  Layer.effect(
    Placement,
    Effect.gen(function*() {
      const registry = yield* Registry
      const pings = yield* Pings
      const fork: Fork = Effect.runForkWith(yield* Effect.context<never>())
      const nowMs = () => performance.now()
      const time = { fork, later: laterWith(fork), nowMs }
      const processes = { process: thisProcess, isGone: isProcessGone }
      const node = new ClusterPlacement(registry, pings, time, { ...processes, ...options })
      yield* pings.listen(node.witnessName, node.answerPing)
      yield* registry.watch(node.observe)
      yield* Effect.addFinalizer(() => Effect.promise(node.close))
      const failure = yield* Effect.promise(node.enter)
      if (failure !== undefined) return yield* Effect.fail(failure)
      return node.placement
    })
  )
