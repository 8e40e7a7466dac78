/** One post: where it was meant, or where its target says that it wants it, and in which form. */
import { Effect } from "effect"
import { outcomeOf, valueOf } from "./answers.ts"
import { inboxIn, mailboxIn } from "./discovery.ts"
import type { Headers } from "./exchange.ts"
import { headersOf } from "./headers.ts"
import {
  type FinalAnswer,
  followRedirects,
  type OutboundRequest,
  type OutboundResources
} from "./journey.ts"
import { answerBytesMax } from "./limits.ts"
import type { Budget, ContentSource, RequestContent } from "./passage.ts"
import type { DeliveryOutcome, OutboundContent, Posting } from "./protocol.ts"

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
