/**
 * JetStream in memory: the calls of the API that the store makes, with the answers and error codes
 * of nats-server. `test/suites/jetstream.ts` compares them with a real server. It has no faults;
 * the caller chooses the time that an answer shows.
 */
import { type ApiFailure, fieldOf, incompleteBatch, type Published, SimulatedStream, type Stored,
  type WriteAnswer } from "./stream.ts"

/** One message of an answer. */
export interface Reply {
  /** 0: none. */
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly data: Buffer
}

const noFields: ReadonlyMap<string, string> = new Map()

/** 503 without content: nobody is subscribed to the subject. */
export const noResponders: Reply = { status: 503, headers: noFields, data: Buffer.alloc(0) }

const json = (answer: object): Reply => ({
  status: 0,
  headers: noFields,
  data: Buffer.from(JSON.stringify(answer))
})

export const errorReply = (error: ApiFailure): Reply => json({ error })

/** The reply to a write; undefined: no stream takes its subject. */
export const replyOf = (answer: WriteAnswer | undefined): Reply =>
  answer === undefined ? noResponders : json(answer)

const noStream: ApiFailure = { code: 404, err_code: 10_059, description: "stream not found" }
const noMessage: ApiFailure = { code: 404, err_code: 10_037, description: "no message found" }
const nameInUse: ApiFailure = {
  code: 400,
  err_code: 10_058,
  description: "stream name already in use with a different configuration"
}

/** Most subjects of one page of names, and most messages and bytes of one direct get. */
const namesMax = 100_000
const directMax = 1_024
const directBytesMax = 32 * 1024 * 1024

const apiPrefix = "$JS.API."
const kvPrefix = "$KV."

/** What the store asks for in the calls of the API. */
interface Question {
  readonly subjects_filter?: string
  readonly offset?: number
  readonly last_by_subj?: string
  readonly next_by_subj?: string
  readonly multi_last?: ReadonlyArray<string>
  readonly max_bytes?: number
  readonly batch?: number
  readonly seq?: number
  readonly filter?: string
}

/** A call of the API: its name, its stream, and what it asks. */
export interface ApiCall {
  readonly name: string
  readonly stream: string
  readonly data: Buffer
}

/** The call of a subject; undefined: the subject is none of the API. */
export const callOf = (subject: string, data: Buffer): ApiCall | undefined => {
  if (!subject.startsWith(apiPrefix)) return undefined
  const at = subject.lastIndexOf(".")
  return { name: subject.slice(apiPrefix.length, at), stream: subject.slice(at + 1), data }
}

const stringFieldsOf = (headers: string): Map<string, string> => {
  const fields = new Map<string, string>()
  for (const line of headers.split("\r\n").slice(1)) {
    const colon = line.indexOf(": ")
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 2))
  }
  return fields
}

export class SimulatedJetStream {
  private readonly streams = new Map<string, SimulatedStream>()
  private readonly nowMs: () => number
  /** The time of day of `nowMs` 0, ms since the epoch. */
  private readonly epochMs: number
  private readonly replicas: number

  constructor(nowMs: () => number, epochMs: number, replicas: number) {
    this.nowMs = nowMs
    this.epochMs = epochMs
    this.replicas = replicas
  }

  /** The stream that takes messages of a subject. */
  streamOf(subject: string): SimulatedStream | undefined {
    if (!subject.startsWith(kvPrefix)) return undefined
    return this.streams.get(`KV_${subject.slice(kvPrefix.length, subject.indexOf(".", 5))}`)
  }

  /** The last message of a subject. */
  last(stream: string, subject: string): Stored | undefined {
    return this.streams.get(stream)?.last(subject, this.nowMs())
  }

  /** The subjects that match. */
  list(stream: string, filter: string): ReadonlyArray<string> {
    return this.streams.get(stream)?.list(filter, this.nowMs()) ?? []
  }

  /** Writes one message, or all messages of a batch; undefined: no stream takes the subject. */
  write(messages: ReadonlyArray<Published>): WriteAnswer | undefined {
    const [first] = messages
    const stream = first && this.streamOf(first.subject)
    if (stream === undefined) return undefined
    const isWhole = messages.length === 1 ||
      messages.every(({ headers, subject }, at) =>
        fieldOf(headers, "Nats-Batch-Sequence") === String(at + 1) &&
        this.streamOf(subject) === stream
      )
    return isWhole ? stream.write(messages, this.nowMs()) : { error: incompleteBatch }
  }

