/**
 * Takes and releases this node's shards. Rendezvous hashing over the living members determines
 * which shards the node should own; the claims determine which ones it may take. The node drains
 * a shard before it releases the claim.
 */
import { SHARDS } from "../actor/index.ts"
import type { PlacementLimits } from "../limits.ts"
import type { ShardTenure } from "../ports/index.ts"
import type { Claims, Holder } from "./claims.ts"
import type { Members } from "./members.ts"
import type { Membership } from "./membership.ts"
import { ownersAmong } from "./rendezvous.ts"

/**
 * `idle`: this node does not serve the shard; `writing`: it takes or releases the claim; `owned`:
 * it serves the shard; `draining`: it accepts no new message and finishes the accepted ones.
 */
type Phase = "idle" | "writing" | "owned" | "draining"

export interface HandoffOptions {
  readonly node: string
  readonly limits: PlacementLimits
  readonly claims: Claims
  readonly members: Members
  readonly membership: Membership
}

export interface Followers {
  readonly taken: (shard: number, tenure: ShardTenure) => void
  readonly lost: (shard: number) => Promise<void>
}

export class Handoff {
  private readonly phases = Array.from({ length: SHARDS }, (): Phase => "idle")
  private readonly options: HandoffOptions
  private followers: Followers | undefined = undefined
  private writing = 0
  private draining = 0
  private scheduled = false
  /** The nodes from which {@link wanted} was computed. */
  private candidates = ""
  private wanted: ReadonlyArray<string | undefined> = []

  constructor(options: HandoffOptions) {
    this.options = options
  }

  holds(shard: number): boolean {
    return this.phases[shard] === "owned"
  }

  /** The number of the claim that this incarnation has and has not released; else undefined. */
  heldClaim(shard: number): number | undefined {
    const { claim, holder } = this.options.claims.at(shard)
    return this.isMine(holder) ? claim : undefined
  }

  /** Whether the node serves no shard and no change of a claim is under way. */
  get empty(): boolean {
    return this.phases.every((phase) => phase === "idle")
  }

  /** Whether other nodes have taken all shards. */
  get handedOver(): boolean {
    const { claims, node } = this.options
    return this.empty && this.phases.every((_, shard) => {
      const { holder } = claims.at(shard)
      return holder !== undefined && holder.node !== node
    })
  }

  follow(followers: Followers): void {
    this.followers = followers
    this.schedule()
  }

  /** Stops taking shards, without notifying the followers. */
  stop(): void {
    this.followers = undefined
    this.phases.fill("idle")
  }

  /** Checks every shard, once for all changes of this turn of the event loop. */
  readonly schedule = (): void => {
    if (this.scheduled) return
    this.scheduled = true
    queueMicrotask(() => {
      this.scheduled = false
      if (this.followers === undefined) return
      const wanted = this.targets()
      for (let shard = 0; shard < SHARDS; shard++) {
        this.check(shard, wanted[shard] === this.options.node, this.followers)
      }
    })
  }

  /** The node that should own each shard, as this node sees the members. */
  targets(): ReadonlyArray<string | undefined> {
    const { members, membership, node } = this.options
    const nodes = new Set<string>()
    for (const member of members.living()) if (!member.leaving) nodes.add(member.node)
    if (membership.leaving || !membership.mayContinue()) nodes.delete(node)
    else nodes.add(node)
    const candidates = [...nodes].sort().join(" ")
    if (candidates !== this.candidates) {
      this.candidates = candidates
      this.wanted = ownersAmong(nodes)
    }
    return this.wanted
  }

  private check(shard: number, wanted: boolean, followers: Followers): void {
    const { claims, membership } = this.options
    const phase = this.phases[shard]
    const mine = this.isMine(claims.at(shard).holder)
    if (phase === "owned") {
      if (!mine || !membership.mayContinue()) this.drain(shard, followers)
      else if (!wanted && this.draining < this.options.limits.drainsMax) {
        this.drain(shard, followers)
      }
    } else if (phase === "idle" && membership.isLeaseValid()) {
      // A timed-out write may still release the claim, so the node claims the shard again.
      if (wanted && mine && !claims.isIndeterminate(shard)) {
        this.phases[shard] = "owned"
        followers.taken(shard, claims.at(shard))
      } else if (wanted ? mine || this.isFree(shard) : mine) {
        this.write(shard, wanted ? this.self : undefined)
      }
    }
  }

  private get self(): Holder {
    const { membership: { incarnation }, node } = this.options
    return { node, incarnation }
  }

  private isMine(holder: Holder | undefined): boolean {
    const { membership, node } = this.options
    return holder?.node === node && holder.incarnation === membership.incarnation
  }

  /** Whether the claim may be taken: released, of a node that is gone, or of this node's past. */
  private isFree(shard: number): boolean {
    const { claims, members, node } = this.options
    const claim = claims.at(shard)
    return claim.holder?.node === node || members.gone(claim, this.schedule)
  }

  private write(shard: number, holder: Holder | undefined): void {
    const { claims, limits } = this.options
    if (this.writing >= limits.callsMax) return
    this.writing++
    this.phases[shard] = "writing"
    claims.write(shard, holder, () => {
      this.writing--
      this.phases[shard] = "idle"
      this.schedule()
    })
  }

  private drain(shard: number, { lost }: Followers): void {
    this.draining++
    this.phases[shard] = "draining"
    // The next check releases the claim or takes the shard again.
    void lost(shard).finally(() => {
      this.draining--
      this.phases[shard] = "idle"
      this.schedule()
    })
  }
}
