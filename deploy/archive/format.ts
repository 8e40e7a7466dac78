/** The format of archives (README.md): an encoder, and a decoder that verifies. */
import { Schema } from "effect"
import { createHash } from "node:crypto"
import { address, fromKey, keyOf, type LogItem, SHARDS } from "../../runtime/index.ts"
import { archiveFormatVersion, lineBytesMax, trailerBytesMax, writeBytes } from "../limits.ts"
import { type ArchivePart, Counter, groupItems } from "./parts.ts"

/** The archive is truncated, corrupted, or of another format. */
export class ArchiveCorrupted extends Schema.TaggedError<ArchiveCorrupted>()("ArchiveCorrupted", {
  detail: Schema.String
}) {}

/** A blob was removed while it was read. Its part does not count. */
export class BlobLost extends Error {}

const corrupted = (detail: string): never => {
  throw new ArchiveCorrupted({ detail })
}

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

const Items = Schema.Array(Schema.Tuple([Count, Schema.String]))

/** The first line. */
export const Header = Schema.Struct({
  restante: Schema.Literal("archive"),
  format: Count,
  /** The version of the service. */
  version: Schema.String,
  /** When the backup started, RFC 3339. */
  time: Schema.String,
  /** The kind of store. */
  source: Schema.Literals(["embedded", "nats"]),
  shards: Count
})

export type Header = typeof Header.Type

/** The last line; `sha256` is the hexadecimal digest of all bytes before it. */
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

