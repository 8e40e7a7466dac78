/**
 * The decisions of a mailbox (protocol §1.2). The received time never goes back, whatever the clock
 * does. A notification is removed by its reader, by a follow-up of its sender, or when its
 * retention after retrieval has passed, and in no other way.
 */
import { append, become, type BehaviorTable, type Decision, type DecisionContext, stay,
  type Variant } from "../../runtime/index.ts"
import { type BlockedBy, blockedText, findBlock, withBlock } from "../blocks.ts"
import { mailboxBlocksMax, originBrowsersMax, registrationsMax } from "../limits.ts"
import { deny, denyEach, isOutdated, notOwner, type Reason } from "../refusals.ts"
import { hasLaterFields } from "../schemas.ts"
import { sameHash } from "../secret-hash.ts"
import { encodeItem, repeatKey } from "./log-item.ts"
import { areSameSettings, firstStartRequestId, type MailboxAction, type MailboxMessage,
  type MailboxReader, type MailboxReply, type MailboxState, type MailboxView, type Removal,
  reportsRequestId } from "./protocol.ts"
import { covers, subtract } from "./ranges.ts"
import { markRead, markUnread } from "./read-marks.ts"
import { beginExpiry, clearDestroyed, findRemovedLocalDelivery, finishExpiry, hasForgottenRemovals,
  nextTimerMs, recordRetrieval, rememberLocalDeliveries, removeItems,
  storeFollowUp } from "./removal.ts"
import { isSaveDue, nothingWaiting, savedWaiting, waitingBytes, waitingBytesOf, type WaitingCount,
  withWaiting } from "./waiting-bytes.ts"
import { isWatched, partOf, signalBackgroundTasks, signalDeposit, signalKey,
  signalRegistrations } from "./signals.ts"

type Open = Variant<MailboxState, "Open">

type Destroyed = Variant<MailboxState, "Destroyed">

type Mailboxes = BehaviorTable<MailboxState, MailboxMessage, MailboxReply, MailboxAction>

/** The operator's limits for all mailboxes. */
export interface MailboxLimits {
  /** Notifications that one mailbox keeps at a time. */
  readonly notificationsMax: number
  /** Bytes of notifications that clients without an account have deposited, and that wait. */
  readonly anonymousBytesMax: number
}

/** The table, under the operator's limits. */
export const mailboxTable = (limits: MailboxLimits): Mailboxes => ({
  Absent: {
    ...withoutMailbox("NotFound"),
    Create: (_state, message, context) => createAs(1, message, context),
    CheckCreate: () => stay().reply(done),
    TimerFired: () => stay()
  },
  Open: open(limits),
  Destroyed: {
    ...withoutMailbox("Gone"),
    Create: destroyedName,
    CheckCreate: destroyedName,
    TimerFired: (state, _message, context) => clearDestroyed(state, context)
  }
})

const destroyedName = () =>
  deny("Taken", "a mailbox of this name was destroyed; names are not reused")

/** The cells that are the same before a mailbox is created and after it is destroyed. */
const withoutMailbox = (reason: "NotFound" | "Gone") => ({
  ...denyEach(reason, "Describe", "Deposit", "List", "Retrieved", "Remove", "Configure"),
  ...denyEach(reason, "ChangeSecrets", "Destroy", "Register", "Unregister", "ReadHead"),
  ...denyEach(reason, "Registrations", "CopiesChanged", "CheckNotification"),
  ...denyEach(reason, "Block", "Unblock", "Blocks", "MarkRead", "MarkUnread", "SetWebhookSecret"),
  ...denyEach(reason, "Replace"),
  Expire: () => stay()
})

