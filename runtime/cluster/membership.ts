/**
 * This node's membership of its cluster: the key `node.<name>` of the registry, which
 * expires unless the node refreshes it. While the key exists, no other node takes over this node's
 * claims. So the node's lease counts from when it sent the last refresh that succeeded, by a
 * monotonic clock, and ends before the key can end, even if the node notices only after a long
 * pause.
 *
 * In this file, in order: processes and their names; the key and its value; joining; refreshing.
 */
import { Exit, Option, Schema } from "effect"
import { readFileSync, readlinkSync } from "node:fs"
import { firstFormat, StorageUnavailable } from "../actor/index.ts"
import { failureOf, runWithin, type Timekeeping } from "../clock.ts"
import type { PlacementLimits } from "../limits.ts"
import { type RegistryApi, type RegistryEntry, RegistryMoved } from "../ports/index.ts"
import type { NodeView } from "./placement.ts"

export interface ProcessName {
  /** The machine's boot id, and the namespace of `pid`. */
  readonly host: string
  readonly pid: number
}

const hostName = (): string | undefined => {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()
    return `${boot} ${readlinkSync("/proc/self/ns/pid")}`
  } catch {
    // Not Linux: other processes cannot be identified.
    return undefined
  }
}

const host = hostName()

/** This process; undefined where processes cannot be identified. */
export const thisProcess: ProcessName | undefined = host === undefined
  ? undefined
  : { host, pid: process.pid }

/** Whether a process has certainly ended. A process with this one's pid was an earlier one. */
export const isProcessGone = (other: ProcessName): boolean => {
  if (host === undefined || other.host !== host) return false
  if (other.pid === process.pid) return true
  try {
    process.kill(other.pid, 0)
    return false
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ESRCH"
  }
}

const prefix = "node."

/** The clock of a node's placement. */
export interface ClusterClock extends Timekeeping {
  /** Time of a monotonic clock, from any origin. */
  readonly nowMs: () => number
}

export interface MembershipOptions {
  readonly node: string
  /** The newest format that this program reads. */
  readonly format: number
  readonly limits: PlacementLimits
  readonly process?: ProcessName | undefined
  /** A name that was never used before, such as a UUID. */
  readonly newIncarnation: () => string
  /** The phase, the incarnation or the lease has changed. */
  readonly onChange: () => void
  readonly onFault: (problem: string) => void
}

/** The key of a node's membership. */
export const memberKey = (node: string): string => prefix + node

/** The node whose membership is stored under a key. */
export const memberOf = (key: string): string | undefined =>
  key.startsWith(prefix) ? key.slice(prefix.length) : undefined

/** A node as its membership describes it. */
export interface ClusterMember extends NodeView {
  /** The newest format that its program reads. */
  readonly format: number
  readonly process?: ProcessName | undefined
}

/** The membership as it is written. */
export const memberText = (
  { format, incarnation, leaving, process }: Omit<ClusterMember, "node">
): string => JSON.stringify({ incarnation, leaving, format, process })

const decodeMember = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({
  incarnation: Schema.String,
  leaving: Schema.optionalKey(Schema.Boolean),
  format: Schema.optionalKey(Schema.Int),
  process: Schema.optionalKey(Schema.Struct({ host: Schema.String, pid: Schema.Number }))
})))

/** Decodes a membership; undefined when there is none, or it is unreadable. */
export const readMember = (node: string, { value }: RegistryEntry): ClusterMember | undefined => {
  const member = Option.getOrUndefined(decodeMember(value))
  return member && { leaving: false, format: firstFormat, ...member, node }
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
  const value = memberText({ incarnation, leaving: true, format, process })
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
  private leaseUntilMs = Number.NEGATIVE_INFINITY
  private refreshing = false
  /** Why the last refresh failed; undefined if none failed, as after a pause of the process. */
  private refreshFailure: string | undefined
  private cancelNext: (() => void) | undefined = undefined
  private cancelEnd: (() => void) | undefined = undefined

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
    return incarnation
  }

  private stop(): void {
    this.phase = "ended"
    this.leaseUntilMs = Number.NEGATIVE_INFINITY
    this.cancelNext?.()
    this.cancelEnd?.()
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
    const { incarnation, options: { format, limits, node, process }, stays } = this
    const value = memberText({ incarnation, leaving: !stays, format, process })
    const sentMs = this.time.nowMs()
    const put = () => this.registry.put(memberKey(node), value, this.revision, limits.ttlMs)
    runWithin(this.time, put, limits.refreshDeadlineMs, (exit) => {
      this.refreshing = false
      if (this.phase === "ended") return
      if (Exit.isFailure(exit)) return this.refreshFailed(failureOf(exit.cause))
      this.revision = exit.value
      this.refreshFailure = undefined
      this.phase = "in"
      this.leaseUntilMs = Math.max(this.leaseUntilMs, sentMs + limits.ttlMs - limits.marginMs)
      this.watchLeaseEnd()
      // A change during the call is written at once.
      this.next(stays === this.stays ? limits.refreshMs : 0)
      this.options.onChange()
    })
  }

  private next(delayMs: number): void {
    if (this.phase === "ended") return
    this.cancelNext?.()
    if (delayMs === 0) return this.refresh()
    this.cancelNext = this.time.later(delayMs, () => this.refresh())
  }

  /** Reports the end of the lease when it comes; `isLeaseValid` does not depend on it. */
  private watchLeaseEnd(): void {
    this.cancelEnd?.()
    const leftMs = Math.max(1, this.leaseUntilMs - this.time.nowMs())
    this.cancelEnd = this.time.later(leftMs, () => {
      if (this.phase === "ended") return
      if (this.isLeaseValid()) return this.watchLeaseEnd()
      const why = this.refreshFailure === undefined ? "" : `: ${this.refreshFailure}`
      this.options.onFault(`this node could not refresh its membership in time${why}`)
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
      // The key has expired: other nodes may have taken the claims of this incarnation.
      this.leaseUntilMs = Number.NEGATIVE_INFINITY
      this.incarnation = this.createIncarnation()
      this.revision = 0
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
