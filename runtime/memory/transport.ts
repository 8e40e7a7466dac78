/**
 * The transport port within one process, for a single node and for tests. Messages are passed
 * unchanged; listeners receive announcements in a microtask.
 */
import { Effect, Layer } from "effect"
import { type Address, AskTimeout, keyOf, NoOwner, shardOf } from "../actor/index.ts"
import { type HintListener, type RequestDone, type Serve, Transport,
  type TransportApi } from "../ports/index.ts"

/** How long a caller should wait for a shard to be served, ms. */
const RETRY_AFTER_MS = 100

const noOwner = (to: Address): NoOwner =>
  new NoOwner({ key: keyOf(to), retryAfterMs: RETRY_AFTER_MS })

const requestOf = (
  serve: Serve,
  ...[to, envelope, deadlineMs, done, trace]: Parameters<TransportApi["request"]>
): void => {
  let isDone = false
  const end: RequestDone = (failure, reply) => {
    if (isDone) return
    isDone = true
    clearTimeout(timer)
    done(failure, reply)
  }
  const giveUp = (): void => end(new AskTimeout({ key: keyOf(to), deadlineMs }), "")
  const timer = setTimeout(giveUp, deadlineMs)
  // A server with a defect may have decided the message.
  serve(to, envelope, trace).then(
    (reply) => reply === undefined ? end(noOwner(to), "") : end(undefined, reply),
    giveUp
  )
}

/** A new transport. */
export const makeMemoryTransport = (): TransportApi => {
  const servers = new Map<number, Serve>()
  const watchers = new Map<string, Set<HintListener>>()

  const announce = (about: Address, hint: string): void => {
    if (watchers.size === 0) return
    const key = keyOf(about)
    if (!watchers.has(key)) return
    queueMicrotask(() => {
      for (const listener of [...watchers.get(key) ?? []]) listener(hint)
    })
  }

  const watch = (about: Address, listener: HintListener): () => void => {
    const key = keyOf(about)
    // The same function may watch twice; each watch ends by itself.
    const own: HintListener = (hint) => listener(hint)
    const listeners = watchers.get(key) ?? new Set<HintListener>()
    watchers.set(key, listeners.add(own))
    return () => {
      listeners.delete(own)
      if (listeners.size === 0 && watchers.get(key) === listeners) watchers.delete(key)
    }
  }

  return {
    request: (...request) => {
      const [to, , , done] = request
      const serve = servers.get(shardOf(to))
      if (serve === undefined) done(noOwner(to), "")
      else requestOf(serve, ...request)
    },
    serve: (shard, serve) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => {
          if (servers.has(shard)) throw new Error(`shard ${shard} is served already`)
          servers.set(shard, serve)
        }),
        () => Effect.sync(() => servers.delete(shard))
      )),
    announce,
    watch
  }
}

/** A transport within this process. */
export const memoryTransport: Layer.Layer<Transport> = Layer.sync(Transport, makeMemoryTransport)
