/**
 * The decisions of a content resource. A replaced or removed body first becomes stale, with a timer
 * in the same commit, and its blob is removed then, so that no crash leaves it behind.
 */
import { append, become, type BehaviorTable, type Decision, stay,
  type Variant } from "../../runtime/index.ts"
import { blobRemovalRetryMs, receiptsMax, removalsMax, staleBlobsMax } from "../limits.ts"
import { deny, denyEach, type Reason } from "../refusals.ts"
import { sameHash } from "../secret-hash.ts"
import { type ContentAccess, type ContentAction, type ContentMessage, type ContentReply,
  type ContentState, encodeReceipt } from "./protocol.ts"

type Published = Variant<ContentState, "Published">

type Removed = Variant<ContentState, "Removed">

type Contents = BehaviorTable<ContentState, ContentMessage, ContentReply, ContentAction>

const done: ContentReply = { _tag: "Done" }

const overwritten: ContentReply = { _tag: "Overwritten" }

const mayEdit = (state: Published, { editHash, account }: ContentAccess): boolean =>
  sameHash(editHash, state.editHash) || (account !== undefined && account === state.owner)

/** Why the access may not edit. A wrong capability must not reveal that there is content. */
const editDenied = (state: Published, access: ContentAccess): Reason | undefined =>
  mayEdit(state, access)
    ? undefined
    : access.editHash !== undefined
    ? "NotFound"
    : access.account === undefined
    ? "Unauthenticated"
    : "Forbidden"

const readDenied = (state: Published, access: ContentAccess): Reason | undefined => {
  if (mayEdit(state, access)) return undefined
  if (access.editHash !== undefined) return "NotFound"
  return state.passwordHash === undefined || sameHash(access.passwordHash, state.passwordHash)
    ? undefined
    : "Unauthenticated"
}

/** Removes stale blobs now, and again if that fails. */
const removeBlobs = (
  state: Published | Removed,
  nowMs: number
): Decision<ContentState, never, ContentAction> =>
  become<ContentState>(state)
    .setTimer(nowMs + blobRemovalRetryMs)
    .perform<ContentAction>({ _tag: "RemoveBlobs", blobIds: state.stale })

/** The stale blobs that are not removed yet. */
const staleWithout = (
  stale: ReadonlyArray<string>,
  blobIds: ReadonlyArray<string>
): ReadonlyArray<string> => stale.filter((id) => !blobIds.includes(id))

/** The receipts that this commit removes, the last first, and how many are left. */
const clearReceipts = (
  left: number
): { readonly numbers: Array<number>; readonly left: number } => {
  const count = Math.min(left, removalsMax)
  return { numbers: Array.from({ length: count }, (_, at) => left - at), left: left - count }
}

/** Writes the tombstone, and removes as many receipts as fit one commit. */
const clearRemoved = (
  state: Removed,
  nowMs: number
): Decision<ContentState, never, ContentAction> => {
  const { numbers, left } = clearReceipts(state.receiptsLeft)
  const next: Removed = { ...state, receiptsLeft: left }
  const decision: Decision<ContentState, never, ContentAction> = next.stale.length > 0
    ? removeBlobs(next, nowMs)
    : become<ContentState>(next).setTimer(null)
  if (numbers.length > 0) decision.removeItems(...numbers)
  // The other receipts do not wait for the retry of the blobs.
  return left > 0 ? decision.setTimer(nowMs) : decision
}

const holds = (hasBlob: boolean): ContentReply => ({ _tag: "HasBlob", hasBlob })

/**
 * Whether the content names the blob. "No" lets the caller remove it, so it is committed: that
 * fails if an earlier commit, whose outcome is unknown to this actor, was stored late.
 */
const hasBlob = (
  state: Published | Removed,
  isNamed: boolean
): Decision<ContentState, ContentReply, ContentAction> =>
  (isNamed ? stay<ContentState>() : become<ContentState>(state)).reply(holds(isNamed))

const publishedReply = ({ body, generation }: Published): ContentReply => ({
  _tag: "Published",
  body,
  generation
})

/** The cells that are the same before content is published and after it is removed. */
const withoutContent = (reason: "NotFound" | "Gone") =>
  denyEach(reason, "Describe", "Authorize", "Overwrite", "Remove", "Receipt")

const absent: Contents["Absent"] = {
  Publish: (_state, message, { nowMs }) => {
    const { requestId, body, editHash, passwordHash, owner } = message
    const kept: Published = {
      _tag: "Published",
      requestId,
      body,
      lastModifiedMs: nowMs,
      generation: 1,
      editHash,
      ...passwordHash === undefined ? {} : { passwordHash },
      ...owner === undefined ? {} : { owner },
      stale: []
    }
    return become<ContentState>(kept).reply(publishedReply(kept))
  },
  ...withoutContent("NotFound"),
  HasBlob: () => stay<ContentState>().removeActor().reply(holds(false)),
  BlobsRemoved: () => stay(),
  TimerFired: () => stay()
}

