/** Traces in memory: every span is sampled unless its parent is not, and is kept when it ends. */
import { parseTraceparent, type SpanAttributes, type SpanStart, traceparentFrom,
  type Traces } from "../../runtime/index.ts"

/** A span that has ended. */
export interface RecordedSpan extends SpanStart {
  readonly traceparent: string
  readonly attributes: SpanAttributes
  readonly error: string | undefined
}

export interface SpanRecorder extends Traces {
  /** In the order in which they ended. */
  readonly spans: ReadonlyArray<RecordedSpan>
}

export const spanRecorder = (): SpanRecorder => {
  const spans: Array<RecordedSpan> = []
  let count = 0
  const hex = (digits: number): string => (++count).toString(16).padStart(digits, "0")
  return {
    spans,
    begin: (start) => {
      const parent = start.parent === undefined ? undefined : parseTraceparent(start.parent)
      if (parent?.sampled === false) return undefined
      const traceId = parent?.traceId ?? hex(32)
      const traceparent = traceparentFrom({ traceId, spanId: hex(16), sampled: true })
      return {
        traceparent,
        end: (attributes, error) => {
          spans.push({ ...start, traceparent, attributes, error })
        }
      }
    }
  }
}
