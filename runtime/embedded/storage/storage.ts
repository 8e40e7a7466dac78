/** The storage port on the embedded store. */
import { Effect } from "effect"
import { type Address, keyOf, type LogItem, StorageCorrupted } from "../../actor/index.ts"
import { knownActorsMax } from "../../limits.ts"
import { assertCommit, type Commit, type CommitOutcome, conflictOf, type StorageApi,
  type StoredActor, type TimerPage } from "../../ports/index.ts"
import { type EngineSnapshot, engineTitles, readSpan, type WriteBatch } from "../engine/index.ts"
import * as keys from "../keys.ts"
import type { Sweeper } from "./log-sweeper.ts"
import type { EmbeddedStore } from "./store.ts"
import { nextTimers } from "./stored-timers.ts"

/** An actor as it is in the database. */
export interface FoundActor {
  readonly known: ActorFence
  readonly state: string | undefined
}

/** What the fences need to know of an actor. */
export interface ActorFence {
  readonly revision: number
  readonly head: number
  /** Names the actor's log, see {@link keys.logPrefix}; 0 when it has neither log nor record. */
  readonly epoch: number
  readonly prefix: string
}

export const unknown: ActorFence = { revision: 0, head: 0, epoch: 0, prefix: "" }

/** `<revision> <head> <epoch>` and the text, on the lines of a state record. */
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

/** The record of an actor, and the epoch of a log without one. */
export const recordsOf = (view: EngineSnapshot, key: string) => {
  const [record, bare] = view.getTexts([keys.actorKey(key), keys.bareKey(key)])
  return { parsed: record === undefined ? undefined : parseRecord(record), bare }
}

/** Names the log of an actor, 0 when it has neither log nor record. */
export const epochOf = (
  { bare, parsed }: {
    readonly parsed: { readonly epoch: number } | undefined
    readonly bare: string | undefined
  }
): number => parsed?.epoch ?? Number(bare ?? 0)

/** An actor as a view shows it; `head` where it is known already. */
export const lookUpIn = (
  view: EngineSnapshot,
  key: string,
  head: number | undefined
): FoundActor | Promise<FoundActor> => {
  const records = recordsOf(view, key)
  const { parsed } = records
  const epoch = epochOf(records)
  if (epoch === 0) return { known: unknown, state: undefined }
  const prefix = keys.logPrefix(epoch)
  const revision = parsed?.revision ?? 0
  const foundOf = (last: number): FoundActor => ({
    known: { revision, head: Math.max(parsed?.head ?? 0, last), epoch, prefix },
    state: parsed?.state
  })
  if (head !== undefined) return foundOf(head)
  const last = view.lastKey(prefix, keys.logEnd(prefix))
  return last instanceof Promise
    ? last.then((name) => foundOf(keys.lastNumber(name ?? "0")))
    : foundOf(keys.lastNumber(last ?? "0"))
}

/* What the database tells of an actor: its record, and the log that belongs to it. */

/** What is kept of one actor. */
interface Entry {
  readonly key: string
  /** What is durable, when that is remembered. */
  known: ActorFence | undefined
  /** What the group that is being written will make known. */
  staged: ActorFence | undefined
}

const loadedOf = ({ known: { head, revision }, state }: FoundActor): StoredActor => ({
  state,
  revision,
  head
})

class EmbeddedStorage {
  private readonly store: EmbeddedStore
  private readonly sweeper: Sweeper
  /** Actors lately written or loaded, oldest first: this process is the only writer. */
  private readonly entries = new Map<string, Entry>()

  constructor(store: EmbeddedStore, sweeper: Sweeper) {
    this.store = store
    this.sweeper = sweeper
    store.onReopened(() => this.entries.clear())
  }

  commit(group: ReadonlyArray<Commit>): ReturnType<StorageApi["commit"]> {
    for (const commit of group) assertCommit(commit)
    const outcomes: Array<CommitOutcome> = []
    const touched: Array<Entry> = []
    const garbage: Array<number> = []
    const fetched = this.store.isImmediate ? undefined : new Map<string, ActorFence>()
    let unfetched: unknown
    const fetch = fetched === undefined ? undefined : () => {
      unfetched = undefined
      return this.fetch(group, fetched).catch((error: unknown) => {
        unfetched = error
      })
    }
    const prepare = (batch: WriteBatch): void => {
      if (unfetched !== undefined) throw unfetched
      for (const commit of group) {
        outcomes.push(this.apply(batch, commit, touched, garbage, fetched))
      }
    }
    const durable = (): ReadonlyArray<CommitOutcome> => {
      for (const entry of touched) {
        const { staged } = entry
        if (staged === undefined) continue
        entry.staged = undefined
        entry.known = staged
        if (staged === unknown) this.forget(entry)
      }
      for (const epoch of garbage) this.sweeper.sweep(epoch)
      return outcomes
    }
    return this.store.submit(prepare, durable, () => {
      for (const entry of touched) {
        entry.staged = undefined
        this.forget(entry)
      }
    }, fetch)
  }

