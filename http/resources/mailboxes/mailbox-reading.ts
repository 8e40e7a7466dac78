/** Handlers for readers (protocol §1.2): the mailbox (A11), one notification, and its removal. */
import { Effect } from "effect"
import { LRUCache } from "lru-cache"
import { isRemoval, type MailboxMessage, type MailboxReply, notificationId,
  parseNotificationId } from "../../../actors/mailbox/index.ts"
import { audited } from "../../audit/index.ts"
import { feedTypes, linkedDataType, type MediaType, negotiate, notificationTypes,
  type ResourceView } from "../../formats/index.ts"
import { listingCacheBytesMax, madeListingsMax, retrievalRecordedMs } from "../../limits.ts"
import { ask, conditionFailed, emptyAnswer, entityTags, eventStreamType, failRefused,
  type HandlerAnswer, type HandlerFailure, httpError, inPlace, isConditional, longPollHeaders,
  notModifiedOf, type PlainAnswer, preconditionsHold, preferredWaitSeconds, readerHeaders,
  readFormMethod, readQuery, renderWhole, type Service, underConditions, type ViewAnswer,
  viewAnswer } from "../../pipeline/index.ts"
import { removeOnce } from "../../request-record.ts"
import { keepJoined, type ReplyHeaders } from "../../wire/index.ts"
import { readShownMessage } from "../content/index.ts"
import { acceptPost } from "./deposit/index.ts"
import { defineMailboxHandler, describeMailbox, listHrefOf, type MailboxCall, type MailboxRef,
  type ReaderCall, readItems, requireReader, requireRemover, stateBesideLog,
  toMailbox } from "./mailbox-access.ts"
import { discardedFields, entryOf, feedDate, filterNames, isFeed, latestTypes, type ListingPage,
  type ListingQuery, type MailboxEntry, type NumberSpan, readLatest, readListingQuery, readPage,
  reportRead, reportRetrieved, spansOf, withMarks } from "./listing/index.ts"
import { pollListing, streamMailbox } from "./mailbox-live.ts"
import { readPreviews } from "./mailbox-previews.ts"
import { listingView, notificationView, publicView, removalParameter, removalView,
  summaryOf } from "./mailbox-views.ts"

const listingTypes = [...feedTypes, linkedDataType, eventStreamType]

const entryTypes = [...notificationTypes, linkedDataType]

/** Header fields of an answer for one reader. Search engines must not list a secret URI. */
export const mailboxReaderHeaders = ({ secret }: MailboxRef): ReplyHeaders =>
  secret === undefined ? readerHeaders : [...readerHeaders, ["X-Robots-Tag", "noindex"]]

const wholeAnswer = ({ call, service }: MailboxCall, view: ViewAnswer): PlainAnswer =>
  renderWhole(view, call, service.settings.baseUrl)

/** Answers under the request's conditions; reports the entries that the answer shows. */
const show = (
  { call, mailbox, service }: MailboxCall,
  whole: PlainAnswer,
  report: () => void,
  notModified?: PlainAnswer
): HandlerAnswer => {
  const answer = underConditions(whole, call, service.settings.baseUrl, notModified)
  if (answer.status === 200) report()
  // A problem in place of the view has none of its links.
  return answer.status >= 400
    ? { ...answer, headers: [...answer.headers, mailbox.link] }
    : answer
}

/** The page for everybody: how to deposit. */
const publicAnswer = (
  { call, mailbox, service }: MailboxCall
): Effect.Effect<HandlerAnswer, HandlerFailure> =>
  Effect.map(
    failRefused(describeMailbox(service, mailbox)),
    (view) =>
      viewAnswer(publicView(mailbox, view, call.request.viewer), {
        offered: listingTypes,
        headers: [["Vary", "Authorization"], ["Accept-Post", acceptPost]]
      })
  )

/** Whether a browser that is signed in, by an account that may not read, still sees the page. */
const isPublicFor = ({ call, mailbox }: MailboxCall, failure: HandlerFailure): boolean =>
  call.identity._tag === "Browser" && mailbox.secret === undefined &&
  failure._tag === "HttpError" &&
  (failure.problem.status === 401 || failure.problem.status === 403)

