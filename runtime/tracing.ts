/**
 * The trace that an ask belongs to, if it belongs to one: what whoever asks has as its parent span
 * travels with the message to another node, as a W3C `traceparent` (Trace Context §3.2).
 */
import { Context, Effect, type Fiber, Tracer } from "effect"

const traceparentOf = ({ sampled, spanId, traceId }: Tracer.AnySpan): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`

/** Runs what is made of the trace that is about it; undefined where there is none. */
export const withTrace = <A, E>(
  make: (trace: string | undefined) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.withFiber(({ context }: Fiber.Fiber<unknown, unknown>) => {
    const span = Context.getOrUndefined(context, Tracer.ParentSpan)
    return make(span === undefined ? undefined : traceparentOf(span))
  })
