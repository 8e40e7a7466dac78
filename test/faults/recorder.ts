/**
 * Sends requests to a faulty service, and records each outcome. A refusal with 5xx, a lost
 * connection and a timeout leave the outcome indeterminate.
 */
import type { HistoryOperation as Operation } from "../../runtime/testing/index.ts"
import { type Answer, send } from "../e2e/client.ts"
import { pause } from "../e2e/process.ts"
import type { MailboxInput, MailboxOutput } from "../histories/models/mailbox.ts"
import type { NotificationInput, NotificationOutput } from "../histories/models/notification.ts"
import type { RegistrationInput, RegistrationOutput } from "../histories/models/registration.ts"
import type { SessionInput, SessionOutput } from "../histories/models/session.ts"
import type { StoredInput, StoredOutput } from "../histories/models/stored.ts"

/** Long enough for a busy machine, and short compared to a fault. */
const answerWithinMs = 6_000
const recentFailuresMax = 200

/** Pause of a client after a refused connection. */
const refusedPauseMs = 100

/** Pause of a client while no node is available. */
export const noNode = "nowhere:"

/** Whether the connection was refused, so that no node has received the request. */
const wasNotSent = (error: unknown): boolean => {
  const cause: unknown = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && "code" in cause && cause.code === "ECONNREFUSED"
}

export interface Request {
  readonly url: string
  readonly path: string
  readonly method?: string
  readonly body?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
}

interface RecordedResponse {
  readonly answer: Answer | undefined
  /** False when the connection was refused: the request has had no effect. */
  readonly isSent: boolean
  readonly start: number
  readonly end: number
}

/** The client, the resource and the input of an operation. */
export interface Invocation<Input> {
  readonly client: string
  readonly resource: string
  readonly input: Input
}

/** The histories by kind of resource. */
export class Histories {
  readonly mailboxes: Array<Operation<MailboxInput, MailboxOutput>> = []
  readonly sessions: Array<Operation<SessionInput, SessionOutput>> = []
  readonly notifications: Array<Operation<NotificationInput, NotificationOutput>> = []
  readonly registrations: Array<Operation<RegistrationInput, RegistrationOutput>> = []
  readonly contents: Array<Operation<StoredInput, StoredOutput>> = []
}

export class Recorder {
  readonly histories = new Histories()
  /** The last complete 5xx responses, and the number of all. */
  readonly recentFailures: Array<string> = []
  failed = 0
  /** The number of known outcomes, and of indeterminate ones. */
  acknowledged = 0
  indeterminate = 0
  /** The number of requests with an Idempotency-Key; repetitions are not counted. */
  keyed = 0
  /** Violations; one is enough to fail. */
  readonly violations: Array<string> = []

  /** Sends a request; returns its response, undefined if indeterminate, and both times. */
  async send(request: Request): Promise<RecordedResponse> {
    const start = performance.now()
    const { body, headers = {}, method = "GET", path, url } = request
    const xml = typeof body === "string" ? { "content-type": "application/xml" } : {}
    const sent = {
      method,
      headers: { ...xml, ...headers },
      timeoutMs: answerWithinMs,
      ...body === undefined ? {} : { body }
    }
    let isSent = url !== noNode
    const answer = isSent
      ? await send(url, path, sent).catch((error: unknown) => {
        isSent = !wasNotSent(error)
        return undefined
      })
      : undefined
    const end = performance.now()
    if (!isSent) {
      await pause(refusedPauseMs)
      return { answer, isSent, start, end }
    }
    if (answer === undefined || answer.status >= 500) {
      this.indeterminate += 1
      if (answer !== undefined) {
        this.failed += 1
        this.recentFailures.push(`${method} ${path}: ${answer.status}: ${answer.text}`)
        if (this.recentFailures.length > recentFailuresMax) this.recentFailures.shift()
      }
      return { answer: undefined, isSent, start, end }
    }
    this.acknowledged += 1
    return { answer, isSent, start, end }
  }

  /**
   * Sends a request and records its outcome. `read` parses the output from the response, and
   * returns `refused` for a request without effect. A GET without a response changes nothing.
   */
  async invoke<Input, Output>(
    into: Array<Operation<Input, Output>>,
    operation: Invocation<Input>,
    request: Request,
    read: (answer: Answer) => Output | "refused"
  ): Promise<{ readonly answer: Answer; readonly output: Output } | undefined> {
    const { answer, end, isSent, start } = await this.send(request)
    if (!isSent) return undefined
    if (answer === undefined) {
      if ((request.method ?? "GET") !== "GET") {
        into.push({ ...operation, start, end: Infinity, outcome: "info" })
      }
      return undefined
    }
    const output = this.readOutput(request, answer, read)
    if (output === undefined) return undefined
    if (output === "refused") {
      into.push({ ...operation, start, end, outcome: "fail" })
      return undefined
    }
    into.push({ ...operation, output, start, end, outcome: "ok" })
    return { answer, output }
  }

  private readOutput<Output>(
    { method = "GET", path }: Request,
    answer: Answer,
    read: (answer: Answer) => Output | "refused"
  ): Output | "refused" | undefined {
    try {
      // The service may limit the rate of a client.
      return answer.status === 429 ? "refused" : read(answer)
    } catch (error) {
      this.violations.push(`${method} ${path}: ${answer.status} ${String(error)}`)
      return undefined
    }
  }
}

/** The output for a status; throws for any other status. */
export const byStatus = <Output>(
  answer: Answer,
  outputs: Readonly<Record<number, () => Output>>
): Output => {
  const output = outputs[answer.status]
  if (output === undefined) throw new Error(`is not expected: ${answer.text.slice(0, 400)}`)
  return output()
}

/** The outputs of a removed resource, and of a change that succeeded. */
export const gone = (): { readonly _tag: "Gone" } => ({ _tag: "Gone" })
export const done = (): { readonly _tag: "Done" } => ({ _tag: "Done" })
