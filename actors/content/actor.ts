/** Content bound to the runtime and to the store of blobs. */
import { Effect } from "effect"
import type { Behaviour, BlobsApi } from "../../runtime/index.ts"
import { jsonRecord, strictMessage } from "../binding.ts"
import { contentTable } from "./decide.ts"
import { Message, State } from "./protocol.ts"
import type { Action, Reply } from "./protocol.ts"

export const contentKind = "content"

/** The behaviour of content resources; an address's id is chosen at random. */
export const content = (
  blobs: Pick<BlobsApi, "remove">
): Behaviour<State, Message, Reply, Action> => ({
  kind: contentKind,
  initial: { _tag: "Absent" },
  table: contentTable,
  ...jsonRecord(State),
  decodeMessage: strictMessage(Message),
  wakeUp: { _tag: "WakeUp" },
  perform: ({ blobIds }) =>
    Effect.forEach(blobIds, (id) => blobs.remove(id), { discard: true }).pipe(
      Effect.map((): Message => ({ _tag: "BlobsRemoved", blobIds })),
      // The wake-up that was committed with the removal finds it undone.
      Effect.catch((failure) => Effect.logWarning("blobs were not removed", failure))
    )
})
