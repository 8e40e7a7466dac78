/** The registration bound to the runtime: how it verifies, looks and pushes. */
import { createHash } from "node:crypto"
import { Clock, Effect } from "effect"
import { address, isRefusal, placingPart } from "../../runtime/index.ts"
import type {
  Address,
  AskFailure,
  Behaviour,
  LogItem,
  Peers,
  Refusal,
  StorageFailure
} from "../../runtime/index.ts"
import { jsonRecord, strictMessage } from "../binding.ts"
import type { FetchOutcome, Letter, Outbound, Outcome } from "../delivery/protocol.ts"
import type { Schedule } from "../delivery/schedule.ts"
import { hubSignature, webhookHeaders } from "../delivery/signatures.ts"
import { challengeBytesMax, pushCharsMax, pushItemsMax, pushReadItems } from "../limits.ts"
import type { Links } from "../links.ts"
import { mailboxKind } from "../mailbox/actor.ts"
import { itemAtMs } from "../mailbox/item.ts"
import type { Message as MailboxMessage, Reply as MailboxReply } from "../mailbox/protocol.ts"
import { registrationKind } from "../mailbox/waking.ts"
import { changesDocument, deletedDocument } from "./changes.ts"
import { registrationTable } from "./decide.ts"
import { type Action, Message, type Reply, State } from "./protocol.ts"

export { registrationKind } from "../mailbox/waking.ts"

/** What registrations need. */
export interface RegistrationDependencies {
  readonly outbound: Outbound
  readonly links: Links
  readonly schedule: Schedule
  /** In [0, 1): jitters the retries. */
  readonly random: () => number
}

type Push = Extract<Action, { readonly _tag: "Push" }>
type Look = Extract<Action, { readonly _tag: "Look" }>
type Verify = Extract<Action, { readonly _tag: "Verify" }>
type Failure = AskFailure | StorageFailure

/** What a verification without a lease says: ten years, since WebSub §5.3 wants a number. */
const unendingLeaseSeconds = 10 * 365 * 86_400

const mailboxOf = (self: Address): string => placingPart(self.id)

/** The callback with parameters after those that it has (WebSub §5.3). */
const withQuery = (callback: string, parameters: Readonly<Record<string, string>>): string => {
  const base = callback.split("#", 1)[0] ?? callback
  const query = new URLSearchParams(parameters).toString()
  return `${base}${base.includes("?") ? "&" : "?"}${query}`
}

/** Whether a 2xx came with exactly the challenge. */
const echoOf = (answer: FetchOutcome, challenge: string): Outcome => {
  if (answer._tag !== "Fetched") return answer
  const { bytes, code } = answer.fetched
  return Buffer.from(bytes).toString("utf8") === challenge
    ? { _tag: "Delivered", code }
    : { _tag: "Refused", code, problem: "the callback did not echo the challenge" }
}

const verify = (
  { links, outbound, random }: RegistrationDependencies,
  self: Address,
  { callback, challenge, leaseSeconds, mode }: Verify
): Effect.Effect<Message> => {
  const lease = leaseSeconds === 0 ? unendingLeaseSeconds : leaseSeconds
  const uri = withQuery(callback, {
    "hub.mode": mode,
    "hub.topic": links.mailbox(mailboxOf(self)),
    "hub.challenge": challenge,
    ...mode === "subscribe" ? { "hub.lease_seconds": String(lease) } : {}
  })
  return Effect.map(outbound.get({ uri, bytesMax: challengeBytesMax }), (answer) => ({
    _tag: "Verified",
    challenge,
    outcome: echoOf(answer, challenge),
    random: random()
  }))
}

const tellMailbox = (
  peers: Peers,
  self: Address,
  message: MailboxMessage
): Effect.Effect<MailboxReply | Refusal, AskFailure> =>
  // A mailbox answers in its own protocol, and in no other.
  peers.ask(address(mailboxKind, mailboxOf(self)), message) as Effect.Effect<
    MailboxReply | Refusal,
    AskFailure
  >

