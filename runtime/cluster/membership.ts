/**
 * How a node enters its cluster: it takes the key of its name, unless another process has it. One
 * that refreshes the key lives, and this node must not start. One that does not is waited for until
 * its membership has ended, or not at all when it ran on this machine and is known to be gone.
 */
import { type Cause, Exit, Schema } from "effect"
import { readFileSync, readlinkSync } from "node:fs"
import { StorageUnavailable } from "../actor/index.ts"
import { runWithin, type Timekeeping } from "../clock.ts"
import type { PlacementLimits } from "../limits.ts"
import { type RegistryApi, type RegistryEntry, RegistryMoved } from "../ports/index.ts"
import type { NodeView } from "./placement.ts"

export interface ProcessName {
  /** This start of the machine, and the namespace in which `pid` counts. */
  readonly host: string
  readonly pid: number
}

const hostName = (): string | undefined => {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()
    return `${boot} ${readlinkSync("/proc/self/ns/pid")}`
  } catch {
    // Not Linux: nothing is known of other processes.
    return undefined
  }
}

const host = hostName()

/** This process; undefined where that cannot be said. */
export const thisProcess: ProcessName | undefined = host === undefined
  ? undefined
  : { host, pid: process.pid }

/** Whether a process has ended for certain. One of this process's own number came before it. */
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

/* What a call of the registry failed with. */

/** The failure that was named; undefined when the call broke off, or was not answered. */
export const failureOf = <E>(cause: Cause.Cause<E>): E | undefined => {
  const reason = cause.reasons.find((one) => one._tag === "Fail")
  return reason?._tag === "Fail" ? reason.error : undefined
}

/*
 * This node's membership of the cluster: one key of the registry that ends by itself unless it is
 * refreshed. For as long as the key is there nobody takes this node's claims over. So the node
 * counts from when it sent the last refresh that succeeded, by a clock that never jumps, and
 * stops serving before the key can end, even when it only finds out after a long pause.
 */

const prefix = "node."

/** Time as placement takes it. */
export interface ClusterClock extends Timekeeping {
  /** Of a clock that never jumps, from any beginning. */
  readonly nowMs: () => number
}

export interface MembershipOptions {
  readonly node: string
  readonly limits: PlacementLimits
  readonly process?: ProcessName | undefined
  /** A name that was never used before. */
  readonly newIncarnation: () => string
  /** Standing, incarnation or time have changed. */
  readonly onChange: () => void
  readonly onFault: (what: string) => void
}

/** The key of a node's membership. */
export const memberKey = (node: string): string => prefix + node

/** The node whose membership a key tells of. */
export const memberOf = (key: string): string | undefined =>
  key.startsWith(prefix) ? key.slice(prefix.length) : undefined

/** What a membership says of its node. */
export interface ClusterMember extends NodeView {
  readonly process?: ProcessName | undefined
}

/** The membership as it is written. */
export const memberText = (
  { incarnation, leaving, process }: Omit<ClusterMember, "node">
): string => JSON.stringify({ incarnation, leaving, process })

const readProcess = (value: Partial<ProcessName> | undefined): ProcessName | undefined => {
  const { host, pid } = value ?? {}
  return typeof host === "string" && typeof pid === "number" ? { host, pid } : undefined
}

/** What a membership says; undefined when it is not there, or cannot be read. */
export const readMember = (node: string, { value }: RegistryEntry): ClusterMember | undefined => {
  if (value === undefined) return
  try {
    const { incarnation, leaving, process } = JSON.parse(value)
    return typeof incarnation === "string"
      ? { node, incarnation, leaving: leaving === true, process: readProcess(process) }
      : undefined
  } catch {
    return
  }
}

export class Membership {
  incarnation: string
  /** It is to stop, and owns nothing any more. */
  leaving = false
  /** It may own something: who follows is there. */
  private followed = false
  private readonly registry: RegistryApi
  private readonly time: ClusterClock
  private readonly options: MembershipOptions
  private phase: "out" | "joining" | "in" | "ended" = "out"
  private readonly own = new Set<string>()
  private revision = 0
  private leaseUntilMs = Number.NEGATIVE_INFINITY
  private refreshing = false
  /** Why the last refresh failed, if it did: a process that stood still did not try. */
  private unrefreshed: string | undefined
  private cancelNext: (() => void) | undefined = undefined
  private cancelEnd: (() => void) | undefined = undefined

  constructor(registry: RegistryApi, time: ClusterClock, options: MembershipOptions) {
    this.registry = registry
    this.time = time
    this.options = options
    this.incarnation = this.reborn()
  }

  /** Whether nobody can have taken this node's claims over. */
  isLeaseValid(): boolean {
    return this.time.nowMs() < this.leaseUntilMs
  }

  /** The key was told to have changed: one that is newer than its own word settles it. */
  observe(entry: RegistryEntry): void {
    if (this.phase !== "in" || entry.revision <= this.revision) return
    if (entry.value === undefined || !this.isOwn(entry)) this.found(entry)
  }

