/** Answers of several messages to one question, and whether all of them have come. */
import type { Msg } from "@nats-io/transport-node"
import type { StoredMessage } from "./wire.ts"

/** What one question brought. */
export interface StreamReplies {
  /** Status of the last message: 204 ends a list, 404 says that there is nothing. */
  readonly code: number
  readonly stored: ReadonlyArray<StoredMessage>
  /** Messages that match and were left out: servers end an answer of too many bytes. */
  readonly left: number
  /** The copy that answered holds everything up to this sequence. */
  readonly upTo: number
}

const numberIn = (message: Msg, name: string): number => Number(message.headers?.get(name) || 0)

/** A message that was read directly. */
const storedOf = (message: Msg): StoredMessage => ({
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
export const answersOf = (replies: ReadonlyArray<Msg>): StreamReplies => {
  const end = replies.at(-1)
  const code = end?.headers?.code ?? 0
  if (end === undefined || code !== 204) return { code, stored: [], left: 0, upTo: 0 }
  let before = 0
  for (const reply of replies) {
    if (numberIn(reply, "Nats-Last-Sequence") !== before) {
      throw new Error(`of an answer the messages after sequence ${before} were lost`)
    }
    before = numberIn(reply, "Nats-Sequence")
  }
  return {
    code,
    stored: replies.slice(0, -1).map(storedOf),
    left: numberIn(end, "Nats-Num-Pending"),
    upTo: numberIn(end, "Nats-UpTo-Sequence")
  }
}

/**
 * What there is of `subjects`, asked again for what was left out. The first of them is asked for
 * each time, and counts as it was seen last: it may say what the others mean.
 */
export const gather = async (
  subjects: ReadonlyArray<string>,
  ask: (subjects: ReadonlyArray<string>) => Promise<Pick<StreamReplies, "stored" | "left">>
): Promise<ReadonlyArray<StoredMessage>> => {
  const found = new Map<string, StoredMessage>()
  for (let rest = subjects;;) {
    const known = found.size
    const { left, stored } = await ask(rest)
    for (const one of stored) found.set(one.subject, one)
    if (left === 0) return [...found.values()]
    if (found.size === known) throw new Error("the servers send no message of this size")
    rest = subjects.filter((subject, at) => at === 0 || !found.has(subject))
  }
}
