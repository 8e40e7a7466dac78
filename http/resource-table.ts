/**
 * The resource table: every path and method of the protocol with its handler. The service does not
 * start if the OpenAPI operations of a resource lack a row.
 */
import { describedRoutes } from "./openapi-document.ts"
import type { ResourceHandler, Route, Service } from "./pipeline/index.ts"
import { accountRoutes } from "./resources/accounts/index.ts"
import { cabinetRoutes } from "./resources/cabinets/index.ts"
import { clusterRoutes } from "./resources/cluster/index.ts"
import { contentRoutes } from "./resources/content/index.ts"
import { customerRoutes } from "./resources/customers/index.ts"
import { homeRoutes } from "./resources/home/index.ts"
import { mailboxRoutes } from "./resources/mailboxes/index.ts"
import { observabilityRoutes } from "./resources/observability/index.ts"
import { outgoingRoutes } from "./resources/outgoing/index.ts"
import { queryRoutes } from "./resources/queries/index.ts"
import { quoteRoutes } from "./resources/quotes/index.ts"
import { registrationRoutes } from "./resources/registrations/index.ts"
import { sessionRoutes } from "./resources/sessions/index.ts"

export const resourceTable = (service: Service): ReadonlyArray<Route<ResourceHandler>> =>
  describedRoutes(service, [
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
    ...observabilityRoutes(service),
    ...clusterRoutes(service)
  ])
