/** One attempt at a recipient: local delivery, or a request to another service (protocol §1.3). */
import { Effect } from "effect"
import { type Address, type AskFailure, type OpenSpan, type Peers, type StorageFailure,
  StorageUnavailable, traceparentFrom, type Traces, type Variant,
  withTraceparent } from "../../runtime/index.ts"
import { withoutSecret, withoutText } from "../attempts/index.ts"
import { documentReadMs } from "../limits.ts"
import type { Keyring } from "../keyring.ts"
import type { Links } from "../links.ts"
import { type BodySource, deferredOutcome, type DeliveryOutcome, type ExchangeObserver,
  type ExchangeRecord, type Outbound, type OutboundContent } from "../outbound/index.ts"
import { passwordIn, wholeFragment } from "../sealed-fragment.ts"
import { documentOf, fragmentOf } from "./decide.ts"
import { editionName, withReplaces, writableUri } from "./follow-ups.ts"
import { deliverLocally, derivedName, noPasswordKey } from "./local-delivery.ts"
import type { NotificationAction, NotificationMessage } from "./protocol.ts"
import type { KnownOutcome, RelayResources } from "./relay-resources.ts"

/** An attempt is not made: its outgoing mailbox is paused, or the relays to this origin are. */
export interface HeldAttempt {
  readonly _tag: "Held"
  readonly origin?: string
}

/** The pauses of outgoing mailboxes, as a node knows them (actors/outgoing-mailbox). */
export interface RelayPauses {
  /** Whether a relay of this account to this URI is paused. Fails if nobody knows. */
  readonly find: (
    peers: Peers,
    account: string,
    to: string
  ) => Effect.Effect<HeldAttempt | undefined, AskFailure>
  /** The same, and it sees every change that was committed before. */
  readonly findCurrent: RelayPauses["find"]
}

/** The dependencies of attempts. */
export interface RelayDependencies {
  /** The pauses of outgoing mailboxes; undefined: there are none. */
  readonly pauses?: RelayPauses | undefined
  /** Decrypts the message password for the recipients. */
  readonly keyring: Keyring
  readonly outbound: Outbound
  readonly links: Links
  readonly documents: {
    /** A relayed notification's fragment as JSON-LD, for the inbox at `to`. */
    readonly activityOf: (fragment: string, to: string) => string
    /** The content that a stored notification's fragment points to. */
    readonly pointerOf: (fragment: string) => { readonly url: string } | undefined
  }
  /** In [0, 1): jitters the retries. */
  readonly random: () => number
  /** Records a span of each attempt; undefined: the node exports no traces. */
  readonly traces?: Traces | undefined
}

export type AttemptAction = Extract<NotificationAction, { readonly _tag: "Attempt" }>

/** Undefined if the attempt is obsolete, because the notification has been removed. */
type AttemptOutcome = DeliveryOutcome | HeldAttempt | undefined

type AttemptExchange = Pick<
  Variant<NotificationMessage, "Attempted">,
  "exchange" | "isLocal"
>

/** The code of an outcome, if it has one. */
interface Answer {
  readonly code?: number
}

/** What is remembered of an exchange in case that its outcome was not stored. */
const withoutContent = (whole: ExchangeRecord): ExchangeRecord => {
  const { answer: _, ...exchange } = whole
  return { ...exchange, requestHeaders: [] }
}

/** Why an attempt has sent no request. */
type UnsentReason = "obsolete" | "unavailable" | "unnamed" | "unopened"

const outcomesNotSent: Readonly<
  Record<Exclude<UnsentReason, "unavailable">, DeliveryOutcome | undefined>
> = {
  obsolete: undefined,
  unnamed: {
    _tag: "PermanentFailure",
    problem: "the withdrawn notification has no http URI by which to name it"
  },
  unopened: noPasswordKey
}