  /** The key is this node's since the revision; it is kept so, and owns nothing yet. */
  entered(revision: number): void {
    if (this.phase !== "out") return
    this.revision = revision
    this.phase = "joining"
    this.refresh()
  }

  /** From now on it may own shards. */
  join(): void {
    this.followed = true
    if (this.phase === "out") this.phase = "joining"
    this.refresh()
  }

  /** Tells the others that this node owns nothing any more. */
  leave(): void {
    if (this.leaving) return
    this.leaving = true
    this.refresh()
  }

  /** Leaves at once: the claims that are left are anybody's. Calls back when it is done. */
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

  private reborn(): string {
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
    const { incarnation, options: { limits, node, process }, stays } = this
    const value = memberText({ incarnation, leaving: !stays, process })
    const sentMs = this.time.nowMs()
    const put = () => this.registry.put(memberKey(node), value, this.revision, limits.ttlMs)
    runWithin(this.time, put, limits.refreshDeadlineMs, (exit) => {
      this.refreshing = false
      if (this.phase === "ended") return
      if (Exit.isFailure(exit)) return this.refused(failureOf(exit.cause))
      this.revision = exit.value
      this.unrefreshed = undefined
      this.phase = "in"
      this.leaseUntilMs = Math.max(this.leaseUntilMs, sentMs + limits.ttlMs - limits.marginMs)
      this.watchLeaseEnd()
      // What was changed while it was under way is told at once.
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

  /** Tells of the end of its time when it comes; `inTime` knows it without. */
  private watchLeaseEnd(): void {
    this.cancelEnd?.()
    const leftMs = Math.max(1, this.leaseUntilMs - this.time.nowMs())
    this.cancelEnd = this.time.later(leftMs, () => {
      if (this.phase === "ended") return
      if (this.isLeaseValid()) return this.watchLeaseEnd()
      const why = this.unrefreshed === undefined ? "" : `: ${this.unrefreshed}`
      this.options.onFault(`this node could not refresh its membership in time${why}`)
      this.options.onChange()
    })
  }

  private refused(failure: unknown): void {
    const { limits, node } = this.options
    if (!(failure instanceof RegistryMoved)) {
      const named = failure instanceof StorageUnavailable
      this.unrefreshed = named ? failure.detail : "the registry does not answer"
      return this.next(limits.retryMs)
    }
    this.refreshing = true
    const look = () => this.registry.get(memberKey(node))
    runWithin(this.time, look, limits.refreshDeadlineMs, (exit) => {
      this.refreshing = false
      if (this.phase === "ended") return
      if (Exit.isFailure(exit)) return this.next(limits.retryMs)
      this.found(exit.value)
    })
  }

  /** The key is not as it was left. */
  private found(entry: RegistryEntry): void {
    const { node, onChange, onFault } = this.options
    if (entry.value === undefined) {
      // It has ended: claims of this incarnation may have been taken over, so they count no more.
      this.leaseUntilMs = Number.NEGATIVE_INFINITY
      this.incarnation = this.reborn()
      this.revision = 0
      onChange()
      return this.refresh()
    }
    // Written by itself, by a call that was given up.
    if (this.isOwn(entry)) {
      this.revision = entry.revision
      return this.refresh()
    }
    this.stop()
    onFault(`another process goes by the name ${node}: this one serves no more`)
    onChange()
  }
}

/* Which process a node is, so that one started after it on the same machine can tell its end. */

/** Another process is the node of this name, and lives. */
export class NodeNameTaken extends Schema.TaggedError<NodeNameTaken>()("NodeNameTaken", {
  node: Schema.String
}) {}

export interface JoinOptions {
  readonly node: string
  readonly incarnation: string
  readonly process: ProcessName | undefined
  /** Whether a process is known to have ended. */
  readonly isGone: (other: ProcessName) => boolean
  readonly limits: PlacementLimits
  /** It has to wait for the end of another's membership; called once. */
  readonly onWait: () => void
  /** Whether nobody waits for it any more. */
  readonly stopped: () => boolean
}

/** The key as it was found the last time. */
interface Found {
  readonly incarnation: string
  readonly revision: number
}

/** The revision of the key, which is this node's now; or why it is not. */
export const joinCluster = async (
  registry: RegistryApi,
  time: ClusterClock,
  { incarnation, isGone, limits, node, onWait, process, stopped }: JoinOptions
): Promise<number | NodeNameTaken | StorageUnavailable> => {
  const key = memberKey(node)
  const { callDeadlineMs, joinFailuresMax, retryMs, ttlMs } = limits
  const call = <A, E>(make: Parameters<typeof runWithin<A, E>>[1]): Promise<Exit.Exit<A, E>> =>
    new Promise((resolve) => runWithin(time, make, callDeadlineMs, resolve))
  // Until it is followed it takes no shards, as one that leaves.
  const value = memberText({ incarnation, leaving: true, process })
  let last: Found | undefined
  for (let failures = 0; failures < joinFailuresMax && !stopped();) {
    const looked = await call(() => registry.get(key))
    if (Exit.isFailure(looked)) failures++
    else {
      const { revision } = looked.value
      const member = readMember(node, looked.value)
      // Written by a call that seemed to have failed.
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
