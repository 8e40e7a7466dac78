/** The spans of a node: which of them are sampled, and how many wait for the collector. */
import { Context, Exit, Option, Tracer } from "effect"
import { parseTraceparent, type SpanAttributes, type TraceContext, traceparentFrom,
  type Traces } from "../../runtime/index.ts"
import { spansHeldMax } from "../limits.ts"
import type { NodeSettings } from "../settings/index.ts"

/** The settings that select spans. */
export type SamplerSettings = Pick<NodeSettings, "otelTracesSampler" | "otelTracesSamplerArg">

const ratioDigits = 13

/**
 * Whether a ratio selects a trace. It depends on the id alone, whose last digits are random (Trace
 * Context §3.2.2.3), so that all nodes with the same ratio select the same traces.
 */
const isSelected = (traceId: string, ratio: number): boolean =>
  Number.parseInt(traceId.slice(-ratioDigits), 16) < ratio * 16 ** ratioDigits

/** Whether a span is sampled; `parent`: undefined for the first one of a trace. */
export const isSampled = (
  { otelTracesSampler: sampler, otelTracesSamplerArg: ratio }: SamplerSettings,
  traceId: string,
  parent: TraceContext | undefined
): boolean => {
  switch (sampler) {
    case "always_on":
      return true
    case "always_off":
      return false
    case "traceidratio":
      return isSelected(traceId, ratio)
    case "parentbased_always_on":
      return parent?.sampled ?? true
    case "parentbased_always_off":
      return parent?.sampled ?? false
    case "parentbased_traceidratio":
      return parent?.sampled ?? isSelected(traceId, ratio)
  }
}

/** Counts the spans that have ended and that the collector has not taken yet. */
export class SpanQueue {
  /** Spans that the collector did not take, or for which there was no room. */
  readonly dropped = { total: 0 }
  private held = 0

  /** Takes one more span; false if too many are held. */
  take(): boolean {
    if (this.held >= spansHeldMax) {
      this.dropped.total++
      return false
    }
    this.held++
    return true
  }

  /** The collector has taken so many spans, or has not. */
  settle(count: number, isTaken: boolean): void {
    this.held -= count
    if (!isTaken) this.dropped.total += count
  }
}

const nanosPerMs = 1_000_000

/**
 * Ends a span of Effect's tracer, which gives it to the exporter. The failure is text: the stack of
 * an error would show the folders of the installation.
 */
const endSpan = (
  span: Tracer.Span,
  endTime: bigint,
  attributes: SpanAttributes,
  error: string | undefined
): void => {
  for (const name in attributes) span.attribute(name, attributes[name])
  if (error !== undefined) span.attribute("error.type", error)
  span.end(endTime, error === undefined ? Exit.void : Exit.fail(error))
}

/** The traces of a node, by Effect's tracer. */
export const makeTraces = (
  tracer: Tracer.Tracer,
  settings: SamplerSettings,
  queue: SpanQueue
): Traces => ({
  begin: ({ kind, name, parent: traceparent }) => {
    const parent = traceparent === undefined ? undefined : parseTraceparent(traceparent)
    // What is below an invalid one begins no trace of its own.
    if (traceparent !== undefined && parent === undefined) return undefined
    if (parent !== undefined && !isSampled(settings, parent.traceId, parent)) return undefined
    const startedMs = performance.now()
    const startTime = BigInt(Date.now()) * BigInt(nanosPerMs)
    const span = tracer.span({
      name,
      parent: parent === undefined ? Option.none() : Option.some(Tracer.externalSpan(parent)),
      annotations: Context.empty(),
      links: [],
      startTime,
      kind,
      root: parent === undefined,
      sampled: true
    })
    const { spanId, traceId } = span
    if (parent === undefined && !isSampled(settings, traceId, undefined)) return undefined
    let isOpen = true
    return {
      traceparent: traceparentFrom({ traceId, spanId, sampled: true }),
      end: (attributes, error) => {
        if (!isOpen) return
        isOpen = false
        if (!queue.take()) return
        const nanos = Math.round((performance.now() - startedMs) * nanosPerMs)
        endSpan(span, startTime + BigInt(nanos), attributes, error)
      }
    }
  }
})
