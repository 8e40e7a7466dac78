/** The content of a post, for tests that stand in for the outbound client. */
import { Effect } from "effect"
import type { OutboundContent, OutboundPost, TextContent } from "../../actors/outbound/protocol.ts"

export const contentOf = (post: OutboundPost): Effect.Effect<OutboundContent | undefined> =>
  Effect.suspend(() => {
    const loaded = "load" in post ? post.load() : post
    return Effect.isEffect(loaded) ? loaded : Effect.succeed(loaded)
  })

/** The content of a post whose body is text, as of all posts but those to browsers. */
export const textContentOf = (post: OutboundPost): Effect.Effect<TextContent | undefined> =>
  Effect.map(contentOf(post), (content) => {
    if (content === undefined) return undefined
    const { body } = content
    if (typeof body !== "string") throw new Error("the body of a post is no text")
    return { ...content, body }
  })
