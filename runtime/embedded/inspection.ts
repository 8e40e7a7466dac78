/** Verifies a stopped store, for `restante check`. */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { access, readdir } from "node:fs/promises"
import { join } from "node:path"
import { fromKey, StorageCorrupted, StorageUnavailable } from "../actor/index.ts"
import { type BlobRecord, blobsPath, fileNames, idOfName, parseBlob,
  uploadsPath } from "./blobs/index.ts"
import { asFailure, type Database, databasePath, type EngineName, pagesOf } from "./engine/index.ts"
import { bytesKey, dueKey, lastNumber, parseDue, parseSignal, timerKey } from "./keys.ts"
import { type OpenFailure, openFailure, openVerified, parseRecord } from "./storage/index.ts"

/** What a folder holds, and what contradicts itself in it. */
export interface EmbeddedInspection {
  /** The database of the folder; undefined when it could not be opened. */
  readonly engine: EngineName | undefined
  readonly counts: Readonly<ReturnType<typeof newCounts>>
  /** One sentence for each contradiction; empty when the store is intact. */
  readonly faults: ReadonlyArray<string>
}

const pageRows = 1_000

async function* rowsOf(
  database: Database,
  prefix: string,
  values = true
): AsyncIterable<readonly [string, string]> {
  for await (const page of pagesOf(() => database, prefix, { limit: pageRows, values })) {
    yield* page
  }
}

/** A log that an actor has, by its state record or without one. */
interface InspectedLog {
  readonly name: string
  /** The recorded head; Infinity without a state record. */
  readonly head: number
}

/** Counts that begin at 0. */
const newCounts = () => ({
  commits: 0,
  /** Actors with a state record, by kind. */
  actors: {} as Record<string, number>, // of any kinds
  logItems: 0,
  timers: 0,
  records: 0,
  blobs: 0,
  /** Bytes of all content. */
  blobBytes: 0,
  /** Log items of removed actors that are not deleted yet. */
  garbageItems: 0,
  /** Files that no blob names; the next start deletes them. */
  orphanFiles: 0
})

class StoreInspector {
  readonly faults: Array<string> = []
  readonly counts = newCounts()
  private readonly dataDir: string
  private readonly database: Database
  private readonly logs = new Map<number, InspectedLog>()
  private readonly garbage = new Set<number>()
  private readonly files = new Map<string, string>()

  constructor(dataDir: string, database: Database) {
    this.dataDir = dataDir
    this.database = database
  }

  async run(): Promise<void> {
    await this.readActors()
    await this.readLogs()
    await this.readTimers()
    for await (const _ of rowsOf(this.database, "record/", false)) this.counts.records++
    for await (const [id, text] of rowsOf(this.database, "blob/")) await this.readBlob(id, text)
    await this.readOrphans()
  }

  /** Each timer has a place in order of time, and no place is left over. */
  private async readTimers(): Promise<void> {
    for await (const [name, text] of rowsOf(this.database, "timer/")) {
      this.counts.timers++
      const atMs = Number(text)
      if (!Number.isFinite(atMs)) this.faults.push(`timer/${name} is unreadable: ${text}`)
      else if (this.database.getText(dueKey(fromKey(name), atMs)) === undefined) {
        this.faults.push(`timer/${name} is missing in order of time`)
      }
    }
    for await (const [place] of rowsOf(this.database, "due/", false)) {
      const { atMs, key } = parseDue(place.slice(place.indexOf("/") + 1))
      if (this.database.getText(timerKey(key)) !== String(atMs)) {
        this.faults.push(`due/${place} is of no timer`)
      }
    }
    for await (const [name, text] of rowsOf(this.database, "signal/")) {
      this.counts.timers++
      const { atMs, revision } = parseSignal(text)
      if (!Number.isFinite(atMs + revision)) {
        this.faults.push(`signal/${name} is unreadable: ${text}`)
      }
    }
  }

  private async readActors(): Promise<void> {
    for await (const [name, record] of rowsOf(this.database, "actor/")) {
      const kind = name.slice(0, name.indexOf("/"))
      this.counts.actors[kind] = (this.counts.actors[kind] ?? 0) + 1
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

  private addLog(epoch: number, log: InspectedLog): void {
    const other = this.logs.get(epoch)
    if (other !== undefined) this.faults.push(`${log.name} and ${other.name} share a log`)
    this.logs.set(epoch, log)
  }

  /**
   * The recorded head may be behind the log, because a commit without a state does not write the
   * record. So this verifies that the items after the head have no gap.
   */
  private async readLogs(): Promise<void> {
    let epoch = -1
    let last = 0
    for await (const [key] of rowsOf(this.database, "log/", false)) {
      const own = Number(key.slice(0, key.indexOf("/")))
      const n = lastNumber(key)
      if (this.garbage.has(own)) {
        this.counts.garbageItems++
        continue
      }
      const log = this.logs.get(own)
      this.counts.logItems++
      if (own !== epoch) last = 0
      epoch = own
      if (log === undefined) this.faults.push(`log item ${key} belongs to no actor`)
      else if (n > log.head && n !== Math.max(last, log.head) + 1) {
        this.faults.push(`actor ${log.name}: item ${n} follows ${Math.max(last, log.head)}`)
      }
      last = n
    }
  }

  private async readBlob(id: string, text: string): Promise<void> {
    this.counts.blobs++
    try {
      const record = parseBlob(text)
      this.counts.blobBytes += record.lengthBytes
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

  private async readOrphans(): Promise<void> {
    const uploads = await readdir(uploadsPath(this.dataDir)).catch(() => [])
    this.counts.orphanFiles += uploads.length
    for await (const name of fileNames(this.dataDir)) {
      if (this.files.get(name) !== idOfName(name)) this.counts.orphanFiles++
    }
  }
}

const inspectFolder = async (
  dataDir: string,
  wanted: EngineName | undefined
): Promise<EmbeddedInspection> => {
  await access(databasePath(dataDir)).catch(() => {
    throw new StorageUnavailable({
      detail: "there is no store",
      advice: "correct DATA_DIR or --data-dir"
    })
  })
  let opened: Awaited<ReturnType<typeof openVerified>>
  try {
    opened = await openVerified(dataDir, { create: false, restoring: false, wanted })
  } catch (error) {
    if (!(error instanceof StorageCorrupted)) throw error
    return { engine: undefined, counts: newCounts(), faults: [error.detail] }
  }
  const { commits, database } = opened
  const inspector = new StoreInspector(dataDir, database)
  try {
    await inspector.run()
  } catch (error) {
    const failure = asFailure(error)
    if (failure._tag !== "StorageCorrupted") throw failure
    inspector.faults.push(failure.detail)
  } finally {
    await database.close()
  }
  const { counts, faults } = inspector
  return { engine: database.engine, counts: { ...counts, commits }, faults }
}

/**
 * Reads all of a stopped store and checks that it agrees with itself. Opening recovers the
 * write-ahead log, as any start does. Corruption is a fault in the result. Fails with StorageLocked
 * when a process has the store open; `engine` as in `embedded`.
 */
export const inspect = (
  dataDir: string,
  engine?: EngineName
): Effect.Effect<EmbeddedInspection, OpenFailure> =>
  Effect.tryPromise({
    try: () => inspectFolder(dataDir, engine),
    catch: (error) => openFailure(dataDir, error)
  })
