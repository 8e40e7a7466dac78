/**
 * Trace propagation: the caller's parent span travels with its message to another node, as a W3C
 * `traceparent` (Trace Context §3.2).
 */
import { Context, Effect, type Fiber, Tracer } from "effect"

const traceparentOf = ({ sampled, spanId, traceId }: Tracer.AnySpan): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`

/** Makes an effect from the current `traceparent` and runs it; undefined without a span. */
export const withTrace = <A, E>(
  make: (trace: string | undefined) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.withFiber(({ context }: Fiber.Fiber<unknown, unknown>) => {
    const span = Context.getOrUndefined(context, Tracer.ParentSpan)
    return make(span === undefined ? undefined : traceparentOf(span))
  })
