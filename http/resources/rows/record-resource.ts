/**
 * Resources that are one record each: read, replaced and removed by compare-and-set, so that what
 * a condition was checked against is what is changed, at whichever node.
 */
import { Effect } from "effect"
import type { Role } from "../../../actors/account/index.ts"
import type { RecordChange } from "../../../runtime/index.ts"
import { type AuthenticatedAccount, requireAccount } from "../../auth/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { attemptsMax } from "../../limits.ts"
import { type Call, entityTags, type HandlerFailure, httpError, isConditional, preconditionsHold,
  type Service } from "../../pipeline/index.ts"

/** A kind of such resources. */
export interface RecordResource {
  readonly table: string
  /** Keys of those that were removed. */
  readonly goneTable: string
  readonly view: (service: Service, key: string, value: string) => ResourceView
  readonly changes: (
    key: string,
    value: string,
    before: string | undefined
  ) => ReadonlyArray<RecordChange>
  readonly removal: (key: string, before: string) => ReadonlyArray<RecordChange>
  /** Whether it has ended by itself, though it is still there. */
  readonly isOver?: (service: Service, value: string) => boolean
}

/** The account with this role, or an admin; else 401 or 403. */
export const requireRole = (
  service: Service,
  call: Call,
  role: Role
): Effect.Effect<AuthenticatedAccount, HandlerFailure> =>
  Effect.flatMap(
    requireAccount(service, call),
    (account) =>
      account.roles.includes(role) || account.roles.includes("admin")
        ? Effect.succeed(account)
        : Effect.fail(httpError("forbidden", `this needs the role ${role}`))
  )

/** 404, or 410 where it is known that it was removed. */
const missing = Effect.fnUntraced(function*(
  { records }: Service,
  { goneTable }: RecordResource,
  key: string
): Effect.fn.Return<never, HandlerFailure> {
  const gone = yield* records.get(goneTable, key)
  return yield* httpError(gone === undefined ? "not-found" : "gone")
})

/** The record; fails with 404 or 410. */
export const readKept = Effect.fnUntraced(function*(
  service: Service,
  kept: RecordResource,
  key: string
): Effect.fn.Return<string, HandlerFailure> {
  const value = yield* service.records.get(kept.table, key)
  if (value === undefined) return yield* missing(service, kept, key)
  return kept.isOver?.(service, value) === true ? yield* httpError("gone") : value
})

const tagsOf = (
  service: Service,
  call: Call,
  kept: RecordResource,
  key: string,
  value: string | undefined
) => value === undefined ? undefined : entityTags(call, kept.view(service, key, value))

const holds = (
  service: Service,
  call: Call,
  kept: RecordResource,
  key: string,
  value: string | undefined
): Effect.Effect<void, HandlerFailure> =>
  !isConditional(call) || preconditionsHold(call, tagsOf(service, call, kept, key, value))
    ? Effect.void
    : Effect.fail(httpError("precondition-failed", "it is not as the condition says"))

/** What a replacement came to. */
export interface Replaced {
  readonly value: string
  readonly isNew: boolean
}

/**
 * Replaces the record by what `make` makes of the one before, or makes it; fails with 412, or as
 * `make` does.
 */
export const replaceKept = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  kept: RecordResource,
  key: string,
  make: (before: string | undefined) => Effect.Effect<string, HandlerFailure>
): Effect.fn.Return<Replaced, HandlerFailure> {
  const { records } = service
  const { table } = kept
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const before = yield* records.get(table, key)
    yield* holds(service, call, kept, key, before)
    const value = yield* make(before)
    const expected = [{ table, key, value: before ?? null }]
    if (yield* records.writeIf(expected, kept.changes(key, value, before))) {
      return { value, isNew: before === undefined }
    }
  }
  return yield* httpError("overloaded")
})

/** Removes the record; fails with 404, 410 or 412, or as `allow` does of the record. */
export const removeKept = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  kept: RecordResource,
  key: string,
  allow: (value: string) => Effect.Effect<void, HandlerFailure> = () => Effect.void
): Effect.fn.Return<void, HandlerFailure> {
  const { table } = kept
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const before = yield* readKept(service, kept, key)
    yield* allow(before)
    yield* holds(service, call, kept, key, before)
    const expected = [{ table, key, value: before }]
    if (yield* service.records.writeIf(expected, kept.removal(key, before))) return
  }
  return yield* httpError("overloaded")
})
