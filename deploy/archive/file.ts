/** The files of archives: written to a temporary name and renamed, and verified before use. */
import { createReadStream, existsSync } from "node:fs"
import { open, rename, rm } from "node:fs/promises"
import { dirname } from "node:path"
import { Readable } from "node:stream"
import { constants, createGunzip, createGzip } from "node:zlib"
import { StorageCorrupted } from "../../runtime/index.ts"
import { gzipLevel, writeBytes } from "../limits.ts"
import { ArchiveCorrupted, Decoder } from "./format.ts"
import type { ArchivePart } from "./parts.ts"
import { readAll } from "./store-reader.ts"

/** The file of a new archive already exists. */
export class FileExists extends Error {}

/** Only the owner may read it: it contains the secret of the service. */
const MODE = 0o600

const compress = (source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> => {
  const gzip = createGzip({ level: gzipLevel, chunkSize: writeBytes })
  const readable = Readable.from(source, { objectMode: false, highWaterMark: writeBytes })
  readable.once("error", (error) => gzip.destroy(error))
  // An error before the first read needs a listener; the reader receives it, too.
  gzip.once("error", () => {})
  return readable.pipe(gzip)
}

const flushFolder = async (file: string): Promise<void> => {
  const folder = await open(dirname(file) || ".", "r")
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Writes to standard output with backpressure. */
const writeToOutput = async (source: AsyncIterable<Uint8Array>): Promise<number> => {
  let written = 0
  for await (const bytes of source) {
    written += bytes.length
    if (!process.stdout.write(bytes)) {
      await new Promise((resolve) => process.stdout.once("drain", resolve))
    }
  }
  return written
}

const writeToFile = async (path: string, source: AsyncIterable<Uint8Array>): Promise<number> => {
  if (existsSync(path)) throw new FileExists(path)
  const partial = `${path}.partial`
  await rm(partial, { force: true })
  const file = await open(partial, "wx", MODE)
  let written = 0
  try {
    for await (const bytes of source) {
      await file.writeFile(bytes)
      written += bytes.length
    }
    await file.sync()
  } catch (error) {
    await file.close()
    await rm(partial, { force: true })
    throw error
  }
  await file.close()
  if (existsSync(path)) throw new FileExists(path)
  await rename(partial, path)
  await flushFolder(path)
  return written
}

/** Writes an archive to a path, or to standard output for `-`; returns its bytes. */
export const save = (
  path: string,
  bytes: AsyncIterable<Uint8Array>,
  isPlain: boolean
): Promise<number> => {
  const source = isPlain ? bytes : compress(bytes)
  return path === "-" ? writeToOutput(source) : writeToFile(path, source)
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

/** Reads a whole archive without storing it. Throws {@link ArchiveCorrupted}. */
export const verify = async (
  path: string,
  onPart: (part: ArchivePart) => void
): Promise<Decoder> => {
  const decoder = decoderOf(path)
  try {
    await readAll(decoder.parts(), onPart)
  } catch (error) {
    if (error instanceof StorageCorrupted) throw new ArchiveCorrupted({ detail: error.detail })
    throw error
  }
  return decoder
}