const open = (limits: MailboxLimits): Mailboxes["Open"] => ({
  Create: createAgain,
  CheckCreate: (state, message, context) =>
    isRepeated(state, message) || mayReplace(state, message, context)
      ? stay().reply(done)
      : deny("Taken"),
  Describe: describe,
  Deposit: deposit(limits),
  Replace: replace(limits),
  List: (state, { reader }, { head }) =>
    mayRead(state, reader)
      ? stay().reply<MailboxReply>({ _tag: "Listed", view: readerView(state, reader, head) })
      : deny(readerDenied(reader)),
  Retrieved: recordRetrieval,
  MarkRead: forReader(markRead),
  MarkUnread: forReader(markUnread),
  Remove: (state, { idRandom, n, reader }, context) => {
    if (reader.isAdmin !== true && !mayRead(state, reader)) return deny(readerDenied(reader))
    if (n < 1 || n > context.head) return deny("NotFound")
    if (covers(state.gone, n)) return deny("Gone")
    const removed = [{ n, idRandom }]
    const next = rememberLocalDeliveries(state, removed, context.nowMs)
    return removeItems(next, { removed, events: [] }, context).reply(done)
  },
  Configure: configure,
  ChangeSecrets: changeSecrets,
  SetWebhookSecret: setWebhookSecret,
  Destroy: destroy,
  Register: register,
  Unregister: unregister,
  ReadHead: readHead,
  Registrations: (state, { reader }) =>
    mayRead(state, reader)
      ? stay().reply<MailboxReply>({ _tag: "Registrations", ids: state.registrations })
      : deny(readerDenied(reader)),
  Block: block,
  Unblock: unblock,
  Blocks: listBlocks,
  CopiesChanged: (state) =>
    become<MailboxState>({ ...state, fetched: state.fetched + 1 }).reply(done),
  CheckNotification: (state, { n }, { head }) =>
    stay().reply<MailboxReply>({
      _tag: "NotificationChecked",
      isStored: n <= head && !covers(state.gone, n),
      isRetrieved: covers(state.retrieved, n)
    }),
  Expire: finishExpiry,
  TimerFired: beginExpiry
})

const describe: Mailboxes["Open"]["Describe"] = (state, message, { head, nowMs }) => {
  const { depositor, reader } = message
  const refusal = depositor === undefined
    ? undefined
    : blockRefusal(state, { ...depositor, fragment: "" }, nowMs)
  return refusal ?? stay().reply<MailboxReply>({
    _tag: "Described",
    view: view(state, reader.account, head),
    mayRead: mayRead(state, reader)
  })
}

const configure: Mailboxes["Open"]["Configure"] = (state, message) => {
  const { caller, settings, webhookSecret = state.webhookSecret } = message
  const reason = notOwner(state.owner, caller, false)
  if (reason !== undefined) return deny(reason)
  if (isOutdated(state, message)) {
    // A repetition finds its change.
    const isMade = areSameSettings(settings, state.settings) &&
      webhookSecret === state.webhookSecret
    return isMade
      ? stay().reply<MailboxReply>({ _tag: "Configured", version: state.version })
      : deny("PreconditionFailed")
  }
  const next: Open = { ...state, settings, webhookSecret, version: state.version + 1 }
  return become<MailboxState>(next)
    .setTimer(nextTimerMs(next))
    .reply<MailboxReply>({ _tag: "Configured", version: next.version })
}

/** Replaces the secrets. Registrations that were made by the old ones learn it from the signal. */
const changeSecrets: Mailboxes["Open"]["ChangeSecrets"] = (state, message, { self }) => {
  const { caller, passwordHash, sharedHash } = message
  const reason = notOwner(state.owner, caller, false)
  if (reason !== undefined) return deny(reason)
  if (sameHash(passwordHash, state.passwordHash)) {
    return stay().reply<MailboxReply>({ _tag: "Configured", version: state.version })
  }
  if (isOutdated(state, message)) return deny("PreconditionFailed")
  const version = state.version + 1
  const secretsVersion = state.secretsVersion + 1
  const next: Open = { ...state, passwordHash, sharedHash, version, secretsVersion }
  const decision = become<MailboxState>(next)
  signalRegistrations(decision, self, state.registrations, undefined)
  return decision.reply<MailboxReply>({ _tag: "Configured", version })
}

const setWebhookSecret: Mailboxes["Open"]["SetWebhookSecret"] = (state, { caller, secret }) => {
  const reason = notOwner(state.owner, caller, false)
  if (reason !== undefined) return deny(reason)
  if (secret === state.webhookSecret) return stay().reply(done)
  return become<MailboxState>({ ...state, webhookSecret: secret, version: state.version + 1 })
    .reply(done)
}

/** What Create and CheckCreate say of the creator. */
type Creator = Pick<Variant<MailboxMessage, "Create">, "isAdmin" | "owner" | "requestId">

/**
 * Whether a new mailbox may take the place of this one. Neither a read nor a passed-on address
 * shows in the state, so that another account could take the name of one that is in use.
 */
