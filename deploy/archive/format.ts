/** Reads an archive back, and refuses one that is truncated, corrupted or of another format. */
import { Schema } from "effect"
import { createHash } from "node:crypto"
import { address, fromKey, keyOf, type LogItem, SHARDS } from "../../runtime/index.ts"
import { archiveFormatVersion, lineBytesMax, writeBytes } from "../limits.ts"
import { type ArchivePart, Counter, piecesOf } from "./parts.ts"

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

/* How an archive is spelled: see this folder's README. Encoding, and the lines' shapes. */

/** The archive cannot be relied upon. */
export class ArchiveCorrupted extends Schema.TaggedError<ArchiveCorrupted>()("ArchiveCorrupted", {
  detail: Schema.String
}) {}

const corrupted = (detail: string): never => {
  throw new ArchiveCorrupted({ detail })
}

/** A blob that its source lost while it was read; what came of it counts for nothing. */
export class BlobLost extends Error {}

const decodeLine = Schema.decodeUnknownSync(Line)

const decodeHeader = Schema.decodeUnknownSync(Header)

const decodeTrailer = Schema.decodeUnknownSync(Trailer)

const LINE_FEED = 0x0a

/** Lines and counted bytes out of a stream. */
class Lines {
  private readonly source: AsyncIterator<Uint8Array>
  private readonly hash = createHash("sha256")
  private buffer: Buffer = Buffer.alloc(0)
  private at = 0

  constructor(source: AsyncIterable<Uint8Array>) {
    this.source = source[Symbol.asyncIterator]()
  }

  private async more(): Promise<boolean> {
    const next = await this.source.next()
    if (next.done === true) return false
    const rest = this.buffer.subarray(this.at)
    this.buffer = rest.length === 0 ? Buffer.from(next.value) : Buffer.concat([rest, next.value])
    this.at = 0
    return true
  }

  /** The next line, which does not count yet for the checksum; undefined at the end. */
  async line(): Promise<Buffer | undefined> {
    let from = this.at
    for (;;) {
      const end = this.buffer.indexOf(LINE_FEED, from)
      if (end >= 0) {
        const line = this.buffer.subarray(this.at, end + 1)
        this.at = end + 1
        return line
      }
      const there = this.buffer.length - this.at
      if (there > lineBytesMax) corrupted("a line is too long")
      if (!(await this.more())) return there === 0 ? undefined : corrupted("it ends within a line")
      from = this.at + there
    }
  }

  /** Counts for the checksum. */
  count(bytes: Uint8Array): void {
    this.hash.update(bytes)
  }

  async bytes(count: number): Promise<Buffer> {
    if (count > lineBytesMax) corrupted("a piece of a blob is too long")
    while (this.buffer.length - this.at < count + 1) {
      if (!(await this.more())) corrupted("it ends within a blob")
    }
    const bytes = this.buffer.subarray(this.at, this.at + count)
    if (this.buffer[this.at + count] !== LINE_FEED) corrupted("a piece of a blob does not end")
    this.count(this.buffer.subarray(this.at, this.at + count + 1))
    this.at += count + 1
    return bytes
  }

  get sha256(): string {
    return this.hash.copy().digest("hex")
  }
}

const parsed = (line: Uint8Array): unknown => {
  try {
    // Whatever it is, a schema looks at it.
    return JSON.parse(Buffer.from(line).toString("utf8")) as unknown
  } catch {
    return corrupted("a line is no JSON")
  }
}

const shaped = <A>(decode: (input: unknown) => A, input: unknown): A => {
  try {
    return decode(input)
  } catch (error) {
    return corrupted(`a line is none of an archive: ${String(error).slice(0, 200)}`)
  }
}

/** The last line; throws {@link ArchiveCorrupted} for another one, or none. */
export const trailerOf = (line: Uint8Array): Trailer => {
  const value = line.length === 0 ? undefined : parsed(line)
  const isEnd = typeof value === "object" && value !== null && "end" in value
  return isEnd ? shaped(decodeTrailer, value) : corrupted("it is truncated")
}

const addressOf = (key: string) => {
  try {
    return fromKey(key)
  } catch {
    return corrupted(`${key.slice(0, 100)} names no actor`)
  }
}

