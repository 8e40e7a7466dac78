/** The rows of push registrations (protocol §1.4). */
import { type ResourceHandler, type Route, type Service,
  withFormRedisplay } from "../../pipeline/index.ts"
import { withMailbox } from "../mailboxes/index.ts"
import { postRegistration } from "./registration-creation.ts"
import { deleteRegistration, formOfRegistration, getRegistration, getRegistrations, postSecret,
  putRegistration } from "./registration-handlers.ts"
import { registerForm } from "./registration-pages.ts"

const pattern = "/mailboxes/{mailbox}/registrations"

export const registrationRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  {
    pattern,
    methods: {
      GET: { handle: withMailbox(service, getRegistrations(service)) },
      POST: {
        handle: withFormRedisplay(
          // A WebSub request is of no page.
          ({ request }, fields) => fields.has("callback") ? registerForm(request.path) : undefined,
          withMailbox(service, postRegistration(service))
        )
      }
    }
  },
  {
    pattern: `${pattern}/{registration}`,
    methods: {
      GET: { handle: withMailbox(service, getRegistration(service)) },
      PUT: { handle: withMailbox(service, putRegistration(service)) },
      POST: { handle: withMailbox(service, formOfRegistration(service)) },
      DELETE: { handle: withMailbox(service, deleteRegistration(service)) }
    }
  },
  {
    pattern: `${pattern}/{registration}/secret`,
    methods: { POST: { handle: withMailbox(service, postSecret(service)), body: "none" } }
  }
]
