/** The record port on JetStream. */
import { Effect, Layer } from "effect"
import { type StorageFailure, StorageUnavailable } from "../../actor/index.ts"
import { batchMessagesMax, giveUpMs, recordsBucket, viewLagWaitMs,
  viewUnreadyMs } from "../../limits.ts"
import { assertExpected, makeMemoryView, type OpenView, type RecordChange, Records, type RecordsApi,
  type RecordsInMemory, type ViewApi, Watchers } from "../../ports/index.ts"
import { asStorageUnavailable, Nats, type NatsApi, SharedCall } from "../connection/index.ts"
import { type BucketFailure, openBucket, streamEnd } from "../stream/index.ts"
import { LeaderRecords, TooManyKeys } from "./leader-records.ts"
import { recordsKv } from "./record-keys.ts"
import { RecordView } from "./record-view.ts"
import { RecordWriter } from "./record-writer.ts"

class NatsRecords implements RecordsApi {
  private readonly nats: NatsApi
  private readonly store: ViewApi
  private readonly view: RecordView
  private readonly writer: RecordWriter
  private readonly streamEnd: SharedCall<{ readonly seq: number; readonly created: string }>
  private readonly watchers = new Watchers()
  private startedMs: number | undefined

  constructor(nats: NatsApi, store: ViewApi) {
    this.nats = nats
    this.store = store
    this.writer = new RecordWriter(nats)
    this.view = new RecordView(nats, {
      ...store,
      write: async (changes, note) => {
        this.watchers.begin(changes)
        await store.write(changes, note).finally(() => this.watchers.end(changes))
      },
      clear: async () => {
        await store.clear()
        this.watchers.all()
      }
    })
    this.streamEnd = new SharedCall(() => streamEnd(nats, recordsKv.stream))
  }

  end(): Promise<void> {
    return this.view.end()
  }

  readonly changesMax: RecordsApi["changesMax"] = batchMessagesMax - 1

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
    attempt(() =>
      // A command that only reads single keys needs no view.
      this.view.hasStarted
        ? this.read((records) => records.get(table, key))
        : this.fromLeader(0).get(table, key)
    )

  readonly getMany: RecordsApi["getMany"] = (table, keys) =>
    attempt(async () =>
      keys.length === 0 ? [] : this.read((records) => records.getMany(table, keys))
    )

  readonly range: RecordsApi["range"] = (table, range) =>
    attempt(async () => range.limit <= 0 ? [] : this.read((records) => records.range(table, range)))

  readonly keys: RecordsApi["keys"] = (table, ranges) =>
    attempt(async () =>
      ranges.length === 0 ? [] : this.read((records) => records.keys(table, ranges))
    )

  readonly watch: RecordsApi["watch"] = this.watchers.watch

  readonly isCurrent: RecordsApi["isCurrent"] = attempt(async () => {
    const seq = await this.acknowledgedSequence()
    return this.view.reach(seq, this.lagMs)
  })

  readonly health: RecordsApi["health"] = Effect.suspend(() => {
    const isStarting = performance.now() - (this.startedMs ?? -Infinity) < viewUnreadyMs
    return this.view.isFilled || !isStarting
      ? Effect.void
      : Effect.fail(
        new StorageUnavailable({ detail: "the view of the records is being filled; retry later" })
      )
  })

  private fromLeader(lastSeq: number): LeaderRecords {
    return new LeaderRecords(this.nats, lastSeq)
  }

  /** How long to wait for the view; one that is being filled stays behind for longer. */
  private get lagMs(): number {
    return this.view.isFilling ? 0 : viewLagWaitMs
  }

  /** A sequence that covers everything acknowledged before the call, at any node. */
  private async acknowledgedSequence(): Promise<number> {
    this.view.start()
    this.startedMs ??= performance.now()
    const { created, seq } = await this.streamEnd.call()
    this.view.checkStream(created)
    return seq
  }

  /**
   * Reads the view once it has everything that was acknowledged before the call, at any node. Reads
   * the servers while the view is behind.
   */
  private async read<A>(ask: (records: RecordsInMemory) => A | Promise<A>): Promise<A> {
    const seq = await this.acknowledgedSequence()
    const local = await this.readView(ask, seq, this.lagMs)
    if (local !== undefined) return local.value
    try {
      return await ask(this.fromLeader(seq))
    } catch (error) {
      if (!(error instanceof TooManyKeys)) throw error
      const late = await this.readView(ask, seq, giveUpMs)
      if (late !== undefined) return late.value
      throw error
    }
  }

  private async readView<A>(
    ask: (records: RecordsInMemory) => A | Promise<A>,
    seq: number,
    timeoutMs: number
  ): Promise<{ readonly value: A } | undefined> {
    if (!await this.view.reach(seq, timeoutMs)) return undefined
    const { generation } = this.view
    try {
      const value = await ask(this.store)
      return this.view.generation === generation ? { value } : undefined
    } catch {
      // It is corrupted: whatever it is, it can be read again.
      this.view.rebuild()
      return undefined
    }
  }
}

const attempt = <A>(call: () => Promise<A>): Effect.Effect<A, StorageFailure> =>
  Effect.tryPromise({ try: call, catch: asStorageUnavailable })

/** The record port with a view that `open` opens; makes its stream where it does not exist. */
export const natsRecordsWith = (
  open: OpenView
): Layer.Layer<Records, BucketFailure, Nats> =>
  Layer.effect(
    Records,
    Effect.gen(function*() {
      const nats = yield* Nats
      yield* openBucket(nats, recordsBucket)
      const view = yield* open
      return yield* Effect.acquireRelease(
        Effect.sync(() => new NatsRecords(nats, view)),
        (records) => Effect.promise(() => records.end())
      )
    })
  )

/** The record port with a view in memory. */
export const natsRecords: Layer.Layer<Records, BucketFailure, Nats> = natsRecordsWith(
  Effect.sync(makeMemoryView)
)
