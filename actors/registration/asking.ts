/** What a registration asks of its mailbox: how far its log goes, and what is in it. */
import { Clock, Effect } from "effect"
import { address, isRefusal, placingPart } from "../../runtime/index.ts"
import type {
  Address,
  AskFailure,
  LogItem,
  Peers,
  Refusal,
  StorageFailure
} from "../../runtime/index.ts"
import { pushCharsMax, pushItemsMax, pushReadItems } from "../limits.ts"
import { mailboxKind } from "../mailbox/actor.ts"
import type { MailboxMessage, MailboxReply } from "../mailbox/protocol.ts"
import type { ChangeBatch, MailboxReadCache } from "./desk.ts"
import type { RegistrationAction, RegistrationMessage } from "./protocol.ts"

export type PushAction = Extract<RegistrationAction, { readonly _tag: "Push" }>
export type LookAction = Extract<RegistrationAction, { readonly _tag: "Look" }>
export type MailboxReadFailure = AskFailure | StorageFailure

interface Span {
  readonly from: number
  readonly upTo: number
}

/** The name of the mailbox that a registration is of. */
export const mailboxOf = (self: Address): string => placingPart(self.id)

export const askMailbox = (
  peers: Peers,
  self: Address,
  message: MailboxMessage
): Effect.Effect<MailboxReply | Refusal, AskFailure> =>
  // A mailbox answers in its own protocol, and in no other.
  peers.ask(address(mailboxKind, mailboxOf(self)), message) as Effect.Effect<
    MailboxReply | Refusal,
    AskFailure
  >

const readAnew = Effect.fnUntraced(function*(
  peers: Peers,
  self: Address,
  from: number,
  upTo: number
): Effect.fn.Return<ChangeBatch, StorageFailure> {
  const of = address(mailboxKind, mailboxOf(self))
  const items: Array<LogItem> = []
  let chars = 0
  for (let after = from; after < upTo;) {
    const part = yield* peers.read(of, after + 1, pushReadItems)
    for (const item of part) {
      if (item.n > upTo) return { items, more: false }
      chars += item.value.length
      const isFull = items.length >= pushItemsMax || (items.length > 0 && chars > pushCharsMax)
      if (isFull) return { items, more: true }
      items.push(item)
    }
    after = part.length < pushReadItems ? upTo : part.at(-1)?.n ?? upTo
  }
  return { items, more: false }
})

/** The name of what a push may hold of the log after item `from`, up to `upTo`. */
export const batchKey = (self: Address, { from, upTo }: Span): string =>
  `${mailboxOf(self)} ${from} ${upTo}`

/** What a push may hold of the log after item `from`, up to `upTo`; read lately, or now. */
export const readBatch = (
  { batches }: MailboxReadCache,
  peers: Peers,
  self: Address,
  from: number,
  upTo: number
): Effect.Effect<ChangeBatch, StorageFailure> =>
  Effect.flatMap(Clock.currentTimeMillis, (nowMs) => {
    const key = batchKey(self, { from, upTo })
    const known = batches.get(key, nowMs)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.map(readAnew(peers, self, from, upTo), (batch) => {
      batches.keep(key, batch, nowMs)
      return batch
    })
  })

/** The mailbox is gone, whichever look or push has found that. */
const gone = (from: number): RegistrationMessage => ({
  _tag: "Found",
  untilMs: 0,
  from,
  upTo: from,
  more: false,
  mailboxGone: true
})

/** The mailbox's word on how far its log goes; or the message that it knows none of us. */
export const lookAt = Effect.fnUntraced(function*(
  peers: Peers,
  self: Address,
  { from, untilMs }: LookAction | PushAction
): Effect.fn.Return<
  RegistrationMessage | Extract<MailboxReply, { readonly _tag: "Looked" }>,
  AskFailure
> {
  const reply = yield* askMailbox(peers, self, { _tag: "Look", id: self.id })
  if (!isRefusal(reply) && reply._tag === "Looked") return reply
  return isRefusal(reply) && reply.reason === "Gone" ? gone(from) : { _tag: "Detached", untilMs }
})

/** It could not be asked. */
export const away = ({ untilMs }: LookAction | PushAction): Effect.Effect<RegistrationMessage> =>
  Effect.succeed({ _tag: "Away", untilMs })

/** Looks for changes. */
export const look = Effect.fnUntraced(function*(
  desk: MailboxReadCache,
  peers: Peers,
  self: Address,
  action: LookAction
): Effect.fn.Return<RegistrationMessage, MailboxReadFailure> {
  const { from, reads, untilMs } = action
  const looked = yield* lookAt(peers, self, action)
  if (looked._tag !== "Looked") return looked
  const found = reads ? yield* readBatch(desk, peers, self, from, looked.head) : undefined
  const upTo = found?.items.at(-1)?.n ?? from
  return { _tag: "Found", untilMs, from, upTo, more: found?.more ?? false, mailboxGone: false }
})
