/**
 * LevelDB's write-ahead logs (doc/log_format.md of LevelDB). LevelDB leaves out what is damaged in
 * them and goes on with the next block, in silence. What was being written when a process or the
 * power was lost is at the end; whatever a batch follows was durable. Every batch has a sequence
 * number too, so that one that is missing without a trace shows.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { crc32c, masked } from "./crc32c.ts"
import { unlessGone } from "./folders.ts"

const BLOCK_BYTES = 32 * 1024
const HEADER_BYTES = 7
const [FULL, FIRST, LAST] = [1, 2, 4]
/** At the start of a batch: its sequence number (u64) and how many changes it has (u32). */
const BATCH_HEADER_BYTES = 12

interface Fragment {
  readonly type: number
  readonly data: Buffer
}

/** The fragments of a log, undefined for each that is damaged. */
function* fragmentsOf(log: Buffer): Generator<Fragment | undefined> {
  for (let at = 0; at < log.length;) {
    const left = Math.min(BLOCK_BYTES - at % BLOCK_BYTES, log.length - at)
    const end = left < HEADER_BYTES ? Infinity : HEADER_BYTES + log.readUInt16LE(at + 4)
    if (end > left) {
      // The rest of a block is padding, or its lengths cannot be trusted.
      if (left >= HEADER_BYTES) yield undefined
      at += left
      continue
    }
    const isWhole = masked(crc32c(log.subarray(at + 6, at + end))) === log.readUInt32LE(at)
    yield isWhole
      ? { type: log.readUInt8(at + 6), data: log.subarray(at + HEADER_BYTES, at + end) }
      : undefined
    at += end
  }
}

/** The batches of a log that are whole, and undefined for what is damaged. */
function* batchesOf(log: Buffer): Generator<Buffer | undefined> {
  let parts: Array<Buffer> = []
  for (const fragment of fragmentsOf(log)) {
    if (fragment === undefined) {
      parts = []
      yield undefined
      continue
    }
    const { data, type } = fragment
    if (type === FULL) yield data
    else if (type === FIRST) parts = [data]
    else if (parts.length > 0) parts.push(data)
    if (type === LAST && parts.length > 0) {
      yield Buffer.concat(parts)
      parts = []
    }
  }
}

/** Whoever has the database open may have put it away. */
const readLog = (path: string): Buffer => unlessGone(() => readFileSync(path), Buffer.alloc(0))

/** Where the logs in a folder lack a batch that is followed by another; undefined when nowhere. */
export const logGap = (folder: string): string | undefined => {
  const logs = readdirSync(folder).filter((name) => name.endsWith(".log"))
  let next: bigint | undefined
  let damaged: string | undefined
  for (const name of logs.sort((one, other) => parseInt(one, 10) - parseInt(other, 10))) {
    for (const batch of batchesOf(readLog(join(folder, name)))) {
      if (batch === undefined) {
        damaged ??= name
        continue
      }
      if (damaged !== undefined) return `${damaged} is damaged before the end of what was written`
      if (batch.length < BATCH_HEADER_BYTES) return `${name} holds a batch without a header`
      const sequence = batch.readBigUInt64LE(0)
      if (next !== undefined && sequence !== next) {
        return `${name} goes on with change ${sequence}, and ${next} is missing`
      }
      next = sequence + BigInt(batch.readUInt32LE(8))
    }
  }
  return undefined
}