/** What a push may hold of the log after item `from`, up to `upTo`; and whether more follows. */
const readBatch = Effect.fnUntraced(function*(
  peers: Peers,
  self: Address,
  from: number,
  upTo: number
): Effect.fn.Return<{ items: ReadonlyArray<LogItem>; more: boolean }, StorageFailure> {
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

/** The mailbox is gone, whichever look or push has found that. */
const gone = (from: number): Message => ({
  _tag: "Found",
  untilMs: 0,
  from,
  upTo: from,
  more: false,
  mailboxGone: true
})

/** The mailbox's word on how far its log goes; or the message that it knows none of us. */
const lookAt = Effect.fnUntraced(function*(
  peers: Peers,
  self: Address,
  { from, untilMs }: Look | Push
): Effect.fn.Return<Message | Extract<MailboxReply, { readonly _tag: "Looked" }>, AskFailure> {
  const reply = yield* tellMailbox(peers, self, { _tag: "Look", id: self.id })
  if (!isRefusal(reply) && reply._tag === "Looked") return reply
  return isRefusal(reply) && reply.reason === "Gone" ? gone(from) : { _tag: "Detached", untilMs }
})

const look = Effect.fnUntraced(function*(
  peers: Peers,
  self: Address,
  action: Look
): Effect.fn.Return<Message, Failure> {
  const { from, reads, untilMs } = action
  const looked = yield* lookAt(peers, self, action)
  if (looked._tag !== "Looked") return looked
  const found = reads ? yield* readBatch(peers, self, from, looked.head) : undefined
  const upTo = found?.items.at(-1)?.n ?? from
  return { _tag: "Found", untilMs, from, upTo, more: found?.more ?? false, mailboxGone: false }
})

/** The same for the same changes of the same registration, whenever they are pushed. */
const pushId = (self: Address, { from, mailboxGone, upTo }: Push): string => {
  const text = `${self.id} ${from} ${upTo} ${mailboxGone ? "deleted" : "changed"}`
  return `msg_${createHash("sha256").update(text).digest("base64url")}`
}

const headersOf = (
  links: Links,
  self: Address,
  push: Push,
  body: string,
  nowMs: number
): Readonly<Record<string, string>> => {
  const { form, secrets } = push
  const mailbox = mailboxOf(self)
  const link = `<${links.registrations(mailbox)}>; rel="hub", <${
    links.mailbox(mailbox)
  }>; rel="self"`
  const common = { "Content-Type": "application/xml; charset=utf-8", Link: link }
  if (form === "native") {
    const seconds = Math.floor(nowMs / 1000)
    return { ...common, ...webhookHeaders(secrets, pushId(self, push), seconds, body) }
  }
  const secret = secrets[0]
  return secret === undefined
    ? common
    : { ...common, "X-Hub-Signature": hubSignature(secret, body) }
}

/** Whether the registration still pushes to this callback; asked when its turn has come. */
const isWanted = (peers: Peers, self: Address, callback: string): Effect.Effect<boolean> => {
  const describe: Message = { _tag: "Describe" }
  return peers.ask(self, describe).pipe(
    Effect.map((answer) => {
      const reply = answer as Reply | Refusal // it is its own protocol
      return !isRefusal(reply) && reply._tag === "Described" &&
        reply.view.status === "active" && reply.view.callback === callback
    }),
    Effect.catch(() => Effect.succeed(true))
  )
}

const away = ({ untilMs }: Look | Push): Effect.Effect<Message> =>
  Effect.succeed({ _tag: "Away", untilMs })

/** What is pushed, made when its turn has come; or what is told instead of a push. */
const letterOf = Effect.fnUntraced(function*(
  { links }: RegistrationDependencies,
  peers: Peers,
  self: Address,
  action: Push
): Effect.fn.Return<Letter | Message, Failure> {
  const { from, mailboxGone, upTo } = action
  const nowMs = yield* Clock.currentTimeMillis
  const mailbox = mailboxOf(self)
  const { items } = mailboxGone ? { items: [] } : yield* readBatch(peers, self, from, upTo)
  const last = items.at(-1)
  let atMs = last === undefined ? nowMs : itemAtMs(last.value)
  if (last === undefined && !mailboxGone) {
    // All of it has been removed meanwhile, with its mailbox or before it.
    const looked = yield* lookAt(peers, self, action)
    if (looked._tag !== "Looked") return looked
    atMs = looked.lastAtMs
  }
  const body = mailboxGone
    ? deletedDocument(links, mailbox, upTo, atMs)
    : changesDocument(links, mailbox, items, upTo, atMs)
  return { headers: headersOf(links, self, action, body, nowMs), body }
})

const push = Effect.fnUntraced(function*(
  deps: RegistrationDependencies,
  peers: Peers,
  self: Address,
  action: Push
): Effect.fn.Return<Message> {
  const { callback, upTo } = action
  let instead: Message | undefined
  const letter = Effect.gen(function*() {
    if (!(yield* isWanted(peers, self, callback))) return undefined
    const made = yield* Effect.catch(letterOf(deps, peers, self, action), () => away(action))
    if (!("_tag" in made)) return made
    instead = made
    return undefined
  })
  const outcome = yield* deps.outbound.post({ uri: callback, letter })
  return instead ?? { _tag: "Pushed", callback, upTo, outcome, random: deps.random() }
})

/** Tells a subscriber that its subscription has ended (WebSub §5.2); what it says is not heard. */
const denied = (
  { links, outbound }: RegistrationDependencies,
  self: Address,
  callback: string,
  reason: string
): Effect.Effect<void> => {
  const uri = withQuery(callback, {
    "hub.mode": "denied",
    "hub.topic": links.mailbox(mailboxOf(self)),
    "hub.reason": reason
  })
  return Effect.asVoid(outbound.get({ uri, bytesMax: challengeBytesMax }))
}

const record = jsonRecord(State)

export const registration = (
  deps: RegistrationDependencies
): Behaviour<State, Message, Reply, Action> => ({
  kind: registrationKind,
  initial: { _tag: "Absent" },
  table: registrationTable(deps.schedule),
  decode: record.decode,
  encode: (state) => {
    if (state._tag !== "Registered") return record.encode(state)
    const { again: _again, underWay: _underWay, verifyingUntilMs: _verifying, ...stored } = state
    return record.encode(stored)
  },
  decodeMessage: strictMessage(Message),
  wakeUp: { _tag: "WakeUp" },
  perform: (action, self, peers) => {
    switch (action._tag) {
      case "Verify":
        return verify(deps, self, action)
      case "Look":
        return Effect.catch(look(peers, self, action), () => away(action))
      case "Push":
        return push(deps, peers, self, action)
      case "Detach":
        // When it fails it comes again with the wake-up that is held.
        return tellMailbox(peers, self, { _tag: "Unregister", id: self.id }).pipe(
          Effect.as<Message>({ _tag: "Detached", untilMs: 0 }),
          Effect.catch(() => Effect.void)
        )
      case "Deny":
        return denied(deps, self, action.callback, action.reason)
    }
  }
})
