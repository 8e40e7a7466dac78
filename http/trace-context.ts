/** The trace that a request belongs to (W3C Trace Context §3.2); an invalid header is ignored. */
import { Effect, Tracer } from "effect"
import type { HttpRequest } from "./wire/index.ts"

const pattern =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/

/** Runs the effect of a request in its trace, which asks to other nodes then carry. */
export const withTraceContext = <A, E>(
  { headers }: HttpRequest,
  effect: Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  const header = headers.get("traceparent")
  if (header === undefined) return effect
  const [, traceId, spanId, flags = ""] = pattern.exec(header) ?? []
  if (traceId === undefined || spanId === undefined) return effect
  const sampled = (Number.parseInt(flags, 16) & 1) === 1
  return Effect.withParentSpan(effect, Tracer.externalSpan({ traceId, spanId, sampled }))
}

/** The `traceparent` to pass on; undefined without a valid one. */
export const traceparentOf = ({ headers }: HttpRequest): string | undefined => {
  const header = headers.get("traceparent")
  return header === undefined ? undefined : pattern.exec(header)?.[0].slice(0, 55)
}
