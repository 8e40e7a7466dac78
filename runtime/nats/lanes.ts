/** The actors written or loaded lately: what is known of each, and its commits in turn. */
import { type Address, keyOf } from "../address.ts"
import type { StorageFailure } from "../errors.ts"
import type { Commit, Outcome } from "../ports/storage.ts"
import { lanesMax } from "./limits.ts"
import type { Pack } from "./packs.ts"
import type { ActorEntry } from "./record.ts"

/** One commit on its way. */
export interface CommitJob {
  readonly commit: Commit
  readonly id: string
  readonly sinceMs: number
  readonly bytes: number
  /** The items that it appends. */
  readonly packs: ReadonlyArray<Pack>
  readonly done: (outcome: Outcome) => void
  /** It is certain that nothing was kept. */
  readonly failed: (failure: StorageFailure) => void
  readonly broken: (defect: unknown) => void
  /** Whether the entry was read for this very commit. */
  fresh: boolean
  /** Whether a write of it may have been kept, or may still be. */
  doubtful: boolean
  /** Writes that failed without this commit being at fault. */
  tries: number
  /** Nobody waits any more: it is not sent again. */
  abandoned: boolean
}

export interface Lane {
  readonly address: Address
  entry: ActorEntry | undefined
  readonly waiting: Array<CommitJob>
  busy: boolean
  /** Called when the lane is not busy any more. */
  readonly idle: Array<() => void>
}

export class ActorLanes {
  private readonly lanes = new Map<string, Lane>()

  /** The lane of an actor, now the one used last. */
  of(address: Address): Lane {
    const key = keyOf(address)
    const known = this.lanes.get(key)
    const lane = known ?? { address, entry: undefined, waiting: [], busy: false, idle: [] }
    if (known !== undefined) this.lanes.delete(key)
    this.lanes.set(key, lane)
    if (known === undefined && this.lanes.size > lanesMax) this.evict(lane)
    return lane
  }

  /** The lane of an actor, if there is one; it counts as no use of it. */
  peek(address: Address): Lane | undefined {
    return this.lanes.get(keyOf(address))
  }

  private evict(kept: Lane): void {
    for (const [key, lane] of this.lanes) {
      if (lane.busy || lane === kept) continue
      this.lanes.delete(key)
      if (this.lanes.size <= lanesMax) return
    }
  }
}