/** A line between the two. */
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
  /** This number of bytes of the blob follows the line feed, and another line feed. */
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
      return itemsLines(keyOf(part.address), groupItems(part.items))
    case "Actor": {
      const { address, head, items, removed, state, steady, timer } = part
      const pieces = groupItems(items)
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

/** Encodes an archive, and counts its parts. */
export class Encoder {
  readonly counter = new Counter()
  private readonly sha256 = createHash("sha256")
  private pending: Array<Buffer> = []
  private pendingBytes = 0

  /** All of an archive, in pieces of about {@link writeBytes}. */
  async *encode(header: Header, parts: AsyncIterable<ArchivePart>): AsyncGenerator<Buffer> {
    this.writeLine(header)
    for await (const part of parts) {
      if (part._tag === "Blob") yield* this.blob(part)
      else {
        for (const line of linesOf(part)) this.writeLine(line)
        this.counter.add(part)
      }
      if (this.pendingBytes >= writeBytes) yield this.flush()
    }
    yield this.flush()
    const { counts, unsteady } = this.counter
    const sha256 = this.sha256.digest("hex")
    const trailer: Trailer = { end: true, counts, unsteady, sha256 }
    yield Buffer.from(`${JSON.stringify(trailer)}\n`)
  }

  /** The encoder writes the bytes before it knows the end: the last line tells if they count. */
  private async *blob(part: Extract<ArchivePart, { _tag: "Blob" }>): AsyncGenerator<Buffer> {
    const { digest, id, lengthBytes } = part
    this.writeLine({ blob: id, lengthBytes, digest })
    let found = 0
    const hash = createHash("sha256")
    try {
      for await (const bytes of part.bytes) {
        found += bytes.length
        hash.update(bytes)
        this.writeLine({ bytes: bytes.length })
        this.write(Buffer.from(bytes))
        this.write(feed)
        if (this.pendingBytes >= writeBytes) yield this.flush()
      }
    } catch {
      found = -1
    }
    const isWhole = found === lengthBytes && hash.digest("base64url") === digest
    this.writeLine({ blobEnd: isWhole ? "whole" : "lost" })
    if (isWhole) this.counter.add(part)
    else this.counter.lost++
  }

  private writeLine(line: Line | Header): void {
    this.write(Buffer.from(`${JSON.stringify(line)}\n`))
  }

  private write(bytes: Buffer): void {
    this.pending.push(bytes)
    this.pendingBytes += bytes.length
  }

  private flush(): Buffer {
    const bytes = Buffer.concat(this.pending)
    this.pending = []
    this.pendingBytes = 0
    this.sha256.update(bytes)
    return bytes
  }
}

/** Whether the counts of the parts are those of the trailer. */
const hasCounts = ({ counts, unsteady }: Counter, trailer: Trailer): boolean =>
  JSON.stringify(counts) === JSON.stringify(trailer.counts) && unsteady === trailer.unsteady

const decodeLine = Schema.decodeUnknownSync(Line)

const decodeHeader = Schema.decodeUnknownSync(Header)

const decodeTrailer = Schema.decodeUnknownSync(Trailer)

const LINE_FEED = 0x0a

/** Reads lines and blocks of bytes from a stream. */
class Lines {
  private readonly source: AsyncIterator<Uint8Array>
  private readonly hash = createHash("sha256")
  private buffer: Buffer = Buffer.alloc(0)
  private at = 0

  constructor(source: AsyncIterable<Uint8Array>) {
    this.source = source[Symbol.asyncIterator]()
  }

  private async readMore(): Promise<boolean> {
    const next = await this.source.next()
    if (next.done === true) return false
    const rest = this.buffer.subarray(this.at)
    this.buffer = rest.length === 0 ? Buffer.from(next.value) : Buffer.concat([rest, next.value])
    this.at = 0
    return true
  }

  /** The next line, which is not yet in the checksum; undefined at the end. */
  async line(): Promise<Buffer | undefined> {
    let from = this.at
    for (;;) {
      const end = this.buffer.indexOf(LINE_FEED, from)
      if (end >= 0) {
        const line = this.buffer.subarray(this.at, end + 1)
        this.at = end + 1
        return line
      }
      const available = this.buffer.length - this.at
      if (available > lineBytesMax) corrupted("a line is too long")
      if (!(await this.readMore())) {
        return available === 0
          ? undefined
          : corrupted("it ends within a line")
      }
      from = this.at + available
    }
  }

  /** Adds to the checksum. */
  addToChecksum(bytes: Uint8Array): void {
    this.hash.update(bytes)
  }

  async bytes(count: number): Promise<Buffer> {
    if (count > lineBytesMax) corrupted("a piece of a blob is too long")
    while (this.buffer.length - this.at < count + 1) {
      if (!(await this.readMore())) corrupted("it ends within a blob")
    }
    const bytes = this.buffer.subarray(this.at, this.at + count)
    if (this.buffer[this.at + count] !== LINE_FEED) corrupted("a piece of a blob does not end")
    this.addToChecksum(this.buffer.subarray(this.at, this.at + count + 1))
    this.at += count + 1
    return bytes
  }

  get sha256(): string {
    return this.hash.copy().digest("hex")
  }
}

const parseLine = (line: Uint8Array): unknown => {
  try {
    // A schema decodes it next.
    return JSON.parse(Buffer.from(line).toString("utf8")) as unknown
  } catch {
    return corrupted("a line is not JSON")
  }
}

const decode = <A>(decoder: (input: unknown) => A, input: unknown): A => {
  try {
    return decoder(input)
  } catch (error) {
    return corrupted(`a line has an unknown form: ${String(error).slice(0, 200)}`)
  }
}

/** Decodes the last line; throws {@link ArchiveCorrupted} for any other. */
const trailerOf = (line: Uint8Array): Trailer => {
  const value = line.length === 0 ? undefined : parseLine(line)
  const isEnd = typeof value === "object" && value !== null && "end" in value
  return isEnd ? decode(decodeTrailer, value) : corrupted("it is truncated")
}

const addressOf = (key: string) => {
  try {
    return fromKey(key)
  } catch {
    return corrupted(`${key.slice(0, 100)} is not an actor`)
  }
}

const itemsOf = (pairs: ReadonlyArray<readonly [number, string]> = []) =>
  pairs.map(([n, value]) => ({ n, value }))

export class Decoder {
  readonly counter = new Counter()
  private readonly lines: Lines
  /** Whether the last blob was removed while it was read. */
  private isLost = false
  /** The last line, after a complete read. */
  trailer: Trailer | undefined

  constructor(source: AsyncIterable<Uint8Array>) {
    this.lines = new Lines(source)
  }

  private async next(): Promise<unknown> {
    const line = await this.lines.line()
    if (line === undefined) return corrupted("it is truncated")
    const value = parseLine(line)
    const isEnd = typeof value === "object" && value !== null && "end" in value
    if (!isEnd) this.lines.addToChecksum(line)
    return value
  }

  private async begin(): Promise<void> {
    const first = await this.next()
    if (typeof first !== "object" || first === null || !("restante" in first)) {
      corrupted("it is not an archive of restante")
    }
    const header = decode(decodeHeader, first)
    if (header.format > archiveFormatVersion) {
      corrupted(`it is of format ${header.format}, by version ${header.version}: use that version`)
    }
    if (header.shards !== SHARDS) corrupted(`it has ${header.shards} shards instead of ${SHARDS}`)
  }

  /** All parts, to the verified end. Throws {@link ArchiveCorrupted}. */
  async *parts(): AsyncGenerator<ArchivePart> {
    await this.begin()
    for (;;) {
      const value = await this.next()
      if (typeof value === "object" && value !== null && "end" in value) return this.end(value)
      const line = decode(decodeLine, value)
      if ("blob" in line) {
        yield* this.blob(line)
        continue
      }
      const part = this.partOf(line)
      this.counter.add(part)
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
    return corrupted("bytes of a blob occur without a blob")
  }

  private async *blob(line: Extract<Line, { blob: string }>): AsyncGenerator<ArchivePart> {
    const { blob: id, digest, lengthBytes } = line
    try {
      address("content", id)
    } catch {
      corrupted(`${id.slice(0, 100)} is not a blob`)
    }
    const pieces = this.pieces(id, lengthBytes)
    const part: ArchivePart = { _tag: "Blob", id, lengthBytes, digest, bytes: pieces }
    this.isLost = false
    yield part
    // Skips the bytes that the reader of the part has not read.
    try {
      while ((await pieces.next()).done !== true);
    } catch (error) {
      if (!(error instanceof BlobLost)) throw error
    }
    if (!this.isLost) this.counter.add(part)
  }

  private async *pieces(id: string, lengthBytes: number): AsyncGenerator<Uint8Array> {
    let found = 0
    for (;;) {
      const line = decode(decodeLine, await this.next())
      if ("bytes" in line) {
        found += line.bytes
        yield await this.lines.bytes(line.bytes)
      } else if ("blobEnd" in line) {
        this.isLost = line.blobEnd === "lost"
        if (this.isLost) throw new BlobLost(`blob ${id} was removed while it was read`)
        if (found !== lengthBytes) corrupted(`blob ${id} has ${found} bytes of ${lengthBytes}`)
        return
      } else corrupted(`blob ${id} does not end`)
    }
  }

  private async end(value: unknown): Promise<void> {
    const trailer = decode(decodeTrailer, value)
    if (trailer.sha256 !== this.lines.sha256) corrupted("its checksum differs")
    if (await this.lines.line() !== undefined) corrupted("data follows its end")
    if (!hasCounts(this.counter, trailer)) corrupted("its counts differ")
    this.trailer = trailer
  }
}

/** Verifies the checksum of an archive while its bytes pass. */
export class StreamVerifier {
  /** Bytes so far. */
  bytes = 0
  /** The last line, after {@link end}. */
  trailer: Trailer | undefined
  private readonly hash = createHash("sha256")
  /** The last bytes, which may be the last line. */
  private tail: Buffer = Buffer.alloc(0)

  add(bytes: Uint8Array): void {
    this.bytes += bytes.length
    this.tail = Buffer.concat([this.tail, bytes])
    const certain = Math.max(0, this.tail.length - trailerBytesMax)
    this.hash.update(this.tail.subarray(0, certain))
    this.tail = this.tail.subarray(certain)
  }

  /** Throws {@link ArchiveCorrupted}. */
  end(): void {
    const last = this.tail.lastIndexOf(LINE_FEED, -2) + 1
    this.hash.update(this.tail.subarray(0, last))
    const trailer = trailerOf(this.tail.subarray(last))
    if (trailer.sha256 !== this.hash.digest("hex")) corrupted("its checksum differs")
    this.trailer = trailer
  }
}
