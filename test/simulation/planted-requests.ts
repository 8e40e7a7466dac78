/**
 * Planted bugs in the handling of requests whose outcome is not known: of blobs, idempotency keys
 * and sessions. Each has been a real one.
 */
import { Effect } from "effect"
import { contentKind, idempotencyKind, sessionKind } from "../../actors/index.ts"
import type { ContentMessage, ContentReply } from "../../actors/content/index.ts"
import type { SessionReply } from "../../actors/session/protocol.ts"
import type { Service } from "../../http/pipeline/index.ts"
import { type Address, type DecisionContext, isRefusal, type Peers } from "../../runtime/index.ts"
import { withCell } from "./planted-cells.ts"
import type { WorldSeams } from "./world.ts"

type Ask = Peers["ask"]

/** The blob that a message brings to a content. */
const broughtBlob = ({ kind }: Address, message: { readonly _tag: string }): string | undefined => {
  if (kind !== contentKind) return undefined
  // Messages to contents have the types of their protocol.
  const sent = message as ContentMessage
  return sent._tag === "Publish" || sent._tag === "Overwrite" ? sent.body.blobId : undefined
}

/** The service with another way to ask actors. */
const asking = (change: (service: Service, ask: Ask) => Ask): WorldSeams => ({
  service: (service) => {
    const { system } = service
    return {
      ...service,
      system: {
        ...system,
        ask: change(service, system.ask),
        askNew: change(service, system.askNew)
      }
    }
  }
})

/** A blob is removed when the outcome of its commit is unknown. */
const removedInDoubt = asking(({ blobs }, ask) => (to, message) => {
  const blobId = broughtBlob(to, message)
  return blobId === undefined
    ? ask(to, message)
    : Effect.tapError(ask(to, message), () => Effect.ignore(blobs.remove(blobId)))
})

/** A recognized repetition removes the blob that the content has, not the one that it brought. */
const heldRemoved = asking(({ blobs }, ask) => (to, message) => {
  const blobId = broughtBlob(to, message)
  return blobId === undefined ? ask(to, message) : Effect.tap(ask(to, message), (answer) => {
    // The replies of contents have the types of their protocol.
    const reply = answer as ContentReply
    return !isRefusal(answer) && reply._tag === "Published" && reply.body.blobId !== blobId
      ? Effect.ignore(blobs.remove(reply.body.blobId))
      : Effect.void
  })
})

/** A request with an unknown outcome frees its key. */
const keyAbandoned = withCell(idempotencyKind, "Begun", "Interrupt", (_, cells) => {
  const abandon = cells["Begun"]?.["Abandon"]
  if (abandon === undefined) throw new RangeError("a key cannot be abandoned")
  return (state, message, context) =>
    abandon({ ...state, isIndeterminate: undefined, stored: undefined }, message, context)
})

/** The signal of a lost commit proves that a deposit was stored. */
const lostSignalBelieved = withCell(
  idempotencyKind,
  "Begun",
  "TimerFired",
  (cell) => (state, message, context) =>
    // The runtime passes a `DecisionContext` to each cell.
    cell(state, message, { ...context as DecisionContext, isSignalDurable: true })
)

/** A session that is over by an answer of unknown outcome refuses this answer. */
const ownEndRefused = asking((_, ask) => (to, message) =>
  to.kind !== sessionKind || message._tag !== "Answer" ? ask(to, message) : Effect.catch(
    ask(to, message),
    (failure) =>
      Effect.flatMap(ask(to, { _tag: "Describe" }), (answer) => {
        // The replies of sessions have the types of their protocol.
        const reply = answer as SessionReply
        const isOver = !isRefusal(answer) && reply._tag === "Described" &&
          (reply.view.status === "crossed" || reply.view.status === "cast")
        return isOver
          ? Effect.succeed({ _tag: "Refused", reason: "Ended", detail: undefined })
          : Effect.fail(failure)
      })
  )
)

/** The planted bugs by name. */
export const plantedRequests: Readonly<Record<string, WorldSeams>> = {
  "blob-removed-in-doubt": removedInDoubt,
  "held-blob-removed": heldRemoved,
  "key-abandoned": keyAbandoned,
  "lost-signal-believed": lostSignalBelieved,
  "own-end-refused": ownEndRefused
}
