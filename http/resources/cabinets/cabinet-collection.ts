/**
 * The list of one's own cabinets: an index by owner, newest first. An entry is written before its
 * cabinet is made and removed after its end, so that none is ever missing from it.
 */
import { Effect } from "effect"
import type { CabinetMessage, CabinetReply } from "../../../actors/cabinet/index.ts"
import { cabinetKind } from "../../../actors/index.ts"
import { address, isRefusal } from "../../../runtime/index.ts"
import { type AuthenticatedAccount, callerOf, requireAccount } from "../../auth/index.ts"
import { askedAtOnceMax } from "../../limits.ts"
import { absoluteUri, askOrRefusal, type Call, type HandlerAnswer, type HandlerFailure, nextLink,
  readPageRequest, type Service, viewAnswer } from "../../pipeline/index.ts"
import { collectionPath, type ListedCabinetRow, listingView } from "./cabinet-views.ts"

/** `<owner>/<inverted ms, 13 digits>.<id>` of each cabinet: ascending keys are newest first. */
const ownersTable = "cabinets-by-owner"

/** id of each cabinet: its key in the other table. */
const keysTable = "cabinet-keys"

const newestMs = 9_999_999_999_999

const keyDigits = 13

const cursorPattern = /^\d{13}\.[A-Za-z0-9_-]{1,200}$/

/** Enters a cabinet; one that is entered already keeps its place. */
export const enter = Effect.fnUntraced(function*(
  service: Service,
  owner: string,
  id: string
): Effect.fn.Return<void, HandlerFailure> {
  const { nowMs, records } = service
  if ((yield* records.get(keysTable, id)) !== undefined) return
  const key = `${owner}/${String(newestMs - nowMs()).padStart(keyDigits, "0")}.${id}`
  yield* records.write([
    { table: ownersTable, key, value: id },
    { table: keysTable, key: id, value: key }
  ])
})

/** Takes a cabinet out. */
export const leave = Effect.fnUntraced(function*(
  { records }: Service,
  id: string
): Effect.fn.Return<void, HandlerFailure> {
  const key = yield* records.get(keysTable, id)
  if (key === undefined) return
  yield* records.write([
    { table: ownersTable, key, value: null, fades: true },
    { table: keysTable, key: id, value: null, fades: true }
  ])
})

/** One cabinet as its actor tells it; undefined for one that was never made, or is removed. */
const look = Effect.fnUntraced(function*(
  service: Service,
  account: AuthenticatedAccount,
  id: string
): Effect.fn.Return<ListedCabinetRow | undefined, HandlerFailure> {
  const message: CabinetMessage = { _tag: "Describe", caller: callerOf(account) }
  const reply = yield* askOrRefusal<CabinetReply>(service, address(cabinetKind, id), message)
  if (isRefusal(reply)) {
    // A crash between the removal and this may have left the entry.
    if (reply.reason === "Gone") yield* leave(service, id)
    return
  }
  if (reply._tag !== "Described") throw new Error(`a cabinet answered ${reply._tag}`)
  return { id, cabinet: reply.view }
})

/** A page of the caller's own cabinets, newest first. */
export const listCabinets = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const account = yield* requireAccount(service, call)
  const page = yield* readPageRequest(call, (text) => cursorPattern.test(text))
  const prefix = `${account.name}/`
  const { after, limit } = page
  const range = { prefix, limit, ...after === undefined ? {} : { after: prefix + after } }
  const entries = yield* service.records.range(ownersTable, range)
  const looked = yield* Effect.forEach(entries, ({ value }) => look(service, account, value), {
    concurrency: askedAtOnceMax
  })
  const keys = entries.map(({ key }) => key.slice(prefix.length))
  const next = nextLink(absoluteUri(service, collectionPath), page, keys)
  return viewAnswer(listingView(service, looked.filter((one) => one !== undefined), next), {
    headers: [["Vary", "Authorization"], ["Cache-Control", "private, no-cache"]]
  })
})
