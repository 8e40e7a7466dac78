/**
 * The memory of eager fetches. Bytes count once they have arrived: a server that sends nothing
 * holds nothing. A mailbox or sender whose content is slow leaves room for those of others.
 */
import { fetchBytesInFlightMax, fetchBytesPerHolderMax } from "../limits.ts"
import type { BodyMemory } from "../outbound/index.ts"

/** The bytes that the fetches of a node hold, by holder: a mailbox, or a sender. */
export class FetchBudget {
  private used = 0
  private readonly usedBy = new Map<string, number>()

  hasRoom(holders: ReadonlyArray<string>, bytes: number): boolean {
    return this.used + bytes <= fetchBytesInFlightMax &&
      holders.every((one) => (this.usedBy.get(one) ?? 0) + bytes <= fetchBytesPerHolderMax)
  }

  /** Counts bytes for all their holders; fewer if `bytes` is negative. */
  count(holders: ReadonlyArray<string>, bytes: number): void {
    this.used += bytes
    for (const one of holders) {
      const used = (this.usedBy.get(one) ?? 0) + bytes
      if (used === 0) this.usedBy.delete(one)
      else this.usedBy.set(one, used)
    }
  }
}

/** The memory of one fetch, until `end`. */
export class FetchReservation implements BodyMemory {
  private readonly budget: FetchBudget
  private readonly holders: ReadonlyArray<string>
  private bytes = 0

  constructor(budget: FetchBudget, holders: ReadonlyArray<string>) {
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
