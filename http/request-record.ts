/**
 * The record of a request with an Idempotency-Key, for changes of what others may change too. The
 * first attempt writes it with its change. A repetition after an unknown outcome finds it, whatever
 * others have changed since, and changes nothing (protocol §7).
 *
 * The tables, and their keys:
 *
 * - `requests`: `<id>`, derived from the key and the request
 * - `requests-ending`: `<ms>/<id>`, by the time when the key ends
 */
import { Effect } from "effect"
import { idempotencyRetentionMs } from "../actors/index.ts"
import { isRefusal, type RecordChange, type Refusal } from "../runtime/index.ts"
import { attemptsMax, expiredRequestsPage, expiredRequestsSweepMs } from "./limits.ts"
import { type Call, type HandlerFailure, httpError, type Service } from "./pipeline/index.ts"

const requestsTable = "requests"

const endingTable = "requests-ending"

/** Times in keys have so many digits, so that keys sort as times do. */
export const keyTimeDigits = 16

export const keyTimeOf = (ms: number): string => String(ms).padStart(keyTimeDigits, "0")

/** What the first attempt has written. */
export interface RequestRecord {
  /** ms since the epoch. */
  readonly atMs: number
  /** The version of the actor that the request changes, as the first attempt has seen it. */
  readonly version?: number
}

/** A request, as it is about to make its change. */
export interface RequestAttempt {
  /** The record of an earlier attempt; undefined without a key. */
  readonly earlier: RequestRecord | undefined
  /** The time of the change: that of the earlier attempt, if there is one. */
  readonly atMs: number
  /** The conditions and changes that write the record; without a key there are none. */
  readonly expected: ReadonlyArray<RecordChange>
  readonly changes: ReadonlyArray<RecordChange>
}

const endingKey = (id: string, { atMs }: RequestRecord): string =>
  `${keyTimeOf(atMs + idempotencyRetentionMs)}/${id}`

/** Reads the record of the request; `version` is that of a record to write. */
export const beginRequest = Effect.fnUntraced(function*(
  { nowMs, records }: Service,
  { ids, key }: Call,
  version?: number
): Effect.fn.Return<RequestAttempt, HandlerFailure> {
  const atMs = nowMs()
  if (key === undefined) return { earlier: undefined, atMs, expected: [], changes: [] }
  const id = ids.id("request record")
  const value = yield* records.get(requestsTable, id)
  // Only this service writes these records.
  const found = value === undefined ? undefined : JSON.parse(value) as RequestRecord
  // After that time the same key stands for a new request.
  const earlier = found !== undefined && atMs < found.atMs + idempotencyRetentionMs
    ? found
    : undefined
  const record: RequestRecord = { atMs, ...version === undefined ? {} : { version } }
  return {
    earlier,
    atMs: earlier?.atMs ?? atMs,
    expected: [{ table: requestsTable, key: id, value: value ?? null }],
    changes: [
      { table: requestsTable, key: id, value: JSON.stringify(record) },
      { table: endingTable, key: endingKey(id, record), value: "" },
      ...found === undefined
        ? []
        : [{ table: endingTable, key: endingKey(id, found), value: null, markerExpires: true }]
    ]
  }
})

/** Removes what these changes have written, so that the key is free for another attempt. */
const removeRequest = (
  { records }: Service,
  [written, ending]: ReadonlyArray<RecordChange>
): Effect.Effect<unknown, HandlerFailure> =>
  written === undefined || ending === undefined
    ? Effect.void
    : records.writeIf([written], [
      { ...written, value: null, markerExpires: true },
      { ...ending, value: null, markerExpires: true }
    ])

const changedSince = httpError(
  "conflict",
  "an earlier attempt with this Idempotency-Key got no answer, and the resource has changed since: "
    + "the result of this request does not exist any more, or never did. Use a new key."
)

const isOutdated = (reply: unknown): boolean =>
  isRefusal(reply) && reply.reason === "PreconditionFailed"

/**
 * Sends an actor a change that a repetition must not make over a later one: with a key it is for
 * the version that the first attempt has seen. The actor recognizes a change that it has. Fails
 * with 409 when it has not, and has changed since.
 */
export const changeOnce = Effect.fnUntraced(function*<Reply>(
  service: Service,
  call: Call,
  readVersion: Effect.Effect<number, HandlerFailure>,
  change: (
    expected: { readonly ifVersion?: number }
  ) => Effect.Effect<Reply | Refusal, HandlerFailure>
): Effect.fn.Return<Reply | Refusal, HandlerFailure> {
  if (call.key === undefined) return yield* change({})
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const seen = yield* readVersion
    const { changes, earlier, expected } = yield* beginRequest(service, call, seen)
    if (earlier !== undefined) {
      const reply = yield* change({ ifVersion: earlier.version ?? seen })
      return isOutdated(reply) ? yield* changedSince : reply
    }
    if (!(yield* service.records.writeIf(expected, changes))) continue
    const reply = yield* change({ ifVersion: seen })
    if (!isRefusal(reply)) return reply
    yield* removeRequest(service, changes)
    // Others changed the actor between the two messages.
    if (!isOutdated(reply)) return reply
  }
  return yield* httpError("overloaded")
})

type RequestRecords = Pick<Service, "nowMs" | "records">

/** Removes the records of requests whose keys have ended. */
export const removeExpiredRequests = Effect.fnUntraced(function*(
  { nowMs, records }: RequestRecords
): Effect.fn.Return<void, HandlerFailure> {
  for (;;) {
    const entries = yield* records.range(endingTable, { limit: expiredRequestsPage })
    const expired = entries.filter(({ key }) => Number(key.slice(0, keyTimeDigits)) <= nowMs())
    // A key that is used again at this moment has another entry.
    yield* records.writeIf(
      expired.map((entry) => ({ table: endingTable, ...entry })),
      expired.flatMap(({ key }) => [
        { table: endingTable, key, value: null, markerExpires: true },
        {
          table: requestsTable,
          key: key.slice(keyTimeDigits + 1),
          value: null,
          markerExpires: true
        }
      ])
    )
    if (expired.length < expiredRequestsPage) return
  }
})

/** Removes them for as long as the service runs. */
export const sweepRequests = (service: RequestRecords): Effect.Effect<never> =>
  Effect.forever(
    Effect.ignore(removeExpiredRequests(service)).pipe(
      Effect.andThen(Effect.sleep(expiredRequestsSweepMs))
    )
  )
