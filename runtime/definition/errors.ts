/**
 * The errors of the Promise face. Each says what happened, to what, and what to do; `outcome` says
 * whether the message may have changed the actor. A refusal is not an error: it is a reply.
 */
import { type AskFailure, isIndeterminate, UnknownMessage } from "../actor/index.ts"

/** Whether a message that failed can have changed anything. */
export type FailedOutcome = "unchanged" | "indeterminate"

/** Any failure of a message. Its `cause` is the runtime's own failure, where there is one. */
export abstract class ActorError extends Error {
  abstract readonly outcome: FailedOutcome
}

/** The message is not one of the actor's; nothing was sent or changed. */
export class InvalidMessage extends ActorError {
  override readonly name = "InvalidMessage"
  readonly outcome = "unchanged"
}

/** The actor takes no messages at the moment; nothing changed. Try again after `retryAfterMs`. */
export class ActorUnavailable extends ActorError {
  override readonly name = "ActorUnavailable"
  readonly outcome = "unchanged"
  readonly retryAfterMs: number

  constructor(message: string, retryAfterMs: number, cause: unknown) {
    super(message, { cause })
    this.retryAfterMs = retryAfterMs
  }
}

/** The commit can never be stored, or the store takes no more; nothing changed. */
export class CommitRejected extends ActorError {
  override readonly name = "CommitRejected"
  readonly outcome = "unchanged"
}

/**
 * A cell threw an error, or replied with what is no JSON value: nothing changed, and the actor
 * starts again from its stored state.
 */
export class ActorFailed extends ActorError {
  override readonly name = "ActorFailed"
  readonly outcome = "unchanged"
}

/**
 * There was no answer: the actor may have processed the message, or not. Repeat it only if the
 * actor recognizes a repetition, such as by a key in the message.
 */
export class OutcomeUnknown extends ActorError {
  override readonly name = "OutcomeUnknown"
  readonly outcome = "indeterminate"
}

/** The store did not return the items of a log. Read it again, from the last item that came. */
export class LogUnreadable extends Error {
  override readonly name = "LogUnreadable"
}

/** The node cannot start, because its store cannot be opened. */
export class NodeStartFailed extends Error {
  override readonly name = "NodeStartFailed"
}

/** Why it is not known whether a message was processed. */
const doubtOf = (failure: AskFailure): string => {
  switch (failure._tag) {
    case "AskTimeout":
      return `there was no answer in ${failure.deadlineMs} ms`
    case "MessageTooLarge":
      return `the message or its reply has more than ${failure.bytesMax} bytes`
    default:
      return "detail" in failure ? failure.detail : failure._tag
  }
}

const outcomeUnknown = (key: string, failure: AskFailure): OutcomeUnknown =>
  new OutcomeUnknown(
    `it is not known whether ${key} processed the message: ${doubtOf(failure)}. ` +
      "Repeat it only if the actor recognizes a repetition",
    { cause: failure }
  )

/** The error for a failed message to the actor with this key. */
export const errorOf = (key: string, failure: AskFailure): ActorError => {
  const options = { cause: failure }
  if (isIndeterminate(failure)) return outcomeUnknown(key, failure)
  switch (failure._tag) {
    case "UnknownMessage":
      return new InvalidMessage(
        `${key} does not take this message: ${failure.detail}. Send one of its definition`,
        options
      )
    case "NoOwner":
    case "Overloaded":
    case "Quarantined": {
      const reason = {
        NoOwner: "no node serves it now",
        Overloaded: "too many messages wait for it",
        Quarantined: "it failed too often"
      }[failure._tag]
      const text = `${key} takes no message: ${reason}. Try again in ${failure.retryAfterMs} ms`
      return new ActorUnavailable(text, failure.retryAfterMs, failure)
    }
    case "ActorDefect":
      return new ActorFailed(
        `${key} threw an error on this message: the log has its cause. Correct its table`,
        options
      )
    case "StorageCorrupted":
    case "StorageFull":
    case "ValueTooLarge":
      return new CommitRejected(
        `${key} could not store its decision: ${failure.detail}. Nothing changed; check the store`,
        options
      )
    default:
      return outcomeUnknown(key, failure)
  }
}

/** The failure for the runtime of a message that is not valid. */
export const unknownMessage = (key: string, { message }: InvalidMessage): UnknownMessage =>
  new UnknownMessage({ key, detail: message })
