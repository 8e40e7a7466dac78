/** The trace that a request belongs to (W3C Trace Context §3.2); another header is as none. */
import { Effect, Tracer } from "effect"
import type { HttpRequest } from "./request.ts"

const pattern =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/

/** Runs a request's effect within its trace: what it asks of other nodes is told of it. */
export const traced = <A, E>(
  { headers }: HttpRequest,
  effect: Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  const given = headers.get("traceparent")
  if (given === undefined) return effect
  const [, traceId, spanId, flags] = pattern.exec(given) ?? []
  if (traceId === undefined || spanId === undefined) return effect
  const sampled = (Number.parseInt(flags ?? "", 16) & 1) === 1
  return Effect.withParentSpan(effect, Tracer.externalSpan({ traceId, spanId, sampled }))
}

/** The header, as it may be passed on. */
export const traceparentOf = ({ headers }: HttpRequest): string | undefined => {
  const given = headers.get("traceparent")
  return given === undefined ? undefined : pattern.exec(given)?.[0].slice(0, 55)
}
