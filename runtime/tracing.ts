/**
 * Traces: the caller's span travels with its message to another node, as a W3C `traceparent` (Trace
 * Context §3.2). A node with {@link Traces} also records spans of its asks of other nodes, and of
 * the commits of messages that belong to a trace.
 */
import { Context, Effect, type Fiber, Tracer } from "effect"

/** What a span says beside its name. It holds no secret. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

/** What a span is called, and what caused it. */
export interface SpanStart {
  readonly name: string
  readonly kind: "server" | "client" | "internal"
  /** The `traceparent` of what causes the span; undefined begins a trace. */
  readonly parent: string | undefined
}

/** A span that has begun. One that never ends is not exported. */
export interface OpenSpan {
  /** The `traceparent` of what the span causes. */
  readonly traceparent: string
  /** `error` names the kind of the failure (`error.type`); undefined: none. It does not throw. */
  readonly end: (attributes: SpanAttributes, error?: string) => void
}

/** Records spans. A node that exports no traces has none, and compares that once for each span. */
export interface Traces {
  /** Begins a span now; undefined if it is not sampled. It does not throw. */
  readonly begin: (start: SpanStart) => OpenSpan | undefined
}

/** The fields of a `traceparent`. */
export interface TraceContext {
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
}

const pattern =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/

const traceparentChars = 55

/** The known fields of a `traceparent` of any version, as text; undefined if it is invalid. */
export const knownTraceparent = (header: string): string | undefined =>
  pattern.exec(header)?.[0].slice(0, traceparentChars)

/** The fields of a `traceparent`; undefined if it is invalid. */
export const parseTraceparent = (header: string): TraceContext | undefined => {
  const [, traceId, spanId, flags = ""] = pattern.exec(header) ?? []
  if (traceId === undefined || spanId === undefined) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** The `traceparent` of these fields. */
export const traceparentFrom = ({ sampled, spanId, traceId }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`

/** Runs an effect in a trace, which its asks then carry; an invalid `traceparent` is ignored. */
export const withTraceparent = <A, E>(
  traceparent: string | undefined,
  effect: Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  const context = traceparent === undefined ? undefined : parseTraceparent(traceparent)
  return context === undefined
    ? effect
    : Effect.withParentSpan(effect, Tracer.externalSpan(context))
}

/** Makes an effect from the current `traceparent` and runs it; undefined without a span. */
export const withTrace = <A, E>(
  make: (trace: string | undefined) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.withFiber(({ context }: Fiber.Fiber<unknown, unknown>) => {
    const span = Context.getOrUndefined(context, Tracer.ParentSpan)
    return make(span === undefined ? undefined : traceparentFrom(span))
  })
