/** The storage port on the embedded store. */
import { Effect } from "effect"
import { type Address, keyOf, type LogItem, shardOf, StorageCorrupted,
  StorageUnavailable } from "../../actor/index.ts"
import { cachedFencesMax } from "../../limits.ts"
import { assertCommit, type Commit, type CommitOutcome, conflictOf, firstChars, noSignals,
  soleStream, type StorageApi, type StoredActor, type TimerCursor,
  type TimerPage } from "../../ports/index.ts"
import { type EngineSnapshot, engineTitles, keysIn, readSpan,
  type WriteBatch } from "../engine/index.ts"
import * as keys from "../keys.ts"
import type { LogSweeper } from "./log-sweeper.ts"
import type { EmbeddedStore } from "./store.ts"
import { nextTimers } from "./stored-timers.ts"

/** The stored values with which the store compares the fences of a commit. */
interface ActorFence {
  readonly revision: number
  readonly head: number
  /** Names the log of the actor, see {@link keys.logPrefix}; 0 without a log and a record. */
  readonly epoch: number
  readonly prefix: string
  /** The time of its own timer. */
  readonly timer: number | undefined
}

/** The fence of an actor without a log, a record and a timer. */
const noActor: ActorFence = { revision: 0, head: 0, epoch: 0, prefix: "", timer: undefined }

/** An actor in the database. */
interface FoundActor {
  readonly fence: ActorFence
  readonly state: string | undefined
}

/** The fence with another time of the timer. */
const withTimer = (fence: ActorFence, timer: number | undefined): ActorFence => {
  if (timer === fence.timer) return fence
  return fence.epoch === 0 && timer === undefined ? noActor : { ...fence, timer }
}

/** A state record: `<revision> <head> <epoch>`, a line feed, the state. */
export const parseRecord = (
  record: string
): { revision: number; head: number; epoch: number; state: string } => {
  const end = record.indexOf("\n")
  const [revision, head, epoch] = record.slice(0, end).split(" ").map(Number)
  if (
    end < 0 || !Number.isSafeInteger(revision) || revision === undefined || head === undefined ||
    epoch === undefined
  ) throw new StorageCorrupted({ detail: `unreadable state record: ${record.slice(0, 60)}` })
  return { revision, head, epoch, state: record.slice(end + 1) }
}

const timeOf = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Number(text)

/** Reads the record of an actor, the epoch of its log (0 when it has neither), and its timer. */
const readActorRecord = (view: EngineSnapshot, key: string) => {
  const [record, bare, timer] = view.getTexts([
    keys.actorKey(key),
    keys.bareKey(key),
    keys.timerKey(key)
  ])
  const parsed = record === undefined ? undefined : parseRecord(record)
  return {
    parsed,
    epoch: parsed?.epoch ?? Number(bare ?? 0),
    timer: timeOf(timer)
  }
}

/** Reads an actor; `knownHead` saves the search for the end of its log. */
const findActor = (
  view: EngineSnapshot,
  key: string,
  knownHead: number | undefined
): FoundActor | Promise<FoundActor> => {
  const { epoch, parsed, timer } = readActorRecord(view, key)
  if (epoch === 0) return { fence: withTimer(noActor, timer), state: undefined }
  const prefix = keys.logPrefix(epoch)
  const revision = parsed?.revision ?? 0
  const found = (lastNumber: number): FoundActor => ({
    fence: { revision, head: Math.max(parsed?.head ?? 0, lastNumber), epoch, prefix, timer },
    state: parsed?.state
  })
  if (knownHead !== undefined) return found(knownHead)
  const last = view.lastKey(prefix, keys.logEnd(prefix))
  return last instanceof Promise
    ? last.then((name) => found(keys.lastNumber(name ?? "0")))
    : found(keys.lastNumber(last ?? "0"))
}

const storedActor = ({ fence: { head, revision, timer }, state }: FoundActor): StoredActor => ({
  state,
  revision,
  head,
  timer
})

/** Log items of rows, in which keys and values alternate. */
export const itemsIn = (rows: ReadonlyArray<string>): Array<LogItem> => {
  const items: Array<LogItem> = []
  for (let at = 0; at < rows.length; at += 2) {
    items.push({ n: keys.lastNumber(rows[at] ?? ""), value: rows[at + 1] ?? "" })
  }
  return items
}

/** A cached fence. */
interface FenceEntry {
  readonly key: string
  /** The durable fence, when it is cached. */
  durable: ActorFence | undefined
  /** The fence after the group in flight. */
  staged: ActorFence | undefined
}

