/**
 * Reads a stream in the order of its sequences. What is there all the while is met, however often
 * it is rewritten: a rewritten key moves to the end. What is met twice counts as it was met last.
 */
import { answersOf } from "./answers.ts"
import type { NatsApi } from "./connection.ts"
import { readMs, walkBatch } from "./limits.ts"
import { nextSeqOf } from "./messages.ts"
import { info, persist } from "./reader.ts"
import type { StoredMessage } from "./wire.ts"

const batchFrom = async (nats: NatsApi, stream: string, filter: string, seq: number) => {
  const question = JSON.stringify({ seq, next_by_subj: filter, batch: walkBatch })
  const { stored } = await persist(async () =>
    answersOf(await nats.replies(`$JS.API.DIRECT.GET.${stream}`, question, readMs))
  )
  return stored
}

/** What was read in one step. */
export interface WalkStep {
  readonly messages: ReadonlyArray<StoredMessage>
  /** Whether all of these were written after the walk was begun. */
  readonly isLate: boolean
}

/** All messages that match and that there were when it began, or as they were written since. */
export async function* walk(
  nats: NatsApi,
  stream: string,
  filter: string
): AsyncGenerator<WalkStep> {
  const { state } = await persist(() => info(nats, stream))
  for (let seq = 1;;) {
    const batch = await batchFrom(nats, stream, filter, seq)
    const early = batch.filter((stored) => stored.seq <= state.last_seq)
    if (early.length > 0) yield { messages: early, isLate: false }
    if (early.length < batch.length) yield { messages: batch.slice(early.length), isLate: true }
    const last = batch.at(-1)?.seq
    // A copy may be behind, and only the leader knows the end.
    if (last === undefined && await nextSeqOf(nats, stream, filter, seq) === undefined) return
    seq = (last ?? seq - 1) + 1
    // What is written all the while is no reason to go on for ever.
    if (early.length < batch.length && seq > (await info(nats, stream)).state.last_seq) return
  }
}
