/**
 * One stream in memory, as nats-server keeps it: the last message of each subject, expected
 * sequences, atomic batches, messages that expire, purges. Earlier versions are kept for a while,
 * because a replica that is behind, or a leader of the past, shows the stream as it was.
 */

/** A message as it was published. */
export interface Published {
  readonly subject: string
  readonly data: Buffer
  /** The whole header block; "" without headers. */
  readonly headers: string
}

/** A message as it is stored. */
export interface Stored extends Published {
  readonly seq: number
  readonly atMs: number
  /** Infinity: it never expires. */
  readonly expiresMs: number
}

/** The answer to a write: an acknowledgement or an error, as the server sends it. */
export type WriteAnswer =
  | {
    readonly stream: string
    readonly seq: number
    readonly batch?: string
    readonly count?: number
  }
  | { readonly error: ApiFailure }

export interface ApiFailure {
  readonly code: number
  readonly err_code: number
  readonly description: string
}

interface Version {
  readonly atMs: number
  /** undefined: purged. */
  readonly message: Stored | undefined
}

/** Earlier versions are kept for this time. */
const historyMs = 60_000

/** The value of a field in a header block. */
export const fieldOf = (headers: string, name: string): string | undefined => {
  const at = headers.indexOf(`\r\n${name}: `)
  if (at < 0) return undefined
  const from = at + name.length + 4
  return headers.slice(from, headers.indexOf("\r\n", from))
}

/** Fields that this simulation understands; another one of the servers' own is a defect. */
const understood = new Set([
  "Nats-Expected-Last-Subject-Sequence",
  "Nats-Expected-Last-Subject-Sequence-Subject",
  "Nats-TTL",
  "Nats-Batch-Id",
  "Nats-Batch-Sequence",
  "Nats-Batch-Commit"
])

const assertUnderstood = (headers: string): void => {
  for (const line of headers.split("\r\n")) {
    const name = line.slice(0, line.indexOf(":"))
    if (name.startsWith("Nats-") && !understood.has(name)) {
      throw new Error(`the simulated JetStream does not know the header ${name}`)
    }
  }
}

/** Whether a subject matches a filter with wildcards. */
const matches = (filter: ReadonlyArray<string>, subject: string): boolean => {
  const tokens = subject.split(".")
  for (const [at, token] of filter.entries()) {
    if (token === ">") return tokens.length > at
    if (at >= tokens.length || (token !== "*" && token !== tokens[at])) return false
  }
  return tokens.length === filter.length
}

const lowest = (names: ReadonlyArray<string>, name: string): number => {
  let low = 0
  let high = names.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((names[middle] ?? "") < name) low = middle + 1
    else high = middle
  }
  return low
}

const wrongSequence = (last: number): ApiFailure => ({
  code: 400,
  err_code: 10_071,
  description: `wrong last sequence: ${last}`
})

/** An expectation on a subject that the same batch has written before. */
const writtenBefore: ApiFailure = {
  code: 400,
  err_code: 10_164,
  description: "wrong last sequence"
}

/** A batch of more messages than the servers take at once. */
const batchTooLarge: ApiFailure = {
  code: 400,
  err_code: 10_199,
  description: "batch publish sequence exceeds server limit (default 1000)"
}

const batchMax = 1_000

/** A lost member, or a member of another stream. */
export const incompleteBatch: ApiFailure = {
  code: 400,
  err_code: 10_176,
  description: "batch publish is incomplete and was abandoned"
}

const secondsOf = (ttl: string): number => {
  const [, digits] = /^(\d+)s?$/.exec(ttl) ?? []
  if (digits === undefined) throw new Error(`the simulated JetStream knows no TTL ${ttl}`)
  return Number(digits)
}

export class SimulatedStream {
  readonly name: string
  readonly config: Readonly<Record<string, unknown>>
  readonly createdMs: number
  private readonly versions = new Map<string, Array<Version>>()
  /** All subjects with a version, sorted. */
  private readonly names: Array<string> = []
  /** The last sequence as it grew. */
  private readonly ends: Array<{ readonly atMs: number; readonly seq: number }> = []

  constructor(config: Readonly<Record<string, unknown>>, nowMs: number) {
    this.name = String(config["name"])
    this.config = config
    this.createdMs = nowMs
  }

  /** The last sequence at a time. */
  lastSeq(atMs: number): number {
    for (let at = this.ends.length - 1; at >= 0; at--) {
      const end = this.ends[at]
      if (end !== undefined && end.atMs <= atMs) return end.seq
    }
    return 0
  }

