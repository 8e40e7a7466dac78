/** Retries of requests, and the errors that end them. */
import { StorageCorrupted, StorageUnavailable } from "../../actor/index.ts"
import { giveUpMs, readResendMs, readTimeoutMs, retryDelayMs } from "../../limits.ts"
import { NoReply } from "./requests.ts"

/** An error of the JetStream API. */
export class ApiError extends Error {
  readonly code: number

  constructor(code: number, description: string) {
    super(description)
    this.code = code
  }
}

/** JetStream error codes: the message or stream does not exist, the stream's name is in use. */
export const errorCodes = { noMessage: 10_037, noStream: 10_059, nameInUse: 10_058 } as const

const finalCodes: ReadonlySet<number> = new Set(Object.values(errorCodes))

export const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export const asStorageUnavailable = (error: unknown): StorageUnavailable =>
  error instanceof StorageUnavailable
    ? error
    : new StorageUnavailable({ detail: error instanceof Error ? error.message : String(error) })

/**
 * Repeats a failed attempt for this time. Rejects with the ApiError of a final code, with
 * StorageCorrupted, else with StorageUnavailable.
 */
export const retryUntilDeadline = async <A>(
  attempt: () => Promise<A>,
  forMs: number = giveUpMs
): Promise<A> => {
  const untilMs = performance.now() + forMs
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (error instanceof ApiError && finalCodes.has(error.code)) throw error
      if (error instanceof StorageCorrupted) throw error
      const isClosed = error instanceof NoReply && error.reason === "closed"
      if (isClosed || performance.now() > untilMs) throw asStorageUnavailable(error)
      await wait(retryDelayMs)
    }
  }
}

/** Sends a request again every `readResendMs`, for `readTimeoutMs`; takes the first answer. */
export const resendUntilAnswered = <A>(request: () => Promise<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    let copiesLeft = readTimeoutMs / readResendMs
    let pending = 0
    const timer = setInterval(() => send(), readResendMs)
    const send = () => {
      pending++
      if (--copiesLeft <= 0) clearInterval(timer)
      request().then((answer) => {
        clearInterval(timer)
        resolve(answer)
      }, (error: unknown) => {
        pending--
        // Another copy may still be answered.
        if (!(error instanceof ApiError) && pending > 0) return
        clearInterval(timer)
        reject(error)
      })
    }
    send()
  })
