/** The files of archives: written to a temporary name and renamed, and verified before use. */
import { Schema } from "effect"
import { createReadStream, existsSync } from "node:fs"
import { open, rename, rm } from "node:fs/promises"
import { dirname } from "node:path"
import { PassThrough, type Writable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { constants, createGunzip, createGzip } from "node:zlib"
import { gzipLevel, writeBytes } from "../limits.ts"
import { observed } from "../streams.ts"
import { ArchiveCorrupted, Decoder } from "./format.ts"

/** The file of a new archive already exists. */
export class FileExists extends Schema.TaggedError<FileExists>()("FileExists", {
  path: Schema.String
}) {}

/** Only the owner may read it: it contains the secret of the service. */
const fileMode = 0o600

const flushFolder = async (file: string): Promise<void> => {
  const folder = await open(dirname(file) || ".", "r")
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Calls `write` with a temporary file, which has its path only when it is complete. */
const writeFile = async (path: string, write: (file: Writable) => Promise<void>): Promise<void> => {
  if (existsSync(path)) throw new FileExists({ path })
  const partial = `${path}.partial`
  await rm(partial, { force: true })
  const file = await open(partial, "wx", fileMode)
  try {
    await write(file.createWriteStream({ flush: true }))
    if (existsSync(path)) throw new FileExists({ path })
    await rename(partial, path)
  } catch (error) {
    await rm(partial, { force: true })
    throw error
  }
  await flushFolder(path)
}

/** Writes an archive to a path, or to standard output for `-`; returns its bytes. */
export const save = async (
  path: string,
  bytes: AsyncIterable<Uint8Array>,
  isPlain: boolean
): Promise<number> => {
  let written = 0
  const count = (source: AsyncIterable<Uint8Array>) =>
    observed(source, (chunk) => {
      written += chunk.length
    })
  const compress = isPlain
    ? new PassThrough()
    : createGzip({ level: gzipLevel, chunkSize: writeBytes })
  const isFile = path !== "-"
  const write = (to: Writable) => pipeline(bytes, compress, count, to, { end: isFile })
  await (isFile ? writeFile(path, write) : write(process.stdout))
  return written
}

const isGzip = async (path: string): Promise<boolean> => {
  const file = await open(path, "r")
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(2), 0, 2, 0)
    return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b
  } finally {
    await file.close()
  }
}

async function* bytesOf(path: string): AsyncGenerator<Uint8Array> {
  const file = createReadStream(path, { highWaterMark: 1024 * 1024 })
  if (!await isGzip(path)) return yield* file
  const gunzip = createGunzip({ chunkSize: 512 * 1024, finishFlush: constants.Z_FINISH })
  file.once("error", (error) => gunzip.destroy(error))
  try {
    yield* file.pipe(gunzip)
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : ""
    if (!code.startsWith("Z_") && code !== "ERR_ZLIB") throw error
    throw new ArchiveCorrupted({ detail: `it is truncated or corrupted: ${String(error)}` })
  } finally {
    file.destroy()
    gunzip.destroy()
  }
}

/** The decoder of a file. */
export const decoderOf = (path: string): Decoder => new Decoder(bytesOf(path))
