/** Sends the rest of an answer in memory that the socket did not take at once. */
import type { NativeResponse } from "../native-response.ts"
import type { HeldAnswer } from "./unread-budget.ts"

interface Ending {
  /** Whether the connection ends with the answer, and reads nothing more. */
  readonly isLast: boolean
  readonly onAbort: (callback: () => void) => void
  /** Called once, when everything is sent, or the connection has ended. */
  readonly done: () => void
}

/**
 * Sends it as fast as the client reads. `body` is the whole one, which other answers may share: the
 * native server copies nothing of it.
 */
export const sendRest = (
  native: NativeResponse,
  body: Uint8Array,
  held: HeldAnswer,
  { done, isLast, onAbort }: Ending
): void => {
  let isOver = false
  let sentBytes = native.getWriteOffset()
  const finish = (): void => {
    if (isOver) return
    isOver = true
    held.release()
    done()
  }
  held.progress(sentBytes)
  onAbort(finish)
  native.onWritable(() => {
    let isSent = false
    // The native server reads on after a write that failed.
    if (isLast) native.pause()
    native.cork(() => {
      isSent = native.tryEnd(body.subarray(sentBytes), body.length)[1]
    })
    if (isSent) {
      finish()
      return true
    }
    const offset = native.getWriteOffset()
    held.progress(offset - sentBytes)
    sentBytes = offset
    return true
  })
}
