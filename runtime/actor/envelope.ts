/**
 * The encoding of messages between nodes, and to any NATS client. A request is the message as JSON,
 * `{"_tag": …}`, with `_format` when that is above 1. The answer is `{"_tag":"Reply","reply":…}` or
 * `{"_tag":"Failure","failure":{"_tag":…}}`; a refusal is a reply.
 */
import { Result, Schema } from "effect"
import type { AnyBehavior, Tagged } from "./behavior.ts"
import { AskFailure, UnknownMessage } from "./errors.ts"
import { firstFormat } from "./format.ts"

const Answer = Schema.Union([
  Schema.Struct({ _tag: Schema.tag("Reply"), reply: Schema.optional(Schema.Unknown) }),
  Schema.Struct({ _tag: Schema.tag("Failure"), failure: AskFailure })
])

const encodeFailure = Schema.encodeSync(AskFailure)

const decodeAnswer = Schema.decodeUnknownResult(Answer)

/** The envelope of a message in a format ({@link DecisionContext.format}). */
export const encodeMessage = (message: Tagged, format: number = firstFormat): string => {
  const text = JSON.stringify(message)
  // A message has a tag, so there is a member before it. A copy of the message would cost more.
  return format === firstFormat ? text : `${text.slice(0, -1)},"_format":${format}}`
}

/** Decodes the message of an envelope with its behavior, by a program that reads up to `format`. */
export const decodeMessage = (
  { decodeMessage: decode }: AnyBehavior,
  key: string,
  envelope: string,
  format: number
): Tagged | UnknownMessage => {
  try {
    const message = JSON.parse(envelope)
    const found = message?._format ?? firstFormat
    if (found > format) {
      const detail = `the message has format ${found}, and this node reads up to ${format}`
      return new UnknownMessage({ key, detail })
    }
    if (found !== firstFormat) delete message._format
    // The decoder of a behavior returns its own message type, and all messages have a tag.
    return decode(message) as Tagged
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : "not a message"
    return new UnknownMessage({ key, detail })
  }
}

/** The answer that carries a reply. */
export const encodeReply = (reply: unknown): string => JSON.stringify({ _tag: "Reply", reply })

/** The answer that carries a failure. */
export const encodeAskFailure = (failure: AskFailure): string =>
  JSON.stringify({ _tag: "Failure", failure: encodeFailure(failure) })

const isReply = (value: unknown): value is { readonly reply?: unknown } =>
  typeof value === "object" && value !== null && "_tag" in value && value._tag === "Reply"

/** Decodes an answer; an unreadable one fails with UnknownMessage of the asked actor. */
export const decodeReply = (key: string, text: string): Result.Result<unknown, AskFailure> => {
  try {
    const value: unknown = JSON.parse(text)
    // Most answers: nothing else of a reply is checked here.
    if (isReply(value)) return Result.succeed(value.reply)
    const answer = decodeAnswer(value)
    if (Result.isSuccess(answer)) {
      return answer.success._tag === "Reply"
        ? Result.succeed(answer.success.reply)
        : Result.fail(answer.success.failure)
    }
  } catch {
    // Not JSON: fails like JSON of another shape.
  }
  return Result.fail(new UnknownMessage({ key, detail: "the answer is not an envelope" }))
}
