/** The record port on JetStream. */
import { Effect, Layer } from "effect"
import type { StorageFailure, StorageUnavailable } from "../errors.ts"
import {
  assertExpected,
  type RecordChange,
  type RecordEntry,
  type RecordRange,
  Records,
  type RecordsApi
} from "../ports/records.ts"
import { makeBucket } from "./buckets.ts"
import { Nats, type NatsApi } from "./connection.ts"
import { BATCH_MESSAGES_MAX, KEYS_MAX, RECORDS_BUCKET, WATCH_LAG_MS } from "./limits.ts"
import { Index, Indexes } from "./record-index.ts"
import { recordOf, recordsFilter, recordsPlace, recordSubject } from "./record-keys.ts"
import { RecordWatch } from "./record-watch.ts"
import { RecordWriter } from "./record-writer.ts"
import { isMarker } from "./record.ts"
import { info, last, lastOfMany, subjectsOf, unavailable } from "./reader.ts"

/** The part of a table that a range is within: keys that begin with `<part>/`, or all. */
const partOf = ({ prefix = "" }: RecordRange): string | undefined => {
  const slash = prefix.indexOf("/")
  return slash < 0 ? undefined : prefix.slice(0, slash)
}

class NatsRecords {
  private readonly nats: NatsApi
  private readonly indexes = new Indexes()
  private readonly listings = new Map<Index, Promise<void>>()
  private readonly watch: RecordWatch
  private readonly writer: RecordWriter

  constructor(nats: NatsApi) {
    this.nats = nats
    this.writer = new RecordWriter(nats)
    this.watch = new RecordWatch(
      nats,
      (table, change) => this.indexes.apply(table, change),
      () => this.indexes.clear()
    )
  }

  end(): void {
    this.watch.end()
  }

  readonly changesMax: RecordsApi["changesMax"] = BATCH_MESSAGES_MAX - 1

  readonly write: RecordsApi["write"] = (changes) => Effect.asVoid(this.submit([], changes))

  readonly writeIf: RecordsApi["writeIf"] = (expected, changes) =>
    Effect.suspend(() => {
      assertExpected(expected, changes)
      return this.submit(expected, changes)
    })

  private submit(
    expected: ReadonlyArray<RecordChange>,
    changes: ReadonlyArray<RecordChange>
  ): Effect.Effect<boolean, StorageFailure> {
    return Effect.callback<boolean, StorageFailure>((resume) => {
      const refusal = this.writer.refusal(changes)
      if (changes.length === 0 || refusal !== undefined) {
        resume(refusal === undefined ? Effect.succeed(true) : Effect.fail(refusal))
        return Effect.void
      }
      const job = {
        changes,
        expected,
        sinceMs: performance.now(),
        done: (isKept: boolean) => resume(Effect.succeed(isKept)),
        failed: (failure: StorageFailure) => resume(Effect.fail(failure)),
        abandoned: false
      }
      this.writer.submit(job)
      return Effect.sync(() => {
        job.abandoned = true
      })
    })
  }

  readonly get: RecordsApi["get"] = (table, key) =>
    asked(async () => {
      const stored = await last(this.nats, recordsPlace.stream, recordSubject(table, key))
      return stored === undefined || isMarker(stored) ? undefined : stored.text()
    })

  readonly range: RecordsApi["range"] = (table, range) =>
    asked(async () => {
      if (range.limit <= 0) return []
      this.watch.begin()
      // What was acknowledged before now, at whichever node, has a sequence up to this one.
      const { state } = await info(this.nats, recordsPlace.stream)
      const index = await this.indexAt(table, partOf(range), state.last_seq)
      const entries: Array<RecordEntry> = []
      let { after } = range
      while (entries.length < range.limit) {
        const count = Math.min(range.limit - entries.length, KEYS_MAX)
        const keys = index.page(range, after, count)
        entries.push(...await this.valuesOf(table, keys, state.last_seq))
        if (keys.length < count) break
        after = keys.at(-1)
      }
      return entries
    })

  readonly getMany: RecordsApi["getMany"] = (table, keys) =>
    asked(async () => {
      if (keys.length === 0) return []
      const { state } = await info(this.nats, recordsPlace.stream)
      const values = new Map<string, string>()
      for (let at = 0; at < keys.length; at += KEYS_MAX) {
        const some = keys.slice(at, at + KEYS_MAX)
        const entries = await this.valuesOf(table, [...new Set(some)], state.last_seq)
        for (const { key, value } of entries) values.set(key, value)
      }
      return keys.map((key) => values.get(key))
    })

  readonly keys: RecordsApi["keys"] = (table, ranges) =>
    asked(async () => {
      this.watch.begin()
      const { state } = await info(this.nats, recordsPlace.stream)
      const found: Array<ReadonlyArray<string>> = []
      for (const range of ranges) {
        const index = await this.indexAt(table, partOf(range), state.last_seq)
        found.push(index.page(range, range.after, Math.max(range.limit, 0)))
      }
      return found
    })

  /** An index that holds everything up to a sequence. */
  private async indexAt(table: string, part: string | undefined, seq: number): Promise<Index> {
    if (!await this.watch.reach(seq, WATCH_LAG_MS)) {
      // The watch is behind: one for this range alone.
      const index = new Index()
      await this.list(index, table, part)
      return index
    }
    const known = this.indexes.get(table, part)
    const index = known ?? this.indexes.add(table, part)
    if (known === undefined) {
      const listing = this.list(index, table, part)
      this.listings.set(index, listing)
      try {
        await listing
      } catch (error) {
        this.indexes.drop(table, part)
        throw error
      } finally {
        this.listings.delete(index)
      }
      this.indexes.shrink()
    } else await this.listings.get(known)
    return index
  }

  private async list(index: Index, table: string, part: string | undefined): Promise<void> {
    const keys: Array<string> = []
    let listedTo = Infinity
    const listing = subjectsOf(this.nats, recordsPlace.stream, recordsFilter(table, part))
    for await (const { lastSeq, subjects } of listing) {
      listedTo = Math.min(listedTo, lastSeq)
      for (const subject of subjects) keys.push(recordOf(subject).key)
    }
    index.list(keys, listedTo === Infinity ? 0 : listedTo)
  }

  private async valuesOf(
    table: string,
    keys: ReadonlyArray<string>,
    lastSeq: number
  ): Promise<ReadonlyArray<RecordEntry>> {
    if (keys.length === 0) return []
    const subjects = keys.map((key) => recordSubject(table, key))
    const stored = await lastOfMany(this.nats, recordsPlace.stream, subjects, lastSeq)
    const values = new Map<string, string>()
    for (const message of stored) {
      if (!isMarker(message)) values.set(message.subject, message.text())
    }
    return keys.flatMap((key) => {
      const value = values.get(recordSubject(table, key))
      return value === undefined ? [] : [{ key, value }]
    })
  }
}

const asked = <A>(ask: () => Promise<A>): Effect.Effect<A, StorageFailure> =>
  Effect.tryPromise({ try: ask, catch: unavailable })

/** The record port; makes its stream when it is not there. */
export const natsRecords: Layer.Layer<Records, StorageUnavailable, Nats> = Layer.effect(
  Records,
  Effect.gen(function*() {
    const nats = yield* Nats
    yield* Effect.tryPromise({ try: () => makeBucket(nats, RECORDS_BUCKET), catch: unavailable })
    return yield* Effect.acquireRelease(
      Effect.sync(() => new NatsRecords(nats)),
      (records) => Effect.sync(() => records.end())
    )
  })
)