/** The challenge with which a browser asks for the mailbox's password (RFC 7617). */
const passwordChallenge: ReplyHeaders = [["WWW-Authenticate", "Basic realm=\"mailbox\""]]

/** The failure after which the browser asks for the mailbox's password, as its user wants. */
const askingForPassword = (failure: HandlerFailure): HandlerFailure =>
  failure._tag === "HttpError" && failure.problem.slug === "unauthenticated"
    ? httpError("unauthenticated", failure.problem.detail, passwordChallenge)
    : failure

/** The reader of a page; undefined for a browser that gets the page for everybody. */
const readerOfPage = (
  mailboxCall: MailboxCall,
  { isDialogWanted }: ListingQuery
): Effect.Effect<ReaderCall | undefined, HandlerFailure> =>
  Effect.catch(
    requireReader(mailboxCall),
    (failure): Effect.Effect<undefined, HandlerFailure> =>
      isDialogWanted === true
        ? Effect.fail(askingForPassword(failure))
        : isPublicFor(mailboxCall, failure)
        ? Effect.succeed(undefined)
        : Effect.fail(failure)
  )

/** Without a cursor some types begin with the newest notification, the others with the oldest. */
const pageReaderOf = (type: MediaType | undefined, { before, filter, since }: ListingQuery) => {
  if (since !== undefined) return readPage
  const isLatest = before !== undefined || filter !== undefined ||
    (type !== undefined && latestTypes.includes(type))
  return isLatest ? readLatest : readPage
}

/** Reads a page; a search, which may have to read many notifications, in a place for it. */
const readOrSearch = (
  { call, mailbox, service, view }: ReaderCall,
  query: ListingQuery,
  type: MediaType | undefined
): Effect.Effect<ListingPage, HandlerFailure> => {
  const reading = pageReaderOf(type, query)(service, mailbox, view, query)
  return query.filter === undefined
    ? reading
    : inPlace(service.textSearches, call.request, reading)
}

/*
 * A cache of listings. The bytes of a listing follow from the mailbox's head, the number of removed
 * notifications, its cached copies and its settings, which are in the key. While none of them has
 * changed, the next reader gets the same bytes without a read of the log.
 */

interface CachedListing {
  readonly answer: PlainAnswer
  /** The answer to a client that has it already. */
  readonly notModified: PlainAnswer
  /** The notifications in it, whose retention begins. */
  readonly spans: ReadonlyArray<NumberSpan>
  /** Until then, the mailbox has them recorded as retrieved, so that a report changes nothing. */
  recordedUntilMs: number
}

/**
 * What a kept listing takes. Its fields are there apart, which both answers share, and joined for
 * each of the two: more than the body of a small listing.
 */
export const keptBytes = ({ answer }: Pick<CachedListing, "answer">, key: string): number => {
  const fields = answer.headers.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  return (answer.body?.length ?? 0) + key.length + 3 * fields
}

/**
 * The cache key of a listing. Undefined for a listing that must be made: a long poll, or one from a
 * time that is searched in the log.
 */
const listingKey = (
  { call, view }: ReaderCall,
  { since }: ListingQuery,
  type: MediaType | undefined
): string | undefined => {
  const { choice } = call.request
  if (call.request.method !== "GET" || type === undefined || since?._tag === "At") return undefined
  if (choice === undefined || preferredWaitSeconds(call) !== undefined) return undefined
  const { head, isOwner, lastAtMs } = view
  const state = `${head} ${lastAtMs} ${stateBesideLog(view)}`
  const viewer = type === "text/html" ? call.request.viewer ?? "" : ""
  return `${type} ${choice.format ?? ""} ${choice.uri} ${isOwner} ${viewer} ${state}`
}

/**
 * Reports the notifications of a cached listing, unless they were recorded within the last minute.
 * A mailbox that records too many separate ranges forgets some, so a report is repeated after it.
 */
const reportCached = ({ call, mailbox, service }: MailboxCall, cached: CachedListing): void => {
  if (service.nowMs() < cached.recordedUntilMs) return
  reportRetrieved(service, call, mailbox, cached.spans, () => {
    cached.recordedUntilMs = service.nowMs() + retrievalRecordedMs
  })
}

