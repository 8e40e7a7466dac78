/** One post: where it was meant, or where its target says that it wants it, and in which form. */
import { Effect, Exit, type Fiber } from "effect"
import type { Agent } from "undici"
import { answerBytesMax, type DeliveryLimits, redirectsMax } from "../limits.ts"
import type { Connector } from "./connector.ts"
import type { DestinationCache } from "./destination.ts"
import { inboxIn, mailboxIn } from "./discovery.ts"
import { type Answered, exchange, type Exchanged, type ExchangeRequest,
  type Headers } from "./exchange.ts"
import type { Deferred, Health, LimiterPermit, LimiterWaiter,
  OriginLimiter } from "./origin-limiter.ts"
import { noAnswerInTime, noLongerWanted, notAllowed } from "./problems.ts"
import type { DeliveryOutcome, OutboundContent, Posting } from "./protocol.ts"
import { outcomeOf, redirectOf, valueOf } from "./schedule.ts"

/** Headers that never leave: the connection's own, and what would be a credential. */
const neverSent = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "keep-alive",
  "upgrade",
  "expect",
  "te",
  "trailer"
])

/** Header names are the same in any case: the ones set here must replace the caller's. */
export const headersOf = (
  given: Readonly<Record<string, string>>,
  userAgent: string
): Record<string, string> => {
  const headers: Record<string, string> = { accept: "*/*" }
  for (const name in given) {
    const lower = name.toLowerCase()
    const value = given[name]
    if (value !== undefined && !neverSent.has(lower)) headers[lower] = value
  }
  headers["user-agent"] = userAgent
  headers["accept-encoding"] = "identity"
  return headers
}

/* One request's way through its lane: its turn, sent, answered. By callback. */

/** What requests go by. */
export interface RequestResources {
  readonly agent: Agent
  readonly connector: Connector
  readonly lanes: OriginLimiter
  readonly limits: DeliveryLimits
}

/** The time that is left to an attempt, over all its requests. */
export interface Budget {
  /** On the wire. */
  sendMs: number
  /** In lanes. */
  waitMs: number
}

/** Headers by lower-case names, and the body. */
export type RequestContent = Pick<ExchangeRequest, "headers" | "body">

/** What is sent, or what is asked for it when its turn has come; see {@link Posting}. */
export interface ContentSource {
  readonly load:
    | RequestContent
    | (() => RequestContent | undefined | Effect.Effect<RequestContent | undefined>)
}

const unwanted = { _tag: "Unwanted" } as const

export type Hop = Exchanged | typeof unwanted

const healthOf = (hop: Hop): Health => {
  if (hop._tag === "Answered") return "answers"
  return hop._tag === "Broken" && !hop.own ? "faults" : "unknown"
}

type Resume = (result: Effect.Effect<Hop | Deferred>) => void

