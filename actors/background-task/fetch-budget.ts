/**
 * The memory of eager fetches. Bytes count once they have arrived: a server that sends nothing
 * holds nothing. A mailbox whose content is slow leaves room for other mailboxes, and a sender for
 * other senders, also to the same mailbox.
 */
import { fetchBytesInFlightMax } from "../limits.ts"
import type { BodyMemory } from "../outbound/index.ts"

/** A mailbox or a sender, and the bytes that its fetches may hold. */
export interface FetchHolder {
  readonly name: string
  readonly bytesMax: number
}

/** The bytes that the fetches of a node hold, by holder. */
export class FetchBudget {
  private used = 0
  private readonly usedBy = new Map<string, number>()

  hasRoom(holders: ReadonlyArray<FetchHolder>, bytes: number): boolean {
    return this.used + bytes <= fetchBytesInFlightMax &&
      holders.every(({ bytesMax, name }) => (this.usedBy.get(name) ?? 0) + bytes <= bytesMax)
  }

  /** Counts bytes for all their holders; fewer if `bytes` is negative. */
  count(holders: ReadonlyArray<FetchHolder>, bytes: number): void {
    this.used += bytes
    for (const { name } of holders) {
      const used = (this.usedBy.get(name) ?? 0) + bytes
      if (used === 0) this.usedBy.delete(name)
      else this.usedBy.set(name, used)
    }
  }
}

/** The memory of one fetch, until `end`. */
export class FetchReservation implements BodyMemory {
  private readonly budget: FetchBudget
  private readonly holders: ReadonlyArray<FetchHolder>
  private bytes = 0

  constructor(budget: FetchBudget, holders: ReadonlyArray<FetchHolder>) {
    this.budget = budget
    this.holders = holders
  }

  /** Whether a body could begin to arrive. */
  get hasRoom(): boolean {
    return this.budget.hasRoom(this.holders, 1)
  }

  reserve(bytes: number): boolean {
    if (!this.budget.hasRoom(this.holders, bytes)) return false
    this.count(bytes)
    return true
  }

  release(bytes: number): void {
    this.count(-bytes)
  }

  end(): void {
    this.count(-this.bytes)
  }

  private count(bytes: number): void {
    this.bytes += bytes
    this.budget.count(this.holders, bytes)
  }
}
