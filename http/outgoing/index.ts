/** The rows of outgoing mailboxes (protocol §1.3). */
import { Effect } from "effect"
import type { Handler } from "../call.ts"
import { evaluate } from "../preconditions.ts"
import { entityTag } from "../representations.ts"
import { fixed } from "../respond.ts"
import type { Route } from "../routing.ts"
import type { Service } from "../service.ts"
import { getListing, getOwn } from "./listing.ts"
import { deleteOutgoing, formOfOutgoing, getOutgoing, retryOutgoing } from "./notification.ts"
import { collectionPath } from "./place.ts"
import { postReplay } from "./replay.ts"
import { outgoingScript } from "./script.ts"
import { postOutgoing } from "./send.ts"

const scriptTag = entityTag(Buffer.from(outgoingScript))

const script: Handler = {
  handle: ({ request }) =>
    Effect.succeed(
      evaluate(request.method, request.headers, { exists: true, etag: scriptTag }) ===
          "not-modified"
        ? { _tag: "Plain", status: 304, headers: [["ETag", scriptTag]] }
        : fixed("text/javascript", outgoingScript, [
          ["ETag", scriptTag],
          ["Cache-Control", "no-cache"]
        ])
    )
}

export const outgoingRoutes = (service: Service): ReadonlyArray<Route<Handler>> => [
  { pattern: "/outgoing.js", methods: { GET: script } },
  { pattern: collectionPath, methods: { GET: { handle: getOwn(service) } } },
  {
    pattern: `${collectionPath}/{account}`,
    methods: { GET: { handle: getListing(service) }, POST: { handle: postOutgoing(service) } }
  },
  {
    pattern: `${collectionPath}/{account}/retry`,
    methods: { POST: { handle: postReplay(service) } }
  },
  {
    pattern: `${collectionPath}/{account}/{notification}`,
    methods: {
      GET: { handle: getOutgoing(service) },
      POST: { handle: formOfOutgoing(service) },
      DELETE: { handle: deleteOutgoing(service) }
    }
  },
  {
    pattern: `${collectionPath}/{account}/{notification}/retry`,
    methods: { POST: { handle: retryOutgoing(service), body: "none" } }
  }
]
