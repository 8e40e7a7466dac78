/** Messages as the store writes them, and answers of the servers as it reads them. */
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream"
import { createInbox, type Msg, type MsgHdrs, type NatsConnection } from "@nats-io/transport-node"
import { StorageUnavailable } from "../../actor/index.ts"
import { giveUpMs, readResendMs, readTimeoutMs, requestSweepMs, retryDelayMs,
  writeTimeoutMs } from "../../limits.ts"

/*
 * Reads that are never older than their beginning. A server that was cut off believes for a while
 * that it leads, and a new leader may not have applied all yet: what either says of itself may be
 * old. A message that a majority has stored is not: whatever was acknowledged before it was sent
 * has a lower sequence. Each node writes one of its own into the stream, and counts only answers
 * of copies that have got as far. All reads that begin while one is under way share the next.
 */

/** A message of this node that a majority has stored. */
export interface ReadBarrier {
  readonly subject: string
  readonly seq: number
}

export interface NatsApi {
  readonly nc: NatsConnection
  readonly js: JetStreamClient
  readonly jsm: JetStreamManager
  /** Copies that a stream made now is to have. */
  readonly replicas: number
  /**
   * Publishes and takes one reply in the connection's own inbox. `headersText` is whole:
   * `NATS/1.0\r\nName: value\r\n\r\n`. Rejects with {@link NoReply} at the time limit (whether the
   * message arrived is unknown), at once where nobody listens, and when the connection closes.
   */
  readonly request: (
    subject: string,
    data: Uint8Array | string,
    headersText: string | undefined,
    timeoutMs: number
  ) => Promise<Msg>
  /** Publishes and takes all replies up to one with a status; rejects as `request` does. */
  readonly requestMany: (
    subject: string,
    data: string,
    timeoutMs: number
  ) => Promise<ReadonlyArray<Msg>>
  /**
   * A message in the stream that a majority has stored since the call; undefined where the server
   * is alone, and its word is the last one.
   */
  readonly readBarrier: (stream: string) => Promise<ReadBarrier | undefined>
  /** Publishes without a reply. */
  readonly publish: (subject: string, data: Uint8Array | string, headersText?: string) => void
}

export const nodeInboxPrefix = "_INBOX.restante"

/** Whether a message with this reply subject was sent by a node. */
export const isNodeInbox = (reply: string | undefined): boolean =>
  reply?.startsWith(`${nodeInboxPrefix}.`) === true

/** 503 without content: the server says that nobody has subscribed. */
export const isNoResponders = ({ data, headers }: Msg): boolean =>
  data.length === 0 && headers?.code === 503

/* Requests over one inbox of the connection's own, and headers that are sent as they are. */

/** No reply: whether the message arrived is unknown, unless nobody was there to take it. */
export class NoReply extends Error {
  readonly reason: "timeout" | "no responders" | "closed"

  constructor(subject: string, reason: NoReply["reason"]) {
    super(`${subject}: ${reason}`)
    this.reason = reason
  }
}

/** Encoded headers; the connection asks nothing of headers but their bytes. */
export class RawHeaders {
  private readonly bytes: Buffer

  constructor(text: string) {
    this.bytes = Buffer.from(text, "latin1")
  }

  encode(): Uint8Array {
    return this.bytes
  }
}

/** As the client's own type; see {@link RawHeaders}. */
export const rawHeaders = (text: string): MsgHdrs =>
  // The connection calls `encode` and nothing else of what it publishes.
  new RawHeaders(text) as unknown as MsgHdrs

interface Waiting {
  readonly subject: string
  readonly untilMs: number
  /** Takes a reply; whether it was the last one. */
  readonly take: (reply: Msg) => boolean
  readonly reject: (reason: NoReply) => void
}

export class Requests {
  private readonly nc: NatsConnection
  private readonly inbox = createInbox()
  private readonly waiting = new Map<string, Waiting>()
  private readonly sweep: NodeJS.Timeout
  private count = 0

  constructor(nc: NatsConnection) {
    this.nc = nc
    const tokenAt = this.inbox.length + 1
    nc.subscribe(`${this.inbox}.*`, {
      callback: (error, reply) => {
        if (error === null) this.take(reply.subject.slice(tokenAt), reply)
      }
    })
    this.sweep = setInterval(() => this.expire(), requestSweepMs)
    this.sweep.unref()
    void nc.closed().then(() => {
      clearInterval(this.sweep)
      this.endAll("closed")
    })
  }

