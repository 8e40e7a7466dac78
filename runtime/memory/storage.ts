/**
 * The storage port in memory: for tests and experiments. The contents of one
 * {@link makeMemoryStorage} survive the systems that run on it, as on a disk.
 */
import { Effect, Layer } from "effect"
import { type Address, fromKey, keyOf, type LogItem, shardOf } from "../actor/index.ts"
import { assertCommit, type Commit, type CommitOutcome, conflictOf, soleStream, Storage,
  type StorageApi, type StoredTimer, type TimerCursor, type TimerPage } from "../ports/index.ts"

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

/** The actor after a commit that has passed its fences. */
const changed = (stored: Readonly<Actor>, commit: Commit, commits: number): Actor => {
  const actor: Actor = { ...stored, log: stored === empty ? [] : stored.log }
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

/** Digits of a time, so that texts sort as times do. */
const timeDigits = 13

const timerText = (atMs: number, key: string): string =>
  `${String(atMs).padStart(timeDigits, "0")}/${key}`

const timerOfText = (text: string): StoredTimer => ({
  address: fromKey(text.slice(timeDigits + 1)),
  atMs: Number(text.slice(0, timeDigits)),
  signalRevision: undefined
})

/** Texts of one run; a run of twice this length is split. */
const runTexts = 512

/** Index of the first of some ascending texts that is not before `text`. */
const indexIn = (texts: ReadonlyArray<string>, text: string): number => {
  let low = 0
  let high = texts.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((texts[middle] ?? "") < text) low = middle + 1
    else high = middle
  }
  return low
}

/** Texts in order, in short runs: one long array would be moved as a whole by each change. */
class SortedTexts {
  private readonly runs: Array<Array<string>> = [[]]

  add(text: string): void {
    const at = this.runOf(text)
    const run = this.runs[at] ?? []
    run.splice(indexIn(run, text), 0, text)
    if (run.length >= 2 * runTexts) this.runs.splice(at + 1, 0, run.splice(runTexts))
  }

  delete(text: string): void {
    const at = this.runOf(text)
    const run = this.runs[at] ?? []
    if (run[indexIn(run, text)] === text) run.splice(indexIn(run, text), 1)
    if (run.length === 0 && this.runs.length > 1) this.runs.splice(at, 1)
  }

  /** At most `limit` texts after this one. */
  after(text: string, limit: number): ReadonlyArray<string> {
    const found: Array<string> = []
    for (let at = this.runOf(text); at < this.runs.length && found.length < limit; at++) {
      const run = this.runs[at] ?? []
      let index = indexIn(run, text)
      if (run[index] === text) index++
      found.push(...run.slice(index, index + limit - found.length))
    }
    return found
  }

  /** Index of the last run that begins at the text or before it. */
  private runOf(text: string): number {
    let low = 0
    let high = this.runs.length
    while (high - low > 1) {
      const middle = (low + high) >>> 1
      if ((this.runs[middle]?.[0] ?? "") <= text) low = middle
      else high = middle
    }
    return low
  }
}

/** The actors' own timers in order of time, shard by shard. */
class OwnTimers {
  private readonly timesMs = new Map<string, number>()
  private readonly shards = new Map<number, SortedTexts>()

  timeOf(key: string): number | undefined {
    return this.timesMs.get(key)
  }

  set(of: Address, atMs: number | null): void {
    const key = keyOf(of)
    const shard = shardOf(of)
    const texts = this.shards.get(shard) ?? new SortedTexts()
    this.shards.set(shard, texts)
    const before = this.timesMs.get(key)
    if (before !== undefined) texts.delete(timerText(before, key))
    this.timesMs.delete(key)
    if (atMs === null) return
    this.timesMs.set(key, atMs)
    texts.add(timerText(atMs, key))
  }

  next(
    shard: number,
    limit: number,
    from: TimerCursor | undefined
  ): Pick<TimerPage, "next" | "timers"> {
    const after = from === undefined ? "" : from.after || timerText(from.atMs, "")
    const texts = this.shards.get(shard)?.after(after, limit + 1) ?? []
    const timers = texts.slice(0, limit).map(timerOfText)
    const last = timers.at(-1)
    const hasMore = last !== undefined && texts.length > limit
    return {
      timers,
      next: hasMore ? { atMs: last.atMs, after: texts[limit - 1] ?? "" } : undefined
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
    const stored = actors.get(key) ?? empty
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
      actors.set(key, changed(stored, commit, commits))
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
        const { head, revision, state } = actors.get(key) ?? empty
        return { state, revision, head, timer: timers.timeOf(key) }
      }),
    read: (address, from, limit) =>
      Effect.sync(() => itemsOf(actors.get(keyOf(address))?.log ?? [], from, limit)),
    timers: (shard, limit, from) =>
      Effect.sync(() => {
        const waiting = signalsOf(signals.values(), shard)
        const { next, timers: own } = timers.next(shard, limit, from)
        const all = [...waiting.slice(0, limit), ...own].sort(byTime)
        return { timers: all, next, hasMoreSignals: waiting.length > limit }
      }),
    scan: (kind, after, limit) => Effect.sync(() => idsOf(actors, kind, after, limit)),
    health: Effect.void
  }
}

/** A store in memory; it ends with its layer. */
export const memoryStorage: Layer.Layer<Storage> = Layer.sync(Storage, makeMemoryStorage)
