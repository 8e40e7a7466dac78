/** The unfinished document of one request, in blocks of the budget of bodies. */
import { bodyBlockBytes, heldBodyBytes } from "../limits.ts"
import type { BodyBudget, HeldBody } from "./body-budget.ts"
import type { Shortage } from "./request.ts"

/** What arrived of a document so far. Its pieces may be of any size: they are copied together. */
export class PartialDocument {
  private readonly budget: BodyBudget
  private readonly held: HeldBody
  private blocks: Array<Buffer> = []
  private sizeBytes = 0

  constructor(
    budget: BodyBudget,
    network: string,
    giveUp: (afterMs: number) => void,
    keep: () => void
  ) {
    this.budget = budget
    this.held = budget.hold(network, { isSteady: false, giveUp, keep })
  }

  /** Takes room for the connection itself, before anything has arrived. */
  begin(): Shortage | undefined {
    return this.held.resize(heldBodyBytes)
  }

  /** Adds a copy of a piece; returns the limit if there is no room for it. */
  add(piece: Uint8Array): Shortage | undefined {
    const count = Math.ceil((this.sizeBytes + piece.length) / bodyBlockBytes)
    const shortage = this.held.resize(heldBodyBytes + count * bodyBlockBytes)
    if (shortage !== undefined) return shortage
    while (this.blocks.length < count) this.blocks.push(this.budget.blocks.take())
    for (let at = 0; at < piece.length;) {
      const offset = this.sizeBytes % bodyBlockBytes
      const block = this.blocks[(this.sizeBytes - offset) / bodyBlockBytes]
      const end = Math.min(piece.length, at + bodyBlockBytes - offset)
      block?.set(piece.subarray(at, end), offset)
      this.sizeBytes += end - at
      at = end
    }
    return undefined
  }

  /** A copy of all of it, with its last piece. */
  whole(last: Uint8Array): Buffer {
    const all = Buffer.allocUnsafeSlow(this.sizeBytes + last.length)
    this.blocks.forEach((block, n) => {
      const start = n * bodyBlockBytes
      block.copy(all, start, 0, Math.min(bodyBlockBytes, this.sizeBytes - start))
    })
    all.set(last, this.sizeBytes)
    return all
  }

  release(): void {
    this.held.release()
    this.budget.blocks.give(this.blocks)
    this.blocks = []
    this.sizeBytes = 0
  }
}
