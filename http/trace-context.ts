/** The trace that a request belongs to (W3C Trace Context §3.2); an invalid header is ignored. */
import type { Effect } from "effect"
import { knownTraceparent, withTraceparent } from "../runtime/index.ts"
import type { HttpRequest } from "./wire/index.ts"

/** Runs the effect of a request in its trace, which asks to other nodes then carry. */
export const withTraceContext = <A, E>(
  { headers }: HttpRequest,
  effect: Effect.Effect<A, E>
): Effect.Effect<A, E> => withTraceparent(headers.get("traceparent"), effect)

/** The `traceparent` to pass on; undefined without a valid one. */
export const traceparentOf = ({ headers }: HttpRequest): string | undefined => {
  const header = headers.get("traceparent")
  return header === undefined ? undefined : knownTraceparent(header)
}