class Passage implements LimiterWaiter {
  readonly #roads: RequestResources
  readonly #request: Omit<ExchangeRequest, "headers" | "body">
  readonly #cargo: ContentSource
  readonly #budget: Budget
  readonly #resume: Resume
  readonly #fork: (
    asked: Effect.Effect<RequestContent | undefined>
  ) => Fiber.Fiber<RequestContent | undefined>
  #turn: LimiterPermit | undefined
  #asking: Fiber.Fiber<RequestContent | undefined> | undefined
  #sinceMs = performance.now()
  #begun = false
  #over = false
  #giveUp: (() => void) | undefined

  constructor(
    roads: RequestResources,
    request: Omit<ExchangeRequest, "headers" | "body">,
    cargo: ContentSource,
    budget: Budget,
    fork: (
      asked: Effect.Effect<RequestContent | undefined>
    ) => Fiber.Fiber<RequestContent | undefined>,
    resume: Resume
  ) {
    this.#roads = roads
    this.#request = request
    this.#cargo = cargo
    this.#budget = budget
    this.#fork = fork
    this.#resume = resume
    roads.lanes.enter(request.origin, Math.max(0, budget.waitMs), this)
  }

  entered(turn: LimiterPermit): void {
    this.#turn = turn
  }

  begin(): void {
    this.#begun = true
    const nowMs = performance.now()
    this.#budget.waitMs -= nowMs - this.#sinceMs
    this.#sinceMs = nowMs
    const { load } = this.#cargo
    const made = typeof load === "function" ? load() : load
    if (Effect.isEffect(made)) this.#ask(made)
    else this.#send(made)
  }

  deferred(deferred: Deferred): void {
    this.#over = true
    this.#asking?.interruptUnsafe()
    this.#resume(Effect.succeed(deferred))
  }

  /** Gives it up, wherever it is. */
  stop(): void {
    if (this.#over) return
    this.#over = true
    this.#asking?.interruptUnsafe()
    this.#giveUp?.()
    this.#leave("unknown")
  }

  #ask(load: Effect.Effect<RequestContent | undefined>): void {
    const fiber = this.#fork(load)
    this.#asking = fiber
    fiber.addObserver((exit) => {
      this.#asking = undefined
      if (this.#over) return
      if (Exit.isFailure(exit)) return this.#end("unknown", Effect.failCause(exit.cause))
      this.#send(exit.value)
    })
  }

  #send(load: RequestContent | undefined): void {
    if (load === undefined) return this.#settle(unwanted)
    const { agent, connector, limits } = this.#roads
    const keeps = connector.open() < limits.connectionsKeptMax
    const request = { ...this.#request, ...load }
    const { sendMs } = this.#budget
    this.#sinceMs = performance.now()
    const stop = exchange(agent, request, sendMs, keeps, limits, (hop) => this.#settle(hop))
    if (!this.#over) this.#giveUp = stop
  }

  #settle(hop: Hop): void {
    this.#end(healthOf(hop), Effect.succeed(hop))
  }

  #end(health: Health, result: Effect.Effect<Hop>): void {
    this.#over = true
    if (this.#begun) this.#budget.sendMs -= performance.now() - this.#sinceMs
    // The lane's next request is sent before anybody decides on this answer.
    this.#leave(health)
    this.#resume(result)
  }

  #leave(health: Health): void {
    if (this.#turn !== undefined) this.#roads.lanes.leave(this.#turn, health)
  }
}

/** One request: waits for its turn, and is sent. */
export const pass = (
  roads: RequestResources,
  request: Omit<ExchangeRequest, "headers" | "body">,
  cargo: ContentSource,
  budget: Budget
): Effect.Effect<Hop | Deferred> =>
  Effect.withFiber(({ context }) =>
    Effect.callback((resume) => {
      const fork = Effect.runForkWith(context)
      const passage = new Passage(roads, request, cargo, budget, fork, resume)
      return Effect.sync(() => passage.stop())
    })
  )

/* One request over its hops: each in its origin's lane, each target judged anew. */

/** What journeys go by. */
export interface OutboundResources extends RequestResources {
  readonly targets: DestinationCache
}

export type OutboundRequest =
  & Pick<ExchangeRequest, "method" | "keep" | "bytesMax">
  & ContentSource
  & {
    readonly uri: string
  }

/** The answer of the last hop, and where that was. */
export interface FinalAnswer {
  readonly _tag: "Reached"
  readonly url: URL
  readonly answer: Answered
}

/** Headers for the origin that was meant only. */
const secretHeaders = new Set(["message-password"])

const withoutSecrets = ({ headers, ...rest }: RequestContent): RequestContent => ({
  ...rest,
  headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !secretHeaders.has(name)))
})

const withoutSecretsIf = (made: RequestContent | undefined): RequestContent | undefined =>
  made === undefined ? undefined : withoutSecrets(made)

/** What is sent to another origin than the one that was meant. */
const elsewhere = ({ load }: ContentSource): ContentSource => ({
  load: () => {
    const made = typeof load === "function" ? load() : load
    return Effect.isEffect(made) ? Effect.map(made, withoutSecretsIf) : withoutSecretsIf(made)
  }
})

