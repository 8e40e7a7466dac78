/** The content of a post, for tests that stand in for the outbound client. */
import { Effect } from "effect"
import type { OutboundContent, OutboundPost } from "../../actors/outbound/protocol.ts"

export const contentOf = (post: OutboundPost): Effect.Effect<OutboundContent | undefined> =>
  Effect.suspend(() => {
    const loaded = "load" in post ? post.load() : post
    return Effect.isEffect(loaded) ? loaded : Effect.succeed(loaded)
  })