const itemsOf = (pairs: ReadonlyArray<readonly [number, string]> = []) =>
  pairs.map(([n, value]) => ({ n, value }))

export class Decoder {
  readonly counter = new Counter()
  private readonly lines: Lines
  /** Whether the last blob was lost while it was read. */
  private lost = false
  /** Once it is read. */
  header: Header | undefined
  trailer: Trailer | undefined

  constructor(source: AsyncIterable<Uint8Array>) {
    this.lines = new Lines(source)
  }

  private async next(): Promise<unknown> {
    const line = await this.lines.line()
    if (line === undefined) return corrupted("it is truncated")
    const value = parsed(line)
    const isEnd = typeof value === "object" && value !== null && "end" in value
    if (!isEnd) this.lines.count(line)
    return value
  }

  private async begin(): Promise<void> {
    const first = await this.next()
    if (typeof first !== "object" || first === null || !("restante" in first)) {
      corrupted("it is no archive of restante")
    }
    const header = shaped(decodeHeader, first)
    if (header.format > archiveFormatVersion) {
      corrupted(`it is of format ${header.format}, from version ${header.version}; this is older`)
    }
    if (header.shards !== SHARDS) corrupted(`it has ${header.shards} shards instead of ${SHARDS}`)
    this.header = header
  }

  /** All parts, to the verified end. Throws {@link ArchiveCorrupted}. */
  async *parts(): AsyncGenerator<ArchivePart> {
    await this.begin()
    for (;;) {
      const value = await this.next()
      if (typeof value === "object" && value !== null && "end" in value) return this.end(value)
      const line = shaped(decodeLine, value)
      if ("blob" in line) {
        yield* this.blob(line)
        continue
      }
      const part = this.partOf(line)
      this.counter.take(part)
      yield part
    }
  }

  private partOf(line: Exclude<Line, { blob: string }>): Exclude<ArchivePart, { _tag: "Blob" }> {
    if ("of" in line) {
      return { _tag: "Items", address: addressOf(line.of), items: itemsOf(line.items) }
    }
    if ("actor" in line) {
      const { actor, head, items, removed = [], state, steady = true, timer } = line
      const common = { head, state, timer, items: itemsOf(items), removed, steady }
      return { _tag: "Actor", address: addressOf(actor), ...common }
    }
    if ("record" in line) {
      return { _tag: "Record", table: line.table, key: line.record, value: line.value }
    }
    return corrupted("a piece of a blob without its blob")
  }

  private async *blob(line: Extract<Line, { blob: string }>): AsyncGenerator<ArchivePart> {
    const { blob: id, digest, lengthBytes } = line
    try {
      address("content", id)
    } catch {
      corrupted(`${id.slice(0, 100)} names no blob`)
    }
    const pieces = this.pieces(id, lengthBytes)
    const part: ArchivePart = { _tag: "Blob", id, lengthBytes, digest, bytes: pieces }
    this.lost = false
    yield part
    // Nothing is left, unless nobody wanted the bytes.
    try {
      while ((await pieces.next()).done !== true);
    } catch (error) {
      if (!(error instanceof BlobLost)) throw error
    }
    if (!this.lost) this.counter.take(part)
  }

  private async *pieces(id: string, lengthBytes: number): AsyncGenerator<Uint8Array> {
    let found = 0
    for (;;) {
      const line = shaped(decodeLine, await this.next())
      if ("bytes" in line) {
        found += line.bytes
        yield await this.lines.bytes(line.bytes)
      } else if ("blobEnd" in line) {
        this.lost = line.blobEnd === "lost"
        if (this.lost) throw new BlobLost(`blob ${id} was lost while it was read`)
        if (found !== lengthBytes) corrupted(`blob ${id} has ${found} bytes of ${lengthBytes}`)
        return
      } else corrupted(`blob ${id} does not end`)
    }
  }

  private async end(value: unknown): Promise<void> {
    const trailer = shaped(decodeTrailer, value)
    if (trailer.sha256 !== this.lines.sha256) corrupted("its checksum differs")
    if (await this.lines.line() !== undefined) corrupted("there is something after its end")
    if (!isCounted(this.counter, trailer)) corrupted("its counts differ")
    this.trailer = trailer
  }
}
