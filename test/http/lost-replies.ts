/** Requests whose outcome is unknown: the reply of an actor or of the records is lost. */
import { Effect } from "effect"
import { expect } from "vitest"
import type { Service } from "../../http/pipeline/service.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { StorageUnavailable, type Tagged } from "../../runtime/index.ts"
import { type Answered, type Harness, type Sending, startService } from "./harness.ts"
import type { TestSettings } from "./nodes.ts"

/** Replies that are lost. */
export interface LostReply {
  /** The actor's message, or the table of the first change of the write. */
  readonly message: string
  /** Whether the changes are made. */
  readonly isKept: boolean
  /** The change does not signal its key: this stands for a signal that is late. */
  readonly isSignalLate?: boolean
}

let lost: LostReply = { message: "", isKept: false }

/** How many more of these replies are lost. */
let lossesLeft = 0

/** Loses the next `times` replies. */
export const loseReplies = (planned: LostReply, times = 1): void => {
  lost = planned
  lossesLeft = times
}

export const loseReply = (message: string, isKept: boolean): void =>
  loseReplies({ message, isKept })

export const loseNoMoreReplies = (): void => {
  lossesLeft = 0
}

/** Whether all planned replies were lost. */
export const hasLostReplies = (): boolean => lossesLeft === 0

/** Gets each message of the handlers with the actor's reply. */
let observer: ((message: Tagged, reply: unknown) => void) | undefined

/** Observes the replies that the handlers get meanwhile. */
export const observeReplies = async <A>(
  observe: (message: Tagged, reply: unknown) => void,
  meanwhile: () => Promise<A>
): Promise<A> => {
  observer = observe
  try {
    return await meanwhile()
  } finally {
    observer = undefined
  }
}

let asked = 0

/** How many messages the handlers have sent to actors. */
export const askedCount = (): number => asked

const failure = Effect.fail(new StorageUnavailable({ detail: "planned" }))

const isToLose = (name: string | undefined): boolean => lossesLeft > 0 && lost.message === name

/** Loses the reply to the change of this name, if it is a planned one. */
const losing = <A, E>(name: string | undefined, change: Effect.Effect<A, E>) =>
  Effect.suspend((): Effect.Effect<A, E | StorageUnavailable> => {
    if (!isToLose(name)) return change
    lossesLeft--
    return lost.isKept ? Effect.andThen(change, failure) : failure
  })

/** A service whose handlers may lose replies. */
const withLostReplies = (service: Service): Service => {
  const { records, system } = service
  type Ask = Service["system"]["ask"]
  const losingAsk = (ask: Ask): Ask => (to, message) =>
    Effect.suspend(() => {
      asked++
      const isSignalLate = isToLose(message._tag) && lost.isSignalLate === true
      const sent = isSignalLate ? { ...message, key: undefined } : message
      const answered = Effect.tap(
        ask(to, sent),
        (reply) => Effect.sync(() => observer?.(message, reply))
      )
      // A dry run changes nothing: it is another message.
      return "isDryRun" in message ? answered : losing(message._tag, answered)
    })
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

/** Starts a service whose handlers may lose replies. */
export const startLosing = (settings: TestSettings = {}): Promise<Harness> =>
  startService((one) => resourceTable(withLostReplies(one)), settings)

export const keyed = (key: string, sending: Sending): Sending => ({
  ...sending,
  headers: { ...sending.headers, "Idempotency-Key": `"the key of the test ${key}"` }
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
  loss: LostReply,
  meanwhile: () => Promise<unknown> = async () => {}
): Promise<Answered> => {
  loseReplies(loss)
  const first = await service.send("POST", path, keyed(`${key} ${path}`, sending))
  expect([first.status, hasLostReplies()]).toEqual([503, true])
  await meanwhile()
  const other = await service.send(
    "POST",
    path,
    keyed(`${key} ${path}`, { ...sending, type: "text/html" })
  )
  if (path !== "/content" && sending.body !== undefined) expect(other.status).toBe(422)
  const answered = await service.send("POST", path, keyed(`${key} ${path}`, sending))
  const again = await service.send("POST", path, keyed(`${key} ${path}`, sending))
  if (answered.status < 400) {
    expect([again.status, again.text]).toEqual([answered.status, answered.text])
  } else expect(again.status).toBe(answered.status)
  return answered
}
