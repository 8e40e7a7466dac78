/** The nodes of the cluster, as last observed: a hint, except for {@link Members.gone}. */
import { Exit } from "effect"
import { runWithin } from "../clock.ts"
import type { PlacementLimits } from "../limits.ts"
import type { RegistryApi, RegistryEntry } from "../ports/index.ts"
import type { Claim } from "./claims.ts"
import { type ClusterClock, type ClusterMember, memberKey, memberOf,
  readMember } from "./member-entry.ts"
import type { NodeView } from "./placement.ts"

/** Incarnations that are remembered as gone; beyond this the registry is read again. */
const goneIncarnationsMax = 1_000

/** A member, and the revision of its membership. */
export interface ObservedMember extends ClusterMember {
  readonly revision: number
}

interface Seen {
  readonly member: ObservedMember
  readonly atMs: number
}

export class Members {
  private readonly members = new Map<string, Seen>()
  private readonly lostAtMs = new Map<string, number>()
  private readonly goneIncarnations = new Set<string>()
  private readonly pendingReads = new Set<string>()
  private readonly registry: RegistryApi
  private readonly time: ClusterClock
  private readonly limits: PlacementLimits

  constructor(registry: RegistryApi, time: ClusterClock, limits: PlacementLimits) {
    this.registry = registry
    this.time = time
    this.limits = limits
  }

  observe(entry: RegistryEntry): void {
    const node = memberOf(entry.key)
    if (node === undefined) return
    const member = readMember(node, entry)
    const atMs = this.time.nowMs()
    const before = this.members.get(node)?.member
    if (member === undefined) {
      this.members.delete(node)
      if (before?.leaving === false) this.lostAtMs.set(node, atMs)
      this.forgetLost()
    } else {
      this.members.set(node, { member: { ...member, revision: entry.revision }, atMs })
      this.lostAtMs.delete(node)
    }
  }

  /** Nodes that others removed, or whose membership expired, a short time ago. */
  lost(): ReadonlyArray<string> {
    this.forgetLost()
    return [...this.lostAtMs.keys()]
  }

  private forgetLost(): void {
    const sinceMs = this.time.nowMs() - this.limits.lostShownMs
    for (const [node, atMs] of this.lostAtMs) if (atMs < sinceMs) this.lostAtMs.delete(node)
  }

  /** Members whose last refresh was observed recently. */
  living(): ReadonlyArray<NodeView> {
    const sinceMs = this.time.nowMs() - this.limits.memberSilentMs
    const living: Array<NodeView> = []
    for (const { atMs, member } of this.members.values()) if (atMs > sinceMs) living.push(member)
    return living
  }

  /** All members, also those that are silent for a while. */
  observed(): ReadonlyArray<ObservedMember> {
    return [...this.members.values()].map(({ member }) => member)
  }

  /** The newest format that every member reads, also those that are silent for a while. */
  formatMax(): number {
    let format = Number.POSITIVE_INFINITY
    for (const { member } of this.members.values()) format = Math.min(format, member.format)
    return format
  }

  /**
   * Whether the holder of a claim is gone for ever, so that another node may take the claim. An
   * observation may be outdated. So if the holder seems gone, this function reads the registry,
   * and calls `onAnswer` once the registry confirms it.
   */
  gone({ holder, revision }: Claim, onAnswer: () => void): boolean {
    if (holder === undefined) return true
    const { incarnation, node } = holder
    if (this.goneIncarnations.has(incarnation)) return true
    const seen = this.members.get(node)
    const alive = seen?.member.incarnation === incarnation &&
      seen.atMs > this.time.nowMs() - this.limits.memberSilentMs
    if (alive || this.pendingReads.has(incarnation)) return false
    this.pendingReads.add(incarnation)
    const read = () => this.registry.get(memberKey(node))
    runWithin(this.time, read, this.limits.callDeadlineMs, (exit) => {
      this.pendingReads.delete(incarnation)
      if (Exit.isFailure(exit)) return
      const { value } = exit.value
      // A holder joins before it claims. So an entry from after the claim without this
      // incarnation proves that it has ended, and incarnations never return. An older entry
      // proves nothing.
      const isNewer = value === undefined || exit.value.revision > revision
      const isMember = readMember(node, exit.value)?.incarnation === incarnation
      if (isMember || !isNewer) return
      if (this.goneIncarnations.size >= goneIncarnationsMax) this.goneIncarnations.clear()
      this.goneIncarnations.add(incarnation)
      onAnswer()
    })
    return false
  }
}
