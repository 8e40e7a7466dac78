/**
 * Reads of a stream. Any replica answers, and the answer counts only when that replica has reached
 * a sequence that a majority had stored since the read began (a read barrier), or that this node's
 * own commit got. A single server needs no read barrier.
 */
import type { Msg } from "@nats-io/transport-node"
import { barrierReserveBytes, readTimeoutMs, staleRetriesMax, staleRetryMs } from "../../limits.ts"
import { ApiError, asStorageUnavailable, errorCodes, type NatsApi, resendUntilAnswered,
  retryUntilDeadline, wait } from "../connection/index.ts"

export const isMarker = (stored: StoredMessage): boolean =>
  stored.header("KV-Operation") !== undefined

export type StreamAccess = Pick<
  NatsApi,
  "request" | "requestMany" | "readBarrier" | "dataBytesMax"
>

/** A message as it is stored. */
export interface StoredMessage {
  readonly subject: string
  readonly seq: number
  readonly header: (name: string) => string | undefined
  readonly text: () => string
  readonly bytes: () => Uint8Array
}

/** The value of a field in a header block. */
export const headerIn = (headers: string, name: string): string | undefined => {
  const at = headers.indexOf(`\n${name}: `)
  if (at < 0) return undefined
  const from = at + name.length + 3
  return headers.slice(from, headers.indexOf("\r", from))
}

interface ApiAnswer {
  readonly error?: {
    readonly err_code?: number
    readonly code: number
    readonly description: string
  }
}

/** One request to the JetStream API, answered by the stream's leader. Rejects with ApiError. */
export const callApi = async <A>(
  { request }: Pick<NatsApi, "request">,
  call: string,
  data: object,
  timeoutMs: number = readTimeoutMs
): Promise<A> => {
  const reply = await request(`$JS.API.${call}`, JSON.stringify(data), undefined, timeoutMs)
  // The server's own answer, as the API describes it.
  const answer = JSON.parse(reply.string()) as A & ApiAnswer
  const { error } = answer
  if (error !== undefined) throw new ApiError(error.err_code ?? error.code, error.description)
  return answer
}

