/**
 * What a mailbox decides. The received time never runs backwards, whatever the clock does; a
 * notification is removed by its reader, or when its retention after retrieval has passed, and
 * by nothing else.
 */
import { append, become, type BehaviorTable, stay, type Variant } from "../../runtime/index.ts"
import { registrationsMax } from "../limits.ts"
import { deny, isOutdated, type Reason } from "../refusals.ts"
import type { Caller } from "../schemas.ts"
import { sameHash } from "../secret-hash.ts"
import { encodeItem, repeatKey } from "./log-item.ts"
import type { MailboxAction, MailboxMessage, MailboxReader, MailboxReply, MailboxState,
  MailboxView } from "./protocol.ts"
import { covers, subtract } from "./ranges.ts"
import { clear, expire, expired, nextTimerMs, removing, retrieved } from "./removal.ts"
import { isWatched, partOf, signalRegistrations, signalsForDeposit } from "./signals.ts"

type Open = Variant<MailboxState, "Open">

type Destroyed = Variant<MailboxState, "Destroyed">

type Mailboxes = BehaviorTable<MailboxState, MailboxMessage, MailboxReply, MailboxAction>

/** What an operator may set for all mailboxes. */
export interface MailboxLimits {
  /** Notifications that one mailbox keeps at a time. */
  readonly notificationsMax: number
}

const done: MailboxReply = { _tag: "Done" }

const isOwner = (state: Open, account: string | undefined): boolean => account === state.owner

/** Whether the reader may read. */
const mayRead = (state: Open, { account, secretHash }: MailboxReader): boolean =>
  isOwner(state, account) ||
  sameHash(secretHash, state.passwordHash) || sameHash(secretHash, state.sharedHash)

const readerDenied = (reader: MailboxReader): Reason =>
  reader.account === undefined ? "Unauthenticated" : "Forbidden"

/** Why the caller may not change the mailbox; undefined when it may. */
const notOwner = (state: Open, { account, admin }: Caller, orAdmin: boolean): Reason | undefined =>
  isOwner(state, account) || (orAdmin && admin)
    ? undefined
    : account === undefined
    ? "Unauthenticated"
    : "Forbidden"

/** How many notifications are stored: the log has events too. */
const stored = (state: Open, head: number): number => head - state.removed - state.events

const view = (state: Open, account: string | undefined, head: number): MailboxView => ({
  owner: state.owner,
  isOwner: isOwner(state, account),
  settings: state.settings,
  createdAtMs: state.createdAtMs,
  version: state.version,
  head,
  lastAtMs: state.lastAtMs,
  removed: state.removed,
  fetched: state.fetched,
  notifications: stored(state, head),
  ...state.gone[0]?.from === 1 ? { removedUpTo: state.gone[0].to } : {}
})

const created = (state: Open, repeated: boolean): MailboxReply => ({
  _tag: "Created",
  version: state.version,
  createdAtMs: state.createdAtMs,
  repeated
})

const absent: Mailboxes["Absent"] = {
  Create: (_state, message, { nowMs }) => {
    const { requestId, owner, settings, passwordHash, sharedHash } = message
    const open: Open = {
      _tag: "Open",
      owner,
      requestId,
      createdAtMs: nowMs,
      settings,
      passwordHash,
      sharedHash,
      version: 1,
      lastAtMs: nowMs,
      removed: 0,
      gone: [],
      retrieved: [],
      registrations: [],
      events: 0,
      fetched: 0
    }
    return become<MailboxState>(open).reply(created(open, false))
  },
  Describe: () => deny("NotFound"),
  Deposit: () => deny("NotFound"),
  List: () => deny("NotFound"),
  Retrieved: () => deny("NotFound"),
  Remove: () => deny("NotFound"),
  Configure: () => deny("NotFound"),
  ChangeSecrets: () => deny("NotFound"),
  Destroy: () => deny("NotFound"),
  Register: () => deny("NotFound"),
  Unregister: () => deny("NotFound"),
  ReadHead: () => deny("NotFound"),
  Registrations: () => deny("NotFound"),
  CopiesChanged: () => deny("NotFound"),
  Expire: () => stay(),
  TimerFired: () => stay()
}

/** The state after a deposit; field by field, since a spread of so many is several times slower. */
const receivedAt = (state: Open, lastAtMs: number): Required<Open> => ({
  _tag: "Open",
  owner: state.owner,
  requestId: state.requestId,
  createdAtMs: state.createdAtMs,
  settings: state.settings,
  passwordHash: state.passwordHash,
  sharedHash: state.sharedHash,
  version: state.version,
  lastAtMs,
  removed: state.removed,
  gone: state.gone,
  retrieved: state.retrieved,
  registrations: state.registrations,
  events: state.events,
  fetched: state.fetched
})

const deposit =
  ({ notificationsMax }: MailboxLimits): Mailboxes["Open"]["Deposit"] =>
  (state, { fragment, digest, idRandom, account }, { nowMs, head, findDuplicate, self }) => {
    if (state.settings.deposit === "accounts" && account === undefined) {
      return deny("Unauthenticated")
    }
    const first = findDuplicate(repeatKey(digest))
    if (first !== undefined && !covers(state.gone, first)) {
      return stay().reply<MailboxReply>({
        _tag: "Deposited",
        n: first,
        repeated: true,
        idRandom: undefined,
        atMs: undefined
      })
    }
    if (stored(state, head) >= notificationsMax) return deny("Full", "the mailbox is full")
    const atMs = nowMs > state.lastAtMs ? nowMs : state.lastAtMs
    const decision = append<MailboxState>(encodeItem(atMs, idRandom, digest, fragment))
    // The log tells the time of its last item, so that a deposit writes no state record.
    if (atMs !== state.lastAtMs) decision.becomeInMemory(receivedAt(state, atMs))
    if (isWatched(state)) signalsForDeposit(decision, state, self, head + 1, nowMs)
    return decision.reply<MailboxReply>({
      _tag: "Deposited",
      n: head + 1,
      repeated: false,
      idRandom,
      atMs
    })
  }