class RelayAttempt {
  private readonly deps: RelayDependencies
  private readonly resources: RelayResources
  private readonly self: Address
  private readonly peers: Peers
  private readonly action: Omit<AttemptAction, "document">
  /** `<recipient>.<attempt>`: identifies the attempt within its notification. */
  private readonly name: string
  /** The number of the edition that the attempt sends. */
  private readonly edition: number
  /** The name of that edition, by which its document is cached. */
  private readonly documentName: string
  /** The URI of what a follow-up replaces; undefined before it is found, and if there is none. */
  private replacedUri: string | undefined
  private isRunning = false
  /** When it was known that no pause holds the attempt back. */
  private beganAtMs = 0
  /** The attempt has led to a mailbox of this service. */
  private isLocal = false
  /** What was exchanged last; undefined without a request. */
  private exchange: ExchangeRecord | undefined = undefined
  /** The password of the message that was sent, as XML text. */
  private password: string | undefined = undefined
  private span: OpenSpan | undefined = undefined
  private reservedChars = 0

  constructor(
    deps: RelayDependencies,
    resources: RelayResources,
    self: Address,
    peers: Peers,
    { document, ...action }: AttemptAction
  ) {
    this.deps = deps
    this.resources = resources
    this.self = self
    this.peers = peers
    // A waiting attempt holds no document: all attempts of the notification share the cached one.
    this.action = action
    this.name = `${action.recipient}.${action.attempt}`
    this.edition = action.followUp?.edition ?? 0
    this.documentName = editionName(self.id, this.edition)
    if (document !== undefined && !resources.documents.has(this.documentName)) {
      resources.documents.set(this.documentName, document)
    }
  }

  begin(): Effect.Effect<AttemptOutcome, AskFailure | StorageFailure> {
    const { to } = this.action
    const { running } = this.resources
    // An actor that was loaded again does not know that the attempt still runs on this node. The
    // running one reports the outcome.
    this.isRunning = running.begin(this.self.id, this.name)
    if (!this.isRunning) return deferredOutcome
    return Effect.clockWith((clock) =>
      Effect.flatMap(this.findHold(), (held) => {
        if (held !== undefined) return Effect.succeed(held)
        this.beganAtMs = clock.currentTimeMillisUnsafe()
        this.span = this.beginSpan()
        if (!this.deps.links.isOwn(to)) return this.postOnce()
        return this.reserve() ? this.deliverLocally(to) : deferredOutcome
      })
    )
  }

  /** Why the attempt is paused; undefined if it is not, or was made before. */
  private findHold(): Effect.Effect<HeldAttempt | undefined, AskFailure> {
    const { account, mayBePaused, to } = this.action
    const { pauses } = this.deps
    const isMade = this.resources.outcomes.has(`${this.documentName} ${this.name}`)
    return mayBePaused === true && pauses !== undefined && !isMade
      ? pauses.find(this.peers, account, to)
      : Effect.succeed(undefined)
  }

  end(): void {
    if (this.isRunning) this.resources.running.end(this.self.id, this.name)
    this.releaseDocument()
  }

  releaseDocument(): void {
    this.resources.memory.release(this.reservedChars)
    this.reservedChars = 0
  }

  /** What is kept of the attempt beside its outcome. */
  exchanged(endedAtMs: number, { code }: Answer): AttemptExchange {
    const { beganAtMs } = this
    const answer = { requestHeaders: [], ...code === undefined ? {} : { code } }
    const whole = { beganAtMs, durationMs: Math.max(0, endedAtMs - beganAtMs), ...answer }
    if (!this.isLocal) return { exchange: this.exchange ?? whole }
    // The time of a follow-up could show whether a reader had removed what it replaces.
    const isTimed = this.edition === 0
    return { exchange: isTimed ? whole : { beganAtMs: endedAtMs, ...answer }, isLocal: true }
  }

  /** Ends the span of an attempt that was made. */
  report(outcome: AttemptOutcome): void {
    if (this.span === undefined || outcome === undefined || !wasMade(outcome)) return
    const { attempt } = this.action
    const attributes = { "restante.attempt": attempt, "restante.outcome": outcome._tag }
    this.span.end(attributes, outcome._tag === "Delivered" ? undefined : outcome._tag)
  }

