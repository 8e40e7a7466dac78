/** The view port: a node's copy of the cluster's records, in an embedded database of its own. */
import { Effect } from "effect"
import { rm } from "node:fs/promises"
import { StorageLocked, StorageUnavailable } from "../../actor/index.ts"
import type { OpenView, RecordChange, ViewApi } from "../../ports/index.ts"
import { type BatchChange, type Database, EngineMissing, type EngineName, isLocked,
  openViewDatabase, rootOf, viewEngine } from "../engine/index.ts"
import { recordKey, VIEW_KEY } from "../keys.ts"
import { ReadCache } from "./read-cache.ts"
import { recordsIn } from "./records.ts"

const changeOf = ({ key, table, value }: RecordChange): BatchChange => {
  const name = Buffer.from(recordKey(table, key))
  return value === null
    ? { type: "del", key: name }
    : { type: "put", key: name, value: Buffer.from(value) }
}

class EmbeddedView implements ViewApi {
  private readonly folder: string
  private readonly engine: EngineName
  private open: Database | undefined
  private readonly cache = new ReadCache(recordsIn(() => this.database()))
  readonly get = this.cache.get
  readonly getMany = this.cache.getMany
  readonly range = this.cache.range
  readonly keys = this.cache.keys

  constructor(folder: string, engine: EngineName) {
    this.folder = folder
    this.engine = engine
  }

  // The port's functions are fields, so that a caller may spread the view.
  readonly note = (): string | undefined => this.database().getText(VIEW_KEY)

  private database(): Database {
    if (this.open !== undefined) return this.open
    throw new StorageUnavailable({ detail: "the view is not open" })
  }

  /** Opens the database; replaces it by an empty one when it does not open. */
  async start(): Promise<void> {
    const { engine, folder } = this
    this.open = await openViewDatabase(folder, engine).catch(async (error: unknown) => {
      // The earlier process of this node may still run.
      if (isLocked(error)) throw new StorageLocked({ path: folder, pid: undefined })
      await rm(folder, { recursive: true, force: true })
      return openViewDatabase(folder, engine)
    })
  }

  async stop(): Promise<void> {
    const database = this.open
    this.open = undefined
    this.cache.clear()
    // If the last flush fails, the view loses the records and the note of their write together.
    await database?.close().catch(() => undefined)
  }

  readonly clear = async (): Promise<void> => {
    await this.stop()
    await rm(this.folder, { recursive: true, force: true })
    await this.start()
  }

  readonly write: ViewApi["write"] = async (changes, note) => {
    const noted = { type: "put", key: Buffer.from(VIEW_KEY), value: Buffer.from(note) } as const
    const tables = new Set(changes.map(({ table }) => table))
    for (const table of tables) this.cache.beginChange(table)
    try {
      await this.database().write([...changes.map(changeOf), noted])
    } finally {
      for (const table of tables) this.cache.endChange(table)
    }
  }
}

const detailOf = (error: unknown): string =>
  error instanceof EngineMissing ? error.detail : rootOf(error).detail

/**
 * The view in `folder`. Creates a missing view, and empties a corrupted view or one on another
 * database than `wanted`. Fails with StorageLocked when another process has opened the view, and
 * with StorageUnavailable when the view cannot be created or no database runs on this machine.
 */
export const embeddedView = (
  folder: string,
  wanted?: EngineName
): OpenView<StorageLocked | StorageUnavailable> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        const view = new EmbeddedView(folder, await viewEngine(wanted))
        await view.start()
        return view
      },
      catch: (error) =>
        error instanceof StorageLocked ? error : new StorageUnavailable({ detail: detailOf(error) })
    }),
    (view) => Effect.promise(() => view.stop())
  )
