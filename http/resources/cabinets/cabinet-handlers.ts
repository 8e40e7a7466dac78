/** Handlers of cabinets; what a page of a cabinet holds is in `cabinet-merge.ts`. */
import { Effect } from "effect"
import { cabinetListing, type CabinetMessage, type CabinetReply,
  type CabinetView } from "../../../actors/cabinet/index.ts"
import { cabinetKind, removeListingEntry } from "../../../actors/index.ts"
import { type Address, address } from "../../../runtime/index.ts"
import { auditedAsAdmin } from "../../audit/index.ts"
import { type AuthenticatedAccount, callerOf, requireAccount } from "../../auth/index.ts"
import { feedTypes } from "../../formats/index.ts"
import { pageEntriesDefault } from "../../limits.ts"
import { addEntry, listResources } from "../../newest-first-index.ts"
import { absoluteUri, actorIdOf, ask, askOrRefusal, type Call, checkShownVersion, createdAnswer,
  defineHandler, describeActor, emptyAnswer, entityTagsOfPages, expectedVersion, expectReply,
  failRefused, firstPage, type HandlerFailure, httpError, inPlace, isConditional, readerHeaders,
  readInput, readPageRequest, readQuery, redisplayOutdated, renderView, type RequestInput, seeOther,
  type Service, shownVersion, viewAnswer } from "../../pipeline/index.ts"
import { changeOnce, removeOnce } from "../../request-record.ts"
import { discardedFields, reportRetrieved, spansOf } from "../mailboxes/index.ts"
import { parseCabinetSince } from "./cabinet-cursor.ts"
import { contentsOf } from "./cabinet-input.ts"
import { type CabinetRequest, hasDiscarded, type MergedPage, readCabinet } from "./cabinet-merge.ts"
import { cabinetDocument, cabinetPath, collectionPath, listingView, pageView,
  replaceForm } from "./cabinet-views.ts"

const addressOf = (id: string): Address => address(cabinetKind, id)

/** A cabinet as the request names it, and the account of the request. */
interface CabinetRef {
  readonly id: string
  readonly to: Address
  readonly account: AuthenticatedAccount
}

/** Fails with 401, and with 404 for a text that cannot be an id. */
const cabinetRefOf = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<CabinetRef, HandlerFailure> {
  const account = yield* requireAccount(service, call)
  const id = yield* actorIdOf(call, "cabinet")
  return { id, to: addressOf(id), account }
})

/** The cabinet, for its owner, or the refusal of its actor. */
const describeCabinet = (service: Service, to: Address, account: AuthenticatedAccount) => {
  const message: CabinetMessage = { _tag: "Describe", caller: callerOf(account) }
  return describeActor<CabinetView>(service, to, message)
}

/** The cabinet of a request; fails with 403, 404 or 410. */
const cabinetOf = (service: Service, { account, to }: CabinetRef) =>
  failRefused(describeCabinet(service, to, account))

/** A page of the caller's own cabinets, newest first. */
export const getCabinets = defineHandler(function*(service, call) {
  const account = yield* requireAccount(service, call)
  const index = {
    ...cabinetListing,
    owner: account.name,
    href: absoluteUri(service, collectionPath)
  }
  const { next, rows } = yield* listResources(
    service,
    call,
    index,
    (id) => describeCabinet(service, addressOf(id), account)
  )
  return viewAnswer(listingView(service, rows, next), { headers: readerHeaders })
})

export const postCabinets = defineHandler(function*(service, call) {
  const account = yield* requireAccount(service, call)
  const contents = yield* contentsOf(service, yield* readInput(call, "cabinet", { form: true }))
  const id = call.ids.id("cabinet")
  yield* addEntry(service, cabinetListing, account.name, id)
  const requestId = call.ids.id("request")
  const message: CabinetMessage = { _tag: "Create", requestId, owner: account.name, contents }
  const { view } = expectReply(yield* ask<CabinetReply>(service, addressOf(id), message), "Created")
  return createdAnswer(service, cabinetPath(id), cabinetDocument(service, id, view), readerHeaders)
})

/** `limit` and `since` of the query; 400 for malformed ones. */
const cabinetRequestOf = Effect.fnUntraced(function*(
  call: Call,
  { id }: CabinetRef
): Effect.fn.Return<CabinetRequest, HandlerFailure> {
  const { limit } = yield* readPageRequest(call, () => false)
  const text = (yield* readQuery(call)).get("since")
  const since = text === undefined ? undefined : parseCabinetSince(text)
  if (text !== undefined && since === undefined) {
    return yield* httpError(
      "malformed",
      "since must be the time of an earlier answer, or RFC 3339's; correct it, or read without it",
      firstPage
    )
  }
  return { id, since, limit }
})

