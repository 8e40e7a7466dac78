/** The format of archives (README.md): its encoder, and its decoder, which verifies the archive. */
import { Schema } from "effect"
import { createHash } from "node:crypto"
import { type Address, fromKey, keyOf, type LogItem, SHARDS } from "../../runtime/index.ts"
import { archiveFormatVersion, lineBytesMax, trailerBytesMax, writeBytes } from "../limits.ts"
import { type ArchivePart, BlobChecksum, type BlobPart, Count, Counter, Counts,
  groupItems } from "./parts.ts"

/** The archive is truncated, corrupted, or of another format. */
export class ArchiveCorrupted extends Schema.TaggedError<ArchiveCorrupted>()("ArchiveCorrupted", {
  detail: Schema.String
}) {}

/** A blob was removed while it was read. Its part does not count. */
export class BlobRemoved extends Error {}

const corrupted = (detail: string): never => {
  throw new ArchiveCorrupted({ detail })
}

const Items = Schema.Array(Schema.Tuple([Count, Schema.String]))

/** The first line of an archive. */
const Header = Schema.Struct({
  restante: Schema.Literal("archive"),
  format: Count,
  /** The version of the service. */
  version: Schema.String,
  /** When the backup started, RFC 3339. */
  time: Schema.String,
  /** The kind of store. */
  source: Schema.Literals(["embedded", "nats"]),
  shards: Count,
  /** The file of the key of stored secrets, only if the operator asked for it. */
  secretKey: Schema.optionalKey(Schema.String)
})

export type Header = typeof Header.Type

/** The last line of an archive; `sha256` is the hexadecimal digest of all bytes before it. */
const Trailer = Schema.Struct({
  end: Schema.Literal(true),
  counts: Counts,
  unsteady: Count,
  sha256: Schema.String
})

export type Trailer = typeof Trailer.Type

/** A line between the first and the last one. */
const Line = Schema.Union([
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
  /** Says how many bytes of the blob follow this line. A line feed ends them. */
  Schema.Struct({ bytes: Count }),
  /** Ends a blob; `lost` if it was removed while it was read. */
  Schema.Struct({ blobEnd: Schema.Literals(["whole", "lost"]) })
])

type Line = typeof Line.Type

const decodeAnyLine = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Union([Header, Trailer, ...Line.members]))
)

const decodeLine = (
  line: Buffer,
  fault = "a line has an unknown form"
): Header | Line | Trailer => {
  try {
    return decodeAnyLine(line.toString("utf8"))
  } catch (error) {
    return corrupted(`${fault}: ${String(error).slice(0, 200)}`)
  }
}

/** Decodes the last line. Throws {@link ArchiveCorrupted} if the line is another one. */
const decodeTrailer = (line: Buffer): Trailer => {
  const decoded = line.length === 0 ? undefined : decodeLine(line)
  return decoded !== undefined && "end" in decoded ? decoded : corrupted("it is truncated")
}

export const headerOf = (
  version: string,
  source: Header["source"],
  nowMs: number,
  secretKey?: string
): Header => ({
  restante: "archive",
  format: archiveFormatVersion,
  version,
  time: new Date(nowMs).toISOString(),
  source,
  shards: SHARDS,
  ...secretKey === undefined ? {} : { secretKey }
})

const pairsOf = (items: ReadonlyArray<LogItem>) => items.map(({ n, value }) => [n, value] as const)

const itemsLines = (of: string, pieces: ReadonlyArray<ReadonlyArray<LogItem>>) =>
  pieces.map((items): Line => ({ of, items: pairsOf(items) }))

