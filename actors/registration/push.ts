/** One push: a POST of the signed document with the mailbox's changes to the callback. */
import { type Clock, Effect } from "effect"
import type { Address, LogItem, OpenSpan, Peers, Traces } from "../../runtime/index.ts"
import type { Links } from "../links.ts"
import { formatCursor, isRemoval, itemAtMs, type MailboxView } from "../mailbox/index.ts"
import { type DeliveryOutcome, type ExchangeRecord, hubSignature, type Outbound,
  type OutboundContent, type TextContent, webhookHeaders } from "../outbound/index.ts"
import type { Keyring } from "../keyring.ts"
import { sha256 } from "../secret-hash.ts"
import { observed } from "./attempts.ts"
import { batchKey, causeOf, mailboxOf, type MailboxReadFailure, type PushAction, type PushResources,
  readBatch, readHead, readMailbox, unavailable } from "./mailbox-reader.ts"
import type { RegistrationMessage, TopicFormat } from "./protocol.ts"
import { browserDocument, changesDocument, deletedBrowserDocument,
  deletedDocument } from "./push-document.ts"
import { browserRequest, type Vapid } from "./web-push.ts"

/** What a push to a WebSub subscription shows. */
export interface TopicPush {
  /** The name of the mailbox, and its URI. */
  readonly name: string
  readonly href: string
  /** The URI of the topic. */
  readonly topic: string
  /** Undefined for the mailbox's own URI. */
  readonly format: TopicFormat | undefined
  readonly view: MailboxView
  /** The log items of the new notifications. */
  readonly items: ReadonlyArray<LogItem>
  /** The cursor after them. */
  readonly time: string
}

/** The dependencies of pushes. */
export interface PushDependencies {
  /** Decrypts the signing secrets, and the message passwords that are pushed. */
  readonly keyring: Keyring
  readonly outbound: Outbound
  readonly links: Links
  readonly documents: {
    /** The representation that is the topic, with the new notifications only. */
    readonly topicDocument: (
      push: TopicPush
    ) => { readonly contentType: string; readonly body: string }
    /** The description in the fragment of a notification; undefined without one. */
    readonly descriptionOf: (fragment: string) => string | undefined
  }
  /** Identifies the service to the push services of browsers. */
  readonly vapid: Vapid
  /** In [0, 1): jitters the retries. */
  readonly random: () => number
  /** Records a trace of each push; undefined: the node exports no traces. */
  readonly traces?: Traces | undefined
}

/** The id of a push, which is the same in every attempt. */
const pushId = (self: Address, { from, mailboxGone, upTo }: PushAction): string => {
  const text = `${self.id} ${from} ${upTo} ${mailboxGone ? "deleted" : "changed"}`
  return `msg_${sha256(text)}`
}

/** The content of all pushes of the same changes, before it is signed. */
export const contentOf = (
  links: Links,
  mailbox: string,
  { topicFormat }: Pick<PushAction, "topicFormat">,
  { body, contentType }: { readonly body: string; readonly contentType: string }
): TextContent => {
  const hub = `<${links.registrations(mailbox)}>; rel="hub"`
  const link = `${hub}, <${links.topic(mailbox, topicFormat)}>; rel="self"`
  return { headers: { "Content-Type": contentType, Link: link }, body }
}

/**
 * The content with the signatures of this registration, or encrypted for its browser; undefined
 * before the node has the key that identifies it to push services.
 */
export const signed = (
  { vapid }: PushDependencies,
  { body, headers }: TextContent,
  self: Address,
  push: Pick<PushAction, "callback" | "form" | "p256dh" | "secrets">,
  id: string,
  nowMs: number
): OutboundContent | undefined => {
  const { callback, form, p256dh, secrets } = push
  if (form === "webpush") {
    const [auth] = secrets
    return p256dh === undefined || auth === undefined
      ? undefined
      : browserRequest(vapid, body, self.id, callback, { p256dh, auth }, nowMs)
  }
  if (form === "native") {
    const seconds = Math.floor(nowMs / 1000)
    const signatures = webhookHeaders(secrets, id, seconds, body)
    return { headers: { ...headers, ...signatures }, body }
  }
  const [secret] = secrets
  return secret === undefined
    ? { headers, body }
    : { headers: { ...headers, "X-Hub-Signature": hubSignature(secret, body) }, body }
}

const contentKey = ({ form, topicFormat }: PushAction): string => `${form} ${topicFormat ?? ""}`