  /** The attempt's span is a child of the request that sent the notification. */
  private beginSpan(): OpenSpan | undefined {
    const { traces } = this.deps
    const { spanId, traceId } = this.action
    if (traces === undefined || spanId === undefined) return undefined
    const parent = traceparentFrom({ traceId, spanId, sampled: true })
    return traces.begin({ name: "relay", kind: "internal", parent })
  }

  /** What the attempt sends. A service without traces of its own lets the recipient record one. */
  private traceparent(): string {
    if (this.span !== undefined) return this.span.traceparent
    const spanId = this.resources.spanIds.next()
    const sampled = this.deps.traces === undefined
    return traceparentFrom({ traceId: this.action.traceId, spanId, sampled })
  }

  private isObsolete(): boolean {
    return this.resources.running.isRemoved(this.self.id)
  }

  /** Whether a follow-up was stored since the attempt began. */
  private isRevised(): boolean {
    return this.resources.running.isRevised(this.self.id, this.edition)
  }

  private cachedDocument(): string | undefined {
    return this.resources.documents.get(this.documentName)
  }

  /** Reserves memory for a document that is not cached. */
  private reserve(): boolean {
    if (this.reservedChars > 0 || this.cachedDocument() !== undefined) return true
    const { chars } = this.action
    if (!this.resources.memory.reserve(chars)) return false
    this.reservedChars = chars
    return true
  }

  /** The document as a recipient elsewhere gets it; undefined without the key of its password. */
  private opened(document: string): string | undefined {
    const fragment = fragmentOf(document)
    if (fragment === undefined) return document
    const whole = wholeFragment(this.deps.keyring, this.self, fragment)
    if (whole === undefined) return undefined
    this.password = passwordIn(this.deps.keyring, this.self, fragment)
    const { followUp } = this.action
    return followUp === undefined || this.replacedUri === undefined
      ? documentOf(whole)
      : documentOf(withReplaces(whole, this.replacedUri, followUp.isWithdrawal))
  }

  private readDocument(): Effect.Effect<string | undefined, StorageFailure> {
    const cached = this.cachedDocument()
    if (cached !== undefined) return Effect.succeed(cached)
    return Effect.map(this.readItem(this.action.followUp?.item ?? 1), (document) => {
      if (document !== undefined) this.resources.documents.set(this.documentName, document)
      return document
    })
  }

  private readItem(n: number): Effect.Effect<string | undefined, StorageFailure> {
    // A read that never ends would keep the attempt running, so that it never begins again.
    const detail = `the document of notification ${this.self.id} was not read in time`
    const reading = Effect.timeoutOrElse(this.peers.read(this.self, n, 1), {
      duration: documentReadMs,
      orElse: () => Effect.fail(new StorageUnavailable({ detail }))
    })
    return Effect.map(reading, ([item]) => item?.n === n ? item.value : undefined)
  }

  /**
   * Finds the URI under which a recipient elsewhere knows what the follow-up replaces: its Location
   * or else the `url` that it was sent. A recipient that has nothing gets no such URI.
   */
  private findReplaced(): Effect.Effect<void, StorageFailure> {
    const { followUp } = this.action
    if (followUp === undefined || !followUp.isKnown || this.replacedUri !== undefined) {
      return Effect.void
    }
    this.replacedUri = writableUri(followUp.location ?? "")
    if (this.replacedUri !== undefined) return Effect.void
    return Effect.map(this.readItem(followUp.earlierItem), (document) => {
      const pointer = this.deps.documents.pointerOf(fragmentOf(document ?? "") ?? "")
      this.replacedUri = writableUri(pointer?.url ?? "")
    })
  }

  /** Delivers to a mailbox of this service. The trace continues on the mailbox's node. */
  private deliverLocally(
    to: string
  ): Effect.Effect<DeliveryOutcome | undefined, AskFailure | StorageFailure> {
    this.isLocal = true
    return Effect.flatMap(this.readDocument(), (document) => {
      if (document === undefined || this.isObsolete()) return Effect.succeed(undefined)
      if (this.isRevised()) return deferredOutcome
      const fragment = fragmentOf(document)
      if (fragment === undefined) throw new Error("the first item is no notification document")
      const { account, followUp } = this.action
      return withTraceparent(
        this.traceparent(),
        deliverLocally(this.peers, this.deps, { from: this.self, to, account, fragment, followUp })
      )
    })
  }

