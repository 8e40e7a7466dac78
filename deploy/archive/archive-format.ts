/** How an archive is spelled: see this folder's README. Encoding, and the lines' shapes. */
import { Schema } from "effect"
import { createHash } from "node:crypto"
import { keyOf, type LogItem, SHARDS } from "../../runtime/index.ts"
import { archiveFormatVersion, writeBytes } from "../limits.ts"
import { type ArchivePart, Counter, piecesOf } from "./archive-parts.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

const Items = Schema.Array(Schema.Tuple([Count, Schema.String]))

/** The first line. */
export const Header = Schema.Struct({
  restante: Schema.Literal("archive"),
  format: Count,
  /** Of the service that wrote it. */
  version: Schema.String,
  /** When it was begun, RFC 3339. */
  time: Schema.String,
  /** What was read. */
  source: Schema.Literals(["embedded", "nats"]),
  shards: Count
})

export type Header = typeof Header.Type

/** The last line; `sha256` is of all bytes before it, in hexadecimal. */
export const Trailer = Schema.Struct({
  end: Schema.Literal(true),
  counts: Schema.Struct({
    actors: Schema.Record(Schema.String, Count),
    logItems: Count,
    timers: Count,
    records: Count,
    blobs: Count,
    blobBytes: Count,
    contents: Schema.String
  }),
  unsteady: Count,
  sha256: Schema.String
})

export type Trailer = typeof Trailer.Type

/** Any line between the two. */
export const Line = Schema.Union([
  Schema.Struct({ of: Schema.String, items: Items }),
  Schema.Struct({
    actor: Schema.String,
    head: Count,
    state: Schema.optionalKey(Schema.String),
    timer: Schema.optionalKey(Schema.Finite),
    items: Schema.optionalKey(Items),
    removed: Schema.optionalKey(Schema.Array(Count)),
    steady: Schema.optionalKey(Schema.Literal(false))
  }),
  Schema.Struct({ table: Schema.String, record: Schema.String, value: Schema.String }),
  Schema.Struct({ blob: Schema.String, lengthBytes: Count, digest: Schema.String }),
  /** So many bytes of the blob come after the line feed, and another line feed. */
  Schema.Struct({ bytes: Count }),
  /** Ends a blob. */
  Schema.Struct({ blobEnd: Schema.Literals(["whole", "lost"]) })
])

export type Line = typeof Line.Type

export const headerOf = (version: string, source: Header["source"], nowMs: number): Header => ({
  restante: "archive",
  format: archiveFormatVersion,
  version,
  time: new Date(nowMs).toISOString(),
  source,
  shards: SHARDS
})

const pairsOf = (items: ReadonlyArray<LogItem>) => items.map(({ n, value }) => [n, value] as const)

const itemsLines = (of: string, pieces: ReadonlyArray<ReadonlyArray<LogItem>>) =>
  pieces.map((items): Line => ({ of, items: pairsOf(items) }))

const linesOf = (part: Exclude<ArchivePart, { _tag: "Blob" }>): ReadonlyArray<Line> => {
  switch (part._tag) {
    case "Items":
      return itemsLines(keyOf(part.address), piecesOf(part.items))
    case "Actor": {
      const { address, head, items, removed, state, steady, timer } = part
      const pieces = piecesOf(items)
      const [own = []] = pieces.slice(-1)
      return [...itemsLines(keyOf(address), pieces.slice(0, -1)), {
        actor: keyOf(address),
        head,
        ...(state === undefined ? {} : { state }),
        ...(timer === undefined ? {} : { timer }),
        ...(own.length === 0 ? {} : { items: pairsOf(own) }),
        ...(removed.length === 0 ? {} : { removed }),
        ...(steady ? {} : { steady })
      }]
    }
    case "Record":
      return [{ table: part.table, record: part.key, value: part.value }]
  }
}

const feed = Buffer.from("\n")

/** A piece of an archive as it is encoded: what is counted changes with it. */
export class Encoder {
  readonly counter = new Counter()
  private readonly sha256 = createHash("sha256")
  private waiting: Array<Buffer> = []
  private waitingBytes = 0

  /** All of an archive, in pieces of about {@link writeBytes}. */
  async *encode(header: Header, parts: AsyncIterable<ArchivePart>): AsyncGenerator<Buffer> {
    this.line(header)
    for await (const part of parts) {
      if (part._tag === "Blob") yield* this.blob(part)
      else {
        for (const line of linesOf(part)) this.line(line)
        this.counter.take(part)
      }
      if (this.waitingBytes >= writeBytes) yield this.take()
    }
    yield this.take()
    const { counts, unsteady } = this.counter
    const sha256 = this.sha256.digest("hex")
    const trailer: Trailer = { end: true, counts, unsteady, sha256 }
    yield Buffer.from(`${JSON.stringify(trailer)}\n`)
  }

  /** What is written already cannot be taken back, so the end tells whether it counts. */
  private async *blob(part: Extract<ArchivePart, { _tag: "Blob" }>): AsyncGenerator<Buffer> {
    const { digest, id, lengthBytes } = part
    this.line({ blob: id, lengthBytes, digest })
    let found = 0
    const hash = createHash("sha256")
    try {
      for await (const bytes of part.bytes) {
        found += bytes.length
        hash.update(bytes)
        this.line({ bytes: bytes.length })
        this.put(Buffer.from(bytes))
        this.put(feed)
        if (this.waitingBytes >= writeBytes) yield this.take()
      }
    } catch {
      found = -1
    }
    const isWhole = found === lengthBytes && hash.digest("base64url") === digest
    this.line({ blobEnd: isWhole ? "whole" : "lost" })
    if (isWhole) this.counter.take(part)
    else this.counter.lost++
  }

  private line(line: Line | Header): void {
    this.put(Buffer.from(`${JSON.stringify(line)}\n`))
  }

  private put(bytes: Buffer): void {
    this.waiting.push(bytes)
    this.waitingBytes += bytes.length
  }

  private take(): Buffer {
    const bytes = Buffer.concat(this.waiting)
    this.waiting = []
    this.waitingBytes = 0
    this.sha256.update(bytes)
    return bytes
  }
}

/** Whether what was counted of an archive's parts is what its trailer says. */
export const isCounted = ({ counts, unsteady }: Counter, trailer: Trailer): boolean =>
  JSON.stringify(counts) === JSON.stringify(trailer.counts) && unsteady === trailer.unsteady
