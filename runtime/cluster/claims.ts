/**
 * The claims of shards: one registry key per shard, changed by compare-and-set only. A claim is
 * valid while the membership of its holder's incarnation exists.
 */
import { Exit, Option, Schema } from "effect"
import { SHARDS } from "../actor/index.ts"
import { failureOf, runWithin, type Timekeeping } from "../clock.ts"
import type { PlacementLimits } from "../limits.ts"
import { type RegistryApi, type RegistryEntry, RegistryMoved,
  type ShardTenure } from "../ports/index.ts"

export interface Holder {
  readonly node: string
  readonly incarnation: string
}

export interface Claim extends ShardTenure {
  /** undefined: the claim was released or never taken. */
  readonly holder: Holder | undefined
  /** Revision of the last holder's claim. A release changes `revision`, not this. */
  readonly claim: number
  readonly revision: number
}

const prefix = "claim."

const unclaimed: Claim = {
  holder: undefined,
  revision: 0,
  claim: 0,
  after: undefined,
  orphaned: false
}

/** The key of a shard's claim. */
export const claimKey = (shard: number): string => prefix + shard

/** The shard of a claim's key; undefined for any other key. */
export const shardOfKey = (key: string): number | undefined => {
  if (!key.startsWith(prefix)) return
  const shard = Number(key.slice(prefix.length))
  return Number.isInteger(shard) && shard >= 0 && shard < SHARDS ? shard : undefined
}

/** The stored form of a claim; `node` is null when the claim was released. */
const decodeClaim = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({
  node: Schema.NullOr(Schema.String),
  incarnation: Schema.optionalKey(Schema.String),
  after: Schema.optionalKey(Schema.Number),
  orphaned: Schema.optionalKey(Schema.Boolean)
})))

/** Decodes a claim; a removed or unreadable one has no holder. */
const readClaim = (value: string | undefined, revision: number): Claim => {
  const { after, incarnation, node, orphaned = false } =
    Option.getOrUndefined(decodeClaim(value)) ?? {}
  return typeof node === "string" && incarnation !== undefined
    ? { holder: { node, incarnation }, revision, claim: revision, after, orphaned }
    : { ...unclaimed, revision, claim: after ?? revision }
}

export class Claims {
  /** The last observed claims, by shard. */
  private readonly claims: Array<Claim> = Array.from({ length: SHARDS }, () => unclaimed)
  /** Shards whose last write has an indeterminate outcome: the registry may still apply it. */
  private readonly indeterminate = new Set<number>()
  private readonly registry: RegistryApi
  private readonly time: Timekeeping
  private readonly limits: PlacementLimits

  constructor(registry: RegistryApi, time: Timekeeping, limits: PlacementLimits) {
    this.registry = registry
    this.time = time
    this.limits = limits
  }

  at(shard: number): Claim {
    return this.claims[shard] ?? unclaimed
  }

  /** Whether a timed-out write of this node may still change the claim. */
  isIndeterminate(shard: number): boolean {
    return this.indeterminate.has(shard)
  }

  /** Applies a change, unless a newer one was applied before. */
  observe({ key, revision, value }: RegistryEntry): void {
    const shard = shardOfKey(key)
    if (shard === undefined || revision <= this.at(shard).revision) return
    this.claims[shard] = readClaim(value, revision)
  }

  /** Claims the shard for `holder`; undefined releases it. Calls `done` once, at any outcome. */
  write(shard: number, holder: Holder | undefined, done: () => void): void {
    const { claim, holder: previous, revision } = this.at(shard)
    const orphaned = previous !== undefined && previous.incarnation !== holder?.incarnation
    const after = claim === 0 ? undefined : claim
    const value = JSON.stringify(
      holder === undefined ? { node: null, after } : { ...holder, after, orphaned }
    )
    const { callDeadlineMs } = this.limits
    const put = () => this.registry.put(claimKey(shard), value, revision)
    runWithin(this.time, put, callDeadlineMs, (exit) => {
      if (Exit.isSuccess(exit)) {
        this.indeterminate.delete(shard)
        this.observe({ key: claimKey(shard), value, revision: exit.value })
        return done()
      }
      if (!(failureOf(exit.cause) instanceof RegistryMoved)) this.indeterminate.add(shard)
      this.reload(shard, done)
    })
  }

  /** Reads the claim after a write that failed or is indeterminate. */
  private reload(shard: number, done: () => void): void {
    const { callDeadlineMs, retryMs } = this.limits
    runWithin(this.time, () => this.registry.get(claimKey(shard)), callDeadlineMs, (exit) => {
      if (Exit.isFailure(exit)) return void this.time.later(retryMs, done)
      this.observe(exit.value)
      done()
    })
  }
}
