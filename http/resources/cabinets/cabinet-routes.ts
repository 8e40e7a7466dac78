/** The routes of cabinets: several mailboxes read as one (protocol §1.5). */
import { type ResourceHandler, type Route, type Service,
  withFormRedisplay } from "../../pipeline/index.ts"
import { deleteCabinet, getCabinet, getCabinets, postCabinetForm, postCabinets,
  putCabinet } from "./cabinet-handlers.ts"
import { collectionPath, createForm, replaceForm } from "./cabinet-views.ts"

export const cabinetRoutes = (service: Service): ReadonlyArray<Route<ResourceHandler>> => [
  {
    pattern: collectionPath,
    methods: {
      GET: { handle: getCabinets(service) },
      POST: { handle: withFormRedisplay(() => createForm(service), postCabinets(service)) }
    }
  },
  {
    pattern: `${collectionPath}/{cabinet}`,
    methods: {
      GET: { handle: getCabinet(service) },
      PUT: { handle: putCabinet(service) },
      POST: {
        handle: withFormRedisplay(
          ({ request }) => replaceForm(service, request.path),
          postCabinetForm(service)
        )
      },
      DELETE: { handle: deleteCabinet(service) }
    }
  }
]
