/** What an archive is made of, and what is counted of it. */
import { hash } from "node:crypto"
import { type ActorPart, type ItemsPart, keyOf, type LogItem,
  type RecordPart } from "../../runtime/index.ts"
import { commitItems, itemsBytes } from "../limits.ts"

/** A blob; its bytes are to be read before the next part is asked for. */
export interface BlobPart {
  readonly _tag: "Blob"
  readonly id: string
  readonly lengthBytes: number
  /** SHA-256 of the bytes, base64url. */
  readonly digest: string
  /** Throws when the blob was lost while it was read: it does not count then. */
  readonly bytes: AsyncIterable<Uint8Array>
}

export type ArchivePart = ItemsPart | ActorPart | RecordPart | BlobPart

/** What there is of everything. */
export interface Counts {
  /** With a state record, by kind. */
  readonly actors: Readonly<Record<string, number>>
  readonly logItems: number
  readonly timers: number
  readonly records: number
  readonly blobs: number
  readonly blobBytes: number
  /** Sum of hashes of everything, whatever its order: the same where all is the same. */
  readonly contents: string
}

const MODULUS = 2 ** 48

/** 48 bits of SHA-256; the texts hold no U+0000 but for values, which come last. */
const hash48 = (...texts: ReadonlyArray<string | number>): number =>
  Number.parseInt(hash("sha256", texts.join("\0")).slice(0, 12), 16)

/** Counts what goes by. */
export class Counter {
  readonly actors: Record<string, number> = {}
  logItems = 0
  timers = 0
  records = 0
  blobs = 0
  blobBytes = 0
  /** Actors that were changed again and again while they were read. */
  unsteady = 0
  /** Blobs that were lost while they were read. */
  lost = 0
  private sum = 0
  /** Items of the actor whose parts go by, as some may be found to be removed at its end. */
  private readonly items = new Map<number, number>()

  private add(mark: number): void {
    this.sum = (this.sum + mark) % MODULUS
  }

  take(part: ArchivePart): void {
    switch (part._tag) {
      case "Items":
        return this.takeItems(part, true)
      case "Actor":
        return this.takeActor(part)
      case "Record":
        this.records++
        return this.add(hash48("record", part.table, part.key, part.value))
      case "Blob":
        this.blobs++
        this.blobBytes += part.lengthBytes
        return this.add(hash48("blob", part.id, part.lengthBytes, part.digest))
    }
  }

  private takeItems({ address, items }: Pick<ItemsPart, "address" | "items">, keep: boolean): void {
    const key = keyOf(address)
    for (const { n, value } of items) {
      const mark = hash48("item", key, n, value)
      if (keep) this.items.set(n, mark)
      this.add(mark)
    }
    this.logItems += items.length
  }

  private takeActor(part: ActorPart): void {
    const { address, head, removed, state, steady, timer } = part
    const key = keyOf(address)
    this.takeItems(part, false)
    for (const n of removed) this.add(MODULUS - (this.items.get(n) ?? 0))
    this.items.clear()
    this.logItems -= removed.length
    if (!steady) this.unsteady++
    if (timer !== undefined) {
      this.timers++
      this.add(hash48("timer", key, timer))
    }
    if (state === undefined) return
    this.actors[address.kind] = (this.actors[address.kind] ?? 0) + 1
    this.add(hash48("actor", key, head, state))
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

/** Name and number of each count, in the order in which they are shown. */
export const rowsOf = ({ actors, ...rest }: Counts): ReadonlyArray<readonly [string, string]> => [
  ...Object.entries(actors).map(([kind, count]) => [`actors ${kind}`, String(count)] as const),
  ...Object.entries(rest).map(([name, count]) => [name, String(count)] as const)
]

/** Names and numbers that two counts differ in: of the one, of the other. */
export const differences = (one: Counts, other: Counts) => {
  const others = new Map(rowsOf(other))
  const ours = new Map(rowsOf(one))
  return [...new Set([...ours.keys(), ...others.keys()])].map((name) => ({
    name,
    from: ours.get(name) ?? "0",
    to: others.get(name) ?? "0",
    same: (ours.get(name) ?? "0") === (others.get(name) ?? "0")
  }))
}

/** Items in pieces that one line or commit can hold. */
export const piecesOf = (items: ReadonlyArray<LogItem>): ReadonlyArray<ReadonlyArray<LogItem>> => {
  const pieces: Array<Array<LogItem>> = []
  let bytes = Infinity
  for (const item of items) {
    bytes += item.value.length
    if (bytes > itemsBytes || (pieces.at(-1)?.length ?? 0) >= commitItems) {
      pieces.push([])
      bytes = item.value.length
    }
    pieces.at(-1)?.push(item)
  }
  return pieces
}
