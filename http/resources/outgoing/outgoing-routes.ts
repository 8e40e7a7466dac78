/** The routes of outgoing mailboxes (protocol §1.3). */
import { type ResourceHandler, type Route, type Service,
  withFormRedisplay } from "../../pipeline/index.ts"
import { collectionPath, mailboxPath } from "./outgoing-access.ts"
import { getOutgoingListing, getOwnOutgoing, postOwnOutgoing,
  postRetrySpan } from "./outgoing-listing.ts"
import { deleteOutgoing, getOutgoing, postOutgoingForm,
  postRetry } from "./outgoing-notification.ts"
import { composeForm, retrySpanForm } from "./outgoing-views.ts"
import { postOutgoing } from "./submission.ts"

export const outgoingRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  {
    pattern: collectionPath,
    methods: {
      GET: { handle: getOwnOutgoing(service) },
      POST: { handle: postOwnOutgoing(service), body: "none" }
    }
  },
  {
    pattern: `${collectionPath}/{account}`,
    methods: {
      GET: { handle: getOutgoingListing(service) },
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
          ({ parameters }) => retrySpanForm(mailboxPath(parameters.get("account"))),
          postRetrySpan(service)
        )
      }
    }
  },
  {
    pattern: `${collectionPath}/{account}/{notification}`,
    methods: {
      GET: { handle: getOutgoing(service) },
      POST: { handle: postOutgoingForm(service) },
      DELETE: { handle: deleteOutgoing(service) }
    }
  },
  {
    pattern: `${collectionPath}/{account}/{notification}/retry`,
    methods: { POST: { handle: postRetry(service), body: "none" } }
  }
]
