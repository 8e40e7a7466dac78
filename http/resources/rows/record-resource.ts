/**
 * Resources that are one record each. They are replaced and removed by compare-and-set, so that a
 * precondition holds for the record that changes, on whichever node.
 */
import { hash } from "node:crypto"
import { Effect } from "effect"
import type { RecordChange } from "../../../runtime/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { attemptsMax } from "../../limits.ts"
import { type Call, entityTags, type HandlerFailure, httpError, isConditional, preconditionsHold,
  type Service } from "../../pipeline/index.ts"
import { beginRequest } from "../../request-record.ts"

/** One kind of such resources. */
export interface RecordResource {
  readonly table: string
  /** Has the keys of removed records, whose URIs answer 410. */
  readonly goneTable: string
  readonly view: (service: Service, key: string, value: string) => ResourceView
  readonly changes: (
    key: string,
    value: string,
    before: string | undefined
  ) => ReadonlyArray<RecordChange>
  /** Counts what a change will store for its client; it may refuse. */
  readonly charge?: (
    service: Service,
    value: string,
    before: string | undefined
  ) => Effect.Effect<void, HandlerFailure>
  readonly removal: (key: string, before: string) => ReadonlyArray<RecordChange>
  /** Whether a record has expired, though it still exists. */
  readonly isExpired?: (service: Service, value: string) => boolean
}

/** Reads the record; fails with 404 or 410. */
export const readRecord = Effect.fnUntraced(function*(
  service: Service,
  { goneTable, isExpired, table }: RecordResource,
  key: string
): Effect.fn.Return<string, HandlerFailure> {
  const { records } = service
  const value = yield* records.get(table, key)
  if (value === undefined) {
    const gone = yield* records.get(goneTable, key)
    return yield* httpError(gone === undefined ? "not-found" : "gone")
  }
  return isExpired?.(service, value) === true ? yield* httpError("gone") : value
})

/** Checks the preconditions of the request against a record; fails with 412. */
const checkPreconditions = (
  service: Service,
  call: Call,
  { view }: RecordResource,
  key: string,
  value: string | undefined
): Effect.Effect<void, HandlerFailure> => {
  if (!isConditional(call)) return Effect.void
  const tags = value === undefined ? undefined : entityTags(call, view(service, key, value))
  return preconditionsHold(call, tags)
    ? Effect.void
    : Effect.fail(
      httpError("precondition-failed", "the representation does not match the condition")
    )
}

/** The version of a record, for the form of its page. */
export const recordVersion = (value: string): string =>
  hash("sha256", value, "base64url").slice(0, 22)

/** A record that was written, and whether it is new. */
export interface ReplacedRecord {
  readonly value: string
  readonly isNew: boolean
}

/**
 * Creates or replaces the record by the value of `make` for the time of the change; fails with 412,
 * or as `make` and the charge do. A repetition of a request that has written the record writes
 * nothing, and returns the value that this request makes for the time of the first attempt.
 */
export const replaceRecord = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  resource: RecordResource,
  key: string,
  make: (before: string | undefined, atMs: number) => Effect.Effect<string, HandlerFailure>
): Effect.fn.Return<ReplacedRecord, HandlerFailure> {
  const { records } = service
  const { table } = resource
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const before = yield* records.get(table, key)
    const { atMs, changes, earlier, expected } = yield* beginRequest(service, call)
    const value = yield* make(before, atMs)
    if (earlier !== undefined) return { value, isNew: false }
    yield* checkPreconditions(service, call, resource, key, before)
    yield* resource.charge?.(service, value, before) ?? Effect.void
    const isWritten = yield* records.writeIf(
      [{ table, key, value: before ?? null }, ...expected],
      [...resource.changes(key, value, before), ...changes]
    )
    if (isWritten) {
      return { value, isNew: before === undefined }
    }
  }
  return yield* httpError("overloaded")
})

/**
 * Removes the record; fails with 404, 410 or 412, or as `authorize` does. A repetition of a request
 * that has removed it changes nothing.
 */
export const removeRecord = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  resource: RecordResource,
  key: string,
  authorize: (value: string) => Effect.Effect<void, HandlerFailure> = () => Effect.void
): Effect.fn.Return<void, HandlerFailure> {
  const { table } = resource
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const { changes, earlier, expected } = yield* beginRequest(service, call)
    if (earlier !== undefined) return
    const before = yield* readRecord(service, resource, key)
    yield* authorize(before)
    yield* checkPreconditions(service, call, resource, key, before)
    const isRemoved = yield* service.records.writeIf(
      [{ table, key, value: before }, ...expected],
      [...resource.removal(key, before), ...changes]
    )
    if (isRemoved) return
  }
  return yield* httpError("overloaded")
})
