/** One request over its hops: each in its origin's lane, each target judged anew. */
import { Effect } from "effect"
import type { Agent } from "undici"
import type { AddressRules } from "./addresses.ts"
import { redirectOf } from "./answers.ts"
import { type Answered, exchange, type Exchanged, type ExchangeRequest } from "./exchange.ts"
import type { Health } from "./circuit.ts"
import type { Connector } from "./connector.ts"
import type { Deferred, Lanes } from "./lanes.ts"
import { type DeliveryLimits, redirectsMax } from "./limits.ts"
import { noAnswerInTime, noLongerWanted, notAllowed } from "./problems.ts"
import type { Outcome } from "./protocol.ts"
import { targetOf } from "./target.ts"

/** What journeys go by. */
export interface Ways {
  readonly agent: Agent
  readonly connector: Connector
  readonly lanes: Lanes
  readonly rules: AddressRules
  readonly limits: DeliveryLimits
}

/** The time that is left to an attempt, over all its requests. */
export interface Budget {
  /** On the wire. */
  sendMs: number
  /** In lanes. */
  waitMs: number
}

export type Voyage = Pick<ExchangeRequest, "method" | "headers" | "body" | "keep" | "bytesMax"> & {
  readonly uri: string
  readonly stillWanted?: Effect.Effect<boolean>
}

/** The answer of the last hop, and where that was. */
export interface Reached {
  readonly _tag: "Reached"
  readonly url: URL
  readonly answer: Answered
}

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
/** Headers for the origin that was meant only. */
const secretHeaders = new Set(["message-password"])

const headersFor = (
  headers: Readonly<Record<string, string>>,
  isElsewhere: boolean
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => {
      const lower = name.toLowerCase()
      return !neverSent.has(lower) && !(isElsewhere && secretHeaders.has(lower))
    })
  )

const unwanted = { _tag: "Unwanted" } as const
type Hop = Exchanged | typeof unwanted

const healthOf = (hop: Hop): Health => {
  if (hop._tag === "Answered") return "answers"
  return hop._tag === "Broken" && !hop.own ? "faults" : "unknown"
}

const refused = (problem: string): Outcome => ({ _tag: "Refused", problem })
const tooMany = (code: number): Outcome => ({
  _tag: "Refused",
  code,
  problem: "too many redirects"
})

/** One hop: waits for its turn, and sends. */
const hop = (
  { agent, connector, lanes, limits }: Ways,
  request: ExchangeRequest,
  stillWanted: Effect.Effect<boolean> | undefined,
  budget: Budget
): Effect.Effect<Hop | Deferred> => {
  const began = performance.now()
  const send = Effect.suspend(() => {
    const begins = performance.now()
    budget.waitMs -= begins - began
    const keeps = connector.open() < limits.connectionsKeptMax
    return Effect.onExit(
      exchange(agent, request, budget.sendMs, keeps, limits),
      () =>
        Effect.sync(() => {
          budget.sendMs -= performance.now() - begins
        })
    )
  })
  const asked: Effect.Effect<Hop> = stillWanted === undefined
    ? send
    : Effect.flatMap(
      stillWanted,
      (wanted): Effect.Effect<Hop> => wanted ? send : Effect.succeed(unwanted)
    )
  return lanes.run(request.origin, Math.max(0, budget.waitMs), asked, healthOf)
}

/** Goes from redirect to redirect until there is an answer, or an outcome without one. */
export const travel = Effect.fnUntraced(function*(ways: Ways, voyage: Voyage, budget: Budget) {
  const { body, bytesMax, headers, keep, method, stillWanted } = voyage
  let uri = voyage.uri
  let first: string | undefined
  for (let redirects = 0;; redirects++) {
    const target = targetOf(uri, ways.rules)
    if ("problem" in target) return refused(target.problem)
    const { origin, path, url } = target
    first ??= origin
    const sent = headersFor(headers, origin !== first)
    const request = { origin, path, method, headers: sent, keep, bytesMax }
    const whole = body === undefined ? request : { ...request, body }
    if (budget.sendMs <= 0) return { _tag: "Faulted", problem: noAnswerInTime } as const
    const came = yield* hop(ways, whole, stillWanted, budget)
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