/** The listings that were asked for again. One that is read once would only be dead memory. */
class ListingCache {
  private readonly kept = new LRUCache<string, CachedListing>({
    maxSize: listingCacheBytesMax,
    // A reader of a long log, page by page, must not evict the listings that many read.
    maxEntrySize: listingCacheBytesMax / 16,
    sizeCalculation: keptBytes
  })
  /** The keys of the listings made last. */
  private readonly made = new LRUCache<string, true>({ max: madeListingsMax })

  get(key: string): CachedListing | undefined {
    return this.kept.get(key)
  }

  /** Keeps a listing if it was made before. */
  offer(key: string, answer: PlainAnswer, spans: ReadonlyArray<NumberSpan>): void {
    const wasMade = this.made.has(key)
    this.made.set(key, true)
    if (!wasMade) return
    const notModified = notModifiedOf(answer)
    for (const { headers, status } of [answer, notModified]) keepJoined(status, headers)
    this.kept.set(key, { answer, notModified, spans, recordedUntilMs: 0 })
  }
}

/** The spans of the notifications in a listing, without those that a filter has left out. */
const shownSpans = (
  entries: ReadonlyArray<MailboxEntry>,
  { filter }: ListingQuery
): ReadonlyArray<NumberSpan> =>
  filter === undefined ? spansOf(entries) : entries.flatMap((one) => spansOf([one]))

/** GET of a mailbox: the listing for its readers, the page that deposits for everybody else. */
export const getMailbox = (service: Service) => {
  const cache = new ListingCache()
  return defineMailboxHandler(function*(mailboxCall) {
    const { call, mailbox } = mailboxCall
    const query = yield* readListingQuery(call)
    const type = negotiate(call.request.headers.get("accept"), listingTypes)
    const isAnonymous = call.identity._tag === "Anonymous" && mailbox.secret === undefined
    if (isAnonymous && type === "text/html" && !query.read) {
      return yield* publicAnswer(mailboxCall)
    }
    const readerCall = type === "text/html"
      ? yield* readerOfPage(mailboxCall, query)
      : yield* requireReader(mailboxCall)
    if (readerCall === undefined) return yield* publicAnswer(mailboxCall)
    const waitSeconds = preferredWaitSeconds(call)
    if (query.filter !== undefined && (type === eventStreamType || waitSeconds !== undefined)) {
      return yield* httpError("malformed", `${filterNames} need a listing without wait or stream`)
    }
    if (type === eventStreamType) return yield* streamMailbox(readerCall, query)
    const key = listingKey(readerCall, query, type)
    const cached = key === undefined ? undefined : cache.get(key)
    if (cached !== undefined) {
      const { answer, notModified } = cached
      return show(mailboxCall, answer, () => reportCached(mailboxCall, cached), notModified)
    }
    const page = waitSeconds === undefined
      ? yield* readOrSearch(readerCall, query, type)
      : yield* pollListing(readerCall, query, waitSeconds)
    const applied = waitSeconds === undefined ? [] : longPollHeaders(waitSeconds)
    const dated: { readonly lastModifiedMs?: number } = isFeed(type)
      ? feedDate(service, page.view)
      : {}
    const previews = type === "text/html"
      ? yield* readPreviews(service, call.request, mailbox, page)
      : undefined
    // A list of URIs shows no notification.
    const spans = type === linkedDataType ? [] : shownSpans(page.entries, query)
    const whole = wholeAnswer(mailboxCall, {
      _tag: "View",
      status: 200,
      view: listingView(mailbox, page, query, { previews, list: listHrefOf(mailboxCall) }),
      offered: listingTypes,
      headers: [
        ...mailboxReaderHeaders(mailbox),
        ["Accept-Post", acceptPost],
        ...discardedFields(page.isDiscarded),
        ...applied
      ],
      ...dated
    })
    // The key does not say which messages were changed or removed since.
    const isFinal = isFeed(type) ? dated.lastModifiedMs !== undefined : previews === undefined
    if (key !== undefined && whole.status === 200 && isFinal) {
      cache.offer(key, whole, spans)
    }
    return show(mailboxCall, whole, () => reportRetrieved(service, call, mailbox, spans))
  })(service)
}

/* One notification. */