const revisionOfSignal = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : keys.parseSignal(text).revision

class EmbeddedStorage {
  private readonly store: EmbeddedStore
  private readonly sweeper: LogSweeper
  /** Fences of recent actors, oldest first; valid because this process is the only writer. */
  private readonly entries = new Map<string, FenceEntry>()
  /** Revisions of the signals that the batch in flight sets. */
  private readonly stagedSignals = new Map<string, number>()
  /**
   * The actors with an indeterminate commit, by key: its flush failed, but the log may have it. The
   * reopened database shows whether it does.
   */
  private readonly indeterminate = new Map<string, Address>()
  private readonly lateCommitListeners = new Set<(shard: number) => void>()

  constructor(store: EmbeddedStore, sweeper: LogSweeper) {
    this.store = store
    this.sweeper = sweeper
    store.onReopened(() => {
      const settled = [...this.indeterminate.values()]
      this.entries.clear()
      this.indeterminate.clear()
      this.reportSettled(settled)
    })
  }

  followLateCommits(onSettled: (shard: number) => void): () => void {
    this.lateCommitListeners.add(onSettled)
    return () => void this.lateCommitListeners.delete(onSettled)
  }

  private reportSettled(actors: ReadonlyArray<Address>): void {
    for (const shard of new Set(actors.map(shardOf))) {
      for (const onSettled of this.lateCommitListeners) onSettled(shard)
    }
  }

  commit(group: ReadonlyArray<Commit>): ReturnType<StorageApi["commit"]> {
    for (const commit of group) assertCommit(commit)
    const outcomes: Array<CommitOutcome> = []
    const touched: Array<FenceEntry> = []
    const garbage: Array<number> = []
    const fetched = this.store.isSynchronous ? undefined : new Map<string, ActorFence>()
    let fetchError: unknown
    let isGivenUp = false
    const fetch = fetched === undefined ? undefined : () => {
      fetchError = undefined
      return this.fetch(group, fetched).catch((error: unknown) => {
        fetchError = error
      })
    }
    const prepare = (batch: WriteBatch): void => {
      if (fetchError !== undefined) throw fetchError
      for (const commit of group) {
        outcomes.push(this.apply(batch, commit, touched, garbage, fetched))
      }
    }
    const durable = (): ReadonlyArray<CommitOutcome> => {
      this.stagedSignals.clear()
      for (const entry of touched) {
        const { staged } = entry
        if (staged === undefined) continue
        entry.staged = undefined
        entry.durable = staged
        if (staged === noActor) this.evict(entry)
      }
      for (const epoch of garbage) this.sweeper.sweep(epoch)
      if (isGivenUp) this.reportSettled(group.map(({ address }) => address))
      return outcomes
    }
    const written = this.store.submit(
      prepare,
      durable,
      () => {
        this.stagedSignals.clear()
        for (const entry of touched) {
          entry.staged = undefined
          this.evict(entry)
        }
      },
      fetch,
      (failure) => {
        for (const { address } of group) this.indeterminate.set(keyOf(address), address)
        return outcomes.map((outcome) =>
          outcome._tag === "Conflict" ? outcome : { _tag: "Indeterminate", failure }
        )
      }
    )
    // The flush continues: it may stall longer than the caller waits.
    return Effect.onInterrupt(written, () =>
      Effect.sync(() => {
        isGivenUp = true
      }))
  }

  /**
   * Throws while a commit of the actor is indeterminate. An activation that began now would not see
   * the commit, which the reopened database may have.
   */
  private assertKnown(key: string): void {
    if (!this.indeterminate.has(key)) return
    const detail = `the last commit of ${key} is indeterminate: wait until the store has reopened`
    throw this.store.writer.failure ?? new StorageUnavailable({ detail })
  }

  load(address: Address): StoredActor | Promise<StoredActor> {
    const key = keyOf(address)
    this.assertKnown(key)
    const { commits } = this.store.writer
    const found = this.find(key)
    if (found instanceof Promise) {
      return found.then((actor) => {
        const entry = this.entries.get(key)
        // The fence is not cached if a commit may have changed the actor since the snapshot.
        const isCurrent = this.store.writer.commits === commits && entry?.staged === undefined
        if (isCurrent) this.cache(key, entry, actor.fence)
        return storedActor(actor)
      })
    }
    const entry = this.entries.get(key)
    if (entry?.staged !== undefined) return storedActor(this.findStable(key, found))
    this.cache(key, entry, found.fence)
    return storedActor(found)
  }

