/**
 * Reads a stream in the order of its sequences. What is there all the while is met, however often
 * it is rewritten: a rewritten key moves to the end. What is met twice counts as it was met last.
 */
import { readTimeoutMs, staleRetriesMax, staleRetryMs, streamScanMessages } from "../../limits.ts"
import { ApiError, collectMessages, headerIn, type NatsApi, parseReplies, resendUntilAnswered,
  retryUntilDeadline, type StoredMessage, type StreamReplies, wait } from "../connection/index.ts"

export type StreamAccess = Pick<NatsApi, "request" | "requestMany" | "readBarrier">

interface Answer {
  readonly error?: {
    readonly err_code?: number
    readonly code: number
    readonly description: string
  }
}

/** One question to the JetStream API, answered by the stream's leader. */
export const callApi = async <A>(
  { request }: StreamAccess,
  question: string,
  data: object,
  timeoutMs: number = readTimeoutMs
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
export const readLastFromLeader = async (
  asking: StreamAccess,
  stream: string,
  subject: string
): Promise<StoredMessage | undefined> => {
  try {
    const { message } = await retryUntilDeadline(() =>
      resendUntilAnswered(() =>
        callApi<MessageAnswer>(asking, `STREAM.MSG.GET.${stream}`, { last_by_subj: subject })
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
export interface BarrierReader {
  /** The last message of a subject; undefined when there is none. */
  readonly last: (subject: string) => Promise<StoredMessage | undefined>
}

/** The moment of the call. */
export const barrierReader = async (
  asking: StreamAccess,
  stream: string
): Promise<BarrierReader> => {
  const mark = await asking.readBarrier(stream)
  if (mark === undefined) return { last: (subject) => readLastFromLeader(asking, stream, subject) }
  return {
    last: async (subject) => {
      const found = await collectMessages(
        [subject, mark.subject],
        (rest) => copied(asking, stream, rest, mark.seq)
      )
      return found.find((stored) => stored.subject === subject)
    }
  }
}

/** The last message of a subject, as it is at the call or later; undefined when there is none. */
export const readLast = async (
  asking: StreamAccess,
  stream: string,
  subject: string
): Promise<StoredMessage | undefined> => (await barrierReader(asking, stream)).last(subject)

/** What any copy answers. */
export const directGet = async (
  asking: StreamAccess,
  stream: string,
  subjects: ReadonlyArray<string>
) => {
  const question = JSON.stringify({ multi_last: subjects })
  return parseReplies(
    await asking.requestMany(`$JS.API.DIRECT.GET.${stream}`, question, readTimeoutMs)
  )
}

/** From a copy that holds everything up to `lastSeq`; one of the subjects there is at least. */
const copied = (
  asking: StreamAccess,
  stream: string,
  subjects: ReadonlyArray<string>,
  lastSeq: number
): Promise<StreamReplies> =>
  retryUntilDeadline(async () => {
    for (let tries = 0; tries < staleRetriesMax; tries++) {
      const answers = await directGet(asking, stream, subjects)
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
export const readLastOfMany = (
  asking: StreamAccess,
  stream: string,
  subjects: ReadonlyArray<string>,
  lastSeq: number
): Promise<ReadonlyArray<StoredMessage>> =>
  collectMessages(subjects, (rest) => lastOfSome(asking, stream, rest, lastSeq))

const lastOfSome = async (
  asking: StreamAccess,
  stream: string,
  subjects: ReadonlyArray<string>,
  lastSeq: number
): Promise<Pick<StreamReplies, "stored" | "remaining">> => {
  const answers = await retryUntilDeadline(() => directGet(asking, stream, subjects))
  const { code, upTo } = answers
  if (code === 413) throw new RangeError("more keys than can be read at once")
  if (code === 204 && upTo >= lastSeq) return answers
  if (code !== 404) return copied(asking, stream, subjects, lastSeq)
  // A copy that has none of them does not say how far it has got.
  const mark = await asking.readBarrier(stream)
  if (mark === undefined) return { stored: await eachAlone(asking, stream, subjects), remaining: 0 }
  const seq = Math.max(lastSeq, mark.seq)
  const { remaining, stored } = await copied(asking, stream, [...subjects, mark.subject], seq)
  return { remaining, stored: stored.filter(({ subject }) => subject !== mark.subject) }
}

const eachAlone = async (asking: StreamAccess, stream: string, subjects: ReadonlyArray<string>) =>
  (await Promise.all(subjects.map((subject) => readLastFromLeader(asking, stream, subject))))
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

export const streamInfo = (asking: StreamAccess, stream: string): Promise<InfoAnswer> =>
  callApi<InfoAnswer>(asking, `STREAM.INFO.${stream}`, {})

/** A sequence that covers everything that was acknowledged before the call. */
export const acknowledgedSequence = async (
  asking: StreamAccess,
  stream: string
): Promise<number> => {
  const mark = await asking.readBarrier(stream)
  return mark?.seq ?? (await streamInfo(asking, stream)).state.last_seq
}

/* Single messages of a stream, by the word of who leads it, or thinks so. */

const found = async (
  nats: NatsApi,
  stream: string,
  wanted: object
): Promise<MessageAnswer["message"] | undefined> => {
  try {
    const answer = await retryUntilDeadline(() =>
      callApi<MessageAnswer>(nats, `STREAM.MSG.GET.${stream}`, wanted)
    )
    return answer.message
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
}

/** When the message of a sequence was written, ms since the epoch; undefined when it is gone. */
export const writtenAtMs = async (
  nats: NatsApi,
  stream: string,
  seq: number
): Promise<number | undefined> => {
  const message = await found(nats, stream, { seq })
  return message && Date.parse(message.time)
}

/** The sequence of the first message that matches, from `seq` on; the leader may have none. */
export const nextSequence = async (
  nats: NatsApi,
  stream: string,
  filter: string,
  seq: number
): Promise<number | undefined> => (await found(nats, stream, { seq, next_by_subj: filter }))?.seq

/*
 * Reading a stream. Answers come from any copy, and count only when that copy has got at least as
 * far as a sequence that a majority has stored since the read began (`confirmed.ts`), or that this
 * node's own commit got. A server that is alone is asked without more ado.
 */

const batchFrom = async (nats: NatsApi, stream: string, filter: string, seq: number) => {
  const question = JSON.stringify({ seq, next_by_subj: filter, batch: streamScanMessages })
  const { stored } = await retryUntilDeadline(async () =>
    parseReplies(await nats.requestMany(`$JS.API.DIRECT.GET.${stream}`, question, readTimeoutMs))
  )
  return stored
}

/** What was read in one step. */
export interface ScanStep {
  readonly messages: ReadonlyArray<StoredMessage>
  /** Whether all of these were written after the walk was begun. */
  readonly isLate: boolean
}

/** All messages that match and that there were when it began, or as they were written since. */
export async function* scanStream(
  nats: NatsApi,
  stream: string,
  filter: string
): AsyncGenerator<ScanStep> {
  const { state } = await retryUntilDeadline(() => streamInfo(nats, stream))
  for (let seq = 1;;) {
    const batch = await batchFrom(nats, stream, filter, seq)
    const early = batch.filter((stored) => stored.seq <= state.last_seq)
    if (early.length > 0) yield { messages: early, isLate: false }
    if (early.length < batch.length) yield { messages: batch.slice(early.length), isLate: true }
    const last = batch.at(-1)?.seq
    // A copy may be behind, and only the leader knows the end.
    if (last === undefined && await nextSequence(nats, stream, filter, seq) === undefined) return
    seq = (last ?? seq - 1) + 1
    // What is written all the while is no reason to go on for ever.
    if (early.length < batch.length && seq > (await streamInfo(nats, stream)).state.last_seq) return
  }
}
