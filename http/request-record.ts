/**
 * The record of a request with an Idempotency-Key, for a change to a resource that others may
 * change too. The first attempt writes the record together with its change. After an indeterminate
 * outcome, a repetition finds the record and changes nothing (protocol §7).
 *
 * The tables, and their keys:
 *
 * - `requests`: `<id>`, derived from the key and the request
 * - `requests-ending`: `<ms>/<id>`, by the time when the key ends
 */
import { Effect } from "effect"
import { idempotencyRetentionMs, timeInKey } from "../actors/index.ts"
import { isRefusal, type RecordChange, type Refusal } from "../runtime/index.ts"
import { attemptsMax } from "./limits.ts"
import { type Call, type HandlerFailure, httpError, isConditional, type Service,
  toHttpError } from "./pipeline/index.ts"
import { nameInKey, removeExpired, sweep } from "./record-expiry.ts"

const requestsTable = "requests"

const endingTable = "requests-ending"

/** What the first attempt has written. */
export interface RequestRecord {
  /** ms since the epoch. */
  readonly atMs: number
  /** When the key ends, ms since the epoch: then it stands for a new request. */
  readonly endsAtMs: number
  /** The version of the actor that the request changes, as the first attempt has seen it. */
  readonly version?: number
}

/** A request, as it is about to make its change. */
export interface RequestAttempt {
  /** The record of an earlier attempt; undefined without a key. */
  readonly earlier: RequestRecord | undefined
  /** The time of the change: that of the earlier attempt, if there is one. */
  readonly atMs: number
  /** The version that the first attempt has seen; undefined where the request reads none. */
  readonly version: number | undefined
  /** The condition under which the record is written; empty without a key. */
  readonly expected: ReadonlyArray<RecordChange>
  /** The changes that write the record; empty without a key. */
  readonly changes: ReadonlyArray<RecordChange>
}

const endingKey = (id: string, { endsAtMs }: RequestRecord): string =>
  `${timeInKey(endsAtMs)}/${id}`

/**
 * Reads the record of an earlier attempt, and makes the changes that write a new one, with the
 * version that `readVersion` returns. A repetition does not run `readVersion`.
 */
export const beginRequest = Effect.fnUntraced(function*(
  { nowMs, records }: Service,
  { ids, key }: Call,
  readVersion: Effect.Effect<number | undefined, HandlerFailure> = Effect.succeed(undefined)
): Effect.fn.Return<RequestAttempt, HandlerFailure> {
  const atMs = nowMs()
  if (key === undefined) {
    return { earlier: undefined, atMs, version: yield* readVersion, expected: [], changes: [] }
  }
  const id = ids.id("request record")
  const value = yield* records.get(requestsTable, id)
  // Only this service writes these records.
  const found = value === undefined ? undefined : JSON.parse(value) as RequestRecord
  const earlier = found !== undefined && atMs < found.endsAtMs ? found : undefined
  const version = earlier === undefined ? yield* readVersion : earlier.version
  const record: RequestRecord = {
    atMs,
    // The retention of a key begins with its first use, which may have changed nothing.
    endsAtMs: (key.earlier?.firstAtMs ?? atMs) + idempotencyRetentionMs,
    ...version === undefined ? {} : { version }
  }
  return {
    earlier,
    atMs: earlier?.atMs ?? atMs,
    version,
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

/** Removes the record that these changes have written: the next attempt is again the first. */
const removeRequestRecord = (
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

const isPreconditionFailure = (reply: unknown): boolean =>
  isRefusal(reply) && reply.reason === "PreconditionFailed"

/**
 * Sends a change to an actor so that a repetition does not overwrite later changes of others. With
 * a key or a precondition, the change applies only to the version that `checkedVersion` returns in
 * the first attempt (`ifVersion`). The actor recognizes a change that it has already made, and
 * replies as before. Fails with 409 if the actor has not made the change and has another version
 * now. A repetition does not run `checkedVersion`, whose checks the change itself may have undone.
 */
export const changeOnce = Effect.fnUntraced(function*<Reply>(
  service: Service,
  call: Call,
  checkedVersion: Effect.Effect<number, HandlerFailure>,
  change: (
    expected: { readonly ifVersion?: number }
  ) => Effect.Effect<Reply | Refusal, HandlerFailure>
): Effect.fn.Return<Reply | Refusal, HandlerFailure> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const begun = yield* beginRequest(service, call, checkedVersion)
    const { changes, earlier, expected, version } = begun
    const ifVersion = version === undefined ? {} : { ifVersion: version }
    if (call.key === undefined) return yield* change(isConditional(call) ? ifVersion : {})
    if (earlier !== undefined) {
      const reply = yield* change(ifVersion)
      return isPreconditionFailure(reply) ? yield* changedSince : reply
    }
    if (!(yield* service.records.writeIf(expected, changes))) continue
    const reply = yield* change(ifVersion)
    if (!isRefusal(reply)) return reply
    yield* removeRequestRecord(service, changes)
    // Others changed the actor between the two messages.
    if (!isPreconditionFailure(reply)) return reply
  }
  return yield* httpError("overloaded")
})

/** Whether an earlier attempt has made the change that its record is written with. */
export const isChangeMade = (
  service: Service,
  call: Call
): Effect.Effect<boolean, HandlerFailure> =>
  Effect.map(beginRequest(service, call), ({ earlier }) => earlier !== undefined)

/**
 * Removes a resource that nobody can create again. A repetition after an unknown outcome, which
 * finds it removed, succeeds as the first attempt.
 */
export const removeOnce = (
  call: Call,
  removal: Effect.Effect<unknown, HandlerFailure>
): Effect.Effect<void, HandlerFailure> =>
  Effect.catch(
    Effect.asVoid(removal),
    (failure) =>
      call.key?.earlier !== undefined && toHttpError(failure).problem.status === 410
        ? Effect.void
        : Effect.fail(failure)
  )

type RequestRecords = Pick<Service, "nowMs" | "records">

/** Removes the records of requests whose keys have ended. */
export const removeExpiredRequests = (
  service: RequestRecords
): Effect.Effect<void, HandlerFailure> =>
  removeExpired(service, endingTable, (expired) =>
    // A key that is used again at this moment has another entry.
    service.records.writeIf(
      expired.map((entry) => ({ table: endingTable, ...entry })),
      expired.flatMap(({ key }) => [
        { table: endingTable, key, value: null, markerExpires: true },
        { table: requestsTable, key: nameInKey(key), value: null, markerExpires: true }
      ])
    ))

/** Removes the records of ended keys at intervals, for as long as the service runs. */
export const sweepRequests = (service: RequestRecords): Effect.Effect<never> =>
  sweep(removeExpiredRequests(service))