const mayReplace = (state: Open, { isAdmin, owner }: Creator, context: DecisionContext): boolean =>
  (isAdmin === true || owner === state.owner) && state.requestId === firstStartRequestId &&
  isUnused(state, context.head)

/** Whether nobody has used or changed the mailbox since it was opened. */
const isUnused = ({ blocks, registrations, version }: Open, head: number): boolean =>
  head === 0 && version === 1 && blocks.length === 0 && registrations.length === 0

/** A new mailbox. A version that no answer has shown keeps entity tags and caches apart. */
const createAs = (
  version: number,
  message: Variant<MailboxMessage, "Create">,
  { nowMs }: DecisionContext
): Decision<MailboxState, MailboxReply> => {
  const { requestId, owner, settings, passwordHash, sharedHash } = message
  const open: Open = {
    _tag: "Open",
    owner,
    requestId,
    createdAtMs: nowMs,
    settings,
    passwordHash,
    sharedHash,
    version,
    secretsVersion: 0,
    lastAtMs: nowMs,
    removed: 0,
    gone: [],
    removedLocalDeliveries: [],
    retrieved: [],
    registrations: [],
    browserOrigins: [],
    events: 0,
    fetched: 0,
    inlined: 0,
    waiting: nothingWaiting,
    blocks: [],
    webhookSecret: null,
    read: []
  }
  return become<MailboxState>(open).reply(created(open, false))
}

/** Whether the mailbox was created by this request. */
const isRepeated = (state: Open, { owner, requestId }: Creator): boolean =>
  requestId === state.requestId && owner === state.owner

const createAgain: Mailboxes["Open"]["Create"] = (state, message, context) => {
  if (isRepeated(state, message)) return stay().reply(created(state, true))
  return mayReplace(state, message, context)
    ? createAs(state.version + 1, message, context)
    : deny("Taken")
}

/** The state after a deposit; field by field, since a spread of so many is several times slower. */
const receivedAt = (state: Open, lastAtMs: number, waiting: WaitingCount): Required<Open> => ({
  _tag: "Open",
  owner: state.owner,
  requestId: state.requestId,
  createdAtMs: state.createdAtMs,
  settings: state.settings,
  passwordHash: state.passwordHash,
  sharedHash: state.sharedHash,
  version: state.version,
  secretsVersion: state.secretsVersion,
  lastAtMs,
  removed: state.removed,
  gone: state.gone,
  removedLocalDeliveries: state.removedLocalDeliveries,
  retrieved: state.retrieved,
  registrations: state.registrations,
  browserOrigins: state.browserOrigins,
  events: state.events,
  fetched: state.fetched,
  inlined: state.inlined,
  waiting,
  blocks: state.blocks,
  webhookSecret: state.webhookSecret,
  read: state.read
})

/** The refusal of a deposit that the owner blocks; undefined for any other. */
const blockRefusal = (state: Open, deposited: BlockedBy, nowMs: number) => {
  if (state.blocks.length === 0) return undefined
  const found = findBlock(state.blocks, deposited, nowMs)
  return found === undefined
    ? undefined
    : deny("Blocked", blockedText("the owner of this mailbox", found))
}

/** The refusal of a deposit for which strangers have no room left. */
const noRoom = (waiting: WaitingCount, bytesMax: number): Decision<never> =>
  deny(
    "QuotaExceeded",
    `notifications of clients without an account that wait in this mailbox use ${
      waitingBytes(waiting)
    } of ${bytesMax} bytes (MAILBOX_ANONYMOUS_BYTES_MAX): send it with an account, or try again ` +
      "when the owner of the mailbox has read or removed some"
  )

/** A notification that is stored as item `n`, and what waits then. */
interface Received {
  readonly n: number
  readonly atMs: number
  readonly item: string
  readonly waiting: WaitingCount
}