const refused = (problem: string): DeliveryOutcome => ({ _tag: "Refused", problem })

const tooMany = (code: number): DeliveryOutcome => ({
  _tag: "Refused",
  code,
  problem: "too many redirects"
})

/** How far a journey has come. */
interface Progress {
  readonly uri: string
  /** Origin of the first hop; undefined before it. */
  readonly first?: string
  readonly redirects: number
}

/** What a hop came to, when that ends the journey. */
const endOf = (came: Exclude<Hop | Deferred, Answered>): DeliveryOutcome => {
  switch (came._tag) {
    case "Deferred":
      return came
    case "Unwanted":
      return refused(noLongerWanted)
    case "Forbidden":
      return refused(notAllowed)
    case "Unsendable":
      return refused("a header or the target cannot be sent")
    case "Broken":
      return { _tag: "Faulted", problem: came.problem }
  }
}

const hopOn = (
  ways: OutboundResources,
  voyage: OutboundRequest,
  budget: Budget,
  { first, redirects, uri }: Progress
): Effect.Effect<FinalAnswer | DeliveryOutcome> => {
  const target = ways.targets.of(uri)
  if ("problem" in target) return Effect.succeed(refused(target.problem))
  const { origin, path, url } = target
  if (budget.sendMs <= 0) return Effect.succeed({ _tag: "Faulted", problem: noAnswerInTime })
  const { bytesMax, keep, method } = voyage
  const request = { origin, path, method, keep, bytesMax }
  const cargo = first === undefined || origin === first ? voyage : elsewhere(voyage)
  return Effect.flatMap(pass(ways, request, cargo, budget), (came) => {
    if (came._tag !== "Answered") return Effect.succeed(endOf(came))
    const next = redirectOf(came, method, url)
    if (next === undefined) {
      return Effect.succeed<FinalAnswer>({ _tag: "Reached", url, answer: came })
    }
    return redirects === redirectsMax
      ? Effect.succeed(tooMany(came.code))
      : hopOn(ways, voyage, budget, {
        uri: next,
        first: first ?? origin,
        redirects: redirects + 1
      })
  })
}

/** Goes from redirect to redirect until there is an answer, or an outcome without one. */
export const followRedirects = (
  ways: OutboundResources,
  voyage: OutboundRequest,
  budget: Budget
): Effect.Effect<FinalAnswer | DeliveryOutcome> =>
  Effect.suspend(() => hopOn(ways, voyage, budget, { uri: voyage.uri, redirects: 0 }))

/* The headers of every request that leaves. Pure. */

interface Sender {
  readonly userAgent: string
  readonly nowMs: () => number
}

/** A post under way; a target that does not take it may be sent to once more. */
interface Under extends Sender {
  readonly ways: OutboundResources
  readonly budget: Budget
  readonly voyage: OutboundRequest
  /** The same as JSON-LD, if there is such a form of it. */
  readonly linked: OutboundRequest | undefined
  readonly handsOver: Posting["handsOver"]
}

const cargoOf = (
  posting: Posting,
  userAgent: string,
  written: (letter: OutboundContent) => OutboundContent
): ContentSource => {
  const loaded = (made: OutboundContent | undefined): RequestContent | undefined => {
    if (made === undefined) return
    const { body, headers } = written(made)
    return { headers: headersOf(headers, userAgent), body }
  }
  if (!("letter" in posting)) return { load: () => loaded(posting) }
  const { letter } = posting
  return {
    load: () => {
      const made = letter()
      return Effect.isEffect(made) ? Effect.map(made, loaded) : loaded(made)
    }
  }
}

const outcomeAt = ({ nowMs }: Sender, came: FinalAnswer | DeliveryOutcome): DeliveryOutcome =>
  came._tag === "Reached" ? outcomeOf(came.answer, came.url, nowMs()) : came

const pageTypes = "text/html, application/xhtml+xml;q=0.9, application/ld+json;q=0.8, */*;q=0.1"

