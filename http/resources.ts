/**
 * The resource table: path x method -> handler, every row of the protocol that is served. A row
 * without its description in the area's `openapi.ts` ends the start.
 */
import { accountRoutes } from "./accounts/index.ts"
import { cabinetRoutes } from "./cabinets/index.ts"
import type { ResourceHandler } from "./call.ts"
import { clusterRoutes } from "./cluster/index.ts"
import { contentRoutes } from "./content/index.ts"
import { customerRoutes } from "./customers/index.ts"
import { homeRoutes } from "./home/index.ts"
import { insideRoutes } from "./inside/index.ts"
import { mailboxRoutes } from "./mailboxes/index.ts"
import { described } from "./openapi/index.ts"
import { outgoingRoutes } from "./outgoing/index.ts"
import { queryRoutes } from "./queries/index.ts"
import { quoteRoutes } from "./quotes/index.ts"
import { registrationRoutes } from "./registrations/index.ts"
import type { Route } from "./routing.ts"
import type { Service } from "./service.ts"
import { sessionRoutes } from "./sessions/index.ts"

export const resources = (service: Service): ReadonlyArray<Route<ResourceHandler>> =>
  described(service, [
    ...homeRoutes(service),
    ...contentRoutes(service),
    ...mailboxRoutes(service),
    ...cabinetRoutes(service),
    ...registrationRoutes(service),
    ...outgoingRoutes(service),
    ...sessionRoutes(service),
    ...quoteRoutes(service),
    ...customerRoutes(service),
    ...queryRoutes(service),
    ...accountRoutes(service),
    ...insideRoutes(service),
    ...clusterRoutes(service)
  ])
