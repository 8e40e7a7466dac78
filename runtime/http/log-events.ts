/** The log of an actor as Server-Sent Events: what it has, and then what is appended. */
import type { LogEntry } from "../definition/index.ts"
import { answerHeaders, problemResponse } from "./problem.ts"

/** A stream without items sends a comment after this time, so that a lost reader is noticed. */
const pulseMs = 15_000
/** When a stream that is full is worth another try, seconds. */
const fullRetrySeconds = 5

/** The number of the first item that a request wants; undefined when it names none. */
export const firstItemOf = ({ headers }: Request, url: URL): number | undefined => {
  const last = headers.get("last-event-id")
  const text = last ?? url.searchParams.get("from") ?? "1"
  const number = /^\d{1,15}$/.test(text) ? Number(text) + (last === null ? 0 : 1) : 0
  return number >= 1 ? number : undefined
}

const eventHeaders = { ...answerHeaders, "content-type": "text/event-stream" } as const

/** JSON has no line break in it, at which the data of an event would end. */
const eventOf = ({ item, n }: LogEntry<unknown>): string =>
  `id: ${n}\ndata: ${JSON.stringify(item)}\n\n`

/** Resolves after the pulse, unless it is ended before. */
const pulse = () => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const elapsed = new Promise<"pulse">((resolve) => {
    timer = setTimeout(() => resolve("pulse"), pulseMs)
  })
  return { elapsed, end: () => clearTimeout(timer) }
}

/** The logs that a face sends at the moment. */
export class LogStreams {
  private readonly max: number
  private readonly report: (error: unknown) => void
  private open = 0

  constructor(max: number, report: (error: unknown) => void) {
    this.max = max
    this.report = report
  }

  /** What a GET would be answered, without events. */
  head(): Response {
    return new Response(null, { headers: eventHeaders })
  }

  /**
   * The events of a log. The stream ends with its node, when the log cannot be read, or when the
   * request is aborted: its reader connects again with the last id that it has, as browsers do.
   */
  follow(key: string, entries: AsyncIterable<LogEntry<unknown>>, request: Request): Response {
    if (this.open >= this.max) {
      return problemResponse("unavailable", {
        detail: `The log of ${key} cannot be followed: ${this.max} logs are followed already. ` +
          `Try again in ${fullRetrySeconds} s`,
        outcome: "unchanged",
        headers: { "retry-after": String(fullRetrySeconds) }
      })
    }
    return new Response(this.eventsOf(entries, request), { headers: eventHeaders })
  }

  /** The text of the next event, a comment when it does not come soon, or undefined at the end. */
  private async textOf(next: Promise<IteratorResult<LogEntry<unknown>>>) {
    const { elapsed, end } = pulse()
    try {
      const result = await Promise.race([next, elapsed])
      if (result === "pulse") return { text: ": no item yet\n\n", isItem: false }
      return result.done === true ? undefined : { text: eventOf(result.value), isItem: true }
    } catch (error) {
      this.report(error)
      return undefined
    } finally {
      end()
    }
  }

  private eventsOf(
    entries: AsyncIterable<LogEntry<unknown>>,
    request: Request
  ): ReadableStream<Uint8Array> {
    const encoder = new TextEncoder()
    const iterator = entries[Symbol.asyncIterator]()
    let next: Promise<IteratorResult<LogEntry<unknown>>> | undefined
    let isOpen = true
    // Its signal does not follow that of its server any more once the request itself is garbage.
    let reader: Request | undefined = request
    this.open++
    const end = async (): Promise<void> => {
      if (!isOpen) return
      isOpen = false
      reader = undefined
      this.open--
      await iterator.return?.()
    }
    return new ReadableStream({
      start: (controller) => {
        const leave = () => {
          if (!isOpen) return
          controller.close()
          // The reader has gone, and with it whoever the end of the log would matter to.
          void end().catch(() => undefined)
        }
        // Servers send the head of an answer with its first bytes.
        controller.enqueue(encoder.encode(": the log follows\n\n"))
        if (reader?.signal.aborted === true) leave()
        else reader?.signal.addEventListener("abort", leave, { once: true })
      },
      pull: async (controller) => {
        next ??= iterator.next()
        const event = await this.textOf(next)
        // The reader may have gone meanwhile.
        if (!isOpen) return
        if (event === undefined) {
          controller.close()
          return end()
        }
        if (event.isItem) next = undefined
        controller.enqueue(encoder.encode(event.text))
      },
      cancel: end
    }, { highWaterMark: 0 })
  }
}
