/**
 * This node's membership of its cluster: the key `node.<name>` of the registry, which
 * expires unless the node refreshes it. While the key exists, no other node takes over this node's
 * claims. So the node's lease counts from when it sent the last refresh that succeeded, by a
 * monotonic clock, and ends before the key can end, even if the node notices only after a long
 * pause. The node's witnesses may remove the key earlier (`witnesses.ts`): the lease lasts only as
 * long as they cannot.
 *
 * In this file, in order: joining; refreshing.
 */
import { Exit, Schema } from "effect"
import { StorageUnavailable } from "../actor/index.ts"
import { failureOf, runWithin } from "../clock.ts"
import type { PlacementLimits } from "../limits.ts"
import { type RegistryApi, type RegistryEntry, RegistryMoved } from "../ports/index.ts"
import { type ClusterClock, memberKey, memberText, type ProcessName,
  readMember } from "./member-entry.ts"
import type { WitnessLease } from "./witnesses.ts"

export interface MembershipOptions {
  readonly node: string
  /** The newest format that this program reads. */
  readonly format: number
  readonly limits: PlacementLimits
  readonly process?: ProcessName | undefined
  /** The name under which this process answers pings. */
  readonly witness: string
  /** A name that was never used before, such as a UUID. */
  readonly newIncarnation: () => string
  /** The witnesses of this node. */
  readonly witnessLease: WitnessLease
  /** The phase, the incarnation or the lease has changed. */
  readonly onChange: () => void
  readonly onFault: (problem: string) => void
}

/** Another running process has this node name. */
export class NodeNameTaken extends Schema.TaggedError<NodeNameTaken>()("NodeNameTaken", {
  node: Schema.String
}) {}

export interface JoinOptions {
  readonly node: string
  readonly incarnation: string
  readonly format: number
  readonly process: ProcessName | undefined
  /** Whether a process is known to have ended. */
  readonly isGone: (other: ProcessName) => boolean
  readonly limits: PlacementLimits
  /** Called once when joining waits for the end of another membership. */
  readonly onWait: () => void
  /** Whether joining must stop. */
  readonly stopped: () => boolean
}

/** Another process's membership when it was last read. */
interface OtherMembership {
  readonly incarnation: string
  readonly revision: number
}

/**
 * Writes this node's membership; its revision, or why it was refused. If another process refreshes
 * the key, this node must not join. If not, joining waits until that membership has ended, unless
 * its process ran on this machine and has certainly ended.
 */
export const joinCluster = async (
  registry: RegistryApi,
  time: ClusterClock,
  { format, incarnation, isGone, limits, node, onWait, process, stopped }: JoinOptions
): Promise<number | NodeNameTaken | StorageUnavailable> => {
  const key = memberKey(node)
  const { callDeadlineMs, joinFailuresMax, retryMs, ttlMs } = limits
  const call = <A, E>(make: Parameters<typeof runWithin<A, E>>[1]): Promise<Exit.Exit<A, E>> =>
    new Promise((resolve) => runWithin(time, make, callDeadlineMs, resolve))
  // Until the runtime follows the placement the node takes no shards, like one that leaves.
  const value = memberText({ incarnation, leaving: true, format, process, witnesses: [] })
  let last: OtherMembership | undefined
  for (let failures = 0; failures < joinFailuresMax && !stopped();) {
    const read = await call(() => registry.get(key))
    if (Exit.isFailure(read)) failures++
    else {
      const { revision } = read.value
      const member = readMember(node, read.value)
      // An earlier call wrote it, although the call seemed to fail.
      if (member?.incarnation === incarnation) return revision
      if (member === undefined || (member.process !== undefined && isGone(member.process))) {
        const put = await call(() => registry.put(key, value, revision, ttlMs))
        if (Exit.isSuccess(put)) return put.value
        failures++
      } else {
        const refreshed = member.incarnation === last?.incarnation && revision !== last.revision
        if (refreshed && !member.leaving) return new NodeNameTaken({ node })
        if (last === undefined) onWait()
        last = { incarnation: member.incarnation, revision }
      }
    }
    await new Promise<void>((resolve) => time.later(retryMs, resolve))
  }
  return new StorageUnavailable({ detail: "the registry does not answer" })
}