/** The view of a notification, with the message that its page shows. */
const notificationViewOf = (
  mailboxCall: MailboxCall,
  entry: MailboxEntry
): Effect.Effect<ResourceView> => {
  const { mailbox, service } = mailboxCall
  return Effect.map(
    readShownMessage(service, summaryOf(mailbox, entry).url),
    (message) => notificationView(mailbox, entry, { message, list: listHrefOf(mailboxCall) })
  )
}

/** The notification of the path; 404 for one that never existed, 410 for a removed one. */
export const entryAt = Effect.fnUntraced(function*(
  { call, mailbox, service, view }: ReaderCall
): Effect.fn.Return<MailboxEntry, HandlerFailure> {
  const id = parseNotificationId(call.parameters.get("notification"))
  if (id === undefined || id.n > view.head) return yield* httpError("not-found")
  const [item] = yield* readItems(service, mailbox, id.n, 1)
  if (item === undefined || item.n !== id.n) return yield* httpError("gone")
  if (isRemoval(item.value)) return yield* httpError("not-found")
  const entry = entryOf(item)
  if (entry.id !== notificationId(id.n, id.idRandom)) return yield* httpError("not-found")
  const [shown = entry] = yield* withMarks(service, mailbox.name, view, [entry])
  return shown
})

export const getNotification = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox, service } = mailboxCall
  const readerCall = yield* requireReader(mailboxCall)
  const entry = yield* entryAt(readerCall)
  const isPage = negotiate(call.request.headers.get("accept"), entryTypes) === "text/html"
  // A page that only asks shows no message, and marks nothing as read.
  const isAsking = isPage && (yield* readQuery(call)).get(removalParameter) === "true"
  const list = listHrefOf(mailboxCall)
  const whole = wholeAnswer(mailboxCall, {
    _tag: "View",
    status: 200,
    view: isAsking
      ? removalView(mailbox, entry, list)
      : isPage
      ? yield* notificationViewOf(mailboxCall, entry)
      : notificationView(mailbox, entry, { list }),
    offered: entryTypes,
    headers: mailboxReaderHeaders(mailbox)
  })
  return show(mailboxCall, whole, () => {
    reportRetrieved(service, call, mailbox, spansOf([entry]))
    if (isPage && !isAsking && entry.isRead !== true) reportRead(readerCall, entry.n)
  })
})

const removeNotification = Effect.fnUntraced(function*(
  readerCall: ReaderCall
): Effect.fn.Return<void, HandlerFailure> {
  const { call, mailbox, service } = readerCall
  const entry = yield* entryAt(readerCall)
  if (isConditional(call)) {
    // A notification never changes, so that the actor need not compare a version. Only its page
    // does, with the message that it shows.
    const tags = entityTags(call, yield* notificationViewOf(readerCall, entry), entryTypes)
    if (!preconditionsHold(call, tags)) return yield* conditionFailed
  }
  const { idRandom, n } = entry
  const message: MailboxMessage = { _tag: "Remove", n, idRandom, reader: readerCall.reader }
  const removal = ask<MailboxReply>(service, mailbox.to, message)
  const { account, isAdmin } = readerCall.reader
  // What a reader removes is the reader's own. An admin moderates, also in a mailbox of its own.
  yield* isAdmin === true
    ? audited(service, call, {
      caller: { account, admin: true },
      action: "notification.remove",
      target: `/mailboxes/${mailbox.name}/notifications/${notificationId(n, idRandom)}`
    }, removal)
    : removal
})

export const deleteNotification = defineMailboxHandler(function*(mailboxCall) {
  yield* removeNotification(yield* requireRemover(mailboxCall))
  return emptyAnswer(204, [mailboxCall.mailbox.link])
})

/** DELETE from the form of a page, which redirects the browser to the mailbox. */
export const postNotificationForm = defineMailboxHandler(function*(mailboxCall) {
  const { call } = mailboxCall
  yield* removeOnce(
    call,
    Effect.gen(function*(): Effect.fn.Return<void, HandlerFailure> {
      // Before the form is read: a stranger's body is not waited for.
      const readerCall = yield* requireRemover(mailboxCall)
      yield* readFormMethod(call, "notification", ["delete"])
      yield* removeNotification(readerCall)
    })
  )
  return toMailbox(mailboxCall)
})
