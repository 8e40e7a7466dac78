/** The suites from outside, in the order in which they run. */
import { httplint } from "./httplint/httplint.ts"
import { openapiPythonClient, openapiTypescript, redocly, spectral } from "./openapi/index.ts"
import { schemathesis } from "./schemathesis/schemathesis.ts"
import type { ForeignSuite } from "./suite.ts"

export const suites: ReadonlyArray<ForeignSuite> = [
  httplint,
  redocly,
  spectral,
  openapiTypescript,
  openapiPythonClient,
  schemathesis
]
