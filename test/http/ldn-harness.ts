/** A sender and a consumer of Linked Data Notifications. */
import { expect } from "vitest"
import type { Answered, Sending } from "./harness.ts"
import { type Mailboxes, owner } from "./mailbox-harness.ts"

export const ld = "application/ld+json"

export const announce = {
  "@context": "https://www.w3.org/ns/activitystreams",
  "@id": "",
  "@type": "Announce",
  summary: "Alice <b>liked</b> it",
  actor: "https://alice.example/#me",
  object: { "@id": "https://blog.example/post/1" },
  target: "https://bob.example/article"
}

/** Posts a document: an object, or its JSON. */
export const sender = (service: () => Mailboxes) =>
(
  href: string,
  document: unknown,
  options: Sending = {}
): Promise<Answered> =>
  service().send("POST", href, {
    type: ld,
    body: typeof document === "string" ? document : JSON.stringify(document),
    ...options
  })

/** Gets JSON-LD as the owner. */
export const consumer =
  (service: () => Mailboxes) => (href: string, options: Sending = {}): Promise<Answered> =>
    service().send("GET", href, { basic: owner, accept: ld, ...options })

/** The URIs in the JSON-LD listing of an inbox. */
export const contains = (answer: Answered): ReadonlyArray<string> => {
  expect([answer.status, answer.header("content-type")]).toEqual([200, ld])
  // The tests check this shape: another one fails them.
  const { contains: uris } = answer.json as { readonly contains: ReadonlyArray<string> }
  return uris
}

/** The target of each link with a relation. */
export const linked = (answer: Answered, rel: string): ReadonlyArray<string> =>
  [...answer.header("link").matchAll(/<([^>]*)>; rel="([^"]*)"/g)]
    .filter(([, , found]) => found === rel).map(([, target]) => target ?? "")
