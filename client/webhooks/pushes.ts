/**
 * Receiving pushes (protocol §1.4): the document of a push, and the challenge that verifies a
 * callback.
 */
import { type Notification, notificationOf } from "../notifications.ts"
import { InvalidSignature, type JsonObject, listOf, textOf, unexpected,
  xmlToJson } from "../transport/index.ts"
import { type Incoming, invalid, type Verification, verifyHubSignature,
  verifySignature } from "./signatures.ts"

/** A push: the changes of a mailbox since the last acknowledged push. */
export interface Push {
  /** The same for repeated pushes of the same changes; empty in the WebSub form. */
  readonly id: string
  readonly mailbox: string
  /** Continue after this push with `read` or `watch`. */
  readonly cursor: string
  /** In the order of their deposit. */
  readonly notifications: ReadonlyArray<Notification>
  /** URIs of notifications that were removed. */
  readonly removed: ReadonlyArray<string>
  /** Whether the mailbox itself has been deleted. */
  readonly deleted: boolean
  /** Whether it is a test event, which has no changes. A WebSub subscriber cannot tell it. */
  readonly test: boolean
}

/** Reads the document of a push without verifying it. Throws UnexpectedAnswer. */
export const readPush = (body: string, id = ""): Push => {
  const document = xmlToJson(body)
  return {
    id,
    mailbox: textOf(document, "mailbox"),
    cursor: textOf(document, "time"),
    notifications: listOf(document, "notification").map((one) => notificationOf(one)),
    removed: listOf(document, "removed").map((one) => textOf(one, "href")),
    deleted: document["deleted"] !== undefined,
    test: document["test"] === "true"
  }
}

const strictDecoder = (): TextDecoder => new TextDecoder("utf-8", { fatal: true })

const textIn = (bytes: Uint8Array): string => {
  try {
    return strictDecoder().decode(bytes)
  } catch {
    return invalid("malformed", "the body is not UTF-8")
  }
}

const jsonIn = (text: string): JsonObject => {
  try {
    // The readers of its properties check them.
    return JSON.parse(text) as JsonObject
  } catch {
    return unexpected("it is not JSON")
  }
}

/** Reads a mailbox document with new notifications, in XML or JSON. */
const readTopic = (body: string): Push => {
  const document = body.startsWith("{") ? jsonIn(body) : xmlToJson(body)
  return {
    id: "",
    mailbox: textOf(document, "href"),
    cursor: textOf(document, "time"),
    notifications: listOf(document, "notification").map((one) => notificationOf(one)),
    removed: [],
    deleted: false,
    test: false
  }
}

/** Verifies a push of a native registration and reads it. Throws InvalidSignature. */
export const verifyPush = async (
  incoming: Incoming,
  secrets: string | ReadonlyArray<string>,
  verification: Verification = {}
): Promise<Push> => {
  const { body, id } = await verifySignature(incoming, secrets, verification)
  return readPush(textIn(body), id)
}

/**
 * Verifies a push of a WebSub subscription to a mailbox, as XML or JSON, and reads it. A push to
 * such a topic has no removals. Throws InvalidSignature, and UnexpectedAnswer for another topic.
 */
export const verifyHubPush = async (
  incoming: Incoming,
  secrets: string | ReadonlyArray<string>
): Promise<Push> => readTopic(textIn(await verifyHubSignature(incoming, secrets)))

/** A callback. */
export interface PushReceiver {
  /** `whsec_…`; several while the secret changes. A function is called for each push. */
  readonly secrets:
    | string
    | ReadonlyArray<string>
    | (() => string | ReadonlyArray<string> | Promise<string | ReadonlyArray<string>>)
  /** URIs of the mailboxes of this callback; it refuses the challenge of any other. */
  readonly mailboxes: string | ReadonlyArray<string>
  /** Once it resolves, the push is acknowledged; when it rejects, the service repeats the push. */
  readonly onPush: (push: Push) => Promise<void> | void
  readonly toleranceMs?: number | undefined
}

const answer = (status: number, text?: string): Response =>
  new Response(text ?? null, {
    status,
    headers: text === undefined ? {} : { "content-type": "text/plain; charset=utf-8" }
  })

/**
 * A callback as a fetch handler (Deno.serve, workers, Hono and others): it echoes the challenge of
 * its mailboxes, verifies pushes, and acknowledges a push after `onPush` resolves.
 */
export const pushReceiver = ({ mailboxes, onPush, secrets, toleranceMs }: PushReceiver) => {
  const wanted: ReadonlyArray<string> = typeof mailboxes === "string" ? [mailboxes] : mailboxes
  return async (request: Request): Promise<Response> => {
    if (request.method === "GET") {
      const { searchParams } = new URL(request.url)
      const challenge = searchParams.get("hub.challenge")
      const topic = searchParams.get("hub.topic") ?? ""
      return challenge !== null && wanted.includes(topic) ? answer(200, challenge) : answer(404)
    }
    if (request.method !== "POST") return answer(405)
    try {
      const currentSecrets = typeof secrets === "function" ? await secrets() : secrets
      const push = await verifyPush(
        request,
        currentSecrets,
        toleranceMs === undefined ? {} : { toleranceMs }
      )
      if (!wanted.includes(push.mailbox)) return answer(404)
      await onPush(push)
      return answer(204)
    } catch (error) {
      if (error instanceof InvalidSignature) {
        return answer(error.fault === "too-large" ? 413 : 401, error.message)
      }
      return answer(500)
    }
  }
}
