/**
 * The thread that writes to RocksDB. It shares the open database by its handle, so that flushes
 * never block the event loop of the main thread.
 *
 * The thread runs the source text of `run` and `fill` (`new Worker(text, { eval: true })`). That
 * works in compiled files and under a test runner that compiles in memory, where a thread cannot
 * load a `.ts` file. So both functions use only their parameters and the globals of Node.
 */
import type * as Fs from "node:fs"
import type * as Threads from "node:worker_threads"
import { Worker } from "node:worker_threads"
import { acknowledgedSyncMs } from "../../limits.ts"
import { ACKNOWLEDGEMENT_BYTES, SLOTS } from "./acknowledgement.ts"
import type { ClearRequest, EngineWriter, WriteRequest, WriterEvents,
  WriterReply } from "./engine.ts"

/** Flushes the acknowledged count, releases the database, and ends the thread. */
interface EndRequest {
  readonly _tag: "End"
}

type WorkerRequest = WriteRequest | ClearRequest | EndRequest

interface Settings {
  readonly binding: string
  readonly handle: bigint
  readonly acknowledged: string
  readonly acknowledgementBytes: number
  readonly slots: ReadonlyArray<number>
  readonly syncMs: number
}

/** Changes that the binding writes together. */
export interface RocksBatch {
  readonly _put: (key: Uint8Array, value: Uint8Array, options: object) => void
  readonly _del: (key: Uint8Array, options: object) => void
  readonly _writeSync: (options: { readonly sync: boolean }) => void
  readonly _clear: () => void
  readonly _closeSync: () => void
}

interface SharedDatabase {
  readonly open: () => Promise<void>
  readonly batch: () => RocksBatch
  readonly _clear: (options: object) => Promise<void>
}

/** Decodes a batch, see write-batch.ts. */
const fill = (batch: RocksBatch, bytes: Buffer, from: number, to: number): void => {
  const removed = 0xffffffff
  const options = {}
  batch._clear()
  for (let at = from; at < to;) {
    const keyAt = at + 8
    const valueAt = keyAt + bytes.readUInt32LE(at)
    const valueBytes = bytes.readUInt32LE(at + 4)
    const key = bytes.subarray(keyAt, valueAt)
    at = valueBytes === removed ? valueAt : valueAt + valueBytes
    if (valueBytes === removed) batch._del(key, options)
    else batch._put(key, bytes.subarray(valueAt, at), options)
  }
}

const run = async (
  load: (name: string) => unknown,
  fill: (batch: RocksBatch, bytes: Buffer, from: number, to: number) => void
): Promise<void> => {
  // `load` is require, which has no types here.
  const { closeSync, fdatasyncSync, openSync, writeSync } = load("node:fs") as typeof Fs
  const { parentPort, workerData } = load("node:worker_threads") as typeof Threads
  const settings = workerData as Settings
  const { RocksLevel } = load(settings.binding) as {
    readonly RocksLevel: new(handle: bigint, options: object) => SharedDatabase
  }
  const database = new RocksLevel(settings.handle, {})
  await database.open()
  const batch = database.batch()
  const file = openSync(settings.acknowledged, "r+")
  let bytes: Buffer = Buffer.alloc(0)
  let turn = 0
  let syncTimer: NodeJS.Timeout | undefined

  // A failure loses nothing: the commits are durable already.
  const attempt = (task: () => void): void => {
    try {
      task()
    } catch {}
  }
  const write = ({ length, shared }: WriteRequest): void => {
    if (shared !== undefined) bytes = Buffer.from(shared)
    fill(batch, bytes, settings.acknowledgementBytes, length)
    batch._writeSync({ sync: true })
    attempt(() => {
      const slot = settings.slots[turn++ % settings.slots.length]
      writeSync(file, bytes, 0, settings.acknowledgementBytes, slot)
    })
    syncTimer ??= setTimeout(() => {
      syncTimer = undefined
      attempt(() => fdatasyncSync(file))
    }, settings.syncMs)
  }

  const end = (): void => {
    clearTimeout(syncTimer)
    attempt(() => fdatasyncSync(file))
    closeSync(file)
    batch._closeSync()
  }
  parentPort?.on("message", async (request: WorkerRequest) => {
    let reply: WriterReply
    try {
      if (request._tag === "Write") write(request)
      else if (request._tag === "Clear") await database._clear(request)
      else end()
    } catch (error) {
      // The binding and Node throw errors, mostly with a code.
      const { code = "", message } = error as { readonly code?: string; message: string }
      reply = { code, message }
    }
    parentPort.postMessage(reply)
    if (request._tag === "End") parentPort.close()
  })
}

/** Starts the thread on the open database of this handle. */
export const startThread = (
  binding: string,
  handle: bigint,
  acknowledged: string,
  events: WriterEvents
): EngineWriter => {
  const workerData: Settings = {
    binding,
    handle,
    acknowledged,
    acknowledgementBytes: ACKNOWLEDGEMENT_BYTES,
    slots: SLOTS,
    syncMs: acknowledgedSyncMs
  }
  const failing = "(error) => { setImmediate(() => { throw error }) }"
  const text = `(${run.toString()})(require, ${fill.toString()}).catch(${failing})`
  const worker = new Worker(text, { eval: true, execArgv: [], workerData })
  worker.on("message", events.replied)
  worker.on("error", (error) => events.exited(`the writing thread broke: ${String(error)}`))
  worker.on("exit", () => events.exited("the writing thread ended"))
  return {
    post: (request) => worker.postMessage(request),
    end: () =>
      new Promise((resolve) => {
        worker.once("exit", () => resolve())
        worker.postMessage({ _tag: "End" } satisfies WorkerRequest)
      })
  }
}
