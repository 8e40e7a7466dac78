/** GET of a mailbox (A11) and of one notification, and its DELETE (protocol §1.2). */
import { Effect } from "effect"
import { isRemoval, type MailboxMessage, type MailboxReply, notificationId,
  parseNotificationId } from "../../../actors/mailbox/index.ts"
import { feedTypes, linkedDataType, type MediaType, negotiate, notificationTypes,
  type ResourceView } from "../../formats/index.ts"
import { xmlDeclaration } from "../../formats/xml/index.ts"
import { ask, type Call, emptyAnswer, entityTags, type HandlerAnswer, type HandlerFailure,
  type HeaderList, httpError, isConditional, preconditionsHold, preferredWaitSeconds, readInput,
  renderedAnswer, renderView, type Service, type ViewAnswer } from "../../pipeline/index.ts"
import { acceptPost } from "./deposit.ts"
import { ListingCache, listingKey } from "./listing-cache.ts"
import { type MailboxRef, type ProvenReader, requireReader } from "./mailbox-access.ts"
import { datedFeed, entryElement, entryOf, entryXml, feedLinks, isFeed, latestTypes,
  type ListingQuery, listingQuery, type MailboxEntry, type NumberSpan, placeLinks, readLatest,
  readPage, sinceOf, spansOf, startOf, tellRetrieved, withCopies } from "./mailbox-listing.ts"
import { liveAnswer, longPoll } from "./mailbox-live.ts"
import { activityDocument, listingView, notificationForms, publicPage,
  summaryOf } from "./mailbox-views.ts"

const eventStream = "text/event-stream"

/** What a mailbox is served as, and one notification. */
const listingTypes = [...feedTypes, linkedDataType, eventStream]

const entryTypes = [...notificationTypes, linkedDataType]

/** What a reader sees is for that reader; a secret URI is for no search engine. */
export const readerHeaders = (place: MailboxRef): Array<[string, string]> => [
  ["Vary", "Authorization"],
  ["Cache-Control", "private, no-cache"],
  ...place.secret === undefined ? [] : [["X-Robots-Tag", "noindex"] as [string, string]]
]

/** Answers with a view of entries, and begins their retention when they were really shown. */
const showEntries = (
  service: Service,
  call: Call,
  place: MailboxRef,
  answer: ViewAnswer,
  spans: ReadonlyArray<NumberSpan>
): HandlerAnswer => {
  const rendered = renderView(answer, call, service.settings.baseUrl)
  if (call.request.method === "GET" && rendered.status === 200) {
    tellRetrieved(service, place, spans)
  }
  // A refusal in place of the view has none of its links.
  return renderedAnswer(
    rendered.status >= 400 ? { ...rendered, headers: [...rendered.headers, place.link] } : rendered
  )
}

/** What anybody sees of a mailbox: where to deposit. */
const showPublic = (
  service: Service,
  place: MailboxRef
): Effect.Effect<HandlerAnswer, HandlerFailure> => {
  const message: MailboxMessage = { _tag: "Describe", reader: {} }
  return Effect.map(
    ask<Extract<MailboxReply, { readonly _tag: "Described" }>>(service, place.to, message),
    ({ view }) => ({
      _tag: "View",
      status: 200,
      view: {
        title: view.settings.title ?? place.name,
        tree: () => {
          throw new Error("the public page is served as HTML only")
        },
        body: () => publicPage(place, view),
        links: [...placeLinks(place), ...feedLinks(place.here)]
      },
      offered: listingTypes,
      headers: [["Vary", "Authorization"], ["Accept-Post", acceptPost]]
    })
  )
}

/** The live stream, from Last-Event-ID or `since`. */
const stream = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: MailboxRef,
  { reader, view }: ProvenReader
): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
  const query = yield* listingQuery(call)
  const lastId = call.request.headers.get("last-event-id") || undefined
  const since = lastId === undefined ? query.since : sinceOf(lastId)
  if (lastId !== undefined && since === undefined) {
    return yield* httpError("malformed", "Last-Event-ID must be the id of an earlier event")
  }
  const after = yield* startOf(service, place, since, view.head)
  if (call.request.method !== "HEAD") return liveAnswer(service, place, reader, after)
  return emptyAnswer(200, [["Content-Type", eventStream], ["Vary", "Accept"], [...place.link]])
})

/** Without a cursor some types begin with the newest, all else with the oldest. */
const pageFor = (type: MediaType | undefined, { before, since }: ListingQuery) => {
  if (since !== undefined) return readPage
  const isLatest = before !== undefined || (type !== undefined && latestTypes.includes(type))
  return isLatest ? readLatest : readPage
}

