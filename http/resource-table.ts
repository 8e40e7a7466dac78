/** The resource table: every path and method of the protocol, with its handler and description. */
import { type DocumentPart, makeDocument,
  type ServiceDescription } from "./formats/openapi/index.ts"
import { type ResourceHandler, type Route, type Service } from "./pipeline/index.ts"
import { type ResourceDefinition, routesOf } from "./resource.ts"
import { accountExportResource } from "./resources/account-export/index.ts"
import { accountResource } from "./resources/accounts/index.ts"
import { administrationResource } from "./resources/administration/index.ts"
import { auditResource } from "./resources/audit/index.ts"
import { cabinetResource } from "./resources/cabinets/index.ts"
import { clusterResource } from "./resources/cluster/index.ts"
import { contentResource } from "./resources/content/index.ts"
import { customerResource } from "./resources/customers/index.ts"
import { documentationResource } from "./resources/documentation/index.ts"
import { homeResource } from "./resources/home/index.ts"
import { limitUsageResource } from "./resources/limit-usage/index.ts"
import { mailboxResource } from "./resources/mailboxes/index.ts"
import { moderationResource } from "./resources/moderation/index.ts"
import { observabilityResource } from "./resources/observability/index.ts"
import { outgoingResource } from "./resources/outgoing/index.ts"
import { queryResource } from "./resources/queries/index.ts"
import { quoteResource } from "./resources/quotes/index.ts"
import { registrationResource } from "./resources/registrations/index.ts"
import { sessionResource } from "./resources/sessions/index.ts"
import { settingsResource } from "./resources/settings/index.ts"
import { signInResource } from "./resources/sign-in/index.ts"

/** The OpenAPI document (protocol §6). */
export const openapiDocument = (service: ServiceDescription): DocumentPart =>
  makeDocument(service, resourcesOf(service))

const resourcesOf = (service: ServiceDescription): ReadonlyArray<ResourceDefinition> => [
  homeResource(openapiDocument),
  documentationResource(openapiDocument),
  contentResource,
  mailboxResource(service),
  registrationResource,
  outgoingResource,
  cabinetResource,
  sessionResource,
  quoteResource,
  customerResource,
  queryResource,
  accountResource,
  accountExportResource,
  auditResource,
  signInResource,
  moderationResource,
  limitUsageResource,
  settingsResource,
  administrationResource,
  clusterResource,
  observabilityResource
]

export const resourceTable = (service: Service): ReadonlyArray<Route<ResourceHandler>> =>
  routesOf(service, resourcesOf(service.settings))
