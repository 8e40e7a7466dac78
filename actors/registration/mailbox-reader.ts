/** Reads a registration's mailbox: the head of its log, and the changes in it. */
import { Effect } from "effect"
import { LRUCache } from "lru-cache"
import { type Address, address, type AskFailure, isRefusal, type LogItem, type Peers, placingPart,
  type Refusal, type StorageFailure } from "../../runtime/index.ts"
import { batchesCharsMax, batchFreshMs, mailboxTestsPerMinuteMax, pushCharsMax, pushItemsMax,
  pushReadItems, testedMailboxesMax } from "../limits.ts"
import { askMailbox, mailboxKind, type MailboxReply } from "../mailbox/index.ts"
import type { Keyring } from "../keyring.ts"
import type { RequestCause, TextContent } from "../outbound/index.ts"
import { openItems } from "../sealed-fragment.ts"
import type { Callee, RegistrationAction, RegistrationMessage } from "./protocol.ts"
import { startWithin } from "./test-event.ts"

/** The changes of a mailbox that one push sends. */
export interface ChangeBatch {
  readonly items: ReadonlyArray<LogItem>
  /** Whether more changes follow. */
  readonly more: boolean
  /** What pushes send, by form and topic; each is made by the first push that needs it. */
  readonly contents?: ReadonlyMap<string, TextContent>
}

const charsOf = ({ contents, items }: ChangeBatch): number => {
  let chars = 1
  for (const { value } of items) chars += value.length
  for (const { body } of contents?.values() ?? []) chars += body.length
  return chars
}

/**
 * Recent batches, for a short time: all registrations of a mailbox push the same changes. A push
 * may send an item that has been removed in the meantime; its removal event follows.
 */
class ChangeBatchCache {
  private readonly recent = new LRUCache<string, ChangeBatch>({
    maxSize: batchesCharsMax,
    sizeCalculation: charsOf,
    ttl: batchFreshMs,
    ttlResolution: 0,
    perf: { now: () => performance.now() }
  })

  get(key: string): ChangeBatch | undefined {
    return this.recent.get(key)
  }

  set(key: string, batch: ChangeBatch): void {
    this.recent.set(key, batch)
  }

  /** Keeps a content of a batch with it, for as long as the batch. */
  addContent(key: string, name: string, content: TextContent): void {
    const batch = this.recent.get(key)
    if (batch === undefined) return
    const contents = new Map(batch.contents).set(name, content)
    // A time of 0 would have no end.
    const ttl = Math.max(1, this.recent.getRemainingTTL(key))
    this.recent.set(key, { ...batch, contents }, { ttl })
  }
}

/** Where a push goes. `untilMs` identifies it among the pushes of its registration. */
interface Push {
  readonly callback: string
  readonly untilMs: number
}

/** The waiting or running push of each registration on this node, unless it was withdrawn. */
class CurrentPushes {
  private readonly byId = new Map<string, Push>()

  begin(id: string, push: Push): void {
    this.byId.set(id, push)
  }

  isCurrent(id: string, { untilMs }: Push): boolean {
    return this.byId.get(id)?.untilMs === untilMs
  }

  /** Withdraws the push, since the registration has ended or goes to another `callback` now. */
  withdraw(id: string, callback?: string): void {
    if (this.byId.get(id)?.callback !== callback) this.byId.delete(id)
  }

  end(id: string, push: Push): void {
    if (this.isCurrent(id, push)) this.byId.delete(id)
  }
}

/**
 * When the test events of the last minute began, by mailbox. All registrations of a mailbox are on
 * one node, and none of them is removed and made again to send more. Those that the mailbox's
 * password has allowed count by themselves: its holders cannot use up what the owner has.
 */
class MailboxTests {
  private readonly startsMs = new LRUCache<string, ReadonlyArray<number>>({
    max: testedMailboxesMax
  })

  /** Counts one; or returns when the next may begin, since there are too many. */
  begin(
    mailbox: string,
    { secretsVersion }: Pick<Callee, "secretsVersion">,
    nowMs: number
  ): number | undefined {
    const key = `${mailbox} ${secretsVersion === undefined ? "owner" : "reader"}`
    const earlier = this.startsMs.get(key) ?? []
    const start = startWithin(earlier, mailboxTestsPerMinuteMax, nowMs)
    if (start._tag === "TooMany") return start.untilMs
    this.startsMs.set(key, start.startsMs)
    return undefined
  }
}

/** The resources that all pushes of a node share. */
export class PushResources {
  /** Decrypts message passwords. */
  readonly keyring: Keyring
  readonly batches = new ChangeBatchCache()
  readonly pushes = new CurrentPushes()
  readonly tests = new CurrentPushes()
  readonly mailboxTests = new MailboxTests()

  /** Gives up what waits for its permit, since the registration has ended or moved. */
  withdraw(id: string, callback?: string): void {
    this.pushes.withdraw(id, callback)
    this.tests.withdraw(id, callback)
  }

  constructor(keyring: Keyring) {
    this.keyring = keyring
  }
}

export type PushAction = Extract<RegistrationAction, { readonly _tag: "Push" }>