/** GET of a mailbox: the listing for its readers, the page with the form for everybody else. */
export const getMailbox = (service: Service) => {
  const listings = new ListingCache()
  return Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      const query = yield* listingQuery(call)
      const type = negotiate(call.request.headers.get("accept"), listingTypes)
      const isStranger = call.identity._tag === "Nobody" && place.secret === undefined
      if (isStranger && type === "text/html" && !query.read) {
        return yield* showPublic(service, place)
      }
      const reading = yield* requireReader(service, call, place)
      if (type === eventStream) return yield* stream(service, call, place, reading)
      const key = listingKey(call, place, reading, query, type)
      const shown = key === undefined ? undefined : listings.get(key)
      if (shown !== undefined) {
        tellRetrieved(service, place, shown.spans)
        return shown.answer
      }
      const waitSeconds = preferredWaitSeconds(call)
      const page = waitSeconds === undefined
        ? yield* pageFor(type, query)(service, place, reading.view, query)
        : yield* longPoll(service, call, place, reading.reader, query, waitSeconds)
      const applied: HeaderList = waitSeconds === undefined
        ? []
        : [["Preference-Applied", `wait=${waitSeconds}`], ["Vary", "Prefer"]]
      const dated: { readonly lastModifiedMs?: number } = isFeed(type)
        ? datedFeed(service, page.mailbox)
        : {}
      // A list of URIs shows no notification.
      const spans = type === linkedDataType ? [] : spansOf(page.entries)
      const answer = showEntries(service, call, place, {
        _tag: "View",
        status: 200,
        view: listingView(place, page, query),
        offered: listingTypes,
        headers: [...readerHeaders(place), ["Accept-Post", acceptPost], ...applied],
        ...dated
      }, spans)
      const isSettled = !isFeed(type) || dated.lastModifiedMs !== undefined
      if (key !== undefined && isSettled) listings.add(key, answer, spans)
      return answer
    }
  )
}

const notificationView = (place: MailboxRef, entry: MailboxEntry): ResourceView => {
  const summary = summaryOf(place, entry)
  return {
    title: summary.description === "" ? "A notification" : summary.description,
    xml: xmlDeclaration + entryXml(place, entry),
    tree: () => entryElement(place, entry),
    linkedData: () => activityDocument(place, entry),
    links: [
      ...placeLinks(place),
      { rel: "up", href: place.here, title: "The mailbox" }
    ],
    forms: () => notificationForms(summary)
  }
}

/** The notification that the path names; 404 when there never was one, 410 when it is removed. */
const entryAt = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: MailboxRef,
  { view }: ProvenReader
): Effect.fn.Return<MailboxEntry, HandlerFailure> {
  const id = parseNotificationId(call.parameters.get("notification"))
  if (id === undefined || id.n > view.head) return yield* httpError("not-found")
  const [item] = yield* service.system.read(place.to, id.n, 1)
  if (item === undefined || item.n !== id.n) return yield* httpError("gone")
  if (isRemoval(item.value)) return yield* httpError("not-found")
  const entry = entryOf(item)
  if (entry.id !== notificationId(id.n, id.idRandom)) return yield* httpError("not-found")
  const [shown = entry] = yield* withCopies(service, place.name, view, [entry])
  return shown
})

export const getNotification = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      const reading = yield* requireReader(service, call, place)
      const entry = yield* entryAt(service, call, place, reading)
      return showEntries(service, call, place, {
        _tag: "View",
        status: 200,
        view: notificationView(place, entry),
        offered: entryTypes,
        headers: readerHeaders(place)
      }, spansOf([entry]))
    }
  )

const remove = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: MailboxRef
): Effect.fn.Return<void, HandlerFailure> {
  const reading = yield* requireReader(service, call, place)
  const entry = yield* entryAt(service, call, place, reading)
  if (isConditional(call)) {
    // A notification never changes, so that what was looked at is what is removed.
    const tags = entityTags(call, notificationView(place, entry), entryTypes)
    if (!preconditionsHold(call, tags)) return yield* httpError("precondition-failed")
  }
  const { idRandom, n } = entry
  const message: MailboxMessage = { _tag: "Remove", n, idRandom, reader: reading.reader }
  yield* ask<MailboxReply>(service, place.to, message)
})

export const deleteNotification = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      yield* remove(service, call, place)
      return emptyAnswer(204, [[...place.link]])
    }
  )

/** DELETE from the form of a page: HTML has none. A browser is led back to the mailbox. */
export const formOfNotification = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      const input = yield* readInput(call, "notification", { form: true })
      if (input._tag !== "Form" || input.fields.get("method") !== "delete") {
        return yield* httpError(
          "unprocessable",
          "a form with method=delete removes it; nothing else is"
        )
      }
      yield* remove(service, call, place)
      return emptyAnswer(303, [
        ["Location", `${place.here}${place.secret === undefined ? "?read=" : ""}`],
        ["Cache-Control", "no-store"],
        [...place.link]
      ])
    }
  )
