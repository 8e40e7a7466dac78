/**
 * The collection of sessions (B3): an index by time of start, newest first. An entry is written
 * before its session begins and removed after its end, so that none is ever missing from it.
 */
import { Effect } from "effect"
import { sessionKind } from "../../../actors/index.ts"
import type { SessionMessage, SessionReply } from "../../../actors/session/index.ts"
import { address, isRefusal, type RecordChange } from "../../../runtime/index.ts"
import { askedAtOnceMax } from "../../limits.ts"
import { absoluteUri, askOrRefusal, type Call, type HandlerAnswer, type HandlerFailure, nextLink,
  readPageRequest, type Service, viewAnswer } from "../../pipeline/index.ts"
import { collectionPath, type ListedSessionRow, listingView } from "./session-views.ts"

/** `<inverted ms, 13 digits>.<id>` of each session: ascending keys are newest first. */
const sessionsTable = "sessions"

/** id of each session: its key in the other table. */
const keysTable = "session-keys"

const newestMs = 9_999_999_999_999

const keyDigits = 13

const cursorPattern = /^\d{13}\.[A-Za-z0-9_-]{1,200}$/

/** Enters a session; one that is entered already keeps its place. */
export const enter = Effect.fnUntraced(function*(
  service: Service,
  id: string
): Effect.fn.Return<void, HandlerFailure> {
  const { nowMs, records } = service
  if ((yield* records.get(keysTable, id)) !== undefined) return
  const key = `${String(newestMs - nowMs()).padStart(keyDigits, "0")}.${id}`
  yield* records.write([
    { table: sessionsTable, key, value: id },
    { table: keysTable, key: id, value: key }
  ])
})

/** Takes a session out. */
export const leave = Effect.fnUntraced(function*(
  { records }: Service,
  id: string
): Effect.fn.Return<void, HandlerFailure> {
  const key = yield* records.get(keysTable, id)
  if (key === undefined) return
  const changes: ReadonlyArray<RecordChange> = [
    { table: sessionsTable, key, value: null, fades: true },
    { table: keysTable, key: id, value: null, fades: true }
  ]
  yield* records.write(changes)
})

/** One session as its actor tells it; undefined for one that has not begun, or is deleted. */
const look = Effect.fnUntraced(function*(
  service: Service,
  id: string
): Effect.fn.Return<ListedSessionRow | undefined, HandlerFailure> {
  const message: SessionMessage = { _tag: "Describe" }
  const reply = yield* askOrRefusal<SessionReply>(service, address(sessionKind, id), message)
  if (isRefusal(reply)) {
    // A crash between the deletion and this may have left the entry.
    if (reply.reason === "Gone") yield* leave(service, id)
    return
  }
  if (reply._tag !== "Described") throw new Error(`a session answered ${reply._tag}`)
  return { id, session: reply.view }
})

/** A page of the sessions, newest first. */
export const listSessions = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const page = yield* readPageRequest(call, (text) => cursorPattern.test(text))
  const { after, limit } = page
  const range = after === undefined ? { limit } : { after, limit }
  const entries = yield* service.records.range(sessionsTable, range)
  const looked = yield* Effect.forEach(entries, ({ value }) => look(service, value), {
    concurrency: askedAtOnceMax
  })
  const listed = looked.filter((one) => one !== undefined)
  const next = nextLink(absoluteUri(service, collectionPath), page, entries.map(({ key }) => key))
  return viewAnswer(listingView(listed, next))
})
