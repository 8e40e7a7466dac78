/** Push registrations (protocol §1.4), from the view of their clients. */
import { type RecordedAttempt, recordedAttemptOf } from "./attempts/index.ts"
import { pollIntervalMs } from "./limits.ts"
import { defined, type JsonObject, listOf, numberOf, optionalNumber, optionalText, RemoteResource,
  textOf, unexpected } from "./transport/index.ts"

/** A registration in the list of a mailbox. */
export interface RegistrationEntry {
  readonly href: string
  /**
   * `unverified` until the callback has echoed the challenge, then `active`; `suspended` after a
   * week of failures, or `paused`.
   */
  readonly status: string
  /** `native` (Standard Webhooks), `websub`, or `webpush`: a browser. */
  readonly form: string
  /** The endpoint of a browser. */
  readonly callback: string
  /** The topic of a WebSub subscription. */
  readonly topic: string | undefined
  /**
   * The number of the last change that the callback has acknowledged; the list of an older service
   * does not have it.
   */
  readonly cursor: number | undefined
  readonly attempts: number
  readonly last: string | undefined
  readonly next: string | undefined
  /** Status code and problem of the last attempt. */
  readonly code: number | undefined
  readonly problem: string | undefined
}

/** The state of a registration. */
export interface RegistrationInfo extends RegistrationEntry {
  readonly cursor: number
  readonly leaseUntil: string | undefined
  /** The last test event. */
  readonly test: RegistrationTest | undefined
}

/** A test event and what came of it. */
export interface RegistrationTest {
  /** `pending`, `delivered`, `failed`, or `unknown` if the service ended before the answer. */
  readonly status: string
  readonly started: string
  readonly code: number | undefined
  readonly problem: string | undefined
  readonly milliseconds: number | undefined
}

const testOf = (document: JsonObject): RegistrationTest => ({
  status: textOf(document, "status"),
  started: textOf(document, "started"),
  code: optionalNumber(document, "code"),
  problem: optionalText(document, "problem"),
  milliseconds: optionalNumber(document, "milliseconds")
})

export const registrationEntryOf = (document: JsonObject): RegistrationEntry => ({
  href: textOf(document, "href"),
  status: textOf(document, "status"),
  form: textOf(document, "form"),
  callback: textOf(document, "callback"),
  topic: optionalText(document, "topic"),
  cursor: optionalNumber(document, "cursor"),
  attempts: numberOf(document, "attempts"),
  last: optionalText(document, "last"),
  next: optionalText(document, "next"),
  code: optionalNumber(document, "code"),
  problem: optionalText(document, "problem")
})

export const registrationInfoOf = (document: JsonObject): RegistrationInfo => ({
  ...registrationEntryOf(document),
  cursor: numberOf(document, "cursor"),
  leaseUntil: optionalText(document, "lease-until"),
  test: listOf(document, "test").map(testOf)[0]
})

/**
 * One attempt to push to a callback, to verify it, or to test it. What follows may also be
 * `suspended`, `given-up`, or `none`: a test is not repeated.
 */
export interface CallbackAttempt extends RecordedAttempt {
  /** `push`, `verification` or `test`. */
  readonly kind: string
  readonly durationMs: number
}

const attemptOf = (document: JsonObject): CallbackAttempt => ({
  kind: textOf(document, "kind"),
  ...recordedAttemptOf(document),
  durationMs: numberOf(document, "duration")
})

/** A registration, by its URI. No push starts after its deletion. */
export class Registration extends RemoteResource {
  async state(signal?: AbortSignal): Promise<RegistrationInfo> {
    return registrationInfoOf(await this.transport.get(this.href, signal))
  }

  /** The last attempts to push, to verify and to test, the newest first. */
  async attempts(signal?: AbortSignal): Promise<ReadonlyArray<CallbackAttempt>> {
    const document = await this.transport.get(`${this.href}/attempts`, signal)
    return listOf(document, "attempt").map(attemptOf)
  }

  /** Polls until the status is this one; by default, until the callback is verified. */
  async wait(
    { signal, status = "active" }: {
      readonly status?: string | undefined
      readonly signal?: AbortSignal | undefined
    } = {}
  ): Promise<RegistrationInfo> {
    for (;;) {
      const state = await this.state(signal)
      if (state.status === status) return state
      await this.transport.pause(pollIntervalMs, signal)
    }
  }

  /** No push begins until {@link lift}; then they go on from where they stopped. */
  async pause(): Promise<RegistrationInfo> {
    const { document } = await this.transport.put(this.href, { status: "paused" })
    return registrationInfoOf(document)
  }

  /**
   * Lifts a suspension or a pause, pushes at once what waits for its next attempt, and verifies the
   * callback, or another one, again.
   */
  async lift(callback?: string): Promise<RegistrationInfo> {
    const requested = callback === undefined ? {} : { callback }
    return registrationInfoOf((await this.transport.put(this.href, requested)).document)
  }

  /**
   * Pushes go on from a time (RFC 3339) or a position of the mailbox: what came after it is pushed
   * again, and if it is later than the last push, what came before is left out. With `until`, what
   * came after that is not repeated: pushes then go on from where they were.
   */
  async replay(since: string, until?: string): Promise<RegistrationInfo> {
    const { document } = await this.transport.put(this.href, defined({ since, until }))
    return registrationInfoOf(document)
  }

  /**
   * Sends one push without a new change to the callback, also while pushes are suspended or paused,
   * and returns what came of it. It is `pending` when there was no answer in time: {@link state}
   * has it later. It is refused while a push service rejects the endpoint of a browser.
   */
  async test(): Promise<RegistrationTest> {
    const { document } = await this.transport.post(`${this.href}/test`)
    return registrationInfoOf(document).test ?? unexpected("it has no test")
  }

  /** A new secret, which the service shows only once. For a day, pushes are signed with both. */
  async renewSecret(): Promise<string> {
    return textOf((await this.transport.post(`${this.href}/secret`)).document, "secret")
  }
}

/** A registration that has just been created. */
export interface NewRegistration {
  readonly registration: Registration
  /** `whsec_…`: verifies the signatures of its pushes. */
  readonly secret: string
  readonly state: RegistrationInfo
}
