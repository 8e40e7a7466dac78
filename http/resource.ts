/** A resource: its operations, each with its handler and its OpenAPI description. */
import type { HtmlForm } from "./formats/html/index.ts"
import type { FormatOffer, FormFields } from "./formats/index.ts"
import { documentFault, formatsOfOperation, type Operation, type OperationGroup, operationsOf,
  type Properties, type RoutedOperation, storesForAnyone } from "./formats/openapi/index.ts"
import { type Call, type ResourceHandler, type Route, type Service,
  withFormRedisplay } from "./pipeline/index.ts"

/** One method of one path, with its description in `/openapi.json`. */
export interface ResourceOperation extends Operation {
  /** Makes the handler, once for each service. */
  readonly handle: (service: Service) => ResourceHandler["handle"]
  /** The form of a page that submits here: the problem page of a rejected form shows it again. */
  readonly form?: (call: Call, fields: FormFields, service: Service) => HtmlForm | undefined
  /** See {@link ResourceHandler}. */
  readonly keyBeside?: string
  /** See {@link ResourceHandler}. */
  readonly authorize?: (service: Service) => NonNullable<ResourceHandler["authorize"]>
  /** The hot path; see {@link ResourceHandler}. */
  readonly direct?: (service: Service) => NonNullable<ResourceHandler["direct"]>
  /** Parameters of the query that do not select what is shown: links omit them. */
  readonly unlinkedQuery?: ReadonlyArray<string>
  /** `Accept-Post` of the path's answers to OPTIONS, where clients look for it. */
  readonly acceptPost?: string
}

export type ResourceDefinition = OperationGroup<ResourceOperation>

/** The representations that the answer to GET has; undefined where it is not negotiated. */
const offerOf = (
  routed: RoutedOperation<ResourceOperation> | undefined
): FormatOffer | undefined => {
  const formats = routed === undefined ? [] : formatsOfOperation(routed)
  if (routed === undefined || formats.length === 0) return undefined
  const { query = {}, unlinkedQuery = [] } = routed.operation
  return {
    formats,
    parameters: Object.keys(query).filter((name) => !unlinkedQuery.includes(name))
  }
}

const handlerOf = (
  service: Service,
  routed: RoutedOperation<ResourceOperation>,
  offer: FormatOffer | undefined,
  schemas: Properties
): ResourceHandler => {
  const {
    authorize,
    body,
    contentOrigin,
    direct,
    form,
    handle,
    isUnkeyed,
    keyBeside,
    needs,
    scopes
  } = routed.operation
  const schema = body?.kind === "document" ? body.content["application/json"] : undefined
  const handler = handle(service)
  return {
    handle: form === undefined
      ? handler
      : withFormRedisplay((call, fields) => form(call, fields, service), handler),
    body: body?.kind ?? "none",
    ...offer === undefined ? {} : { offer },
    ...schema === undefined
      ? {}
      : { documentFault: (root) => documentFault(schema, schemas, root) },
    ...scopes === undefined ? {} : { access: { scopes, isOptional: needs === "message" } },
    ...contentOrigin === undefined ? {} : { contentOrigin },
    ...isUnkeyed === undefined ? {} : { isUnkeyed },
    ...keyBeside === undefined ? {} : { keyBeside },
    ...authorize === undefined ? {} : { authorize: authorize(service) },
    ...needs === "account" || needs === "role" ? { needsAccount: true } : {},
    ...storesForAnyone(routed) ? { storesForAnyone: true } : {},
    ...direct === undefined ? {} : { direct: direct(service) }
  }
}

/** The routing table of the resources: a row for each path. */
export const routesOf = (
  service: Service,
  resources: ReadonlyArray<ResourceDefinition>
): ReadonlyArray<Route<ResourceHandler>> => {
  const routes = new Map<string, Route<ResourceHandler>>()
  const schemas = Object.assign({}, ...resources.map((resource) => resource.schemas))
  const operations = resources.flatMap(operationsOf)
  const guarded = new Set(
    resources.filter(({ isGuarded }) => isGuarded === true)
      .flatMap((resource) => operationsOf(resource).map(({ pattern }) => pattern))
  )
  for (const routed of operations) {
    const { method, operation, pattern } = routed
    const { acceptPost } = operation
    const offer = offerOf(operations.find((one) => one.pattern === pattern && one.method === "GET"))
    const earlier = routes.get(pattern)
    routes.set(pattern, {
      ...earlier,
      pattern,
      methods: { ...earlier?.methods, [method]: handlerOf(service, routed, offer, schemas) },
      ...acceptPost === undefined ? {} : { acceptPost },
      ...operation.isGuarded === true ? { guarded: [method] } : {},
      ...guarded.has(pattern) ? { guarded: "all" as const } : {}
    })
  }
  return [...routes.values()]
}
