/**
 * Small records of clients without an account, such as those of idempotency keys, count for the day
 * of their network in blocks: a node counts a block with one write, and the records after it use
 * the rest of the block. What is left when the node ends stays counted.
 */
import { Effect } from "effect"
import type { StorageFailure } from "../../runtime/index.ts"
import { prepaidBlockBytes, prepaidNetworksMax } from "../limits.ts"
import type { UsageChange, UsageReply } from "./usage.ts"

type Submit = (change: UsageChange) => Effect.Effect<UsageReply, StorageFailure>

export class PrepaidBlocks {
  private readonly submit: Submit
  /** What this node has counted and not used, in bytes, by `networkKey`. */
  private readonly unused = new Map<string, number>()

  constructor(submit: Submit) {
    this.submit = submit
  }

  /** Counts bytes for a `networkKey`. Near the quota it counts no more than these. */
  readonly take = Effect.fnUntraced({ self: this }, function*(
    network: string,
    bytes: number
  ): Effect.fn.Return<UsageReply, StorageFailure> {
    const unused = this.unused.get(network) ?? 0
    if (unused >= bytes) {
      this.unused.set(network, unused - bytes)
      return { _tag: "Counted" }
    }
    const blockBytes = Math.max(bytes, prepaidBlockBytes)
    const reply = yield* this.submit({ _tag: "Spend", network, bytes: blockBytes })
    if (reply._tag !== "QuotaExceeded" || blockBytes === bytes) {
      if (reply._tag !== "QuotaExceeded") this.giveBack(network, blockBytes - bytes)
      return reply
    }
    return yield* this.submit({ _tag: "Spend", network, bytes })
  })

  /** Keeps bytes for the next records: those that were counted were certainly not stored. */
  giveBack(network: string, bytes: number): void {
    const unused = (this.unused.get(network) ?? 0) + bytes
    // The last one to change is the last one to be forgotten.
    this.unused.delete(network)
    this.unused.set(network, unused)
    const [first] = this.unused.keys()
    if (this.unused.size > prepaidNetworksMax && first !== undefined) this.unused.delete(first)
  }
}