/** Reads a page, which may have to search many notifications for the text of the query. */
const readPageOf = (
  service: Service,
  { request }: Call,
  cabinet: CabinetView,
  wanted: CabinetRequest
): Effect.Effect<MergedPage, HandlerFailure> => {
  const reading = readCabinet(service, cabinet, wanted)
  return cabinet.query?.contains === undefined
    ? reading
    : inPlace(service.textSearches, request, reading)
}

export const getCabinet = defineHandler(function*(service, call) {
  const ref = yield* cabinetRefOf(service, call)
  const request = yield* cabinetRequestOf(call, ref)
  const cabinet = yield* cabinetOf(service, ref)
  const page = yield* readPageOf(service, call, cabinet, request)
  const rendered = renderView(
    {
      _tag: "View",
      status: 200,
      view: pageView(service, ref.id, cabinet, page, request.limit),
      offered: feedTypes,
      headers: [...readerHeaders, ...discardedFields(hasDiscarded(page))]
    },
    call,
    service.settings.baseUrl
  )
  // As with a mailbox (A11): a notification is retrieved when an answer has shown it.
  if (rendered.status === 200) {
    for (const { mailbox, runs } of page.shown) {
      reportRetrieved(service, call, mailbox, runs.flatMap(spansOf))
    }
  }
  return rendered
})

/** The cabinet's version, for which the conditions of the request hold; fails with 412. */
const checkedVersion = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  ref: CabinetRef
): Effect.fn.Return<number, HandlerFailure> {
  const cabinet = yield* cabinetOf(service, ref)
  const { version } = cabinet
  yield* expectedVersion(
    call,
    Effect.gen(function*() {
      const pages = Effect.gen(function*() {
        const limit = pageEntriesDefault
        const wanted = { id: ref.id, since: undefined, limit }
        const page = yield* readPageOf(service, call, cabinet, wanted)
        return [{ view: pageView(service, ref.id, cabinet, page, limit), offered: feedTypes }]
      })
      return { version, tags: yield* entityTagsOfPages(call, pages) }
    })
  )
  return version
})

const replaceContents = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  ref: CabinetRef,
  input: RequestInput
): Effect.fn.Return<CabinetView, HandlerFailure> {
  const contents = yield* contentsOf(service, input)
  const replace: CabinetMessage = {
    _tag: "Replace",
    requestId: call.ids.id("replacement"),
    caller: callerOf(ref.account),
    contents
  }
  const version = Effect.tap(
    checkedVersion(service, call, ref),
    (current) => checkShownVersion(input, current)
  )
  const change = failRefused(changeOnce(service, call, version, (expected) => {
    const message: CabinetMessage = { ...replace, ...shownVersion(input), ...expected }
    return askOrRefusal<CabinetReply>(service, ref.to, message)
  }))
  const now = Effect.map(
    cabinetOf(service, ref),
    (cabinet) => replaceForm(service, cabinetPath(ref.id), cabinet)
  )
  const reply = yield* redisplayOutdated(call, input, now, change)
  return expectReply(reply, "Replaced").view
})

export const putCabinet = defineHandler(function*(service, call) {
  const ref = yield* cabinetRefOf(service, call)
  const view = yield* replaceContents(service, call, ref, yield* readInput(call, "cabinet"))
  return viewAnswer(cabinetDocument(service, ref.id, view), { headers: readerHeaders })
})

const askRemoval = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  ref: CabinetRef
): Effect.fn.Return<void, HandlerFailure> {
  // An admin may remove a cabinet, but not read its version.
  const expected = isConditional(call)
    ? { ifVersion: yield* checkedVersion(service, call, ref) }
    : {}
  const message: CabinetMessage = { _tag: "Remove", caller: callerOf(ref.account), ...expected }
  yield* ask<CabinetReply>(service, ref.to, message)
})

const removeCabinet = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  ref: CabinetRef
): Effect.fn.Return<void, HandlerFailure> {
  const operation = {
    caller: callerOf(ref.account),
    action: "cabinet.remove",
    target: cabinetPath(ref.id)
  } as const
  // An admin may remove a cabinet, but not read whose it is.
  const removal = auditedAsAdmin(
    service,
    call,
    operation,
    undefined,
    askRemoval(service, call, ref)
  )
  yield* removeOnce(call, removal)
  yield* removeListingEntry(service.records, cabinetListing, ref.id)
})

export const deleteCabinet = defineHandler(function*(service, call) {
  yield* removeCabinet(service, call, yield* cabinetRefOf(service, call))
  return emptyAnswer(204)
})

/** PUT and DELETE from the forms of a cabinet's page. */
export const postCabinetForm = defineHandler(function*(service, call) {
  const ref = yield* cabinetRefOf(service, call)
  const input = yield* readInput(call, "cabinet", { form: true })
  if (input._tag === "Form" && input.fields.get("method") === "delete") {
    yield* removeCabinet(service, call, ref)
    return seeOther(service, collectionPath)
  }
  yield* replaceContents(service, call, ref, input)
  return seeOther(service, cabinetPath(ref.id))
})