/** The refreshing of a membership, and the lease that follows from it. */
export class Membership {
  incarnation: string
  /** The node is stopping, and should own no shards. */
  leaving = false
  /** The runtime follows the placement, so the node may own shards. */
  private followed = false
  private readonly registry: RegistryApi
  private readonly time: ClusterClock
  private readonly options: MembershipOptions
  private phase: "out" | "joining" | "in" | "ended" = "out"
  private readonly own = new Set<string>()
  private revision = 0
  /** Until when the key cannot have expired. */
  private keptUntilMs = Number.NEGATIVE_INFINITY
  /** When this process noticed that the lease is not valid; undefined while it is. */
  private lapsedMs: number | undefined = undefined
  /** Those that wait until it is known whether the lease continues. */
  private waiting: Array<() => void> = []
  private refreshing = false
  /** The membership should name other witnesses than a refresh that is under way. */
  private replaces = false
  /** Why the last refresh failed; undefined if none failed, as after a pause of the process. */
  private refreshFailure: string | undefined
  private cancelNext: (() => void) | undefined = undefined
  private cancelEnd: (() => void) | undefined = undefined
  private cancelWait: (() => void) | undefined = undefined

  constructor(registry: RegistryApi, time: ClusterClock, options: MembershipOptions) {
    this.registry = registry
    this.time = time
    this.options = options
    this.incarnation = this.createIncarnation()
  }

  /** Whether no other node can have taken over this node's claims. */
  isLeaseValid(): boolean {
    return this.time.nowMs() < this.leaseUntilMs
  }

  /**
   * Whether the lease is valid, or may be so again: the key has not expired, and nobody is known to
   * have removed it; or this process noticed a short time ago that it stood still.
   */
  mayContinue(): boolean {
    const { keptUntilMs, lapsedMs, options: { limits: { leaseGraceMs } }, phase } = this
    if (phase !== "in" || keptUntilMs === -Infinity) return false
    const nowMs = this.time.nowMs()
    return nowMs < keptUntilMs || lapsedMs === undefined || nowMs - lapsedMs < leaseGraceMs
  }

  /** Resolves when the lease is valid, or has ended for good, or after `leaseGraceMs`. */
  awaitLeaseDecision(): Promise<void> {
    if (this.isLeaseValid() || !this.mayContinue()) return Promise.resolve()
    this.lapse()
    return new Promise((resolve) => this.waiting.push(resolve))
  }

  private get leaseUntilMs(): number {
    return Math.min(this.keptUntilMs, this.options.witnessLease.untilMs)
  }

  /** The registry reports a change of the key; one newer than this node's own write counts. */
  observe(entry: RegistryEntry): void {
    if (this.phase !== "in" || entry.revision <= this.revision) return
    if (entry.value === undefined || !this.isOwn(entry)) this.resolveChange(entry)
  }

  /** This node wrote the key at this revision. It refreshes the key, and owns nothing yet. */
  entered(revision: number): void {
    if (this.phase !== "out") return
    this.revision = revision
    this.phase = "joining"
    this.refresh()
  }

  /** The node may own shards from now on. */
  join(): void {
    this.followed = true
    if (this.phase === "out") this.phase = "joining"
    this.refresh()
  }

  /** Publishes that this node is leaving, so it should own no shards. */
  leave(): void {
    if (this.leaving) return
    this.leaving = true
    this.refresh()
  }

  /** Leaves at once: any node may take the remaining claims. `done` is called at the end. */
  end(done: () => void): void {
    const { phase } = this
    this.stop()
    if (phase !== "in" && phase !== "joining") return done()
    const { callDeadlineMs } = this.options.limits
    const key = memberKey(this.options.node)
    runWithin(this.time, () => this.registry.get(key), callDeadlineMs, (exit) => {
      const entry = Exit.isSuccess(exit) ? exit.value : undefined
      const own = entry !== undefined && this.isOwn(entry)
      if (!own) return done()
      const remove = () => this.registry.remove(key, entry.revision)
      runWithin(this.time, remove, callDeadlineMs, done)
    })
  }

  private createIncarnation(): string {
    const incarnation = this.options.newIncarnation()
    this.own.add(incarnation)
    this.options.witnessLease.begin(incarnation)
    return incarnation
  }

  private stop(): void {
    this.phase = "ended"
    this.keptUntilMs = Number.NEGATIVE_INFINITY
    this.options.witnessLease.stop()
    this.cancelNext?.()
    this.cancelEnd?.()
    this.endWait()
  }

  private isOwn(entry: RegistryEntry): boolean {
    const { incarnation } = readMember(this.options.node, entry) ?? {}
    return incarnation !== undefined && this.own.has(incarnation)
  }

  private get stays(): boolean {
    return this.followed && !this.leaving
  }

