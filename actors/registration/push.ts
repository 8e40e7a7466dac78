/** One push: a POST of the signed document with the mailbox's changes to the callback. */
import { type Clock, Effect } from "effect"
import type { Address, Peers } from "../../runtime/index.ts"
import type { Links } from "../links.ts"
import { itemAtMs } from "../mailbox/index.ts"
import { hubSignature, type Outbound, type OutboundContent,
  webhookHeaders } from "../outbound/index.ts"
import { sha256 } from "../secret-hash.ts"
import { batchKey, mailboxOf, type MailboxReadFailure, type PushAction, type PushResources,
  readBatch, readHead, unavailable } from "./mailbox-reader.ts"
import type { RegistrationMessage } from "./protocol.ts"
import { changesDocument, deletedDocument } from "./push-document.ts"

/** The dependencies of pushes. */
export interface PushDependencies {
  readonly outbound: Outbound
  readonly links: Links
  /** In [0, 1): jitters the retries. */
  readonly random: () => number
}

/** The id of a push, which is the same in every attempt. */
const pushId = (self: Address, { from, mailboxGone, upTo }: PushAction): string => {
  const text = `${self.id} ${from} ${upTo} ${mailboxGone ? "deleted" : "changed"}`
  return `msg_${sha256(text)}`
}

/** The headers of all pushes of a mailbox. */
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

/** The document of a push; or the message to return if there is nothing to send. */
const documentOf = Effect.fnUntraced(function*(
  { links }: PushDependencies,
  resources: PushResources,
  peers: Peers,
  self: Address,
  action: PushAction,
  nowMs: number
): Effect.fn.Return<string | RegistrationMessage, MailboxReadFailure> {
  const { from, mailboxGone, upTo } = action
  const mailbox = mailboxOf(self)
  if (mailboxGone) return deletedDocument(links, mailbox, upTo, nowMs)
  const batch = yield* readBatch(resources, peers, self, from, upTo)
  if (batch.document !== undefined) return batch.document
  const { items } = batch
  const last = items.at(-1)
  if (last !== undefined) {
    return batch.document = changesDocument(links, mailbox, items, upTo, itemAtMs(last.value))
  }
  // All these items have been removed in the meantime, or the whole mailbox.
  const reply = yield* readHead(peers, self, action)
  return reply._tag === "Head"
    ? changesDocument(links, mailbox, items, upTo, reply.lastAtMs)
    : reply
})

/** Sends a push. Returns its outcome as a message; or another message if nothing was sent. */
export const push = (
  deps: PushDependencies,
  resources: PushResources,
  peers: Peers,
  self: Address,
  action: PushAction
): Effect.Effect<RegistrationMessage> => {
  const { callback, upTo } = action
  const { batches, pushes } = resources
  let notSent: RegistrationMessage | undefined
  const loadAt = (clock: Clock.Clock) => () => {
    // The push may have been withdrawn while it waited for its permit.
    if (!pushes.isCurrent(self.id, action)) return undefined
    const nowMs = clock.currentTimeMillisUnsafe()
    const batch = batches.get(batchKey(self, action))
    const contentOf = (body: string): OutboundContent => {
      const common = batch?.commonHeaders ?? commonHeaders(deps.links, self)
      if (batch !== undefined) batch.commonHeaders = common
      return { headers: headersOf(common, self, action, body, nowMs), body }
    }
    if (batch?.document !== undefined) return contentOf(batch.document)
    return documentOf(deps, resources, peers, self, action, nowMs).pipe(
      Effect.catch(() => unavailable(action)),
      Effect.map((document): OutboundContent | undefined => {
        if (typeof document === "string") return contentOf(document)
        notSent = document
        return undefined
      })
    )
  }
  return Effect.clockWith((clock) => {
    pushes.begin(self.id, action)
    return deps.outbound.post({ uri: callback, load: loadAt(clock) })
  }).pipe(
    Effect.map((outcome): RegistrationMessage =>
      notSent ?? { _tag: "Pushed", callback, upTo, outcome, random: deps.random() }
    ),
    Effect.ensuring(Effect.sync(() => pushes.end(self.id, action)))
  )
}
