/**
 * One group of changes, encoded into memory that the writer thread shares: an acknowledgement of 16
 * bytes (see acknowledgement.ts), then for each change the lengths of key and value (u32 each,
 * little endian; a value length of 2^32 - 1 removes the key) and their bytes.
 */
import { sharedBytes } from "../../limits.ts"
import { COMMITS_KEY } from "../keys.ts"
import { ACKNOWLEDGEMENT_BYTES, writeAcknowledgement } from "./acknowledgement.ts"

/** The value length of a removal. */
const REMOVED = 0xffffffff

/** The lengths of the key and the value. */
const HEADER_BYTES = 8

/** One change of an encoded batch. */
export type BatchChange =
  | { readonly type: "put"; readonly key: Buffer; readonly value: Buffer }
  | { readonly type: "del"; readonly key: Buffer }

/** Decodes the changes between two offsets of a batch; they share its memory. */
export const changesOf = (bytes: Buffer, from: number, to: number): Array<BatchChange> => {
  const changes: Array<BatchChange> = []
  for (let at = from; at < to;) {
    const keyAt = at + HEADER_BYTES
    const valueAt = keyAt + bytes.readUInt32LE(at)
    const valueBytes = bytes.readUInt32LE(at + 4)
    const key = bytes.subarray(keyAt, valueAt)
    at = valueBytes === REMOVED ? valueAt : valueAt + valueBytes
    if (valueBytes === REMOVED) changes.push({ type: "del", key })
    else changes.push({ type: "put", key, value: bytes.subarray(valueAt, at) })
  }
  return changes
}

/** A state of a batch, for {@link WriteBatch.rollBack}. */
export interface BatchMark {
  readonly length: number
  readonly commits: number
}

export class WriteBatch {
  /** Count of the commits in the store, with those of this batch. */
  commits = 0
  /** Bytes used. */
  length = ACKNOWLEDGEMENT_BYTES
  private bytes: Buffer = Buffer.from(new SharedArrayBuffer(sharedBytes))
  private view: DataView = new DataView(this.bytes.buffer)

  get shared(): SharedArrayBuffer {
    // This class allocates no other kind of memory.
    return this.bytes.buffer as unknown as SharedArrayBuffer
  }

  get isEmpty(): boolean {
    return this.length === ACKNOWLEDGEMENT_BYTES
  }

  /** Empties the batch; the store has `commits` so far. */
  begin(commits: number): void {
    this.commits = commits
    this.length = ACKNOWLEDGEMENT_BYTES
    if (this.bytes.length > sharedBytes) this.allocate(sharedBytes)
  }

  mark(): BatchMark {
    return { length: this.length, commits: this.commits }
  }

  rollBack({ commits, length }: BatchMark): void {
    this.commits = commits
    this.length = length
  }

  /** `key` must be ASCII, as the keys of log items are. */
  putItem(key: string, value: string): void {
    this.reserve(HEADER_BYTES + key.length + 3 * value.length)
    const keyAt = this.length + HEADER_BYTES
    const valueAt = keyAt + key.length
    this.bytes.write(key, keyAt, "latin1")
    const valueBytes = this.bytes.write(value, valueAt, "utf8")
    this.view.setUint32(this.length, key.length, true)
    this.view.setUint32(this.length + 4, valueBytes, true)
    this.length = valueAt + valueBytes
  }

  put(key: string, value: string): void {
    // A UTF-16 unit takes at most three bytes of UTF-8.
    this.reserve(HEADER_BYTES + 3 * (key.length + value.length))
    const keyAt = this.length + HEADER_BYTES
    const keyBytes = this.bytes.write(key, keyAt, "utf8")
    const valueBytes = this.bytes.write(value, keyAt + keyBytes, "utf8")
    this.view.setUint32(this.length, keyBytes, true)
    this.view.setUint32(this.length + 4, valueBytes, true)
    this.length = keyAt + keyBytes + valueBytes
  }

  putBytes(key: string, value: Uint8Array): void {
    this.reserve(HEADER_BYTES + 3 * key.length + value.length)
    const keyAt = this.length + HEADER_BYTES
    const keyBytes = this.bytes.write(key, keyAt, "utf8")
    this.bytes.set(value, keyAt + keyBytes)
    this.view.setUint32(this.length, keyBytes, true)
    this.view.setUint32(this.length + 4, value.length, true)
    this.length = keyAt + keyBytes + value.length
  }

  remove(key: string): void {
    this.reserve(HEADER_BYTES + 3 * key.length)
    const keyBytes = this.bytes.write(key, this.length + HEADER_BYTES, "utf8")
    this.view.setUint32(this.length, keyBytes, true)
    this.view.setUint32(this.length + 4, REMOVED, true)
    this.length += HEADER_BYTES + keyBytes
  }

  /** Adds the count of commits, and the acknowledgement to write after the batch is durable. */
  finish(): void {
    this.put(COMMITS_KEY, String(this.commits))
    writeAcknowledgement(this.bytes, this.commits)
  }

  private reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return
    const old = this.bytes
    this.allocate(Math.max(2 * old.length, this.length + more))
    this.bytes.set(old.subarray(0, this.length))
  }

  private allocate(size: number): void {
    this.bytes = Buffer.from(new SharedArrayBuffer(size))
    this.view = new DataView(this.bytes.buffer)
  }
}