export type CheckMailboxAction = Extract<RegistrationAction, { readonly _tag: "CheckMailbox" }>

/** What a read of the mailbox needs of the action that causes it. */
type MailboxRead = Pick<CheckMailboxAction, "from" | "secretsVersion" | "untilMs">

export type MailboxReadFailure = AskFailure | StorageFailure

/** The name of the mailbox of a registration. */
export const mailboxOf = (self: Address): string => placingPart(self.id)

/** Who causes the requests of a registration; its mailbox if no account registered the callback. */
export const causeOf = (self: Address, { account }: Callee): RequestCause =>
  account === undefined
    ? { kind: "mailbox", id: mailboxOf(self) }
    : { kind: "account", id: account }

/** The cache key of the changes after item `from`, up to `upTo`. */
export const batchKey = (
  self: Address,
  { from, upTo }: { readonly from: number; readonly upTo: number }
): string => `${mailboxOf(self)} ${from} ${upTo}`

/** The changes after item `from`, up to `upTo`, as many as fit one push; cached or read. */
export const readBatch = Effect.fnUntraced(function*(
  { batches, keyring }: PushResources,
  peers: Peers,
  self: Address,
  from: number,
  upTo: number
): Effect.fn.Return<ChangeBatch, StorageFailure> {
  const key = batchKey(self, { from, upTo })
  const cached = batches.get(key)
  if (cached !== undefined) return cached
  const batch = yield* readChanges(keyring, peers, self, from, upTo)
  // Another push may have read them in the meantime, and made its content.
  const earlier = batches.get(key)
  if (earlier !== undefined) return earlier
  batches.set(key, batch)
  return batch
})

const readChanges = Effect.fnUntraced(function*(
  keyring: Keyring,
  peers: Peers,
  self: Address,
  from: number,
  upTo: number
): Effect.fn.Return<ChangeBatch, StorageFailure> {
  const mailbox = address(mailboxKind, mailboxOf(self))
  const items: Array<LogItem> = []
  let chars = 0
  for (let after = from; after < upTo;) {
    const stored = yield* peers.read(mailbox, after + 1, pushReadItems)
    const part = openItems(keyring, mailbox, stored)
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

/**
 * The head of the log; or a message if the mailbox is removed, has no such registration, or has
 * other secrets than the one that allowed it.
 */
export const readHead = Effect.fnUntraced(function*(
  peers: Peers,
  self: Address,
  { from, secretsVersion, untilMs }: MailboxRead
): Effect.fn.Return<
  RegistrationMessage | Extract<MailboxReply, { readonly _tag: "Head" }>,
  AskFailure
> {
  const reply = yield* askMailbox(peers, mailboxOf(self), {
    _tag: "ReadHead",
    id: self.id,
    ...secretsVersion === undefined ? {} : { secretsVersion }
  })
  if (isRefusal(reply) && reply.reason === "Forbidden" && secretsVersion !== undefined) {
    return { _tag: "Revoked", secretsVersion }
  }
  if (!isRefusal(reply) && reply._tag === "Head") return reply
  return withoutMailbox(reply, from, untilMs)
})

/** The message after a reply that has no mailbox. */
const withoutMailbox = (
  reply: MailboxReply | Refusal,
  from: number,
  untilMs: number
): RegistrationMessage =>
  !isRefusal(reply) || reply.reason !== "Gone"
    ? { _tag: "Detached", untilMs }
    // The removal is final: the registration accepts it from any check or push, of any `untilMs`.
    : { _tag: "Checked", untilMs: 0, from, upTo: from, more: false, mailboxGone: true }

/** The mailbox that a topic shows; or a message, as of {@link readHead}. */
export const readMailbox = Effect.fnUntraced(function*(
  peers: Peers,
  self: Address,
  { from, untilMs }: MailboxRead
): Effect.fn.Return<
  RegistrationMessage | Extract<MailboxReply, { readonly _tag: "Described" }>,
  AskFailure
> {
  const reply = yield* askMailbox(peers, mailboxOf(self), { _tag: "Describe", reader: {} })
  if (!isRefusal(reply) && reply._tag === "Described") return reply
  return withoutMailbox(reply, from, untilMs)
})

/** The message of a check or push that could not read the store or the mailbox. */
export const unavailable = (
  { untilMs }: CheckMailboxAction | PushAction
): Effect.Effect<RegistrationMessage> => Effect.succeed({ _tag: "Unavailable", untilMs })

/** Checks the mailbox for changes. */
export const checkMailbox = Effect.fnUntraced(function*(
  resources: PushResources,
  peers: Peers,
  self: Address,
  action: CheckMailboxAction
): Effect.fn.Return<RegistrationMessage, MailboxReadFailure> {
  const { end = Infinity, from, readsChanges, untilMs } = action
  const reply = yield* readHead(peers, self, action)
  if (reply._tag !== "Head") return reply
  const batch = readsChanges
    ? yield* readBatch(resources, peers, self, from, Math.min(reply.head, end))
    : undefined
  const upTo = batch?.items.at(-1)?.n ?? from
  return { _tag: "Checked", untilMs, from, upTo, more: batch?.more ?? false, mailboxGone: false }
})
