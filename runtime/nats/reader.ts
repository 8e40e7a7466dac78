/**
 * Reading a stream. Answers come from any copy, and count only when that copy has got at least as
 * far as a sequence that a majority has stored since the read began (`confirmed.ts`), or that this
 * node's own commit got. A server that is alone is asked without more ado.
 */
import { StorageUnavailable } from "../errors.ts"
import { answersOf, gather, type StreamReplies } from "./answers.ts"
import type { NatsApi } from "./connection.ts"
import { giveUpMs, readAgainMs, readMs, retryMs, staleRetriesMax, staleRetryMs } from "./limits.ts"
import { NoReply } from "./requests.ts"
import { headerIn, type StoredMessage } from "./wire.ts"

export type Asking = Pick<NatsApi, "request" | "replies" | "confirmed">

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

/** Asks until there is an answer, for GIVE_UP_MS unless told otherwise. */
export const persist = async <A>(
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
      if (isClosed || performance.now() > untilMs) throw unavailable(error)
      await wait(retryMs)
    }
  }
}

/** The first answer to a question that is asked again and again, for READ_MS. */
export const resendUntilAnswered = <A>(attempt: () => Promise<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    let left = readMs / readAgainMs
    let open = 0
    const again = setInterval(() => ask(), readAgainMs)
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

/** One question to the JetStream API, answered by the stream's leader. */
export const api = async <A>(
  { request }: Asking,
  question: string,
  data: object,
  timeoutMs: number = readMs
): Promise<A> => {
  const reply = await request(`$JS.API.${question}`, JSON.stringify(data), undefined, timeoutMs)
  // The servers' own answers, as the API describes them.
  const answer = JSON.parse(reply.string()) as A & Answer
  const { error } = answer
  if (error !== undefined) throw new ApiError(error.err_code ?? error.code, error.description)
  return answer
}

export interface MessageAnswer {
  readonly message: {
    readonly subject: string
    readonly seq: number
    readonly time: string
    readonly hdrs?: string
    readonly data?: string
  }
}

/**
 * The last message of a subject by the word of who leads, or thinks so; undefined when there is
 * none. It is enough where a server is alone, and where what follows is a compare-and-set.
 */
export const lastOfLeader = async (
  asking: Asking,
  stream: string,
  subject: string
): Promise<StoredMessage | undefined> => {
  try {
    const { message } = await persist(() =>
      resendUntilAnswered(() =>
        api<MessageAnswer>(asking, `STREAM.MSG.GET.${stream}`, { last_by_subj: subject })
      )
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

/** One moment of a stream; what is read from it is as it was then, or later. */
export interface Moment {
  /** The last message of a subject; undefined when there is none. */
  readonly last: (subject: string) => Promise<StoredMessage | undefined>
}

/** The moment of the call. */
export const momentOf = async (asking: Asking, stream: string): Promise<Moment> => {
  const mark = await asking.confirmed(stream)
  if (mark === undefined) return { last: (subject) => lastOfLeader(asking, stream, subject) }
  return {
    last: async (subject) => {
      const found = await gather(
        [subject, mark.subject],
        (rest) => copied(asking, stream, rest, mark.seq)
      )
      return found.find((stored) => stored.subject === subject)
    }
  }
}

/** The last message of a subject, as it is at the call or later; undefined when there is none. */
export const last = async (
  asking: Asking,
  stream: string,
  subject: string
): Promise<StoredMessage | undefined> => (await momentOf(asking, stream)).last(subject)

/** What any copy answers. */
const answer = async (asking: Asking, stream: string, subjects: ReadonlyArray<string>) => {
  const question = JSON.stringify({ multi_last: subjects })
  return answersOf(await asking.replies(`$JS.API.DIRECT.GET.${stream}`, question, readMs))
}

/** From a copy that holds everything up to `lastSeq`; one of the subjects there is at least. */
const copied = (
  asking: Asking,
  stream: string,
  subjects: ReadonlyArray<string>,
  lastSeq: number
): Promise<StreamReplies> =>
  persist(async () => {
    for (let tries = 0; tries < staleRetriesMax; tries++) {
      const answers = await answer(asking, stream, subjects)
      if (answers.code === 413) throw new RangeError("more keys than can be read at once")
      if (answers.code === 204 && answers.upTo >= lastSeq) return answers
      await wait(staleRetryMs)
    }
    throw new Error(`no copy of ${stream} has got to ${lastSeq}`)
  })

/**
 * The last messages of these subjects, those that there are, from copies that hold everything up
 * to `lastSeq`: from one copy, unless they are more bytes than servers send at once. At most
 * KEYS_MAX of them may exist.
 */
export const lastOfMany = (
  asking: Asking,
  stream: string,
  subjects: ReadonlyArray<string>,
  lastSeq: number
): Promise<ReadonlyArray<StoredMessage>> =>
  gather(subjects, (rest) => lastOfSome(asking, stream, rest, lastSeq))

const lastOfSome = async (
  asking: Asking,
  stream: string,
  subjects: ReadonlyArray<string>,
  lastSeq: number
): Promise<Pick<StreamReplies, "stored" | "left">> => {
  const answers = await persist(() => answer(asking, stream, subjects))
  const { code, upTo } = answers
  if (code === 413) throw new RangeError("more keys than can be read at once")
  if (code === 204 && upTo >= lastSeq) return answers
  if (code !== 404) return copied(asking, stream, subjects, lastSeq)
  // A copy that has none of them does not say how far it has got.
  const mark = await asking.confirmed(stream)
  if (mark === undefined) return { stored: await eachAlone(asking, stream, subjects), left: 0 }
  const seq = Math.max(lastSeq, mark.seq)
  const { left, stored } = await copied(asking, stream, [...subjects, mark.subject], seq)
  return { left, stored: stored.filter(({ subject }) => subject !== mark.subject) }
}

const eachAlone = async (asking: Asking, stream: string, subjects: ReadonlyArray<string>) =>
  (await Promise.all(subjects.map((subject) => lastOfLeader(asking, stream, subject))))
    .filter((stored) => stored !== undefined)

export interface InfoAnswer {
  readonly total?: number
  /** When the stream was made, and the leader's clock. */
  readonly created: string
  readonly ts: string
  readonly state: {
    readonly messages: number
    readonly first_seq: number
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

/** A sequence that covers everything that was acknowledged before the call. */
export const coveredBy = async (asking: Asking, stream: string): Promise<number> => {
  const mark = await asking.confirmed(stream)
  return mark?.seq ?? (await info(asking, stream)).state.last_seq
}
