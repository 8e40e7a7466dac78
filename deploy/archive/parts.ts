/** The parts of an archive, and their counts. */
import { Schema } from "effect"
import { createHash, hash } from "node:crypto"
import { type ActorPart, type ItemsPart, keyOf, type LogItem,
  type RecordPart } from "../../runtime/index.ts"
import { commitItems, itemsBytes } from "../limits.ts"

/** A blob. Its bytes must be read before the next part is requested. */
export interface BlobPart {
  readonly _tag: "Blob"
  readonly id: string
  readonly lengthBytes: number
  /** SHA-256 of the bytes, base64url. */
  readonly digest: string
  /** Throws BlobRemoved when the blob was removed during the read; the part does not count then. */
  readonly bytes: AsyncIterable<Uint8Array>
}

/** Length and digest of the bytes of a blob, to compare with its part. */
export class BlobChecksum {
  lengthBytes = 0
  private readonly hash = createHash("sha256")

  add(bytes: Uint8Array): void {
    this.lengthBytes += bytes.length
    this.hash.update(bytes)
  }

  /** Whether these are all bytes of the blob; called once, at the end. */
  matches({ digest, lengthBytes }: BlobPart): boolean {
    return this.lengthBytes === lengthBytes && this.hash.digest("base64url") === digest
  }
}

export type ArchivePart = ItemsPart | ActorPart | RecordPart | BlobPart

/** A number of things. */
export const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** Counts of everything in a store. */
export const Counts = Schema.Struct({
  /** Actors with a state record, by kind. */
  actors: Schema.Record(Schema.String, Count),
  logItems: Count,
  timers: Count,
  records: Count,
  blobs: Count,
  blobBytes: Count,
  /** Sum of the hashes of everything, in any order: equal for equal contents. */
  contents: Schema.String
})

export type Counts = typeof Counts.Type

const modulus = 2 ** 48

/** 48 bits of SHA-256. Only the last text may contain U+0000. */
const hash48 = (...texts: ReadonlyArray<string | number>): number =>
  Number.parseInt(hash("sha256", texts.join("\0")).slice(0, 12), 16)

/** Counts parts. */
export class Counter {
  readonly actors: Record<string, number> = {}
  logItems = 0
  timers = 0
  records = 0
  blobs = 0
  blobBytes = 0
  /** Actors that changed during every read. */
  changedActors = 0
  /** Blobs that were removed while they were read. */
  removedBlobs = 0
  private sum = 0
  /** Hashes of the items of the current actor; its last part can mark some as removed. */
  private readonly itemHashes = new Map<number, number>()

  private addHash(hash: number): void {
    this.sum = (this.sum + hash) % modulus
  }

  add(part: ArchivePart): void {
    switch (part._tag) {
      case "Items":
        return this.addItems(part, true)
      case "Actor":
        return this.addActor(part)
      case "Record":
        this.records++
        return this.addHash(hash48("record", part.table, part.key, part.value))
      case "Blob":
        this.blobs++
        this.blobBytes += part.lengthBytes
        return this.addHash(hash48("blob", part.id, part.lengthBytes, part.digest))
    }
  }

  private addItems(
    { address, items }: Pick<ItemsPart, "address" | "items">,
    isPartial: boolean
  ): void {
    const key = keyOf(address)
    for (const { n, value } of items) {
      const hash = hash48("item", key, n, value)
      if (isPartial) this.itemHashes.set(n, hash)
      this.addHash(hash)
    }
    this.logItems += items.length
  }

  private addActor(part: ActorPart): void {
    const { address, head, removed, state, steady, timer } = part
    const key = keyOf(address)
    this.addItems(part, false)
    for (const n of removed) this.addHash(modulus - (this.itemHashes.get(n) ?? 0))
    this.itemHashes.clear()
    this.logItems -= removed.length
    if (!steady) this.changedActors++
    if (timer !== undefined) {
      this.timers++
      this.addHash(hash48("timer", key, timer))
    }
    if (state === undefined) return
    this.actors[address.kind] = (this.actors[address.kind] ?? 0) + 1
    this.addHash(hash48("actor", key, head, state))
  }

  get counts(): Counts {
    const { blobBytes, blobs, logItems, records, sum, timers } = this
    const kinds = Object.entries(this.actors).sort(([one], [other]) => one < other ? -1 : 1)
    const contents = sum.toString(16).padStart(12, "0")
    const actors = Object.fromEntries(kinds)
    return { actors, logItems, timers, records, blobs, blobBytes, contents }
  }

  /** All actors. */
  get actorCount(): number {
    return Object.values(this.actors).reduce((sum, count) => sum + count, 0)
  }
}

/** Name and number of each count, in display order. */
export const rowsOf = ({ actors, ...rest }: Counts): ReadonlyArray<readonly [string, string]> => [
  ...Object.entries(actors).map(([kind, count]) => [`actors ${kind}`, String(count)] as const),
  ...Object.entries(rest).map(([name, count]) => [name, String(count)] as const)
]

/** The counts of two stores side by side. */
export const differences = (one: Counts, other: Counts) => {
  const ours = new Map(rowsOf(one))
  const others = new Map(rowsOf(other))
  return [...new Set([...ours.keys(), ...others.keys()])].map((name) => {
    const [from = "0", to = "0"] = [ours.get(name), others.get(name)]
    return { name, from, to, same: from === to }
  })
}

/** Items in groups that fit in one line or commit. */
export const groupItems = (
  items: ReadonlyArray<LogItem>
): ReadonlyArray<ReadonlyArray<LogItem>> => {
  const groups: Array<Array<LogItem>> = []
  let bytes = Infinity
  for (const item of items) {
    bytes += item.value.length
    if (bytes > itemsBytes || (groups.at(-1)?.length ?? 0) >= commitItems) {
      groups.push([])
      bytes = item.value.length
    }
    groups.at(-1)?.push(item)
  }
  return groups
}