  /**
   * Delivers over HTTP. If this node has made the attempt before, returns that outcome instead: the
   * commit that was to store it may have failed.
   */
  private postOnce(): Effect.Effect<AttemptOutcome> {
    const { outcomes } = this.resources
    const key = `${this.documentName} ${this.name}`
    const known = outcomes.get(key)
    if (known !== undefined) {
      this.exchange = known.exchange
      return Effect.succeed(known.outcome)
    }
    return Effect.map(this.post(), (outcome) => {
      // A success needs no explanation, and may repeat the password in a form that is not known.
      if (outcome?._tag === "Delivered" && this.password !== undefined) {
        this.exchange = this.exchange && withoutText(this.exchange)
      }
      if (outcome !== undefined && wasMade(outcome)) {
        outcomes.set(key, { outcome, exchange: this.exchange && withoutContent(this.exchange) })
      }
      return outcome
    })
  }

  private observer(): ExchangeObserver {
    return {
      // Who may see an answer of a private address is decided when it is read.
      answersOf: "allowed",
      record: (exchange) => {
        // Attempts are not encrypted, and admins see them who do not see what was sent.
        this.exchange = this.password === undefined
          ? exchange
          : withoutSecret(exchange, this.password)
      }
    }
  }

  /**
   * Sends the request. A request that waits for its permit holds no document: the document is read
   * when the permit is granted, unless the notification has been removed by then.
   */
  private post(): Effect.Effect<AttemptOutcome> {
    const { documents, links, outbound } = this.deps
    const { account, to } = this.action
    let notSent: UnsentReason | HeldAttempt | undefined
    const refuse = (reason: UnsentReason | HeldAttempt): undefined => {
      notSent = reason
      return undefined
    }
    const contentOf = (document: string | undefined): OutboundContent | undefined => {
      const content = this.contentFor(document)
      return typeof content === "string" ? refuse(content) : content
    }
    const unavailable = (): undefined => refuse("unavailable")
    const load: BodySource["load"] = () => {
      const isPlain = this.action.followUp === undefined
      const cached = isPlain ? this.cachedDocument() : undefined
      if (cached !== undefined || this.isObsolete()) return contentOf(cached)
      if (!this.reserve()) return unavailable()
      return Effect.andThen(this.findReplaced(), this.readDocument()).pipe(
        Effect.map(contentOf),
        Effect.catch(() => Effect.sync(unavailable))
      )
    }
    let hops = 0
    const posted = outbound.post({
      uri: to,
      trace: this.span?.traceparent,
      observer: this.observer(),
      cause: { kind: "account", id: account },
      discovers: true,
      load: () => {
        if (hops++ > 0) return load()
        // The permit may have come long after the attempt began.
        return Effect.flatMap(this.findHold(), (held) => {
          const loaded = held === undefined ? load() : refuse(held)
          return Effect.isEffect(loaded) ? loaded : Effect.succeed(loaded)
        }).pipe(Effect.catch(() => Effect.sync(unavailable)))
      },
      toLinkedData: ({ body, headers }) => ({
        headers: { ...headers, "Content-Type": "application/ld+json" },
        body: documents.activityOf(fragmentOf(body) ?? "", to)
      }),
      deliverLocally: (uri) =>
        !links.isOwn(uri) ? undefined : this.deliverLocally(uri).pipe(
          Effect.catch(() => Effect.sync(unavailable)),
          Effect.map((outcome): DeliveryOutcome => {
            if (outcome !== undefined) return outcome
            notSent ??= "obsolete"
            return { _tag: "PermanentFailure", problem: "no longer wanted" }
          })
        )
    })
    return Effect.flatMap(posted, (outcome): Effect.Effect<AttemptOutcome> => {
      if (notSent === undefined) return Effect.succeed(outcome)
      if (notSent === "unavailable") return deferredOutcome
      return Effect.succeed(typeof notSent === "string" ? outcomesNotSent[notSent] : notSent)
    })
  }

