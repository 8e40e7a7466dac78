/** Requests whose outcome is unknown: the reply of an actor or of the records is lost. */
import { Effect } from "effect"
import { expect } from "vitest"
import type { Service } from "../../http/pipeline/service.ts"
import { StorageUnavailable } from "../../runtime/index.ts"
import type { Answered, Harness, Sending } from "./harness.ts"

/** The next reply that is lost. */
export interface LostReply {
  /** The actor's message, or the table of the first change of the write. */
  readonly message: string
  /** Whether the change is made. */
  readonly isKept: boolean
  /** The change does not signal its key: this stands for a signal that is late. */
  readonly isSignalLate?: boolean
}

let lost: LostReply | undefined

export const loseReply = (message: string, isKept: boolean, isSignalLate = false): void => {
  lost = { message, isKept, isSignalLate }
}

/** Whether no reply is to be lost, or none any more. */
export const isNoneToLose = (): boolean => lost === undefined

const failure = Effect.fail(new StorageUnavailable({ detail: "planned" }))

/** Loses the reply to the change of this name, if it is the planned one. */
const losing = <A, E>(name: string | undefined, change: Effect.Effect<A, E>) => {
  if (lost === undefined || lost.message !== name) return change
  const { isKept } = lost
  lost = undefined
  return isKept ? Effect.andThen(change, failure) : failure
}

/** A service whose handlers may lose a reply. */
export const withLostReplies = (service: Service): Service => {
  const { records, system } = service
  type Ask = Service["system"]["ask"]
  const losingAsk = (ask: Ask): Ask => (to, message) => {
    const isSignalLate = lost?.message === message._tag && lost.isSignalLate === true
    return losing(message._tag, ask(to, isSignalLate ? { ...message, key: undefined } : message))
  }
  return {
    ...service,
    records: {
      ...records,
      write: (changes) => losing(changes[0]?.table, records.write(changes)),
      writeIf: (expected, changes) => losing(changes[0]?.table, records.writeIf(expected, changes))
    },
    system: { ...system, ask: losingAsk(system.ask), askNew: losingAsk(system.askNew) }
  }
}

export const keyed = (key: string, sending: Sending): Sending => ({
  ...sending,
  headers: { ...sending.headers, "Idempotency-Key": `"the key ${key}"` }
})

/** One POST with an Idempotency-Key. */
export interface KeyedPost {
  readonly key: string
  readonly path: string
  readonly sending: Sending
}

/** The answer to a repetition of a request whose first attempt loses a reply. */
export const repeatLost = async (
  service: Harness,
  { key, path, sending }: KeyedPost,
  { isKept, isSignalLate, message }: LostReply,
  meanwhile: () => Promise<unknown> = async () => {}
): Promise<Answered> => {
  loseReply(message, isKept, isSignalLate)
  const first = await service.send("POST", path, keyed(key, sending))
  expect([first.status, isNoneToLose()]).toEqual([503, true])
  await meanwhile()
  const other = await service.send("POST", path, keyed(key, { ...sending, type: "text/html" }))
  if (path !== "/content" && sending.body !== undefined) expect(other.status).toBe(422)
  const answered = await service.send("POST", path, keyed(key, sending))
  const again = await service.send("POST", path, keyed(key, sending))
  if (answered.status < 400) {
    expect([again.status, again.text]).toEqual([answered.status, answered.text])
  } else expect(again.status).toBe(answered.status)
  return answered
}
