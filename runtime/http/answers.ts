/** The answers of the HTTP face to what an ask resulted in. */
import { isRefusal, type Refusal } from "../actor/index.ts"
import { ActorError, ActorUnavailable, CommitRejected,
  InvalidMessage } from "../definition/index.ts"
import { answerHeaders, problemResponse } from "./problem.ts"

/** Characters of a detail of another node, at most. */
const detailCharsMax = 1_000

/** One message that was sent to an actor. */
export interface SentMessage {
  /** `<kind>/<id>` */
  readonly key: string
  readonly tag: string
  readonly isQuery: boolean
}

/** Statuses of refusals, by their reason. */
export type RefusalStatuses = Readonly<Record<string, number>>

const refusalResponse = (
  { key, tag }: SentMessage,
  refusal: Refusal,
  statuses: RefusalStatuses
): Response => {
  const { detail, reason } = refusal
  return problemResponse("refused", {
    detail: `${key} refused ${tag}, ${reason}: ${
      detail ?? "its state does not allow it. Read its state before you send it again"
    }`,
    outcome: "refused",
    // A reason may be called as what every object has.
    ...(Object.hasOwn(statuses, reason) ? { status: statuses[reason] ?? 409 } : {}),
    // Data is for programs, as the reason is.
    members: { reason, ..."data" in refusal && { data: refusal.data } }
  })
}

/** The answer to a message with its reply; a refusal is a problem. */
export const replyResponse = (
  sent: SentMessage,
  reply: unknown,
  statuses: RefusalStatuses
): Response => {
  if (isRefusal(reply)) return refusalResponse(sent, reply, statuses)
  if (reply === undefined) return new Response(null, { status: 204, headers: answerHeaders })
  return new Response(jsonOf(reply), {
    headers: { ...answerHeaders, "content-type": "application/json" }
  })
}

/** Throws a TypeError for what JSON has no text for: a reply is a JSON value by its type. */
const jsonOf = (value: unknown): string => {
  const text: string | undefined = JSON.stringify(value)
  if (text === undefined) throw new TypeError("the reply is not a JSON value: correct its cell")
  return text
}

/** The tag of the runtime's own failure behind an error. */
const causeOf = ({ cause }: ActorError): string =>
  typeof cause === "object" && cause !== null && "_tag" in cause ? String(cause._tag) : ""

const unknownOutcome = ({ isQuery, key, tag }: SentMessage, reason: string): Response =>
  problemResponse("outcome-unknown", {
    detail: isQuery
      ? `${key} did not answer ${tag}: ${reason}. Ask again, since a query changes nothing`
      : `It is not known whether ${key} processed ${tag}: ${reason}. It may have, so repeat ` +
        "the message only if the actor recognizes a repetition, such as by a key in it",
    outcome: "indeterminate"
  })

const unavailable = ({ key }: SentMessage, { cause, retryAfterMs }: ActorUnavailable): Response => {
  // The runtime's own failure, which has a tag.
  const { _tag: tag } = cause as { readonly _tag?: string }
  const reason = tag === "NoOwner"
    ? "no node serves it now"
    : tag === "Quarantined"
    ? "it failed too often"
    : "too many messages wait for it"
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1_000))
  return problemResponse("unavailable", {
    detail: `${key} takes no message: ${reason}. Nothing changed; try again in ${seconds} s`,
    outcome: "unchanged",
    headers: { "retry-after": String(seconds) },
    members: { retryAfterMs }
  })
}

/** Why an outcome is unknown, by the tag of the runtime's failure. */
const unknownReasons: ReadonlyMap<string, string> = new Map([
  ["AskTimeout", "it did not answer in time"],
  ["StorageCorrupted", "its store is corrupted, and may have kept the change"],
  ["StorageFull", "its store is full, and may have kept the change"],
  ["MessageTooLarge", "the message or its reply is larger than the nodes send"]
])

/**
 * The answer to a message that failed. The details of a store stay within the service: they name
 * its folders and servers.
 */
export const failureResponse = (sent: SentMessage, error: unknown): Response => {
  const { key, tag } = sent
  if (error instanceof InvalidMessage) {
    return problemResponse("invalid-message", {
      detail: error.message.slice(0, detailCharsMax),
      outcome: "unchanged"
    })
  }
  if (error instanceof ActorUnavailable) return unavailable(sent, error)
  if (error instanceof CommitRejected) {
    return problemResponse("not-stored", {
      detail: `${key} could not store what it decided on ${tag}: nothing changed. ` +
        "Ask the operator to check the store",
      outcome: "unchanged"
    })
  }
  if (error instanceof ActorError && error.outcome === "unchanged") {
    return problemResponse("failed", {
      detail: `${key} failed on ${tag} and changed nothing: the log of the service has the ` +
        "cause. Report it to the operator",
      outcome: "unchanged"
    })
  }
  const cause = error instanceof ActorError ? causeOf(error) : ""
  return unknownOutcome(sent, unknownReasons.get(cause) ?? "its store did not answer")
}

/** The answer to a message whose reply has no JSON. */
export const unreadableReply = ({ key, tag }: SentMessage): Response =>
  problemResponse("failed", {
    detail: `${key} has processed ${tag}, but its reply is not JSON: do not repeat the message. ` +
      "Report it to the operator",
    outcome: "committed"
  })
