/** One request over its hops: each in its origin's lane, each target judged anew. */
import { Effect } from "effect"
import { redirectOf } from "./answers.ts"
import type { Answered, ExchangeRequest } from "./exchange.ts"
import type { Deferred } from "./lanes.ts"
import { redirectsMax } from "./limits.ts"
import {
  type Budget,
  type ContentSource,
  type Hop,
  pass,
  type RequestContent,
  type RequestResources
} from "./passage.ts"
import { noAnswerInTime, noLongerWanted, notAllowed } from "./problems.ts"
import type { DeliveryOutcome } from "./protocol.ts"
import type { DestinationCache } from "./target.ts"

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
