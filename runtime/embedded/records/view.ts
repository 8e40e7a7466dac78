/** The view port in a database of its own: records as in the embedded store, and what is noted. */
import { Effect } from "effect"
import { rm } from "node:fs/promises"
import { StorageLocked, StorageUnavailable } from "../../actor/index.ts"
import type { OpenView, RecordChange, ViewApi } from "../../ports/index.ts"
import { type BatchChange, type Database, EngineMissing, type EngineName, isLocked,
  openViewDatabase, rootOf, viewEngine } from "../engine/index.ts"
import { recordKey, VIEW_KEY } from "../keys.ts"
import { ReadCache } from "./read-cache.ts"
import { heldIn } from "./records.ts"

const changeOf = ({ key, table, value }: RecordChange): BatchChange => {
  const name = Buffer.from(recordKey(table, key))
  return value === null
    ? { type: "del", key: name }
    : { type: "put", key: name, value: Buffer.from(value) }
}

class EmbeddedView {
  private readonly folder: string
  private readonly engine: EngineName
  private open: Database | undefined
  readonly held = new ReadCache(heldIn(() => this.database()))

  constructor(folder: string, engine: EngineName) {
    this.folder = folder
    this.engine = engine
  }

  database(): Database {
    if (this.open !== undefined) return this.open
    throw new StorageUnavailable({ detail: "the view is not open" })
  }

  /** Opens what is there; what cannot be opened is made anew. */
  async start(): Promise<void> {
    const { engine, folder } = this
    this.open = await openViewDatabase(folder, engine).catch(async (error: unknown) => {
      // Another process has it, perhaps the last one of this node that still ends.
      if (isLocked(error)) throw new StorageLocked({ path: folder, pid: undefined })
      await rm(folder, { recursive: true, force: true })
      return openViewDatabase(folder, engine)
    })
  }

  async stop(): Promise<void> {
    const database = this.open
    this.open = undefined
    this.held.clear()
    // What it could not flush is lost with its note.
    await database?.close().catch(() => undefined)
  }

  async clear(): Promise<void> {
    await this.stop()
    await rm(this.folder, { recursive: true, force: true })
    await this.start()
  }

  async write(changes: ReadonlyArray<RecordChange>, note: string): Promise<void> {
    const noted = { type: "put", key: Buffer.from(VIEW_KEY), value: Buffer.from(note) } as const
    const tables = new Set(changes.map(({ table }) => table))
    for (const table of tables) this.held.changing(table)
    try {
      await this.database().write([...changes.map(changeOf), noted])
    } finally {
      for (const table of tables) this.held.changed(table)
    }
  }
}

const detailOf = (error: unknown): string =>
  error instanceof EngineMissing ? error.detail : rootOf(error).detail

/**
 * The view in `folder`, which is made when it is not there, and anew when it is corrupted. Fails with
 * StorageLocked when another process holds it, with StorageUnavailable when it cannot be made or no
 * database runs here. `wanted` insists on a database; a view of another one is read or made anew.
 */
export const embeddedView = (
  folder: string,
  wanted?: EngineName
): OpenView<StorageLocked | StorageUnavailable> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.tryPromise({
        try: async () => {
          const view = new EmbeddedView(folder, await viewEngine(wanted))
          await view.start()
          return view
        },
        catch: (error) =>
          error instanceof StorageLocked
            ? error
            : new StorageUnavailable({ detail: detailOf(error) })
      }),
      (view) => Effect.promise(() => view.stop())
    ),
    (view): ViewApi => ({
      get: view.held.get,
      getMany: view.held.getMany,
      range: view.held.range,
      keys: view.held.keys,
      note: () => view.database().getText(VIEW_KEY),
      write: (changes, note) => view.write(changes, note),
      clear: () => view.clear()
    })
  )
