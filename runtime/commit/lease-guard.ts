/**
 * Guards the store of a node that may have lost its shards without noticing. The store may keep a
 * commit of this node after a later owner has loaded the actor, and the later owner finds out only
 * at its next commit. So a commit is indeterminate when the store acknowledges it after the node
 * has lost the shard. The other commits of the group keep their outcomes. A node that serves again
 * does not write what it decided before it lost the shard.
 *
 * A process that stood still has no valid lease for a moment. The outcomes that it receives then
 * wait until other nodes have answered that they did not remove it (`awaitLeaseDecision`): if it
 * still has the same claim, nobody else can have decided meanwhile.
 */
import { Effect } from "effect"
import { keyOf, RevisionConflict, shardOf, StorageUnavailable } from "../actor/index.ts"
import { ownsAll, type PlacementApi } from "../cluster/index.ts"
import type { Commit, CommitOutcome, ReportOutcome, StorageApi } from "../ports/index.ts"

/** The conflict of a commit that this node decided before it lost the shard. */
const moved = ({ address, expected }: Commit): CommitOutcome => ({
  _tag: "Conflict",
  conflict: new RevisionConflict({ key: keyOf(address), expected, actual: Number.NaN })
})

const indeterminate: CommitOutcome = { _tag: "Indeterminate" }

/** One group on its way: the commits that may be written, and the claims of their shards. */
class GuardedGroup {
  readonly outcomes: Array<CommitOutcome>
  private readonly members: Array<number> = []
  private readonly claims: ReadonlyArray<number | undefined>
  private readonly storage: StorageApi
  private readonly placement: PlacementApi
  private readonly group: ReadonlyArray<Commit>

  constructor(storage: StorageApi, placement: PlacementApi, group: ReadonlyArray<Commit>) {
    this.storage = storage
    this.placement = placement
    this.group = group
    this.claims = group.map((commit) => this.claimOf(commit))
    this.claims.forEach((claim, at) => claim !== undefined && this.members.push(at))
    this.outcomes = group.map((commit, at) =>
      this.claims[at] === undefined ? moved(commit) : indeterminate
    )
  }

  write(report: ReportOutcome | undefined): ReturnType<StorageApi["commit"]> {
    const { group, members, outcomes } = this
    if (members.length === 0) return Effect.succeed(outcomes)
    const written = members.length === group.length
      ? group
      : members.flatMap((at) => group[at] ?? [])
    const received = new Set<number>()
    const deferred: Array<Promise<void>> = []
    const settle = (member: number, outcome: CommitOutcome): void => {
      const at = members[member] ?? Number.NaN
      outcomes[at] = this.checked(at, outcome)
      report?.(at, outcomes[at])
    }
    const receive = (member: number, outcome: CommitOutcome): void => {
      if (received.has(member)) return
      received.add(member)
      if (this.isCertain(outcome)) return settle(member, outcome)
      deferred.push(this.placement.awaitLeaseDecision().then(() => settle(member, outcome)))
    }
    const isHeld = (member: number) => this.isHeld(members[member] ?? Number.NaN)
    const whenDecided = Effect.suspend(() =>
      deferred.length === 0 ? Effect.void : Effect.promise(() => Promise.all(deferred))
    )
    return this.storage.commit(written, receive, isHeld).pipe(
      Effect.tap((found) => Effect.sync(() => found.forEach((one, at) => receive(at, one)))),
      // Before the failure too: it refuses the members that were not reported.
      Effect.onExit(() => whenDecided),
      Effect.as(outcomes)
    )
  }

  private claimOf({ address }: Commit): number | undefined {
    return this.placement.heldClaim(shardOf(address))
  }

  /** Whether the node had the shard by the same claim all the time. */
  private isHeld(at: number): boolean {
    const commit = this.group[at]
    const claim = this.claims[at]
    return commit !== undefined && claim !== undefined && this.claimOf(commit) === claim
  }

  /** Whether it is known if the node still has the shard, or does not matter. */
  private isCertain(outcome: CommitOutcome): boolean {
    return outcome._tag !== "Committed" || this.placement.isLeaseValid()
  }

  private checked(at: number, outcome: CommitOutcome): CommitOutcome {
    return outcome._tag !== "Committed" || this.isHeld(at) ? outcome : indeterminate
  }
}

const leaseEnded = Effect.fail(
  new StorageUnavailable({
    detail: "this node's lease has ended: it could not refresh its membership, or the other " +
      "nodes do not answer it"
  })
)

export const withLeaseGuard = (storage: StorageApi, placement: PlacementApi): StorageApi => {
  if (placement === ownsAll) return storage
  const write = (...[group, report]: Parameters<StorageApi["commit"]>) =>
    placement.isLeaseValid()
      ? new GuardedGroup(storage, placement, group).write(report)
      : leaseEnded
  return {
    ...storage,
    commit: (...commit) =>
      Effect.suspend(() =>
        placement.isLeaseValid()
          ? write(...commit)
          : Effect.flatMap(Effect.promise(() => placement.awaitLeaseDecision()), () =>
            write(...commit))
      )
  }
}
