/** Sends a test event: one push without new changes, as the pushes of the registration are. */
import { type Clock, Effect } from "effect"
import { type Address, address, type LogItem, type Peers } from "../../runtime/index.ts"
import { testTopicItemsMax } from "../limits.ts"
import { formatCursor, isRemoval, itemAtMs, mailboxKind } from "../mailbox/index.ts"
import type { DeliveryOutcome, OutboundContent, TextContent } from "../outbound/index.ts"
import { sha256 } from "../secret-hash.ts"
import { type Observed, observed } from "./attempts.ts"
import { causeOf, mailboxOf, type MailboxReadFailure, type PushResources, readBatch, readHead,
  readMailbox } from "./mailbox-reader.ts"
import type { RegistrationAction, RegistrationMessage } from "./protocol.ts"
import { contentOf, type PushDependencies, reachOf, signed } from "./push.ts"
import { testBrowserDocument, testDocument } from "./push-document.ts"

export type TestAction = Extract<RegistrationAction, { readonly _tag: "SendTest" }>

/** What a test event is made with. */
interface TestAttempt {
  readonly deps: PushDependencies
  readonly resources: PushResources
  readonly peers: Peers
  readonly self: Address
  readonly action: TestAction
}

/** The content before it is signed; or the message to return. */
type MadeTest = Effect.fn.Return<TextContent | RegistrationMessage, MailboxReadFailure>

/**
 * When the last acknowledged item came. A receiver may keep the time of a push as its position: a
 * test event must not move it past what is still to be pushed.
 */
const cursorAtMs = Effect.fnUntraced(function*(
  { action: { from }, peers, self }: TestAttempt,
  lastAtMs: number
): Effect.fn.Return<number, MailboxReadFailure> {
  if (from === 0) return lastAtMs
  const [item] = yield* peers.read(address(mailboxKind, mailboxOf(self)), from, 1)
  return item?.n === from ? itemAtMs(item.value) : lastAtMs
})

/** The last items up to the cursor: those of the last push, if they do not fit one. */
const lastItems = Effect.fnUntraced(function*(
  { action: { from: cursor }, peers, resources, self }: TestAttempt
): Effect.fn.Return<ReadonlyArray<LogItem>, MailboxReadFailure> {
  let from = Math.max(0, cursor - testTopicItemsMax)
  for (;;) {
    const { items, more } = yield* readBatch(resources, peers, self, from, cursor)
    const last = items.at(-1)
    if (!more || last === undefined) return items
    from = last.n
  }
})

/**
 * The topic of a WebSub subscription, which has no other form. It ends at the cursor: a receiver
 * takes its notifications for pushed ones, and the others are still to be pushed.
 */
const topicTest = Effect.fnUntraced(function*(attempt: TestAttempt, lastAtMs: number): MadeTest {
  const { action, deps: { documents, links }, peers, self } = attempt
  const name = mailboxOf(self)
  const reply = yield* readMailbox(peers, self, action)
  if (reply._tag !== "Described") return reply
  const items = yield* lastItems(attempt)
  const atMs = yield* cursorAtMs(attempt, lastAtMs)
  const document = documents.topicDocument({
    name,
    href: links.mailbox(name),
    topic: links.topic(name, action.topicFormat),
    format: action.topicFormat,
    view: reply.view,
    items: items.filter(({ value }) => !isRemoval(value)),
    time: formatCursor(atMs, action.from)
  })
  return contentOf(links, name, action, document)
})

const testContent = Effect.fnUntraced(function*(attempt: TestAttempt): MadeTest {
  const { action, deps: { links }, peers, self } = attempt
  // It also finds out whether the secret that allowed the registration is still valid.
  const reply = yield* readHead(peers, self, action)
  if (reply._tag !== "Head") return reply
  if (action.form === "websub") return yield* topicTest(attempt, reply.lastAtMs)
  const mailbox = mailboxOf(self)
  const atMs = yield* cursorAtMs(attempt, reply.lastAtMs)
  if (action.form === "webpush") {
    return { headers: {}, body: testBrowserDocument(links, mailbox, action.from, atMs) }
  }
  const body = testDocument(links, mailbox, action.from, atMs)
  return contentOf(links, mailbox, action, { body, contentType: "application/xml; charset=utf-8" })
})

