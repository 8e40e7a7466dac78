/** What a posting would send, as outbound clients of tests ask for it. */
import { Effect } from "effect"
import type { OutboundContent, Posting } from "../../actors/outbound/protocol.ts"

export const letterOf = (posting: Posting): Effect.Effect<OutboundContent | undefined> =>
  Effect.suspend(() => {
    const made = "letter" in posting ? posting.letter() : posting
    return Effect.isEffect(made) ? made : Effect.succeed(made)
  })
