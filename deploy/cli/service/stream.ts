/** A mailbox's live stream, followed over restarts of its service (protocol §1.2, A11). */
import { Effect, Redacted, Result } from "effect"
import { Sse } from "effect/encoding"
import { childOf, parseText, textOf } from "../../../http/index.ts"
import { CommandFailed, exitCodes } from "../../command-failure.ts"
import { failed, notUnderstood, refusedBy, type RemoteService, unreachable } from "./remote.ts"

/** Four times the service's heartbeat: a stream that is silent for so long is dead. */
const silenceMs = 60_000

const backoffMsFirst = 250

const backoffMsMax = 10_000

/** A notification as its stream tells it. */
export interface StreamedNotification {
  readonly href: string
  readonly received: string
  readonly description: string
  readonly url: string
}

const receivedOf = (data: string): StreamedNotification => {
  const parsed = parseText(data)
  if (!parsed.ok) throw notUnderstood()
  const item = childOf(parsed.value, "item")
  const field = (name: string): string => {
    const child = item === undefined ? undefined : childOf(item, name)
    return child === undefined ? "" : textOf(child)
  }
  return {
    href: parsed.value.attributes["href"] ?? "",
    received: parsed.value.attributes["received"] ?? "",
    description: field("description"),
    url: field("url")
  }
}

const refusals: Readonly<Record<number, string>> = {
  401: "reading this mailbox needs its password (--password), its secret URI or its owner's token",
  403: "this account may not read the mailbox",
  404: "there is no such mailbox, or the secret part of its URI is wrong",
  410: "the mailbox has been deleted"
}

/** Where a stream is, and who hears of it. */
interface Following {
  readonly remote: RemoteService
  readonly path: string
  readonly since: string | undefined
  lastId: string | undefined
  readonly onOpen: () => void
  readonly onReceived: (received: StreamedNotification) => void
}

const connect = async (
  { lastId, path, remote, since }: Following,
  signal: AbortSignal
): Promise<ReadableStream<Uint8Array>> => {
  const { authorization, baseUrl } = remote
  const query = since === undefined ? "" : `?since=${encodeURIComponent(since)}`
  const response = await fetch(`${baseUrl}${path}${query}`, {
    headers: {
      // A refusal comes as JSON: no other type is left for it.
      accept: "text/event-stream, application/problem+json;q=0.1",
      ...authorization === undefined ? {} : { authorization: Redacted.value(authorization) },
      ...lastId === undefined ? {} : { "last-event-id": lastId }
    },
    redirect: "error",
    signal
  })
  const { body, headers, status } = response
  if (status !== 200) throw refusedBy(status, await response.text(), refusals[status])
  if (body === null || headers.get("content-type")?.startsWith("text/event-stream") !== true) {
    throw notUnderstood()
  }
  return body
}

/** Follows one connection to its end; throws a CommandFailed, or what broke it. */
const follow = async (following: Following, interrupted: AbortSignal): Promise<void> => {
  const silence = new AbortController()
  const timer = setTimeout(() => silence.abort(new Error("nothing came")), silenceMs)
  const parser = Sse.makeParser((event) => {
    if (event._tag !== "Event") return
    if (event.event === "gone") throw failed(refusals[410] ?? "")
    if (event.event !== "notification") return
    following.onReceived(receivedOf(event.data))
    following.lastId = event.id ?? following.lastId
  })
  try {
    const body = await connect(following, AbortSignal.any([interrupted, silence.signal]))
    following.onOpen()
    const decoder = new TextDecoder()
    for await (const chunk of body) {
      timer.refresh()
      const tooLarge = parser.feed(decoder.decode(chunk, { stream: true }))
      if (tooLarge !== undefined) throw notUnderstood()
    }
  } finally {
    clearTimeout(timer)
    silence.abort()
  }
}

/** Who hears of what a mailbox's stream brings. */
export interface StreamListener {
  readonly received: (one: StreamedNotification) => void
  /** Whether the service answers, after it did not, or no longer. */
  readonly answers: (does: boolean) => void
}

/**
 * Tells each notification of a mailbox, from `since` or its beginning on, and does not end by
 * itself. Fails with 75 when the service does not answer at first; later it is asked again and
 * again. Fails with 1 when the mailbox is not to be read, or is deleted.
 */
export const watchMailbox = Effect.fnUntraced(function*(
  remote: RemoteService,
  path: string,
  since: string | undefined,
  { answers, received }: StreamListener
): Effect.fn.Return<never, CommandFailed> {
  let state: "new" | "open" | "lost" = "new"
  let backoffMs = backoffMsFirst
  const following: Following = {
    remote,
    path,
    since,
    lastId: undefined,
    onReceived: received,
    onOpen: () => {
      if (state === "lost") answers(true)
      state = "open"
      backoffMs = backoffMsFirst
    }
  }
  for (;;) {
    const ended = yield* Effect.result(Effect.tryPromise({
      try: (interrupted) => follow(following, interrupted),
      catch: (cause) => cause instanceof CommandFailed ? cause : unreachable(remote, cause)
    }))
    if (Result.isFailure(ended)) {
      const { exitCode } = ended.failure
      if (state === "new" || exitCode !== exitCodes.unavailable) return yield* ended.failure
    }
    if (state !== "lost") answers(false)
    state = "lost"
    yield* Effect.sleep(backoffMs)
    backoffMs = Math.min(backoffMs * 2, backoffMsMax)
  }
})
