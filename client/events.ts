/** Server-sent events by the rules of WHATWG HTML §9.2.6, over a fetched stream. */
import { unexpected } from "./json.ts"
import { eventCharsMax, silenceMs } from "./limits.ts"

/** An event that was received whole. */
export interface StreamEvent {
  readonly type: string
  readonly data: string
  /** The id that was sent last, with this event or an earlier one. */
  readonly lastId: string
}

/** Takes the text of a stream in pieces, however it is cut, and gives its events. */
export class EventParser {
  /** Set by a `retry` field: the pause before the next connection. */
  retryMs: number | undefined
  private rest = ""
  private skipLineFeed = false
  private isFirst = true
  private data: Array<string> = []
  private type = ""
  private id = ""
  private chars = 0

  /** `lastId` is the id of an earlier connection. */
  constructor(lastId = "") {
    this.id = lastId
  }

  /** The events that the next piece completes; throws UnexpectedAnswer for one that has no end. */
  push(piece: string): ReadonlyArray<StreamEvent> {
    const events: Array<StreamEvent> = []
    let text = piece
    if (this.isFirst && text !== "") {
      this.isFirst = false
      if (text.startsWith("\ufeff")) text = text.slice(1)
    }
    // A CR ended the last line; an LF right after it belongs to that end.
    if (this.skipLineFeed && text !== "") {
      this.skipLineFeed = false
      if (text.startsWith("\n")) text = text.slice(1)
    }
    this.chars += text.length
    let start = 0
    for (const { 0: end, index } of text.matchAll(/\r\n|\r|\n/g)) {
      this.line(this.rest + text.slice(start, index), events)
      this.rest = ""
      start = index + end.length
      this.skipLineFeed = end === "\r" && start === text.length
    }
    this.rest += text.slice(start)
    if (this.rest.length > eventCharsMax || this.chars > eventCharsMax + text.length) {
      return unexpected("an event is too long")
    }
    return events
  }

  private line(line: string, events: Array<StreamEvent>): void {
    if (line === "") return this.dispatch(events)
    if (line.startsWith(":")) return
    const colon = line.indexOf(":")
    const name = colon < 0 ? line : line.slice(0, colon)
    const after = colon < 0 ? "" : line.slice(colon + 1)
    const value = after.startsWith(" ") ? after.slice(1) : after
    if (name === "data") this.data.push(value)
    else if (name === "event") this.type = value
    else if (name === "id" && !value.includes("\0")) this.id = value
    else if (name === "retry" && /^\d{1,9}$/.test(value)) this.retryMs = Number(value)
  }

  private dispatch(events: Array<StreamEvent>): void {
    const { data, id, type } = this
    this.data = []
    this.type = ""
    this.chars = 0
    if (data.length === 0) return
    events.push({ type: type === "" ? "message" : type, data: data.join("\n"), lastId: id })
  }
}

/** What is next of a stream; fails when it is silent for too long. */
const readWithin = async (
  reader: ReadableStreamDefaultReader<Uint8Array>
): Promise<ReadableStreamReadResult<Uint8Array>> => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing came in ${silenceMs} ms`)), silenceMs)
  })
  try {
    return await Promise.race([reader.read(), silence])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * The events of a stream up to its end. It is read no faster than they are asked for, so that a
 * slow reader holds one piece of it, and left when its reader leaves.
 */
export async function* eventsOf(
  stream: ReadableStream<Uint8Array>,
  parser: EventParser
): AsyncGenerator<StreamEvent, void, void> {
  const reader = stream.getReader()
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  try {
    for (;;) {
      const { done, value } = await readWithin(reader)
      if (done) return
      yield* parser.push(decoder.decode(value, { stream: true }))
    }
  } finally {
    // Its connection may be broken already, which is no news.
    reader.cancel().catch(() => {})
  }
}
