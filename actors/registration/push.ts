/** One push: the changes that it carries, signed, in the lane of its callback's origin. */
import { type Clock, Effect } from "effect"
import { hash } from "node:crypto"
import type { Address, Peers } from "../../runtime/index.ts"
import type { Links } from "../links.ts"
import { itemAtMs } from "../mailbox/index.ts"
import { hubSignature, type Outbound, type OutboundContent,
  webhookHeaders } from "../outbound/index.ts"
import { away, batchKey, lookAt, mailboxOf, type MailboxReadCache, type MailboxReadFailure,
  type PushAction, readBatch } from "./mailbox-reader.ts"
import type { RegistrationMessage } from "./protocol.ts"
import { changesDocument, deletedDocument } from "./push-document.ts"

/** What pushes need. */
export interface PushDependencies {
  readonly outbound: Outbound
  readonly links: Links
  /** In [0, 1): jitters the retries. */
  readonly random: () => number
}

/** The same for the same changes of the same registration, whenever they are pushed. */
const pushId = (self: Address, { from, mailboxGone, upTo }: PushAction): string => {
  const text = `${self.id} ${from} ${upTo} ${mailboxGone ? "deleted" : "changed"}`
  return `msg_${hash("sha256", text, "base64url")}`
}

/** What all pushes of a mailbox say. */
const commonHeaders = (links: Links, self: Address): Readonly<Record<string, string>> => {
  const mailbox = mailboxOf(self)
  const hub = `<${links.registrations(mailbox)}>; rel="hub"`
  const link = `${hub}, <${links.mailbox(mailbox)}>; rel="self"`
  return { "Content-Type": "application/xml; charset=utf-8", Link: link }
}

const headersOf = (
  common: Readonly<Record<string, string>>,
  self: Address,
  push: PushAction,
  body: string,
  nowMs: number
): Readonly<Record<string, string>> => {
  const { form, secrets } = push
  if (form === "native") {
    const seconds = Math.floor(nowMs / 1000)
    return { ...common, ...webhookHeaders(secrets, pushId(self, push), seconds, body) }
  }
  const secret = secrets[0]
  return secret === undefined
    ? common
    : { ...common, "X-Hub-Signature": hubSignature(secret, body) }
}

/** The document of a push; or what is told instead of one. */
const documentOf = Effect.fnUntraced(function*(
  { links }: PushDependencies,
  desk: MailboxReadCache,
  peers: Peers,
  self: Address,
  action: PushAction,
  nowMs: number
): Effect.fn.Return<string | RegistrationMessage, MailboxReadFailure> {
  const { from, mailboxGone, upTo } = action
  const mailbox = mailboxOf(self)
  if (mailboxGone) return deletedDocument(links, mailbox, upTo, nowMs)
  const batch = yield* readBatch(desk, peers, self, from, upTo)
  if (batch.document !== undefined) return batch.document
  const { items } = batch
  const last = items.at(-1)
  if (last !== undefined) {
    return batch.document = changesDocument(links, mailbox, items, upTo, itemAtMs(last.value))
  }
  // All of it has been removed meanwhile, with its mailbox or before it.
  const looked = yield* lookAt(peers, self, action)
  return looked._tag === "Looked"
    ? changesDocument(links, mailbox, items, upTo, looked.lastAtMs)
    : looked
})

/** Pushes, and says what came of it; nothing was sent when something else is told. */
export const push = (
  deps: PushDependencies,
  desk: MailboxReadCache,
  peers: Peers,
  self: Address,
  action: PushAction
): Effect.Effect<RegistrationMessage> => {
  const { callback, upTo } = action
  let instead: RegistrationMessage | undefined
  const letterFrom = (clock: Clock.Clock) => () => {
    // It may have been withdrawn before its turn came.
    if (!desk.pushes.isWanted(self.id, action)) return undefined
    const nowMs = clock.currentTimeMillisUnsafe()
    const batch = desk.batches.get(batchKey(self, action), nowMs)
    const written = (body: string): OutboundContent => {
      const common = batch?.common ?? commonHeaders(deps.links, self)
      if (batch !== undefined) batch.common = common
      return { headers: headersOf(common, self, action, body, nowMs), body }
    }
    if (batch?.document !== undefined) return written(batch.document)
    return documentOf(deps, desk, peers, self, action, nowMs).pipe(
      Effect.catch(() => away(action)),
      Effect.map((made): OutboundContent | undefined => {
        if (typeof made === "string") return written(made)
        instead = made
        return undefined
      })
    )
  }
  return Effect.clockWith((clock) => {
    desk.pushes.begin(self.id, action)
    return deps.outbound.post({ uri: callback, letter: letterFrom(clock) })
  }).pipe(
    Effect.map((outcome): RegistrationMessage =>
      instead ?? { _tag: "Pushed", callback, upTo, outcome, random: deps.random() }
    ),
    Effect.ensuring(Effect.sync(() => desk.pushes.end(self.id, action)))
  )
}
