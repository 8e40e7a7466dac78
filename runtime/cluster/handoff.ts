/**
 * Which shards this node takes and gives up. What it should own follows from the living members
 * by rendezvous hashing; what it may take, from the claims. A shard that it should own no more is
 * drained first, then its claim is released.
 */
import { SHARDS } from "../actor/index.ts"
import type { PlacementLimits } from "../limits.ts"
import type { ShardTenure } from "../ports/index.ts"
import type { Claims, Holder } from "./claims.ts"
import type { Members } from "./members.ts"
import type { Membership } from "./membership.ts"
import { ownersAmong } from "./rendezvous.ts"

/**
 * `writing`: the claim is being taken or released; `draining`: no message is taken any more, and
 * what is under way ends.
 */
type Phase = "away" | "writing" | "held" | "draining"

export interface HandoffOptions {
  readonly node: string
  readonly limits: PlacementLimits
  readonly claims: Claims
  readonly members: Members
  readonly membership: Membership
}

export interface Followers {
  readonly taken: (shard: number, held: ShardTenure) => void
  readonly lost: (shard: number) => Promise<void>
}

export class Handoff {
  private readonly phases = Array.from({ length: SHARDS }, (): Phase => "away")
  private readonly options: HandoffOptions
  private followers: Followers | undefined = undefined
  private writing = 0
  private draining = 0
  private scheduled = false
  /** The members that {@link wanted} is of. */
  private among = ""
  private wanted: ReadonlyArray<string | undefined> = []

  constructor(options: HandoffOptions) {
    this.options = options
  }

  holds(shard: number): boolean {
    return this.phases[shard] === "held"
  }

  /** Whether its claim is this node's in its present time, and was not released. */
  claims(shard: number): boolean {
    return this.isMine(this.options.claims.at(shard).holder)
  }

  /** Whether nothing is held or under way. */
  get empty(): boolean {
    return this.phases.every((phase) => phase === "away")
  }

  /** Whether another node has taken each shard, or there is none to take them. */
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

  /** Takes nothing more and tells nobody. */
  stop(): void {
    this.followers = undefined
    this.phases.fill("away")
  }

  /** Something has changed: looks at every shard, once for all that this turn brings. */
  readonly schedule = (): void => {
    if (this.scheduled) return
    this.scheduled = true
    queueMicrotask(() => {
      this.scheduled = false
      if (this.followers === undefined) return
      const wanted = this.ownersWanted()
      for (let shard = 0; shard < SHARDS; shard++) {
        this.look(shard, wanted[shard] === this.options.node, this.followers)
      }
    })
  }

  private ownersWanted(): ReadonlyArray<string | undefined> {
    const { members, membership, node } = this.options
    const nodes = new Set<string>()
    for (const member of members.living()) if (!member.leaving) nodes.add(member.node)
    if (membership.leaving || !membership.isLeaseValid()) nodes.delete(node)
    else nodes.add(node)
    const among = [...nodes].sort().join(" ")
    if (among !== this.among) {
      this.among = among
      this.wanted = ownersAmong(nodes)
    }
    return this.wanted
  }

  private look(shard: number, wanted: boolean, followers: Followers): void {
    const { claims, membership } = this.options
    const phase = this.phases[shard]
    const mine = this.isMine(claims.at(shard).holder)
    if (phase === "held") {
      if (!mine || !membership.isLeaseValid()) this.drain(shard, followers)
      else if (!wanted && this.draining < this.options.limits.drainsMax) {
        this.drain(shard, followers)
      }
    } else if (phase === "away" && membership.isLeaseValid()) {
      // What is in doubt may be released yet by a call that was given up: it is claimed again.
      if (wanted && mine && !claims.inDoubt(shard)) {
        this.phases[shard] = "held"
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

  /** Whether the claim may be taken: released, its holder gone, or this node before its start. */
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
      this.phases[shard] = "away"
      this.schedule()
    })
  }

  private drain(shard: number, { lost }: Followers): void {
    this.draining++
    this.phases[shard] = "draining"
    // The claim is released, or the shard taken again, on the next look.
    void lost(shard).finally(() => {
      this.draining--
      this.phases[shard] = "away"
      this.schedule()
    })
  }
}