const linesOf = (part: Exclude<ArchivePart, BlobPart>): ReadonlyArray<Line> => {
  switch (part._tag) {
    case "Items":
      return itemsLines(keyOf(part.address), groupItems(part.items))
    case "Actor": {
      const { address, head, items, removed, state, steady, timer } = part
      const pieces = groupItems(items)
      const [lastItems = []] = pieces.slice(-1)
      return [...itemsLines(keyOf(address), pieces.slice(0, -1)), {
        actor: keyOf(address),
        head,
        ...(state === undefined ? {} : { state }),
        ...(timer === undefined ? {} : { timer }),
        ...(lastItems.length === 0 ? {} : { items: pairsOf(lastItems) }),
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

  /** Encodes a whole archive, in pieces of about {@link writeBytes}. */
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
    const { changedActors: unsteady, counts } = this.counter
    const sha256 = this.sha256.digest("hex")
    const trailer: Trailer = { end: true, counts, unsteady, sha256 }
    yield Buffer.from(`${JSON.stringify(trailer)}\n`)
  }

  /** Writes a blob. Only its last line says whether the bytes before that line are whole. */
  private async *blob(part: BlobPart): AsyncGenerator<Buffer> {
    const { digest, id, lengthBytes } = part
    this.writeLine({ blob: id, lengthBytes, digest })
    const checksum = new BlobChecksum()
    let isWhole = false
    try {
      for await (const bytes of part.bytes) {
        checksum.add(bytes)
        this.writeLine({ bytes: bytes.length })
        this.write(Buffer.from(bytes))
        this.write(feed)
        if (this.pendingBytes >= writeBytes) yield this.flush()
      }
      isWhole = checksum.matches(part)
    } catch {
      // The blob was removed, or cannot be read: its last line says that it is lost.
    }
    this.writeLine({ blobEnd: isWhole ? "whole" : "lost" })
    if (isWhole) this.counter.add(part)
    else this.counter.removedBlobs++
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

/** Whether the parts have the counts that the last line says. */
const hasCounts = ({ changedActors, counts }: Counter, trailer: Trailer): boolean =>
  JSON.stringify(counts) === JSON.stringify(trailer.counts) && changedActors === trailer.unsteady

const lineFeed = 0x0a

/** Reads lines and blocks of bytes from a stream. */
class Lines {
  /** The checksum of the bytes read so far. The caller of {@link line} adds each line to it. */
  readonly checksum = createHash("sha256")
  private readonly source: AsyncIterator<Uint8Array>
  private buffer: Buffer = Buffer.alloc(0)
  /** Where the unread bytes of the buffer begin. */
  private position = 0

  constructor(source: AsyncIterable<Uint8Array>) {
    this.source = source[Symbol.asyncIterator]()
  }

  private async readMore(): Promise<boolean> {
    const next = await this.source.next()
    if (next.done === true) return false
    const rest = this.buffer.subarray(this.position)
    this.buffer = rest.length === 0 ? Buffer.from(next.value) : Buffer.concat([rest, next.value])
    this.position = 0
    return true
  }

  /** Reads the next line; undefined at the end. */
  async line(): Promise<Buffer | undefined> {
    let from = this.position
    for (;;) {
      const end = this.buffer.indexOf(lineFeed, from)
      if (end >= 0) {
        const line = this.buffer.subarray(this.position, end + 1)
        this.position = end + 1
        return line
      }
      const available = this.buffer.length - this.position
      if (available > lineBytesMax) corrupted("a line is too long")
      if (!(await this.readMore())) {
        return available === 0 ? undefined : corrupted("it ends within a line")
      }
      from = this.position + available
    }
  }

  /** Reads a piece of a blob, and the line feed after it. */
  async bytes(count: number): Promise<Buffer> {
    if (count > lineBytesMax) corrupted("a piece of a blob is too long")
    while (this.buffer.length - this.position < count + 1) {
      if (!(await this.readMore())) corrupted("it ends within a blob")
    }
    const bytes = this.buffer.subarray(this.position, this.position + count)
    if (this.buffer[this.position + count] !== lineFeed) corrupted("a piece of a blob does not end")
    this.checksum.update(this.buffer.subarray(this.position, this.position + count + 1))
    this.position += count + 1
    return bytes
  }
}

const addressOf = (key: string): Address => {
  try {
    return fromKey(key)
  } catch {
    return corrupted(`${key.slice(0, 100)} is not an address`)
  }
}

const itemsOf = (pairs: ReadonlyArray<readonly [number, string]> = []) =>
  pairs.map(([n, value]) => ({ n, value }))

/** Decodes and verifies an archive, and counts its parts. */
export class Decoder {
  readonly counter = new Counter()
  private readonly lines: Lines
  /** Whether the last blob was removed while it was read. */
  private isRemoved = false
  /** The file of keys in the archive, once its first part is read; undefined without one. */
  keyText: string | undefined
  /** The last line, once the whole archive is read and verified. */
  trailer: Trailer | undefined

  constructor(source: AsyncIterable<Uint8Array>) {
    this.lines = new Lines(source)
  }

  private async next(fault?: string): Promise<Header | Line | Trailer> {
    const bytes = await this.lines.line()
    if (bytes === undefined) return corrupted("it is truncated")
    const line = decodeLine(bytes, fault)
    if (!("end" in line)) this.lines.checksum.update(bytes)
    return line
  }

  private async begin(): Promise<void> {
    const fault = "it is not an archive of restante"
    const header = await this.next(fault)
    if (!("restante" in header)) return corrupted(fault)
    const { format, secretKey, shards, version } = header
    this.keyText = secretKey
    if (format > archiveFormatVersion) {
      corrupted(`it is of format ${format}, by version ${version}: use that version`)
    }
    if (shards !== SHARDS) corrupted(`it has ${shards} shards instead of ${SHARDS}`)
  }

  /** Decodes all parts, and verifies the end. Throws {@link ArchiveCorrupted}. */
  async *parts(): AsyncGenerator<ArchivePart> {
    await this.begin()
    for (;;) {
      const line = await this.next()
      if ("end" in line) return this.end(line)
      if ("blob" in line) {
        yield* this.blob(line)
        continue
      }
      const part = this.partOf(line)
      this.counter.add(part)
      yield part
    }
  }

  private partOf(line: Header | Line): Exclude<ArchivePart, BlobPart> {
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
    return corrupted("a line is out of place: a second header, or bytes without a blob")
  }

  private async *blob(line: Extract<Line, { blob: string }>): AsyncGenerator<ArchivePart> {
    const { blob: id, digest, lengthBytes } = line
    addressOf(`content/${id}`) // throws if the id is not valid
    const pieces = this.pieces(id, lengthBytes)
    const part: ArchivePart = { _tag: "Blob", id, lengthBytes, digest, bytes: pieces }
    this.isRemoved = false
    yield part
    // Skips the bytes that the reader of the part has not read.
    try {
      while ((await pieces.next()).done !== true);
    } catch (error) {
      if (!(error instanceof BlobRemoved)) throw error
    }
    if (!this.isRemoved) this.counter.add(part)
  }

  private async *pieces(id: string, lengthBytes: number): AsyncGenerator<Uint8Array> {
    let found = 0
    for (;;) {
      const line = await this.next()
      if ("bytes" in line) {
        found += line.bytes
        yield await this.lines.bytes(line.bytes)
      } else if ("blobEnd" in line) {
        this.isRemoved = line.blobEnd === "lost"
        if (this.isRemoved) throw new BlobRemoved(`blob ${id} was removed while it was read`)
        if (found !== lengthBytes) corrupted(`blob ${id} has ${found} bytes of ${lengthBytes}`)
        return
      } else corrupted(`blob ${id} does not end`)
    }
  }

  private async end(trailer: Trailer): Promise<void> {
    if (trailer.sha256 !== this.lines.checksum.digest("hex")) corrupted("its checksum differs")
    if (await this.lines.line() !== undefined) corrupted("data follows its end")
    if (!hasCounts(this.counter, trailer)) corrupted("its counts differ")
    this.trailer = trailer
  }
}

/** Verifies the checksum of an archive while its bytes pass. */
export class StreamVerifier {
  /** How many bytes have passed. */
  bytes = 0
  /** The last line of the archive, once all bytes have passed. */
  trailer: Trailer | undefined

  /** Passes the bytes on. Throws {@link ArchiveCorrupted} at the end if the checksum differs. */
  async *verify(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const hash = createHash("sha256")
    // The bytes that may belong to the last line, which the checksum does not cover.
    let tail: Buffer = Buffer.alloc(0)
    for await (const bytes of source) {
      this.bytes += bytes.length
      tail = Buffer.concat([tail, bytes])
      const certain = Math.max(0, tail.length - trailerBytesMax)
      hash.update(tail.subarray(0, certain))
      tail = tail.subarray(certain)
      yield bytes
    }
    const last = tail.lastIndexOf(lineFeed, -2) + 1
    hash.update(tail.subarray(0, last))
    this.trailer = decodeTrailer(tail.subarray(last))
    if (this.trailer.sha256 !== hash.digest("hex")) corrupted("its checksum differs")
  }
}