  private refresh(): void {
    if (this.refreshing || this.phase === "out" || this.phase === "ended") return
    this.cancelNext?.()
    this.refreshing = true
    const {
      incarnation,
      options: { format, limits, node, process, witness, witnessLease },
      stays
    } = this
    const witnesses = witnessLease.choose()
    this.replaces = false
    const member = { incarnation, leaving: !stays, format, process, witness, witnesses }
    const value = memberText(member)
    const sentMs = this.time.nowMs()
    witnessLease.writing(witnesses)
    const put = () => this.registry.put(memberKey(node), value, this.revision, limits.ttlMs)
    runWithin(this.time, put, limits.refreshDeadlineMs, (exit) => {
      this.refreshing = false
      if (this.phase === "ended") return
      // The key was removed meanwhile: what was written is of an incarnation that has ended.
      if (incarnation !== this.incarnation) return this.next(0)
      if (Exit.isFailure(exit)) return this.refreshFailed(failureOf(exit.cause))
      this.revision = exit.value
      this.refreshFailure = undefined
      this.phase = "in"
      this.keptUntilMs = Math.max(this.keptUntilMs, sentMs + limits.ttlMs - limits.marginMs)
      witnessLease.written(witnesses)
      // A change during the call is written at once.
      this.next(stays === this.stays && !this.replaces ? limits.refreshMs : 0)
      this.leaseChanged()
      this.options.onChange()
    })
  }

  /** The membership should name other witnesses. */
  replaceWitnesses(): void {
    if (this.refreshing) this.replaces = true
    else this.refresh()
  }

  /** The lease may last longer than before. */
  leaseChanged(): void {
    this.watchLeaseEnd()
    if (!this.isLeaseValid()) return
    const hasLapsed = this.lapsedMs !== undefined
    this.lapsedMs = undefined
    this.endWait()
    if (hasLapsed) this.options.onChange()
  }

  private endWait(): void {
    this.cancelWait?.()
    this.cancelWait = undefined
    for (const resolve of this.waiting.splice(0)) resolve()
  }

  /** This process notices that the lease is not valid. */
  private lapse(): void {
    if (this.lapsedMs !== undefined) return
    this.lapsedMs = this.time.nowMs()
    const { limits: { leaseGraceMs }, onChange, witnessLease } = this.options
    witnessLease.ping()
    this.cancelWait = this.time.later(leaseGraceMs, () => {
      this.endWait()
      if (!this.isLeaseValid()) this.reportLapse()
      onChange()
    })
  }

  private reportLapse(): void {
    const { onFault } = this.options
    const isKept = this.time.nowMs() < this.keptUntilMs
    if (isKept) {
      return onFault(
        "this node does not serve, since its witnesses do not answer: check its connection to NATS"
      )
    }
    const why = this.refreshFailure === undefined ? "" : `: ${this.refreshFailure}`
    onFault(`this node could not refresh its membership in time${why}`)
  }

  private next(delayMs: number): void {
    if (this.phase === "ended") return
    this.cancelNext?.()
    if (delayMs === 0) return this.refresh()
    this.cancelNext = this.time.later(delayMs, () => this.refresh())
  }

  /** Notices the end of the lease when it comes; `isLeaseValid` does not depend on it. */
  private watchLeaseEnd(): void {
    const { leaseUntilMs } = this
    if (this.cancelEnd !== undefined || this.phase !== "in" || leaseUntilMs === -Infinity) return
    const leftMs = Math.max(1, leaseUntilMs - this.time.nowMs())
    this.cancelEnd = this.time.later(leftMs, () => {
      this.cancelEnd = undefined
      if (this.phase === "ended") return
      if (this.isLeaseValid()) return this.watchLeaseEnd()
      this.lapse()
      this.options.onChange()
    })
  }

  private refreshFailed(failure: unknown): void {
    const { limits, node } = this.options
    if (!(failure instanceof RegistryMoved)) {
      const named = failure instanceof StorageUnavailable
      this.refreshFailure = named ? failure.detail : "the registry does not answer"
      return this.next(limits.retryMs)
    }
    this.refreshing = true
    const read = () => this.registry.get(memberKey(node))
    runWithin(this.time, read, limits.refreshDeadlineMs, (exit) => {
      this.refreshing = false
      if (this.phase === "ended") return
      if (Exit.isFailure(exit)) return this.next(limits.retryMs)
      this.resolveChange(exit.value)
    })
  }

  /** Handles a key that differs from this node's last write. */
  private resolveChange(entry: RegistryEntry): void {
    const { node, onChange, onFault } = this.options
    if (entry.value === undefined) {
      // It expired or was removed: other nodes may have taken the claims of this incarnation.
      if (this.keptUntilMs > -Infinity) {
        onFault(
          `the membership of this node has ended: it could not refresh it, or did not answer the ` +
            "other nodes in time; it joins again"
        )
      }
      this.keptUntilMs = Number.NEGATIVE_INFINITY
      this.incarnation = this.createIncarnation()
      // Not 0: an earlier write that expected nothing must not be stored after the removal.
      this.revision = entry.revision
      this.endWait()
      onChange()
      return this.refresh()
    }
    // This node wrote it, by a call that timed out.
    if (this.isOwn(entry)) {
      this.revision = entry.revision
      return this.refresh()
    }
    this.stop()
    onFault(
      `another process has taken the node name ${node}: this node stops serving; rename one of them`
    )
    onChange()
  }
}
