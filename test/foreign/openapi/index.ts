/** Suites of the OpenAPI document: linters, and clients that generators make from it. */
export { redocly, spectral } from "./linters.ts"
export { openapiPythonClient } from "./python-client.ts"
export { openapiTypescript } from "./typescript-client.ts"