const notSent = (problem: string): DeliveryOutcome => ({ _tag: "RetryableFailure", problem })

const notReady = notSent("it was not sent: the mailbox could not be read; send a test again")

/** Each test event has its own id, so that a receiver does not drop it as a repetition. */
const testId = (self: Address, id: string): string => `msg_${sha256(`${self.id} test ${id}`)}`

/** What was found while the content was made. */
interface Findings {
  /** The registration has ended: this message reports it. */
  revoked?: RegistrationMessage
  /** Why nothing was sent. */
  failure?: DeliveryOutcome
  begunMs?: number
}

/** The signed content; undefined if there is none, and then why. */
const finished = (
  { action, deps, self }: TestAttempt,
  found: TextContent | RegistrationMessage,
  findings: Findings,
  nowMs: number
): OutboundContent | undefined => {
  const content = "body" in found
    ? signed(deps, found, self, action, testId(self, action.id), nowMs)
    : undefined
  // Every other message reports that the mailbox has ended, which a check finds out, too.
  if ("_tag" in found && found._tag === "Revoked") findings.revoked = found
  if (content === undefined) findings.failure = notReady
  else findings.begunMs = nowMs
  return content
}

/**
 * Sends the test event, unless its mailbox has had too many. Returns its outcome, or that the
 * registration is revoked. It goes through the same limits of origins and causes as a push, and is
 * given up when the registration ends or moves to another callback meanwhile.
 */
export const sendTest = (
  deps: PushDependencies,
  resources: PushResources,
  peers: Peers,
  self: Address,
  action: TestAction
): Effect.Effect<RegistrationMessage> => {
  const { callback, form, id } = action
  const { tests } = resources
  const attempt = { deps, resources, peers, self, action }
  const findings: Findings = {}
  const loadAt = (clock: Clock.Clock) => () =>
    !tests.isCurrent(self.id, action) ? undefined : testContent(attempt).pipe(
      Effect.map((found) => finished(attempt, found, findings, clock.currentTimeMillisUnsafe())),
      Effect.catch(() => {
        findings.failure = notReady
        return Effect.succeed(undefined)
      })
    )
  const resultOf = (
    { exchange, outcome }: Observed<DeliveryOutcome>,
    nowMs: number
  ): RegistrationMessage => {
    const { begunMs, failure, revoked } = findings
    return revoked ?? {
      _tag: "Tested",
      id,
      outcome: failure ?? outcome,
      ...failure === undefined ? { exchange } : {},
      ...begunMs === undefined ? {} : { durationMs: Math.max(0, nowMs - begunMs) }
    }
  }
  return Effect.clockWith((clock) => {
    const nowMs = clock.currentTimeMillisUnsafe()
    const untilMs = resources.mailboxTests.begin(mailboxOf(self), action, nowMs)
    if (untilMs !== undefined) {
      const outcome: DeliveryOutcome = { _tag: "Deferred", untilMs }
      return Effect.succeed<RegistrationMessage>({ _tag: "Tested", id, outcome, isExcess: true })
    }
    tests.begin(self.id, action)
    const bounds = { cause: causeOf(self, action), refusesRedirects: form !== "native" }
    const request = { uri: callback, load: loadAt(clock), ...bounds, ...reachOf(action) }
    return observed(action, (observer) => deps.outbound.post({ ...request, observer })).pipe(
      Effect.map((result) => resultOf(result, clock.currentTimeMillisUnsafe()))
    )
  }).pipe(Effect.ensuring(Effect.sync(() => tests.end(self.id, action))))
}