  load(address: Address): StoredActor | Promise<StoredActor> {
    const key = keyOf(address)
    const { commits } = this.store.writer
    const found = this.lookUp(key)
    if (found instanceof Promise) {
      return found.then((then) => {
        // What was read is of then: others may have written since.
        const entry = this.entries.get(key)
        const isNow = this.store.writer.commits === commits && entry?.staged === undefined
        if (isNow) this.remember(key, entry, then.known)
        return loadedOf(then)
      })
    }
    const entry = this.entries.get(key)
    if (entry?.staged !== undefined) return loadedOf(this.lookAgain(key, found))
    this.remember(key, entry, found.known)
    return loadedOf(found)
  }

  read(
    address: Address,
    from: number,
    limit: number
  ): ReadonlyArray<LogItem> | Promise<Array<LogItem>> {
    if (limit <= 0) return []
    const key = keyOf(address)
    const known = this.entries.get(key)?.known
    const epoch = known?.epoch ?? epochOf(recordsOf(this.store.database(), key))
    if (epoch === 0) return []
    const prefix = known?.prefix ?? keys.logPrefix(epoch)
    const span = { gte: prefix + keys.digits(Math.max(from, 0)), lt: keys.logEnd(prefix), limit }
    const rows = readSpan(this.store.database, span, false)
    return rows instanceof Promise ? rows.then(asItems) : asItems(rows)
  }

  timers(shard: number, limit: number): Promise<TimerPage> {
    return nextTimers(this.store.database, shard, limit)
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
    const asIds = (rows: ReadonlyArray<string>): Array<string> =>
      pairs(rows).map(([key]) => key.slice(prefix.length))
    const rows = readSpan(this.store.database, span, false, false)
    return rows instanceof Promise ? rows.then(asIds) : asIds(rows)
  }

  private remember(key: string, entry: Entry | undefined, known: ActorFence): void {
    if (known === unknown) {
      if (entry !== undefined) this.forget(entry)
    } else if (entry !== undefined) entry.known = known
    else this.enter({ key, known, staged: undefined })
  }

  /** Takes an entry in, and drops the oldest when there are too many. */
  private enter(entry: Entry): void {
    const { entries } = this
    entries.set(entry.key, entry)
    if (entries.size <= knownActorsMax) return
    for (const oldest of entries.values()) {
      entries.delete(oldest.key)
      if (oldest.staged === undefined) return
      // It is being written: it counts as new.
      entries.set(oldest.key, oldest)
    }
  }

  private forget(entry: Entry): void {
    if (this.entries.get(entry.key) === entry) this.entries.delete(entry.key)
  }

  private lookUp(key: string): FoundActor | Promise<FoundActor> {
    const cached = this.entries.get(key)
    const head = cached?.staged === undefined ? cached?.known?.head : undefined
    return this.store.database().atOnce((view) => lookUpIn(view, key, head))
  }

  /**
   * Where `atOnce` does not keep to one moment: the group under way may be written between the
   * reads of the record and of its log.
   */
  private lookAgain(key: string, first: FoundActor): FoundActor {
    for (let found = first;;) {
      const again = this.lookUpNow(key)
      const isSame = again.known.head === found.known.head &&
        again.known.revision === found.known.revision
      if (isSame) return found
      found = again
    }
  }

  private lookUpNow(key: string): FoundActor {
    const found = this.lookUp(key)
    // Whoever cannot look at once has fetched before.
    if (found instanceof Promise) throw new TypeError(`${key} was not fetched`)
    return found
  }

  /** What a group has to know of its actors; of the moment before it is prepared. */
  private async fetch(
    group: ReadonlyArray<Commit>,
    fetched: Map<string, ActorFence>
  ): Promise<void> {
    for (const { address } of group) {
      const key = keyOf(address)
      const known = this.entries.get(key)?.known ?? (await this.lookUp(key)).known
      fetched.set(key, known)
    }
  }