  read(
    address: Address,
    from: number,
    limit: number,
    charsMax: number | undefined
  ): ReadonlyArray<LogItem> | Promise<ReadonlyArray<LogItem>> {
    if (limit <= 0) return []
    const key = keyOf(address)
    const fence = this.entries.get(key)?.durable
    const epoch = fence?.epoch ?? readActorRecord(this.store.database(), key).epoch
    if (epoch === 0) return []
    const prefix = fence?.prefix ?? keys.logPrefix(epoch)
    const gte = prefix + keys.digits(Math.max(from, 0))
    const span = { gte, lt: keys.logEnd(prefix), limit, charsMax }
    const rows = readSpan(this.store.database, span, false)
    const itemsOf = (all: ReadonlyArray<string>) => firstChars(itemsIn(all), charsMax)
    return rows instanceof Promise ? rows.then(itemsOf) : itemsOf(rows)
  }

  timers(shard: number, limit: number, from: TimerCursor | undefined): Promise<TimerPage> {
    return nextTimers(this.store.database, shard, limit, from)
  }

  scan(
    kind: string,
    after: string | undefined,
    limit: number
  ): ReadonlyArray<string> | Promise<Array<string>> {
    if (limit <= 0) return []
    const prefix = keys.actorKey(`${kind}/`)
    const lt = keys.endOf(prefix)
    const span = after === undefined
      ? { gte: prefix, lt, limit }
      : { gt: prefix + after, lt, limit }
    const rows = readSpan(this.store.database, span, false, false)
    return rows instanceof Promise
      ? rows.then((all) => keysIn(all, prefix.length))
      : keysIn(rows, prefix.length)
  }

  private cache(key: string, entry: FenceEntry | undefined, fence: ActorFence): void {
    if (fence === noActor) {
      if (entry !== undefined) this.evict(entry)
    } else if (entry !== undefined) entry.durable = fence
    else this.add({ key, durable: fence, staged: undefined })
  }

  /** Adds an entry, and evicts the oldest when there are too many. */
  private add(entry: FenceEntry): void {
    const { entries } = this
    entries.set(entry.key, entry)
    if (entries.size <= cachedFencesMax) return
    for (const oldest of entries.values()) {
      entries.delete(oldest.key)
      if (oldest.staged === undefined) return
      // The group in flight needs this entry, so it moves to the end.
      entries.set(oldest.key, oldest)
    }
  }

  private evict(entry: FenceEntry): void {
    if (this.entries.get(entry.key) === entry) this.entries.delete(entry.key)
  }

  private find(key: string): FoundActor | Promise<FoundActor> {
    const cached = this.entries.get(key)
    const head = cached?.staged === undefined ? cached?.durable?.head : undefined
    return this.store.database().withSnapshot((view) => findActor(view, key, head))
  }

  /**
   * A synchronous database has no snapshots: the group in flight may become visible between the
   * reads of a record and its log. So this reads until two results agree.
   */
  private findStable(key: string, first: FoundActor): FoundActor {
    for (let found = first;;) {
      const next = this.findNow(key)
      const isSame = next.fence.head === found.fence.head &&
        next.fence.revision === found.fence.revision
      if (isSame) return found
      found = next
    }
  }

  private findNow(key: string): FoundActor {
    const found = this.find(key)
    // On an asynchronous database, `fetch` has read the group's actors before.
    if (found instanceof Promise) throw new TypeError(`${key} was not fetched`)
    return found
  }

  /** Reads the fences of a group's actors before the group is prepared. */
  private async fetch(
    group: ReadonlyArray<Commit>,
    fetched: Map<string, ActorFence>
  ): Promise<void> {
    for (const { address } of group) {
      const key = keyOf(address)
      fetched.set(key, this.entries.get(key)?.durable ?? (await this.find(key)).fence)
    }
  }

  private applySignals(
    batch: WriteBatch,
    { address: self, consumedSignal, signals: decided }: Commit,
    revision: number
  ): ReadonlyArray<number> {
    const staged = this.stagedSignals
    if (consumedSignal !== undefined) {
      const key = keys.signalKey(self)
      const current = staged.get(key) ?? revisionOfSignal(this.store.database().getText(key))
      if (current === consumedSignal) batch.remove(key)
    }
    if (decided.length === 0) return noSignals
    return decided.map(({ address, atMs }) => {
      const key = keys.signalKey(address)
      batch.put(key, `${atMs} ${revision}`)
      staged.set(key, revision)
      return revision
    })
  }

