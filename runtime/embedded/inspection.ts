/** Verifies a stopped store, for `restante check`. */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { access, readdir } from "node:fs/promises"
import { join } from "node:path"
import { StorageCorrupted, StorageUnavailable } from "../actor/index.ts"
import { arrivingPath, type BlobRecord, blobsPath, fileNames, idOfName,
  parseBlob } from "./blobs/index.ts"
import { asFailure, type Database, databasePath, type EngineName,
  readSpan } from "./engine/index.ts"
import { bytesKey, endOf, lastNumber } from "./keys.ts"
import { type OpenFailure, openFailure, openVerified, parseRecord } from "./storage/index.ts"

export interface EmbeddedInspection {
  /** The database that it stands on; undefined when it could not be opened. */
  readonly engine: EngineName | undefined
  readonly counts: {
    readonly commits: number
    /** Actors with a state record, by kind. */
    readonly actors: Readonly<Record<string, number>>
    readonly logItems: number
    readonly timers: number
    readonly records: number
    readonly blobs: number
    /** Of all blobs' contents. */
    readonly blobBytes: number
    /** Items of removed actors that are yet to be swept. */
    readonly garbageItems: number
    /** Files that nothing names; the next start removes them. */
    readonly leftOverFiles: number
  }
  /** What contradicts itself, a sentence each; empty when the store is sound. */
  readonly faults: ReadonlyArray<string>
}

/** Rows read at once. */
const PAGE = 1_000

async function* rowsOf(
  database: Database,
  prefix: string,
  values = true
): AsyncIterable<readonly [string, string]> {
  const lt = endOf(prefix)
  let from: { gte: string } | { gt: string } = { gte: prefix }
  for (;;) {
    const rows = await readSpan(() => database, { ...from, lt, limit: PAGE }, false, values)
    for (let at = 0; at < rows.length; at += 2) {
      yield [(rows[at] ?? "").slice(prefix.length), rows[at + 1] ?? ""]
    }
    if (rows.length < 2 * PAGE) return
    from = { gt: rows.at(-2) ?? "" }
  }
}

interface Log {
  readonly name: string
  /** Greatest number it may hold; Infinity when only its items tell. */
  readonly head: number
}

class Inspector {
  readonly faults: Array<string> = []
  readonly actors: Record<string, number> = {}
  readonly counted = {
    logItems: 0,
    timers: 0,
    records: 0,
    blobs: 0,
    blobBytes: 0,
    garbageItems: 0,
    leftOverFiles: 0
  }
  private readonly dataDir: string
  private readonly database: Database
  private readonly logs = new Map<number, Log>()
  private readonly garbage = new Set<number>()
  private readonly files = new Map<string, string>()

  constructor(dataDir: string, database: Database) {
    this.dataDir = dataDir
    this.database = database
  }

  async run(): Promise<void> {
    await this.readActors()
    await this.readLogs()
    for await (const [key, at] of rowsOf(this.database, "timer/")) {
      this.counted.timers++
      if (!Number.isFinite(Number(at))) this.faults.push(`timer ${key} is no time: ${at}`)
    }
    for await (const _ of rowsOf(this.database, "record/", false)) this.counted.records++
    for await (const [id, text] of rowsOf(this.database, "blob/")) await this.readBlob(id, text)
    await this.readLeftOvers()
  }

  private async readActors(): Promise<void> {
    for await (const [name, record] of rowsOf(this.database, "actor/")) {
      const kind = name.slice(0, name.indexOf("/"))
      this.actors[kind] = (this.actors[kind] ?? 0) + 1
      try {
        const { epoch, head } = parseRecord(record)
        this.addLog(epoch, { name, head })
      } catch {
        this.faults.push(`actor ${name}: unreadable state record`)
      }
    }
    for await (const [name, epoch] of rowsOf(this.database, "bare/")) {
      this.addLog(Number(epoch), { name, head: Infinity })
    }
    for await (const [epoch] of rowsOf(this.database, "garbage/")) this.garbage.add(Number(epoch))
  }

  private addLog(epoch: number, log: Log): void {
    const other = this.logs.get(epoch)
    if (other !== undefined) this.faults.push(`${log.name} and ${other.name} share a log`)
    this.logs.set(epoch, log)
  }