export interface StreamInfo {
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

export const streamInfo = (nats: Pick<NatsApi, "request">, stream: string): Promise<StreamInfo> =>
  callApi<StreamInfo>(nats, `STREAM.INFO.${stream}`, {})

/** A sequence that covers everything that was acknowledged before the call. */
export const acknowledgedSequence = async (nats: StreamAccess, stream: string): Promise<number> =>
  (await nats.readBarrier(stream))?.seq ?? (await streamInfo(nats, stream)).state.last_seq

/** The same, and when the stream was made. */
export const streamEnd = async (
  nats: StreamAccess,
  stream: string
): Promise<{ readonly seq: number; readonly created: string }> => {
  const [barrier, { created, state }] = await Promise.all([
    nats.readBarrier(stream),
    retryUntilDeadline(() => resendUntilAnswered(() => streamInfo(nats, stream)))
  ])
  return { created, seq: barrier?.seq ?? state.last_seq }
}

interface MessageAnswer {
  readonly message: {
    readonly subject: string
    readonly seq: number
    readonly time: string
    readonly hdrs?: string
    readonly data?: string
  }
}

const getMessage = async (
  nats: Pick<NatsApi, "request">,
  stream: string,
  wanted: object
): Promise<MessageAnswer["message"] | undefined> => {
  try {
    const { message } = await retryUntilDeadline(() =>
      resendUntilAnswered(() => callApi<MessageAnswer>(nats, `STREAM.MSG.GET.${stream}`, wanted))
    )
    return message
  } catch (error) {
    if (error instanceof ApiError && error.code === errorCodes.noMessage) return undefined
    // A server that does not know the stream proves nothing about its messages.
    throw asStorageUnavailable(error)
  }
}

/**
 * The last message of a subject, from the server that leads or believes so; undefined when there is
 * none. This is enough for a single server, and before a compare-and-set.
 */
export const readLastFromLeader = async (
  nats: Pick<NatsApi, "request">,
  stream: string,
  subject: string
): Promise<StoredMessage | undefined> => {
  const message = await getMessage(nats, stream, { last_by_subj: subject })
  if (message === undefined) return undefined
  const headers = Buffer.from(message.hdrs ?? "", "base64").toString("latin1")
  return {
    subject: message.subject,
    seq: message.seq,
    header: (name) => headerIn(headers, name),
    text: () => Buffer.from(message.data ?? "", "base64").toString("utf8"),
    bytes: () => Buffer.from(message.data ?? "", "base64")
  }
}

/** When the message of a sequence was written, ms since the epoch; undefined when it is gone. */
export const writtenAtMs = async (
  nats: Pick<NatsApi, "request">,
  stream: string,
  seq: number
): Promise<number | undefined> => {
  const message = await getMessage(nats, stream, { seq })
  return message && Date.parse(message.time)
}

/** The sequence of the first message from `seq` on that matches, by the leader. */
export const nextSequence = async (
  nats: Pick<NatsApi, "request">,
  stream: string,
  filter: string,
  seq: number
): Promise<number | undefined> =>
  (await getMessage(nats, stream, { seq, next_by_subj: filter }))?.seq

/** The replies to one direct get. */
export interface StreamReplies {
  /** Status of the last reply: 204 ends a list, 404 means that nothing matches. */
  readonly code: number
  readonly stored: ReadonlyArray<StoredMessage>
  /** Matching messages that were left out: servers limit the bytes of an answer. */
  readonly remaining: number
  /** The replica that answered holds everything up to this sequence. */
  readonly upTo: number
}

const numberIn = (message: Msg, name: string): number => Number(message.headers?.get(name) || 0)

const storedMessage = (message: Msg): StoredMessage => ({
  subject: message.headers?.get("Nats-Subject") ?? "",
  seq: numberIn(message, "Nats-Sequence"),
  header: (name) => message.headers?.has(name) === true ? message.headers.get(name) : undefined,
  text: () => message.string(),
  bytes: () => message.data
})

/**
 * Throws when a message was lost, as happens when a connection or route breaks: each message names
 * the sequence of the one before it (ADR-31 of NATS, batched requests).
 */
export const parseReplies = (replies: ReadonlyArray<Msg>): StreamReplies => {
  const end = replies.at(-1)
  const code = end?.headers?.code ?? 0
  if (end === undefined || code !== 204) return { code, stored: [], remaining: 0, upTo: 0 }
  let before = 0
  for (const reply of replies) {
    if (numberIn(reply, "Nats-Last-Sequence") !== before) {
      throw new Error(`the messages of an answer after sequence ${before} were lost`)
    }
    before = numberIn(reply, "Nats-Sequence")
  }
  return {
    code,
    stored: replies.slice(0, -1).map(storedMessage),
    remaining: numberIn(end, "Nats-Num-Pending"),
    upTo: numberIn(end, "Nats-UpTo-Sequence")
  }
}

/** Reads from any replica. */
const directGet = async (
  nats: StreamAccess,
  stream: string,
  question: object
): Promise<StreamReplies> => {
  const subject = `$JS.API.DIRECT.GET.${stream}`
  const replies = parseReplies(
    await nats.requestMany(subject, JSON.stringify(question), readTimeoutMs)
  )
  if (replies.code === 413) throw new RangeError("more keys than can be read at once")
  return replies
}

/** The last messages of these subjects; the answer ends with the one that reaches `max_bytes`. */
interface SubjectsQuestion {
  readonly multi_last: ReadonlyArray<string>
  readonly max_bytes?: number
}

/** Reads from a replica with everything up to `lastSeq`; at least one of the subjects exists. */
const getFromCurrentReplica = (
  nats: StreamAccess,
  stream: string,
  question: SubjectsQuestion,
  lastSeq: number
): Promise<StreamReplies> =>
  retryUntilDeadline(async () => {
    for (let tries = 0; tries < staleRetriesMax; tries++) {
      const replies = await directGet(nats, stream, question)
      if (replies.code === 204 && replies.upTo >= lastSeq) return replies
      await wait(staleRetryMs)
    }
    throw new Error(`no replica of ${stream} has reached sequence ${lastSeq}`)
  })

/** Bytes of the quotes and the comma of a subject in a question. */
const quotedBytes = 3

/** How many of the subjects fit into one request: the first two at least. */
const fitting = ({ dataBytesMax }: StreamAccess, subjects: ReadonlyArray<string>): number => {
  // A read barrier may join them.
  let bytesLeft = dataBytesMax() - barrierReserveBytes
  let count = 0
  for (const { length } of subjects) {
    bytesLeft -= length + quotedBytes
    if (bytesLeft < 0 && count >= 2) return count
    count++
  }
  return count
}

/**
 * Gets the last messages of all subjects, and gets again what was left out. Each request has the
 * first subject, and its latest message counts: it may decide what the others mean.
 */
const getAll = async (
  nats: StreamAccess,
  subjects: ReadonlyArray<string>,
  get: (subjects: ReadonlyArray<string>) => Promise<Pick<StreamReplies, "stored" | "remaining">>
): Promise<ReadonlyArray<StoredMessage>> => {
  const found = new Map<string, StoredMessage>()
  for (let rest = subjects;;) {
    const before = found.size
    const count = fitting(nats, rest)
    const { remaining, stored } = await get(count < rest.length ? rest.slice(0, count) : rest)
    for (const message of stored) found.set(message.subject, message)
    if (remaining > 0) {
      if (found.size === before) throw new Error("the servers send no message of this size")
      rest = rest.filter((subject, at) => at === 0 || !found.has(subject))
    } else if (count < rest.length) rest = [...rest.slice(0, 1), ...rest.slice(count)]
    else return [...found.values()]
  }
}

/** Reads the last messages of a few subjects; undefined where there is none. */
export type ReadSubjects = (
  ...subjects: ReadonlyArray<string>
) => Promise<ReadonlyArray<StoredMessage | undefined>>

/** Reads subjects as they are at this call, or later. */
export const barrierReader = async (nats: StreamAccess, stream: string): Promise<ReadSubjects> => {
  const barrier = await nats.readBarrier(stream)
  if (barrier === undefined) {
    return (...subjects) =>
      Promise.all(subjects.map((subject) => readLastFromLeader(nats, stream, subject)))
  }
  return async (...subjects) => {
    const found = await getAll(
      nats,
      [...subjects, barrier.subject],
      (rest) => getFromCurrentReplica(nats, stream, { multi_last: rest }, barrier.seq)
    )
    return subjects.map((subject) => found.find((stored) => stored.subject === subject))
  }
}

/** The last message of a subject, as it is at the call or later; undefined when there is none. */
export const readLast = async (
  nats: StreamAccess,
  stream: string,
  subject: string
): Promise<StoredMessage | undefined> => {
  const [stored] = await (await barrierReader(nats, stream))(subject)
  return stored
}

/**
 * The last messages of the subjects that exist, from replicas that hold everything up to
 * `lastSeq`: from one replica, unless they have more bytes than servers send at once. At most
 * `keysPerReadMax` of the subjects may exist.
 */
export const readLastOfMany = (
  nats: StreamAccess,
  stream: string,
  subjects: ReadonlyArray<string>,
  lastSeq: number
): Promise<ReadonlyArray<StoredMessage>> =>
  getAll(nats, subjects, (rest) => getSome(nats, stream, { multi_last: rest }, lastSeq))

/**
 * The same for as many of the first subjects as have `bytesMax` bytes together, and for `countMin`
 * of them in any case. `count`: how many of the subjects the result covers. Messages come in the
 * order of their sequences, which need not be the order of the subjects. So if some are left out,
 * the result does not count, and fewer subjects are read.
 */
export const readFirstOfMany = async (
  nats: StreamAccess,
  stream: string,
  subjects: ReadonlyArray<string>,
  lastSeq: number,
  { bytesMax, countMin }: { readonly bytesMax: number; readonly countMin: number }
): Promise<{ readonly stored: ReadonlyArray<StoredMessage>; readonly count: number }> => {
  for (let count = fitting(nats, subjects);;) {
    const first = subjects.slice(0, Math.max(count, countMin))
    if (count <= countMin) {
      return { stored: await readLastOfMany(nats, stream, first, lastSeq), count: countMin }
    }
    const question = { multi_last: first, max_bytes: bytesMax }
    const { remaining, stored } = await getSome(nats, stream, question, lastSeq)
    if (remaining === 0) return { stored, count }
    // Some margin, since the messages differ in size.
    const share = stored.length / (stored.length + remaining)
    count = Math.min(count - 1, Math.floor(0.75 * share * count))
  }
}

const getSome = async (
  nats: StreamAccess,
  stream: string,
  question: SubjectsQuestion,
  lastSeq: number
): Promise<Pick<StreamReplies, "stored" | "remaining">> => {
  const subjects = question.multi_last
  const replies = await retryUntilDeadline(() => directGet(nats, stream, question))
  if (replies.code === 204 && replies.upTo >= lastSeq) return replies
  if (replies.code !== 404) return getFromCurrentReplica(nats, stream, question, lastSeq)
  // A replica that has none of them does not report how far it has got.
  const barrier = await nats.readBarrier(stream)
  if (barrier === undefined) {
    const each = subjects.map((subject) => readLastFromLeader(nats, stream, subject))
    const stored = (await Promise.all(each)).filter((message) => message !== undefined)
    return { stored, remaining: 0 }
  }
  const seq = Math.max(lastSeq, barrier.seq)
  const withBarrier = { ...question, multi_last: [...subjects, barrier.subject] }
  const { remaining, stored } = await getFromCurrentReplica(nats, stream, withBarrier, seq)
  return { remaining, stored: stored.filter(({ subject }) => subject !== barrier.subject) }
}
