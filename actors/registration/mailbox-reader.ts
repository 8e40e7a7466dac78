/** What a registration asks of its mailbox: how far its log goes, and what is in it. */
import { Clock, Effect } from "effect"
import { type Address, address, type AskFailure, isRefusal, type LogItem, type Peers, placingPart,
  type Refusal, type StorageFailure } from "../../runtime/index.ts"
import { batchesCharsMax, batchFreshMs, pushCharsMax, pushItemsMax,
  pushReadItems } from "../limits.ts"
import { mailboxKind, type MailboxMessage, type MailboxReply } from "../mailbox/index.ts"
import type { RegistrationAction, RegistrationMessage } from "./protocol.ts"

/** Some changes of a mailbox, as a push carries them. */
export interface ChangeBatch {
  readonly items: ReadonlyArray<LogItem>
  /** Whether more follows. */
  readonly more: boolean
  /** The document of a push that carries them all. */
  document?: string
  /** The headers that all pushes of the mailbox have. */
  common?: Readonly<Record<string, string>>
}

interface Known {
  readonly batch: ChangeBatch
  readonly chars: number
  readonly untilMs: number
}

/**
 * The batches that were read last, for a short time: a mailbox's registrations push the same. An
 * item that has been removed meanwhile is pushed yet, and its removal after it.
 */
class Batches {
  private readonly known = new Map<string, Known>()
  private chars = 0

  get(key: string, nowMs: number): ChangeBatch | undefined {
    const found = this.known.get(key)
    // A clock that was set back makes nothing fresher.
    const isFresh = found !== undefined && nowMs < found.untilMs &&
      nowMs >= found.untilMs - batchFreshMs
    return isFresh ? found.batch : undefined
  }

  keep(key: string, batch: ChangeBatch, nowMs: number): void {
    const chars = batch.items.reduce((sum, { value }) => sum + value.length, 0)
    this.forget(key)
    this.known.set(key, { batch, chars, untilMs: nowMs + batchFreshMs })
    this.chars += chars
    for (const [first, { untilMs }] of this.known) {
      if (this.chars <= batchesCharsMax && untilMs > nowMs) return
      this.forget(first)
    }
  }

  private forget(key: string): void {
    this.chars -= this.known.get(key)?.chars ?? 0
    this.known.delete(key)
  }
}

interface Current {
  readonly callback: string
  readonly untilMs: number
}

/** The push of each registration here that waits or is under way, unless it was withdrawn. */
class Pushes {
  private readonly current = new Map<string, Current>()

  begin(id: string, push: Current): void {
    this.current.set(id, push)
  }

  isWanted(id: string, { untilMs }: Current): boolean {
    return this.current.get(id)?.untilMs === untilMs
  }

  /** The registration has ended, or moves to another callback. */
  withdraw(id: string, callback?: string): void {
    if (this.current.get(id)?.callback !== callback) this.current.delete(id)
  }

  end(id: string, push: Current): void {
    if (this.isWanted(id, push)) this.current.delete(id)
  }
}

export class MailboxReadCache {
  readonly batches = new Batches()
  readonly pushes = new Pushes()
}

/* What the pushes of one node share: what was read of mailboxes lately, and what is wanted. */

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