/** One attempt to push, and what it is made with. */
interface PushAttempt {
  readonly deps: PushDependencies
  readonly resources: PushResources
  readonly peers: Peers
  readonly self: Address
  readonly action: PushAction
  readonly nowMs: number
}

/** The content of an attempt, before it is signed; or the message to return. */
type MadeContent = Effect.fn.Return<TextContent | RegistrationMessage, MailboxReadFailure>

/** The content of a push of the native form. */
const changesContent = Effect.fnUntraced(function*(
  { action, deps: { links }, nowMs, peers, resources, self }: PushAttempt
): MadeContent {
  const { from, mailboxGone, upTo } = action
  const mailbox = mailboxOf(self)
  const asContent = (body: string): TextContent =>
    contentOf(links, mailbox, action, { body, contentType: "application/xml; charset=utf-8" })
  if (mailboxGone) return asContent(deletedDocument(links, mailbox, upTo, nowMs))
  const { contents, items } = yield* readBatch(resources, peers, self, from, upTo)
  const made = contents?.get(contentKey(action))
  if (made !== undefined) return made
  const last = items.at(-1)
  if (last !== undefined) {
    const atMs = itemAtMs(last.value)
    const content = asContent(changesDocument(links, mailbox, items, upTo, atMs))
    resources.batches.addContent(batchKey(self, action), contentKey(action), content)
    return content
  }
  // All these items have been removed in the meantime, or the whole mailbox.
  const reply = yield* readHead(peers, self, action)
  return reply._tag === "Head"
    ? asContent(changesDocument(links, mailbox, items, upTo, reply.lastAtMs))
    : reply
})

/** The content of a push of a topic. */
const topicContent = Effect.fnUntraced(function*(
  { action, deps: { documents, links }, peers, resources, self }: PushAttempt
): MadeContent {
  const { from, topicFormat: format, untilMs, upTo } = action
  const name = mailboxOf(self)
  const reply = yield* readMailbox(peers, self, action)
  if (reply._tag !== "Described") return reply
  const batch = yield* readBatch(resources, peers, self, from, upTo)
  const made = batch.contents?.get(contentKey(action))
  if (made !== undefined) return made
  const items = batch.items.filter(({ value }) => !isRemoval(value))
  const last = batch.items.at(-1)
  if (last === undefined || items.length === 0) return { _tag: "Skipped", untilMs, from, upTo }
  const time = formatCursor(itemAtMs(last.value), upTo)
  const [href, topic] = [links.mailbox(name), links.topic(name, format)]
  const document = documents.topicDocument({
    name,
    href,
    topic,
    format,
    view: reply.view,
    items,
    time
  })
  const content = contentOf(links, name, action, document)
  resources.batches.addContent(batchKey(self, action), contentKey(action), content)
  return content
})

/**
 * The content of a push to a browser. A browser must show something for each push (Push API,
 * `userVisibleOnly`): there is none for removals alone.
 */
const browserContent = Effect.fnUntraced(function*(
  { action, deps: { documents, links }, nowMs, peers, resources, self }: PushAttempt
): MadeContent {
  const { from, mailboxGone, untilMs, upTo } = action
  const mailbox = mailboxOf(self)
  if (mailboxGone) {
    return { headers: {}, body: deletedBrowserDocument(links, mailbox, upTo, nowMs) }
  }
  const batch = yield* readBatch(resources, peers, self, from, upTo)
  const made = batch.contents?.get(contentKey(action))
  if (made !== undefined) return made
  const last = batch.items.at(-1)
  const arrived = batch.items.filter(({ value }) => !isRemoval(value))
  const newest = arrived.at(-1)
  if (last === undefined || newest === undefined) {
    const reply = yield* readHead(peers, self, action)
    return reply._tag === "Head" ? { _tag: "Skipped", untilMs, from, upTo } : reply
  }
  const { descriptionOf } = documents
  const atMs = itemAtMs(last.value)
  const body = browserDocument(links, mailbox, newest, descriptionOf, {
    count: arrived.length,
    time: formatCursor(atMs, upTo)
  })
  const content: TextContent = { headers: {}, body }
  resources.batches.addContent(batchKey(self, action), contentKey(action), content)
  return content
})

const contentMakers = {
  native: changesContent,
  websub: topicContent,
  webpush: browserContent
} as const

const isContent = (found: TextContent | RegistrationMessage): found is TextContent =>
  "body" in found

