/** The two kinds of background tasks: to fetch content (A3), and to send a receipt (A4). */
import { Clock, Effect, Semaphore } from "effect"
import { buffer } from "node:stream/consumers"
import { type AskFailure, isRefusal, type Peers, type Refusal,
  type StorageFailure } from "../../runtime/index.ts"
import { askContent, type ContentMessage, type ContentReply } from "../content/index.ts"
import { cachedBytesDefault, cachedBytesMax, fetchMemoryRetryMs, passwordChecksMax,
  receiptDescriptionCharsMax, wrongAttemptsWindowMs } from "../limits.ts"
import type { OwnerSettings } from "../mailbox/index.ts"
import type { BodyMemory, Deferred, DeliveryFailure, DeliveryOutcome, Fetched, FetchOutcome,
  RequestBounds } from "../outbound/index.ts"
import { askerOf } from "../schemas.ts"
import { sha256 } from "../secret-hash.ts"
import { beginningOf } from "../text/index.ts"
import { throttleKind, type ThrottleMessage, type ThrottleReply } from "../throttle/index.ts"
import type { BackgroundTaskDependencies, OutgoingReceipt, Pointer } from "./protocol.ts"

/** The parts of the notification and mailbox that a task reads. */
export interface TaskInput {
  readonly pointer: Pointer
  /** URI of the mailbox. */
  readonly mailbox: string
  readonly settings: OwnerSettings
  /** Random part of the notification's id: names derived from it cannot be guessed. */
  readonly key: string
  /** Where its requests may go. */
  readonly bounds: RequestBounds
  /** The depositor that a wrong message password counts for. */
  readonly guesser: string
}

/** What bounds a fetch. */
export interface FetchResources {
  /** Counts the bytes of this fetch. */
  readonly memory: BodyMemory
  /** Bounds the passwords that a node checks before one of them can count as wrong. */
  readonly passwords: Semaphore.Semaphore
}

export const passwordChecks = (): Semaphore.Semaphore => Semaphore.makeUnsafe(passwordChecksMax)

/** The access to a message's content that its password gives. */
export const accessOf = ({ password }: Pointer) =>
  password === undefined ? {} : { passwordHash: sha256(password) }

/** The outcome of a refusal by content of this service: that of its status code. */
const outcomeOf = ({ reason }: Refusal): DeliveryFailure => {
  switch (reason) {
    case "Gone":
      return { _tag: "PermanentFailure", code: 410, problem: "the content was deleted" }
    case "Unauthenticated":
    case "Forbidden":
      return { _tag: "PermanentFailure", code: 401, problem: "the message password is wrong" }
    case "Full":
    case "Busy":
      return { _tag: "RetryableFailure", code: 503, problem: "the content is full or busy" }
    default:
      return { _tag: "PermanentFailure", code: 404, problem: "there is no such content" }
  }
}

const tooLarge = (bytesMax: number): DeliveryFailure => ({
  _tag: "PermanentFailure",
  problem: `the content is larger than ${bytesMax} bytes`
})

/** There is no room for the bytes of a fetch: it is repeated later, and not counted. */
export const memoryDeferred: Effect.Effect<Deferred> = Effect.map(
  Clock.currentTimeMillis,
  (nowMs) => ({ _tag: "Deferred", untilMs: nowMs + fetchMemoryRetryMs })
)

const askThrottle = askerOf<ThrottleMessage, ThrottleReply>(throttleKind)

/**
 * Describes content with the password of the notification. Whoever reads the mailbox sees by the
 * copy that the password is right. So wrong ones count by depositor, as direct guesses do by
 * address, and over the limit the fetch waits: no password is checked, and none is lost.
 */
const describeByPassword = Effect.fnUntraced(function*(
  { random }: BackgroundTaskDependencies,
  peers: Peers,
  { guesser, pointer }: TaskInput,
  id: string
): Effect.fn.Return<ContentReply | Refusal | Deferred, AskFailure> {
  const throttleId = sha256(`deposited passwords\n${guesser}`)
  const check = yield* askThrottle(peers, throttleId, { _tag: "Check", of: "passwords" })
  if (isRefusal(check)) throw new Error(`the throttle refused: ${check.reason}`)
  if (check.waitMs > 0) {
    // Spread, so that many that wait are not all repeated at once.
    const waitMs = check.waitMs + Math.floor(random() * wrongAttemptsWindowMs)
    return { _tag: "Deferred", untilMs: (yield* Clock.currentTimeMillis) + waitMs }
  }
  const reply = yield* askContent(peers, id, { _tag: "Describe", access: accessOf(pointer) })
  if (isRefusal(reply) && reply.reason === "Unauthenticated") {
    yield* askThrottle(peers, throttleId, { _tag: "RecordFailure", of: "passwords" })
  }
  return reply
})

