/** The commits of one actor: at most one in flight, and the one that is decided meanwhile. */
import type { CommitSource, Committer } from "./committer.ts"
import { PendingCommit } from "./pending.ts"

export class Pipeline {
  private pending: PendingCommit | undefined = undefined
  private inFlight: PendingCommit | undefined = undefined
  /** The pending commit waits in the committer. */
  private joined = false
  private readonly actor: CommitSource
  private readonly committer: Committer

  constructor(actor: CommitSource, committer: Committer) {
    this.actor = actor
    this.committer = committer
  }

  get empty(): boolean {
    return this.pending === undefined && this.inFlight === undefined
  }

  /** The commit that a decision made now has seen; undefined when all is durable. */
  get latest(): PendingCommit | undefined {
    return this.pending ?? this.inFlight
  }

  /** Whether no decision can be added: the actor vanishes, or the pending commit is full. */
  blocked(itemsMax: number): boolean {
    const { inFlight, pending } = this
    return inFlight?.vanishes === true ||
      (pending !== undefined && (pending.vanishes || pending.items.length >= itemsMax))
  }

  /** The pending commit; a new one begins at this head of the log. */
  open(head: number): PendingCommit {
    return this.pending ??= new PendingCommit(head)
  }

  /** The pending commit, if any, goes to the committer as soon as none is in flight. */
  join(): void {
    if (this.joined || this.pending === undefined || this.inFlight !== undefined) return
    this.joined = true
    this.committer.join(this.actor)
  }

  /** The pending commit is in flight from now on. */
  take(): PendingCommit {
    const commit = this.pending
    if (commit === undefined || this.inFlight !== undefined) {
      throw new Error("a commit was asked for out of turn")
    }
    this.joined = false
    this.pending = undefined
    this.inFlight = commit
    return commit
  }

  /** The commit in flight is over. */
  landed(): PendingCommit {
    const commit = this.inFlight
    if (commit === undefined) throw new Error("a commit is over that was never in flight")
    this.inFlight = undefined
    return commit
  }

  /** Takes back the pending commit after the one in flight was lost. */
  drop(): PendingCommit | undefined {
    const commit = this.pending
    this.pending = undefined
    return commit
  }
}
