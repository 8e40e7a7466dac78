/**
 * Bytes of one upload that arrive although its client is paused. The native server continues to
 * read a paused socket as long as each read fills its buffer: a client on the same machine can send
 * hundreds of megabytes in one turn of the event loop. They wait in a file that has no name, and
 * that ends with the process.
 */
import { close, closeSync, openSync, read, unlinkSync, writeSync } from "node:fs"
import { join } from "node:path"
import { randomUUID } from "node:crypto"
import { spilledBytesMax, spillPieceBytes } from "../../limits.ts"

/** The folder of the files, and what all of them have taken. */
export class SpillFolder {
  private readonly path: string
  private readonly bytesMax: number
  private bytes = 0

  constructor(path: string, bytesMax = spilledBytesMax) {
    this.path = path
    this.bytesMax = bytesMax
  }

  /** Bytes in all files. */
  get size(): number {
    return this.bytes
  }

  take(bytes: number): boolean {
    if (this.bytes + bytes > this.bytesMax) return false
    this.bytes += bytes
    return true
  }

  give(bytes: number): void {
    this.bytes -= bytes
  }

  /** Opens a file that nobody else can open. */
  open(): number {
    const path = join(this.path, `upload-${randomUUID()}`)
    const file = openSync(path, "wx+", 0o600)
    unlinkSync(path)
    return file
  }
}

/** A queue of bytes in a file, for one reader. */
export class Spill {
  private readonly folder: SpillFolder
  private file: number | undefined
  private writtenBytes = 0
  private readBytes = 0
  private isReading = false
  private isEnded = false

  constructor(folder: SpillFolder) {
    this.folder = folder
  }

  /** Whether bytes wait to be read. */
  get hasMore(): boolean {
    return this.readBytes < this.writtenBytes
  }

  /** Takes all of a piece; false beyond the limit of all files, or if the write fails. */
  write(piece: Uint8Array): boolean {
    if (this.isEnded || !this.folder.take(piece.length)) return false
    try {
      this.file ??= this.folder.open()
      for (let at = 0; at < piece.length;) {
        at += writeSync(this.file, piece, at, piece.length - at, this.writtenBytes + at)
      }
    } catch {
      this.folder.give(piece.length)
      return false
    }
    this.writtenBytes += piece.length
    return true
  }

  /** Reads the next bytes; undefined if that fails. Call it again only after it has called back. */
  next(done: (piece: Uint8Array | undefined) => void): void {
    const { file } = this
    if (file === undefined || this.isReading || this.isEnded) return
    this.isReading = true
    const length = Math.min(spillPieceBytes, this.writtenBytes - this.readBytes)
    read(file, Buffer.allocUnsafe(length), 0, length, this.readBytes, (error, count, bytes) => {
      this.isReading = false
      if (this.isEnded) return close(file, () => undefined)
      if (error !== null || count === 0) return done(undefined)
      this.readBytes += count
      if (!this.hasMore) this.empty()
      done(bytes.subarray(0, count))
    })
  }

  /** Closes the file after all of it was read; its bytes no longer count. */
  private empty(): void {
    this.folder.give(this.writtenBytes)
    this.writtenBytes = 0
    this.readBytes = 0
    if (this.file !== undefined) closeSync(this.file)
    this.file = undefined
  }

  /** Drops what was not read. */
  end(): void {
    if (this.isEnded) return
    this.isEnded = true
    this.folder.give(this.writtenBytes)
    if (this.file !== undefined && !this.isReading) closeSync(this.file)
  }
}
