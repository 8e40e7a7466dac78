/** The blobs of all nodes, by the contract of the blob port, with the fates of shared calls. */
import { Effect } from "effect"
import { makeMemoryBlobs } from "../../memory/index.ts"
import type { BlobsApi } from "../../ports/index.ts"
import type { Computer, VirtualTime } from "../time/index.ts"
import type { SharedCalls } from "./shared-calls.ts"

/** A blob is settled this long after its upload began: later than any commit is stored. */
export const blobSettledMs = 60_000

export class SharedBlobs {
  readonly inner: BlobsApi = makeMemoryBlobs()
  readonly calls: SharedCalls
  /** When the upload of each blob began, true time. */
  private readonly begun = new Map<string, number>()
  private readonly time: VirtualTime

  constructor(calls: SharedCalls) {
    this.calls = calls
    this.time = calls.time
  }

  /** When all blobs are settled, true time. */
  get settledMs(): number {
    return Math.max(0, ...this.begun.values()) + blobSettledMs
  }

  /** A node's connection; calls before `cutUntilMs` arrive at that time. */
  connect(computer: Computer, cutUntilMs: () => number): BlobsApi {
    const { begun, inner, time } = this
    const { read, write } = this.calls.connect(computer, cutUntilMs)
    return {
      put: (id, source, bytesMax) =>
        Effect.suspend(() => {
          begun.set(id, time.nowMs)
          return write(`put ${id}`, () => inner.put(id, source, bytesMax))
        }),
      open: (id, range) => Effect.suspend(() => read(`open ${id}`, () => inner.open(id, range))),
      info: (id) => Effect.suspend(() => read(`info ${id}`, () => inner.info(id))),
      remove: (id) => Effect.suspend(() => write(`remove ${id}`, () => inner.remove(id))),
      scan: (after, limit) => Effect.suspend(() => read("scan", () => inner.scan(after, limit))),
      scanSettled: (after, limit) =>
        Effect.suspend(() => read("scan", () => this.settled(after, limit))),
      confirm: inner.confirm
    }
  }

  /** As the port's `scanSettled`. */
  private settled(after: string | undefined, limit: number) {
    const isSettled = (id: string): boolean =>
      (this.begun.get(id) ?? 0) + blobSettledMs <= this.time.nowMs
    return Effect.map(
      this.inner.scan(after, Number.MAX_SAFE_INTEGER),
      (ids) => ids.filter(isSettled).slice(0, limit)
    )
  }
}
