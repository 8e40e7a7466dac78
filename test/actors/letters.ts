/** What a posting would send, as outbound clients of tests ask for it. */
import { Effect } from "effect"
import type { Letter, Posting } from "../../actors/delivery/protocol.ts"

export const letterOf = (posting: Posting): Effect.Effect<Letter | undefined> =>
  Effect.suspend(() => {
    const made = "letter" in posting ? posting.letter() : posting
    return Effect.isEffect(made) ? made : Effect.succeed(made)
  })
