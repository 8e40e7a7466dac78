/** Messages as the store writes them, and answers of the servers as it reads them. */
import type { NatsApi } from "./connection.ts"
import { NoReply } from "./requests.ts"
import { writeMs } from "./limits.ts"

/** A message to write: `headers` are whole lines, each ended by CR LF. */
export interface StreamMessage {
  readonly subject: string
  readonly data: string | Uint8Array
  readonly headers: string
}

/** A message as it is stored. */
export interface StoredMessage {
  readonly subject: string
  readonly seq: number
  readonly header: (name: string) => string | undefined
  readonly text: () => string
  readonly bytes: () => Uint8Array
}

/** What the servers said of a write. `Unknown`: it may have been kept, or may still be. */
export type Written =
  | { readonly _tag: "Kept"; readonly first: number }
  | { readonly _tag: "Refused"; readonly code: number; readonly detail: string }
  | { readonly _tag: "Unknown"; readonly detail: string }

/** The write met another one, or another sequence than it expected. */
const MOVED = new Set([10_071, 10_164, 10_158])
/** The servers have no room: storage, memory, or a limit of the account. */
const FULL = new Set([10_023, 10_028, 10_047, 10_077, 10_120, 10_122])
/** Nothing was stored, and the same may be tried again. */
const AGAIN = new Set([10_176, 10_210, 10_211])

export const isMoved = (code: number): boolean => MOVED.has(code)
export const isFull = (code: number): boolean => FULL.has(code)

/** Expects the last sequence of the message's own subject, or of another. */
export const expecting = (seq: number, subject?: string): string =>
  `Nats-Expected-Last-Subject-Sequence: ${seq}\r\n` +
  (subject === undefined ? "" : `Nats-Expected-Last-Subject-Sequence-Subject: ${subject}\r\n`)

interface Acknowledgement {
  readonly seq: number
  readonly count?: number
  readonly error?: {
    readonly err_code?: number
    readonly code: number
    readonly description: string
  }
}

const judge = (text: string, messages: number): Written => {
  // The servers' own answer to a publish.
  const answer = JSON.parse(text) as Acknowledgement
  const { error } = answer
  if (error === undefined) return { _tag: "Kept", first: answer.seq - messages + 1 }
  const code = error.err_code ?? error.code
  const detail = `${error.description} (${code})`
  return MOVED.has(code) || FULL.has(code) || AGAIN.has(code)
    ? { _tag: "Refused", code, detail }
    : { _tag: "Unknown", detail }
}

let batches = 0
const batchPrefix = Math.random().toString(36).slice(2, 10)

/** Writes all of the messages or none: one by itself, more as an atomic batch. */
export const write = async (
  { request, send }: Pick<NatsApi, "request" | "send">,
  messages: ReadonlyArray<StreamMessage>
): Promise<Written> => {
  try {
    const id = `${batchPrefix}${(batches++).toString(36)}`
    let reply: Promise<{ string: () => string }> | undefined
    for (let at = 0; at < messages.length; at++) {
      const message = messages[at]
      if (message === undefined) break
      const { data, headers, subject } = message
      if (messages.length === 1) {
        reply = request(subject, data, `NATS/1.0\r\n${headers}\r\n`, writeMs)
        break
      }
      const block = `NATS/1.0\r\nNats-Batch-Id: ${id}\r\nNats-Batch-Sequence: ${
        at + 1
      }\r\n${headers}`
      if (at < messages.length - 1) send(subject, data, `${block}\r\n`)
      else reply = request(subject, data, `${block}Nats-Batch-Commit: 1\r\n\r\n`, writeMs)
    }
    return judge((await reply)?.string() ?? "{}", messages.length)
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    const isSure = error instanceof NoReply && error.reason === "no responders"
    return isSure ? { _tag: "Refused", code: 503, detail } : { _tag: "Unknown", detail }
  }
}

/** The value of a header field in the text of a message's header. */
export const headerIn = (headers: string, name: string): string | undefined => {
  const at = headers.indexOf(`\n${name}: `)
  if (at < 0) return undefined
  const from = at + name.length + 3
  return headers.slice(from, headers.indexOf("\r", from))
}
