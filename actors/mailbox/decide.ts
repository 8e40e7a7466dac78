/**
 * What a mailbox decides. The received time never runs backwards, whatever the clock does; a
 * notification is removed by its reader, or when its retention after retrieval has passed, and
 * by nothing else.
 */
import { append, become, stay } from "../../runtime/index.ts"
import type { Decision, Member, Table } from "../../runtime/index.ts"
import type { Caller } from "../binding.ts"
import { goneRangesMax, removalsMax, retentionSteps, retrievedRangesMax } from "../limits.ts"
import { deny, isOutdated } from "../reasons.ts"
import type { Reason } from "../reasons.ts"
import { encodeItem, repeatKey } from "./item.ts"
import type { Message, Reader, Reply, State, View } from "./protocol.ts"
import { covers, first, include, retrieve, subtract, total } from "./ranges.ts"
import type { Range } from "./ranges.ts"

type Open = Member<State, "Open">
type Destroyed = Member<State, "Destroyed">
type Mailboxes = Table<State, Message, Reply>

/** What an operator may set for all mailboxes. */
export interface MailboxLimits {
  /** Notifications that one mailbox keeps at a time. */
  readonly notificationsMax: number
}

const done: Reply = { _tag: "Done" }

const isOwner = (state: Open, account: string | undefined): boolean => account === state.owner

/**
 * Whether the reader may read. Plain comparison of two hashes tells by its time at most how far
 * they agree, and whoever guesses does not choose the hash of the guess.
 */
const mayRead = (state: Open, { account, secretHash }: Reader): boolean =>
  isOwner(state, account) ||
  (secretHash !== undefined &&
    (secretHash === state.passwordHash || secretHash === state.sharedHash))

const readerDenied = (reader: Reader): Reason =>
  reader.account === undefined ? "Unauthenticated" : "Forbidden"

/** Why the caller may not change the mailbox; undefined when it may. */
const notOwner = (state: Open, { account, admin }: Caller, orAdmin: boolean): Reason | undefined =>
  isOwner(state, account) || (orAdmin && admin)
    ? undefined
    : account === undefined
    ? "Unauthenticated"
    : "Forbidden"

const view = (state: Open, account: string | undefined, head: number): View => ({
  owner: state.owner,
  isOwner: isOwner(state, account),
  settings: state.settings,
  createdAtMs: state.createdAtMs,
  version: state.version,
  head,
  lastAtMs: state.lastAtMs,
  removed: state.removed
})

const created = (state: Open, repeated: boolean): Reply => ({
  _tag: "Created",
  version: state.version,
  createdAtMs: state.createdAtMs,
  repeated
})

/** When the first retention of the state passes; null when nothing was retrieved. */
const nextWakeMs = (state: Open): number | null => {
  const firstAtMs = state.retrieved.reduce(
    (least, { atMs }) => Math.min(least, atMs),
    Number.POSITIVE_INFINITY
  )
  return firstAtMs === Number.POSITIVE_INFINITY ? null : firstAtMs + state.settings.retentionMs
}

/** The state without these items, which are in it. */
const without = (state: Open, numbers: ReadonlyArray<number>): Open => ({
  ...state,
  removed: state.removed + numbers.length,
  gone: include(state.gone, numbers.map((n) => ({ from: n, to: n })), goneRangesMax)
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
      retrieved: []
    }
    return become<State>(open).reply(created(open, false))
  },
  Describe: () => deny("NotFound"),
  Deposit: () => deny("NotFound"),
  List: () => deny("NotFound"),
  Retrieved: () => deny("NotFound"),
  Remove: () => deny("NotFound"),
  Configure: () => deny("NotFound"),
  ChangeSecrets: () => deny("NotFound"),
  Destroy: () => deny("NotFound"),
  WakeUp: () => stay()
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
  retrieved: state.retrieved
})

const deposit =
  ({ notificationsMax }: MailboxLimits): Mailboxes["Open"]["Deposit"] =>
  (state, { fragment, digest, idRandom, account }, { nowMs, head, recent }) => {
    if (state.settings.deposit === "accounts" && account === undefined) {
      return deny("Unauthenticated")
    }
    const first = recent(repeatKey(digest))
    if (first !== undefined && !covers(state.gone, first)) {
      return stay().reply<Reply>({
        _tag: "Deposited",
        n: first,
        repeated: true,
        idRandom: undefined,
        atMs: undefined
      })
    }
    if (head - state.removed >= notificationsMax) return deny("Full", "the mailbox is full")
    const atMs = nowMs > state.lastAtMs ? nowMs : state.lastAtMs
    const decision = append<State>(encodeItem(atMs, idRandom, digest, fragment))
    // The log tells the time of its last item, so that a deposit writes no state record.
    if (atMs !== state.lastAtMs) decision.remember(receivedAt(state, atMs))
    return decision.reply<Reply>({
      _tag: "Deposited",
      n: head + 1,
      repeated: false,
      idRandom,
      atMs
    })
  }

