/** What the chat room must hold on a cluster with faults. */
import { Schema } from "@restante/runtime"
import { type ClientAttempt, request, type SimulateOptions,
  withMessage } from "@restante/runtime/testing"
import { chatRoom } from "./index.ts"

const rooms = ["kitchen", "garden"].map((id) => chatRoom(id))

type Room = typeof chatRoom.behavior.initial

const isNamed = Schema.is(Schema.Struct({ name: Schema.String }))

/**
 * Who is shown, though the last that the room can know of the member is that it has left. A member
 * sends one request at a time; one without an answer may still come, so nothing is known after it.
 */
const shownAfterLeaving = (attempts: ReadonlyArray<ClientAttempt>): string | undefined => {
  for (const who of withMessage(attempts, chatRoom, "Who")) {
    for (const name of who.reply ?? []) {
      const own = attempts.filter(({ message, startMs, to }) =>
        to.id === who.to.id && isNamed(message) && message.name === name && startMs < who.endMs
      )
      const isKnown = own.every(({ endMs, outcome }) => outcome !== "info" && endMs < who.startMs)
      const last = own.findLast(({ outcome }) => outcome === "ok")
      if (!isKnown || last?.message._tag !== "Leave") continue
      return `${name} left ${who.to.id} at ${last.endMs} ms, and is shown at ${who.endMs} ms`
    }
  }
  return undefined
}

/** The first text that was accepted as a number of the log that has not its key. */
const lostText = (
  attempts: ReadonlyArray<ClientAttempt>,
  keysOf: (room: string) => ReadonlyMap<number, string>
): string | undefined => {
  for (const { message, reply, to } of withMessage(attempts, chatRoom, "Say")) {
    if (typeof reply !== "number") continue
    if (keysOf(to.id).get(reply) !== message.key) return `${to.id} has lost ${message.key}`
  }
  return undefined
}

/** Members that come, talk and go. In the end one stays and one leaves. */
export const chatSimulation = {
  behaviors: [chatRoom],
  clients: (draw, { client, number }) => {
    const name = `member-${client}`
    const say = { _tag: "Say", name, text: `text ${number}`, key: `key-${number}` } as const
    return request(
      draw.pick(rooms),
      draw.pick(
        [{ _tag: "Enter", name }, { _tag: "Leave", name }, say, say, { _tag: "Who" }] as const
      ),
      { attempts: 3 }
    )
  },
  isAtRest: ({ stateOf }) => rooms.every((room) => stateOf<Room>(room).present.length === 0),
  lastRequests: rooms.flatMap((to) =>
    ([
      { _tag: "Enter", name: "ann" },
      { _tag: "Enter", name: "ben" },
      { _tag: "Leave", name: "ann" },
      { _tag: "Who" }
    ] as const).map((message) => request(to, message, { attempts: 3 }))
  ),
  model: "table",
  invariants: [
    { name: "who has left is not shown", atRest: ({ attempts }) => shownAfterLeaving(attempts) },
    {
      name: "who is present is shown",
      atRest: ({ attempts }) =>
        withMessage(attempts.slice(-4 * rooms.length), chatRoom, "Who")
          .find(({ reply }) => reply?.join() !== "ben")?.to.id
    },
    {
      name: "an accepted text is in the log once",
      atRest: ({ attempts, logOf }) => {
        const entriesOf = (id: string) =>
          logOf(chatRoom(id)).map(({ n, value }) => [n, chatRoom.decodeItem(value).key] as const)
        for (const { id } of rooms) {
          const keys = entriesOf(id).map(([, key]) => key)
          if (new Set(keys).size < keys.length) return `${id} has a text twice: ${keys}`
        }
        return lostText(attempts, (id) => new Map(entriesOf(id)))
      }
    }
  ]
} satisfies SimulateOptions
