/** The mailbox bound to the runtime. */
import { Effect } from "effect"
import type { Address, AskFailure, Behavior, Peers, RecordChange, RecordsApi, Refusal,
  StorageFailure } from "../../runtime/index.ts"
import { deduplicationWindowItems, expiryReadItems } from "../limits.ts"
import { askerOf, codecsOf } from "../schemas.ts"
import { type MailboxLimits, mailboxTable } from "./decide.ts"
import { decodeItem, isRemoval, itemAtMs, itemRepeatKey } from "./log-item.ts"
import { type MailboxAction, MailboxMessage, type MailboxReply, MailboxState, type OwnerSettings,
  type Removal } from "./protocol.ts"
import { recallWaiting } from "./waiting-bytes.ts"

export const mailboxKind = "mailbox"

/**
 * `<account>/<name>` of the mailboxes of each account. An entry is a hint: the mailbox itself
 * decides who owns it.
 */
export const mailboxOwnersTable = "mailboxes-by-owner"

/** Sends a message to a mailbox, by its name. */
export const askMailbox = askerOf<MailboxMessage, MailboxReply>(mailboxKind)

/** A mailbox that the service opens itself. */
interface OpenedMailbox {
  readonly name: string
  readonly owner: string
  readonly requestId: string
  readonly settings: OwnerSettings
  readonly passwordHash: string
  readonly sharedHash: string
}

/** The change that enters a mailbox in an account's list. */
export const ownersEntry = (owner: string, name: string): RecordChange => ({
  table: mailboxOwnersTable,
  key: `${owner}/${name}`,
  value: ""
})

/**
 * Opens a mailbox without a request of its owner. The name enters the account's list first, so that
 * the list never lacks a mailbox. A repetition gets the same reply.
 */
export const openForOwner = (
  records: Pick<RecordsApi, "write">,
  peers: Pick<Peers, "ask">,
  { name, ...mailbox }: OpenedMailbox
): Effect.Effect<MailboxReply | Refusal, AskFailure | StorageFailure> =>
  Effect.andThen(
    records.write([ownersEntry(mailbox.owner, name)]),
    askMailbox(peers, name, { _tag: "Create", ...mailbox })
  )

/** Reads the items of these numbers, one read for each run of consecutive numbers. */
const readExpired = Effect.fnUntraced(function*(
  peers: Peers,
  self: Address,
  numbers: ReadonlyArray<number>
) {
  const removed: Array<Removal> = []
  const events: Array<number> = []
  const missing: Array<number> = []
  for (let at = 0; at < numbers.length;) {
    const from = numbers[at] ?? 0
    let end = at + 1
    while (end < numbers.length && end - at < expiryReadItems && numbers[end] === from + end - at) {
      end++
    }
    const items = yield* peers.read(self, from, end - at)
    const found = new Map(items.map(({ n, value }) => [n, value]))
    for (; at < end; at++) {
      const n = numbers[at] ?? 0
      const value = found.get(n)
      if (value === undefined) missing.push(n)
      else if (isRemoval(value)) events.push(n)
      else removed.push({ n, idRandom: decodeItem(value).idRandom })
    }
  }
  const message: MailboxMessage = { _tag: "Expire", removed, events, missing }
  return message
})

/** The behavior of mailboxes; an address's id is the mailbox's name. */
export const mailbox = (
  limits: MailboxLimits
): Behavior<MailboxState, MailboxMessage, MailboxReply, MailboxAction> => ({
  kind: mailboxKind,
  initial: { _tag: "Absent" },
  table: mailboxTable(limits),
  ...codecsOf(MailboxState, MailboxMessage),
  recall: {
    items: deduplicationWindowItems,
    keyOf: itemRepeatKey,
    restoresInParts: true,
    restore: (state, items) => {
      const last = items.at(-1)
      if (state._tag !== "Open" || last === undefined) return state
      return {
        ...state,
        lastAtMs: Math.max(state.lastAtMs, itemAtMs(last.value)),
        waiting: recallWaiting(state.waiting, items)
      }
    }
  },
  // If a read fails, the deferred timer fires it again.
  perform: ({ numbers }, self, peers) =>
    readExpired(peers, self, numbers).pipe(Effect.catch(() => Effect.void))
})