  /**
   * The recorded head may lag behind the log, since appending alone does not write the record;
   * so what is verified is that items beyond it follow upon it without a gap.
   */
  private async readLogs(): Promise<void> {
    let epoch = -1
    let last = 0
    for await (const [key] of rowsOf(this.database, "log/", false)) {
      const own = Number(key.slice(0, key.indexOf("/")))
      const n = lastNumber(key)
      if (this.garbage.has(own)) {
        this.counted.garbageItems++
        continue
      }
      const log = this.logs.get(own)
      this.counted.logItems++
      if (own !== epoch) last = 0
      epoch = own
      if (log === undefined) this.faults.push(`log item ${key} belongs to no actor`)
      else if (n > log.head && n !== Math.max(last, log.head) + 1) {
        this.faults.push(`actor ${log.name}: item ${n} follows upon ${Math.max(last, log.head)}`)
      }
      last = n
    }
  }

  private async readBlob(id: string, text: string): Promise<void> {
    this.counted.blobs++
    try {
      const record = parseBlob(text)
      this.counted.blobBytes += record.lengthBytes
      if (record.file !== undefined) this.files.set(record.file, id)
      const { digest, lengthBytes } = await this.digestOf(id, record)
      if (lengthBytes !== record.lengthBytes) {
        this.faults.push(`blob ${id}: ${lengthBytes} bytes instead of ${record.lengthBytes}`)
      } else if (digest !== record.digest) this.faults.push(`blob ${id}: its SHA-256 differs`)
    } catch (error) {
      this.faults.push(`blob ${id}: ${asFailure(error).detail}`)
    }
  }

  private async digestOf(id: string, { file }: BlobRecord) {
    const hash = createHash("sha256")
    let found = 0
    if (file === undefined) {
      const bytes = this.database.getBytes(bytesKey(id))
      if (bytes === undefined) throw new StorageCorrupted({ detail: "its bytes are missing" })
      return { digest: hash.update(bytes).digest("base64url"), lengthBytes: bytes.length }
    }
    for await (const chunk of createReadStream(join(blobsPath(this.dataDir), file))) {
      hash.update(chunk)
      found += chunk.length
    }
    return { digest: hash.digest("base64url"), lengthBytes: found }
  }

  private async readLeftOvers(): Promise<void> {
    const arriving = await readdir(arrivingPath(this.dataDir)).catch(() => [])
    this.counted.leftOverFiles += arriving.length
    for await (const name of fileNames(this.dataDir)) {
      if (this.files.get(name) !== idOfName(name)) this.counted.leftOverFiles++
    }
  }
}

const none: EmbeddedInspection["counts"] = {
  commits: 0,
  actors: {},
  logItems: 0,
  timers: 0,
  records: 0,
  blobs: 0,
  blobBytes: 0,
  garbageItems: 0,
  leftOverFiles: 0
}

const inspectFolder = async (
  dataDir: string,
  wanted: EngineName | undefined
): Promise<EmbeddedInspection> => {
  await access(databasePath(dataDir)).catch(() => {
    throw new StorageUnavailable({ detail: `there is no store in ${dataDir}` })
  })
  let opened: Awaited<ReturnType<typeof openVerified>>
  try {
    opened = await openVerified(dataDir, { create: false, restoring: false, wanted })
  } catch (error) {
    if (!(error instanceof StorageCorrupted)) throw error
    return { engine: undefined, counts: none, faults: [error.detail] }
  }
  const { commits, database } = opened
  const inspector = new Inspector(dataDir, database)
  try {
    await inspector.run()
  } catch (error) {
    const failure = asFailure(error)
    if (failure._tag !== "StorageCorrupted") throw failure
    inspector.faults.push(failure.detail)
  } finally {
    await database.close()
  }
  const { engine } = database
  const { actors, counted, faults } = inspector
  return { engine, counts: { commits, actors, ...counted }, faults }
}

/**
 * Reads all of a stopped store and compares it with itself. Opening recovers the write-ahead log,
 * as any start does. Corruption is a fault in the answer; StorageLocked when a process runs on it.
 * `engine` insists on a database, as `embedded` does.
 */
export const inspect = (
  dataDir: string,
  engine?: EngineName
): Effect.Effect<EmbeddedInspection, OpenFailure> =>
  Effect.tryPromise({
    try: () => inspectFolder(dataDir, engine),
    catch: (error) => openFailure(dataDir, error)
  })
