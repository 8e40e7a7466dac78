/** What the service has recorded of an attempt: to push, to verify, or to relay. */
import { type JsonObject, listOf, numberOf, optionalNumber, optionalObject, optionalText,
  textOf } from "../transport/index.ts"

/** The name of a header in lower case, and its value. */
export type RecordedHeader = readonly [name: string, value: string]

/** One attempt. */
export interface RecordedAttempt {
  /** When it began, RFC 3339. */
  readonly at: string
  /**
   * Of the whole attempt, with its redirects; undefined if it is not known, and of a follow-up of a
   * relay to a mailbox of the service.
   */
  readonly durationMs: number | undefined
  /** How many redirects were followed; the rest is of the last request. */
  readonly redirects: number
  /** Status code; undefined without an answer. */
  readonly code: number | undefined
  /** Undefined if the attempt has succeeded. */
  readonly problem: string | undefined
  /** What follows: `done`, `schedule`, `retry-after` (the receiver has asked for the time), … */
  readonly follows: string
  readonly next: string | undefined
  /** Empty if nothing was sent, or if it is not kept. */
  readonly requestHeaders: ReadonlyArray<RecordedHeader>
  /**
   * Undefined without an answer, if it is not kept, or if its address is not public and the reader
   * is no admin.
   */
  readonly answer: {
    readonly headers: ReadonlyArray<RecordedHeader>
    /** Of the body, as far as the service has read it. */
    readonly bytes: number
    /** The first 4 KiB of the body; undefined if they are not text. It is untrusted. */
    readonly text: string | undefined
    readonly isCut: boolean
  } | undefined
}

const headersOf = (part: JsonObject): ReadonlyArray<RecordedHeader> =>
  listOf(part, "header").map((header) => [
    textOf(header, "name"),
    optionalText(header, "text") ?? ""
  ])

const answerOf = (part: JsonObject): NonNullable<RecordedAttempt["answer"]> => ({
  headers: headersOf(part),
  bytes: numberOf(part, "bytes"),
  text: optionalText(part, "body"),
  isCut: optionalText(part, "cut") === "true"
})

export const recordedAttemptOf = (document: JsonObject): RecordedAttempt => {
  const answer = optionalObject(document, "answer")
  const request = optionalObject(document, "request")
  return {
    at: textOf(document, "at"),
    durationMs: optionalNumber(document, "duration"),
    redirects: optionalNumber(document, "redirects") ?? 0,
    code: optionalNumber(document, "code"),
    problem: optionalText(document, "problem"),
    follows: textOf(document, "follows"),
    next: optionalText(document, "next"),
    requestHeaders: request === undefined ? [] : headersOf(request),
    answer: answer && answerOf(answer)
  }
}