  private apply(
    batch: WriteBatch,
    commit: Commit,
    touched: Array<Entry>,
    garbage: Array<number>,
    fetched: ReadonlyMap<string, ActorFence> | undefined
  ): CommitOutcome {
    const { state } = commit
    const key = keyOf(commit.address)
    const entry = this.entries.get(key) ?? { key, known: undefined, staged: undefined }
    const known = entry.staged ?? entry.known ?? fetched?.get(key) ?? this.lookUpNow(key).known
    const conflict = conflictOf(commit, known)
    if (conflict !== undefined) return { _tag: "Conflict", conflict }
    const revision = ++batch.commits
    for (const { address, atMs } of commit.signals) {
      batch.put(keys.timerKey(address), String(atMs))
    }
    const timer = state === null ? null : commit.timer
    if (timer === null) batch.remove(keys.timerKey(commit.address))
    else if (timer !== undefined) batch.put(keys.timerKey(commit.address), String(timer))
    if (state === null) {
      this.erase(batch, key, known)
      if (known.head > 0) garbage.push(known.epoch)
      this.stage(entry, unknown, touched)
      return { _tag: "Committed", revision: 0 }
    }
    const outcome: CommitOutcome = {
      _tag: "Committed",
      revision: state === undefined ? commit.expected : revision
    }
    if (state === undefined && commit.append.length === 0) return outcome
    const epoch = known.epoch === 0 ? revision : known.epoch
    const prefix = known.epoch === 0 ? keys.logPrefix(epoch) : known.prefix
    for (const { n, value } of commit.append) batch.putItem(prefix + keys.digits(n), value)
    for (const n of commit.remove) batch.remove(prefix + keys.digits(n))
    let head = Math.max(known.head, commit.append.at(-1)?.n ?? 0)
    if (state === undefined) {
      if (known.epoch === 0) batch.put(keys.bareKey(key), String(epoch))
      this.stage(entry, { revision: known.revision, head, epoch, prefix }, touched)
      return outcome
    }
    head = Math.max(head, commit.head)
    batch.put(keys.actorKey(key), `${revision} ${head} ${epoch}\n${state}`)
    if (known.revision === 0 && known.epoch !== 0) batch.remove(keys.bareKey(key))
    this.stage(entry, { revision, head, epoch, prefix }, touched)
    return outcome
  }

  /** Removes the record; the log is out of sight with it, and swept afterwards. */
  private erase(batch: WriteBatch, key: string, known: ActorFence): void {
    batch.remove(keys.actorKey(key))
    batch.remove(keys.bareKey(key))
    if (known.head > 0) batch.put(keys.garbageKey(known.epoch), key)
  }

  private stage(entry: Entry, staged: ActorFence, touched: Array<Entry>): void {
    touched.push(entry)
    entry.staged = staged
    if (entry.known === undefined) this.enter(entry)
  }
}

const pairs = (rows: ReadonlyArray<string>): Array<readonly [string, string]> => {
  const found: Array<readonly [string, string]> = []
  for (let at = 0; at < rows.length; at += 2) found.push([rows[at] ?? "", rows[at + 1] ?? ""])
  return found
}

/** Log items of keys and values in turn. */
export const asItems = (rows: ReadonlyArray<string>): Array<LogItem> => {
  const items: Array<LogItem> = []
  for (let at = 0; at < rows.length; at += 2) {
    items.push({ n: keys.lastNumber(rows[at] ?? ""), value: rows[at + 1] ?? "" })
  }
  return items
}

/** The storage port upon an open store. */
export const makeStorage = (store: EmbeddedStore, sweeper: Sweeper): StorageApi => {
  const storage = new EmbeddedStorage(store, sweeper)
  return {
    engine: engineTitles[store.database().engine],
    commit: (group) => Effect.suspend(() => storage.commit(group)),
    load: (address) => store.reading(() => storage.load(address)),
    read: (address, from, limit) => store.reading(() => storage.read(address, from, limit)),
    timers: (shard, limit) => store.reading(() => storage.timers(shard, limit)),
    scan: (kind, after, limit) => store.reading(() => storage.scan(kind, after, limit)),
    health: Effect.suspend(() => {
      const failure = store.health()
      return failure === undefined ? Effect.void : Effect.fail(failure)
    })
  }
}
