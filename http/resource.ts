/** A resource: its operations, each with its handler and its OpenAPI description. */
import type { HtmlForm } from "./formats/html/index.ts"
import type { FormFields } from "./formats/index.ts"
import { type Operation, type OperationGroup, operationsOf } from "./formats/openapi/index.ts"
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
  /** The hot path; see {@link ResourceHandler}. */
  readonly direct?: (service: Service) => NonNullable<ResourceHandler["direct"]>
  /** `Accept-Post` of the path's answers to OPTIONS, where clients look for it. */
  readonly acceptPost?: string
}

export type ResourceDefinition = OperationGroup<ResourceOperation>

const handlerOf = (service: Service, operation: ResourceOperation): ResourceHandler => {
  const { body, direct, form, handle, keyBeside } = operation
  const handler = handle(service)
  return {
    handle: form === undefined
      ? handler
      : withFormRedisplay((call, fields) => form(call, fields, service), handler),
    body: body?.kind ?? "none",
    ...keyBeside === undefined ? {} : { keyBeside },
    ...direct === undefined ? {} : { direct: direct(service) }
  }
}

/** The routing table of the resources: a row for each path. */
export const routesOf = (
  service: Service,
  resources: ReadonlyArray<ResourceDefinition>
): ReadonlyArray<Route<ResourceHandler>> => {
  const routes = new Map<string, Route<ResourceHandler>>()
  for (const { method, operation, pattern } of resources.flatMap(operationsOf)) {
    const { acceptPost } = operation
    const earlier = routes.get(pattern)
    routes.set(pattern, {
      ...earlier,
      pattern,
      methods: { ...earlier?.methods, [method]: handlerOf(service, operation) },
      ...acceptPost === undefined ? {} : { acceptPost }
    })
  }
  return [...routes.values()]
}