  request(
    subject: string,
    data: Uint8Array | string,
    headersText: string | undefined,
    timeoutMs: number
  ): Promise<Msg> {
    return new Promise((resolve, reject) => {
      this.ask(subject, data, headersText, timeoutMs, reject, (reply) => {
        resolve(reply)
        return true
      })
    })
  }

  /** All replies up to the one that has a status, which comes last. */
  requestMany(subject: string, data: string, timeoutMs: number): Promise<ReadonlyArray<Msg>> {
    return new Promise((resolve, reject) => {
      const replies: Array<Msg> = []
      this.ask(subject, data, undefined, timeoutMs, reject, (reply) => {
        replies.push(reply)
        const isLast = (reply.headers?.code ?? 0) !== 0
        if (isLast) resolve(replies)
        return isLast
      })
    })
  }

  private ask(
    subject: string,
    data: Uint8Array | string,
    headersText: string | undefined,
    timeoutMs: number,
    reject: (reason: Error) => void,
    take: Waiting["take"]
  ): void {
    const token = (this.count++).toString(36)
    if (this.nc.isClosed()) {
      reject(new NoReply(subject, "closed"))
      return
    }
    const untilMs = performance.now() + timeoutMs
    this.waiting.set(token, { subject, untilMs, take, reject })
    try {
      const reply = `${this.inbox}.${token}`
      this.nc.publish(
        subject,
        data,
        headersText === undefined ? { reply } : { reply, headers: rawHeaders(headersText) }
      )
    } catch (error) {
      this.waiting.delete(token)
      // The client throws only Errors: a payload too large, a connection that is closing.
      reject(error as Error)
    }
  }

  private take(token: string, reply: Msg): void {
    const waiting = this.waiting.get(token)
    if (waiting === undefined) return
    if (isNoResponders(reply)) {
      this.waiting.delete(token)
      waiting.reject(new NoReply(waiting.subject, "no responders"))
    } else if (waiting.take(reply)) this.waiting.delete(token)
  }

  /** Time limits differ, so all are looked at; there are few that wait so long. */
  private expire(): void {
    const nowMs = performance.now()
    for (const [token, waiting] of this.waiting) {
      if (waiting.untilMs > nowMs) continue
      this.waiting.delete(token)
      waiting.reject(new NoReply(waiting.subject, "timeout"))
    }
  }

  private endAll(reason: NoReply["reason"]): void {
    for (const waiting of this.waiting.values()) {
      waiting.reject(new NoReply(waiting.subject, reason))
    }
    this.waiting.clear()
  }
}

/* Answers of several messages to one question, and whether all of them have come. */

/** What one question brought. */
export interface StreamReplies {
  /** Status of the last message: 204 ends a list, 404 says that there is nothing. */
  readonly code: number
  readonly stored: ReadonlyArray<StoredMessage>
  /** Messages that match and were left out: servers end an answer of too many bytes. */
  readonly remaining: number
  /** The copy that answered holds everything up to this sequence. */
  readonly upTo: number
}

const numberIn = (message: Msg, name: string): number => Number(message.headers?.get(name) || 0)

/** A message that was read directly. */
const directMessage = (message: Msg): StoredMessage => ({
  subject: message.headers?.get("Nats-Subject") ?? "",
  seq: numberIn(message, "Nats-Sequence"),
  header: (name) => message.headers?.has(name) === true ? message.headers.get(name) : undefined,
  text: () => message.string(),
  bytes: () => message.data
})

/**
 * Throws when one has been lost on its way, as where a connection or a route broke meanwhile: each
 * names the sequence of the one before it (ADR-31 of NATS, batched requests).
 */
