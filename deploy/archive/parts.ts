/** The parts of an archive, and their counts. */
import { Schema } from "effect"
import { createHash, hash } from "node:crypto"
import { type ActorPart, type ItemsPart, keyOf, type LogItem,
  type RecordPart } from "../../runtime/index.ts"
import { commitItems, itemsBytes } from "../limits.ts"

/** A blob. The reader must read its bytes before it requests the next part. */
export interface BlobPart {
  readonly _tag: "Blob"
  readonly id: string
  readonly lengthBytes: number
  /** SHA-256 of the bytes, base64url. */
  readonly digest: string
  /** Throws BlobRemoved if the blob was removed during the read: then the part does not count. */
  readonly bytes: AsyncIterable<Uint8Array>
}

/** Computes the length and the digest of a blob's bytes, to compare them with its part. */
export class BlobChecksum {
  lengthBytes = 0
  private readonly hash = createHash("sha256")

  add(bytes: Uint8Array): void {
    this.lengthBytes += bytes.length
    this.hash.update(bytes)
  }

  /** Whether the bytes are those of the blob. Call it once, after the last bytes. */
  matches({ digest, lengthBytes }: BlobPart): boolean {
    return this.lengthBytes === lengthBytes && this.hash.digest("base64url") === digest
  }
}

/** A part of an archive. The log of an actor may begin in parts of its own, before the actor. */
export type ArchivePart = ItemsPart | ActorPart | RecordPart | BlobPart

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
  /** The sum of the hashes of all parts: the same for the same contents in any order. */
  contents: Schema.String
})

export type Counts = typeof Counts.Type

/** Sums of hashes are modulo this number. */
const modulus = 2 ** 48

/** 48 bits of the SHA-256 of the texts. Only the last one may contain U+0000, the separator. */
const hash48 = (...texts: ReadonlyArray<string | number>): number =>
  Number.parseInt(hash("sha256", texts.join("\0")).slice(0, 12), 16)

/** Counts parts, and sums their hashes. */
export class Counter {
  readonly actors: Record<string, number> = {}
  logItems = 0
  timers = 0
  records = 0
  blobs = 0
  blobBytes = 0
  /** How many actors changed during each attempt to read them. */
  changedActors = 0
  /** How many blobs were removed while they were read. */
  removedBlobs = 0
  private sum = 0
  /** The hashes of the current actor's items, since its last part can mark some as removed. */
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

  /** How many actors of all kinds there are. */
  get actorCount(): number {
    return Object.values(this.actors).reduce((sum, count) => sum + count, 0)
  }
}

/** The name and the number of each count, in the order in which they are shown. */
export const rowsOf = ({ actors, ...rest }: Counts): ReadonlyArray<readonly [string, string]> => [
  ...Object.entries(actors).map(([kind, count]) => [`actors ${kind}`, String(count)] as const),
  ...Object.entries(rest).map(([name, count]) => [name, String(count)] as const)
]

/** The counts of two stores, and which of them are equal. */
export const differences = (one: Counts, other: Counts) => {
  const rowsOfOne = new Map(rowsOf(one))
  const rowsOfOther = new Map(rowsOf(other))
  return [...new Set([...rowsOfOne.keys(), ...rowsOfOther.keys()])].map((name) => {
    const [from = "0", to = "0"] = [rowsOfOne.get(name), rowsOfOther.get(name)]
    return { name, from, to, same: from === to }
  })
}

/** Divides items into groups that each fit one line or one commit. */
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
