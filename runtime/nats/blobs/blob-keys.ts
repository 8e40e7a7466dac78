/**
 * Keys of the bucket `blobs`, and the value of a head. The bytes of one upload are a set of chunks,
 * `chunk.<id>.<set>.<n>`; the head, `head.<id>`, names the set that counts.
 */
import { randomBytes } from "node:crypto"
import { StorageCorrupted } from "../../actor/index.ts"
import { blobsBucket } from "../../limits.ts"
import type { BlobInfo } from "../../ports/index.ts"
import { bucketNamed } from "../stream/index.ts"

export const blobsKv = bucketNamed(blobsBucket)

const heads = `${blobsKv.prefix}head.`

const chunks = `${blobsKv.prefix}chunk.`

/** The chunks of one upload. */
export interface ChunkSet {
  readonly id: string
  /** When the upload began (ms since the epoch in base 36), `-`, and a random text. */
  readonly set: string
}

/** The value of a head. */
export interface Head extends BlobInfo {
  readonly set: string
  /** Bytes of each chunk but the last. */
  readonly chunkBytes: number
}

export const newSet = (nowMs: number): string =>
  `${nowMs.toString(36)}-${randomBytes(9).toString("base64url")}`

export const begunAtMs = ({ set }: ChunkSet): number =>
  Number.parseInt(set.slice(0, set.indexOf("-")), 36)

export const headSubject = (id: string): string => heads + id

export const headsFilter = `${heads}*`

export const idOfHead = (subject: string): string => subject.slice(heads.length)

export const chunkSubject = ({ id, set }: ChunkSet, n: number): string =>
  `${chunks}${id}.${set}.${n}`

export const chunksFilter = ({ id, set }: ChunkSet): string => `${chunks}${id}.${set}.>`

/** The first chunks of all sets. */
export const firstChunksFilter = `${chunks}*.*.0`

export const setOfChunk = (subject: string): ChunkSet => {
  const [id = "", set = ""] = subject.slice(chunks.length).split(".")
  return { id, set }
}

export const parseHead = (text: string): Head => {
  try {
    // `NatsBlobs.writeHead` wrote it.
    return JSON.parse(text) as Head
  } catch {
    throw new StorageCorrupted({ detail: `unreadable head of a blob: ${text.slice(0, 60)}` })
  }
}
