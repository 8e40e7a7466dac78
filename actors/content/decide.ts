/**
 * The decisions of a content resource. When a body is replaced or removed, its blob first becomes
 * stale: the commit stores the blob's id and sets a timer. The actor removes the blob after that
 * commit. If the node crashes before the removal, the timer repeats it. The same timer ends the
 * lifetime of content that expires; see lifetime.ts.
 */
import { append, become, type BehaviorTable, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { blobRemovalRetryMs, inlinedCheckMs, linkCheckRetryMs, receiptsMax, removalsMax,
  staleBlobsMax } from "../limits.ts"
import { deny, denyEach, type Reason } from "../refusals.ts"
import { sameHash } from "../secret-hash.ts"
import { expiryOf, forgetAtMs, hasEnded, lifetimeAtMs, linkAt, linksOf, readAt, withChecks,
  withLink, withoutLink } from "./lifetime.ts"
import type { StoredUsage } from "../usage/index.ts"
import { type ContentAccess, type ContentAction, type ContentMessage, type ContentReply,
  type ContentState, type ContentSummary, encodeReceipt, receiptKey } from "./protocol.ts"

type Published = Variant<ContentState, "Published">

type Removed = Variant<ContentState, "Removed">

type ContentTable = BehaviorTable<ContentState, ContentMessage, ContentReply, ContentAction>

const done: ContentReply = { _tag: "Done" }

const countRemoved: ContentAction = { _tag: "CountBody", stored: { _tag: "Removed" } }

const overwritten: ContentReply = { _tag: "Overwritten" }

const mayEdit = (state: Published, { editHash, account }: ContentAccess): boolean =>
  sameHash(editHash, state.editHash) || (account !== undefined && account === state.owner)

/**
 * Why the caller may not edit; undefined if it may. A wrong edit secret is refused as NotFound, so
 * that it does not reveal that there is content.
 */
const editRefusal = (state: Published, access: ContentAccess): Reason | undefined =>
  mayEdit(state, access)
    ? undefined
    : access.editHash !== undefined
    ? "NotFound"
    : access.account === undefined
    ? "Unauthenticated"
    : "Forbidden"

/** Why the caller may not remove; undefined if it may. A wrong edit secret stays NotFound. */
const removalRefusal = (state: Published, access: ContentAccess): Reason | undefined =>
  access.isAdmin === true && access.editHash === undefined
    ? undefined
    : editRefusal(state, access)

/** Why the caller may not read; undefined if it may. */
const readRefusal = (state: Published, access: ContentAccess): Reason | undefined => {
  if (mayEdit(state, access)) return undefined
  if (access.editHash !== undefined) return "NotFound"
  return state.passwordHash === undefined || sameHash(access.passwordHash, state.passwordHash)
    ? undefined
    : "Unauthenticated"
}

/** What the content stores, beside its stale blobs. */
const storedUsage = (state: Published | Removed): StoredUsage =>
  state._tag === "Removed" ? { _tag: "Removed" } : {
    _tag: "Body",
    blobId: state.body.blobId,
    generation: state.generation,
    lengthBytes: state.body.lengthBytes
  }

/** The content in a listing. */
const summaryOf = (state: Published, retentionMs: number): ContentSummary => {
  const expiresAtMs = expiryOf(state, retentionMs)
  return {
    type: state.body.type,
    lengthBytes: state.body.lengthBytes,
    lastModifiedMs: state.lastModifiedMs,
    ...state.owner === undefined ? {} : { owner: state.owner },
    ...expiresAtMs === undefined ? {} : { expiresAtMs }
  }
}

/** Replies what the content stores; a certain reply needs a commit, as {@link replyHasBlob}. */
const measure = (
  state: Published | Removed,
  isCertain: boolean | undefined,
  retentionMs: number
): Decision<ContentState, ContentReply, ContentAction> =>
  (isCertain === true ? become<ContentState>(state) : stay<ContentState>()).reply<ContentReply>({
    _tag: "Measured",
    stored: storedUsage(state),
    summary: state._tag === "Removed" ? undefined : summaryOf(state, retentionMs)
  })

/** Removes the stale blobs now. The timer repeats the removal if it fails. */
const removeStaleBlobs = (
  state: Published | Removed,
  nowMs: number
): Decision<ContentState, never, ContentAction> =>
  become<ContentState>(state)
    .setTimer(nowMs + blobRemovalRetryMs)
    .perform<ContentAction>({
      _tag: "RemoveBlobs",
      blobIds: state.stale,
      stored: storedUsage(state)
    })

/** The stale blobs without those that have been removed. */
const withoutRemoved = (
  stale: ReadonlyArray<string>,
  removedIds: ReadonlyArray<string>
): ReadonlyArray<string> => stale.filter((id) => !removedIds.includes(id))

/** The log numbers of the receipts that one commit removes. The last receipt is the first. */
const nextReceipts = (receiptsLeft: number): ReadonlyArray<number> =>
  Array.from({ length: Math.min(receiptsLeft, removalsMax) }, (_, offset) => receiptsLeft - offset)

/** Stores that the content is removed. Removes the stale blobs, and the receipts in steps. */
const continueRemoval = (
  state: Removed,
  nowMs: number
): Decision<ContentState, never, ContentAction> => {
  const receipts = nextReceipts(state.receiptsLeft)
  const next: Removed = { ...state, receiptsLeft: state.receiptsLeft - receipts.length }
  const decision: Decision<ContentState, never, ContentAction> = next.stale.length > 0
    ? removeStaleBlobs(next, nowMs)
    : become<ContentState>(next).setTimer(next.forgetAtMs ?? null)
  if (receipts.length > 0) decision.removeItems(...receipts)
  // The timer is due at once: the next receipts do not wait until the removal of blobs is repeated.
  return next.receiptsLeft > 0 ? decision.setTimer(nowMs) : decision
}

const remove = (
  state: Published,
  { head, nowMs }: DecisionContext,
  retentionMs: number
): Decision<ContentState, ContentReply, ContentAction> => {
  const removed: Removed = {
    _tag: "Removed",
    stale: [...state.stale, state.body.blobId],
    receiptsLeft: head,
    ...forgetAtMs(state, nowMs, retentionMs)
  }
  return continueRemoval(removed, nowMs).reply(done)
}

const hasBlobReply = (hasBlob: boolean): ContentReply => ({ _tag: "HasBlob", hasBlob })

/**
 * Replies whether the content refers to the blob. After "no" the caller removes the blob. So "no"
 * needs a commit: the commit fails if an earlier commit, whose outcome this actor does not know,
 * has stored a reference to the blob.
 */
const replyHasBlob = (
  state: Published | Removed,
  isReferenced: boolean
): Decision<ContentState, ContentReply, ContentAction> =>
  (isReferenced ? stay<ContentState>() : become<ContentState>(state)).reply(
    hasBlobReply(isReferenced)
  )

const publishedReply = ({ body, generation }: Published): ContentReply => ({
  _tag: "Published",
  body,
  generation
})

/** The cells that are equal before content is published and after it is removed. */
const withoutContent = (reason: "NotFound" | "Gone") =>
  denyEach(reason, "Describe", "Authorize", "Overwrite", "Remove", "Receipt", "Link", "Unlink")

const absent = (retentionMs: number): ContentTable["Absent"] => ({
  Publish: (_state, message, { nowMs }) => {
    const { requestId, body, editHash, passwordHash, owner, inlinedIn } = message
    const created: Published = {
      _tag: "Published",
      requestId,
      body,
      lastModifiedMs: nowMs,
      generation: 1,
      editHash,
      ...passwordHash === undefined ? {} : { passwordHash },
      ...owner === undefined ? {} : { owner },
      stale: [],
      ...inlinedIn === undefined ? {} : {
        isInlined: true,
        links: [linkAt(inlinedIn, nowMs)],
        checkAtMs: nowMs + inlinedCheckMs
      }
    }
    const timerMs = lifetimeAtMs(created, retentionMs)
    const decision = become<ContentState>(created)
      .perform<ContentAction>({ _tag: "CountBody", stored: storedUsage(created) })
    return (timerMs === null ? decision : decision.setTimer(timerMs)).reply(publishedReply(created))
  },
  ...withoutContent("NotFound"),
  // The tombstone refuses a Publish that comes later. So what the ledger counts does not exist.
  Withdraw: () =>
    become<ContentState>({ _tag: "Removed", stale: [], receiptsLeft: 0 })
      .perform<ContentAction>(countRemoved)
      .reply(done),
  HasBlob: () => stay<ContentState>().removeActor().reply(hasBlobReply(false)),
  LinksChecked: () => stay(),
  Measure: () =>
    stay<ContentState>().removeActor().reply<ContentReply>({
      _tag: "Measured",
      stored: { _tag: "Absent" },
      summary: undefined
    }),
  BlobsRemoved: () => stay(),
  TimerFired: () => stay()
})

/** HTTP dates are of whole seconds: each body has a second of its own (RFC 9110 §8.8.2.1). */
const dateAfter = (lastModifiedMs: number, nowMs: number): number =>
  Math.max(nowMs, (Math.floor(lastModifiedMs / 1000) + 1) * 1000)

const overwrite: ContentTable["Published"]["Overwrite"] = (state, message, { nowMs }) => {
  const { access, body, ifDigest } = message
  const reason = editRefusal(state, access)
  if (reason !== undefined) return deny(reason)
  const { generation, lastModifiedMs } = state
  // An earlier attempt of this request has stored the body, and its reply was lost.
  if (body.blobId === state.body.blobId || state.stale.includes(body.blobId)) {
    return stay().reply(overwritten)
  }
  if (ifDigest !== undefined && ifDigest !== state.body.digest) return deny("PreconditionFailed")
  if (state.stale.length >= staleBlobsMax) {
    return deny("Busy", "the service is still removing earlier bodies; try again later")
  }
  const next: Published = {
    ...state,
    body,
    generation: generation + 1,
    lastModifiedMs: dateAfter(lastModifiedMs, nowMs),
    stale: [...state.stale, state.body.blobId]
  }
  return removeStaleBlobs(next, nowMs).reply(overwritten)
}

/** Stores a state with other links, if they are others, and the time of an earlier check. */
const storeLinks = (
  state: Published,
  next: Published,
  retentionMs: number
): Decision<ContentState> => {
  if (next === state) return stay<ContentState>()
  const decision = become<ContentState>(next)
  // The timer of stale bodies is due before, and sets this one.
  return next.checkAtMs === state.checkAtMs || next.stale.length > 0
    ? decision
    : decision.setTimer(lifetimeAtMs(next, retentionMs))
}

/** A repetition. The content is that of one more notification, unless it has too many. */
const publishAgain =
  (retentionMs: number): ContentTable["Published"]["Publish"] => (state, message, { nowMs }) => {
    const { inlinedIn, requestId } = message
    if (requestId !== state.requestId) return deny("Taken")
    const next = inlinedIn === undefined ? state : withLink(state, inlinedIn, nowMs)
    return next === undefined
      ? stay().reply<ContentReply>({ _tag: "PublishedOnce" })
      : storeLinks(state, next, retentionMs).reply(publishedReply(state))
  }

/** Ends the content, or finds out what keeps it. */
const endLifetime = (
  state: Published,
  context: DecisionContext,
  retentionMs: number
): Decision<ContentState, ContentReply, ContentAction> => {
  const { nowMs } = context
  const dueAtMs = lifetimeAtMs(state, retentionMs)
  if (dueAtMs === null || nowMs < dueAtMs) return stay<ContentState>().setTimer(dueAtMs)
  if (hasEnded(state, nowMs, retentionMs)) return remove(state, context, retentionMs)
  return stay<ContentState>()
    .perform<ContentAction>({
      _tag: "CheckLinks",
      links: linksOf(state),
      isInlined: state.isInlined === true,
      nowMs
    })
    .deferTimer(nowMs + linkCheckRetryMs)
}

/** The cells that depend on how long content is kept. */
const lifetimeCells = (retentionMs: number) => ({
  Link: (state: Published, key: Variant<ContentMessage, "Link">, { nowMs }: DecisionContext) =>
    storeLinks(state, withLink(state, key, nowMs) ?? state, retentionMs).reply(done),
  Unlink: (
    state: Published,
    key: Variant<ContentMessage, "Unlink">,
    context: DecisionContext
  ): Decision<ContentState, ContentReply, ContentAction> => {
    const next = withoutLink(state, key)
    return next !== state && hasEnded(next, context.nowMs, retentionMs)
      ? remove(next, context, retentionMs)
      : storeLinks(state, next, retentionMs).reply(done)
  },
  LinksChecked: (
    state: Published,
    message: Variant<ContentMessage, "LinksChecked">,
    context: DecisionContext
  ): Decision<ContentState, ContentReply, ContentAction> => {
    const next = withChecks(state, message, context.nowMs, retentionMs)
    return hasEnded(next, context.nowMs, retentionMs)
      ? remove(next, context, retentionMs)
      : become<ContentState>(next).setTimer(lifetimeAtMs(next, retentionMs))
  }
})

const published = (retentionMs: number): ContentTable["Published"] => ({
  ...lifetimeCells(retentionMs),
  Publish: publishAgain(retentionMs),
  Describe: (state, { access, isPreview }, { nowMs }) => {
    const reason = readRefusal(state, access)
    if (reason !== undefined) return deny(reason)
    const { body, lastModifiedMs, passwordHash } = state
    const read = isPreview === true ? undefined : readAt(state, nowMs, retentionMs)
    return (read === undefined ? stay<ContentState>() : become<ContentState>(read)).reply<
      ContentReply
    >({
      _tag: "Described",
      view: { body, lastModifiedMs, hasPassword: passwordHash !== undefined }
    })
  },
  Authorize: (state, { access, toRemove }) => {
    const reason = toRemove === true
      ? removalRefusal(state, access)
      : editRefusal(state, access)
    return reason === undefined ? stay().reply(done) : deny(reason)
  },
  Overwrite: overwrite,
  Remove: (state, { access, ifDigest }, context) => {
    const reason = removalRefusal(state, access)
    if (reason !== undefined) return deny(reason)
    if (ifDigest !== undefined && ifDigest !== state.body.digest) return deny("PreconditionFailed")
    return remove(state, context, retentionMs)
  },
  Withdraw: (state, { requestId }, context) =>
    requestId === state.requestId ? remove(state, context, retentionMs) : deny("NotFound"),
  Receipt: (state, { access, isDryRun, requestId, value }, { findDuplicate, head, nowMs }) => {
    const reason = readRefusal(state, access)
    if (reason !== undefined) return deny(reason)
    const key = requestId === undefined ? undefined : receiptKey(requestId)
    const storedAs = key === undefined ? undefined : findDuplicate(key)
    if (storedAs !== undefined) {
      return stay().reply<ContentReply>({ _tag: "Received", n: storedAs })
    }
    if (head >= receiptsMax) return deny("Full", "the message has the maximum number of receipts")
    if (isDryRun === true) return stay().reply(done)
    return append<ContentState>(encodeReceipt(nowMs, value, requestId), key)
      .reply<ContentReply>({ _tag: "Received", n: head + 1 })
  },
  Measure: (state, { isCertain }) => measure(state, isCertain, retentionMs),
  HasBlob: (state, { blobId }) =>
    replyHasBlob(state, state.body.blobId === blobId || state.stale.includes(blobId)),
  BlobsRemoved: (state, { blobIds }, { nowMs }) => {
    const stale = withoutRemoved(state.stale, blobIds)
    if (stale.length === state.stale.length) return stay()
    return become<ContentState>({ ...state, stale })
      .setTimer(stale.length === 0 ? lifetimeAtMs(state, retentionMs) : nowMs + blobRemovalRetryMs)
  },
  TimerFired: (state, _message, context) =>
    state.stale.length === 0
      ? endLifetime(state, context, retentionMs)
      : removeStaleBlobs(state, context.nowMs)
})

const removed = (retentionMs: number): ContentTable["Removed"] => ({
  // The id is random: only a repetition of the request that published the content has it.
  Publish: () => stay().reply<ContentReply>({ _tag: "PublishedOnce" }),
  ...withoutContent("Gone"),
  // An earlier count may have failed. The removal of stale blobs counts by itself.
  Withdraw: ({ stale }) =>
    stale.length > 0
      ? stay().reply(done)
      : stay<ContentState>().perform<ContentAction>(countRemoved).reply(done),
  LinksChecked: () => stay(),
  Measure: (state, { isCertain }) => measure(state, isCertain, retentionMs),
  HasBlob: (state, { blobId }) => replyHasBlob(state, state.stale.includes(blobId)),
  BlobsRemoved: (state, { blobIds }, { nowMs }) => {
    const stale = withoutRemoved(state.stale, blobIds)
    if (stale.length === state.stale.length) return stay()
    const timerMs = state.receiptsLeft > 0
      ? nowMs
      : stale.length > 0
      ? nowMs + blobRemovalRetryMs
      : state.forgetAtMs ?? null
    return become<ContentState>({ ...state, stale }).setTimer(timerMs)
  },
  TimerFired: (state, _message, { nowMs }) =>
    state.stale.length > 0 || state.receiptsLeft > 0
      ? continueRemoval(state, nowMs)
      : state.forgetAtMs !== undefined && nowMs >= state.forgetAtMs
      ? stay<ContentState>().removeActor()
      : stay<ContentState>().setTimer(state.forgetAtMs ?? null)
})

/** The table, with the retention of anonymous content in ms. */
export const contentTable = (retentionMs: number): ContentTable => ({
  Absent: absent(retentionMs),
  Published: published(retentionMs),
  Removed: removed(retentionMs)
})
