/** The rows of outgoing mailboxes (protocol §1.3). */
import { type ResourceHandler, type Route, scriptHandler, type Service,
  withFormRedisplay } from "../../pipeline/index.ts"
import { collectionPath, mailboxPath } from "./outgoing-access.ts"
import { getListing, getOwn, postOwn } from "./outgoing-listing.ts"
import { deleteOutgoing, formOfOutgoing, getOutgoing,
  retryOutgoing } from "./outgoing-notification.ts"
import { composeForm, outgoingScript, replayForm } from "./outgoing-pages.ts"
import { postReplay } from "./replay.ts"
import { postOutgoing } from "./submission.ts"

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
        handle: withFormRedisplay(
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
        handle: withFormRedisplay(
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