/** Appends the item of a notification. */
const store = (
  state: Open,
  message: Variant<MailboxMessage, "Deposit">,
  { atMs, item, n, waiting }: Received
): Decision<MailboxState> => {
  const decision = append<MailboxState>(item, repeatKey(message.digest))
  const isFirstInlined = message.isInlined === true && state.inlined === 0
  // The log does not have the bytes of the content, so that the state must.
  const hasInlined = waiting !== state.waiting && message.inlinedBytes !== undefined
  if (isFirstInlined || hasInlined || isSaveDue(waiting, n)) {
    return decision.become({
      ...state,
      lastAtMs: atMs,
      waiting: savedWaiting(waiting, n),
      inlined: isFirstInlined ? 1 : state.inlined
    })
  }
  // The log has the time of its last item, so that a deposit writes no state record.
  return atMs === state.lastAtMs && waiting === state.waiting
    ? decision
    : decision.becomeInMemory(
      hasLaterFields(state)
        ? { ...state, lastAtMs: atMs, waiting }
        : receivedAt(state, atMs, waiting)
    )
}

const deposit =
  (limits: MailboxLimits): Mailboxes["Open"]["Deposit"] =>
  (state, message, { nowMs, head, findDuplicate, self }) => {
    const { digest, idRandom, account, isSigned = false, key, missing } = message
    if (state.settings.deposit === "accounts" && account === undefined && !isSigned) {
      return deny(
        "Unauthenticated",
        "this mailbox takes notifications of accounts only: send an account's name and token"
      )
    }
    const blocked = blockRefusal(state, message, nowMs)
    if (blocked !== undefined) return blocked
    const first = findDuplicate(repeatKey(digest))
    // The digest of a keyed deposit is that of its key: the item is of an earlier attempt, also
    // when it is removed by now.
    const isGone = first !== undefined && (first === missing || covers(state.gone, first))
    if (first !== undefined && (key !== undefined || !isGone)) {
      return stay().reply<MailboxReply>({
        _tag: "Deposited",
        n: first,
        repeated: true,
        idRandom: key === undefined ? undefined : idRandom
      })
    }
    const removed = findRemovedLocalDelivery(state, idRandom, nowMs)
    if (removed !== undefined) {
      return stay().reply<MailboxReply>({ _tag: "Deposited", n: removed, repeated: true, idRandom })
    }
    if (stored(state, head) >= limits.notificationsMax) return deny("Full", "the mailbox is full")
    const n = head + 1
    const atMs = nowMs > state.lastAtMs ? nowMs : state.lastAtMs
    // The owner and admins see who has deposited it.
    const item = encodeItem(atMs, idRandom, digest, message.fragment, message)
    const waiting = account === undefined
      ? withWaiting(state.waiting, n, waitingBytesOf(item, message.inlinedBytes))
      : state.waiting
    if (waiting !== state.waiting && waitingBytes(waiting) > limits.anonymousBytesMax) {
      return noRoom(state.waiting, limits.anonymousBytesMax)
    }
    const decision = store(state, message, { n, atMs, item, waiting })
    if (message.isInlined === true) signalBackgroundTasks(decision, self, [n], "inlined")
    if (isWatched(state)) signalDeposit(decision, state, self, n)
    if (key !== undefined) signalKey(decision, self, key, n)
    return decision.reply<MailboxReply>({
      _tag: "Deposited",
      n,
      repeated: false,
      idRandom
    })
  }

/** The reply to a Replace that stores nothing more: this notification stands for it. */
const standing = (n: number, idRandom: string): Decision<never, MailboxReply> =>
  stay().reply<MailboxReply>({ _tag: "Deposited", n, repeated: true, idRandom })

/** An earlier edition, and whether a reader or its retention has removed it. */
interface EarlierEdition extends Removal {
  readonly isRemoved: boolean
}

/** One that was removed stays removed. One that is stored is to be replaced, by its number. */
const answerTo = ({ idRandom, isRemoved, n }: EarlierEdition): Decision<never, MailboxReply> =>
  isRemoved
    ? standing(n, idRandom)
    : stay().reply<MailboxReply>({ _tag: "Located", n, idRandom })

/** The last of these editions that the mailbox knows of. */
const findEarlier = (
  state: Open,
  earlier: Variant<MailboxMessage, "Replace">["earlier"],
  { findDuplicate, nowMs }: DecisionContext
): EarlierEdition | undefined => {
  for (const { digest, idRandom } of earlier) {
    const n = findDuplicate(repeatKey(digest))
    const removed = n !== undefined && covers(state.gone, n)
      ? n
      : findRemovedLocalDelivery(state, idRandom, nowMs)
    if (removed !== undefined) return { n: removed, idRandom, isRemoved: true }
    if (n !== undefined) return { n, idRandom, isRemoved: false }
  }
  return undefined
}

