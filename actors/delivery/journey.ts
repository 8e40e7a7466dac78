/** One request over its hops: each in its origin's lane, each target judged anew. */
import { Effect } from "effect"
import type { AddressRules } from "./addresses.ts"
import { redirectOf } from "./answers.ts"
import type { Answered, ExchangeRequest } from "./exchange.ts"
import { redirectsMax } from "./limits.ts"
import { type Budget, type Cargo, type Load, pass, type Roads } from "./passage.ts"
import { noAnswerInTime, noLongerWanted, notAllowed } from "./problems.ts"
import type { Outcome } from "./protocol.ts"
import { targetOf } from "./target.ts"

/** What journeys go by. */
export interface Ways extends Roads {
  readonly rules: AddressRules
}

export type Voyage = Pick<ExchangeRequest, "method" | "keep" | "bytesMax"> & Cargo & {
  readonly uri: string
}

/** The answer of the last hop, and where that was. */
export interface Reached {
  readonly _tag: "Reached"
  readonly url: URL
  readonly answer: Answered
}

/** Headers for the origin that was meant only. */
const secretHeaders = new Set(["message-password"])

const withoutSecrets = ({ headers, ...rest }: Load): Load => ({
  ...rest,
  headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !secretHeaders.has(name)))
})

/** What is sent to another origin than the one that was meant. */
const elsewhere = ({ load, ...rest }: Cargo): Cargo => ({
  ...rest,
  load: Effect.isEffect(load)
    ? Effect.map(load, (made) => made === undefined ? undefined : withoutSecrets(made))
    : withoutSecrets(load)
})

const refused = (problem: string): Outcome => ({ _tag: "Refused", problem })
const tooMany = (code: number): Outcome => ({
  _tag: "Refused",
  code,
  problem: "too many redirects"
})

/** Goes from redirect to redirect until there is an answer, or an outcome without one. */
export const travel = Effect.fnUntraced(function*(ways: Ways, voyage: Voyage, budget: Budget) {
  const { bytesMax, keep, method } = voyage
  let uri = voyage.uri
  let first: string | undefined
  for (let redirects = 0;; redirects++) {
    const target = targetOf(uri, ways.rules)
    if ("problem" in target) return refused(target.problem)
    const { origin, path, url } = target
    first ??= origin
    if (budget.sendMs <= 0) return { _tag: "Faulted", problem: noAnswerInTime } as const
    const request = { origin, path, method, keep, bytesMax }
    const cargo = origin === first ? voyage : elsewhere(voyage)
    const came = yield* pass(ways, request, cargo, budget)
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
        return { _tag: "Faulted", problem: came.problem } as const
    }
    const next = redirectOf(came, method, url)
    if (next === undefined) return { _tag: "Reached", url, answer: came } satisfies Reached
    if (redirects === redirectsMax) return tooMany(came.code)
    uri = next
  }
})