const fetchOwn = Effect.fnUntraced(function*(
  deps: BackgroundTaskDependencies,
  peers: Peers,
  { memory, passwords }: FetchResources,
  input: TaskInput,
  id: string,
  bytesMax: number
): Effect.fn.Return<FetchOutcome, AskFailure | StorageFailure> {
  const { pointer } = input
  const reply = yield* pointer.password === undefined
    ? askContent(peers, id, { _tag: "Describe", access: {} })
    : passwords.withPermits(1)(describeByPassword(deps, peers, input, id))
  if (reply._tag === "Deferred") return reply
  if (isRefusal(reply)) return outcomeOf(reply)
  if (reply._tag !== "Described") throw new Error(`content replied ${reply._tag}`)
  const { blobId, lengthBytes, type } = reply.view.body
  if (lengthBytes > bytesMax) return tooLarge(bytesMax)
  if (!memory.reserve(lengthBytes)) return yield* memoryDeferred
  const source = yield* deps.blobs.open(blobId).pipe(
    Effect.catchTag("BlobMissing", () => Effect.succeed(undefined))
  )
  if (source === undefined) {
    return { _tag: "RetryableFailure", problem: "the content is being replaced" }
  }
  return yield* Effect.tryPromise(() => buffer(source)).pipe(Effect.match({
    // A receipt may show this problem to others: it has no detail of the store.
    onFailure: (): FetchOutcome => ({
      _tag: "RetryableFailure",
      problem: "the store could not read the content"
    }),
    onSuccess: (bytes): FetchOutcome => {
      const fetched: Fetched = { uri: pointer.url, code: 200, type, bytes }
      return { _tag: "Fetched", fetched }
    }
  }))
})

/** Fetches the content, up to the mailbox's limit; `memory` counts its bytes. */
export const fetchContent = (
  deps: BackgroundTaskDependencies,
  peers: Peers,
  resources: FetchResources,
  input: TaskInput
): Effect.Effect<FetchOutcome, AskFailure | StorageFailure> => {
  const { bounds, pointer, settings } = input
  const bytesMax = Math.min(settings.fetchLimitBytes ?? cachedBytesDefault, cachedBytesMax)
  const id = deps.links.contentOf(pointer.url)
  const headers = pointer.password === undefined ? {} : { "Message-Password": pointer.password }
  return id === undefined
    ? deps.outbound.get({
      uri: pointer.url,
      headers: { Accept: "*/*", ...headers },
      bytesMax,
      memory: resources.memory,
      ...bounds
    })
    : fetchOwn(deps, peers, resources, input, id, bytesMax)
}

/** Characters of a request id of content; see `Base64Id`. */
const requestIdChars = 22

/** The key of a receipt: a repetition has the same one, and is stored once. */
const receiptKey = (key: string, status: OutgoingReceipt["status"]): string =>
  sha256(`${key} ${status}`)

/** A description that content takes: it refuses a longer one, and half of a surrogate pair. */
const receiptDescription = (problem: string): string =>
  beginningOf(problem, receiptDescriptionCharsMax)

/** Sends a receipt to the message's URI. */
export const sendReceipt = (
  { documents, links, outbound }: BackgroundTaskDependencies,
  peers: Peers,
  { bounds, key, mailbox, pointer }: TaskInput,
  status: OutgoingReceipt["status"],
  problem: string | undefined
): Effect.Effect<DeliveryOutcome, AskFailure> => {
  const receipt: OutgoingReceipt = {
    status,
    mailbox,
    ...problem === undefined ? {} : { description: receiptDescription(problem) }
  }
  const id = links.contentOf(pointer.url)
  if (id === undefined) {
    return outbound.post({
      uri: pointer.url,
      ...bounds,
      headers: {
        "Content-Type": "application/xml; charset=utf-8",
        "Idempotency-Key": `"${receiptKey(key, status)}"`,
        ...pointer.password === undefined ? {} : { "Message-Password": pointer.password }
      },
      body: documents.receiptDocument(receipt)
    })
  }
  const message: ContentMessage = {
    _tag: "Receipt",
    access: accessOf(pointer),
    value: JSON.stringify(receipt),
    requestId: receiptKey(key, status).slice(0, requestIdChars)
  }
  return Effect.map(
    askContent(peers, id, message),
    (reply) => isRefusal(reply) ? outcomeOf(reply) : { _tag: "Delivered", code: 202 }
  )
}
