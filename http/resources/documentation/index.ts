/** The documentation of the service, and the API reference. */
export { documentationResource } from "./documentation-resource.ts"
