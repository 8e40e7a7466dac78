/**
 * The storage port in memory, for tests and experiments. A system that starts on the store of an
 * ended system finds its contents, as it would on a disk.
 */
import { Effect, Layer } from "effect"
import { type Address, fromKey, keyOf, type LogItem, shardOf } from "../actor/index.ts"
import { assertCommit, type Commit, type CommitOutcome, conflictOf, firstChars, soleStream, Storage,
  type StorageApi, type StoredTimer, type TimerCursor, type TimerPage } from "../ports/index.ts"

interface Actor {
  state: string | undefined
  revision: number
  head: number
  /** Ascending by number. */
  log: Array<LogItem>
}

const emptyActor: Readonly<Actor> = { state: undefined, revision: 0, head: 0, log: [] }

/** Index of the first item with `n >= from`. */
const indexFrom = (log: ReadonlyArray<LogItem>, from: number): number => {
  let low = 0
  let high = log.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((log[middle]?.n ?? Infinity) < from) low = middle + 1
    else high = middle
  }
  return low
}

/** The stored actor after this commit, whose fences hold. `revision`: of a written state. */
const applyToActor = (stored: Readonly<Actor>, commit: Commit, revision: number): Actor => {
  const actor: Actor = { ...stored, log: stored === emptyActor ? [] : stored.log }
  for (const { n, value } of commit.append) actor.log.push({ n, value })
  for (const n of commit.remove) {
    const at = indexFrom(actor.log, n)
    if (actor.log[at]?.n === n) actor.log.splice(at, 1)
  }
  actor.head = Math.max(actor.head, commit.append.at(-1)?.n ?? 0)
  if (typeof commit.state === "string") {
    actor.head = Math.max(actor.head, commit.head)
    actor.state = commit.state
    actor.revision = revision
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

const itemsOf = (
  log: ReadonlyArray<LogItem> = [],
  from: number,
  limit: number,
  charsMax: number | undefined
): ReadonlyArray<LogItem> => {
  const start = indexFrom(log, from)
  return firstChars(log.slice(start, start + limit), charsMax)
}

/** Digits of a time in a key, so that keys sort by time. */
const timeDigits = 13

const timerKey = (atMs: number, actor: string): string =>
  `${String(atMs).padStart(timeDigits, "0")}/${actor}`

const timerOfKey = (key: string): StoredTimer => ({
  address: fromKey(key.slice(timeDigits + 1)),
  atMs: Number(key.slice(0, timeDigits)),
  signalRevision: undefined
})

/** Keys of one chunk after a split; a chunk of twice this length is split. */
const chunkKeys = 512

/** Index of the first of some ascending keys that is not before `key`. */
const indexIn = (keys: ReadonlyArray<string>, key: string): number => {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((keys[middle] ?? "") < key) low = middle + 1
    else high = middle
  }
  return low
}

/** Keys in order, in short chunks: in one long array, each change would move all later keys. */
class SortedKeys {
  private readonly chunks: Array<Array<string>> = [[]]

  add(key: string): void {
    const at = this.chunkOf(key)
    const chunk = this.chunks[at] ?? []
    chunk.splice(indexIn(chunk, key), 0, key)
    if (chunk.length >= 2 * chunkKeys) this.chunks.splice(at + 1, 0, chunk.splice(chunkKeys))
  }

  delete(key: string): void {
    const at = this.chunkOf(key)
    const chunk = this.chunks[at] ?? []
    if (chunk[indexIn(chunk, key)] === key) chunk.splice(indexIn(chunk, key), 1)
    if (chunk.length === 0 && this.chunks.length > 1) this.chunks.splice(at, 1)
  }

  /** At most `limit` keys after this one. */
  after(key: string, limit: number): ReadonlyArray<string> {
    const found: Array<string> = []
    for (let at = this.chunkOf(key); at < this.chunks.length && found.length < limit; at++) {
      const chunk = this.chunks[at] ?? []
      let index = indexIn(chunk, key)
      if (chunk[index] === key) index++
      found.push(...chunk.slice(index, index + limit - found.length))
    }
    return found
  }

  /** Index of the last chunk that begins at the key or before it. */
  private chunkOf(key: string): number {
    let low = 0
    let high = this.chunks.length
    while (high - low > 1) {
      const middle = (low + high) >>> 1
      if ((this.chunks[middle]?.[0] ?? "") <= key) low = middle
      else high = middle
    }
    return low
  }
}

/** The actors' own timers of each shard, in order of time. */
class OwnTimers {
  private readonly timesMs = new Map<string, number>()
  private readonly shards = new Map<number, SortedKeys>()

  timeOf(actor: string): number | undefined {
    return this.timesMs.get(actor)
  }

  set(address: Address, atMs: number | null): void {
    const actor = keyOf(address)
    const shard = shardOf(address)
    const keys = this.shards.get(shard) ?? new SortedKeys()
    this.shards.set(shard, keys)
    const before = this.timesMs.get(actor)
    if (before !== undefined) keys.delete(timerKey(before, actor))
    this.timesMs.delete(actor)
    if (atMs === null) return
    this.timesMs.set(actor, atMs)
    keys.add(timerKey(atMs, actor))
  }

  next(
    shard: number,
    limit: number,
    from: TimerCursor | undefined
  ): Pick<TimerPage, "next" | "timers"> {
    const after = from === undefined ? "" : from.after || timerKey(from.atMs, "")
    const keys = this.shards.get(shard)?.after(after, limit + 1) ?? []
    const timers = keys.slice(0, limit).map(timerOfKey)
    const last = timers.at(-1)
    const hasMore = last !== undefined && keys.length > limit
    return {
      timers,
      next: hasMore ? { atMs: last.atMs, after: keys[limit - 1] ?? "" } : undefined
    }
  }
}

const byTime = (one: StoredTimer, other: StoredTimer): number => one.atMs - other.atMs

const signalsOf = (signals: Iterable<StoredTimer>, shard: number): Array<StoredTimer> =>
  [...signals].filter(({ address }) => shardOf(address) === shard).sort(byTime)

/** A new, empty store. */
export const makeMemoryStorage = (): StorageApi => {
  const actors = new Map<string, Actor>()
  const timers = new OwnTimers()
  const signals = new Map<string, StoredTimer>()
  let commits = 0

  const apply = (commit: Commit): CommitOutcome => {
    assertCommit(commit)
    const key = keyOf(commit.address)
    const stored = actors.get(key) ?? emptyActor
    const conflict = conflictOf(commit, stored)
    if (conflict !== undefined) return { _tag: "Conflict", conflict }
    commits++
    const { address, consumedSignal } = commit
    if (signals.get(key)?.signalRevision === consumedSignal) signals.delete(key)
    const signalRevisions = commit.signals.map(({ address, atMs }) => {
      signals.set(keyOf(address), { address, atMs, signalRevision: commits })
      return commits
    })
    const timer = commit.state === null ? null : commit.timer
    if (timer !== undefined) timers.set(address, timer)
    if (commit.state === null) {
      actors.delete(key)
      return { _tag: "Committed", revision: 0, signalRevisions }
    }
    if (commit.state !== undefined || commit.append.length > 0) {
      actors.set(key, applyToActor(stored, commit, commits))
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
        const key = keyOf(address)
        const { head, revision, state } = actors.get(key) ?? emptyActor
        return { state, revision, head, timer: timers.timeOf(key) }
      }),
    read: (address, from, limit, _, charsMax) =>
      Effect.sync(() => itemsOf(actors.get(keyOf(address))?.log, from, limit, charsMax)),
    timers: (shard, limit, from) =>
      Effect.sync(() => {
        const shardSignals = signalsOf(signals.values(), shard)
        const { next, timers: own } = timers.next(shard, limit, from)
        const all = [...shardSignals.slice(0, limit), ...own].sort(byTime)
        return { timers: all, next, hasMoreSignals: shardSignals.length > limit }
      }),
    scan: (kind, after, limit) => Effect.sync(() => idsOf(actors, kind, after, limit)),
    health: Effect.void
  }
}

/** A new, empty store, whose contents end with the layer. */
export const memoryStorage: Layer.Layer<Storage> = Layer.sync(Storage, makeMemoryStorage)