/** Looks for a mailbox or an inbox at a target that takes no notifications, and posts it there. */
const discover = Effect.fnUntraced(function*(under: Under, code: number) {
  const { budget, linked, userAgent, voyage, ways } = under
  const page: OutboundRequest = {
    uri: voyage.uri,
    method: "GET",
    load: {
      headers: { "user-agent": userAgent, "accept-encoding": "identity", accept: pageTypes }
    },
    keep: "start",
    bytesMax: answerBytesMax
  }
  const found = yield* followRedirects(ways, page, budget)
  if (found._tag !== "Reached") return found._tag === "Refused" ? undefined : found
  const { answer, url } = found
  const shown = outcomeAt(under, found)
  if (shown._tag === "Faulted") return shown
  // Whoever may not read an inbox is told by its Link all the same (LDN §3.1).
  const bytes = shown._tag === "Delivered" ? answer.bytes : new Uint8Array()
  const isDowngrade = (uri: string): boolean => url.protocol === "https:" && uri.startsWith("http:")
  const mailbox = shown._tag === "Delivered" ? mailboxIn(answer.headers, bytes, url) : undefined
  if (mailbox !== undefined && !isDowngrade(mailbox) && mailbox !== voyage.uri) {
    return yield* under.handsOver?.(mailbox) ??
      followRedirects(ways, { ...voyage, uri: mailbox }, budget)
  }
  const inbox = linked === undefined ? undefined : inboxIn(answer.headers, bytes, url, voyage.uri)
  // What takes no posts at all takes no other form of one.
  if (linked === undefined || inbox === undefined || isDowngrade(inbox)) return undefined
  return inbox === voyage.uri && code === 405
    ? undefined
    : yield* under.handsOver?.(inbox) ?? followRedirects(ways, { ...linked, uri: inbox }, budget)
})

const linkedDataType = "application/ld+json"

/** What a 415 says of JSON-LD by its Accept-Post (LDP §7.1): undefined when it does not say. */
const takesLinkedData = (headers: Headers): boolean | undefined => {
  const accepted = valueOf(headers, "accept-post")
  if (accepted === undefined) return undefined
  const types = accepted.split(",").map((one) => one.split(";", 1)[0]?.trim().toLowerCase())
  return types.some((type) => type === linkedDataType || type === "application/*" || type === "*/*")
}

/** Where a target is not to be posted to like this: elsewhere, or in another form. */
const again = Effect.fnUntraced(function*(under: Under, { answer }: FinalAnswer) {
  const { budget, linked, ways } = under
  const { code, headers } = answer
  const takes = code === 415 ? takesLinkedData(headers) : false
  if (linked !== undefined && takes === true) return yield* followRedirects(ways, linked, budget)
  const there = yield* discover(under, code)
  if (there !== undefined || linked === undefined || takes === false) return there
  // It has refused the form and said no more: there is one other.
  return yield* followRedirects(ways, linked, budget)
})

/** Makes the post; its lanes, hops and time are those of one attempt, whatever it comes to. */
export const post = Effect.fnUntraced(function*(
  ways: OutboundResources,
  { nowMs, userAgent }: Sender,
  posting: Posting
): Effect.fn.Return<DeliveryOutcome> {
  const { linkedData, uri } = posting
  const common = { uri, method: "POST", keep: "nothing", bytesMax: answerBytesMax } as const
  const under: Under = {
    ways,
    nowMs,
    userAgent,
    budget: { sendMs: ways.limits.attemptMs, waitMs: ways.limits.waitMs },
    voyage: { ...common, ...cargoOf(posting, userAgent, (letter) => letter) },
    handsOver: posting.handsOver,
    linked: linkedData && { ...common, ...cargoOf(posting, userAgent, linkedData) }
  }
  const came = yield* followRedirects(ways, under.voyage, under.budget)
  const takesNone = came._tag === "Reached" &&
    (came.answer.code === 405 || came.answer.code === 415)
  return outcomeAt(
    under,
    takesNone && posting.discovers === true ? (yield* again(under, came)) ?? came : came
  )
})
