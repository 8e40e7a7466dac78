/** Single messages of a stream, by the word of who leads it, or thinks so. */
import type { NatsApi } from "./connection.ts"
import { api, ApiError, type MessageAnswer, persist } from "./reader.ts"

const found = async (
  nats: NatsApi,
  stream: string,
  wanted: object
): Promise<MessageAnswer["message"] | undefined> => {
  try {
    const answer = await persist(() => api<MessageAnswer>(nats, `STREAM.MSG.GET.${stream}`, wanted))
    return answer.message
  } catch (error) {
    if (error instanceof ApiError) return undefined
    throw error
  }
}

/** When the message of a sequence was written, ms since the epoch; undefined when it is gone. */
export const writtenMsOf = async (
  nats: NatsApi,
  stream: string,
  seq: number
): Promise<number | undefined> => {
  const message = await found(nats, stream, { seq })
  return message && Date.parse(message.time)
}

/** The sequence of the first message that matches, from `seq` on; the leader may have none. */
export const nextSeqOf = async (
  nats: NatsApi,
  stream: string,
  filter: string,
  seq: number
): Promise<number | undefined> => (await found(nats, stream, { seq, next_by_subj: filter }))?.seq
