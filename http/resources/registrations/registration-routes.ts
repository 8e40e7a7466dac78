/** The routes of push registrations (protocol §1.4). */
import { type ResourceHandler, type Route, type Service,
  withFormRedisplay } from "../../pipeline/index.ts"
import { deleteRegistration, getRegistration, getRegistrations, postRegistrationForm,
  postRegistrations, postSecret, putRegistration } from "./registration-handlers.ts"
import { registerForm } from "./registration-views.ts"

const pattern = "/mailboxes/{mailbox}/registrations"

export const registrationRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  {
    pattern,
    methods: {
      GET: { handle: getRegistrations(service) },
      POST: {
        handle: withFormRedisplay(
          // No page has a form for a WebSub request.
          ({ request }, fields) => fields.has("callback") ? registerForm(request.path) : undefined,
          postRegistrations(service)
        )
      }
    }
  },
  {
    pattern: `${pattern}/{registration}`,
    methods: {
      GET: { handle: getRegistration(service) },
      PUT: { handle: putRegistration(service) },
      POST: { handle: postRegistrationForm(service) },
      DELETE: { handle: deleteRegistration(service) }
    }
  },
  {
    pattern: `${pattern}/{registration}/secret`,
    methods: { POST: { handle: postSecret(service), body: "none" } }
  }
]
