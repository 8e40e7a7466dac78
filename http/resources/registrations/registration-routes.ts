/** The rows of push registrations (protocol §1.4). */
import { keepingTyped, type ResourceHandler, type Route,
  type Service } from "../../pipeline/index.ts"
import { below } from "../mailboxes/index.ts"
import { postRegistration } from "./registration-creation.ts"
import { deleteRegistration, formOfRegistration, getRegistration, getRegistrations, postSecret,
  putRegistration } from "./registration-handlers.ts"
import { registerForm } from "./registration-pages.ts"

const pattern = "/mailboxes/{mailbox}/registrations"

export const registrationRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  {
    pattern,
    methods: {
      GET: { handle: below(service, getRegistrations(service)) },
      POST: {
        handle: keepingTyped(
          // A WebSub request is of no page.
          ({ request }, fields) => fields.has("callback") ? registerForm(request.path) : undefined,
          below(service, postRegistration(service))
        )
      }
    }
  },
  {
    pattern: `${pattern}/{registration}`,
    methods: {
      GET: { handle: below(service, getRegistration(service)) },
      PUT: { handle: below(service, putRegistration(service)) },
      POST: { handle: below(service, formOfRegistration(service)) },
      DELETE: { handle: below(service, deleteRegistration(service)) }
    }
  },
  {
    pattern: `${pattern}/{registration}/secret`,
    methods: { POST: { handle: below(service, postSecret(service)), body: "none" } }
  }
]
