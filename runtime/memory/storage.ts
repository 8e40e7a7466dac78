/**
 * The storage port in memory: for tests and for trying things out. What one
 * {@link makeMemoryStorage} holds survives the systems that run on it, as a disk would.
 */
import { Effect, Layer } from "effect"
import { fromKey, keyOf, type LogItem, shardOf } from "../actor/index.ts"
import { assertCommit, type Commit, type CommitOutcome, conflictOf, soleStream, Storage,
  type StorageApi, type StoredTimer, type TimerPage } from "../ports/index.ts"

interface Actor {
  state: string | undefined
  revision: number
  head: number
  /** Ascending by number. */
  log: Array<LogItem>
}

const empty: Readonly<Actor> = { state: undefined, revision: 0, head: 0, log: [] }

/** Index of the first item with `n >= from`. */
const firstAt = (log: ReadonlyArray<LogItem>, from: number): number => {
  let low = 0
  let high = log.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((log[middle]?.n ?? Infinity) < from) low = middle + 1
    else high = middle
  }
  return low
}

/** What a commit makes of an actor, its fences passed. */
const changed = (known: Readonly<Actor>, commit: Commit, commits: number): Actor => {
  const actor: Actor = { ...known, log: known === empty ? [] : known.log }
  for (const { n, value } of commit.append) actor.log.push({ n, value })
  for (const n of commit.remove) {
    const at = firstAt(actor.log, n)
    if (actor.log[at]?.n === n) actor.log.splice(at, 1)
  }
  actor.head = Math.max(actor.head, commit.append.at(-1)?.n ?? 0)
  if (typeof commit.state === "string") {
    actor.head = Math.max(actor.head, commit.head)
    actor.state = commit.state
    actor.revision = commits
  }
  return actor
}

const idsOf = (
  actors: ReadonlyMap<string, Actor>,
  kind: string,
  after: string | undefined,
  limit: number
): Array<string> => {
  const ids: Array<string> = []
  for (const [key, { state }] of actors) {
    if (state === undefined || !key.startsWith(`${kind}/`)) continue
    const { id } = fromKey(key)
    if (after === undefined || id > after) ids.push(id)
  }
  return ids.sort((one, other) => (one < other ? -1 : 1)).slice(0, limit)
}

const itemsOf = (log: ReadonlyArray<LogItem>, from: number, limit: number): Array<LogItem> => {
  const start = firstAt(log, from)
  return log.slice(start, start + limit)
}

const nextTimers = (
  stored: ReadonlyArray<StoredTimer>,
  shard: number,
  limit: number
): TimerPage => {
  const timers = stored.filter(({ address }) => shardOf(address) === shard)
    .sort((one, other) => one.atMs - other.atMs)
  return { timers: timers.slice(0, limit), complete: timers.length <= limit }
}

/** A store of its own, empty. */
export const makeMemoryStorage = (): StorageApi => {
  const actors = new Map<string, Actor>()
  const timers = new Map<string, StoredTimer>()
  const signals = new Map<string, StoredTimer>()
  let commits = 0

  const apply = (commit: Commit): CommitOutcome => {
    assertCommit(commit)
    const key = keyOf(commit.address)
    const known = actors.get(key) ?? empty
    const conflict = conflictOf(commit, known)
    if (conflict !== undefined) return { _tag: "Conflict", conflict }
    commits++
    const { address, consumedSignal } = commit
    if (signals.get(key)?.signalRevision === consumedSignal) signals.delete(key)
    const signalRevisions = commit.signals.map(({ address, atMs }) => {
      signals.set(keyOf(address), { address, atMs, signalRevision: commits })
      return commits
    })
    const timer = commit.state === null ? null : commit.timer
    if (timer === null) timers.delete(key)
    else if (timer !== undefined) {
      timers.set(key, { address, atMs: timer, signalRevision: undefined })
    }
    if (commit.state === null) {
      actors.delete(key)
      return { _tag: "Committed", revision: 0, signalRevisions }
    }
    if (commit.state !== undefined || commit.append.length > 0) {
      actors.set(key, changed(known, commit, commits))
    }
    return {
      _tag: "Committed",
      revision: commit.state === undefined ? commit.expected : commits,
      signalRevisions
    }
  }

  return {
    engine: "memory",
    streamOf: soleStream,
    commit: (group) => Effect.sync(() => group.map(apply)),
    load: (address) =>
      Effect.sync(() => {
        const { head, revision, state } = actors.get(keyOf(address)) ?? empty
        return { state, revision, head }
      }),
    read: (address, from, limit) =>
      Effect.sync(() => itemsOf(actors.get(keyOf(address))?.log ?? [], from, limit)),
    timers: (shard, limit) =>
      Effect.sync(() => nextTimers([...timers.values(), ...signals.values()], shard, limit)),
    scan: (kind, after, limit) => Effect.sync(() => idsOf(actors, kind, after, limit)),
    health: Effect.void
  }
}

/** A store in memory that is gone with its layer. */
export const memoryStorage: Layer.Layer<Storage> = Layer.sync(Storage, makeMemoryStorage)