/** Remembers the earlier editions as removed: a late attempt must not store one after this. */
const withoutEarlier = (
  state: Open,
  { earlier }: Variant<MailboxMessage, "Replace">,
  { head, nowMs }: DecisionContext
): Open => {
  const n = Math.max(1, head)
  return rememberLocalDeliveries(state, earlier.map(({ idRandom }) => ({ n, idRandom })), nowMs)
}

const replace =
  (limits: MailboxLimits): Mailboxes["Open"]["Replace"] => (state, message, context) => {
    const { digest, earlier, idRandom, isMissing = false, isWithdrawal, replaced } = message
    const { findDuplicate, head, nowMs } = context
    const blocked = blockRefusal(state, message, nowMs)
    if (blocked !== undefined) return blocked
    const first = findDuplicate(repeatKey(digest)) ??
      findRemovedLocalDelivery(state, idRandom, nowMs)
    if (first !== undefined) return standing(first, idRandom)
    if (replaced !== undefined) {
      const isRemoved = isMissing || covers(state.gone, replaced.n) ||
        findRemovedLocalDelivery(state, replaced.idRandom, nowMs) !== undefined
      if (isRemoved) {
        // A later edition may have replaced it, with a reply that the relay did not get.
        const at = earlier.findIndex((one) => one.idRandom === replaced.idRandom)
        const later = findEarlier(state, earlier.slice(0, Math.max(0, at)), context)
        return answerTo(later ?? { ...replaced, isRemoved })
      }
      if (replaced.n > head) return deny("Invalid", "there is no such notification to replace")
      const next = rememberLocalDeliveries(state, [replaced], nowMs)
      return storeFollowUp(next, message, context)
    }
    const found = findEarlier(state, earlier, context)
    if (found !== undefined) return answerTo(found)
    const next = withoutEarlier(state, message, context)
    if (isWithdrawal) return become<MailboxState>(next).reply(done)
    return stored(state, head) >= limits.notificationsMax
      ? deny("Full", "the mailbox is full")
      : storeFollowUp(next, message, context)
  }

const block: Mailboxes["Open"]["Block"] = (state, { block, caller }, { nowMs }) => {
  const reason = notOwner(state.owner, caller, false)
  if (reason !== undefined) return deny(reason)
  const blocks = withBlock(state.blocks, { ...block, atMs: nowMs }, nowMs)
  return blocks.length > mailboxBlocksMax
    ? deny("Full", `a mailbox has at most ${mailboxBlocksMax} blocks: remove one first`)
    : become<MailboxState>({ ...state, blocks }).reply(done)
}

const unblock: Mailboxes["Open"]["Unblock"] = (state, { caller, id }) => {
  const reason = notOwner(state.owner, caller, false)
  if (reason !== undefined) return deny(reason)
  const blocks = state.blocks.filter((one) => one.id !== id)
  return blocks.length === state.blocks.length
    ? deny("NotFound")
    : become<MailboxState>({ ...state, blocks }).reply(done)
}

const listBlocks: Mailboxes["Open"]["Blocks"] = (state, { caller }, { nowMs }) => {
  const reason = notOwner(state.owner, caller, false)
  if (reason !== undefined) return deny(reason)
  const blocks = state.blocks.filter(({ untilMs = Infinity }) => nowMs < untilMs)
  return stay().reply<MailboxReply>({ _tag: "Blocks", blocks })
}

const originIsFull = `the mailbox has ${originBrowsersMax} browsers with a push service of this ` +
  "domain or network, which is none that the service knows: remove one of them, or let the " +
  "operator name the origin in FANOUT_ALLOW"

const register: Mailboxes["Open"]["Register"] = (state, { id, origin, reader }) => {
  if (!mayRead(state, reader)) return deny(readerDenied(reader))
  const part = partOf(id)
  if (state.registrations.includes(part)) return stay().reply(done)
  if (state.registrations.length >= registrationsMax) {
    return deny("Full", "the mailbox has the maximum number of registrations")
  }
  const registrations = [...state.registrations, part]
  // A node of an earlier version removes a registration without its origin.
  const origins = state.browserOrigins.filter((one) => state.registrations.includes(one.part))
  if (origin === undefined) return become<MailboxState>({ ...state, registrations }).reply(done)
  if (origins.filter((one) => one.origin === origin).length >= originBrowsersMax) {
    return deny("Full", originIsFull)
  }
  const browserOrigins = [...origins, { part, origin }]
  return become<MailboxState>({ ...state, registrations, browserOrigins }).reply(done)
}