export const parseReplies = (replies: ReadonlyArray<Msg>): StreamReplies => {
  const end = replies.at(-1)
  const code = end?.headers?.code ?? 0
  if (end === undefined || code !== 204) return { code, stored: [], remaining: 0, upTo: 0 }
  let before = 0
  for (const reply of replies) {
    if (numberIn(reply, "Nats-Last-Sequence") !== before) {
      throw new Error(`of an answer the messages after sequence ${before} were lost`)
    }
    before = numberIn(reply, "Nats-Sequence")
  }
  return {
    code,
    stored: replies.slice(0, -1).map(directMessage),
    remaining: numberIn(end, "Nats-Num-Pending"),
    upTo: numberIn(end, "Nats-UpTo-Sequence")
  }
}

/**
 * What there is of `subjects`, asked again for what was left out. The first of them is asked for
 * each time, and counts as it was seen last: it may say what the others mean.
 */
export const collectMessages = async (
  subjects: ReadonlyArray<string>,
  ask: (subjects: ReadonlyArray<string>) => Promise<Pick<StreamReplies, "stored" | "remaining">>
): Promise<ReadonlyArray<StoredMessage>> => {
  const found = new Map<string, StoredMessage>()
  for (let rest = subjects;;) {
    const known = found.size
    const { remaining, stored } = await ask(rest)
    for (const one of stored) found.set(one.subject, one)
    if (remaining === 0) return [...found.values()]
    if (found.size === known) throw new Error("the servers send no message of this size")
    rest = subjects.filter((subject, at) => at === 0 || !found.has(subject))
  }
}

/* How the inboxes of nodes begin, by which their asks are told from those of other clients. */

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
export type WriteResult =
  | { readonly _tag: "Kept"; readonly first: number }
  | { readonly _tag: "Refused"; readonly code: number; readonly detail: string }
  | { readonly _tag: "Unknown"; readonly detail: string }

/** The write met another one, or another sequence than it expected. */
const MOVED = new Set([10_071, 10_164, 10_158])

/** The servers have no room: storage, memory, or a limit of the account. */
const FULL = new Set([10_023, 10_028, 10_047, 10_077, 10_120, 10_122])

/** Nothing was stored, and the same may be tried again. */
const AGAIN = new Set([10_176, 10_210, 10_211])

export const isSequenceConflict = (code: number): boolean => MOVED.has(code)

export const isFull = (code: number): boolean => FULL.has(code)

/** Expects the last sequence of the message's own subject, or of another. */
export const expectSequence = (seq: number, subject?: string): string =>
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

const judge = (text: string, messages: number): WriteResult => {
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
  { request, publish }: Pick<NatsApi, "request" | "publish">,
  messages: ReadonlyArray<StreamMessage>
): Promise<WriteResult> => {
  try {
    const id = `${batchPrefix}${(batches++).toString(36)}`
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

/** An error of the JetStream API. */
export class ApiError extends Error {
  readonly code: number

  constructor(code: number, description: string) {
    super(description)
    this.code = code
  }
}

const NO_MESSAGE = 10_037

export const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export const asStorageUnavailable = (error: unknown): StorageUnavailable =>
  error instanceof StorageUnavailable
    ? error
    : new StorageUnavailable({ detail: error instanceof Error ? error.message : String(error) })

/** Asks until there is an answer, for GIVE_UP_MS unless told otherwise. */
export const retryUntilDeadline = async <A>(
  attempt: () => Promise<A>,
  patienceMs: number = giveUpMs
): Promise<A> => {
  const untilMs = performance.now() + patienceMs
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (error instanceof ApiError && error.code === NO_MESSAGE) throw error
      const isClosed = error instanceof NoReply && error.reason === "closed"
      if (isClosed || performance.now() > untilMs) throw asStorageUnavailable(error)
      await wait(retryDelayMs)
    }
  }
}

/** The first answer to a question that is asked again and again, for READ_MS. */
export const resendUntilAnswered = <A>(attempt: () => Promise<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    let left = readTimeoutMs / readResendMs
    let open = 0
    const again = setInterval(() => ask(), readResendMs)
    const settle = (tell: () => void) => {
      clearInterval(again)
      tell()
    }
    const ask = () => {
      open++
      if (--left <= 0) clearInterval(again)
      attempt().then((answer) => settle(() => resolve(answer)), (error: unknown) => {
        open--
        // Nobody heard it, or it came too late: the others may be answered yet.
        if (error instanceof ApiError || open === 0) settle(() => reject(error))
      })
    }
    ask()
  })
