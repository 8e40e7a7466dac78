/** The rows of push registrations (protocol §1.4). */
import type { ResourceHandler } from "../call.ts"
import { keepingTyped } from "../again.ts"
import { below } from "../mailboxes/reader.ts"
import type { Route } from "../routing.ts"
import type { Service } from "../service.ts"
import { postRegistration } from "./create.ts"
import { registerForm } from "./pages.ts"
import { deleteRegistration, formOfRegistration, getRegistration } from "./registration.ts"
import { getRegistrations, postSecret, putRegistration } from "./registration.ts"

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