  /**
   * Writes the actor's own timer, and in the same commit removes the `due/` key of its earlier time
   * `before`. Returns the time after the commit.
   */
  private applyTimer(
    batch: WriteBatch,
    { address, firedTimer, state, timer: decided }: Commit,
    key: string,
    before: number | undefined
  ): number | undefined {
    const timer = state === null ? null : decided
    if (timer === undefined && firedTimer === undefined) return before
    const after = timer === undefined ? before : timer ?? undefined
    if (before !== undefined && before !== after) batch.remove(keys.dueKey(address, before))
    if (firedTimer !== undefined && firedTimer !== before && firedTimer !== after) {
      batch.remove(keys.dueKey(address, firedTimer))
    }
    if (after === before) return after
    const name = keys.timerKey(key)
    if (after === undefined) batch.remove(name)
    else {
      batch.put(name, String(after))
      batch.put(keys.dueKey(address, after), "")
    }
    return after
  }

  private apply(
    batch: WriteBatch,
    commit: Commit,
    touched: Array<FenceEntry>,
    garbage: Array<number>,
    fetched: ReadonlyMap<string, ActorFence> | undefined
  ): CommitOutcome {
    const { state } = commit
    const key = keyOf(commit.address)
    const entry = this.entries.get(key) ?? { key, durable: undefined, staged: undefined }
    const fence = entry.staged ?? entry.durable ?? fetched?.get(key) ?? this.findNow(key).fence
    const conflict = conflictOf(commit, fence)
    if (conflict !== undefined) return { _tag: "Conflict", conflict }
    const revision = ++batch.commits
    const signalRevisions = this.applySignals(batch, commit, revision)
    const timer = this.applyTimer(batch, commit, key, fence.timer)
    if (state === null) {
      this.erase(batch, key, fence)
      if (fence.head > 0) garbage.push(fence.epoch)
      this.stage(entry, noActor, touched)
      return { _tag: "Committed", revision: 0, signalRevisions }
    }
    const outcome: CommitOutcome = {
      _tag: "Committed",
      revision: state === undefined ? commit.expected : revision,
      signalRevisions
    }
    if (state === undefined && commit.append.length === 0) {
      if (timer !== fence.timer) this.stage(entry, withTimer(fence, timer), touched)
      return outcome
    }
    const epoch = fence.epoch === 0 ? revision : fence.epoch
    const prefix = fence.epoch === 0 ? keys.logPrefix(epoch) : fence.prefix
    for (const { n, value } of commit.append) batch.putItem(prefix + keys.digits(n), value)
    for (const n of commit.remove) batch.remove(prefix + keys.digits(n))
    let head = Math.max(fence.head, commit.append.at(-1)?.n ?? 0)
    if (state === undefined) {
      if (fence.epoch === 0) batch.put(keys.bareKey(key), String(epoch))
      this.stage(entry, { revision: fence.revision, head, epoch, prefix, timer }, touched)
      return outcome
    }
    head = Math.max(head, commit.head)
    batch.put(keys.actorKey(key), `${revision} ${head} ${epoch}\n${state}`)
    if (fence.revision === 0 && fence.epoch !== 0) batch.remove(keys.bareKey(key))
    this.stage(entry, { revision, head, epoch, prefix, timer }, touched)
    return outcome
  }

  /** Removes the record, and with it the only reference to the log, which the sweeper deletes. */
  private erase(batch: WriteBatch, key: string, fence: ActorFence): void {
    batch.remove(keys.actorKey(key))
    batch.remove(keys.bareKey(key))
    if (fence.head > 0) batch.put(keys.garbageKey(fence.epoch), key)
  }

  private stage(entry: FenceEntry, staged: ActorFence, touched: Array<FenceEntry>): void {
    touched.push(entry)
    entry.staged = staged
    if (entry.durable === undefined) this.add(entry)
  }
}

/** The storage port on an open store. */
export const makeStorage = (store: EmbeddedStore, sweeper: LogSweeper): StorageApi => {
  const storage = new EmbeddedStorage(store, sweeper)
  return {
    engine: engineTitles[store.database().engine],
    streamOf: soleStream,
    commit: (group) => Effect.suspend(() => storage.commit(group)),
    load: (address) => store.read(() => storage.load(address)),
    read: (address, from, limit, _, charsMax) =>
      store.read(() => storage.read(address, from, limit, charsMax)),
    timers: (shard, limit, from) => store.read(() => storage.timers(shard, limit, from)),
    scan: (kind, after, limit) => store.read(() => storage.scan(kind, after, limit)),
    followLateCommits: (onSettled) => storage.followLateCommits(onSettled),
    health: Effect.suspend(() => {
      const failure = store.health()
      return failure === undefined ? Effect.void : Effect.fail(failure)
    })
  }
}
