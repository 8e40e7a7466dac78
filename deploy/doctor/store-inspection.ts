/** Looks over all of a store, with nodes running, for what contradicts itself. */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { type ActorPart, type AnyBehavior, keyOf } from "../../runtime/index.ts"
import { type ArchiveSource, blobOf, type BlobPart, Counter, type Counts,
  partsOf } from "../archive/index.ts"

/** What was found: counts, and a sentence for each fault. */
export interface StoreInspection {
  readonly counts: Counts
  readonly faults: ReadonlyArray<string>
}

class Inspector {
  readonly counter = new Counter()
  readonly faults: Array<string> = []
  private readonly source: ArchiveSource
  private readonly behaviors: ReadonlyMap<string, AnyBehavior>
  private last = { key: "", n: 0 }

  constructor(source: ArchiveSource, behaviors: ReadonlyArray<AnyBehavior>) {
    this.source = source
    this.behaviors = new Map(behaviors.map((one) => [one.kind, one]))
  }

  async run(): Promise<void> {
    for await (const part of partsOf(this.source)) {
      if (part._tag === "Blob") await this.blob(part)
      if (part._tag === "Items" || part._tag === "Actor") this.log(keyOf(part.address), part.items)
      if (part._tag === "Actor") await this.actor(part)
      this.counter.take(part)
    }
  }

  private log(key: string, items: ActorPart["items"]): void {
    if (this.last.key !== key) this.last = { key, n: 0 }
    for (const { n } of items) {
      if (n <= this.last.n) this.faults.push(`actor ${key}: item ${n} follows upon ${this.last.n}`)
      this.last.n = n
    }
  }

  private async actor(part: ActorPart): Promise<void> {
    const { address, head, state } = part
    const key = keyOf(address)
    if (this.last.key === key && this.last.n > head) {
      this.faults.push(`actor ${key}: item ${this.last.n} is beyond its head, ${head}`)
    }
    const behavior = this.behaviors.get(address.kind)
    // A timer may begin an actor, but not one of a kind that there is not.
    if (behavior === undefined) this.faults.push(`actor ${key}: there is no such kind`)
    else if (state !== undefined) {
      try {
        behavior.decode(state)
      } catch (error) {
        this.faults.push(`actor ${key}: unreadable state: ${String(error).split("\n")[0] ?? ""}`)
      }
    }
    const blob = blobOf(part)
    if (blob !== undefined && !await this.isThere(part, blob)) {
      this.faults.push(`actor ${key}: its blob ${blob} is missing`)
    }
  }

  /** Whoever replaces a blob meanwhile writes the content before he removes the old one. */
  private async isThere({ address }: ActorPart, blob: string): Promise<boolean> {
    if (await Effect.runPromise(this.source.blobs.info(blob)) !== undefined) return true
    for await (const part of this.source.contents.actor(address)) {
      if (part._tag === "Actor" && blobOf(part) === blob) return false
    }
    return true
  }

  private async blob({ bytes, digest, id, lengthBytes }: BlobPart): Promise<void> {
    const hash = createHash("sha256")
    let found = 0
    try {
      for await (const piece of bytes) {
        found += piece.length
        hash.update(piece)
      }
    } catch (error) {
      if (await Effect.runPromise(this.source.blobs.info(id)) !== undefined) {
        this.faults.push(`blob ${id}: ${error instanceof Error ? error.message : String(error)}`)
      }
      return
    }
    if (found !== lengthBytes) {
      this.faults.push(`blob ${id}: ${found} bytes instead of ${lengthBytes}`)
    } else if (hash.digest("base64url") !== digest) {
      this.faults.push(`blob ${id}: its SHA-256 differs`)
    }
  }
}

/** Reads everything in the store. Throws StorageFailure. */
export const inspect = async (
  source: ArchiveSource,
  behaviors: ReadonlyArray<AnyBehavior>
): Promise<StoreInspection> => {
  const inspector = new Inspector(source, behaviors)
  await inspector.run()
  return { counts: inspector.counter.counts, faults: inspector.faults }
}
