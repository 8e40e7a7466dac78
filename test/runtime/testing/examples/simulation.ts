import { address } from "../../../../runtime/index.ts"
import { simulate } from "../../../../runtime/testing/index.ts"
import { concert } from "./tickets.ts"

const concerts = ["jazz", "opera"].map((id) => address("concert", id))

/** Rejects with a report of the first seed that fails. */
export const simulateConcerts = (seeds: number) =>
  simulate({
    behaviors: [concert],
    clients: (draw) => ({
      to: draw.pick(concerts),
      message: draw.chance(0.7)
        ? { _tag: "Buy", buyer: `buyer-${draw.below(20)}` }
        : { _tag: "Read" },
      attempts: 3
    }),
    model: "table",
    invariants: [{
      name: "no seat is sold twice",
      always: ({ stateOf }, changed) => {
        const { sold } = stateOf<{ readonly sold: ReadonlyArray<string> }>(changed)
        return sold.length > 10 ? `${changed.id} has sold ${sold.length} seats` : undefined
      }
    }],
    seeds
  })