const overwrite: Contents["Published"]["Overwrite"] = (state, message, { nowMs }) => {
  const { access, body, ifDigest } = message
  const reason = editDenied(state, access)
  if (reason !== undefined) return deny(reason)
  const { generation, lastModifiedMs } = state
  // The message was decided before, and its reply was lost.
  if (body.blobId === state.body.blobId || state.stale.includes(body.blobId)) {
    return stay().reply(overwritten)
  }
  if (ifDigest !== undefined && ifDigest !== state.body.digest) return deny("PreconditionFailed")
  if (state.stale.length >= staleBlobsMax) return deny("Busy", "earlier bodies are being removed")
  const next: Published = {
    ...state,
    body,
    generation: generation + 1,
    lastModifiedMs: Math.max(nowMs, lastModifiedMs),
    stale: [...state.stale, state.body.blobId]
  }
  return removeBlobs(next, nowMs).reply(overwritten)
}

const published: Contents["Published"] = {
  Publish: (state, { requestId }) =>
    requestId === state.requestId
      ? stay().reply(publishedReply(state))
      : deny("Taken"),
  Describe: (state, { access }) => {
    const reason = readDenied(state, access)
    if (reason !== undefined) return deny(reason)
    const { body, lastModifiedMs, passwordHash } = state
    return stay().reply<ContentReply>({
      _tag: "Described",
      view: { body, lastModifiedMs, hasPassword: passwordHash !== undefined }
    })
  },
  Authorize: (state, { access }) => {
    const reason = editDenied(state, access)
    return reason === undefined ? stay().reply(done) : deny(reason)
  },
  Overwrite: overwrite,
  Remove: (state, { access, ifDigest }, { nowMs, head }) => {
    const reason = editDenied(state, access)
    if (reason !== undefined) return deny(reason)
    if (ifDigest !== undefined && ifDigest !== state.body.digest) return deny("PreconditionFailed")
    const stale = [...state.stale, state.body.blobId]
    return clearRemoved({ _tag: "Removed", stale, receiptsLeft: head }, nowMs).reply(done)
  },
  Receipt: (state, { access, requestId, value }, { findDuplicate, head, nowMs }) => {
    const reason = readDenied(state, access)
    if (reason !== undefined) return deny(reason)
    const first = requestId === undefined ? undefined : findDuplicate(requestId)
    if (first !== undefined) return stay().reply<ContentReply>({ _tag: "Received", n: first })
    if (head >= receiptsMax) return deny("Full", "the message has the maximum number of receipts")
    return append<ContentState>(encodeReceipt(nowMs, value, requestId))
      .reply<ContentReply>({ _tag: "Received", n: head + 1 })
  },
  HasBlob: (state, { blobId }) =>
    hasBlob(state, state.body.blobId === blobId || state.stale.includes(blobId)),
  BlobsRemoved: (state, { blobIds }, { nowMs }) => {
    const stale = staleWithout(state.stale, blobIds)
    if (stale.length === state.stale.length) return stay()
    return become<ContentState>({ ...state, stale })
      .setTimer(stale.length === 0 ? null : nowMs + blobRemovalRetryMs)
  },
  TimerFired: (state, _message, { nowMs }) =>
    state.stale.length === 0 ? stay<ContentState>().setTimer(null) : removeBlobs(state, nowMs)
}

const removed: Contents["Removed"] = {
  // An id is random, so only a repetition of the request that published it knows it.
  Publish: () => stay().reply<ContentReply>({ _tag: "PublishedOnce" }),
  ...withoutContent("Gone"),
  HasBlob: (state, { blobId }) => hasBlob(state, state.stale.includes(blobId)),
  BlobsRemoved: (state, { blobIds }, { nowMs }) => {
    const stale = staleWithout(state.stale, blobIds)
    if (stale.length === state.stale.length) return stay()
    const timerMs = state.receiptsLeft > 0
      ? nowMs
      : stale.length > 0
      ? nowMs + blobRemovalRetryMs
      : null
    return become<ContentState>({ ...state, stale }).setTimer(timerMs)
  },
  TimerFired: (state, _message, { nowMs }) =>
    state.stale.length === 0 && state.receiptsLeft === 0
      ? stay<ContentState>().setTimer(null)
      : clearRemoved(state, nowMs)
}

export const contentTable: Contents = { Absent: absent, Published: published, Removed: removed }