/** What another registration's push of the same changes has sent. */
const cachedContent = (
  { batches }: PushResources,
  self: Address,
  action: PushAction
): TextContent | undefined =>
  action.mailboxGone
    ? undefined
    : batches.get(batchKey(self, action))?.contents?.get(contentKey(action))

/** The content of a push, if the mailbox still has the secrets that allowed the registration. */
const allowedContent = Effect.fnUntraced(function*(attempt: PushAttempt): MadeContent {
  const { action, peers, resources, self } = attempt
  if (action.secretsVersion !== undefined && !action.mailboxGone) {
    const reply = yield* readHead(peers, self, action)
    if (reply._tag !== "Head") return reply
  }
  return cachedContent(resources, self, action) ??
    (yield* contentMakers[action.form](attempt))
})

/**
 * The endpoint of a browser is not verified. So one that a reader without an account has named is
 * reached at public addresses only, whatever the operator allows.
 */
export const reachOf = (
  { account, form }: Pick<PushAction, "account" | "form">
): { readonly reach?: "public" } =>
  form === "webpush" && account === undefined ? { reach: "public" } : {}

/** Ends the span of a push that was made. */
const endSpan = (
  span: OpenSpan | undefined,
  { form }: PushAction,
  outcome: DeliveryOutcome
): void => {
  if (span === undefined || outcome._tag === "Deferred") return
  const attributes = { "restante.registration.form": form, "restante.outcome": outcome._tag }
  span.end(attributes, outcome._tag === "Delivered" ? undefined : outcome._tag)
}

/** The message with the outcome of a push that was made. */
const pushedMessage = (
  { random }: PushDependencies,
  { callback, from, p256dh, upTo }: PushAction,
  outcome: DeliveryOutcome,
  exchange: ExchangeRecord
): RegistrationMessage => ({
  _tag: "Pushed",
  callback,
  ...p256dh === undefined ? {} : { p256dh },
  from,
  upTo,
  outcome,
  exchange,
  random: random()
})

/** Sends a push. Returns its outcome as a message; or another message if nothing was sent. */
export const push = (
  deps: PushDependencies,
  resources: PushResources,
  peers: Peers,
  self: Address,
  action: PushAction
): Effect.Effect<RegistrationMessage> => {
  const { callback, form, secretsVersion } = action
  const { pushes } = resources
  const cause = causeOf(self, action)
  let notSent: RegistrationMessage | undefined
  let span: OpenSpan | undefined
  const finish = (content: TextContent, nowMs: number): OutboundContent | undefined => {
    const finished = signed(deps, content, self, action, pushId(self, action), nowMs)
    if (finished === undefined) notSent = { _tag: "Unavailable", untilMs: action.untilMs }
    return finished
  }
  const loadAt = (clock: Clock.Clock) => () => {
    // The push may have been withdrawn while it waited for its permit.
    if (!pushes.isCurrent(self.id, action)) {
      notSent = { _tag: "Unavailable", untilMs: action.untilMs }
      return undefined
    }
    const nowMs = clock.currentTimeMillisUnsafe()
    const cached = secretsVersion === undefined
      ? cachedContent(resources, self, action)
      : undefined
    if (cached !== undefined) return finish(cached, nowMs)
    return allowedContent({ deps, resources, peers, self, action, nowMs }).pipe(
      Effect.catch(() => unavailable(action)),
      Effect.map((found): OutboundContent | undefined => {
        if (isContent(found)) return finish(found, nowMs)
        notSent = found
        return undefined
      })
    )
  }
  return observed(action, (observer, clock) => {
    pushes.begin(self.id, action)
    // WebSub §7: content that is not answered with a 2xx is not delivered, and redirects are not.
    // A token of VAPID is for one push service only.
    const refusesRedirects = form !== "native"
    const bounds = { cause, refusesRedirects, ...reachOf(action) }
    // It begins a trace: one push may be for the notifications of many requests.
    span = deps.traces?.begin({ name: "push", kind: "internal", parent: undefined })
    const trace = span?.traceparent
    return deps.outbound.post({ uri: callback, load: loadAt(clock), ...bounds, trace, observer })
  }).pipe(
    Effect.map(({ exchange, outcome }): RegistrationMessage => {
      if (notSent !== undefined) return notSent
      endSpan(span, action, outcome)
      return pushedMessage(deps, action, outcome, exchange)
    }),
    Effect.ensuring(Effect.sync(() => pushes.end(self.id, action)))
  )
}
