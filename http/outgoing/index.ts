/** The rows of outgoing mailboxes (protocol §1.3). */
import type { ResourceHandler } from "../call.ts"
import { keepingTyped } from "../again.ts"
import { scriptHandler } from "../html/script.ts"
import type { Route } from "../routing.ts"
import type { Service } from "../service.ts"
import { getListing, getOwn, postOwn } from "./listing.ts"
import { deleteOutgoing, formOfOutgoing, getOutgoing, retryOutgoing } from "./notification.ts"
import { composeForm, replayForm } from "./pages.ts"
import { collectionPath, mailboxPath } from "./place.ts"
import { postReplay } from "./replay.ts"
import { outgoingScript } from "./script.ts"
import { postOutgoing } from "./send.ts"

export const outgoingRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  { pattern: "/outgoing.js", methods: { GET: scriptHandler(outgoingScript) } },
  {
    pattern: collectionPath,
    methods: {
      GET: { handle: getOwn(service) },
      POST: { handle: postOwn(service), body: "none" }
    }
  },
  {
    pattern: `${collectionPath}/{account}`,
    methods: {
      GET: { handle: getListing(service) },
      POST: {
        handle: keepingTyped(
          ({ parameters }) => composeForm(mailboxPath(parameters.get("account"))),
          postOutgoing(service)
        )
      }
    }
  },
  {
    pattern: `${collectionPath}/{account}/retry`,
    methods: {
      POST: {
        handle: keepingTyped(
          ({ parameters }) => replayForm(mailboxPath(parameters.get("account"))),
          postReplay(service)
        )
      }
    }
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