const register: Mailboxes["Open"]["Register"] = (state, { id, reader }, { head }) => {
  if (!mayRead(state, reader)) return deny(readerDenied(reader))
  const registered: MailboxReply = { _tag: "Registered", head }
  const part = partOf(id)
  if (state.registrations.includes(part)) return stay().reply(registered)
  if (state.registrations.length >= registrationsMax) {
    return deny("Full", "the mailbox has as many registrations as it may")
  }
  const registrations = [...state.registrations, part]
  return become<MailboxState>({ ...state, registrations }).reply(registered)
}

const unregister: Mailboxes["Open"]["Unregister"] = (state, { id }) => {
  const part = partOf(id)
  if (!state.registrations.includes(part)) return stay().reply(done)
  const registrations = state.registrations.filter((one) => one !== part)
  return become<MailboxState>({ ...state, registrations }).reply(done)
}

const destroy: Mailboxes["Open"]["Destroy"] = (state, message, context) => {
  const { head, nowMs, self } = context
  const reason = notOwner(state, message.caller, true)
  if (reason !== undefined) return deny(reason)
  if (isOutdated(state, message)) return deny("PreconditionFailed")
  const left = head === 0 ? [] : subtract({ from: 1, to: head }, state.gone)
  const { fetched, registrations } = state
  const tombstone: Destroyed = { _tag: "Destroyed", destroyedAtMs: nowMs, left, fetched }
  const decision = left.length === 0
    ? become<MailboxState>(tombstone).setTimer(null)
    : clear(tombstone, context)
  signalRegistrations(decision, self, registrations, nowMs, undefined)
  return decision.reply(done)
}

const open = (limits: MailboxLimits): Mailboxes["Open"] => ({
  Create: (state, { requestId, owner }) =>
    requestId === state.requestId && owner === state.owner
      ? stay().reply(created(state, true))
      : deny("Taken"),
  Describe: (state, { reader }, { head }) =>
    stay().reply<MailboxReply>({
      _tag: "Described",
      view: view(state, reader.account, head),
      mayRead: mayRead(state, reader)
    }),
  Deposit: deposit(limits),
  List: (state, { reader }, { head }) =>
    mayRead(state, reader)
      ? stay().reply<MailboxReply>({ _tag: "Listed", view: view(state, reader.account, head) })
      : deny(readerDenied(reader)),
  Retrieved: retrieved,
  Remove: (state, { idRandom, n, reader }, context) => {
    if (!mayRead(state, reader)) return deny(readerDenied(reader))
    if (n < 1 || n > context.head) return deny("NotFound")
    if (covers(state.gone, n)) return deny("Gone")
    return removing(state, { removed: [{ n, idRandom }], events: [] }, context).reply(done)
  },
  Configure: (state, message) => {
    const { caller, settings } = message
    const reason = notOwner(state, caller, false)
    if (reason !== undefined) return deny(reason)
    if (isOutdated(state, message)) return deny("PreconditionFailed")
    const next: Open = { ...state, settings, version: state.version + 1 }
    return become<MailboxState>(next)
      .setTimer(nextTimerMs(next))
      .reply<MailboxReply>({ _tag: "Configured", version: next.version })
  },
  ChangeSecrets: (state, { caller, passwordHash, sharedHash }) => {
    const reason = notOwner(state, caller, false)
    if (reason !== undefined) return deny(reason)
    const version = state.version + 1
    return become<MailboxState>({ ...state, passwordHash, sharedHash, version })
      .reply<MailboxReply>({ _tag: "Configured", version })
  },
  Destroy: destroy,
  Register: register,
  Unregister: unregister,
  ReadHead: ({ lastAtMs, registrations }, { id }, { head }) =>
    registrations.includes(partOf(id))
      ? stay().reply<MailboxReply>({ _tag: "Head", head, lastAtMs })
      : deny("NotFound"),
  Registrations: (state, { reader }) =>
    mayRead(state, reader)
      ? stay().reply<MailboxReply>({ _tag: "Registrations", ids: state.registrations })
      : deny(readerDenied(reader)),
  CopiesChanged: (state) =>
    become<MailboxState>({ ...state, fetched: state.fetched + 1 }).reply(done),
  Expire: expired,
  TimerFired: expire
})

const destroyed: Mailboxes["Destroyed"] = {
  Create: () => deny("Taken", "a mailbox of this name was destroyed; names are not given again"),
  Describe: () => deny("Gone"),
  Deposit: () => deny("Gone"),
  List: () => deny("Gone"),
  Retrieved: () => deny("Gone"),
  Remove: () => deny("Gone"),
  Configure: () => deny("Gone"),
  ChangeSecrets: () => deny("Gone"),
  Destroy: () => deny("Gone"),
  Register: () => deny("Gone"),
  Unregister: () => deny("Gone"),
  ReadHead: () => deny("Gone"),
  Registrations: () => deny("Gone"),
  CopiesChanged: () => deny("Gone"),
  Expire: () => stay(),
  TimerFired: (state, _message, context) => clear(state, context)
}

/** The mailbox's table, under the operator's limits. */
export const mailboxTable = (limits: MailboxLimits): Mailboxes => ({
  Absent: absent,
  Open: open(limits),
  Destroyed: destroyed
})