  /** The last message of a subject at a time. */
  last(subject: string, atMs: number): Stored | undefined {
    const versions = this.versions.get(subject)
    if (versions === undefined) return undefined
    for (let at = versions.length - 1; at >= 0; at--) {
      const version = versions[at]
      if (version === undefined || version.atMs > atMs) continue
      return version.message !== undefined && version.message.expiresMs > atMs
        ? version.message
        : undefined
    }
    return undefined
  }

  /** The subjects that match at a time, sorted. */
  list(filter: string, atMs: number): ReadonlyArray<string> {
    const tokens = filter.split(".")
    const wild = tokens.findIndex((token) => token === "*" || token === ">")
    if (wild < 0) return this.last(filter, atMs) === undefined ? [] : [filter]
    const prefix = tokens.slice(0, wild).map((token) => `${token}.`).join("")
    const isPrefix = wild === tokens.length - 1 && tokens[wild] === ">"
    const found: Array<string> = []
    for (let at = lowest(this.names, prefix); at < this.names.length; at++) {
      const name = this.names[at]
      if (name === undefined || !name.startsWith(prefix)) break
      if (!isPrefix && !matches(tokens, name)) continue
      if (this.last(name, atMs) !== undefined) found.push(name)
      else if (this.isForgotten(name, atMs)) {
        this.versions.delete(name)
        this.names.splice(at--, 1)
      }
    }
    return found
  }

  /** The first message from a sequence on that matches. */
  next(filter: string, seq: number, atMs: number): Stored | undefined {
    let first: Stored | undefined
    for (const name of this.list(filter, atMs)) {
      const message = this.last(name, atMs)
      if (message === undefined || message.seq < seq) continue
      if (first === undefined || message.seq < first.seq) first = message
    }
    return first
  }

  /** Stores all of the messages or none: several are an atomic batch. */
  write(messages: ReadonlyArray<Published>, nowMs: number): WriteAnswer {
    const { name } = this
    if (messages.length > batchMax) return { error: batchTooLarge }
    const written = new Set<string>()
    for (const { headers, subject } of messages) {
      assertUnderstood(headers)
      const expected = fieldOf(headers, "Nats-Expected-Last-Subject-Sequence")
      if (expected !== undefined) {
        const of = fieldOf(headers, "Nats-Expected-Last-Subject-Sequence-Subject") ?? subject
        if (written.has(of)) return { error: writtenBefore }
        const last = this.last(of, nowMs)?.seq ?? 0
        if (last !== Number(expected)) return { error: wrongSequence(last) }
      }
      written.add(subject)
    }
    for (const message of messages) this.append(message, nowMs)
    const seq = this.lastSeq(nowMs)
    const batch = fieldOf(messages[0]?.headers ?? "", "Nats-Batch-Id")
    return batch === undefined
      ? { stream: name, seq }
      : { stream: name, seq, batch, count: messages.length }
  }

  /** Removes what matches and has a lower sequence; returns how many. */
  purge(filter: string, seq: number, nowMs: number): number {
    let purged = 0
    for (const name of this.list(filter, nowMs)) {
      const message = this.last(name, nowMs)
      if (message === undefined || message.seq >= seq) continue
      this.note(name, { atMs: nowMs, message: undefined })
      purged++
    }
    return purged
  }

  private append(message: Published, nowMs: number): void {
    const seq = this.lastSeq(nowMs) + 1
    const ttl = fieldOf(message.headers, "Nats-TTL")
    const expiresMs = ttl === undefined ? Infinity : nowMs + secondsOf(ttl) * 1_000
    this.note(message.subject, {
      atMs: nowMs,
      message: { ...message, seq, atMs: nowMs, expiresMs }
    })
    const end = this.ends.at(-1)
    if (end?.atMs === nowMs) this.ends.pop()
    this.ends.push({ atMs: nowMs, seq })
    while ((this.ends[1]?.atMs ?? nowMs) < nowMs - historyMs) this.ends.shift()
  }

  private note(subject: string, version: Version): void {
    const versions = this.versions.get(subject)
    if (versions === undefined) {
      this.versions.set(subject, [version])
      this.names.splice(lowest(this.names, subject), 0, subject)
      return
    }
    versions.push(version)
    while ((versions[1]?.atMs ?? Infinity) < version.atMs - historyMs) versions.shift()
  }

  /** Nobody can see the subject any more. */
  private isForgotten(subject: string, nowMs: number): boolean {
    const versions = this.versions.get(subject)
    const version = versions?.at(-1)
    if (version === undefined) return true
    const endMs = version.message === undefined ? version.atMs : version.message.expiresMs
    return endMs < nowMs - historyMs
  }
}