const retrieved: Mailboxes["Open"]["Retrieved"] = (state, { from, to }, { nowMs, head }) => {
  // The ends are trimmed by what is gone; a gap within costs nothing and keeps the range whole.
  const there = subtract({ from: Math.max(from, 1), to: Math.min(to, head) }, state.gone)
  const low = there[0]
  const high = there.at(-1)
  if (low === undefined || high === undefined) return stay().reply(done)
  const stepMs = Math.max(1, Math.ceil(state.settings.retentionMs / retentionSteps))
  const ranges = retrieve(
    state.retrieved,
    { from: low.from, to: high.to, atMs: nowMs },
    stepMs,
    retrievedRangesMax
  )
  if (ranges === state.retrieved) return stay().reply(done)
  const next: Open = { ...state, retrieved: ranges }
  return become<State>(next).wake(nextWakeMs(next)).reply(done)
}

/** Removes what was retrieved longer ago than the retention: a bounded part, then the rest. */
const expire: Mailboxes["Open"]["WakeUp"] = (state, _message, { nowMs }) => {
  const passedMs = nowMs - state.settings.retentionMs
  const numbers: Array<number> = []
  const kept = state.retrieved.flatMap((range) => {
    if (range.atMs > passedMs) return [range]
    const there = subtract(range, state.gone)
    const expired = first(there, removalsMax - numbers.length)
    numbers.push(...expired)
    if (total(there) === expired.length) return []
    return [{ ...range, from: (expired.at(-1) ?? range.from - 1) + 1 }]
  })
  if (kept.length === state.retrieved.length && numbers.length === 0) {
    return stay<State>().wake(nextWakeMs(state))
  }
  const next = { ...without(state, numbers), retrieved: kept }
  return become<State>(next).remove(...numbers).wake(nextWakeMs(next))
}

/** Goes on removing what a destroyed mailbox held. */
const clear = (state: Destroyed): Decision<State> => {
  const numbers = first(state.left, removalsMax)
  const last = numbers.at(-1)
  if (last === undefined) return stay<State>().wake(null)
  const left = state.left.flatMap((range): Array<Range> =>
    range.to <= last ? [] : [{ from: Math.max(range.from, last + 1), to: range.to }]
  )
  return become<State>({ ...state, left })
    .remove(...numbers)
    .wake(left.length === 0 ? null : state.destroyedAtMs)
}

const open = (limits: MailboxLimits): Mailboxes["Open"] => ({
  Create: (state, { requestId, owner }) =>
    requestId === state.requestId && owner === state.owner
      ? stay().reply(created(state, true))
      : deny("Taken"),
  Describe: (state, { reader }, { head }) =>
    stay().reply<Reply>({
      _tag: "Described",
      view: view(state, reader.account, head),
      mayRead: mayRead(state, reader)
    }),
  Deposit: deposit(limits),
  List: (state, { reader }, { head }) =>
    mayRead(state, reader)
      ? stay().reply<Reply>({ _tag: "Listed", view: view(state, reader.account, head) })
      : deny(readerDenied(reader)),
  Retrieved: retrieved,
  Remove: (state, { n, reader }, { head }) => {
    if (!mayRead(state, reader)) return deny(readerDenied(reader))
    if (n < 1 || n > head) return deny("NotFound")
    if (covers(state.gone, n)) return deny("Gone")
    return become<State>(without(state, [n])).remove(n).reply(done)
  },
  Configure: (state, message) => {
    const { caller, settings } = message
    const reason = notOwner(state, caller, false)
    if (reason !== undefined) return deny(reason)
    if (isOutdated(state, message)) return deny("PreconditionFailed")
    const next: Open = { ...state, settings, version: state.version + 1 }
    return become<State>(next)
      .wake(nextWakeMs(next))
      .reply<Reply>({ _tag: "Configured", version: next.version })
  },
  ChangeSecrets: (state, { caller, passwordHash, sharedHash }) => {
    const reason = notOwner(state, caller, false)
    if (reason !== undefined) return deny(reason)
    const version = state.version + 1
    return become<State>({ ...state, passwordHash, sharedHash, version })
      .reply<Reply>({ _tag: "Configured", version })
  },
  Destroy: (state, message, { nowMs, head }) => {
    const reason = notOwner(state, message.caller, true)
    if (reason !== undefined) return deny(reason)
    if (isOutdated(state, message)) return deny("PreconditionFailed")
    const left = head === 0 ? [] : subtract({ from: 1, to: head }, state.gone)
    const tombstone: Destroyed = { _tag: "Destroyed", destroyedAtMs: nowMs, left }
    const decision = left.length === 0 ? become<State>(tombstone).wake(null) : clear(tombstone)
    return decision.reply(done)
  },
  WakeUp: expire
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
  WakeUp: (state) => clear(state)
}

/** The mailbox's table, under the operator's limits. */
export const mailboxTable = (limits: MailboxLimits): Mailboxes => ({
  Absent: absent,
  Open: open(limits),
  Destroyed: destroyed
})
