/**
 * The blocks of the service (protocol §7), in memory: a deposit asks no store. They are few, and
 * each node reads them again as soon as one has changed, within a second in a cluster.
 */
import { Effect } from "effect"
import { type Block, type BlockedBy, decodeBlock, findBlock } from "../../actors/index.ts"
import type { RecordsApi } from "../../runtime/index.ts"
import { blockRetryMs, serviceBlocksMax } from "../limits.ts"

/** The key is the block's id; the value is the block as JSON. */
export const blocksTable = "blocks"

type BlockRecords = Pick<RecordsApi, "range" | "watch">

export class BlockList {
  private blocks: ReadonlyArray<Block> = []
  private readonly records: BlockRecords
  private isReading = false
  private isOutdated = false

  constructor(records: BlockRecords) {
    this.records = records
    records.watch(blocksTable, { changing: () => {}, changed: () => this.refresh() })
    this.refresh()
  }

  get isEmpty(): boolean {
    return this.blocks.length === 0
  }

  /** The block that a deposit meets; undefined if it meets none. */
  find(deposit: BlockedBy, nowMs: number): Block | undefined {
    return findBlock(this.blocks, deposit, nowMs)
  }

  /** Reads the blocks again; one read at a time, and another after it if something changed. */
  private refresh(): void {
    this.isOutdated = true
    if (this.isReading) return
    this.isReading = true
    Effect.runFork(this.read())
  }

  private read(): Effect.Effect<void> {
    const reading = Effect.gen({ self: this }, function*() {
      while (this.isOutdated) {
        this.isOutdated = false
        const rows = yield* this.records.range(blocksTable, { limit: serviceBlocksMax })
        this.blocks = rows.flatMap(({ value }) => decodeBlock(value) ?? [])
      }
    })
    return reading.pipe(
      Effect.tapError(() => Effect.sync(() => (this.isOutdated = true))),
      Effect.tapError(() => Effect.sleep(blockRetryMs)),
      Effect.eventually,
      Effect.ensuring(Effect.sync(() => (this.isReading = false)))
    )
  }
}