const readHead: Mailboxes["Open"]["ReadHead"] = (state, message, { head }) => {
  const { id, secretsVersion = state.secretsVersion } = message
  if (!state.registrations.includes(partOf(id))) return deny("NotFound")
  return secretsVersion < state.secretsVersion
    ? deny("Forbidden")
    : stay().reply<MailboxReply>({ _tag: "Head", head, lastAtMs: state.lastAtMs })
}

const unregister: Mailboxes["Open"]["Unregister"] = (state, { id }) => {
  const part = partOf(id)
  if (!state.registrations.includes(part)) return stay().reply(done)
  const registrations = state.registrations.filter((one) => one !== part)
  const browserOrigins = state.browserOrigins.filter((one) => one.part !== part)
  return become<MailboxState>({ ...state, registrations, browserOrigins }).reply(done)
}

const destroy: Mailboxes["Open"]["Destroy"] = (state, message, context) => {
  const { head, nowMs, self } = context
  const reason = notOwner(state.owner, message.caller, true)
  if (reason !== undefined) return deny(reason)
  if (isOutdated(state, message)) return deny("PreconditionFailed")
  const left = head === 0 ? [] : subtract({ from: 1, to: head }, state.gone)
  const { fetched, inlined, registrations } = state
  const tombstone: Destroyed = { _tag: "Destroyed", destroyedAtMs: nowMs, left, fetched, inlined }
  const decision = left.length === 0
    ? become<MailboxState>(tombstone).setTimer(null)
    : clearDestroyed(tombstone, context)
  signalRegistrations(decision, self, registrations, undefined)
  return decision.reply(done)
}

/* Rights and views. */

const done: MailboxReply = { _tag: "Done" }

const isOwner = (state: Open, account: string | undefined): boolean => account === state.owner

const mayRead = (state: Open, { account, secretHash }: MailboxReader): boolean =>
  isOwner(state, account) ||
  sameHash(secretHash, state.passwordHash) || sameHash(secretHash, state.sharedHash)

/** The cell of a message that only readers may send. */
const forReader = <Message extends { readonly reader: MailboxReader }>(
  decide: (
    state: Open,
    message: Message,
    context: DecisionContext
  ) => Decision<MailboxState, MailboxReply>
) =>
(state: Open, message: Message, context: DecisionContext) =>
  mayRead(state, message.reader)
    ? decide(state, message, context)
    : deny(readerDenied(message.reader))

const readerDenied = (reader: MailboxReader): Reason =>
  reader.account === undefined ? "Unauthenticated" : "Forbidden"

/**
 * How many notifications are stored; the log has removal events too. A record of an earlier version
 * may have counted removals twice.
 */
const stored = (state: Open, head: number): number =>
  Math.max(0, head - state.removed - state.events)

const view = (state: Open, account: string | undefined, head: number): MailboxView => ({
  owner: state.owner,
  isOwner: isOwner(state, account),
  settings: state.settings,
  createdAtMs: state.createdAtMs,
  version: state.version,
  ...state.secretsVersion === 0 ? {} : { secretsVersion: state.secretsVersion },
  head,
  lastAtMs: state.lastAtMs,
  removed: state.removed,
  fetched: state.fetched,
  notifications: stored(state, head),
  ...hasForgottenRemovals(state) ? { isEstimate: true } : {},
  ...state.gone[0]?.from === 1 ? { removedUpTo: state.gone[0].to } : {},
  ...state.webhookSecret === null ? {} : { webhookSecret: state.webhookSecret },
  ...state.requestId === reportsRequestId
    ? { forReports: isUnused(state, head) ? "unused" : "used" }
    : {}
})

/** The view for those who may read. */
const readerView = (state: Open, { account }: MailboxReader, head: number): MailboxView =>
  state.read.length === 0
    ? view(state, account, head)
    : { ...view(state, account, head), read: state.read }

const created = (state: Open, repeated: boolean): MailboxReply => ({
  _tag: "Created",
  version: state.version,
  createdAtMs: state.createdAtMs,
  repeated
})
