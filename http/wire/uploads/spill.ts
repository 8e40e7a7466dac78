/**
 * Bytes of one upload that arrive although its client is paused. The native server continues to
 * read a paused socket as long as each read fills its buffer: a client on the same machine can send
 * hundreds of megabytes in one turn of the event loop. They wait in a file that has no name, and
 * that ends with the process.
 */
import { close, closeSync, openSync, read, statfsSync, unlinkSync, writeSync } from "node:fs"
import { join } from "node:path"
import { randomUUID } from "node:crypto"
import { spilledBytesMax, spilledMemoryBytesMax, spillPieceBytes } from "../../limits.ts"
import type { BodyFault } from "../request.ts"
import { type TurnLimits, UploadTurn } from "./upload-turn.ts"

/** Where the bytes of uploads wait, and how many. */
export interface SpillSettings {
  readonly path: string
  /** Of all files; by default as much as the kind of the folder allows. */
  readonly bytesMax?: number | undefined
  /** Whether the disk has too little free space for files. */
  readonly isDiskLow?: (() => boolean) | undefined
  readonly turn?: TurnLimits | undefined
  /** Removes the name of an open file; tests let it fail. */
  readonly removeName?: ((path: string) => void) | undefined
}

/** The kinds of file systems that Linux keeps in memory: tmpfs and ramfs. */
const memoryTypes: ReadonlySet<number> = new Set([0x01021994, 0x858458f6])

/** What may wait in a folder: little where it is memory, or cannot be used. */
const bytesMaxOf = (path: string): number => {
  try {
    return memoryTypes.has(statfsSync(path).type) ? spilledMemoryBytesMax : spilledBytesMax
  } catch {
    return spilledMemoryBytesMax
  }
}

const full = (of: string, bytesMax: number): BodyFault => ({
  _tag: "NoRoom",
  shortage: { of, bytesMax, isOfFiles: true }
})

/** The folder of the files, and what all of them and those of each client network take. */
export class SpillFolder {
  readonly turn: TurnLimits | undefined
  readonly bytesMax: number
  private readonly path: string
  private readonly isDiskLow: () => boolean
  private readonly removeName: (path: string) => void
  private readonly networks = new Map<string, number>()
  private bytes = 0

  constructor(settings: SpillSettings) {
    const { bytesMax, isDiskLow = () => false, path, removeName = unlinkSync, turn } = settings
    this.path = path
    this.removeName = removeName
    this.bytesMax = bytesMax ?? bytesMaxOf(path)
    this.isDiskLow = isDiskLow
    this.turn = turn
  }

  /** Bytes in all files. */
  get size(): number {
    return this.bytes
  }

  /** Counts further bytes of a network; returns why not, if they may not be written. */
  take(network: string, bytes: number): BodyFault | undefined {
    if (this.isDiskLow()) return { _tag: "FileFailed", why: "DiskLow" }
    const networkBytesMax = Math.floor(this.bytesMax / 2)
    if (this.bytes + bytes > this.bytesMax) return full("the service", this.bytesMax)
    if (this.bytesOf(network) + bytes > networkBytesMax) return full(network, networkBytesMax)
    this.count(network, bytes)
    return undefined
  }

  give(network: string, bytes: number): void {
    this.count(network, -bytes)
  }

  private bytesOf(network: string): number {
    return this.networks.get(network) ?? 0
  }

  private count(network: string, bytes: number): void {
    this.bytes += bytes
    const sum = this.bytesOf(network) + bytes
    if (sum === 0) this.networks.delete(network)
    else this.networks.set(network, sum)
  }

  /** Opens a file that nobody else can open. */
  open(): number {
    const path = join(this.path, `upload-${randomUUID()}`)
    const file = openSync(path, "wx+", 0o600)
    try {
      this.removeName(path)
    } catch (error) {
      closeSync(file)
      throw error
    }
    return file
  }
}

const unwritable: BodyFault = { _tag: "FileFailed", why: "Unwritable" }

/** A queue of bytes in a file, for one reader. */
export class Spill {
  readonly turn: UploadTurn
  private readonly folder: SpillFolder
  private readonly networkOf: () => string
  private network = ""
  /** Why no file was made: it is tried once. */
  private unusable: BodyFault | undefined
  private file: number | undefined
  private writtenBytes = 0
  private readBytes = 0
  private isReading = false
  private isEnded = false

  /** `networkOf`: the client's network, whose files are bounded. */
  constructor(folder: SpillFolder, networkOf: () => string) {
    this.folder = folder
    this.networkOf = networkOf
    this.turn = new UploadTurn(folder.turn)
  }

  /** Whether bytes wait to be read. */
  get hasMore(): boolean {
    return this.readBytes < this.writtenBytes
  }

  /** Takes all of a piece; returns why not, if it may not, or the disk does not take it. */
  write(piece: Uint8Array): BodyFault | undefined {
    if (this.isEnded) return unwritable
    if (this.unusable !== undefined) return this.unusable
    if (!this.hasMore) this.network = this.networkOf()
    const fault = this.folder.take(this.network, piece.length)
    if (fault !== undefined) return fault
    try {
      this.file ??= this.folder.open()
      for (let at = 0; at < piece.length;) {
        at += writeSync(this.file, piece, at, piece.length - at, this.writtenBytes + at)
      }
    } catch {
      this.folder.give(this.network, piece.length)
      if (this.file === undefined) this.unusable = unwritable
      return unwritable
    }
    this.writtenBytes += piece.length
    return undefined
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
    this.folder.give(this.network, this.writtenBytes)
    this.writtenBytes = 0
    this.readBytes = 0
    if (this.file !== undefined) closeSync(this.file)
    this.file = undefined
  }

  /** Drops what was not read. */
  end(): void {
    if (this.isEnded) return
    this.isEnded = true
    this.folder.give(this.network, this.writtenBytes)
    if (this.file !== undefined && !this.isReading) closeSync(this.file)
  }
}
