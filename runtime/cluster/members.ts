/** The nodes of the cluster, as the registry tells them: a hint, but for {@link Members.gone}. */
import { Exit } from "effect"
import { runWithin } from "../clock.ts"
import type { PlacementLimits } from "../limits.ts"
import type { RegistryApi, RegistryEntry } from "../ports/index.ts"
import type { Claim } from "./claims.ts"
import { type ClusterClock, memberKey, memberOf, readMember } from "./membership.ts"
import type { NodeView } from "./placement.ts"

/** Incarnations known to be gone, at most; they are asked about again beyond it. */
const GONE_MAX = 1_000

interface Seen {
  readonly member: NodeView
  readonly atMs: number
}

export class Members {
  private readonly members = new Map<string, Seen>()
  private readonly goneForEver = new Set<string>()
  private readonly asking = new Set<string>()
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
    if (member === undefined) this.members.delete(node)
    else this.members.set(node, { member, atMs: this.time.nowMs() })
  }

  /** Those that were seen to refresh recently. */
  living(): ReadonlyArray<NodeView> {
    const sinceMs = this.time.nowMs() - this.limits.memberSilentMs
    const living: Array<NodeView> = []
    for (const { atMs, member } of this.members.values()) if (atMs > sinceMs) living.push(member)
    return living
  }

  /**
   * Whether the holder of a claim is gone for ever, so that the claim may be taken over. What was
   * watched may be old; so when it speaks for it the registry itself is asked, and `onAnswer`
   * called when it has answered.
   */
  gone({ holder, revision }: Claim, onAnswer: () => void): boolean {
    if (holder === undefined) return true
    const { incarnation, node } = holder
    if (this.goneForEver.has(incarnation)) return true
    const seen = this.members.get(node)
    const alive = seen?.member.incarnation === incarnation &&
      seen.atMs > this.time.nowMs() - this.limits.memberSilentMs
    if (alive || this.asking.has(incarnation)) return false
    this.asking.add(incarnation)
    const look = () => this.registry.get(memberKey(node))
    runWithin(this.time, look, this.limits.callDeadlineMs, (exit) => {
      this.asking.delete(incarnation)
      if (Exit.isFailure(exit)) return
      const { value } = exit.value
      // A holder joined before it claimed. So an answer from after the claim that does not name
      // it tells that it has ended, and no incarnation comes twice; an older one tells nothing.
      const newer = value === undefined || exit.value.revision > revision
      const there = readMember(node, exit.value)?.incarnation === incarnation
      if (there || !newer) return
      if (this.goneForEver.size >= GONE_MAX) this.goneForEver.clear()
      this.goneForEver.add(incarnation)
      onAnswer()
    })
    return false
  }
}
