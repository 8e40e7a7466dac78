/** The answers that the protocol gives as 406 with the element `p` instead of a problem. */
import { html, type PageLink, renderPage } from "../../formats/html/index.ts"
import { contentTypeOf, type MediaType, negotiate, standardTypes } from "../../formats/index.ts"
import { element, writeDocument } from "../../formats/xml/index.ts"
import type { Call, HandlerAnswer } from "../../pipeline/index.ts"

const bodyIn = (type: MediaType, p: string, back: PageLink, path: string): string => {
  switch (type) {
    case "application/json":
      return `${JSON.stringify({ p })}\n`
    case "text/plain":
      return `${p}\n`
    case "text/html":
      return renderPage({
        title: "Not accepted",
        path,
        body: html`<blockquote><p>${p}</p></blockquote>`,
        links: [back]
      })
    default:
      return writeDocument(element("p", {}, p))
  }
}

/** 406 with what the bridge-keeper says; `back` is where its page leads (protocol §2). */
export const rejection = (call: Call, p: string, back: PageLink): HandlerAnswer => {
  const type = negotiate(call.request.headers.get("accept"), standardTypes) ?? "application/xml"
  return {
    _tag: "Plain",
    status: 406,
    headers: [
      ["Content-Type", contentTypeOf(type)],
      ["Vary", "Accept"],
      ["Cache-Control", "no-store"]
    ],
    body: bodyIn(type, p, back, call.request.path)
  }
}
