/** Writes to a stream: one message by itself, several as an atomic batch. */
import { writeTimeoutMs } from "../../limits.ts"
import { type NatsApi, NoReply } from "../connection/index.ts"

export const commitHeader = "Restante-Commit"

/** A message to write: `headers` are whole lines, each ended by CR LF. */
export interface StreamMessage {
  readonly subject: string
  readonly data: string | Uint8Array
  readonly headers: string
}

/**
 * `Rejected`: nothing was stored. `Indeterminate`: the messages may have been stored, or may still
 * be.
 */
export type WriteResult =
  | { readonly _tag: "Stored"; readonly first: number }
  | NotStored

export type NotStored =
  | { readonly _tag: "Rejected"; readonly code: number; readonly detail: string }
  | { readonly _tag: "Indeterminate"; readonly detail: string }

/** The sequence is another than expected: the same write can never succeed. */
export const wrongSequenceCode = 10_071

/** The same, or another write is under way. */
const conflictCodes = new Set([wrongSequenceCode, 10_164, 10_158])

/** The servers have no space: storage, memory, or a limit of the account. */
const fullCodes = new Set([10_023, 10_028, 10_047, 10_077, 10_120, 10_122])

/** Nothing was stored, and the same write may be tried again. */
const retryableCodes = new Set([10_176, 10_210, 10_211])

export const isSequenceConflict = (code: number): boolean => conflictCodes.has(code)

export const isFull = (written: WriteResult): boolean =>
  written._tag === "Rejected" && fullCodes.has(written.code)

/** Header lines that expect the last sequence of the message's own subject, or of another. */
export const expectSequence = (seq: number, subject?: string): string =>
  `Nats-Expected-Last-Subject-Sequence: ${seq}\r\n` +
  (subject === undefined ? "" : `Nats-Expected-Last-Subject-Sequence-Subject: ${subject}\r\n`)

interface Acknowledgement {
  readonly seq: number
  readonly error?: {
    readonly err_code?: number
    readonly code: number
    readonly description: string
  }
}

const parseAcknowledgement = (text: string, messages: number): WriteResult => {
  // The server's own answer to a publish.
  const { error, seq } = JSON.parse(text) as Acknowledgement
  if (error === undefined) return { _tag: "Stored", first: seq - messages + 1 }
  const code = error.err_code ?? error.code
  const detail = `${error.description} (${code})`
  return conflictCodes.has(code) || fullCodes.has(code) || retryableCodes.has(code)
    ? { _tag: "Rejected", code, detail }
    : { _tag: "Indeterminate", detail }
}

/** Texts that no other process makes: a random prefix, then a count in base 36. */
export const makeIds = (): () => string => {
  const prefix = Math.random().toString(36).slice(2, 10)
  let count = 0
  return () => `${prefix}${(count++).toString(36)}`
}

const nextBatchId = makeIds()

/** Writes all of the messages or none. Never rejects. */
export const write = async (
  { publish, request }: Pick<NatsApi, "request" | "publish">,
  messages: ReadonlyArray<StreamMessage>
): Promise<WriteResult> => {
  try {
    const id = nextBatchId()
    let reply: Promise<{ string: () => string }> | undefined
    for (let at = 0; at < messages.length; at++) {
      const message = messages[at]
      if (message === undefined) break
      const { data, headers, subject } = message
      if (messages.length === 1) {
        reply = request(subject, data, `NATS/1.0\r\n${headers}\r\n`, writeTimeoutMs)
        break
      }
      const block = `NATS/1.0\r\nNats-Batch-Id: ${id}\r\nNats-Batch-Sequence: ${
        at + 1
      }\r\n${headers}`
      if (at < messages.length - 1) publish(subject, data, `${block}\r\n`)
      else reply = request(subject, data, `${block}Nats-Batch-Commit: 1\r\n\r\n`, writeTimeoutMs)
    }
    return parseAcknowledgement((await reply)?.string() ?? "{}", messages.length)
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error)
    const isCertain = error instanceof NoReply && error.reason === "no responders"
    return isCertain
      ? { _tag: "Rejected", code: 503, detail }
      : { _tag: "Indeterminate", detail }
  }
}