  /** The content of the request, or why there is none. */
  private contentFor(document: string | undefined): OutboundContent | UnsentReason {
    if (document === undefined || this.isObsolete()) return "obsolete"
    if (this.isRevised()) return "unavailable"
    const isUnnamed = this.replacedUri === undefined
    if (isUnnamed && this.action.followUp?.isWithdrawal === true) return "unnamed"
    const opened = this.opened(document)
    return opened === undefined ? "unopened" : this.contentOf(opened)
  }

  private contentOf(body: string): OutboundContent {
    const { to } = this.action
    return {
      headers: {
        "Content-Type": "text/xml+rss; charset=utf-8",
        "Idempotency-Key": `"${derivedName("relay", this.documentName, to)}"`,
        traceparent: this.traceparent()
      },
      body
    }
  }
}

/** Whether a request was sent, or a delivery made, or neither will ever be. */
const wasMade = (outcome: DeliveryOutcome | HeldAttempt): outcome is KnownOutcome["outcome"] =>
  outcome._tag !== "Deferred" && outcome._tag !== "Held"

const isFailure = ({ _tag }: DeliveryOutcome): boolean =>
  _tag === "PermanentFailure" || _tag === "RetryableFailure"

const heldMessage = (
  { attempt, recipient }: AttemptAction,
  { origin }: HeldAttempt
): NotificationMessage => ({
  _tag: "AttemptHeld",
  recipient,
  attempt,
  ...origin === undefined ? {} : { origin }
})

/** Asks again whether relays to this URI are paused: the pause may have ended meanwhile. */
export const confirmHold = (
  { pauses }: RelayDependencies,
  peers: Peers,
  { account, origin, to }: Extract<NotificationAction, { readonly _tag: "ConfirmHold" }>
): Effect.Effect<NotificationMessage | void> => {
  const found = pauses?.findCurrent(peers, account, to) ?? Effect.succeed(undefined)
  return found.pipe(
    Effect.map((held): NotificationMessage | void =>
      // A hold by another pause concerns other recipients.
      held === undefined || held.origin !== origin ? { _tag: "Release" } : undefined
    ),
    // The hold ends by itself.
    Effect.catch(() => Effect.void)
  )
}

/** Makes the attempt. Returns its outcome as a message; nothing if the attempt is obsolete. */
export const makeAttempt = (
  deps: RelayDependencies,
  resources: RelayResources,
  self: Address,
  peers: Peers,
  action: AttemptAction
): Effect.Effect<NotificationMessage | void> => {
  const relay = new RelayAttempt(deps, resources, self, peers, action)
  const { account, attempt, recipient } = action
  const attempting = Effect.clockWith((clock) =>
    relay.begin().pipe(
      Effect.catch(() => deferredOutcome),
      Effect.flatMap((outcome): Effect.Effect<NotificationMessage | void> => {
        relay.report(outcome)
        if (outcome === undefined) return Effect.void
        if (outcome._tag === "Held") return Effect.succeed(heldMessage(action, outcome))
        const attempted = {
          _tag: "Attempted",
          recipient,
          attempt,
          outcome,
          ...action.followUp === undefined ? {} : { edition: action.followUp.edition },
          ...outcome._tag === "Deferred"
            ? {}
            : relay.exchanged(clock.currentTimeMillisUnsafe(), outcome),
          random: deps.random()
        } as const
        relay.releaseDocument()
        if (action.mayReport !== true || !isFailure(outcome)) return Effect.succeed(attempted)
        return Effect.map(
          resources.reports.mayReport(peers, account),
          (mayReport) => mayReport ? { ...attempted, mayReport } : attempted
        )
      })
    )
  )
  return Effect.ensuring(attempting, Effect.sync(() => relay.end()))
}
