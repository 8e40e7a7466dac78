/** Writes groups to LevelDB: a batch with a flush each, by the threads of libuv. */
import { closeSync, fdatasync, openSync, write } from "node:fs"
import { promisify } from "node:util"
import type { ClassicLevel } from "classic-level"
import { ACKNOWLEDGEMENT_BYTES, SLOTS } from "./acknowledged.ts"
import { changesOf } from "./batch.ts"
import {
  type ClearRequest,
  type EngineWriter,
  rootOf,
  type WriteRequest,
  type WriterEvents
} from "./engine.ts"
import { acknowledgedSyncMs } from "./limits.ts"

const writeAt = promisify(write)

class LeveldbWriter implements EngineWriter {
  private readonly native: ClassicLevel<string, string>
  private readonly file: number
  private readonly events: WriterEvents
  private bytes: Buffer = Buffer.alloc(0)
  private turn = 0
  private syncTimer: NodeJS.Timeout | undefined = undefined
  /** A flush of the count that is under way. */
  private syncing: Promise<void> | undefined = undefined

  constructor(native: ClassicLevel<string, string>, acknowledged: string, events: WriterEvents) {
    this.native = native
    this.file = openSync(acknowledged, "r+")
    this.events = events
  }

  post(request: WriteRequest | ClearRequest): void {
    const done = request._tag === "Write" ? this.write(request) : this.clear(request)
    done.then(
      () => this.events.answered(undefined),
      (error: unknown) => {
        const { code, detail } = rootOf(error)
        this.events.answered({ code, message: detail })
      }
    )
  }

  async end(): Promise<void> {
    clearTimeout(this.syncTimer)
    await this.syncing
    // What is acknowledged is durable already: that this fails can only fail to warn later.
    await new Promise<void>((resolve) => fdatasync(this.file, () => resolve()))
    closeSync(this.file)
  }

  private async write({ length, shared }: WriteRequest): Promise<void> {
    if (shared !== undefined) this.bytes = Buffer.from(shared)
    const changes = changesOf(this.bytes, ACKNOWLEDGEMENT_BYTES, length)
    await this.native.batch<Buffer, Buffer>(changes, {
      sync: true,
      keyEncoding: "buffer",
      valueEncoding: "buffer"
    })
    const slot = SLOTS[this.turn++ % SLOTS.length] ?? 0
    await writeAt(this.file, this.bytes, 0, ACKNOWLEDGEMENT_BYTES, slot).catch(() => undefined)
    this.syncTimer ??= setTimeout(() => {
      this.syncTimer = undefined
      this.syncing = new Promise((resolve) => fdatasync(this.file, () => resolve()))
    }, acknowledgedSyncMs)
  }

  private clear({ gte, limit, lt }: ClearRequest): Promise<void> {
    return this.native.clear({ gte, lt, limit })
  }
}

/** Starts to write; `acknowledged` is the file of that name. */
export const startWriting = (
  native: ClassicLevel<string, string>,
  acknowledged: string,
  events: WriterEvents
): EngineWriter => new LeveldbWriter(native, acknowledged, events)