  /** Answers a call as a server that shows its stream as of this time. */
  answer({ data, name, stream: of }: ApiCall, atMs = this.nowMs()): ReadonlyArray<Reply> {
    // The store's own question.
    const question = JSON.parse(data.toString() || "{}") as Question
    if (name === "STREAM.CREATE") return [this.create(question as Record<string, unknown>)]
    const stream = this.streams.get(of)
    if (stream === undefined) {
      return [name === "DIRECT.GET" ? noResponders : errorReply(noStream)]
    }
    switch (name) {
      case "STREAM.INFO":
        return [this.describe(stream, question, atMs)]
      case "STREAM.MSG.GET":
        return [this.message(stream, question, atMs)]
      case "STREAM.PURGE": {
        const { filter = ">", seq = Infinity } = question
        return [json({ success: true, purged: stream.purge(filter, seq, this.nowMs()) })]
      }
      case "DIRECT.GET":
        return this.directGet(stream, question, atMs)
      default:
        throw new Error(`the simulated JetStream does not know ${name}`)
    }
  }

  private create(config: Readonly<Record<string, unknown>>): Reply {
    const name = String(config["name"])
    const known = this.streams.get(name)
    const isSame = Object.entries(known?.config ?? {}).every(([field, value]) =>
      JSON.stringify(config[field]) === JSON.stringify(value)
    )
    const hasMore = Object.keys(config).some((field) =>
      field !== "max_age" && !(field in (known?.config ?? config))
    )
    if (!isSame || hasMore) return errorReply(nameInUse)
    const stream = known ?? new SimulatedStream(config, this.nowMs())
    this.streams.set(name, stream)
    return this.describe(stream, {}, this.nowMs())
  }

  private describe(stream: SimulatedStream, question: Question, atMs: number): Reply {
    const { config, createdMs } = stream
    const { offset = 0, subjects_filter: filter } = question
    const found = filter === undefined ? [] : stream.list(filter, atMs)
    const page = found.slice(offset, offset + namesMax)
    const subjects = Object.fromEntries(page.map((name) => [name, 1]))
    return json({
      ...filter === undefined ? {} : { total: found.length, offset, limit: namesMax },
      // Servers fill in what the request left out.
      config: { max_age: 0, ...config },
      created: this.isoOf(createdMs),
      ts: this.isoOf(atMs),
      state: {
        messages: 0,
        first_seq: 0,
        last_seq: stream.lastSeq(atMs),
        ...page.length === 0 ? {} : { subjects }
      },
      ...this.replicas === 1 ? {} : {
        cluster: {
          leader: "n1",
          replicas: Array.from({ length: this.replicas - 1 }, () => ({ current: true }))
        }
      }
    })
  }

  private message(stream: SimulatedStream, question: Question, atMs: number): Reply {
    const { last_by_subj: last, next_by_subj: next, seq } = question
    let found: Stored | undefined
    if (last !== undefined) found = stream.last(last, atMs)
    else if (next !== undefined) found = stream.next(next, seq ?? 1, atMs)
    else found = stream.next(">", seq ?? 0, atMs)
    if (found === undefined || (last === undefined && next === undefined && found.seq !== seq)) {
      return errorReply(noMessage)
    }
    const { data, headers, subject } = found
    return json({
      message: {
        subject,
        seq: found.seq,
        time: this.isoOf(found.atMs),
        ...headers === "" ? {} : { hdrs: Buffer.from(headers, "latin1").toString("base64") },
        ...data.length === 0 ? {} : { data: data.toString("base64") }
      }
    })
  }

  /** All last messages of some subjects, in the order of their sequences. */
  private directGet(
    stream: SimulatedStream,
    { max_bytes: bytesMax = directBytesMax, multi_last: filters = [] }: Question,
    atMs: number
  ): ReadonlyArray<Reply> {
    const names = new Set(filters.flatMap((filter) => stream.list(filter, atMs)))
    if (names.size > directMax) return [{ ...noResponders, status: 413 }]
    const found: Array<Stored> = []
    for (const name of names) {
      const message = stream.last(name, atMs)
      if (message !== undefined) found.push(message)
    }
    if (found.length === 0) return [{ ...noResponders, status: 404 }]
    found.sort((one, other) => one.seq - other.seq)
    const replies: Array<Reply> = []
    let bytes = 0
    let lastSeq = 0
    for (const message of found) {
      if (bytes > bytesMax) break
      const { data, headers, seq, subject } = message
      const fields = stringFieldsOf(headers)
      fields.set("Nats-Stream", stream.name).set("Nats-Subject", subject)
        .set("Nats-Sequence", String(seq)).set("Nats-Time-Stamp", this.isoOf(message.atMs))
        .set("Nats-Last-Sequence", String(lastSeq))
      replies.push({ status: 0, headers: fields, data })
      bytes += data.length + headers.length
      lastSeq = seq
    }
    const end = new Map([
      ["Nats-Num-Pending", String(found.length - replies.length)],
      ["Nats-Last-Sequence", String(lastSeq)],
      ["Nats-UpTo-Sequence", String(stream.lastSeq(atMs))]
    ])
    return [...replies, { status: 204, headers: end, data: Buffer.alloc(0) }]
  }

  private isoOf(atMs: number): string {
    return new Date(this.epochMs + atMs).toISOString()
  }
}
