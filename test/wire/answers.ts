/** Whole answers in the bytes of a connection. */
import { head, openRaw, type RawConnection } from "../e2e/raw.ts"

/** A final answer, or an interim one (1xx). */
export interface WireAnswer {
  readonly status: number
  readonly head: string
  readonly body: string
}

const lengthOf = (head: string, status: number, isHead: boolean): number | undefined => {
  if (isHead || status < 200 || status === 204 || status === 304) return 0
  const [, length] = /\r\ncontent-length: (\d+)/i.exec(head) ?? []
  return length === undefined ? undefined : Number(length)
}

interface Reading {
  /** Whether the answers are to HEAD. */
  readonly isHead?: boolean
  /** Whether the connection has ended: the end of an answer without a length. */
  readonly hasEnded?: boolean
}

/** The answers that have arrived completely. */
export const answersIn = (
  received: string,
  { hasEnded = false, isHead = false }: Reading = {}
): ReadonlyArray<WireAnswer> => {
  const answers: Array<WireAnswer> = []
  for (let at = 0;;) {
    const headEnd = received.indexOf("\r\n\r\n", at)
    if (headEnd === -1) return answers
    const head = received.slice(at, headEnd)
    const status = Number(head.slice("HTTP/1.1 ".length, "HTTP/1.1 ".length + 3))
    const from = headEnd + 4
    const length = lengthOf(head, status, isHead)
      ?? (hasEnded ? received.length - from : undefined)
    if (length === undefined || received.length < from + length) return answers
    at = from + length
    answers.push({ status, head, body: received.slice(from, at) })
  }
}

/** Resolves when this many final answers have arrived, or the connection has ended. */
export const answered = (
  { closed, received, socket }: RawConnection,
  count = 1,
  reading: Reading = {}
): Promise<void> =>
  new Promise((resolve) => {
    const check = (): void => {
      const finals = answersIn(received(), reading).filter(({ status }) => status >= 200)
      if (finals.length < count) return
      socket.off("data", check)
      resolve()
    }
    socket.on("data", check)
    void closed.then(() => resolve())
    check()
  })

/**
 * Makes a function that resolves when the service has read what was sent before, on any connection:
 * it reads the sockets in the order in which bytes arrive. The service ends a connection that is
 * idle for 10 s, and so this one.
 */
export const readBarrier = async (port: number) => {
  const connection = await openRaw(port)
  let rounds = 0
  return {
    wait: async (): Promise<void> => {
      rounds += 1
      connection.socket.write(head("GET /livez HTTP/1.1", "Host: a"))
      await answered(connection, rounds)
    },
    end: () => connection.socket.destroy()
  }
}

/** Resolves when the service has read what was sent before, on any connection. */
export const hasRead = async (port: number): Promise<void> => {
  const { end, wait } = await readBarrier(port)
  await wait()
  end()
}
