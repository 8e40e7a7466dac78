/** Scripts of pages: what they begin with, and how they are served. */
import { Effect } from "effect"
import type { ResourceHandler } from "../call.ts"
import { evaluate } from "../preconditions.ts"
import { entityTag } from "../representations.ts"
import { fixed } from "../respond.ts"

/**
 * Making nodes of a page. Text from others reaches the page as text only; links are http and https
 * only. `state` is the element that says how live the page is.
 */
export const pageTools = `  const say = (text) => {
    if (state.textContent !== text) state.textContent = text
  }
  const make = (name, text, parent) => {
    const node = document.createElement(name)
    if (text !== undefined) node.textContent = text
    parent.append(node)
    return node
  }
  const link = (href, text, parent) => {
    if (!/^https?:\\/\\//i.test(href)) return make("span", text, parent)
    const node = make("a", text, parent)
    node.href = href
    return node
  }`

/** Serves a script, which changes with the version of the service only. */
export const scriptHandler = (text: string): ResourceHandler => {
  const etag = entityTag(Buffer.from(text))
  return {
    handle: ({ request }) =>
      Effect.succeed(
        evaluate(request.method, request.headers, { exists: true, etag }) === "not-modified"
          ? { _tag: "Plain", status: 304, headers: [["ETag", etag]] }
          : fixed("text/javascript", text, [["ETag", etag], ["Cache-Control", "no-cache"]])
      )
  }
}
