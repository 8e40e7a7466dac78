/**
 * Reading a stream. Single keys are asked of its leader. Many keys at once come from any copy,
 * and count only when that copy had got at least as far as a sequence that the leader named.
 */
import type { Msg } from "@nats-io/transport-node"
import { StorageUnavailable } from "../errors.ts"
import type { NatsApi } from "./connection.ts"
import {
  GIVE_UP_MS,
  KEYS_MAX,
  READ_MS,
  RETRY_MS,
  STALE_RETRIES_MAX,
  STALE_RETRY_MS
} from "./limits.ts"
import { NoReply } from "./requests.ts"
import type { Stored } from "./wire.ts"

type Asking = Pick<NatsApi, "request" | "replies">

/** An error of the JetStream API. */
class ApiError extends Error {
  readonly code: number

  constructor(code: number, description: string) {
    super(description)
    this.code = code
  }
}

const NO_MESSAGE = 10_037

export const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export const unavailable = (error: unknown): StorageUnavailable =>
  error instanceof StorageUnavailable
    ? error
    : new StorageUnavailable({ detail: error instanceof Error ? error.message : String(error) })

interface Answer {
  readonly error?: {
    readonly err_code?: number
    readonly code: number
    readonly description: string
  }
}

/** Asks until there is an answer, for GIVE_UP_MS. */
export const persist = async <A>(attempt: () => Promise<A>): Promise<A> => {
  const untilMs = performance.now() + GIVE_UP_MS
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (error instanceof ApiError && error.code === NO_MESSAGE) throw error
      const isClosed = error instanceof NoReply && error.reason === "closed"
      if (isClosed || performance.now() > untilMs) throw unavailable(error)
      await wait(RETRY_MS)
    }
  }
}

/** One question to the JetStream API, answered by the stream's leader. */
export const api = async <A>(
  { request }: Asking,
  question: string,
  data: object,
  timeoutMs: number = READ_MS
): Promise<A> => {
  const reply = await request(`$JS.API.${question}`, JSON.stringify(data), undefined, timeoutMs)
  // The servers' own answers, as the API describes them.
  const answer = JSON.parse(reply.string()) as A & Answer
  const { error } = answer
  if (error !== undefined) throw new ApiError(error.err_code ?? error.code, error.description)
  return answer
}

interface MessageAnswer {
  readonly message: {
    readonly subject: string
    readonly seq: number
    readonly hdrs?: string
    readonly data?: string
  }
}

/** The last message of a subject, from the leader; undefined when there is none. */
export const last = async (
  asking: Asking,
  stream: string,
  subject: string
): Promise<Stored | undefined> => {
  try {
    const { message } = await persist(() =>
      api<MessageAnswer>(asking, `STREAM.MSG.GET.${stream}`, { last_by_subj: subject })
    )
    const headers = Buffer.from(message.hdrs ?? "", "base64").toString("latin1")
    return {
      subject: message.subject,
      seq: message.seq,
      header: (name) => headerIn(headers, name),
      text: () => Buffer.from(message.data ?? "", "base64").toString("utf8"),
      bytes: () => Buffer.from(message.data ?? "", "base64")
    }
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
}

const headerIn = (headers: string, name: string): string | undefined => {
  const at = headers.indexOf(`\n${name}: `)
  if (at < 0) return undefined
  const from = at + name.length + 3
  return headers.slice(from, headers.indexOf("\r", from))
}

/** A message that was read directly. */
export const storedOf = (message: Msg): Stored => ({
  subject: message.headers?.get("Nats-Subject") ?? "",
  seq: Number(message.headers?.get("Nats-Sequence")),
  header: (name) => message.headers?.has(name) === true ? message.headers.get(name) : undefined,
  text: () => message.string(),
  bytes: () => message.data
})

const eachLast = async (asking: Asking, stream: string, subjects: ReadonlyArray<string>) =>
  (await Promise.all(subjects.map((subject) => last(asking, stream, subject))))
    .filter((stored) => stored !== undefined)

/**
 * The last messages of these subjects, those that there are, from a copy that holds everything up
 * to `lastSeq`. At most KEYS_MAX of them may exist.
 */
export const lastOfMany = (
  asking: Asking,
  stream: string,
  subjects: ReadonlyArray<string>,
  lastSeq: number
): Promise<ReadonlyArray<Stored>> =>
  persist(async () => {
    for (let tries = 0; tries < STALE_RETRIES_MAX; tries++) {
      const question = JSON.stringify({ multi_last: subjects })
      const replies = await asking.replies(`$JS.API.DIRECT.GET.${stream}`, question, READ_MS)
      const end = replies.at(-1)
      const upTo = Number(end?.headers?.get("Nats-UpTo-Sequence") || 0)
      if (end?.headers?.code === 204 && upTo >= lastSeq) {
        return replies.slice(0, -1).map((reply) => storedOf(reply))
      }
      if (end?.headers?.code === 404) return eachLast(asking, stream, subjects)
      if (end?.headers?.code === 413) throw new RangeError("more keys than can be read at once")
      await wait(STALE_RETRY_MS)
    }
    throw new Error(`no copy of ${stream} has got to ${lastSeq}`)
  })

interface InfoAnswer {
  readonly total?: number
  readonly state: {
    readonly messages: number
    readonly last_seq: number
    readonly subjects?: Readonly<Record<string, number>>
  }
  readonly cluster?: {
    readonly leader?: string
    readonly replicas?: ReadonlyArray<{ readonly current: boolean; readonly offline?: boolean }>
  }
}

export const info = (asking: Asking, stream: string): Promise<InfoAnswer> =>
  api<InfoAnswer>(asking, `STREAM.INFO.${stream}`, {})

/** The subjects that match, from the leader, page by page, and a sequence that covers them. */
export async function* subjectsOf(
  asking: Asking,
  stream: string,
  filter: string
): AsyncGenerator<{ readonly subjects: ReadonlyArray<string>; readonly lastSeq: number }> {
  for (let offset = 0;;) {
    const question = { subjects_filter: filter, offset }
    let withinMs = READ_MS
    const { state, total = 0 } = await persist(() => {
      // Among millions of names the leader needs longer than for anything else.
      withinMs *= 2
      return api<InfoAnswer>(asking, `STREAM.INFO.${stream}`, question, withinMs / 2)
    })
    const subjects = Object.keys(state.subjects ?? {})
    if (subjects.length > 0) yield { subjects, lastSeq: state.last_seq }
    offset += subjects.length
    if (subjects.length === 0 || offset >= total) return
  }
}

/** Pieces of at most KEYS_MAX. */
export const pieces = (subjects: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  Array.from(
    { length: Math.ceil(subjects.length / KEYS_MAX) },
    (_, at) => subjects.slice(at * KEYS_MAX, (at + 1) * KEYS_MAX)
  )
